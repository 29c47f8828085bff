//! `moraine serve`: starts the server, prints what to paste into DuckDB, and drains on SIGINT or SIGTERM.

use std::io::Write;

use anyhow::Context;
use moraine_server::{Server, ServerOptions};

use moraine_store::{OpenError, OpenOptions, StoreUrl, list_stores};

use crate::arguments::ServeOptions;
use crate::attach::{Attach, chosen_data_path, default_data_path};

/// Serves until a signal asks for the end, and all connections are closed.
pub(crate) async fn run(options: ServeOptions) -> anyhow::Result<()> {
    let data_path = match &options.data_path {
        Some(path) => chosen_data_path(path)?,
        None => default_data_path(&options.url, &options.database)?,
    };
    check_root(&options.url).await?;
    let (server, address) = Server::bind(ServerOptions::new(options.listen, options.url.clone()))
        .await
        .with_context(|| format!("cannot serve {} on {}", options.url, options.listen))?;
    let attach = Attach {
        address,
        database: &options.database,
        data_path: &data_path,
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
