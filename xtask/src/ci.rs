//! `cargo xtask ci`: what a change has to pass, cheapest first.

use crate::{steps, tests};

/// Runs formatting, lints and all tests; the first that fails ends it.
pub(crate) fn run() -> anyhow::Result<()> {
    steps::run("formatting", &mut steps::cargo(&["fmt", "--all", "--check"]))?;
    let lints = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "--deny",
        "warnings",
    ];
    steps::run("lints", &mut steps::cargo(&lints))?;
    tests::run(&tests::Options::default())
}
