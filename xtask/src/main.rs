//! Automation of the workspace, as `cargo xtask COMMAND`. Nothing here is shipped.

mod bench;
mod ci;
mod clients;
mod conformance;
mod golden;
mod migrations;
mod python;
mod quickstart;
mod races;
mod steps;
mod tests;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Automation of the moraine workspace
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Try moraine: build it, serve a lake in a local folder, and play a session of DuckDB on it
    Quickstart(quickstart::Options),
    /// Run all tests: the Rust ones, then the DuckDB sessions (in a Python environment made on the first run)
    Test(tests::Options),
    /// Formatting, lints with warnings denied, then all tests
    Ci,
    /// Flush beside writers for minutes, and compare every snapshot with a plain model
    Race(races::Options),
    /// Run DuckLake's own test suite, from a checkout of it, against a moraine server
    Conformance(conformance::Options),
    /// Try clients of DuckLake other than DuckDB, installed from their registries, against a moraine server
    Clients(clients::Options),
    /// Run the whole migration matrix: stores of every format, with a stop at every batch and at every write
    MigrateTest(migrations::MatrixOptions),
    /// Have crate `moraine` 0.7.0 write a lake, migrate it, and compare every row of every table
    Interop(migrations::InteropOptions),
    /// Write the golden vectors under tests/golden, or compare them
    Golden(golden::Options),
    /// Run the criterion benchmarks, or compare catalogs from a DuckDB client's side
    Bench(bench::Options),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Quickstart(options) => quickstart::run(&options),
        Command::Test(options) => tests::run(&options),
        Command::Ci => ci::run(),
        Command::Race(options) => races::run(&options),
        Command::Conformance(options) => conformance::run(&options),
        Command::Clients(options) => clients::run(&options),
        Command::MigrateTest(options) => migrations::matrix(&options),
        Command::Interop(options) => migrations::interop(&options),
        Command::Golden(options) => golden::run(&options),
        Command::Bench(options) => bench::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod documented_commands {
    use super::*;

    #[test]
    fn commands_that_the_documents_show_are_understood() {
        for document in [
            include_str!("../../README.md"),
            include_str!("../../CONTRIBUTING.md"),
        ] {
            let shown: Vec<&str> = document
                .split(['`', '\n'])
                .filter(|text| text.starts_with("cargo xtask "))
                .collect();
            assert!(!shown.is_empty(), "the document shows no command");
            for line in shown {
                let parsed = Arguments::try_parse_from(line.split_whitespace().skip(1));
                assert!(parsed.is_ok(), "{line}: {}", parsed.map(|_| ()).unwrap_err());
            }
        }
    }
}
