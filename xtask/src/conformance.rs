//! `cargo xtask conformance`: DuckLake's own test suite against a moraine server, each file on a lake of its own.

use std::path::PathBuf;

use clap::Args;

use crate::{python, steps};

/// Arguments of `cargo xtask conformance`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// A checkout of github.com/duckdb/ducklake, at the commit of the ducklake extension that the sessions use
    #[arg(long, value_name = "CHECKOUT")]
    suite: PathBuf,
    /// Only files whose path matches; may be given more than once
    #[arg(long, value_name = "REGEX")]
    filter: Vec<String>,
    /// Leave out the files that the suite calls slow
    #[arg(long)]
    no_slow: bool,
    /// Run what the suite's configuration for PostgreSQL skips too, and report it apart
    #[arg(long)]
    all: bool,
    /// How many files run at the same time; the number of cores by default
    #[arg(long)]
    jobs: Option<u32>,
    /// How long one file may take
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u32,
    /// Write the outcome of each file there
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the list of files that have to pass anew, tests/conformance/passes.txt
    #[arg(long)]
    update: bool,
    /// The `moraine` command to run, instead of a release build of this workspace
    #[arg(long, value_name = "PATH")]
    moraine: Option<PathBuf>,
}

/// Builds the server, makes the Python environment, and runs the suite; a file of the list that does not pass is an error.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let moraine = match &options.moraine {
        Some(path) => std::path::absolute(path)?,
        None => steps::build_moraine(true)?,
    };
    steps::run(
        "the runner's own tests",
        &mut python::CONFORMANCE.program("tests/conformance/test_player.py")?,
    )?;
    let mut suite = python::CONFORMANCE.program("tests/conformance/run.py")?;
    suite.arg("--suite").arg(std::path::absolute(&options.suite)?);
    suite.arg("--moraine").arg(moraine);
    suite.args(["--timeout", &options.timeout.to_string()]);
    for pattern in &options.filter {
        suite.args(["--filter", pattern]);
    }
    for (flag, is_given) in [
        ("--no-slow", options.no_slow),
        ("--all", options.all),
        ("--update", options.update),
    ] {
        if is_given {
            suite.arg(flag);
        }
    }
    if let Some(jobs) = options.jobs {
        suite.args(["--jobs", &jobs.to_string()]);
    }
    if let Some(json) = &options.json {
        suite.arg("--json").arg(std::path::absolute(json)?);
    }
    steps::run("DuckLake's test suite", &mut suite)
}
