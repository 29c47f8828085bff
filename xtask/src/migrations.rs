//! `cargo xtask migrate-test`, the whole migration matrix, and `cargo xtask interop`, lakes of crate `moraine` 0.7.0.

use std::path::PathBuf;

use clap::Args;

use crate::steps;

/// Arguments of `cargo xtask migrate-test`.
#[derive(Debug, Args)]
pub(crate) struct MatrixOptions {
    /// Run the tests of the matrix whose names contain this, and nothing else
    #[arg(value_name = "TEST", default_value = "")]
    filter: String,
}

/// Runs the migration matrix on large lakes: every format, with a stop at every batch and at every write.
pub(crate) fn matrix(options: &MatrixOptions) -> anyhow::Result<()> {
    let mut cargo = steps::cargo(&[
        "test",
        "--workspace",
        "--test",
        "migration_matrix",
        "--",
        "--nocapture",
    ]);
    cargo
        .arg(&options.filter)
        .env("MORAINE_WHOLE_MIGRATION_MATRIX", "1");
    steps::run("the migration matrix", &mut cargo)
}

/// Arguments of `cargo xtask interop`.
#[derive(Debug, Args)]
pub(crate) struct InteropOptions {
    /// Where crate `moraine` 0.7.0 and its SlateDB are built [default: `interop` in the workspace's target directory]
    #[arg(long, value_name = "DIR")]
    target_dir: Option<PathBuf>,
}

/// Builds crate `moraine` 0.7.0, has it write a lake, and compares what both say of it.
pub(crate) fn interop(options: &InteropOptions) -> anyhow::Result<()> {
    let target = match &options.target_dir {
        Some(target) => std::path::absolute(target)?,
        None => steps::target_directory()?.join("interop"),
    };
    let manifest = steps::root().join("interop/Cargo.toml");
    let mut build = steps::cargo(&["build", "--locked", "--manifest-path"]);
    build.arg(manifest).arg("--target-dir").arg(&target);
    steps::run("building crate moraine 0.7.0", &mut build)?;
    let name = format!("moraine-interop{}", std::env::consts::EXE_SUFFIX);
    let mut cargo = steps::cargo(&["test", "--workspace", "--test", "migration_matrix", "interop"]);
    cargo.env("MORAINE_0_7_0", target.join("debug").join(name));
    steps::run("lakes of crate moraine 0.7.0", &mut cargo)
}
