//! A lake made through the crate's verbs: schemas, tables with nested columns, files, deletes, inlined rows and their ends,
//! indexes, tags, macros, options, maintenance.

use moraine::{
    Catalog, ColumnAlteration, ColumnDef, ColumnId, ColumnStats, DataFile, DeleteFile, FileColumnStats,
    FileIndexEntry, FlushedDataFile, IndexDef, IndexEntry, IndexKeyValue, InlineChunk, IntWidth,
    MacroImplementationDef, MacroParameterDef, MaintenanceStatusPass, MaintenanceStatusStep, OptionScope,
    PartitionColumnDef, SchemaId, SnapshotId, SortKeyDef, TableId, TagTarget, Timestamp,
};
use serde_json::{Value, json};

use crate::chunks;

fn column(name: &str, column_type: &str, children: Vec<ColumnDef>) -> ColumnDef {
    ColumnDef {
        name: name.to_owned(),
        column_type: column_type.to_owned(),
        nulls_allowed: true,
        default_value: None,
        children,
    }
}

fn people() -> Vec<ColumnDef> {
    let street = column("street", "VARCHAR", Vec::new());
    let tags = column("tags", "list", vec![column("element", "VARCHAR", Vec::new())]);
    let born = ColumnDef {
        default_value: Some("'1970-01-01'".to_owned()),
        nulls_allowed: false,
        ..column("born", "DATE", Vec::new())
    };
    vec![
        column("id", "BIGINT", Vec::new()),
        column("name", "VARCHAR", Vec::new()),
        column("address", "struct", vec![street, tags]),
        born,
    ]
}

fn two_columns() -> Vec<ColumnDef> {
    vec![column("id", "BIGINT", Vec::new()), column("name", "VARCHAR", Vec::new())]
}

fn data_file(path: &str, rows: u64, partition: Option<&str>) -> DataFile {
    DataFile {
        path: path.to_owned(),
        path_is_relative: true,
        file_format: "parquet".to_owned(),
        record_count: rows,
        file_size_bytes: 4096,
        footer_size: 200,
        encryption_key: None,
        partition_values: partition.map(str::to_owned).into_iter().collect(),
        column_stats: vec![FileColumnStats {
            column_id: ColumnId::new(1),
            column_size_bytes: 300,
            value_count: rows,
            null_count: 0,
            min_value: Some("1".to_owned()),
            max_value: Some("99".to_owned()),
            contains_nan: None,
            extra_stats: None,
        }],
    }
}

fn bigint(value: i128) -> IndexKeyValue {
    IndexKeyValue::Int { value, width: IntWidth::I64 }
}

fn inline_chunk(version: u64, rows: &[(i64, Option<&str>)]) -> anyhow::Result<InlineChunk> {
    let chunk = chunks::chunk(rows)?;
    Ok(InlineChunk {
        schema_version: version,
        arrow_schema: chunk.schema,
        arrow_body: chunk.body,
        row_count: chunk.rows,
    })
}

/// The tables that the rest is about.
pub(crate) struct Tables {
    pub(crate) people: TableId,
    pub(crate) events: TableId,
    pub(crate) indexed: TableId,
}

/// Finds the tables by their names.
pub(crate) async fn tables(catalog: &Catalog) -> anyhow::Result<Tables> {
    let head = catalog.snapshot().await?;
    let find = |name: &str| {
        let found = head.schemas().iter().flat_map(|schema| head.tables_in(schema.id)).find(|table| table.name == name);
        found.map(|table| table.id).ok_or_else(|| anyhow::anyhow!("no table {name}"))
    };
    Ok(Tables { people: find("people é")?, events: find("events")?, indexed: find("indexed")? })
}

pub(crate) async fn write(catalog: &Catalog) -> anyhow::Result<()> {
    let main = SchemaId::new(0);
    catalog
        .commit(|tx| {
            let sales = tx.create_schema("sales \u{1}")?;
            tx.create_schema("gone")?;
            tx.create_table(sales, "people", &people())?;
            tx.create_table(main, "events", &two_columns())?;
            tx.create_table(main, "indexed", &two_columns())?;
            tx.create_table(main, "dropped", &two_columns())?;
            Ok(())
        })
        .await?;
    catalog
        .commit(|tx| {
            let sales = tx.schema_by_name("sales \u{1}").map(|schema| schema.id).unwrap_or(main);
            if let Some(people) = tx.table_by_name(sales, "people").map(|table| table.id) {
                tx.rename_table(people, "people é")?;
            }
            if let Some(gone) = tx.schema_by_name("gone").map(|schema| schema.id) {
                tx.drop_schema(gone)?;
            }
            Ok(())
        })
        .await?;
    let tables = tables(catalog).await?;
    columns_and_layouts(catalog, &tables).await?;
    files(catalog, &tables).await?;
    inlined(catalog, tables.events).await?;
    definitions(catalog, &tables).await?;
    indexes(catalog, tables.indexed).await?;
    let step = MaintenanceStatusStep::new("sweep", "ran", "nothing to do");
    let pass = MaintenanceStatusPass::new(Timestamp::from_micros(1_700_000_000_000_000), "manual", vec![step]);
    catalog.record_maintenance_pass(pass).await?;
    Ok(())
}

