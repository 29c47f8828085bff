//! Kinds that describe the store and its commits: subspaces `system`, `snapshot`, `schema_version`, `changelog`.

use crate::key::{Key, SystemKey};
use crate::kind::{kind, leading_id, table_scoped};

kind! {
    /// The format stamp.
    FormatKey, "system/format", {}, key => Key::System(SystemKey::Format(key))
}

kind! {
    /// The head: the record that every batch writes and every commit takes as its premise.
    HeadKey, "system/head", {}, key => Key::System(SystemKey::Head(key))
}

kind! {
    /// The marker of a migration under way.
    MigrationKey, "system/migration", {}, key => Key::System(SystemKey::Migration(key))
}

kind! {
    /// The log of the last maintenance passes.
    MaintenanceStatusKey, "system/maintenance_status", {}, key => Key::System(SystemKey::MaintenanceStatus(key))
}

kind! {
    /// A snapshot: a row of `ducklake_snapshot` together with its row of `ducklake_snapshot_changes`.
    SnapshotKey, "snapshot", {
        /// The snapshot.
        snapshot_id: u64,
    }, key => Key::Snapshot(key)
}

kind! {
    /// The schema version that a table has from a snapshot on: a row of `ducklake_schema_versions`.
    SchemaVersionKey, "schema_version", {
        /// The table.
        table_id: u64,
        /// The first snapshot with this schema version.
        begin_snapshot: u64,
    }, key => Key::SchemaVersion(key)
}

kind! {
    /// The keys of `current` that the commit of a snapshot wrote.
    ChangelogKey, "changelog", {
        /// The snapshot.
        snapshot_id: u64,
    }, key => Key::Changelog(key)
}

leading_id!(SnapshotKey.snapshot_id, ChangelogKey.snapshot_id);
table_scoped!(SchemaVersionKey.begin_snapshot);
