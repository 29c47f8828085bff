//! Running other programs, with a line that says which and why; and where the workspace keeps its things.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// A command that runs cargo in the workspace.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command
}

/// The directory that cargo builds into, wherever the environment or a configuration file puts it.
pub(crate) fn target_directory() -> anyhow::Result<PathBuf> {
    let output = cargo(&["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("cargo metadata does not run")?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")?;
    let directory = metadata["target_directory"].as_str();
    Ok(PathBuf::from(
        directory.context("cargo metadata names no target directory")?,
    ))
}

/// Builds the `moraine` command and says where it is.
pub(crate) fn build_moraine(release: bool) -> anyhow::Result<PathBuf> {
    let mut arguments = vec!["build", "--package", "moraine-cli"];
    if release {
        arguments.push("--release");
    } else {
        // The sessions play verbs of the library too.
        arguments.extend([
            "--bin",
            "moraine",
            "--package",
            "moraine-tests",
            "--example",
            "verb_player",
            "--package",
            "moraine-commit",
            "--example",
            "lake_of_files",
        ]);
    }
    run("building moraine", &mut cargo(&arguments))?;
    moraine(if release { "release" } else { "debug" })
}

/// Where the `moraine` command is once it is built.
pub(crate) fn moraine(profile: &str) -> anyhow::Result<PathBuf> {
    let name = format!("moraine{}", std::env::consts::EXE_SUFFIX);
    Ok(target_directory()?.join(profile).join(name))
}

/// Announces a step.
pub(crate) fn announce(what: &str) {
    println!("\n=== {what}");
}

/// Runs a program whose output is shown as it comes, and says how long it took; its failure is an error.
pub(crate) fn run(what: &str, command: &mut Command) -> anyhow::Result<()> {
    announce(what);
    let started = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    if !status.success() {
        bail!("{what} failed ({status})");
    }
    println!("=== done in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}