async fn columns_and_layouts(catalog: &Catalog, tables: &Tables) -> anyhow::Result<()> {
    let people = tables.people;
    catalog
        .commit(|tx| {
            let added = tx.add_column(people, &column("score", "INTEGER", Vec::new()))?;
            tx.rename_column(people, ColumnId::new(2), "full name")?;
            let wider = ColumnAlteration { column_type: Some("BIGINT".to_owned()), ..ColumnAlteration::default() };
            tx.alter_column(people, added, wider)?;
            Ok(())
        })
        .await?;
    catalog
        .commit(|tx| {
            // The list within the struct, with its element.
            tx.drop_column(people, ColumnId::new(5))?;
            let by_name = PartitionColumnDef { column: ColumnId::new(2), transform: "identity".to_owned() };
            tx.set_partitioning(people, &[by_name])?;
            let by_id = SortKeyDef {
                expression: "id".to_owned(),
                dialect: "duckdb".to_owned(),
                sort_direction: "ASC".to_owned(),
                null_order: "NULLS_LAST".to_owned(),
            };
            tx.set_sorting(people, std::slice::from_ref(&by_id))?;
            tx.set_sorting(tables.events, &[by_id])?;
            Ok(())
        })
        .await?;
    catalog.commit(|tx| tx.clear_sorting(tables.events)).await?;
    Ok(())
}

async fn files(catalog: &Catalog, tables: &Tables) -> anyhow::Result<()> {
    let people = tables.people;
    for (path, partition) in [("a.parquet", "eu"), ("b.parquet", "us"), ("c.parquet", "")] {
        catalog
            .commit(|tx| tx.register_data_file(people, data_file(path, 100, Some(partition)), &[]).map(|_| ()))
            .await?;
    }
    let files = catalog.snapshot().await?.data_files_of(people);
    catalog
        .commit(|tx| {
            for file in files.iter().take(2) {
                let delete = DeleteFile {
                    data_file_id: file.id,
                    path: format!("{}-delete.parquet", file.id),
                    path_is_relative: true,
                    format: "parquet".to_owned(),
                    delete_count: 3,
                    file_size_bytes: 512,
                    footer_size: 100,
                    encryption_key: None,
                };
                tx.register_delete_file(people, delete, &[])?;
            }
            let stats = ColumnStats { contains_null: Some(false), min_value: Some("1".to_owned()), ..ColumnStats::default() };
            tx.update_column_stats(people, ColumnId::new(1), stats)?;
            tx.update_table_stats(people, 294, 12_288)?;
            Ok(())
        })
        .await?;
    if let Some(last) = files.last() {
        catalog.commit(|tx| tx.expire_data_file(people, last.id)).await?;
    }
    Ok(())
}

async fn inlined(catalog: &Catalog, events: TableId) -> anyhow::Result<()> {
    let version = catalog.snapshot().await?.current_snapshot().schema_version;
    let first = inline_chunk(version, &[(1, Some("a")), (2, None), (3, Some("é\u{0}"))])?;
    let began = catalog.commit(|tx| tx.inline_insert(events, &first, &[]).map(|_| ())).await?;
    let second = inline_chunk(version + 1, &[(4, Some("d")), (5, Some("e"))])?;
    catalog
        .commit(|tx| {
            tx.inline_insert(events, &second, &[])?;
            tx.inline_insert(events, &second, &[])?;
            Ok(())
        })
        .await?;
    catalog.commit(|tx| tx.inline_delete(events, 1, &[])).await?;
    catalog.commit(|tx| tx.inline_delete(events, 4, &[])).await?;
    let drained = FlushedDataFile {
        file: DataFile { column_stats: Vec::new(), ..data_file("flushed.parquet", 3, None) },
        row_id_start: 0,
        begin_snapshot: began,
        partial_max: Some(SnapshotId::new(began.get())),
    };
    catalog.commit(|tx| tx.flush_inlined_data(events, version, &[drained.clone()]).map(|_| ())).await?;
    Ok(())
}

