//! `cargo xtask clients`: clients of DuckLake other than DuckDB, each in a small session on a lake served by moraine.

use std::path::PathBuf;

use clap::Args;

use crate::{python, steps};

/// Arguments of `cargo xtask clients`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only the clients whose names contain one of these
    #[arg(value_name = "CLIENT")]
    clients: Vec<String>,
    /// The `moraine` command to run, instead of a build of this workspace
    #[arg(long, value_name = "PATH")]
    moraine: Option<PathBuf>,
}

/// Builds the server, installs the clients from their registries, and runs their sessions.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let moraine = match &options.moraine {
        Some(path) => std::path::absolute(path)?,
        None => steps::build_moraine(false)?,
    };
    let mut sessions = python::CLIENTS.program("tests/clients/run.py")?;
    sessions.arg("--moraine").arg(moraine).args(&options.clients);
    steps::run("sessions of other clients", &mut sessions)
}
