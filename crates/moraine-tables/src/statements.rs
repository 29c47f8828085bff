//! The statements on one relation: which code serves which relation, and that a statement that fails half way leaves
//! nothing behind.

use moraine_commit::{CatalogTransaction, InlineChange};

use crate::error::TableError;
use crate::filter::{CompiledFilter, Filter};
use crate::inlined::data::{self, DataStream, InlinedTable};
use crate::inlined::{file_deletes, tables};
use crate::relation::Relation;
use crate::relations::entities::{Columns, Schemas, Tables, Views};
use crate::relations::files::{DataFiles, DeleteFiles, FilePartitionValues, ScheduledFiles};
use crate::relations::layouts::{PartitionColumns, Partitions, SortExpressions, Sorts};
use crate::relations::macros::{MacroImplementations, MacroParameters, Macros};
use crate::relations::mappings::{Mappings, NameMappings};
use crate::relations::records::{Assignments, RecordStream};
use crate::relations::snapshots::{self, ChangesStream, Snapshots};
use crate::relations::stats::{FileColumnStats, FileVariantStats, TableColumnStats, TableStats};
use crate::relations::tags::Tags;
use crate::relations::{
    RecordRelation, column_tags, embedded, options, records, registrations, schema_versions,
};
use crate::row::RowAddress;
use crate::scan::RowScan;
use crate::schema::{Column, RelationSchema, fixed_schema};
use crate::value::Value;

/// Runs `$record` with `$shape` bound to the shape of a relation of records, `$child` with it bound to that of an embedded
/// relation, and falls through to `$other` for the rest.
macro_rules! by_shape {
    ($relation:expr, $shape:ident => $record:expr, $embedded:ident => $child:expr, $($other:tt)*) => {
        by_shape!(@arms $relation, $shape => $record, $embedded => $child,
            [Schema Schemas, Table Tables, View Views, Column Columns, DataFile DataFiles,
             DeleteFile DeleteFiles, FilesScheduledForDeletion ScheduledFiles, TableStats TableStats,
             TableColumnStats TableColumnStats, FileColumnStats FileColumnStats, PartitionInfo Partitions,
             SortInfo Sorts, Macro Macros, ColumnMapping Mappings],
            [Tag Tags, FilePartitionValue FilePartitionValues,
             FileVariantStats FileVariantStats, PartitionColumn PartitionColumns,
             SortExpression SortExpressions, MacroImpl MacroImplementations,
             MacroParameters MacroParameters, NameMapping NameMappings],
            $($other)*)
    };
    (@arms $relation:expr, $shape:ident => $record:expr, $embedded:ident => $child:expr,
     [$($variant:ident $of:ident),*], [$($child_variant:ident $child_of:ident),*], $($other:tt)*) => {
        match $relation {
            $(Relation::$variant => {
                type $shape = $of;
                $record
            })*
            $(Relation::$child_variant => {
                type $embedded = $child_of;
                $child
            })*
            $($other)*
        }
    };
}

/// The columns of a relation in this transaction's view; `None` when there is no such relation.
///
/// The 28 fixed relations exist once there is a lake, or this transaction is creating it. An inlined data table exists once
/// it was created, whether or not `ducklake_inlined_data_tables` lists it; it goes with its table.
///
/// # Errors
/// [`TableError::Read`], [`TableError::Inline`]; [`TableError::Unsupported`] for an inlined column that another writer
/// stored in a type Postgres does not have.
pub async fn describe(
    tx: &CatalogTransaction,
    relation: Relation,
) -> Result<Option<RelationSchema>, TableError> {
    if !tx.exists() {
        return Ok(None);
    }
    match relation {
        Relation::InlinedData {
            table_id,
            schema_version,
        } => tables::describe_data(tx.read(), table_id, schema_version).await,
        Relation::InlinedDelete { table_id } => tables::describe_deletes(tx.read(), table_id).await,
        fixed => Ok(fixed_schema(fixed)),
    }
}

