//! Crate `moraine` 0.7.0 at work: `write FOLDER` makes a lake through its interfaces, `dump FOLDER` opens one. Both print, as
//! JSON, every row of every table as that crate reports it. What is made of it is `cargo xtask interop`'s.

mod chunks;
mod dump;
mod staged;
mod verbs;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use moraine::{Catalog, CatalogOptions};
use object_store::local::LocalFileSystem;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [what, folder] = arguments.as_slice() else {
        bail!("write FOLDER, or dump FOLDER");
    };
    let catalog = open(Path::new(folder)).await.with_context(|| format!("opening {folder}"))?;
    let mut report = serde_json::Map::new();
    match what.as_str() {
        "write" => {
            verbs::write(&catalog).await.context("writing through the verbs")?;
            staged::write(&catalog).await.context("writing staged rows")?;
            report.insert("indexes".to_owned(), verbs::look_up(&catalog).await?);
        }
        "dump" => {}
        other => bail!("{other} is neither write nor dump"),
    }
    report.insert("relations".to_owned(), dump::relations(&catalog).await?);
    catalog.close().await?;
    println!("{}", serde_json::Value::Object(report));
    Ok(())
}

async fn open(folder: &Path) -> anyhow::Result<Catalog> {
    std::fs::create_dir_all(folder)?;
    let object_store = Arc::new(LocalFileSystem::new_with_prefix(folder)?);
    let mut options = CatalogOptions::default();
    options.data_path = Some("data/".to_owned());
    Ok(Catalog::open(object_store, options).await?)
}
