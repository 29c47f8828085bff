//! What `moraine info` prints: tables for people, JSON for programs. What is counted, and how, is the store's business.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table, presets};
use moraine_store::census::{Census, Tally};
use serde_json::{Value, json};

use crate::checkpoint::{expiry, json_of};
use crate::info::Store;

/// The kinds of records that stand for a table of DuckLake: the kind without `current/` or `history/`, and the table.
const DUCKLAKE_TABLES: [(&str, &str); 21] = [
    ("snapshot", "ducklake_snapshot, ducklake_snapshot_changes"),
    ("schema_version", "ducklake_schema_versions"),
    ("schema", "ducklake_schema"),
    ("table", "ducklake_table"),
    ("column", "ducklake_column"),
    ("view", "ducklake_view"),
    (
        "macro",
        "ducklake_macro, ducklake_macro_impl, ducklake_macro_parameters",
    ),
    ("tag", "ducklake_tag"),
    ("option", "ducklake_metadata"),
    ("data_file", "ducklake_data_file, ducklake_file_partition_value"),
    ("delete_file", "ducklake_delete_file"),
    ("file_column_stats", "ducklake_file_column_stats"),
    ("table_stats", "ducklake_table_stats"),
    ("table_column_stats", "ducklake_table_column_stats"),
    ("partition", "ducklake_partition_info, ducklake_partition_column"),
    ("sort", "ducklake_sort_info, ducklake_sort_expression"),
    ("mapping", "ducklake_column_mapping, ducklake_name_mapping"),
    ("gcfile", "ducklake_files_scheduled_for_deletion"),
    ("inline/schema", "ducklake_inlined_data_tables"),
    ("inline/live/insert", "ducklake_inlined_data_* (chunks of rows)"),
    ("inline/live/file_delete", "ducklake_inlined_delete_*"),
];

/// Live and ended records of one kind.
#[derive(Debug, Clone, Copy, Default)]
struct Records {
    live: Tally,
    ended: Tally,
}

/// Records by kind, the live and the ended ones of a kind together.
fn by_kind(census: &Census) -> BTreeMap<&str, Records> {
    let mut kinds: BTreeMap<&str, Records> = BTreeMap::new();
    for (name, tally) in &census.kinds {
        if let Some(kind) = name.strip_prefix("history/") {
            kinds.entry(kind).or_default().ended = *tally;
        } else {
            let kind = name.strip_prefix("current/").unwrap_or(name);
            kinds.entry(kind).or_default().live = *tally;
        }
    }
    kinds
}

/// What a kind is called by DuckLake; nothing for what is moraine's own.
fn ducklake_table(kind: &str) -> &'static str {
    let found = DUCKLAKE_TABLES.iter().find(|(known, _)| *known == kind);
    found.map_or("", |(_, table)| table)
}

/// Everything about one store.
pub(crate) fn one(store: &Store) -> String {
    let census = &store.census;
    let mut text = format!("store     {}\n", store.url);
    text += &format!("format    {}\n", format_line(census));
    text += &format!("head      {}\n", head_line(census));
    if let Some(migration) = &census.migration {
        text += &format!(
            "migration from format {} to {}, not finished\n",
            migration.from_format, migration.to_format
        );
    }
    text += &format!(
        "log       at most {} write-ahead objects to replay (manifest {}, writer epoch {})\n",
        store.storage.wal_objects, store.storage.manifest, store.storage.writer_epoch
    );
    for checkpoint in &store.checkpoints {
        let name = checkpoint.name.as_deref().unwrap_or(&checkpoint.id);
        text += &format!("kept      checkpoint {name}, expires: {}\n", expiry(checkpoint));
    }
    text += &format!("\n{}\n\n{}", kinds_table(census), subspaces_table(store));
    if census.unknown.records > 0 {
        text += &format!(
            "\n{} records have keys that this version does not know; a newer moraine may have written them",
            census.unknown.records
        );
    }
    text
}

fn format_line(census: &Census) -> String {
    match &census.format {
        Some(format) => format!("{}, written by {}", format.format_version, format.writer_version),
        None => "none: no lake has been made in this store yet".to_owned(),
    }
}

fn head_line(census: &Census) -> String {
    match &census.head {
        Some(head) => format!("snapshot {} after {} batches", head.snapshot_id, head.batch_seq),
        None => "none".to_owned(),
    }
}

fn kinds_table(census: &Census) -> Table {
    let mut table = plain_table(&["kind", "live", "ended", "bytes", "table of DuckLake"]);
    for (kind, records) in by_kind(census) {
        table.add_row([
            kind.to_owned(),
            records.live.records.to_string(),
            records.ended.records.to_string(),
            bytes(size(records.live) + size(records.ended)),
            ducklake_table(kind).to_owned(),
        ]);
    }
    align_right(&mut table, 1..4);
    table
}

