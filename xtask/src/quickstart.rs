//! `cargo xtask quickstart`: from a fresh clone to a lake that DuckDB has worked on, explained step by step.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::{python, steps};

/// Arguments of `cargo xtask quickstart`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The folder in which the lake is made, and left
    #[arg(long, default_value = "lake")]
    dir: PathBuf,
    /// The loopback address to serve on while the session runs; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
}

/// Builds, makes the Python environment, and hands over to the session.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let moraine = steps::build_moraine(false)?;
    let mut session = python::SESSIONS.program("tests/duckdb/quickstart.py")?;
    session.arg("--moraine").arg(moraine);
    session.arg("--dir").arg(std::path::absolute(&options.dir)?);
    session.args(["--listen", &options.listen.to_string()]);
    steps::run("a session of DuckDB on a lake served by moraine", &mut session)
}
