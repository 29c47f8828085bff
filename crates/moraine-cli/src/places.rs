//! Which lakes a URL on the command line means.

use moraine_store::{OpenOptions, StoreUrl, list_stores};

/// Folders between a root and its stores: `catalog`, the database, the schema.
const FOLDERS_TO_STORES: usize = 3;

/// The lakes at or below `url`, at least one.
pub(crate) async fn lakes(url: &StoreUrl) -> anyhow::Result<Vec<StoreUrl>> {
    let urls = list_stores(url, FOLDERS_TO_STORES, &OpenOptions::default()).await?;
    anyhow::ensure!(
        !urls.is_empty(),
        "there is no lake at or below {url}; `moraine serve` makes one when DuckDB first attaches"
    );
    Ok(urls)
}

/// The one lake at or below `url`.
pub(crate) async fn the_lake(url: &StoreUrl) -> anyhow::Result<StoreUrl> {
    let mut urls = lakes(url).await?;
    match (urls.pop(), urls.is_empty()) {
        (Some(lake), true) => Ok(lake),
        _ => anyhow::bail!(
            "there is more than one lake below {url}; name one by its own URL, as `moraine info {url}` shows it"
        ),
    }
}
