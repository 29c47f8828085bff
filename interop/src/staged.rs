//! Rows as DuckLake sends them through the crate's DuckDB extension: column mappings, column tags, files to be deleted,
//! inlined rows that end twice, inlined deletions, and the expiry of snapshots.

use moraine::Catalog;
use moraine::ffi_support::dump_snapshots;
use moraine::ffi_support::staged::{Cell, RowOperation, StagedTransaction, TableKind, staged_begin};

use crate::{chunks, verbs};

fn text(value: &str) -> Cell {
    Cell::Str(value.to_owned())
}

fn insert(table: TableKind, cells: Vec<Cell>) -> RowOperation {
    RowOperation::Insert { table, cells }
}

/// The rows of a new snapshot, and its id.
async fn begin(catalog: &Catalog, changes: &str) -> anyhow::Result<(StagedTransaction, u64)> {
    let newest = dump_snapshots(catalog).await?.pop().ok_or_else(|| anyhow::anyhow!("no snapshot"))?;
    let id = newest.snapshot_id + 1;
    let mut tx = staged_begin(catalog, None, String::new()).await?;
    let snapshot = vec![
        Cell::U64(id),
        Cell::I64(newest.snapshot_time_micros + 1),
        Cell::U64(newest.schema_version),
        Cell::U64(newest.next_catalog_id),
        Cell::U64(newest.next_file_id + 2),
    ];
    tx.stage(insert(TableKind::Snapshot, snapshot));
    let row = vec![Cell::U64(id), text(changes), text("Ada"), text("a message"), Cell::Null];
    tx.stage(insert(TableKind::SnapshotChanges, row));
    Ok((tx, id))
}

pub(crate) async fn write(catalog: &Catalog) -> anyhow::Result<()> {
    let tables = verbs::tables(catalog).await?;
    let (people, events) = (tables.people.get(), tables.events.get());
    mapping_and_tags(catalog, people).await?;
    inlined(catalog, events, people).await?;
    maintenance(catalog).await
}

async fn mapping_and_tags(catalog: &Catalog, table: u64) -> anyhow::Result<()> {
    let (mut tx, id) = begin(catalog, &format!("altered_table:{table}")).await?;
    let mapping = dump_snapshots(catalog).await?.pop().map_or(0, |newest| newest.next_file_id);
    tx.stage(insert(TableKind::ColumnMapping, vec![Cell::U64(mapping), Cell::U64(table), text("map_by_name")]));
    let row = |column: u64, source: &str, target: u64, parent: Cell| {
        vec![Cell::U64(mapping), Cell::U64(column), text(source), Cell::U64(target), parent, Cell::Bool(false)]
    };
    tx.stage(insert(TableKind::NameMapping, row(0, "ident", 1, Cell::Null)));
    tx.stage(insert(TableKind::NameMapping, row(1, "addr", 3, Cell::Null)));
    tx.stage(insert(TableKind::NameMapping, row(2, "str", 4, Cell::U64(1))));
    let tag = vec![Cell::U64(table), Cell::U64(1), Cell::U64(id), Cell::Null, text("comment"), text("the id")];
    tx.stage(insert(TableKind::ColumnTag, tag));
    tx.commit().await?;
    Ok(())
}

/// A row that ends, comes again with the same id and ends again; and deletions from a file.
async fn inlined(catalog: &Catalog, events: u64, people: u64) -> anyhow::Result<()> {
    let version = 900;
    let chunk = chunks::chunk(&[(10, Some("x")), (11, Some("y"))])?;
    for round in 0..3 {
        let (mut tx, id) = begin(catalog, &format!("inlined_insert:{events}")).await?;
        if round == 0 {
            tx.stage(RowOperation::InlineSchema {
                table_id: events,
                schema_version: version,
                arrow_schema: chunk.schema.clone(),
            });
        } else {
            tx.stage(RowOperation::InlineInlineDelete { table_id: events, row_id: 500, end_snapshot: id });
            tx.stage(RowOperation::InlineInlineDelete { table_id: events, row_id: 501, end_snapshot: id });
        }
        tx.stage(RowOperation::InlineInsert {
            table_id: events,
            schema_version: version,
            begin_snapshot: id,
            row_id_start: 500,
            row_count: chunk.rows,
            arrow_body: chunk.body.clone().into(),
        });
        tx.commit().await?;
    }
    let file = catalog.snapshot().await?.data_files_of(moraine::TableId::new(people)).first().map(|file| file.id.get());
    let (mut tx, id) = begin(catalog, &format!("inlined_delete:{people}")).await?;
    for row_id in [3, 5] {
        tx.stage(RowOperation::InlineFileDelete {
            table_id: people,
            data_file_id: file.unwrap_or_default(),
            row_id,
            begin_snapshot: id,
        });
    }
    tx.commit().await?;
    Ok(())
}

/// Expires snapshots and schedules a file for deletion, without a snapshot of its own.
async fn maintenance(catalog: &Catalog) -> anyhow::Result<()> {
    let mut tx = staged_begin(catalog, None, String::new()).await?;
    for snapshot in dump_snapshots(catalog).await?.iter().filter(|s| s.snapshot_id % 3 == 1).take(4) {
        tx.stage(RowOperation::Delete { table: TableKind::Snapshot, cells: vec![Cell::U64(snapshot.snapshot_id)] });
        tx.stage(RowOperation::Delete {
            table: TableKind::SnapshotChanges,
            cells: vec![Cell::U64(snapshot.snapshot_id)],
        });
    }
    let scheduled = vec![Cell::U64(77), text("old.parquet"), Cell::Bool(true), Cell::I64(1_700_000_000_000_000)];
    tx.stage(insert(TableKind::FilesScheduledForDeletion, scheduled));
    tx.stage(insert(TableKind::Metadata, vec![text("some_option"), text("on"), Cell::Null, Cell::Null]));
    tx.commit().await?;
    Ok(())
}
