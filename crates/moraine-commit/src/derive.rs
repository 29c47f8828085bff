//! What a commit adds to the records that were staged, as pure functions from what a record was to what it is: the name
//! and delete-target directories, column counters, the changelog. Reading the pairs is [`crate::batch`]'s work.

use bytes::Bytes;
use moraine_codec::format;
use moraine_codec::proto::{ChangelogValue, DeleteFileValue, SchemaValue, TableValue};
use moraine_keys::{DeleteTargetKey, Key, Kind, NameKey, SchemaKey, TableKey};
use moraine_store::WriteSet;

/// One current record, before the transaction and after it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair<K, V> {
    pub(crate) key: K,
    pub(crate) old: Option<V>,
    pub(crate) new: Option<V>,
}

/// One change of a directory. Its values are empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry<K> {
    Add(K),
    Remove(K),
}

/// The changes of the name directory that a change of a schema brings.
pub(crate) fn schema_names(pair: &Pair<SchemaKey, SchemaValue>) -> Vec<Entry<NameKey>> {
    let entry = |value: &SchemaValue| NameKey::schema(&value.schema_name, pair.key.schema_id);
    moved(pair.old.as_ref().map(entry), pair.new.as_ref().map(entry))
}

/// The changes of the name directory that a change of a table brings.
pub(crate) fn table_names(pair: &Pair<TableKey, TableValue>) -> Vec<Entry<NameKey>> {
    let entry = |value: &TableValue| NameKey::table(value.schema_id, &value.table_name, pair.key.table_id);
    moved(pair.old.as_ref().map(entry), pair.new.as_ref().map(entry))
}

/// The changes of the delete-target directory that a change of a delete file brings.
pub(crate) fn delete_targets(
    pair: &Pair<moraine_keys::DeleteFileKey, DeleteFileValue>,
) -> Vec<Entry<DeleteTargetKey>> {
    let entry = |value: &DeleteFileValue| DeleteTargetKey {
        table_id: pair.key.table_id,
        data_file_id: value.data_file_id,
        delete_file_id: pair.key.delete_file_id,
    };
    moved(pair.old.as_ref().map(entry), pair.new.as_ref().map(entry))
}

fn moved<K: PartialEq>(old: Option<K>, new: Option<K>) -> Vec<Entry<K>> {
    if old == new {
        return Vec::new();
    }
    let removed = old.map(Entry::Remove);
    removed.into_iter().chain(new.map(Entry::Add)).collect()
}

/// The counter of a table: above every column id it has ever had, so that none is given twice. A dropped column is
/// remembered by the counters alone once its history has expired.
pub(crate) fn next_column_id(counter: u64, greatest_column_id: Option<u64>) -> u64 {
    counter.max(greatest_column_id.map_or(1, |id| id.saturating_add(1)))
}

/// The changelog record of a batch: the keys of `current` it writes. `None` where they are too many; readers then read
/// the catalog anew.
pub(crate) fn changelog(writes: &WriteSet) -> Option<ChangelogValue> {
    let current = moraine_keys::Subspace::Current.scan();
    let keys: Vec<Bytes> = writes.range(&current).map(|(key, _)| key.clone()).collect();
    (keys.len() <= format::CHANGELOG_KEYS_MAX).then_some(ChangelogValue { keys })
}

/// The key in words, for errors.
pub(crate) fn name_of(key: &[u8]) -> String {
    Key::decode(key).map_or_else(|error| error.to_string(), |key| key.to_string())
}

impl<K: Kind> Entry<K> {
    /// The change as a write of raw bytes.
    pub(crate) fn into_write(self) -> (Bytes, Option<Bytes>) {
        match self {
            Entry::Add(key) => (key.encode(), Some(Bytes::new())),
            Entry::Remove(key) => (key.encode(), None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Pair, next_column_id, table_names};
    use moraine_codec::proto::TableValue;
    use moraine_keys::{NameKey, TableKey};

    fn table(schema_id: u64, name: &str) -> TableValue {
        TableValue {
            table_id: 7,
            schema_id,
            table_name: name.to_owned(),
            ..TableValue::default()
        }
    }

    fn changes(old: Option<TableValue>, new: Option<TableValue>) -> Vec<Entry<NameKey>> {
        table_names(&Pair {
            key: TableKey { table_id: 7 },
            old,
            new,
        })
    }

    #[test]
    fn a_table_has_an_entry_while_it_lives_and_only_under_its_name() {
        let old = NameKey::table(1, "a", 7);
        let new = NameKey::table(2, "b", 7);
        assert_eq!(changes(None, Some(table(1, "a"))), [Entry::Add(old.clone())]);
        assert_eq!(changes(Some(table(1, "a")), None), [Entry::Remove(old.clone())]);
        assert_eq!(
            changes(Some(table(1, "a")), Some(table(2, "b"))),
            [Entry::Remove(old), Entry::Add(new)]
        );
        assert_eq!(changes(Some(table(1, "a")), Some(table(1, "a"))), []);
    }

    #[test]
    fn column_ids_are_counted_up_and_never_back() {
        assert_eq!(next_column_id(0, None), 1);
        assert_eq!(next_column_id(0, Some(4)), 5);
        assert_eq!(next_column_id(9, Some(4)), 9);
    }
}
