//! Every row of every table, by the names of DuckLake's tables and in the order of their columns. Instants are
//! microseconds since 1970.

use moraine::Catalog;
use moraine::ffi_support as seam;
use moraine::ffi_support::inline::{InlineScanKind, inline_file_delete_table_exists, inline_file_deletes};
use moraine::ffi_support::inline::{inline_registered_tables, inline_schemas, scan_inline};
use serde_json::{Map, Value, json};

use crate::chunks;

/// All relations, as arrays of rows.
pub(crate) async fn relations(catalog: &Catalog) -> anyhow::Result<Value> {
    let mut relations = Map::new();
    snapshots(catalog, &mut relations).await?;
    entities(catalog, &mut relations).await?;
    files(catalog, &mut relations).await?;
    layouts(catalog, &mut relations).await?;
    statistics(catalog, &mut relations).await?;
    macros(catalog, &mut relations).await?;
    inlined(catalog, &mut relations).await?;
    Ok(Value::Object(relations))
}

macro_rules! rows {
    ($relations:expr, $name:expr, $rows:expr, |$row:ident| [$($cell:expr),+ $(,)?]) => {
        let rows = $rows.into_iter().map(|$row| json!([$($cell),+])).collect();
        $relations.insert(format!("ducklake_{}", $name), Value::Array(rows));
    };
}

async fn snapshots(catalog: &Catalog, relations: &mut Map<String, Value>) -> anyhow::Result<()> {
    let snapshots = seam::dump_snapshots(catalog).await?;
    rows!(relations, "snapshot", &snapshots, |s| [
        s.snapshot_id, s.snapshot_time_micros, s.schema_version, s.next_catalog_id, s.next_file_id,
    ]);
    rows!(relations, "snapshot_changes", &snapshots, |s| [
        s.snapshot_id, s.changes_made, s.author, s.commit_message, s.commit_extra_info,
    ]);
    rows!(relations, "schema_versions", seam::dump_schema_versions(catalog).await?, |v| [
        v.begin_snapshot, v.schema_version, v.table_id,
    ]);
    rows!(relations, "metadata", seam::dump_options(catalog).await?, |o| [o.key, o.value, o.scope, o.scope_id]);
    rows!(relations, "tag", seam::dump_tags(catalog).await?, |t| [
        t.object_id, t.begin_snapshot, t.end_snapshot, t.key, t.value,
    ]);
    rows!(relations, "column_tag", seam::dump_column_tags(catalog).await?, |t| [
        t.table_id, t.column_id, t.begin_snapshot, t.end_snapshot, t.key, t.value,
    ]);
    Ok(())
}

async fn entities(catalog: &Catalog, relations: &mut Map<String, Value>) -> anyhow::Result<()> {
    rows!(relations, "schema", seam::dump_schemas(catalog).await?, |s| [
        s.schema_id, s.schema_uuid, s.begin_snapshot, s.end_snapshot, s.schema_name, s.path, s.path_is_relative,
    ]);
    rows!(relations, "table", seam::dump_tables(catalog).await?, |t| [
        t.table_id, t.table_uuid, t.begin_snapshot, t.end_snapshot, t.schema_id, t.table_name, t.path,
        t.path_is_relative,
    ]);
    rows!(relations, "view", seam::dump_views(catalog).await?, |v| [
        v.view_id, v.view_uuid, v.begin_snapshot, v.end_snapshot, v.schema_id, v.view_name, v.dialect, v.sql,
        v.column_aliases,
    ]);
    rows!(relations, "column", seam::dump_columns(catalog).await?, |c| [
        c.column_id, c.begin_snapshot, c.end_snapshot, c.table_id, c.column_order, c.column_name, c.column_type,
        c.initial_default, c.default_value, c.nulls_allowed, c.parent_column, c.default_value_type,
        c.default_value_dialect,
    ]);
    Ok(())
}

async fn files(catalog: &Catalog, relations: &mut Map<String, Value>) -> anyhow::Result<()> {
    rows!(relations, "data_file", seam::dump_data_files(catalog).await?, |f| [
        f.data_file_id, f.table_id, f.begin_snapshot, f.end_snapshot, f.file_order, f.path, f.path_is_relative,
        f.file_format, f.record_count, f.file_size_bytes, f.footer_size, f.row_id_start, f.partition_id,
        f.encryption_key, f.mapping_id, f.partial_max,
    ]);
    rows!(relations, "delete_file", seam::dump_delete_files(catalog).await?, |f| [
        f.delete_file_id, f.table_id, f.begin_snapshot, f.end_snapshot, f.data_file_id, f.path, f.path_is_relative,
        f.format, f.delete_count, f.file_size_bytes, f.footer_size, f.encryption_key, f.partial_max,
    ]);
    rows!(relations, "file_partition_value", seam::dump_file_partition_value_rows(catalog).await?, |v| [
        v.data_file_id, v.table_id, v.partition_key_index, v.partition_value,
    ]);
    rows!(relations, "files_scheduled_for_deletion", seam::dump_scheduled_deletions(catalog).await?, |f| [
        f.data_file_id, f.path, f.path_is_relative, f.schedule_start_micros,
    ]);
    Ok(())
}

