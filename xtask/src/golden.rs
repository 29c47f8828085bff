//! `cargo xtask golden`: writes or compares the golden vectors. The vectors themselves are made by the test
//! `golden_vectors` of the workspace's tests, so that this program does not have to build the crates to offer its other
//! commands.

use crate::steps;

/// Arguments of `cargo xtask golden`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Compare the files with what today's code makes, and change nothing
    #[arg(long)]
    check: bool,
}

/// Writes the files under `tests/golden`, or with `--check` fails at the first line that differs.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let mut cargo = steps::cargo(&[
        "test",
        "--quiet",
        "--package",
        "moraine-tests",
        "--test",
        "golden_vectors",
    ]);
    // A difference is a sentence; how the test came to it is of no use.
    cargo.env("RUST_BACKTRACE", "0");
    if options.check {
        return steps::run("comparing the golden vectors in tests/golden", &mut cargo);
    }
    cargo
        .args(["--", "--nocapture", "the_bytes_of_the_format"])
        .env("MORAINE_GOLDEN", "write");
    steps::run("writing the golden vectors to tests/golden", &mut cargo)
}
