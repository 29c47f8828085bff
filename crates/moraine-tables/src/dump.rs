//! All rows of a relation, for whoever takes a lake elsewhere: the rows of one table after those of another, each in the order
//! in which DuckLake inserted them. Records of files are read as they are asked for, however many there are.

use async_trait::async_trait;
use moraine_commit::CatalogTransaction;
use moraine_store::Staging;

use crate::error::TableError;
use crate::filter::{CompiledFilter, Filter};
use crate::plan::{KeyIds, RecordSource};
use crate::relation::Relation;
use crate::relations::files::{DataFiles, DeleteFiles, FilePartitionValues};
use crate::relations::stats::FileVariantStats;
use crate::relations::{EmbeddedRelation, OwnerRecord, RecordRelation};
use crate::scan::{RowScan, SCAN_BATCH_ROWS};
use crate::schema::fixed_schema;
use crate::statements::{describe, scan};
use crate::value::Value;

/// Rows on their way out.
pub struct RowDump<'a> {
    stream: Box<dyn DumpStream + 'a>,
}

impl RowDump<'_> {
    /// The next rows, at least one, or `None` at the end.
    ///
    /// # Errors
    /// [`TableError::Read`] and [`TableError::Corrupt`]; the dump is over then.
    pub async fn next_batch(&mut self) -> Result<Option<Vec<Vec<Value>>>, TableError> {
        self.stream.next_batch().await
    }
}

impl std::fmt::Debug for RowDump<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RowDump").finish_non_exhaustive()
    }
}

#[async_trait]
trait DumpStream: Send {
    async fn next_batch(&mut self) -> Result<Option<Vec<Vec<Value>>>, TableError>;
}

/// Reads all rows of a relation, with all of its columns.
///
/// # Errors
/// [`TableError::Missing`], [`TableError::Read`], [`TableError::Corrupt`].
pub async fn dump(tx: &CatalogTransaction, relation: Relation) -> Result<RowDump<'_>, TableError> {
    let read = tx.read();
    let stream: Box<dyn DumpStream + '_> = match relation {
        Relation::DataFile => Box::new(Merged::<DataFiles>::new(read, record_rows::<DataFiles>)?),
        Relation::DeleteFile => Box::new(Merged::<DeleteFiles>::new(read, record_rows::<DeleteFiles>)?),
        Relation::FilePartitionValue => {
            let rows = embedded_rows::<FilePartitionValues>;
            Box::new(Merged::<DataFiles>::new(read, rows)?)
        }
        Relation::FileVariantStats => {
            let rows = embedded_rows::<FileVariantStats>;
            Box::new(Merged::<<FileVariantStats as EmbeddedRelation>::Owner>::new(
                read, rows,
            )?)
        }
        other => {
            let schema = describe(tx, other)
                .await?
                .ok_or(TableError::Missing { relation: other })?;
            let all: Vec<usize> = (0..schema.columns.len()).collect();
            Box::new(scan(tx, other, &all, &Filter::default()).await?)
        }
    };
    Ok(RowDump { stream })
}

#[async_trait]
impl DumpStream for RowScan<'_> {
    async fn next_batch(&mut self) -> Result<Option<Vec<Vec<Value>>>, TableError> {
        let batch = RowScan::next_batch(self).await?;
        Ok(batch.map(|rows| rows.into_iter().map(|row| row.values).collect()))
    }
}

/// Appends the rows that a record stands for.
type Unfold<R> = fn(&<R as RecordRelation>::Record, &mut Vec<Vec<Value>>) -> Result<(), TableError>;

/// The live and the ended records of a relation, merged by key.
struct Merged<'a, R: RecordRelation> {
    read: &'a Staging,
    live: RecordSource<R::Key>,
    past: Option<RecordSource<R::Past>>,
    next_live: Option<R::Record>,
    next_past: Option<R::Record>,
    is_started: bool,
    unfold: Unfold<R>,
}

impl<'a, R: RecordRelation> Merged<'a, R> {
    fn new(read: &'a Staging, unfold: Unfold<R>) -> Result<Self, TableError> {
        let schema = fixed_schema(R::RELATION).ok_or(TableError::Missing {
            relation: R::RELATION,
        })?;
        let filter = CompiledFilter::compile(R::RELATION, &schema, &Filter::default())?;
        let ids = KeyIds::of(&filter, R::KEY_COLUMNS);
        Ok(Self {
            read,
            live: RecordSource::new(R::plan(&ids)),
            past: R::past_plan(&ids).map(RecordSource::new),
            next_live: None,
            next_past: None,
            is_started: false,
            unfold,
        })
    }

    async fn advance_live(&mut self) -> Result<(), TableError> {
        self.next_live = self.live.next(self.read).await?.map(|(_, record)| record);
        Ok(())
    }

    async fn advance_past(&mut self) -> Result<(), TableError> {
        self.next_past = match &mut self.past {
            Some(past) => past.next(self.read).await?.map(|(_, record)| record),
            None => None,
        };
        Ok(())
    }

    /// The record that comes next: of one entity the ended versions come first.
    async fn next(&mut self) -> Result<Option<R::Record>, TableError> {
        if !self.is_started {
            self.is_started = true;
            self.advance_live().await?;
            self.advance_past().await?;
        }
        let is_past = match (&self.next_live, &self.next_past) {
            (Some(live), Some(past)) => R::key(past) <= R::key(live),
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if is_past {
            let record = self.next_past.take();
            self.advance_past().await?;
            return Ok(record);
        }
        let record = self.next_live.take();
        if record.is_some() {
            self.advance_live().await?;
        }
        Ok(record)
    }
}

#[async_trait]
impl<R: RecordRelation> DumpStream for Merged<'_, R> {
    async fn next_batch(&mut self) -> Result<Option<Vec<Vec<Value>>>, TableError> {
        let mut rows = Vec::new();
        while rows.len() < SCAN_BATCH_ROWS {
            let Some(record) = self.next().await? else {
                break;
            };
            (self.unfold)(&record, &mut rows)?;
        }
        Ok((!rows.is_empty()).then_some(rows))
    }
}

fn width(relation: Relation) -> usize {
    fixed_schema(relation).map_or(0, |schema| schema.columns.len())
}

fn record_rows<R: RecordRelation>(record: &R::Record, rows: &mut Vec<Vec<Value>>) -> Result<(), TableError> {
    let values = (0..width(R::RELATION))
        .map(|column| R::get(record, column).map_err(|error| error.at(R::RELATION, column)))
        .collect::<Result<_, _>>()?;
    rows.push(values);
    Ok(())
}

fn embedded_rows<E: EmbeddedRelation>(
    owner: &OwnerRecord<E>,
    rows: &mut Vec<Vec<Value>>,
) -> Result<(), TableError> {
    for (outer, child) in E::children(owner) {
        let values = (0..width(E::RELATION))
            .map(|column| E::get(owner, outer, child, column).map_err(|error| error.at(E::RELATION, column)))
            .collect::<Result<_, _>>()?;
        rows.push(values);
    }
    Ok(())
}
