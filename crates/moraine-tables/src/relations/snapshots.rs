//! `ducklake_snapshot` and `ducklake_snapshot_changes`: two relations on one record. Within the transaction that writes or
//! removes a snapshot the two rows come and go one by one. A row of changes whose snapshot does not exist has a record of
//! its own, which says so.

use moraine_codec::proto::SnapshotValue;
use moraine_commit::{CatalogTransaction, Change, SnapshotChanges};
use moraine_keys::{Kind, SnapshotKey};
use moraine_store::ReadExt;

use crate::cell::{CellError, record_cells, show_id, show_text, take_key, take_text};
use crate::error::TableError;
use crate::filter::CompiledFilter;
use crate::plan::{KeyIds, RecordSource, leading_plan};
use crate::relation::Relation;
use crate::relations::{KeyColumns, Order, RecordRelation, plain_relation, records};
use crate::row::{Place, Row, RowAddress};
use crate::scan::{RowStream, SCAN_BATCH_ROWS};
use crate::value::Value;

/// `ducklake_snapshot`
pub(crate) struct Snapshots;

impl RecordRelation for Snapshots {
    const RELATION: Relation = Relation::Snapshot;
    const KEY_COLUMNS: KeyColumns = [Some(0), None, None];
    const IN_KEY_ORDER: bool = true;

    plain_relation!(leading_plan, SnapshotKey { snapshot_id }, SnapshotValue);

    record_cells!(SnapshotValue {
        0: key(snapshot_id),
        1: micros(snapshot_time_micros, 2),
        2: id(schema_version, 3),
        3: id(next_catalog_id, 4),
        4: id(next_file_id, 5),
    });

    fn is_row(record: &Self::Record) -> bool {
        !record.changes_only
    }

    fn order(record: &Self::Record) -> Order {
        [record.snapshot_id, 0, 0]
    }
}

/// Inserts rows of `ducklake_snapshot`; the first takes the lake's commit slot, a second is refused.
pub(crate) async fn insert(tx: &mut CatalogTransaction, rows: &[Vec<Value>]) -> Result<u64, TableError> {
    for row in rows {
        let record = records::build::<Snapshots>(row)?;
        let key = SnapshotKey {
            snapshot_id: record.snapshot_id,
        };
        // An older id is a lost race, which is the commit's to refuse; the newest one seen here is a plain duplicate.
        if tx
            .inserted_snapshot()
            .is_some_and(|own| own.snapshot_id == record.snapshot_id)
        {
            return Err(TableError::Duplicate {
                relation: Relation::Snapshot,
                key: key.to_string(),
            });
        }
        tx.insert_snapshot(record).await?;
    }
    Ok(rows.len() as u64)
}

const CHANGES: Relation = Relation::SnapshotChanges;

fn changes_cell(record: &SnapshotValue, column: usize) -> Result<Value, CellError> {
    use crate::cell::read_cell;
    match column {
        0 => read_cell!(record, key, snapshot_id),
        1 => read_cell!(record, text, changes_made, 7),
        2 => read_cell!(record, opt_text, author),
        3 => read_cell!(record, opt_text, commit_message),
        4 => read_cell!(record, opt_text, commit_extra_info),
        _ => Err(CellError::NoColumn),
    }
}

fn own_changes_cell(changes: &SnapshotChanges, column: usize) -> Result<Value, CellError> {
    let text = |text: &Option<String>| text.as_deref().map_or(Value::Null, show_text);
    match column {
        0 => show_id(changes.snapshot_id),
        1 => Ok(text(&changes.changes_made)),
        2 => Ok(text(&changes.author)),
        3 => Ok(text(&changes.commit_message)),
        4 => Ok(text(&changes.commit_extra_info)),
        _ => Err(CellError::NoColumn),
    }
}

/// The rows of `ducklake_snapshot_changes`, by snapshot. The transaction's own row is served as it was inserted.
pub(crate) struct ChangesStream<'a> {
    tx: &'a CatalogTransaction,
    source: RecordSource<SnapshotKey>,
    own: Option<Row>,
    filter: CompiledFilter,
    projection: Vec<usize>,
}

impl<'a> ChangesStream<'a> {
    pub(crate) fn new(
        tx: &'a CatalogTransaction,
        filter: CompiledFilter,
        projection: &[usize],
    ) -> Result<Self, TableError> {
        let source = RecordSource::new(leading_plan(&KeyIds::of(&filter, [Some(0), None, None])));
        let projection = projection.to_vec();
        let own = match tx.inserted_snapshot_changes() {
            Some(changes) => changes_row(&filter, &projection, changes.snapshot_id, |column| {
                own_changes_cell(changes, column)
            })?,
            None => None,
        };
        Ok(Self {
            tx,
            source,
            own,
            filter,
            projection,
        })
    }

