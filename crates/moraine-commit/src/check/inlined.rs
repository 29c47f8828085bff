//! Records of inlined tables for themselves: schemas, markers, chunks, their directory, deletions from files. Which rows
//! they hold together is in [`super::inlined_rows`].

use arrow_schema::SchemaRef;
use moraine_codec::proto::{InlineChunkRangeValue, InlineChunkValue, InlineSchemaValue};
use moraine_keys::{
    ChunkLocatorKey, DataFileKey, FileDeleteTableKey, InlineFileDeleteKey, InlineInsertKey, InlineSchemaKey,
    Kind, RowTombstoneKey, SchemaDroppedKey, TableStatsKey,
};
use moraine_store::ReadError;

use super::files::LastFile;
use super::parents::in_table;
use super::tables::Tables;
use super::{Check, Invariant, damage, inlined_rows};

pub(super) async fn check(check: &mut Check<'_>, tables: &Tables) -> Result<(), ReadError> {
    schemas(check, tables).await?;
    chunks(check).await?;
    locators(check).await?;
    file_deletes(check, tables).await?;
    in_table::<RowTombstoneKey>(check, tables).await?;
    inlined_rows::check(check).await
}

async fn schemas(check: &mut Check<'_>, tables: &Tables) -> Result<(), ReadError> {
    let mut scan = check.scan::<InlineSchemaKey>(InlineSchemaKey::scan()).await?;
    while let Some((key, value)) = scan.next().await? {
        if !tables.has_table(key.table_id) {
            let detail = format!("there is no table {}, nor was there one", key.table_id);
            check.found(Invariant::ParentExists, &key, detail);
        }
        let InlineSchemaValue {
            same_as_version,
            arrow_schema,
        } = value;
        let Some(schema_version) = same_as_version else {
            if let Err(error) = moraine_inline::decode_schema(&arrow_schema) {
                check.found(Invariant::ValueOfTheKey, &key, error.to_string());
            }
            continue;
        };
        let other = InlineSchemaKey {
            table_id: key.table_id,
            schema_version,
        };
        let detail = match check.value(&other).await? {
            None => format!("it refers to {other}, which is not there"),
            Some(value) if value.same_as_version.is_some() => {
                format!("it refers to {other}, which is itself a reference")
            }
            Some(_) => continue,
        };
        check.found(Invariant::InlineSchemaExists, &key, detail);
    }
    let mut dropped = check.scan::<SchemaDroppedKey>(SchemaDroppedKey::scan()).await?;
    while let Some((key, _)) = dropped.next().await? {
        let schema = InlineSchemaKey {
            table_id: key.table_id,
            schema_version: key.schema_version,
        };
        if !check.exists(&schema).await? {
            check.found(
                Invariant::InlineSchemaExists,
                &key,
                format!("there is no {schema}"),
            );
        }
    }
    Ok(())
}

/// What is known of the inlined table that chunk after chunk belongs to.
#[derive(Debug, Default)]
struct OfVersion {
    version: Option<(u64, u64)>,
    schema: Option<SchemaRef>,
    next_row_id: Option<u64>,
}

impl OfVersion {
    async fn load(check: &mut Check<'_>, key: &InlineInsertKey) -> Result<Self, ReadError> {
        let InlineInsertKey {
            table_id,
            schema_version,
            ..
        } = *key;
        let schema = match moraine_inline::schema(check.read, table_id, schema_version).await {
            Ok(schema) => schema,
            Err(error) => {
                damage(error)?;
                None
            }
        };
        if schema.is_none() {
            let detail = format!("there is no schema of version {schema_version} for table {table_id}");
            check.found(Invariant::InlineSchemaExists, key, detail);
        }
        let stats = check.value(&TableStatsKey { table_id }).await?;
        Ok(Self {
            version: Some((table_id, schema_version)),
            schema,
            next_row_id: stats.map(|stats| stats.next_row_id),
        })
    }
}

