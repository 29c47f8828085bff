//! `cargo xtask bench`: measurements, side by side in one run. They assert nothing about time.

use clap::{Args, Subcommand};

use crate::{python, steps};

/// Arguments of `cargo xtask bench`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Attach, single-row inserts and CREATE TABLE on a DuckDB-file catalog, on moraine and, if given, on PostgreSQL
    Catalogs(Catalogs),
}

#[derive(Debug, Args)]
struct Catalogs {
    /// A PostgreSQL to compare with, such as 'host=127.0.0.1 port=5432 user=postgres dbname=postgres'; each round
    /// makes a schema of its own in it and drops it again
    #[arg(long, value_name = "CONNSTR")]
    postgres: Option<String>,
    /// How often each catalog has its turn
    #[arg(long, default_value_t = 5)]
    rounds: u32,
}

/// Runs the criterion benchmarks, or compares catalogs.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    match &options.what {
        None => steps::run(
            "benchmarks",
            &mut steps::cargo(&["bench", "--workspace", "--benches"]),
        ),
        Some(What::Catalogs(catalogs)) => compare(catalogs),
    }
}

fn compare(options: &Catalogs) -> anyhow::Result<()> {
    let moraine = steps::build_moraine(true)?;
    let mut program = python::program("tests/duckdb/bench_catalogs.py")?;
    program.arg("--moraine").arg(moraine);
    program.args(["--rounds", &options.rounds.to_string()]);
    if let Some(postgres) = &options.postgres {
        program.args(["--postgres", postgres]);
    }
    steps::run("catalogs side by side", &mut program)
}
