//! Automation of the workspace, as `cargo xtask COMMAND`. Nothing here is shipped.

mod bench;
mod ci;
mod golden;
mod python;
mod quickstart;
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
