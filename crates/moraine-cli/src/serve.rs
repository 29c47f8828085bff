//! `moraine serve`: starts the server, prints what to paste into DuckDB, and drains on SIGINT or SIGTERM.

use std::io::Write;

use anyhow::Context;
use moraine_server::{Access, ReadPoint, Server, ServerOptions};
use moraine_store::checkpoints::{self, Checkpoint};
use moraine_store::{OpenError, OpenOptions, StoreUrl, list_stores};

use crate::arguments::ServeOptions;
use crate::attach::{Attach, chosen_data_path, default_data_path};
use crate::places::lakes;

/// Serves until a signal asks for the end, and all connections are closed.
pub(crate) async fn run(options: ServeOptions) -> anyhow::Result<()> {
    let data_path = match &options.data_path {
        Some(path) => chosen_data_path(path)?,
        None => default_data_path(&options.url, &options.database)?,
    };
    check_root(&options.url).await?;
    let access = access(&options);
    check_readable(&options.url, &access).await?;
    let mut server = ServerOptions::new(options.listen, options.url.clone());
    server.catalog.access = access;
    server.idle_close = options.close_idle.0;
    server.catalog.rebase_appends = options.rebase_appends;
    server.catalog.reservation = options.turn_seconds;
    server.catalog.slot_idle = options.commit_seconds;
    let (server, address) = Server::bind(server)
        .await
        .with_context(|| format!("cannot serve {} on {}", options.url, options.listen))?;
    let attach = Attach {
        address,
        database: &options.database,
        data_path: &data_path,
        read_only: options.read_only,
    };
    print(&format!(
        "moraine serves {}, listening on {address}\nPaste into DuckDB:\n\n{}\n\nCtrl-C ends the server.",
        options.url,
        attach.statements()
    ));
    server.run(asked_to_end()).await?;
    print("moraine has ended");
    Ok(())
}

fn access(options: &ServeOptions) -> Access {
    match (&options.checkpoint, options.read_only) {
        (Some(checkpoint), _) => Access::Read(ReadPoint::Checkpoint(checkpoint.clone())),
        (None, true) => Access::Read(ReadPoint::Newest {
            poll_interval: options.poll_interval,
        }),
        (None, false) => Access::Write,
    }
}

/// A server that only reads makes no lakes, so there must be one; and one that has the checkpoint.
async fn check_readable(root: &StoreUrl, access: &Access) -> anyhow::Result<()> {
    let Access::Read(point) = access else {
        return Ok(());
    };
    let lakes = lakes(root)
        .await
        .context("a server that only reads makes no lake")?;
    let ReadPoint::Checkpoint(checkpoint) = point else {
        return Ok(());
    };
    let is_meant = |kept: &Checkpoint| kept.id == *checkpoint || kept.name.as_ref() == Some(checkpoint);
    for lake in &lakes {
        let kept = checkpoints::list(lake, &OpenOptions::default()).await?;
        if kept.iter().any(is_meant) {
            return Ok(());
        }
    }
    anyhow::bail!(
        "no lake at or below {root} has a checkpoint {checkpoint:?}; `moraine checkpoint list {root}` shows which there are"
    )
}

/// A server opens a lake when somebody attaches it; what is wrong with all of them is better known before that.
async fn check_root(root: &StoreUrl) -> anyhow::Result<()> {
    match list_stores(root, 0, &OpenOptions::default()).await {
        // Lakes are made below it in time.
        Err(OpenError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(stores) => {
            anyhow::ensure!(
                stores.is_empty(),
                "{root} is the store of one lake; serve the place that it lies below, usually three folders up"
            );
            Ok(())
        }
    }
}

/// Prints a text at once; a closed standard output is no reason to stop serving.
fn print(text: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}

#[cfg(unix)]
async fn asked_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        },
        Err(error) => {
            tracing::warn!(%error, "SIGTERM cannot be waited for; Ctrl-C still ends the server");
            let _ = tokio::signal::ctrl_c().await;
        }
    }
}

#[cfg(not(unix))]
async fn asked_to_end() {
    let _ = tokio::signal::ctrl_c().await;
}
