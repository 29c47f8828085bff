//! Writing the files of a table's inlined rows to its data path. Nothing is staged here.

use std::fs::File;
use std::io::{BufReader, BufWriter, Seek, Write as _};

use moraine_inline::{DataFileStream, FlushedFile, RowMultiset, flushable_rows, write_delete_file};
use moraine_store::{DataFiles, StoreUrl};

use crate::flush::FlushError;
use crate::flush::litter::Litter;
use crate::flush::plan::{Plan, Source, TablePlan};
use crate::transaction::CatalogTransaction;

/// Bytes of a lake's keys, as DuckLake makes them.
const KEY_BYTES: usize = 16;

/// The files of one inlined table, which lie at the data path and are not yet known to the catalog.
pub(super) struct WrittenSource<'p> {
    pub(super) source: &'p Source,
    pub(super) files: Vec<WrittenFile>,
    /// The row ids in them.
    pub(super) rows: RowMultiset,
    pub(super) encryption_key: Option<Vec<u8>>,
}

/// A data file.
pub(super) struct WrittenFile {
    /// Its path below the table's folder.
    pub(super) path: String,
    /// Without the rows that have ended: those are in the delete file.
    pub(super) flushed: FlushedFile,
    pub(super) delete_file: Option<WrittenDeleteFile>,
}

/// A delete file.
pub(super) struct WrittenDeleteFile {
    pub(super) path: String,
    pub(super) file_bytes: u64,
    pub(super) footer_bytes: u64,
    pub(super) count: u64,
    /// The first snapshot that deletes a row.
    pub(super) begin_snapshot: u64,
}

/// Writes the rows of all inlined tables of one table. Gives those that were empty too, as far as they are to go.
pub(super) async fn table<'p>(
    transaction: &CatalogTransaction,
    plan: &Plan,
    table: &'p TablePlan,
    litter: &mut Litter,
) -> Result<(Vec<WrittenSource<'p>>, Vec<&'p Source>), FlushError> {
    let (mut written, mut empty) = (Vec::new(), Vec::new());
    for source in &table.sources {
        match write(transaction, plan, table, source, litter).await? {
            Some(source) => written.push(source),
            None if source.superseded && source.listed => empty.push(source),
            None => {}
        }
    }
    Ok((written, empty))
}

async fn write<'p>(
    transaction: &CatalogTransaction,
    plan: &Plan,
    table: &TablePlan,
    source: &'p Source,
    litter: &mut Litter,
) -> Result<Option<WrittenSource<'p>>, FlushError> {
    let (read, directories) = (transaction.read(), transaction.directories());
    let version = source.schema_version;
    let rows = flushable_rows(read, &directories, table.table_id, version, plan.until).await;
    let rows = rows.map_err(|error| table.error(error))?;
    if rows.count() == 0 {
        return Ok(None);
    }
    let mut layout = table.layout(source, plan.encrypted)?;
    layout.encryption_key = plan.encrypted.then(new_key).transpose()?;
    let key = layout.encryption_key.clone();
    let place = DataFiles::open(&table.folder.parse::<StoreUrl>()?)?;
    let mut stream = DataFileStream::new(rows, layout).map_err(|error| table.error(error))?;
    let mut files = Vec::new();
    loop {
        let spool = Spool::new()?;
        let flushed = stream.next_file(read, spool.writer()).await;
        let Some(mut flushed) = flushed.map_err(|error| table.error(error))? else {
            break;
        };
        let path = format!("{}ducklake-{}.parquet", flushed.folder, uuid::Uuid::new_v4());
        litter.note(&table.folder, &path);
        place.put(&path, &mut spool.reader()?).await?;
        let ended = std::mem::take(&mut flushed.ended);
        let delete_file = if ended.is_empty() {
            None
        } else {
            let full_path = format!("{}{path}", table.folder);
            Some(put_delete_file(table, &place, &full_path, &ended, key.as_deref(), litter).await?)
        };
        files.push(WrittenFile {
            path,
            flushed,
            delete_file,
        });
    }
    Ok(Some(WrittenSource {
        source,
        files,
        rows: stream.written().clone(),
        encryption_key: key,
    }))
}

/// Writes the delete file of rows at positions of a data file, given with the snapshots that end them.
pub(super) async fn put_delete_file(
    table: &TablePlan,
    place: &DataFiles,
    data_file_path: &str,
    ended: &[(u64, u64)],
    key: Option<&[u8]>,
    litter: &mut Litter,
) -> Result<WrittenDeleteFile, FlushError> {
    let spool = Spool::new()?;
    let lengths = write_delete_file(data_file_path, ended, key, spool.writer());
    let (file_bytes, footer_bytes) = lengths.map_err(|error| table.error(error))?;
    let path = format!("ducklake-{}-delete.parquet", uuid::Uuid::new_v4());
    litter.note(&table.folder, &path);
    place.put(&path, &mut spool.reader()?).await?;
    Ok(WrittenDeleteFile {
        path,
        file_bytes,
        footer_bytes,
        count: ended.len() as u64,
        begin_snapshot: ended.iter().map(|(_, end)| *end).min().unwrap_or_default(),
    })
}

/// A key of an encrypted lake's files.
pub(super) fn new_key() -> Result<Vec<u8>, FlushError> {
    let mut key = vec![0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(|error| FlushError::Randomness {
        detail: error.to_string(),
    })?;
    Ok(key)
}

/// A file on its way: Parquet is written to a temporary file first, because its length is known at its end only. It has no name, and
/// is gone with this.
struct Spool(File);

impl Spool {
    fn new() -> Result<Self, FlushError> {
        tempfile::tempfile()
            .map(Self)
            .map_err(|source| FlushError::Spool { source })
    }

    fn writer(&self) -> BufWriter<&File> {
        BufWriter::new(&self.0)
    }

    fn reader(&self) -> Result<BufReader<&File>, FlushError> {
        let mut file = &self.0;
        let ready = file.flush().and_then(|()| file.rewind());
        ready.map_err(|source| FlushError::Spool { source })?;
        Ok(BufReader::new(file))
    }
}