fn subspaces_table(store: &Store) -> Table {
    let mut table = plain_table(&["subspace", "records", "bytes", "SSTs", "bytes in SSTs"]);
    for (subspace, tally) in &store.census.subspaces {
        let stored = store
            .storage
            .subspaces
            .iter()
            .find(|size| size.subspace == Some(*subspace));
        table.add_row([
            subspace.name().to_owned(),
            tally.records.to_string(),
            bytes(size(*tally)),
            stored.map_or(0, |stored| stored.ssts).to_string(),
            bytes(stored.map_or(0, |stored| stored.bytes)),
        ]);
    }
    align_right(&mut table, 1..5);
    table
}

/// One line for each of several stores.
pub(crate) fn several(stores: &[Store]) -> String {
    let mut table = plain_table(&[
        "store",
        "format",
        "snapshot",
        "tables",
        "data files",
        "records",
        "bytes",
    ]);
    for store in stores {
        let kinds = by_kind(&store.census);
        let live = |kind| {
            kinds
                .get(kind)
                .map_or(0, |records| records.live.records)
                .to_string()
        };
        let (format, head) = (&store.census.format, &store.census.head);
        let all = total(&store.census);
        table.add_row([
            store.url.to_string(),
            format
                .as_ref()
                .map_or("none".to_owned(), |format| format.format_version.to_string()),
            head.as_ref()
                .map_or("none".to_owned(), |head| head.snapshot_id.to_string()),
            live("table"),
            live("data_file"),
            all.records.to_string(),
            bytes(size(all)),
        ]);
    }
    align_right(&mut table, 1..7);
    format!("{table}\n`moraine info` with one of these URLs shows all about it")
}

fn total(census: &Census) -> Tally {
    census
        .subspaces
        .values()
        .fold(Tally::default(), |sum, tally| Tally {
            records: sum.records + tally.records,
            key_bytes: sum.key_bytes + tally.key_bytes,
            value_bytes: sum.value_bytes + tally.value_bytes,
        })
}

/// All stores as an array of objects.
pub(crate) fn json(stores: &[Store]) -> anyhow::Result<String> {
    let stores: Vec<Value> = stores.iter().map(json_store).collect();
    Ok(serde_json::to_string_pretty(&stores)?)
}

fn json_store(store: &Store) -> Value {
    let census = &store.census;
    let kinds: BTreeMap<&str, Value> = by_kind(census)
        .into_iter()
        .map(|(kind, records)| {
            let value = json!({
                "live": records.live.records,
                "ended": records.ended.records,
                "bytes": size(records.live) + size(records.ended),
                "ducklake_tables": ducklake_table(kind),
            });
            (kind, value)
        })
        .collect();
    let subspaces: BTreeMap<&str, Value> = census
        .subspaces
        .iter()
        .map(|(subspace, tally)| {
            (
                subspace.name(),
                json!({ "records": tally.records, "bytes": size(*tally) }),
            )
        })
        .collect();
    let ssts: BTreeMap<String, Value> = store
        .storage
        .subspaces
        .iter()
        .map(|stored| {
            let name = stored
                .subspace
                .map_or("unknown".to_owned(), |subspace| subspace.name().to_owned());
            (name, json!({ "ssts": stored.ssts, "bytes": stored.bytes }))
        })
        .collect();
    json!({
        "store": store.url.to_string(),
        "format": census.format.as_ref().map(|format| format.format_version),
        "writer": census.format.as_ref().map(|format| format.writer_version.clone()),
        "snapshot": census.head.as_ref().map(|head| head.snapshot_id),
        "batches": census.head.as_ref().map(|head| head.batch_seq),
        "migrating_to": census.migration.as_ref().map(|migration| migration.to_format),
        "kinds": kinds,
        "subspaces": subspaces,
        "ssts": ssts,
        "checkpoints": store.checkpoints.iter().map(|kept| json_of(&store.url, kept)).collect::<Vec<_>>(),
        "wal_objects": store.storage.wal_objects,
        "writer_epoch": store.storage.writer_epoch,
        "unknown_records": census.unknown.records,
    })
}

pub(crate) fn plain_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(header.to_vec());
    table
}

/// Sets the columns in `columns` flush right.
pub(crate) fn align_right(table: &mut Table, columns: std::ops::Range<usize>) {
    for index in columns {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn size(tally: Tally) -> u64 {
    tally.key_bytes + tally.value_bytes
}

/// A number of bytes in the unit that makes it readable.
fn bytes(count: u64) -> String {
    let mut rest = count;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if rest < 10 * 1024 {
            break;
        }
        rest /= 1024;
        unit = larger;
    }
    format!("{rest} {unit}")
}
