//! What a flush has put at the data path, to be taken away again if it comes to nothing.

use moraine_store::{DataFiles, StoreUrl};

/// Files that no committed record names yet.
#[derive(Default)]
pub(super) struct Litter(Vec<(String, String)>);

impl Litter {
    /// Notes a file before it is written: one that is written in part has to go too.
    pub(super) fn note(&mut self, folder: &str, name: &str) {
        self.0.push((folder.to_owned(), name.to_owned()));
    }

    /// Takes the files away; one that stays is an orphan that DuckLake's own cleanup finds.
    pub(super) async fn remove(self) {
        for (folder, name) in self.0 {
            let files = folder.parse::<StoreUrl>().and_then(|url| DataFiles::open(&url));
            let removed = match files {
                Ok(files) => files.remove(&name).await.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(error) = removed {
                tracing::warn!(%error, file = name, "a file of a flush that did not commit is left");
            }
        }
    }
}
