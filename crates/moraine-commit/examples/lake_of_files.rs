//! Makes a lake in a folder without DuckDB, changes it, and looks at it at two snapshots:
//!
//! ```sh
//! cargo run -p moraine-commit --example lake_of_files -- ./example-lake
//! ```
//!
//! `moraine serve ./example-lake` then prints how DuckDB attaches it.

use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch, StringArray};
use moraine_commit::lake::{ColumnDefault, ColumnType, Snapshot, SortExpression};
use moraine_commit::verbs::{ColumnDefinition, GroupMember, TableDefinition, TagTarget, VerbError};
use moraine_commit::{Catalog, CatalogOptions, OpenOptions};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "./example-lake".to_owned());
    std::fs::create_dir_all(&folder)?;
    let folder = std::fs::canonicalize(&folder)?;
    // Where `moraine serve` looks for the lake of database `lake`, and puts its files.
    let url = format!("{}/catalog/lake/public", folder.display()).parse()?;
    let data_path = format!("{}/data/lake/public/", folder.display());
    let options = CatalogOptions {
        store: OpenOptions::create(),
        ..CatalogOptions::default()
    };
    let catalog = Catalog::open(&url, &options).await?;
    catalog.create(Some(&data_path), false).await?;

    // One commit: a table, how it is laid out, and three rows, which are kept in the catalog because they are few.
    let table = format!("people_{}", catalog.snapshot().await?.id());
    let name = table.as_str();
    let created = catalog
        .commit(|tx| async move {
            tx.set_author("lake_of_files").await?;
            let columns = vec![
                ColumnDefinition::new("id", ColumnType::Int64).not_null(),
                ColumnDefinition::new("name", ColumnType::Varchar),
            ];
            let table_id = tx
                .create_table("main", TableDefinition::new(name, columns))
                .await?;
            tx.set_sort(table_id, vec![SortExpression::ascending("name")])
                .await?;
            tx.set_comment(TagTarget::Table(table_id.into()), Some("made without DuckDB"))
                .await?;
            let ids = Int64Array::from(vec![1, 2, 3]);
            let names = StringArray::from(vec![Some("Ada"), None, Some("Grace")]);
            let schema = tx.inlined_schema(table_id).await?;
            let rows = RecordBatch::try_new(schema, vec![Arc::new(ids), Arc::new(names)]);
            tx.insert_inlined(table_id, rows.map_err(VerbError::other)?)
                .await?;
            Ok(table_id)
        })
        .await?;
    println!("snapshot {:?} made table {}", created.snapshot_id, created.value);

    // Two commits that share a flush; the second is refused, which the first does not notice.
    let table_id = created.value;
    let add = |column: &'static str| {
        GroupMember::new(move |tx| async move {
            let default = ColumnDefault::Literal("?".to_owned());
            let column = ColumnDefinition::new(column, ColumnType::Varchar).with_default(default);
            tx.add_column(table_id, column).await
        })
    };
    for outcome in catalog.commit_group(vec![add("city"), add("CITY")]).await {
        match outcome {
            Ok(commit) => println!("snapshot {:?} added column {}", commit.snapshot_id, commit.value),
            Err(error) => println!("refused: {error}"),
        }
    }

    show(&catalog.snapshot().await?, table_id).await?;
    if let Some(before) = created.snapshot_id {
        show(&catalog.snapshot_at(before).await?, table_id).await?;
    }
    catalog.close().await?;
    println!("to go on with DuckDB: moraine serve {}", folder.display());
    Ok(())
}

/// Prints what a snapshot shows of a table.
async fn show(snapshot: &Snapshot, table_id: u64) -> Result<(), Box<dyn std::error::Error>> {
    println!("\nsnapshot {}: {}", snapshot.id(), snapshot.info().changes);
    for column in snapshot.columns(table_id).await? {
        println!("  {} {}", column.name, column.column_type);
    }
    for inlined in snapshot.inlined_tables(table_id).await? {
        let rows = snapshot.inlined_rows(inlined).await?;
        println!(
            "  {} rows kept under schema version {}",
            rows.row_count(),
            inlined.schema_version
        );
    }
    Ok(())
}
