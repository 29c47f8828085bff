//! A query of a lake through DataFusion, its catalog read from Postgres: a URL and a query in, one object of JSON for each
//! row out.

use std::sync::Arc;

use anyhow::{Context, Result};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::arrow::datatypes::DataType;
use datafusion::prelude::SessionContext;
use datafusion_ducklake::{DuckLakeCatalog, PostgresMetadataProvider};

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().context("a URL")?;
    let query = arguments.next().context("a query")?;
    let provider = Arc::new(PostgresMetadataProvider::new(&url).await?);
    let snapshot = datafusion_ducklake::MetadataProvider::get_current_snapshot(provider.as_ref())?;
    let catalog = DuckLakeCatalog::with_snapshot(provider, snapshot)?;
    let context = SessionContext::new();
    context.register_catalog("ducklake", Arc::new(catalog));
    for batch in context.sql(&query).await?.collect().await? {
        let options = FormatOptions::default();
        for index in 0..batch.num_rows() {
            let mut fields = Vec::new();
            for (position, column) in batch.columns().iter().enumerate() {
                let shown = ArrayFormatter::try_new(column, &options)?.value(index).to_string();
                let value = match column.data_type() {
                    _ if column.is_null(index) => "null".to_owned(),
                    DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => format!("{shown:?}"),
                    _ => shown,
                };
                fields.push(format!("\"{position}\":{value}"));
            }
            println!("{{{}}}", fields.join(","));
        }
    }
    Ok(())
}
