//! `cargo xtask bench`: measurements, side by side in one run. They assert nothing about time.

use std::process::Command;

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
    /// Flushing a table of many inlined rows: rows a second and the greatest memory, beside arrow-rs writing the same Parquet
    Flush(Flush),
    /// What inlined rows cost: a small commit beside bare SlateDB, a million rows beside one Parquet file
    Inline,
    /// The same statement of one relation on the direct path and through DataFusion
    Sql,
    /// Many DuckDB processes that write one lake at once, on moraine and, if given, on PostgreSQL
    Writers(Writers),
    /// Commits: of the library, beside bare SlateDB and RockLake's keys, and of fleets of DuckDB processes, beside PostgreSQL
    Commit(Commit),
    /// Import and migration of a catalog with many file records: rates and the greatest memory, beside a plain scan and
    /// rewrite of the same keys and, if given, COPY of the same rows into PostgreSQL
    Migrate(Migrate),
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

#[derive(Debug, Args)]
struct Writers {
    /// A PostgreSQL to compare with, as for `bench catalogs`
    #[arg(long, value_name = "CONNSTR")]
    postgres: Option<String>,
    /// Sizes of the fleet of writers
    #[arg(long, value_delimiter = ',', default_value = "1,4,8,16,32")]
    writers: Vec<u32>,
    /// Commits of each writer
    #[arg(long, default_value_t = 20)]
    commits: u32,
    /// What a commit does: `append` a row, or `update` a row that is the writer's alone
    #[arg(long, default_value = "append", value_parser = ["append", "update"])]
    work: String,
    /// A table for each writer rather than one of all
    #[arg(long)]
    own_tables: bool,
    /// Appends with `--rebase-appends` too
    #[arg(long)]
    rebase: bool,
    /// Keep moraine's catalog in a bucket whose writes take so many milliseconds
    #[arg(long, default_value_t = 0)]
    write_ms: u32,
}

#[derive(Debug, Args)]
struct Commit {
    /// Only one half: the `library`, or DuckDB `processes`
    #[arg(long, value_parser = ["library", "processes"])]
    only: Option<String>,
    /// By how much the longest history of the library's half, of 100,000 snapshots, is made shorter
    #[arg(long, default_value_t = 1)]
    shorter: u32,
    /// A PostgreSQL to compare with, as for `bench catalogs`
    #[arg(long, value_name = "CONNSTR")]
    postgres: Option<String>,
    /// Sizes of the fleet of writers
    #[arg(long, value_delimiter = ',', default_value = "1,4,8,16,32")]
    writers: Vec<u32>,
    /// Commits of each writer
    #[arg(long, default_value_t = 20)]
    commits: u32,
}

#[derive(Debug, Args)]
struct Migrate {
    /// File records in the catalog, one run each; two sizes show what memory grows with
    #[arg(long, value_delimiter = ',', default_value = "250000,1000000")]
    files: Vec<u64>,
    /// A PostgreSQL to compare with, as for `bench catalogs`
    #[arg(long, value_name = "CONNSTR")]
    postgres: Option<String>,
}

#[derive(Debug, Args)]
struct Flush {
    /// Rows of the table, in chunks of 1000
    #[arg(long, default_value_t = 10_000_000)]
    rows: u64,
    /// Gives the table a sort order
    #[arg(long)]
    sorted: bool,
    /// Gives the table a thousand partitions
    #[arg(long)]
    partitioned: bool,
}

/// Runs the criterion benchmarks, or compares catalogs.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    match &options.what {
        None => steps::run(
            "benchmarks",
            &mut steps::cargo(&["bench", "--workspace", "--benches"]),
        ),
        Some(What::Catalogs(catalogs)) => compare(catalogs),
        Some(What::Writers(writers)) => race(writers),
        Some(What::Commit(commit)) => commits(commit),
        Some(What::Migrate(options)) => migrate(options),
        Some(What::Inline) => {
            let bench = ["bench", "--workspace", "--bench", "inlined_rows"];
            steps::run("inlined rows", &mut steps::cargo(&bench))
        }
        Some(What::Sql) => {
            let bench = ["bench", "--workspace", "--bench", "both_paths"];
            steps::run("both paths of a statement", &mut steps::cargo(&bench))
        }
        Some(What::Flush(options)) => flush(options),
    }
}

fn compare(options: &Catalogs) -> anyhow::Result<()> {
    let moraine = steps::build_moraine(true)?;
    let mut program = python::SESSIONS.program("tests/duckdb/bench_catalogs.py")?;
    program.arg("--moraine").arg(moraine);
    program.args(["--rounds", &options.rounds.to_string()]);
    if let Some(postgres) = &options.postgres {
        program.args(["--postgres", postgres]);
    }
    steps::run("catalogs side by side", &mut program)
}

fn race(options: &Writers) -> anyhow::Result<()> {
    let mut program = writers(&options.writers, options.commits, options.postgres.as_deref())?;
    program.args(["--work", &options.work]);
    for (flag, is_set) in [("--own-tables", options.own_tables), ("--rebase", options.rebase)] {
        if is_set {
            program.arg(flag);
        }
    }
    program.args(["--write-ms", &options.write_ms.to_string()]);
    steps::run("many writers at once", &mut program)
}

fn commits(options: &Commit) -> anyhow::Result<()> {
    let is_asked = |half: &str| options.only.as_deref().is_none_or(|only| only == half);
    if is_asked("library") {
        let bench = ["bench", "--workspace", "--bench", "commits", "--"];
        let mut cargo = steps::cargo(&bench);
        steps::run("commits of the library", cargo.arg(options.shorter.to_string()))?;
    }
    if is_asked("processes") {
        let mut program = writers(&options.writers, options.commits, options.postgres.as_deref())?;
        program.arg("--all");
        steps::run("many writers at once, all kinds of work", &mut program)?;
    }
    Ok(())
}

/// The program that measures fleets of writers.
fn writers(sizes: &[u32], commits: u32, postgres: Option<&str>) -> anyhow::Result<Command> {
    let moraine = steps::build_moraine(true)?;
    let mut program = python::SESSIONS.program("tests/duckdb/bench_writers.py")?;
    program.arg("--moraine").arg(moraine);
    let sizes: Vec<String> = sizes.iter().map(u32::to_string).collect();
    program.args(["--writers", &sizes.join(","), "--commits", &commits.to_string()]);
    if let Some(postgres) = postgres {
        program.args(["--postgres", postgres]);
    }
    Ok(program)
}

fn flush(options: &Flush) -> anyhow::Result<()> {
    let rows = options.rows.to_string();
    let mut arguments = vec!["bench", "--workspace", "--bench", "flush", "--", &rows];
    for (word, is_set) in [("sorted", options.sorted), ("partitioned", options.partitioned)] {
        if is_set {
            arguments.push(word);
        }
    }
    steps::run("a flush beside Parquet", &mut steps::cargo(&arguments))
}

fn migrate(options: &Migrate) -> anyhow::Result<()> {
    // Built with the features of the whole workspace, which other benchmarks and builds have too.
    let build = ["build", "--release", "--workspace", "--example", "bench_migrate"];
    steps::run("building the benchmark", &mut steps::cargo(&build))?;
    let name = format!("bench_migrate{}", std::env::consts::EXE_SUFFIX);
    let mut program = Command::new(steps::target_directory()?.join("release/examples").join(name));
    let sizes: Vec<String> = options.files.iter().map(u64::to_string).collect();
    program.arg(sizes.join(","));
    program.args(options.postgres.as_deref());
    steps::run("lakes that move, beside plain reads and writes", &mut program)
}
