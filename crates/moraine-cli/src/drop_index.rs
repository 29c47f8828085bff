//! `moraine drop-index`: ends indexes that other software made, so that the rows of their tables may change again.

use anyhow::Context;
use moraine_commit::{Catalog, CatalogOptions};
use moraine_store::OpenOptions;
use moraine_store::checkpoints::is_served;

use crate::arguments::DropIndexArguments;
use crate::places::the_lake;

/// Drops, and prints what went.
pub(crate) async fn run(arguments: DropIndexArguments) -> anyhow::Result<()> {
    let url = the_lake(&arguments.url).await?;
    if !arguments.take_over {
        let is_served = is_served(&url, &OpenOptions::default()).await?;
        anyhow::ensure!(
            !is_served,
            "a server has {url} open, and this command would shut it out: end it first; --take-over drops all the same"
        );
    }
    let catalog = Catalog::open(&url, &CatalogOptions::default()).await?;
    let names = arguments.names.into_iter().collect();
    let dropped = catalog.drop_indexes(&names).await;
    let closed = catalog.close().await;
    let dropped = dropped.with_context(|| format!("cannot drop indexes of {url}"))?;
    closed.with_context(|| format!("cannot close {url}"))?;
    println!(
        "dropped {} with {} entries",
        dropped.names.join(", "),
        dropped.entries
    );
    if let Some(snapshot_id) = dropped.snapshot_id {
        println!("committed as snapshot {snapshot_id}");
    }
    Ok(())
}
