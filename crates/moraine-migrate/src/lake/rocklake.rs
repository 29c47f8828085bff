//! RockLake stores: SlateDB databases whose records stand for rows of DuckLake's tables. Their keys do not sort rows as they
//! are asked for, so all of them are copied into a temporary SQLite file first, one after another, and read from there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use moraine_store::{KeyRange, OpenOptions, Read, SlateReader, StoreUrl, open_foreign_reader};
use moraine_tables::{Column, ColumnType, Relation, Value, fixed_schema};
use tempfile::TempDir;

use crate::column_types::ColumnTypes;
use crate::inlined_tables::{SYSTEM_COLUMNS, delete_columns, door_columns};
use crate::lake::rocklake_rows::{inlined_delete, inlined_row, literal_value, row, tag};
use crate::lake::sqlite::{SqliteSource, SqliteTarget};
use crate::lake::{
    BATCH_ROWS, LakeError, Query, Raw, Rows, Source, SourceColumn, Target, TargetColumn, TargetTable,
    value_of,
};

/// The key of the record that says how keys and values are laid out, and the one layout there is.
const FORMAT_KEY: &[u8] = b"\xffcatalog-format-version";
const FORMAT: &[u8] = b"\x01SDKV\x00\x00\x00\x01";
/// The option that names the version of DuckLake's specification, and the version that this format is of: RockLake's server
/// tells it to its clients, and its stores need not say it.
const VERSION_KEY: &str = "version";
const VERSION: &str = "1.0";
/// What the keys of inlined rows and of inlined deletions begin with.
const INLINED_ROWS: [u8; 2] = [0xfd, 0x01];
const INLINED_DELETES: [u8; 2] = [0xfd, 0x02];

/// A catalog that is read.
pub(crate) struct RockLakeSource {
    name: String,
    reader: Arc<SlateReader>,
    /// The rows, and the folder of the file they are in.
    copy: (SqliteSource, TempDir),
    /// What was there before the rows were copied.
    state: State,
}

/// The number of snapshots, and the newest one's record.
#[derive(Debug, Default, PartialEq, Eq)]
struct State {
    snapshots: u64,
    newest: Option<(Bytes, Bytes)>,
}

impl RockLakeSource {
    /// Opens the store and copies its rows.
    pub(crate) async fn open(url: &StoreUrl) -> Result<RockLakeSource, LakeError> {
        let name = format!("the RockLake store {url}");
        let reader = open_foreign_reader(url, &OpenOptions::default()).await?;
        let format = reader.get(FORMAT_KEY).await?;
        match format {
            Some(format) if format == FORMAT => {}
            Some(format) => {
                return Err(LakeError::Unsupported {
                    catalog: name,
                    detail: format!(
                        "its format is not one that is known ({format:?}); version 1 can be read"
                    ),
                });
            }
            None => {
                return Err(LakeError::NotFound {
                    catalog: name,
                    detail: "the database has no record that RockLake stores have".to_owned(),
                });
            }
        }
        let state = state(&reader).await?;
        let failed = |error| LakeError::database(&name, "making a folder for its rows", error);
        let folder = tempfile::tempdir().map_err(failed)?;
        let path = folder.path().join("rows.sqlite");
        let mut copy = Copy {
            name: &name,
            reader: &reader,
            target: SqliteTarget::open(&path).await?,
            types: ColumnTypes::default(),
            registered: BTreeSet::new(),
        };
        copy.fixed().await?;
        copy.inlined().await?;
        copy.deletes().await?;
        Box::new(copy.target).commit().await?;
        Ok(RockLakeSource {
            copy: (SqliteSource::open(&path).await?, folder),
            name,
            reader,
            state,
        })
    }
}

async fn state(reader: &SlateReader) -> Result<State, LakeError> {
    let mut state = State::default();
    let snapshots: Vec<u8> = tag(Relation::Snapshot).into_iter().collect();
    let mut scan = reader.scan(prefix(&snapshots)).await?;
    while let Some(record) = scan.next().await? {
        state.snapshots += 1;
        state.newest = Some(record);
    }
    Ok(state)
}

/// The copy of a store on its way.
struct Copy<'a> {
    name: &'a str,
    reader: &'a SlateReader,
    target: SqliteTarget,
    types: ColumnTypes,
    /// The inlined tables that the store lists, by table id and schema version.
    registered: BTreeSet<(u64, u64)>,
}