    /// Whether the record stands for a row of its own here.
    fn serves(&self, snapshot_id: u64) -> bool {
        let own = self
            .tx
            .inserted_snapshot()
            .is_some_and(|own| own.snapshot_id == snapshot_id)
            || self
                .tx
                .inserted_snapshot_changes()
                .is_some_and(|own| own.snapshot_id == snapshot_id);
        !own && !self.tx.removed_snapshot_changes().contains(&snapshot_id)
    }
}

fn changes_row(
    filter: &CompiledFilter,
    projection: &[usize],
    snapshot_id: u64,
    get: impl Fn(usize) -> Result<Value, CellError>,
) -> Result<Option<Row>, TableError> {
    let get = |column| get(column).map_err(|error| error.at(CHANGES, column));
    let address = RowAddress(Place::Record(SnapshotKey { snapshot_id }.to_key()));
    if filter
        .addresses()
        .is_some_and(|addresses| !addresses.contains(&address))
        || !filter.matches(get)?
    {
        return Ok(None);
    }
    let values = projection
        .iter()
        .map(|column| get(*column))
        .collect::<Result<_, _>>()?;
    Ok(Some(Row { values, address }))
}

#[async_trait::async_trait]
impl RowStream for ChangesStream<'_> {
    async fn next_batch(&mut self) -> Result<Option<Vec<Row>>, TableError> {
        let mut rows = Vec::new();
        while rows.len() < SCAN_BATCH_ROWS {
            let Some((key, record)) = self.source.next(self.tx.read()).await? else {
                // The transaction's own snapshot is newer than all it sees.
                rows.extend(self.own.take());
                break;
            };
            if self.serves(key.snapshot_id) {
                let get = |column| changes_cell(&record, column);
                rows.extend(changes_row(&self.filter, &self.projection, key.snapshot_id, get)?);
            }
        }
        Ok((!rows.is_empty()).then_some(rows))
    }
}

/// Inserts rows of `ducklake_snapshot_changes`; a second one in a transaction is refused.
pub(crate) async fn insert_changes(
    tx: &mut CatalogTransaction,
    rows: &[Vec<Value>],
) -> Result<u64, TableError> {
    for row in rows {
        let text = |column: usize| {
            take_text(row.get(column).unwrap_or(&Value::Null)).map_err(|error| error.at(CHANGES, column))
        };
        let snapshot_id =
            take_key(row.first().unwrap_or(&Value::Null)).map_err(|error| error.at(CHANGES, 0))?;
        if has_changes(tx, snapshot_id).await? {
            return Err(TableError::Duplicate {
                relation: CHANGES,
                key: SnapshotKey { snapshot_id }.to_string(),
            });
        }
        tx.set_snapshot_changes(SnapshotChanges {
            snapshot_id,
            changes_made: text(1)?,
            author: text(2)?,
            commit_message: text(3)?,
            commit_extra_info: text(4)?,
        })
        .await?;
    }
    Ok(rows.len() as u64)
}

/// Whether there is a row of `ducklake_snapshot_changes` for the snapshot.
async fn has_changes(tx: &CatalogTransaction, snapshot_id: u64) -> Result<bool, TableError> {
    let inserted = tx.inserted_snapshot_changes();
    if inserted.is_some_and(|own| own.snapshot_id == snapshot_id) {
        return Ok(true);
    }
    let is_own = |own: &SnapshotValue| own.snapshot_id == snapshot_id;
    if tx.inserted_snapshot().is_some_and(is_own) || tx.removed_snapshot_changes().contains(&snapshot_id) {
        return Ok(false);
    }
    Ok(tx.read().value(&SnapshotKey { snapshot_id }).await?.is_some())
}

/// Deletes rows of `ducklake_snapshot_changes`; their snapshots, where there are any, must go in the same transaction.
pub(crate) async fn delete_changes(
    tx: &mut CatalogTransaction,
    rows: &[RowAddress],
) -> Result<u64, TableError> {
    let mut removed = 0;
    for address in rows {
        let Some(Ok(key)) = address.record_key().map(|key| SnapshotKey::from_key(key.clone())) else {
            continue;
        };
        if tx
            .inserted_snapshot_changes()
            .is_some_and(|own| own.snapshot_id == key.snapshot_id)
        {
            let detail =
                "the row was inserted by this transaction; roll back instead of deleting it".to_owned();
            return Err(TableError::Unsupported {
                relation: CHANGES,
                detail,
            });
        }
        if tx.removed_snapshot_changes().contains(&key.snapshot_id) {
            continue;
        }
        let Some(record) = tx.read().value(&key).await? else {
            continue;
        };
        if record.changes_only {
            tx.stage(vec![Change::Remove { key: key.to_key() }]).await?;
        } else {
            tx.remove_snapshot_changes(key.snapshot_id);
        }
        removed += 1;
    }
    Ok(removed)
}

/// The refusal of an update of `ducklake_snapshot_changes`.
pub(crate) fn update_refused() -> TableError {
    let detail = "what a snapshot changed is written once, with the snapshot".to_owned();
    TableError::Unsupported {
        relation: CHANGES,
        detail,
    }
}
