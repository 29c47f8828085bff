//! `moraine flush`: opens one lake as its writer and moves its inlined rows to Parquet files.

use anyhow::Context;
use moraine_commit::flush::{FlushOptions, FlushReport};
use moraine_commit::{Catalog, CatalogOptions};
use moraine_store::OpenOptions;
use moraine_store::checkpoints::is_served;

use crate::arguments::FlushArguments;
use crate::places::the_lake;

/// Flushes, and prints what was moved.
pub(crate) async fn run(arguments: FlushArguments) -> anyhow::Result<()> {
    let url = the_lake(&arguments.url).await?;
    if !arguments.take_over {
        let is_served = is_served(&url, &OpenOptions::default()).await?;
        anyhow::ensure!(
            !is_served,
            "a server has {url} open, and this command would shut it out: end it first, or flush from DuckDB with CALL \
             ducklake_flush_inlined_data(...); --take-over flushes all the same"
        );
    }
    let catalog = Catalog::open(&url, &CatalogOptions::default()).await?;
    let options = FlushOptions {
        tables: arguments.tables,
        data_path: arguments.data_path,
    };
    let flushed = catalog.flush(&options).await;
    let closed = catalog.close().await;
    let report = flushed.with_context(|| format!("cannot flush {url}"))?;
    closed.with_context(|| format!("cannot close {url}"))?;
    print!("{}", text(&report));
    Ok(())
}

fn text(report: &FlushReport) -> String {
    let Some(snapshot_id) = report.snapshot_id else {
        return "nothing to flush: no table has inlined rows or deletions\n".to_owned();
    };
    let mut text = String::new();
    for table in &report.tables {
        let mut moved = Vec::new();
        if table.files > 0 {
            let files = if table.files == 1 { "file" } else { "files" };
            moved.push(format!("{} row versions in {} {files}", table.rows, table.files));
        }
        if table.deletions > 0 {
            let deletions = if table.deletions == 1 {
                "deletion"
            } else {
                "deletions"
            };
            moved.push(format!("{} {deletions} from older files", table.deletions));
        }
        if let Some(expression) = &table.unsorted_by {
            moved.push(format!("not sorted by {expression}, which only DuckDB evaluates"));
        }
        text.push_str(&format!(
            "{}.{}: {}\n",
            table.schema_name,
            table.table_name,
            moved.join(", ")
        ));
    }
    text.push_str(&format!("committed as snapshot {snapshot_id}\n"));
    text
}
