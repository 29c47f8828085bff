//! RockLake stores: SlateDB databases whose records stand for rows of DuckLake's tables. They are read at the state they have
//! when they are opened; the rows of a table are sorted in memory, which their keys do not do in the order that is needed.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use moraine_store::{KeyRange, OpenOptions, Read, SlateReader, StoreUrl, open_foreign_reader};
use moraine_tables::{Relation, fixed_schema};

use crate::column_types::ColumnTypes;
use crate::inlined_tables::{DELETE_COLUMNS, SYSTEM_COLUMNS};
use crate::lake::rocklake_rows::{inlined_delete, inlined_row, literal_value, row, tag};
use crate::lake::{BATCH_ROWS, LakeError, Query, Raw, Rows, Source, SourceColumn, value_of};

/// The key of the record that says how keys and values are laid out, and the one layout there is.
const FORMAT_KEY: &[u8] = b"\xffcatalog-format-version";
const FORMAT: &[u8] = b"\x01SDKV\x00\x00\x00\x01";
/// What the keys of inlined rows and of inlined deletions begin with.
const INLINED_ROWS: [u8; 2] = [0xfd, 0x01];
const INLINED_DELETES: [u8; 2] = [0xfd, 0x02];

/// A catalog that is read.
pub(crate) struct RockLakeSource {
    name: String,
    reader: Arc<SlateReader>,
    tables: BTreeMap<String, Vec<SourceColumn>>,
    /// The number of snapshots and the newest one at the beginning.
    state: (usize, Vec<Raw>),
}

