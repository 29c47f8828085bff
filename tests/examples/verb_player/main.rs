//! Plays verbs on a lake as a script says, for the scenarios that compare what they leave with what DuckDB leaves. Takes the
//! folder of a store; reads one transaction a line from its input, a JSON list of verbs, and answers each with a line:
//! `{"snapshot": N}` or `{"error": "…"}`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod play;
mod values;

use std::io::{BufRead, Write};
use std::sync::Arc;

use moraine_commit::{Catalog, CatalogOptions, OpenOptions};
use serde_json::{Value, json};

#[tokio::main]
async fn main() {
    let folder = std::env::args().nth(1).expect("the folder of a store");
    let url = folder.parse().expect("the folder is a URL of a store");
    let options = CatalogOptions {
        store: OpenOptions::create(),
        ..CatalogOptions::default()
    };
    let catalog = Catalog::open(&url, &options).await.expect("the store opens");
    for line in std::io::stdin().lock().lines() {
        let verbs: Vec<Value> = serde_json::from_str(&line.expect("a line")).expect("a JSON list");
        let answer = match transaction(&catalog, &verbs).await {
            Ok(snapshot) => json!({ "snapshot": snapshot }),
            Err(error) => json!({ "error": error }),
        };
        println!("{answer}");
        std::io::stdout().flush().expect("somebody reads");
    }
    catalog.close().await.expect("the store closes");
}

async fn transaction(catalog: &Arc<Catalog>, verbs: &[Value]) -> Result<Option<u64>, String> {
    if let [only] = verbs
        && only["verb"] == "create_lake"
    {
        let created = catalog.create(only["data_path"].as_str(), false).await;
        return created
            .map(|created| created.snapshot_id)
            .map_err(|error| error.to_string());
    }
    let committed = catalog
        .commit(|tx| async move {
            for verb in verbs {
                play::verb(&tx, verb).await?;
            }
            Ok(())
        })
        .await;
    committed
        .map(|commit| commit.snapshot_id)
        .map_err(|error| error.to_string())
}
