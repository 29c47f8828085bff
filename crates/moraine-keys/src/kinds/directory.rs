//! Kinds of subspaces `name` and `delete_target`: directories of what is live, kept in step with `current` by every
//! commit.

use crate::key::Key;
use crate::kind::{TableChild, kind, prefix_before_last_id, prefix_with_ids, table_scoped};
use crate::range::KeyRange;

kind! {
    /// A live schema or table by its name. Since format 11.
    ///
    /// One name may have several entries; a lookup takes the greatest entity id whose record is live.
    NameKey, "name", {
        /// [`NameKey::SCHEMA`] or [`NameKey::TABLE`].
        kind: u64,
        /// The schema of a table; 0 for schemas.
        parent_id: u64,
        /// The name, exactly as written.
        name: String,
        /// The schema or table.
        entity_id: u64,
    }, key => Key::Name(key)
}

kind! {
    /// A live delete file by its data file. Since format 12.
    DeleteTargetKey, "delete_target", {
        /// The table.
        table_id: u64,
        /// The data file that rows are deleted from.
        data_file_id: u64,
        /// The delete file.
        delete_file_id: u64,
    }, key => Key::DeleteTarget(key)
}

table_scoped!(DeleteTargetKey.data_file_id);

impl NameKey {
    /// Kind of the entries of schemas.
    pub const SCHEMA: u64 = 0;
    /// Kind of the entries of tables.
    pub const TABLE: u64 = 1;

    /// The entry of a schema.
    #[must_use]
    pub fn schema(name: &str, schema_id: u64) -> Self {
        Self {
            kind: Self::SCHEMA,
            parent_id: 0,
            name: name.to_owned(),
            entity_id: schema_id,
        }
    }

    /// The entry of a table.
    #[must_use]
    pub fn table(schema_id: u64, name: &str, table_id: u64) -> Self {
        Self {
            kind: Self::TABLE,
            parent_id: schema_id,
            name: name.to_owned(),
            entity_id: table_id,
        }
    }

    /// All entries of exactly this name, by entity id.
    #[must_use]
    pub fn scan_exact(kind: u64, parent_id: u64, name: &str) -> KeyRange {
        let least = Self {
            kind,
            parent_id,
            name: name.to_owned(),
            entity_id: 0,
        };
        KeyRange::prefix(&prefix_before_last_id(&least))
    }

    /// All entries of one kind below one parent, by name.
    #[must_use]
    pub fn scan_parent(kind: u64, parent_id: u64) -> KeyRange {
        let least = Self {
            kind,
            parent_id,
            ..Self::default()
        };
        KeyRange::prefix(&prefix_with_ids(&least, 2))
    }
}

impl DeleteTargetKey {
    /// The delete files of one data file.
    #[must_use]
    pub fn scan_file(table_id: u64, data_file_id: u64) -> KeyRange {
        Self::scan_table_ids(table_id, data_file_id..=data_file_id)
    }
}
