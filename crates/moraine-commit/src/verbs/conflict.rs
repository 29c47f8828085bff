//! Whether a commit conflicts with what was committed after the snapshot it was worked out from: DuckLake's matrix
//! ([`crate::conflicts`]), asked with what the verbs know of their changes.

use std::collections::BTreeSet;

use moraine_store::Staging;

use crate::conflicts::{self, CreatedKind, OwnChange};
use crate::verbs::changes::{Changes, Created, CreatedObject};
use crate::verbs::error::{CommitError, VerbError};

/// Refuses changes that conflict with a snapshot after `based_on`, up to `head`.
pub(crate) async fn check(
    read: &Staging,
    based_on: u64,
    head: u64,
    changes: &Changes,
) -> Result<(), CommitError> {
    if based_on > head {
        return Err(CommitError::Refused(VerbError::refused(format!(
            "a commit cannot be based on snapshot {based_on}; the newest is {head}"
        ))));
    }
    let since = conflicts::changes_since(read, based_on, head).await;
    let since = since.map_err(VerbError::from)?;
    conflicts::check(&own_changes(changes), &since).map_err(|conflict| CommitError::Conflicted {
        detail: conflict.to_string(),
    })
}

/// The change of a table or view of an id.
type OfTable = fn(u64) -> OwnChange;

fn own_changes(changes: &Changes) -> Vec<OwnChange> {
    let mut own = Vec::new();
    let dropped = changes.dropped_schemas.iter();
    own.extend(dropped.map(|(schema_id, name)| OwnChange::DroppedSchema {
        schema_id: *schema_id,
        name: name.clone(),
    }));
    own.extend(
        changes
            .created_schemas
            .values()
            .cloned()
            .map(OwnChange::CreatedSchema),
    );
    own.extend(changes.created.values().flatten().map(created));
    let deleted = changes.deleted.iter();
    own.extend(deleted.map(|(table_id, files)| OwnChange::DeletedFromTable {
        table_id: *table_id,
        data_file_ids: Some(files.clone()),
    }));
    let by_id: [(&BTreeSet<u64>, OfTable); 12] = [
        (&changes.dropped_tables, OwnChange::DroppedTable),
        (&changes.dropped_views, OwnChange::DroppedView),
        (&changes.dropped_scalar_macros, OwnChange::DroppedScalarMacro),
        (&changes.dropped_table_macros, OwnChange::DroppedTableMacro),
        (&changes.inserted, OwnChange::InsertedIntoTable),
        (&changes.inlined_inserts, OwnChange::InlinedInsert),
        (&changes.inlined_deletes, OwnChange::InlinedDelete),
        (&changes.inline_flushes, OwnChange::InlineFlush),
        (&changes.merges, OwnChange::MergeAdjacent),
        (&changes.rewrites, OwnChange::RewriteDelete),
        (&changes.altered_tables, OwnChange::AlteredTable),
        (&changes.altered_views, OwnChange::AlteredView),
    ];
    for (ids, change) in by_id {
        own.extend(ids.iter().map(|id| change(*id)));
    }
    own
}

fn created(created: &Created) -> OwnChange {
    let kind = match created.kind {
        CreatedObject::Table => CreatedKind::Table,
        CreatedObject::View => CreatedKind::View,
        CreatedObject::ScalarMacro => CreatedKind::ScalarMacro,
        CreatedObject::TableMacro => CreatedKind::TableMacro,
    };
    OwnChange::Created {
        kind,
        schema_id: created.schema_id,
        name: created.name.clone(),
    }
}