impl Copy<'_> {
    /// The tables of the specification.
    async fn fixed(&mut self) -> Result<(), LakeError> {
        let mut has_version = false;
        for relation in Relation::FIXED {
            let columns = fixed_schema(relation)
                .map(|schema| schema.columns)
                .unwrap_or_default();
            self.target.create(&table(relation, &columns)).await?;
            let Some(tag) = tag(relation) else {
                continue;
            };
            let mut rows = Vec::new();
            let mut scan = self.reader.scan(prefix(&[tag])).await?;
            while let Some((key, value)) = scan.next().await? {
                let row = row(relation, &value).map_err(|detail| self.damaged(&key, detail))?;
                self.note(relation, &row, &columns);
                has_version |= row.first() == Some(&Raw::Text(VERSION_KEY.to_owned()));
                rows.push(row);
                self.write(&mut rows, BATCH_ROWS).await?;
            }
            if relation == Relation::Metadata && !has_version {
                let text = |text: &str| Raw::Text(text.to_owned());
                rows.push(vec![text(VERSION_KEY), text(VERSION), Raw::Null, Raw::Null]);
            }
            self.write(&mut rows, 1).await?;
        }
        Ok(())
    }

    /// Takes in what tells of inlined tables.
    fn note(&mut self, relation: Relation, row: &[Raw], columns: &[Column]) {
        match (relation, row) {
            (Relation::Column, _) => {
                let value =
                    |(raw, column): (&Raw, &Column)| value_of(raw, column.column_type).unwrap_or(Value::Null);
                let values: Vec<Value> = row.iter().zip(columns).map(value).collect();
                self.types.add_any_column(&values);
            }
            (Relation::SchemaVersions, [Raw::Int(begin), Raw::Int(version), Raw::Int(table)]) => {
                self.types.add_schema_version(
                    table.unsigned_abs(),
                    version.unsigned_abs(),
                    begin.unsigned_abs(),
                );
            }
            (Relation::InlinedDataTables, [Raw::Int(table), _, Raw::Int(version)]) => {
                self.registered
                    .insert((table.unsigned_abs(), version.unsigned_abs()));
            }
            _ => {}
        }
    }

    /// The inlined rows, whether or not the store lists their tables.
    async fn inlined(&mut self) -> Result<(), LakeError> {
        let mut empty = std::mem::take(&mut self.registered);
        let (mut of, mut columns) = (None, Vec::new());
        let mut rows = Vec::new();
        let mut scan = self.reader.scan(prefix(&INLINED_ROWS)).await?;
        while let Some((key, value)) = scan.next().await? {
            let ids = (
                id_at(&key, INLINED_ROWS.len()),
                id_at(&key, INLINED_ROWS.len() + 8),
            );
            if of != Some(ids) {
                self.write(&mut rows, 1).await?;
                columns = self.create_inlined(ids).await?;
                empty.remove(&ids);
                of = Some(ids);
            }
            let (mut row, literals) = inlined_row(&value).map_err(|detail| self.damaged(&key, detail))?;
            let user = columns.iter().skip(SYSTEM_COLUMNS.len());
            for (position, column) in user.enumerate() {
                let literal = literals.get(position).cloned().flatten();
                row.push(literal.map_or(Raw::Null, |text| literal_value(&text, column.column_type)));
            }
            rows.push(row);
            self.write(&mut rows, BATCH_ROWS).await?;
        }
        self.write(&mut rows, 1).await?;
        for ids in empty {
            self.create_inlined(ids).await?;
        }
        Ok(())
    }

    /// Makes an inlined table, and returns its columns.
    async fn create_inlined(
        &mut self,
        (table_id, schema_version): (u64, u64),
    ) -> Result<Vec<Column>, LakeError> {
        let names = self.types.names(table_id, schema_version);
        let user: Vec<SourceColumn> = names
            .into_iter()
            .map(|name| SourceColumn {
                name,
                declared: String::new(),
            })
            .collect();
        let columns = door_columns(table_id, schema_version, &user, &self.types);
        let relation = Relation::InlinedData {
            table_id,
            schema_version,
        };
        self.target.create(&table(relation, &columns)).await?;
        Ok(columns)
    }

    /// The inlined deletions from data files.
    async fn deletes(&mut self) -> Result<(), LakeError> {
        let mut of = None;
        let mut rows = Vec::new();
        let mut scan = self.reader.scan(prefix(&INLINED_DELETES)).await?;
        while let Some((key, value)) = scan.next().await? {
            let table_id = id_at(&key, INLINED_DELETES.len());
            if of != Some(table_id) {
                self.write(&mut rows, 1).await?;
                let relation = Relation::InlinedDelete { table_id };
                self.target.create(&table(relation, &delete_columns())).await?;
                of = Some(table_id);
            }
            rows.push(inlined_delete(&value).map_err(|detail| self.damaged(&key, detail))?);
            self.write(&mut rows, BATCH_ROWS).await?;
        }
        self.write(&mut rows, 1).await
    }

    /// Hands the rows over once there are `enough` of them.
    async fn write(&mut self, rows: &mut Vec<Vec<Raw>>, enough: usize) -> Result<(), LakeError> {
        if rows.len() < enough {
            return Ok(());
        }
        self.target.write(std::mem::take(rows)).await
    }

    fn damaged(&self, key: &[u8], detail: String) -> LakeError {
        let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        LakeError::database(self.name, &format!("reading the record {hex}"), detail)
    }
}

/// A table of the copy. What is neither a number nor bytes is kept as it is written.
fn table(relation: Relation, columns: &[Column]) -> TargetTable {
    let column = |column: &Column| TargetColumn {
        name: column.name.clone(),
        column_type: match column.column_type {
            kept @ (ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64 | ColumnType::Bytes) => kept,
            _ => ColumnType::Text,
        },
        native_type: None,
        not_null: false,
    };
    TargetTable {
        name: relation.name(),
        columns: columns.iter().map(column).collect(),
        primary_key: None,
    }
}

fn id_at(key: &Bytes, at: usize) -> u64 {
    let bytes = key.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    u64::from_be_bytes(bytes.unwrap_or_default())
}

/// All keys that begin so.
fn prefix(start: &[u8]) -> KeyRange {
    let mut end = start.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            break;
        }
    }
    KeyRange {
        start: Bytes::copy_from_slice(start),
        end: (!end.is_empty()).then(|| end.into()),
    }
}

#[async_trait]
impl Source for RockLakeSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn tables(&self) -> &BTreeMap<String, Vec<SourceColumn>> {
        self.copy.0.tables()
    }

    async fn rows(&self, query: &Query) -> Result<Box<dyn Rows>, LakeError> {
        self.copy.0.rows(query).await
    }

    async fn count(&self, table: &str) -> Result<u64, LakeError> {
        self.copy.0.count(table).await
    }

    async fn is_unchanged(&self) -> Result<bool, LakeError> {
        Ok(state(&self.reader).await? == self.state)
    }
}
