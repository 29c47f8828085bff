//! The Python environments of the programs under `tests/`: made on the first use, kept below the target directory, and made
//! again when the Python or the list of requirements changes.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::steps;

/// An environment: where it is kept, and the lists of what it holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Environment {
    directory: &'static str,
    requirements: &'static [&'static str],
}

/// DuckDB and the extensions that a lake needs.
pub(crate) const SESSIONS: Environment = Environment {
    directory: "python",
    requirements: &["tests/duckdb/requirements.txt"],
};

/// The same with the extensions that DuckLake's own test suite asks for; they do not disturb the sessions.
pub(crate) const CONFORMANCE: Environment = Environment {
    directory: "python",
    requirements: &[
        "tests/duckdb/requirements.txt",
        "tests/conformance/requirements.txt",
    ],
};

/// Other clients of DuckLake, apart from the rest: they choose the versions of what they need themselves.
pub(crate) const CLIENTS: Environment = Environment {
    directory: "python-clients",
    requirements: &["tests/duckdb/requirements.txt", "tests/clients/requirements.txt"],
};

impl Environment {
    /// The environment's interpreter, after making the environment if need be.
    pub(crate) fn interpreter(&self) -> anyhow::Result<PathBuf> {
        let directory = steps::target_directory()?.join(self.directory);
        let interpreter = directory.join("bin").join("python");
        let python_stamp = directory.join("python.stamp");
        let version = python_version()?;
        if !interpreter.exists() || !holds(&python_stamp, &version) {
            create(&directory)?;
            write(&python_stamp, &version)?;
        }
        for requirements in self.requirements {
            install(&directory, &interpreter, requirements)?;
        }
        Ok(interpreter)
    }

    /// A command that runs a Python program of the workspace in the environment.
    pub(crate) fn program(&self, path: &str) -> anyhow::Result<Command> {
        let mut command = Command::new(self.interpreter()?);
        command.current_dir(steps::root()).arg(path);
        // Names and values are not ASCII, whatever the locale says.
        command.env("PYTHONUTF8", "1");
        command.env("PYTHONUNBUFFERED", "1");
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        Ok(command)
    }
}

/// Installs a list of requirements, unless it is installed as it stands.
fn install(directory: &Path, interpreter: &Path, requirements: &str) -> anyhow::Result<()> {
    let path = steps::root().join(requirements);
    let wanted = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let stamp = directory.join(format!("{}.stamp", requirements.replace('/', "-")));
    if holds(&stamp, &wanted) {
        return Ok(());
    }
    steps::run(
        &format!("installing {requirements} into a Python environment (downloads, once)"),
        Command::new(interpreter)
            .args([
                "-m",
                "pip",
                "install",
                "--disable-pip-version-check",
                "--requirement",
            ])
            .arg(&path),
    )
    .with_context(|| format!("pip could not install {requirements}: is a package registry reachable?"))?;
    write(&stamp, &wanted)
}

fn holds(stamp: &Path, wanted: &str) -> bool {
    std::fs::read_to_string(stamp).is_ok_and(|found| found == wanted)
}

fn write(stamp: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(stamp, text).with_context(|| format!("cannot write {}", stamp.display()))
}

/// The version of the Python that is at hand.
fn python_version() -> anyhow::Result<String> {
    let python = system_python();
    let output = Command::new(&python).arg("--version").output().with_context(|| {
        format!("{python} does not run: the programs under tests/ need Python 3.9 or later")
    })?;
    if !output.status.success() {
        bail!("{python} --version failed ({})", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn system_python() -> String {
    std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

fn create(directory: &Path) -> anyhow::Result<()> {
    steps::run(
        "making a Python environment",
        Command::new(system_python())
            .args(["-m", "venv", "--clear"])
            .arg(directory),
    )
    .context("`python3 -m venv` does not work: on Debian and Ubuntu install the package python3-venv")
}
