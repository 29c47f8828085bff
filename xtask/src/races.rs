//! `cargo xtask race`: flushes beside inserts, updates and deletions for as long as asked, in one process through the library and
//! in several through DuckDB. The tests are those of `cargo xtask test`, which runs them for seconds.

use clap::Args;

use crate::{python, steps};

/// Arguments of `cargo xtask race`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// For how long each of the two is to run
    #[arg(long, default_value_t = 180)]
    seconds: u32,
}

/// Races until the time is over; the first row that is lost or doubled ends it.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let seconds = options.seconds.to_string();
    let mut cargo = steps::cargo(&[
        "test",
        "--workspace",
        "--test",
        "commit",
        "--",
        "flush_races",
        "--nocapture",
    ]);
    cargo.env("MORAINE_RACE_SECONDS", &seconds);
    steps::run("flushes of the library beside writers", &mut cargo)?;
    let moraine = steps::build_moraine(false)?;
    let mut scenario = python::SESSIONS.program("tests/duckdb/run.py")?;
    scenario
        .arg("--moraine")
        .arg(moraine)
        .arg("flushes_beside_writers")
        .env("MORAINE_RACE_SECONDS", &seconds);
    steps::run("flushes of DuckDB beside writers", &mut scenario)
}