async fn layouts(catalog: &Catalog, relations: &mut Map<String, Value>) -> anyhow::Result<()> {
    rows!(relations, "partition_info", seam::dump_partition_info(catalog).await?, |p| [
        p.partition_id, p.table_id, p.begin_snapshot, p.end_snapshot,
    ]);
    rows!(relations, "partition_column", seam::dump_partition_column_rows(catalog).await?, |c| [
        c.partition_id, c.table_id, c.partition_key_index, c.column_id, c.transform,
    ]);
    rows!(relations, "sort_info", seam::dump_sort_info(catalog).await?, |s| [
        s.sort_id, s.table_id, s.begin_snapshot, s.end_snapshot,
    ]);
    rows!(relations, "sort_expression", seam::dump_sort_expression_rows(catalog).await?, |s| [
        s.sort_id, s.table_id, s.sort_key_index, s.expression, s.dialect, s.sort_direction, s.null_order,
    ]);
    rows!(relations, "column_mapping", seam::dump_mappings(catalog).await?, |m| [m.mapping_id, m.table_id, m.map_type]);
    rows!(relations, "name_mapping", seam::dump_name_mapping_rows(catalog).await?, |m| [
        m.mapping_id, m.column_id, m.source_name, m.target_field_id, m.parent_column, m.is_partition,
    ]);
    Ok(())
}

async fn statistics(catalog: &Catalog, relations: &mut Map<String, Value>) -> anyhow::Result<()> {
    rows!(relations, "table_stats", seam::dump_table_stats(catalog).await?, |s| [
        s.table_id, s.record_count, s.next_row_id, s.file_size_bytes,
    ]);
    rows!(relations, "table_column_stats", seam::dump_table_column_stats(catalog).await?, |s| [
        s.table_id, s.column_id, s.contains_null, s.contains_nan, s.min_value, s.max_value, s.extra_stats,
    ]);
    let of_files = seam::dump_file_column_stats(catalog).await?;
    rows!(relations, "file_column_stats", &of_files, |s| [
        s.data_file_id, s.table_id, s.column_id, s.column_size_bytes, s.value_count, s.null_count, s.min_value,
        s.max_value, s.contains_nan, s.extra_stats,
    ]);
    let variants = of_files.iter().flat_map(|s| s.variant_stats.iter().map(move |v| (s, v)));
    rows!(relations, "file_variant_stats", variants, |of| [
        of.0.data_file_id, of.0.table_id, of.0.column_id, of.1.variant_path, of.1.shredded_type,
        of.1.column_size_bytes, of.1.value_count, of.1.null_count, of.1.min_value, of.1.max_value,
        of.1.contains_nan, of.1.extra_stats,
    ]);
    Ok(())
}

async fn macros(catalog: &Catalog, relations: &mut Map<String, Value>) -> anyhow::Result<()> {
    rows!(relations, "macro", seam::dump_macros(catalog).await?, |m| [
        m.schema_id, m.macro_id, m.macro_name, m.begin_snapshot, m.end_snapshot,
    ]);
    rows!(relations, "macro_impl", seam::dump_macro_impl_rows(catalog).await?, |m| [
        m.macro_id, m.impl_id, m.dialect, m.sql, m.macro_type,
    ]);
    rows!(relations, "macro_parameters", seam::dump_macro_parameter_rows(catalog).await?, |m| [
        m.macro_id, m.impl_id, m.column_id, m.parameter_name, m.parameter_type, m.default_value,
        m.default_value_type,
    ]);
    Ok(())
}

async fn inlined(catalog: &Catalog, relations: &mut Map<String, Value>) -> anyhow::Result<()> {
    let registered = inline_registered_tables(catalog).await?;
    rows!(relations, "inlined_data_tables", &registered, |r| [
        r.0, format!("ducklake_inlined_data_{}_{}", r.0, r.1), r.1,
    ]);
    for (table_id, version) in registered {
        let rows = inlined_rows(catalog, table_id, version).await?;
        relations.insert(format!("ducklake_inlined_data_{table_id}_{version}"), Value::Array(rows));
    }
    for table in seam::dump_tables(catalog).await? {
        if inline_file_delete_table_exists(catalog, table.table_id).await? {
            let name = format!("inlined_delete_{}", table.table_id);
            rows!(relations, name, inline_file_deletes(catalog, table.table_id).await?, |d| [d.0, d.1, d.2]);
        }
    }
    Ok(())
}

async fn inlined_rows(catalog: &Catalog, table_id: u64, version: u64) -> anyhow::Result<Vec<Value>> {
    let schemas = inline_schemas(catalog, table_id).await?;
    let schema = schemas.iter().find(|(of, _)| *of == version).map(|(_, bytes)| bytes.clone()).unwrap_or_default();
    let scan = scan_inline(catalog, table_id, InlineScanKind::ForFlush, u64::MAX, 0, Some(version)).await?;
    let mut rows = Vec::new();
    for row in &scan.rows {
        let body = &scan.chunk_bodies[usize::try_from(row.chunk_index)?];
        let mut cells = vec![json!(row.row_id), json!(row.begin_snapshot), json!(row.end_snapshot)];
        cells.extend(chunks::row(&schema, body, row.offset_in_chunk)?);
        rows.push(Value::Array(cells));
    }
    Ok(rows)
}
