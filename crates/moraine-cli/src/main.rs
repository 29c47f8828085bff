//! The `moraine` command: arguments, logging and exit codes. What a command does is in the module named after it; what
//! a store or a server is, in their crates.

mod arguments;
mod attach;
mod check;
mod checkpoint;
mod drop_index;
mod flush;
mod info;
mod inspect;
mod lakes;
mod migrate;
mod places;
mod report;
mod serve;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments) {
        Ok(code) => code,
        Err(error) => {
            // With stderr gone there is nobody left to tell.
            let _ = writeln!(std::io::stderr(), "moraine: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    tracing_subscriber::fmt()
        .with_env_filter(arguments.log_level)
        .with_writer(std::io::stderr)
        .with_target(false)
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match arguments.command {
            Command::Serve(options) => serve::run(options).await?,
            Command::Info(options) => info::run(options).await?,
            Command::Flush(options) => flush::run(options).await?,
            Command::Migrate(options) => migrate::run(options).await?,
            Command::Check(options) => return check::run(options).await,
            Command::Inspect(options) => inspect::run(options).await?,
            Command::Checkpoint(command) => checkpoint::run(command).await?,
            Command::DropIndex(options) => drop_index::run(options).await?,
            Command::Import(options) => lakes::run_import(options).await?,
            Command::Export(options) => lakes::run_export(options).await?,
            Command::Verify(options) => lakes::run_verify(options).await?,
        }
        Ok(ExitCode::SUCCESS)
    })
}