/// All relations of this transaction's view with their columns: the fixed ones in DuckLake's order of creation, then the
/// inlined data tables, then the inlined delete tables, each by id.
///
/// # Errors
/// As [`describe`].
pub async fn list(tx: &CatalogTransaction) -> Result<Vec<(Relation, RelationSchema)>, TableError> {
    if !tx.exists() {
        return Ok(Vec::new());
    }
    let mut relations: Vec<Relation> = Relation::FIXED.to_vec();
    for (table_id, schema_version, _) in moraine_inline::versions(tx.read(), None).await? {
        relations.push(Relation::InlinedData {
            table_id,
            schema_version,
        });
    }
    for table_id in moraine_inline::file_delete_tables(tx.read()).await? {
        relations.push(Relation::InlinedDelete { table_id });
    }
    let mut described = Vec::with_capacity(relations.len());
    for relation in relations {
        match describe(tx, relation).await {
            Ok(schema) => described.extend(schema.map(|schema| (relation, schema))),
            // One column that cannot be shown must not hide the whole catalog.
            Err(TableError::Unsupported { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(described)
}

async fn existing(tx: &CatalogTransaction, relation: Relation) -> Result<RelationSchema, TableError> {
    describe(tx, relation)
        .await?
        .ok_or(TableError::Missing { relation })
}

/// Reads the rows of a relation that pass `filter`, as the columns at the positions of `projection`.
///
/// Conditions on ids become key ranges: `table_id = x` reads no other table's records. Rows come in the order in which
/// they were inserted, as far as DuckLake can tell: by begin snapshot and id, or by id; embedded rows as they are stored.
///
/// # Errors
/// [`TableError::Missing`]; [`TableError::Width`] and [`TableError::Type`] for a filter or projection that does not fit;
/// [`TableError::Read`], [`TableError::Corrupt`].
pub async fn scan<'a>(
    tx: &'a CatalogTransaction,
    relation: Relation,
    projection: &[usize],
    filter: &Filter,
) -> Result<RowScan<'a>, TableError> {
    let schema = existing(tx, relation).await?;
    let width = schema.columns.len();
    if let Some(column) = projection.iter().find(|column| **column >= width) {
        return Err(TableError::Width {
            relation,
            expected: width,
            found: column + 1,
        });
    }
    let filter = CompiledFilter::compile(relation, &schema, filter)?;
    let read = tx.read();
    by_shape!(relation,
        R => scan_records::<R>(tx, filter, projection).await,
        E => Ok(RowScan::new(embedded::scan_sorted::<E>(read, &filter, projection).await?)),
        Relation::ColumnTag => Ok(RowScan::new(column_tags::scan(read, &filter, projection).await?)),
        Relation::Metadata => Ok(RowScan::new(options::scan(read, &filter, projection).await?)),
        Relation::Snapshot => scan_records::<Snapshots>(tx, filter, projection).await,
        Relation::SnapshotChanges => Ok(RowScan::new(ChangesStream::new(tx, filter, projection)?)),
        Relation::SchemaVersions => Ok(RowScan::new(schema_versions::scan(read, &filter, projection).await?)),
        Relation::InlinedDataTables => Ok(RowScan::new(registrations::scan(tx, &filter, projection).await?)),
        Relation::InlinedData { table_id, schema_version } => {
            let table = InlinedTable { table_id, schema_version };
            Ok(RowScan::new(DataStream::open(tx, table, filter, projection).await?))
        }
        Relation::InlinedDelete { table_id } => {
            Ok(RowScan::new(file_deletes::scan(tx, table_id, &filter, projection).await?))
        }
    )
}

async fn scan_records<'a, R: RecordRelation>(
    tx: &'a CatalogTransaction,
    filter: CompiledFilter,
    projection: &[usize],
) -> Result<RowScan<'a>, TableError> {
    if R::IN_KEY_ORDER && filter.addresses().is_none() {
        return Ok(RowScan::new(RecordStream::<R>::new(
            tx.read(),
            filter,
            projection,
        )));
    }
    Ok(RowScan::new(
        records::scan_sorted::<R>(tx.read(), &filter, projection).await?,
    ))
}

/// Inserts rows, each with a value for every column in order, and says how many. All or nothing.
///
/// Rows of `ducklake_snapshot` take the lake's commit slot, see [`CatalogTransaction::insert_snapshot`].
///
/// # Errors
/// [`TableError::Missing`], [`TableError::Width`], [`TableError::Type`], [`TableError::NotNull`],
/// [`TableError::OutOfRange`]; [`TableError::InvalidText`] for a text that would not come back as it went in;
/// [`TableError::NoParent`] for embedded rows; [`TableError::Stage`] for what the commit layer refuses, a lost race and
/// rows that are there already among it.
pub async fn insert(
    tx: &mut CatalogTransaction,
    relation: Relation,
    rows: Vec<Vec<Value>>,
) -> Result<u64, TableError> {
    insert_borrowed(tx, relation, &rows).await
}

