//! `moraine info`: takes the census of one store, or of each store below a root, without disturbing its server.

use moraine_store::census::{Census, StorageSize, take};
use moraine_store::{OpenOptions, StoreUrl, list_stores, open_reader};

use crate::arguments::InfoOptions;
use crate::report;

/// Folders between a root and its stores: `catalog`, the database, the schema.
const FOLDERS_TO_STORES: usize = 3;

/// One store, looked at.
pub(crate) struct Store {
    pub(crate) url: StoreUrl,
    pub(crate) census: Census,
    pub(crate) storage: StorageSize,
}

/// Looks, and prints what is there.
pub(crate) async fn run(options: InfoOptions) -> anyhow::Result<()> {
    let urls = list_stores(&options.url, FOLDERS_TO_STORES, &OpenOptions::default()).await?;
    if urls.is_empty() {
        anyhow::bail!(
            "there is no lake at or below {}; `moraine serve` makes one when DuckDB first attaches",
            options.url
        );
    }
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
    Ok(Store {
        url: url.clone(),
        census: census?,
        storage,
    })
}
