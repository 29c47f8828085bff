//! The one lake that a command is about, named by its own URL or by a place with one lake below it.

use moraine_store::StoreUrl;

use crate::places::lakes;

/// The one lake at or below `url`.
pub(crate) async fn find(url: &StoreUrl) -> anyhow::Result<StoreUrl> {
    let mut urls = lakes(url).await?;
    match (urls.pop(), urls.is_empty()) {
        (Some(lake), true) => Ok(lake),
        _ => anyhow::bail!(
            "there is more than one lake below {url}; name one by its own URL, as `moraine info {url}` shows it"
        ),
    }
}