/// [`insert`] for who needs the rows afterwards.
///
/// # Errors
/// As [`insert`].
pub async fn insert_borrowed(
    tx: &mut CatalogTransaction,
    relation: Relation,
    rows: &[Vec<Value>],
) -> Result<u64, TableError> {
    let schema = existing(tx, relation).await?;
    for row in rows {
        check_row(relation, &schema, row)?;
    }
    let savepoint = tx.savepoint();
    let outcome = insert_rows(tx, relation, &schema, rows).await;
    if outcome.is_err() {
        tx.rollback_to(savepoint);
    }
    outcome
}

async fn insert_rows(
    tx: &mut CatalogTransaction,
    relation: Relation,
    schema: &RelationSchema,
    rows: &[Vec<Value>],
) -> Result<u64, TableError> {
    by_shape!(relation,
        R => records::insert::<R>(tx, rows).await,
        E => embedded::insert::<E>(tx, rows).await,
        Relation::ColumnTag => column_tags::insert(tx, rows).await,
        Relation::Metadata => options::insert(tx, rows).await,
        Relation::Snapshot => snapshots::insert(tx, rows).await,
        Relation::SnapshotChanges => snapshots::insert_changes(tx, rows).await,
        Relation::SchemaVersions => schema_versions::insert(tx, rows).await,
        Relation::InlinedDataTables => registrations::insert(tx, rows).await,
        Relation::InlinedData { table_id, schema_version } => {
            data::insert(tx, InlinedTable { table_id, schema_version }, schema, rows).await
        }
        Relation::InlinedDelete { table_id } => file_deletes::insert(tx, table_id, rows).await,
    )
}

fn check_row(relation: Relation, schema: &RelationSchema, row: &[Value]) -> Result<(), TableError> {
    if row.len() != schema.columns.len() {
        return Err(TableError::Width {
            relation,
            expected: schema.columns.len(),
            found: row.len(),
        });
    }
    schema
        .columns
        .iter()
        .zip(row)
        .try_for_each(|(column, value)| check_value(relation, column, value))
}

fn check_value(relation: Relation, column: &Column, value: &Value) -> Result<(), TableError> {
    if value.is_null() && column.not_null {
        return Err(TableError::NotNull {
            relation,
            column: column.name.clone(),
        });
    }
    if !value.has_type(column.column_type) {
        return Err(TableError::Type {
            relation,
            column: column.name.clone(),
            expected: column.column_type.sql_name(),
            found: value.type_name(),
        });
    }
    Ok(())
}

/// Changes rows, each the columns given, and says how many were there to be changed. All or nothing. A row that this
/// transaction has changed since it was read is not found under its old address, as in Postgres.
///
/// # Errors
/// As [`insert`]; [`TableError::Unsupported`] for what cannot change.
pub async fn update(
    tx: &mut CatalogTransaction,
    relation: Relation,
    rows: Vec<(RowAddress, Vec<(usize, Value)>)>,
) -> Result<u64, TableError> {
    let schema = existing(tx, relation).await?;
    for (column, value) in rows.iter().flat_map(|(_, assignments)| assignments) {
        let Some(declared) = schema.columns.get(*column) else {
            return Err(TableError::Width {
                relation,
                expected: schema.columns.len(),
                found: column + 1,
            });
        };
        check_value(relation, declared, value)?;
    }
    let savepoint = tx.savepoint();
    let outcome = update_rows(tx, relation, &schema, &rows).await;
    if outcome.is_err() {
        tx.rollback_to(savepoint);
    }
    outcome
}

async fn update_rows(
    tx: &mut CatalogTransaction,
    relation: Relation,
    schema: &RelationSchema,
    rows: &Assignments,
) -> Result<u64, TableError> {
    by_shape!(relation,
        R => records::update::<R>(tx, rows).await,
        E => embedded::update::<E>(tx, rows).await,
        Relation::ColumnTag => column_tags::update(tx, rows).await,
        Relation::Metadata => options::update(tx, rows).await,
        Relation::Snapshot => records::update::<Snapshots>(tx, rows).await,
        Relation::SnapshotChanges => Err(snapshots::update_refused()),
        Relation::SchemaVersions => schema_versions::update(tx, rows).await,
        Relation::InlinedDataTables => Err(registrations::update_refused()),
        Relation::InlinedData { table_id, schema_version } => {
            data::update(tx, InlinedTable { table_id, schema_version }, schema, rows).await
        }
        Relation::InlinedDelete { table_id } => Err(file_deletes::update_refused(table_id)),
    )
}

/// Deletes rows for good and says how many were there. All or nothing. Rows embedded in a record go with it.
///
/// # Errors
/// [`TableError::Missing`], [`TableError::Read`], [`TableError::Stage`].
pub async fn delete(
    tx: &mut CatalogTransaction,
    relation: Relation,
    rows: Vec<RowAddress>,
) -> Result<u64, TableError> {
    existing(tx, relation).await?;
    let savepoint = tx.savepoint();
    let outcome = delete_rows(tx, relation, &rows).await;
    if outcome.is_err() {
        tx.rollback_to(savepoint);
    }
    outcome
}