async fn chunks(check: &mut Check<'_>) -> Result<(), ReadError> {
    let newest = check.newest_id();
    let mut of = OfVersion::default();
    let mut scan = check.scan::<InlineInsertKey>(InlineInsertKey::scan()).await?;
    while let Some((key, chunk)) = scan.next().await? {
        if of.version != Some((key.table_id, key.schema_version)) {
            of = OfVersion::load(check, &key).await?;
        }
        if key.begin_snapshot > newest {
            let detail = format!(
                "its rows begin at snapshot {}, and the newest is {newest}",
                key.begin_snapshot
            );
            check.found(Invariant::VersionsWithinHead, &key, detail);
        }
        if let Some(schema) = &of.schema
            && let Err(error) = moraine_inline::decode_body(&chunk.body, schema.clone(), chunk.row_count)
        {
            check.found(Invariant::ChunkDecodes, &key, error.to_string());
        }
        let end = last_row(&chunk);
        if let Some(next) = of.next_row_id
            && end >= next
        {
            let detail = format!("it holds row {end}, and the table's next_row_id is {next}");
            check.found(Invariant::RowIdsBelowCounter, &key, detail);
        }
        let (locator, range) = locator(&key, &chunk);
        match check.value(&locator).await? {
            Some(found) if found == range => {}
            Some(found) => {
                let detail = format!(
                    "{locator} says that it begins at row {}, and it begins at {}",
                    found.row_id_start, range.row_id_start
                );
                check.found(Invariant::ChunksLocated, &key, detail);
            }
            None => check.found(Invariant::ChunksLocated, &key, format!("there is no {locator}")),
        }
    }
    Ok(())
}

/// The last row of a chunk. A chunk that decodes has one.
pub(super) fn last_row(chunk: &InlineChunkValue) -> u64 {
    chunk
        .row_id_start
        .saturating_add(chunk.row_count.saturating_sub(1))
}

fn locator(key: &InlineInsertKey, chunk: &InlineChunkValue) -> (ChunkLocatorKey, InlineChunkRangeValue) {
    let locator = ChunkLocatorKey {
        table_id: key.table_id,
        row_id_end: last_row(chunk),
        schema_version: key.schema_version,
        begin_snapshot: key.begin_snapshot,
        chunk_seq: key.chunk_seq,
    };
    let range = InlineChunkRangeValue {
        row_id_start: chunk.row_id_start,
        schema_version: key.schema_version,
        begin_snapshot: key.begin_snapshot,
        chunk_seq: key.chunk_seq,
    };
    (locator, range)
}

async fn locators(check: &mut Check<'_>) -> Result<(), ReadError> {
    let mut scan = check.scan::<ChunkLocatorKey>(ChunkLocatorKey::scan()).await?;
    while let Some((key, _)) = scan.next().await? {
        let chunk = InlineInsertKey {
            table_id: key.table_id,
            schema_version: key.schema_version,
            begin_snapshot: key.begin_snapshot,
            chunk_seq: key.chunk_seq,
        };
        match check.value(&chunk).await? {
            None => check.found(Invariant::LocatorsOfChunks, &key, format!("there is no {chunk}")),
            Some(value) if last_row(&value) != key.row_id_end => {
                let detail = format!("{chunk} ends with row {}", last_row(&value));
                check.found(Invariant::LocatorsOfChunks, &key, detail);
            }
            Some(_) => {}
        }
    }
    Ok(())
}

async fn file_deletes(check: &mut Check<'_>, tables: &Tables) -> Result<(), ReadError> {
    let newest = check.newest_id();
    in_table::<FileDeleteTableKey>(check, tables).await?;
    let mut marked = None;
    let mut file = LastFile::default();
    let mut scan = check
        .scan::<InlineFileDeleteKey>(InlineFileDeleteKey::scan())
        .await?;
    while let Some((key, value)) = scan.next().await? {
        let of = DataFileKey {
            table_id: key.table_id,
            data_file_id: key.data_file_id,
        };
        if marked != Some(key.table_id) {
            marked = Some(key.table_id);
            let marker = FileDeleteTableKey {
                table_id: key.table_id,
            };
            if !check.exists(&marker).await? {
                let detail = format!("there is no {marker}");
                check.found(Invariant::FileDeletesOfFiles, &key, detail);
            }
        }
        let detail = match file.version(check, of).await? {
            None => {
                let detail = format!("there is no data file {}", key.data_file_id);
                check.found(Invariant::FileDeletesOfPresentFiles, &key, detail);
                continue;
            }
            Some(version) if key.row_id >= version.record_count => {
                format!("the file has {} rows", version.record_count)
            }
            Some(_) if value.begin_snapshot > newest => format!(
                "it begins at snapshot {}, and the newest is {newest}",
                value.begin_snapshot
            ),
            Some(_) => continue,
        };
        check.found(Invariant::FileDeletesOfFiles, &key, detail);
    }
    Ok(())
}
