//! The one lake that a command is about, named by its own URL or by a place with one lake below it.

use moraine_store::{OpenOptions, StoreUrl, list_stores};

/// Folders between a root and its stores: `catalog`, the database, the schema.
const FOLDERS_TO_STORES: usize = 3;

/// The one lake at or below `url`.
pub(crate) async fn find(url: &StoreUrl) -> anyhow::Result<StoreUrl> {
    let mut urls = list_stores(url, FOLDERS_TO_STORES, &OpenOptions::default()).await?;
    match (urls.pop(), urls.is_empty()) {
        (Some(lake), true) => Ok(lake),
        (None, _) => anyhow::bail!(
            "there is no lake at or below {url}; `moraine serve` makes one when DuckDB first attaches"
        ),
        (Some(_), false) => anyhow::bail!(
            "there is more than one lake below {url}; name one by its own URL, as `moraine info {url}` shows it"
        ),
    }
}
