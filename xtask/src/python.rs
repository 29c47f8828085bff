//! The Python environment of the DuckDB sessions: made on the first use, kept below the target directory, and made
//! again when the list of requirements or the Python changes.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::steps;

const REQUIREMENTS: &str = "tests/duckdb/requirements.txt";
const STAMP: &str = "requirements.stamp";

/// The environment's interpreter, after making the environment if need be.
pub(crate) fn environment() -> anyhow::Result<PathBuf> {
    let directory = steps::target_directory()?.join("python");
    let interpreter = directory.join("bin").join("python");
    let requirements = steps::root().join(REQUIREMENTS);
    let wanted = stamp(&requirements)?;
    let stamp_file = directory.join(STAMP);
    let found = std::fs::read_to_string(&stamp_file).unwrap_or_default();
    if found == wanted && interpreter.exists() {
        return Ok(interpreter);
    }
    create(&directory)?;
    steps::run(
        "downloading DuckDB and its extensions into the Python environment (about 100 MB, once)",
        Command::new(&interpreter)
            .args([
                "-m",
                "pip",
                "install",
                "--disable-pip-version-check",
                "--requirement",
            ])
            .arg(&requirements),
    )
    .context("pip could not install tests/duckdb/requirements.txt: is a package registry reachable?")?;
    std::fs::write(&stamp_file, wanted).with_context(|| format!("cannot write {}", stamp_file.display()))?;
    Ok(interpreter)
}

/// A command that runs a Python program of the workspace in the environment.
pub(crate) fn program(path: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(environment()?);
    command.current_dir(steps::root()).arg(path);
    // Names and values are not ASCII, whatever the locale says.
    command.env("PYTHONUTF8", "1");
    command.env("PYTHONUNBUFFERED", "1");
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

/// What the environment was made of: the requirements, and the version of the Python that is at hand.
fn stamp(requirements: &Path) -> anyhow::Result<String> {
    let list = std::fs::read_to_string(requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;
    let output = Command::new(system_python())
        .arg("--version")
        .output()
        .with_context(|| {
            format!(
                "{} does not run: the DuckDB sessions need Python 3.9 or later",
                system_python()
            )
        })?;
    if !output.status.success() {
        bail!("{} --version failed ({})", system_python(), output.status);
    }
    Ok(format!("{}{list}", String::from_utf8_lossy(&output.stdout)))
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
