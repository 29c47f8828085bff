//! Taking a lake out to another catalog: every table of it, rows in the order in which DuckLake inserted them, in one
//! transaction of the catalog's own database.

use std::collections::{BTreeMap, BTreeSet};

use moraine_commit::{Catalog, CatalogError, CatalogTransaction};
use moraine_tables::{Relation, RelationSchema, TableError, Value, describe, dump, list};

use crate::column_types::ColumnTypes;
use crate::import::number;
use crate::lake::{LakeError, Target, TargetColumn, TargetTable, raw_of};
use crate::progress::Progress;

/// How a lake is exported.
#[derive(Debug, Clone, Default)]
pub struct ExportOptions {
    /// The data path to record in place of the lake's own.
    pub data_path: Option<String>,
}

/// What was exported.
#[derive(Debug, Clone, Default)]
pub struct ExportReport {
    /// The newest snapshot.
    pub snapshot_id: u64,
    /// Rows by table of DuckLake.
    pub rows: BTreeMap<String, u64>,
}

/// Why a lake was not exported. Nothing of it is in the target.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// There is no lake in the store.
    #[error("there is no lake in this store")]
    NoLake,
    /// The target could not be written.
    #[error(transparent)]
    Lake(#[from] LakeError),
    /// The lake could not be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The lake could not be read.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Exports the lake of `catalog`, which may be open for reading only, into `target`.
///
/// # Errors
/// See [`ExportError`].
pub async fn export(
    catalog: &std::sync::Arc<Catalog>,
    mut target: Box<dyn Target>,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> Result<ExportReport, ExportError> {
    let written = write(catalog, target.as_mut(), options, progress).await;
    match written {
        Ok(report) => {
            target.commit().await?;
            Ok(report)
        }
        Err(error) => {
            target.abort().await;
            Err(error)
        }
    }
}

async fn write(
    catalog: &std::sync::Arc<Catalog>,
    target: &mut dyn Target,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> Result<ExportReport, ExportError> {
    let tx = catalog.begin().await?;
    let Some(head) = tx.head().copied() else {
        return Err(ExportError::NoLake);
    };
    let mut report = ExportReport {
        snapshot_id: head.snapshot_id,
        ..ExportReport::default()
    };
    let types = column_types(&tx).await?;
    for (relation, schema) in relations(&tx).await? {
        let table = target_table(relation, &schema, &types);
        target.create(&table).await?;
        progress.table(&table.name, None);
        let mut rows = dump(&tx, relation).await?;
        let mut count = 0;
        while let Some(mut batch) = rows.next_batch().await? {
            if let (Relation::Metadata, Some(data_path)) = (relation, &options.data_path) {
                replace_data_path(&mut batch, data_path);
            }
            count += batch.len() as u64;
            progress.rows(batch.len() as u64);
            let batch = batch.iter().map(|row| row.iter().map(raw_of).collect()).collect();
            target.write(batch).await?;
        }
        report.rows.insert(table.name, count);
    }
    Ok(report)
}

fn replace_data_path(rows: &mut [Vec<Value>], data_path: &str) {
    for row in rows {
        if let [Value::Text(key), value, Value::Null, _] = row.as_mut_slice()
            && key.as_ref() == "data_path"
        {
            *value = Value::text(data_path);
        }
    }
}

/// All relations of a lake. Those that cannot be shown in full are an error, not a gap.
pub(crate) async fn relations(
    tx: &CatalogTransaction,
) -> Result<Vec<(Relation, RelationSchema)>, TableError> {
    let mut found = list(tx).await?;
    let shown: BTreeSet<Relation> = found.iter().map(|(relation, _)| *relation).collect();
    for (table_id, schema_version, is_registered) in moraine_inline::versions(tx.read(), None).await? {
        let relation = Relation::InlinedData {
            table_id,
            schema_version,
        };
        if !shown.contains(&relation) {
            describe(tx, relation).await?;
        }
        // A table that a flush has dropped has no rows; that it is remembered concerns nobody else.
        if !is_registered {
            found.retain(|(listed, _)| *listed != relation);
        }
    }
    Ok(found)
}

/// The types of the columns of all tables that have inlined tables.
pub(crate) async fn column_types(tx: &CatalogTransaction) -> Result<ColumnTypes, TableError> {
    let mut types = ColumnTypes::default();
    let mut tables: BTreeSet<u64> = BTreeSet::new();
    for (table_id, ..) in moraine_inline::versions(tx.read(), None).await? {
        tables.insert(table_id);
    }
    for relation in [Relation::Column, Relation::SchemaVersions, Relation::Snapshot] {
        let mut rows = dump(tx, relation).await?;
        while let Some(batch) = rows.next_batch().await? {
            for row in batch {
                match relation {
                    Relation::Column => types.add_column(&row, &tables),
                    Relation::SchemaVersions => {
                        if let (Some(begin), Some(version), Some(table)) =
                            (number(&row, 0), number(&row, 1), number(&row, 2))
                        {
                            types.add_schema_version(table, version, begin);
                        }
                    }
                    _ => {
                        if let (Some(id), Some(version)) = (number(&row, 0), number(&row, 2)) {
                            types.add_snapshot(id, version);
                        }
                    }
                }
            }
        }
    }
    Ok(types)
}

fn target_table(relation: Relation, schema: &RelationSchema, types: &ColumnTypes) -> TargetTable {
    let columns = schema
        .columns
        .iter()
        .enumerate()
        .map(|(position, column)| {
            let native_type = match relation {
                Relation::InlinedData {
                    table_id,
                    schema_version,
                } if position >= crate::inlined_tables::SYSTEM_COLUMNS.len() => {
                    types.native_type(table_id, schema_version, &column.name)
                }
                _ => None,
            };
            TargetColumn {
                name: column.name.clone(),
                column_type: column.column_type,
                native_type,
                not_null: column.not_null && schema.primary_key != Some(position),
            }
        })
        .collect();
    TargetTable {
        name: relation.name(),
        columns,
        primary_key: schema.primary_key,
    }
}