async fn definitions(catalog: &Catalog, tables: &Tables) -> anyhow::Result<()> {
    let main = SchemaId::new(0);
    catalog
        .commit(|tx| {
            let view = tx.create_view(main, "v", "duckdb", "SELECT 1")?;
            tx.create_view(main, "v2", "duckdb", "SELECT 2")?;
            let parameter = MacroParameterDef {
                name: "x".to_owned(),
                parameter_type: "unknown".to_owned(),
                default_value: Some("1".to_owned()),
                default_value_type: "int32".to_owned(),
            };
            let plus = MacroImplementationDef {
                dialect: "duckdb".to_owned(),
                sql: "x + 1".to_owned(),
                macro_type: "scalar".to_owned(),
                parameters: vec![parameter],
            };
            let none = MacroImplementationDef { parameters: Vec::new(), sql: "1".to_owned(), ..plus.clone() };
            tx.create_macro(main, "plus", &[plus.clone(), none])?;
            tx.create_macro(main, "gone", &[plus])?;
            tx.set_option(OptionScope::Global, "parquet_version", "2")?;
            tx.set_option(OptionScope::Schema(main), "target_file_size", "1000")?;
            tx.set_option(OptionScope::Table(tables.people), "data_inlining_row_limit", "7")?;
            tx.set_tag(TagTarget::View(view), "comment", "first")?;
            tx.set_tag(TagTarget::Table(tables.people), "comment", "people")?;
            tx.set_tag(TagTarget::Schema(main), "owner", "Ada")?;
            Ok(())
        })
        .await?;
    catalog
        .commit(|tx| {
            if let Some(view) = tx.view_by_name(main, "v").map(|view| view.id) {
                tx.alter_view(view, "duckdb", "SELECT 3")?;
                tx.set_tag(TagTarget::View(view), "comment", "second")?;
            }
            if let Some(view) = tx.view_by_name(main, "v2").map(|view| view.id) {
                tx.drop_view(view)?;
            }
            if let Some(gone) = tx.macro_by_name(main, "gone").map(|found| found.id) {
                tx.drop_macro(gone)?;
            }
            if let Some(dropped) = tx.table_by_name(main, "dropped").map(|table| table.id) {
                tx.drop_table(dropped)?;
            }
            Ok(())
        })
        .await?;
    Ok(())
}

/// A unique index and one that is not, with entries from a file and from a backfill.
async fn indexes(catalog: &Catalog, table: TableId) -> anyhow::Result<()> {
    catalog
        .commit(|tx| {
            let unique = IndexDef { name: "by_id".to_owned(), columns: vec![ColumnId::new(1)], unique: true };
            let by_name = IndexDef { name: "by_name".to_owned(), columns: vec![ColumnId::new(2)], unique: false };
            tx.create_index(table, &unique, &[])?;
            tx.create_index(table, &by_name, &[])?;
            let gone = IndexDef { name: "gone".to_owned(), ..by_name };
            let backfill = IndexEntry { row_id: 70, values: vec![Some(IndexKeyValue::Str("x".to_owned()))] };
            let gone = tx.create_index(table, &gone, &[backfill])?;
            tx.drop_index(gone)
        })
        .await?;
    let indexes = catalog.snapshot().await?.indexes_of(table);
    let mut entries = Vec::new();
    for ordinal in 0..50_u64 {
        for index in &indexes {
            let value = match index.unique {
                true => bigint(i128::from(ordinal)),
                false => IndexKeyValue::Str(format!("name {}\u{0}\u{1}", ordinal % 7)),
            };
            let value = (index.unique || ordinal % 5 != 0).then_some(value);
            entries.push(FileIndexEntry { index: index.id, ordinal, values: vec![value] });
        }
    }
    let file = data_file("indexed.parquet", 50, None);
    catalog.commit(|tx| tx.register_data_file(table, file.clone(), &entries).map(|_| ())).await?;
    Ok(())
}

/// What the indexes answer.
pub(crate) async fn look_up(catalog: &Catalog) -> anyhow::Result<Value> {
    let table = tables(catalog).await?.indexed;
    let mut answers = Vec::new();
    for index in catalog.snapshot().await?.indexes_of(table) {
        let value = match index.unique {
            true => bigint(7),
            false => IndexKeyValue::Str("name 3\u{0}\u{1}".to_owned()),
        };
        let rows = catalog.index_lookup(table, index.id, &[value]).await?;
        answers.push(json!([index.name, rows]));
    }
    Ok(Value::Array(answers))
}
