//! `moraine info`: takes the census of one store, or of each store below a root, without disturbing its server.

use moraine_store::census::{Census, StorageSize, take};
use moraine_store::checkpoints::{self, Checkpoint};
use moraine_store::{OpenOptions, StoreUrl, open_reader};

use crate::arguments::InfoOptions;
use crate::places::lakes;
use crate::report;

/// One store, looked at.
pub(crate) struct Store {
    pub(crate) url: StoreUrl,
    pub(crate) census: Census,
    pub(crate) storage: StorageSize,
    pub(crate) checkpoints: Vec<Checkpoint>,
}

/// Looks, and prints what is there.
pub(crate) async fn run(options: InfoOptions) -> anyhow::Result<()> {
    let urls = lakes(&options.url).await?;
    let mut stores = Vec::with_capacity(urls.len());
    let mut failures = Vec::new();
    for url in urls {
        match look(&url).await {
            Ok(store) => stores.push(store),
            Err(error) => failures.push(format!("cannot look into {url}: {error:#}")),
        }
    }
    let text = match stores.as_slice() {
        _ if options.json => report::json(&stores)?,
        [] => String::new(),
        [store] => report::one(store),
        several => report::several(several),
    };
    // One store that cannot be read does not hide the others.
    println!("{text}");
    anyhow::ensure!(failures.is_empty(), failures.join("\n"));
    Ok(())
}

async fn look(url: &StoreUrl) -> anyhow::Result<Store> {
    let reader = open_reader(url, &OpenOptions::default()).await?;
    let census = take(reader.as_ref()).await;
    let storage = reader.storage_size();
    reader.close().await?;
    let checkpoints = checkpoints::list(url, &OpenOptions::default()).await?;
    Ok(Store {
        checkpoints,
        url: url.clone(),
        census: census?,
        storage,
    })
}
