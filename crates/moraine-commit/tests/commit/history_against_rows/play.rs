//! Plays actions on the model and on the lake alike.

use std::collections::BTreeSet;
use std::sync::Arc;

use moraine_codec::Record;
use moraine_commit::{Catalog, Change, StageError};
use moraine_keys::{Kind, SnapshotKey};
use moraine_store::ReadExt;

use super::check;
use super::model::{Action, Edit, Id, Model, Row};
use crate::support::{self, head, lake};

pub struct Game {
    catalog: Arc<Catalog>,
    model: Model,
}

impl Game {
    pub async fn new() -> Self {
        let (catalog, _) = lake().await;
        let main = Row {
            id: Id::Schema(0),
            begin: 0,
            end: None,
            text: "main".to_owned(),
            reference: 0,
        };
        let model = Model {
            rows: vec![main],
            snapshots: BTreeSet::from([0]),
            ..Model::default()
        };
        Game { catalog, model }
    }

    /// One transaction on both, and the comparison of what it left.
    pub async fn play(&mut self, actions: &[(Action, u16, u16)], abandoned: bool) {
        if let Some((_, seed, count)) = actions.iter().find(|(action, _, _)| *action == Action::Expire) {
            return self.expire(*seed, *count).await;
        }
        let before = check::dump(&self.catalog).await;
        let stamp = head(&self.catalog).await;
        let snapshot = stamp.snapshot_id + 1;
        let mut model = self.model.clone();
        let mut transaction = support::begin_snapshot(&self.catalog, "").await;
        for (action, left, right) in actions {
            let edits = model.edits(*action, snapshot, *left, *right);
            edits.iter().for_each(|edit| model.apply(edit));
            // Some clients send a statement for each row, some one for all.
            if left % 2 == 0 {
                let staged = edits.iter().map(change).collect();
                transaction.stage(staged).await.unwrap();
            } else {
                for edit in &edits {
                    transaction.stage(vec![change(edit)]).await.unwrap();
                }
            }
            for edit in &edits {
                if let Edit::Insert(row) = edit {
                    let again = transaction.stage(vec![change(&Edit::Insert(row.clone()))]).await;
                    assert!(
                        matches!(again, Err(StageError::Duplicate { .. })),
                        "{row:?}: {again:?}"
                    );
                }
            }
        }
        check::rows_of(transaction.read(), &model).await;
        if abandoned {
            transaction.rollback();
            assert_eq!(check::dump(&self.catalog).await, before);
            return;
        }
        transaction.commit().await.unwrap();
        model.snapshots.insert(snapshot);
        model.settle();
        self.model = model;
        let after = head(&self.catalog).await;
        assert_eq!(
            (after.snapshot_id, after.batch_seq),
            (snapshot, stamp.batch_seq + 1)
        );
        check::changelog(&self.catalog, snapshot, &before).await;
        check::everything(&self.catalog, &self.model).await;
    }

    /// Expiry as DuckLake does it: some snapshots but the newest, and the rows no other snapshot sees.
    async fn expire(&mut self, seed: u16, count: u16) {
        let stamp = head(&self.catalog).await;
        let candidates: Vec<u64> = self
            .model
            .snapshots
            .iter()
            .copied()
            .filter(|id| *id != stamp.snapshot_id)
            .collect();
        let chosen: BTreeSet<u64> = candidates
            .iter()
            .copied()
            .filter(|id| (id.wrapping_mul(2_654_435_761) ^ u64::from(seed)) % 4 <= u64::from(count % 4))
            .collect();
        let left: BTreeSet<u64> = self.model.snapshots.difference(&chosen).copied().collect();
        let edits = self.model.dead_rows(&left);
        let mut changes: Vec<Change> = chosen
            .iter()
            .map(|id| support::remove(&SnapshotKey { snapshot_id: *id }))
            .collect();
        changes.extend(edits.iter().map(change));
        let staged = !changes.is_empty();
        let committed = support::maintain(&self.catalog, changes).await;
        assert_eq!(committed.snapshot_id, None);
        edits.iter().for_each(|edit| self.model.apply(edit));
        self.model.snapshots = left;
        let after = head(&self.catalog).await;
        let expected = (stamp.snapshot_id, stamp.batch_seq + u64::from(staged));
        assert_eq!((after.snapshot_id, after.batch_seq), expected);
        let snapshots = self.catalog.store().view().unwrap();
        let keys = snapshots.keys::<SnapshotKey>(SnapshotKey::scan()).await.unwrap();
        let ids: BTreeSet<u64> = keys.into_iter().map(|key| key.snapshot_id).collect();
        assert_eq!(ids, self.model.snapshots);
        check::everything(&self.catalog, &self.model).await;
    }
}

/// The edit as the change of a record.
fn change(edit: &Edit) -> Change {
    match edit {
        Edit::Insert(row) => Change::Insert(record(row)),
        Edit::Update { old, new } => Change::Replace {
            old: ended_record(old).key(),
            new: record(new),
        },
        Edit::Delete(row) => Change::Remove {
            key: ended_record(row).key(),
        },
    }
}

/// The record of a row, under its current key even if it has ended.
fn record(row: &Row) -> Record {
    match row.id {
        Id::Schema(id) => {
            let (key, mut value) = support::schema(id, row.begin, &row.text);
            value.end_snapshot = row.end;
            Record::Schema(key, value)
        }
        Id::Table(id) => {
            let (key, mut value) = support::table(id, row.begin, &row.text);
            value.end_snapshot = row.end;
            value.schema_id = row.reference;
            Record::Table(key, value)
        }
        Id::Column(table, id) => {
            let (key, mut value) = support::column(table, id, row.begin, &row.text);
            value.end_snapshot = row.end;
            Record::Column(key, value)
        }
        Id::DataFile(table, id) => {
            let (key, mut value) = support::data_file(table, id, row.begin);
            value.end_snapshot = row.end;
            value.path.clone_from(&row.text);
            Record::DataFile(key, value)
        }
        Id::DeleteFile(table, id) => {
            let (key, mut value) = support::delete_file(table, id, row.reference, row.begin);
            value.end_snapshot = row.end;
            Record::DeleteFile(key, value)
        }
    }
}

/// The record of a row where it lies.
fn ended_record(row: &Row) -> Record {
    use moraine_keys::History;
    match (record(row), row.end) {
        (Record::Schema(entity, value), Some(end_snapshot)) => {
            Record::HistorySchema(History { entity, end_snapshot }, value)
        }
        (Record::Table(entity, value), Some(end_snapshot)) => {
            Record::HistoryTable(History { entity, end_snapshot }, value)
        }
        (Record::Column(entity, value), Some(end_snapshot)) => {
            Record::HistoryColumn(History { entity, end_snapshot }, value)
        }
        (Record::DataFile(entity, value), Some(end_snapshot)) => {
            Record::HistoryDataFile(History { entity, end_snapshot }, value)
        }
        (Record::DeleteFile(entity, value), Some(end_snapshot)) => {
            Record::HistoryDeleteFile(History { entity, end_snapshot }, value)
        }
        (record, _) => record,
    }
}