impl RockLakeSource {
    /// Opens the store.
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
        let mut source = RockLakeSource {
            name,
            reader,
            tables: BTreeMap::new(),
            state: Default::default(),
        };
        source.tables = source.list().await?;
        source.state = source.state().await?;
        Ok(source)
    }

    async fn list(&self) -> Result<BTreeMap<String, Vec<SourceColumn>>, LakeError> {
        let column = |name: &str, declared: String| SourceColumn {
            name: name.to_owned(),
            declared,
        };
        let mut tables: BTreeMap<String, Vec<SourceColumn>> = BTreeMap::new();
        for relation in Relation::FIXED {
            let columns = fixed_schema(relation)
                .map(|schema| schema.columns)
                .unwrap_or_default();
            let columns = columns
                .iter()
                .map(|of| column(&of.name, of.column_type.sql_name()))
                .collect();
            tables.insert(relation.name(), columns);
        }
        let bigint = || "bigint".to_owned();
        let types = self.column_types().await?;
        for row in self.relation_rows(Relation::InlinedDataTables).await? {
            let [Raw::Int(table), _, Raw::Int(version)] = row.as_slice() else {
                continue;
            };
            let (table_id, schema_version) = (table.unsigned_abs(), version.unsigned_abs());
            let relation = Relation::InlinedData {
                table_id,
                schema_version,
            };
            let mut columns: Vec<SourceColumn> =
                SYSTEM_COLUMNS.iter().map(|name| column(name, bigint())).collect();
            let names = types.names(table_id, schema_version);
            columns.extend(names.iter().map(|name| column(name, String::new())));
            tables.insert(relation.name(), columns);
        }
        for table_id in self.tables_with_deletes().await? {
            let columns = DELETE_COLUMNS.iter().map(|name| column(name, bigint())).collect();
            tables.insert(Relation::InlinedDelete { table_id }.name(), columns);
        }
        Ok(tables)
    }

    async fn column_types(&self) -> Result<ColumnTypes, LakeError> {
        let mut types = ColumnTypes::default();
        let typed = |relation, raw: &[Raw]| -> Vec<moraine_tables::Value> {
            let columns = fixed_schema(relation)
                .map(|schema| schema.columns)
                .unwrap_or_default();
            let values = raw.iter().zip(columns);
            values
                .map(|(raw, column)| value_of(raw, column.column_type).unwrap_or(moraine_tables::Value::Null))
                .collect()
        };
        for row in self.relation_rows(Relation::Column).await? {
            types.add_any_column(&typed(Relation::Column, &row));
        }
        for row in self.relation_rows(Relation::SchemaVersions).await? {
            if let [Raw::Int(begin), Raw::Int(version), Raw::Int(table)] = row.as_slice() {
                types.add_schema_version(table.unsigned_abs(), version.unsigned_abs(), begin.unsigned_abs());
            }
        }
        Ok(types)
    }

    async fn tables_with_deletes(&self) -> Result<Vec<u64>, LakeError> {
        let mut found = Vec::new();
        let mut scan = self.reader.scan(prefix(&INLINED_DELETES)).await?;
        while let Some((key, _)) = scan.next().await? {
            let table_id = id_at(&key, INLINED_DELETES.len());
            if found.last() != Some(&table_id) {
                found.push(table_id);
            }
        }
        Ok(found)
    }

    fn damaged(&self, key: &[u8], detail: String) -> LakeError {
        let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        LakeError::database(&self.name, &format!("reading the record {hex}"), detail)
    }

    /// The rows of a table of the specification, in key order, with all of its columns.
    async fn relation_rows(&self, relation: Relation) -> Result<Vec<Vec<Raw>>, LakeError> {
        let Some(tag) = tag(relation) else {
            return Ok(Vec::new());
        };
        let mut rows = Vec::new();
        let mut scan = self.reader.scan(prefix(&[tag])).await?;
        while let Some((key, value)) = scan.next().await? {
            rows.push(row(relation, &value).map_err(|detail| self.damaged(&key, detail))?);
        }
        Ok(rows)
    }

    /// The rows of an inlined table as a query asks for them.
    async fn inlined_rows(&self, relation: Relation, query: &Query) -> Result<Vec<Vec<Raw>>, LakeError> {
        let mut rows = Vec::new();
        let start: Vec<u8> = match relation {
            Relation::InlinedData {
                table_id,
                schema_version,
            } => [
                INLINED_ROWS.as_slice(),
                &table_id.to_be_bytes(),
                &schema_version.to_be_bytes(),
            ]
            .concat(),
            Relation::InlinedDelete { table_id } => {
                [INLINED_DELETES.as_slice(), &table_id.to_be_bytes()].concat()
            }
            _ => return Ok(rows),
        };
        let mut scan = self.reader.scan(prefix(&start)).await?;
        while let Some((key, value)) = scan.next().await? {
            let damaged = |detail| self.damaged(&key, detail);
            if matches!(relation, Relation::InlinedDelete { .. }) {
                rows.push(inlined_delete(&value).map_err(damaged)?);
                continue;
            }
            let (mut row, literals) = inlined_row(&value).map_err(damaged)?;
            let user = query.columns.iter().skip(SYSTEM_COLUMNS.len());
            for (position, column) in user.enumerate() {
                let literal = literals.get(position).cloned().flatten();
                row.push(literal.map_or(Raw::Null, |text| literal_value(&text, column.column_type)));
            }
            rows.push(row);
        }
        Ok(rows)
    }

    async fn state(&self) -> Result<(usize, Vec<Raw>), LakeError> {
        let mut rows = self.relation_rows(Relation::Snapshot).await?;
        Ok((rows.len(), rows.pop().unwrap_or_default()))
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
        &self.tables
    }

    async fn rows(&self, query: &Query) -> Result<Box<dyn Rows>, LakeError> {
        let Some(relation) = Relation::parse(&query.table) else {
            return Ok(Box::new(SortedRows::default()));
        };
        let all = match relation.is_fixed() {
            true => self.relation_rows(relation).await?,
            false => self.inlined_rows(relation, query).await?,
        };
        let declared = self.tables.get(&query.table).cloned().unwrap_or_default();
        let position = |name: &str| declared.iter().position(|column| column.name == name);
        let chosen: Vec<Option<usize>> = query
            .columns
            .iter()
            .map(|column| position(&column.name))
            .collect();
        let order: Vec<usize> = query.order.iter().filter_map(|name| position(name)).collect();
        let not_null = query.not_null.as_deref().and_then(position);
        let mut rows: Vec<Vec<Raw>> = all
            .into_iter()
            .filter(|row| not_null.is_none_or(|column| row.get(column).is_some_and(|raw| *raw != Raw::Null)))
            .collect();
        let key = |row: &Vec<Raw>| -> Vec<i64> {
            let number = |column: &usize| match row.get(*column) {
                Some(Raw::Int(number)) => *number,
                _ => i64::MIN,
            };
            order.iter().map(number).collect()
        };
        rows.sort_by_cached_key(key);
        let project = |row: Vec<Raw>| -> Vec<Raw> {
            let cell = |column: &Option<usize>| column.and_then(|column| row.get(column).cloned());
            chosen
                .iter()
                .map(|column| cell(column).unwrap_or(Raw::Null))
                .collect()
        };
        Ok(Box::new(SortedRows {
            rows: rows.into_iter().map(project).collect::<Vec<_>>().into_iter(),
        }))
    }

    async fn count(&self, table: &str) -> Result<u64, LakeError> {
        let start: Vec<u8> = match Relation::parse(table) {
            Some(Relation::InlinedData {
                table_id,
                schema_version,
            }) => [
                INLINED_ROWS.as_slice(),
                &table_id.to_be_bytes(),
                &schema_version.to_be_bytes(),
            ]
            .concat(),
            Some(Relation::InlinedDelete { table_id }) => {
                [INLINED_DELETES.as_slice(), &table_id.to_be_bytes()].concat()
            }
            Some(fixed) => tag(fixed).into_iter().collect(),
            None => return Ok(0),
        };
        let mut scan = self.reader.scan(prefix(&start)).await?;
        let mut count = 0;
        while scan.next().await?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    async fn is_unchanged(&self) -> Result<bool, LakeError> {
        Ok(self.state().await? == self.state)
    }
}

/// Rows that were sorted in memory.
#[derive(Default)]
struct SortedRows {
    rows: std::vec::IntoIter<Vec<Raw>>,
}

#[async_trait]
impl Rows for SortedRows {
    async fn next(&mut self) -> Result<Option<Vec<Vec<Raw>>>, LakeError> {
        let batch: Vec<Vec<Raw>> = self.rows.by_ref().take(BATCH_ROWS).collect();
        Ok((!batch.is_empty()).then_some(batch))
    }
}