async fn delete_rows(
    tx: &mut CatalogTransaction,
    relation: Relation,
    rows: &[RowAddress],
) -> Result<u64, TableError> {
    by_shape!(relation,
        R => records::delete::<R>(tx, rows).await,
        E => embedded::delete::<E>(tx, rows).await,
        Relation::ColumnTag => column_tags::delete(tx, rows).await,
        Relation::Metadata => options::delete(tx, rows).await,
        Relation::Snapshot => records::delete::<Snapshots>(tx, rows).await,
        Relation::SnapshotChanges => snapshots::delete_changes(tx, rows).await,
        Relation::SchemaVersions => schema_versions::delete(tx, rows).await,
        Relation::InlinedDataTables => registrations::delete(tx, rows).await,
        Relation::InlinedData { table_id, schema_version } => {
            data::delete(tx, InlinedTable { table_id, schema_version }, rows).await
        }
        Relation::InlinedDelete { table_id } => file_deletes::delete(tx, table_id, rows).await,
    )
}

/// Creates a relation. The first fixed relation makes this the transaction that creates the lake; in such a transaction the
/// fixed relations all exist from then on, and creating each of them succeeds. `columns` are those of an inlined table, with
/// or without `row_id`, `begin_snapshot` and `end_snapshot` in front; a fixed relation takes them only if they are its own.
///
/// # Errors
/// [`TableError::AlreadyExists`], [`TableError::Definition`], [`TableError::Stage`].
pub async fn create(
    tx: &mut CatalogTransaction,
    relation: Relation,
    columns: Option<Vec<Column>>,
) -> Result<(), TableError> {
    match relation {
        Relation::InlinedData {
            table_id,
            schema_version,
        } => {
            refuse_existing(tx, relation).await?;
            let columns = columns.ok_or_else(|| TableError::Definition {
                relation,
                detail: "an inlined table has the columns of the table it belongs to; name them".to_owned(),
            })?;
            tables::create_data(tx, table_id, schema_version, &columns).await
        }
        Relation::InlinedDelete { table_id } => {
            refuse_existing(tx, relation).await?;
            tables::create_deletes(tx, table_id, columns.as_deref()).await
        }
        fixed => create_fixed(tx, fixed, columns.as_deref()).await,
    }
}

async fn refuse_existing(tx: &CatalogTransaction, relation: Relation) -> Result<(), TableError> {
    match describe(tx, relation).await? {
        Some(_) => Err(TableError::AlreadyExists { relation }),
        None => Ok(()),
    }
}

async fn create_fixed(
    tx: &mut CatalogTransaction,
    relation: Relation,
    columns: Option<&[Column]>,
) -> Result<(), TableError> {
    if tx.exists() && !tx.is_creating() {
        return Err(TableError::AlreadyExists { relation });
    }
    let own = fixed_schema(relation)
        .map(|schema| schema.columns)
        .unwrap_or_default();
    let same = |columns: &[Column]| {
        columns.len() == own.len()
            && columns
                .iter()
                .zip(&own)
                .all(|(a, b)| a.name == b.name && a.column_type == b.column_type)
    };
    if columns.is_some_and(|columns| !same(columns)) {
        let names: Vec<&str> = own.iter().map(|column| column.name.as_str()).collect();
        let detail = format!("its columns are {}", names.join(", "));
        return Err(TableError::Definition { relation, detail });
    }
    Ok(tx.create_lake().await?)
}

/// Drops an inlined table and says whether it was there. Its rows are gone; an inlined data table keeps its schema, so that
/// a reader with an older list still finds it, empty.
///
/// # Errors
/// [`TableError::Unsupported`] for the fixed relations; [`TableError::Stage`].
pub async fn drop(tx: &mut CatalogTransaction, relation: Relation) -> Result<bool, TableError> {
    if describe(tx, relation).await?.is_none() {
        return Ok(false);
    }
    let change = match relation {
        Relation::InlinedData {
            table_id,
            schema_version,
        } => InlineChange::DropTable {
            table_id,
            schema_version,
        },
        Relation::InlinedDelete { table_id } => InlineChange::DropFileDeleteTable { table_id },
        fixed => {
            let detail = "it is part of every lake; remove the lake's files instead".to_owned();
            return Err(TableError::Unsupported {
                relation: fixed,
                detail,
            });
        }
    };
    tx.inline(change).await?;
    Ok(true)
}
