//! Which changes of two transactions exclude each other: DuckLake's conflict matrix (`CheckForConflicts` of its
//! extension), as pure functions over what one transaction is about to commit and what others have committed since its
//! snapshot. It is not symmetric: an insert cannot follow an alteration that it has not seen, an alteration can follow an
//! insert. Who is to be refused, tried again or shifted to the new head on a verdict is for the caller to say.

use std::collections::BTreeSet;
use std::fmt;

use moraine_codec::proto::SnapshotValue;
use moraine_keys::{LeadingId, SnapshotKey};
use moraine_store::{ReadError, ReadExt};

use crate::changes_made::{ChangeEntry, ChangesMade, QualifiedName};

/// One change of a transaction that wants to commit, with what its text in `changes_made` does not say and only the
/// transaction itself knows: ids of schemas, names of what it drops, files it deletes from. Ids are those of the catalog
/// tables; names compare without regard to case, as DuckLake's do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OwnChange {
    /// A schema dropped.
    DroppedSchema {
        /// Its id.
        schema_id: u64,
        /// Its name.
        name: String,
    },
    /// A table dropped, by id.
    DroppedTable(u64),
    /// A view dropped, by id.
    DroppedView(u64),
    /// A scalar macro dropped, by id.
    DroppedScalarMacro(u64),
    /// A table macro dropped, by id.
    DroppedTableMacro(u64),
    /// A schema created, by name.
    CreatedSchema(String),
    /// Anything created within a schema.
    Created {
        /// What it is.
        kind: CreatedKind,
        /// The id of the schema.
        schema_id: u64,
        /// Its name, with that of the schema.
        name: QualifiedName,
    },
    /// Rows inserted in files, by table id.
    InsertedIntoTable(u64),
    /// Rows inserted without a file, by table id.
    InlinedInsert(u64),
    /// Rows deleted by delete files or by ending whole files.
    DeletedFromTable {
        /// The table.
        table_id: u64,
        /// The data files they were deleted from; `None` where they are not known, which is taken as all of the table.
        data_file_ids: Option<BTreeSet<u64>>,
    },
    /// Rows deleted without a delete file, by table id.
    InlinedDelete(u64),
    /// Inlined rows flushed to files, by table id.
    InlineFlush(u64),
    /// Files merged, by table id.
    MergeAdjacent(u64),
    /// Files rewritten without their deleted rows, by table id.
    RewriteDelete(u64),
    /// A table altered, by id.
    AlteredTable(u64),
    /// A view altered, by id.
    AlteredView(u64),
    /// Something that this library does not know. It conflicts with everything.
    Unknown,
}

/// What is created within a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CreatedKind {
    /// A table.
    Table,
    /// A view. Tables and views share their names.
    View,
    /// A scalar macro.
    ScalarMacro,
    /// A table macro.
    TableMacro,
}

/// What others have committed since a snapshot, as far as conflicts go: one [`CommittedChanges`] for each snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangesSince {
    /// The commits, ascending by snapshot.
    pub commits: Vec<CommittedChanges>,
}

/// What one snapshot changed, as far as conflicts go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedChanges {
    /// The snapshot.
    pub snapshot_id: u64,
    /// The entries of its `changes_made`. A snapshot of which nothing is known any more has one that is unknown.
    pub changes: ChangesMade,
    /// The data files that its `deleted_from_table` entries are about; `None` where the record does not say, which is
    /// taken as all of those tables.
    pub deleted_data_file_ids: Option<BTreeSet<u64>>,
}

/// A change that a committed one excludes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{own} conflicts with snapshot {snapshot_id}, whose changes are {committed}")]
pub struct Conflict {
    /// The change that cannot be committed.
    pub own: OwnChange,
    /// The entry of `changes_made` that excludes it.
    pub committed: ChangeEntry,
    /// The snapshot that made it.
    pub snapshot_id: u64,
}

/// Whether a transaction with the changes `own` may commit on top of what was committed since its snapshot.
///
/// # Errors
/// The first [`Conflict`], by snapshot.
///
/// ```
/// use moraine_commit::ChangesMade;
/// use moraine_commit::conflicts::{ChangesSince, CommittedChanges, OwnChange, check};
/// let altered = CommittedChanges {
///     snapshot_id: 8,
///     changes: ChangesMade::parse("altered_table:1"),
///     deleted_data_file_ids: None,
/// };
/// let since = ChangesSince { commits: vec![altered] };
/// assert!(check(&[OwnChange::InsertedIntoTable(1)], &since).is_err());
/// assert!(check(&[OwnChange::InsertedIntoTable(2)], &since).is_ok());
/// ```
pub fn check(own: &[OwnChange], since: &ChangesSince) -> Result<(), Box<Conflict>> {
    for commit in &since.commits {
        for committed in &commit.changes.entries {
            let excluded = own
                .iter()
                .find(|own| excludes(own, committed, commit.deleted_data_file_ids.as_ref()));
            if let Some(own) = excluded {
                return Err(Box::new(Conflict {
                    own: own.clone(),
                    committed: committed.clone(),
                    snapshot_id: commit.snapshot_id,
                }));
            }
        }
    }
    Ok(())
}

/// What was committed after snapshot `premise`, up to snapshot `head`. A snapshot whose record is gone is one of which
/// nothing is known.
///
/// # Errors
/// See [`ReadError`].
pub async fn changes_since<R: ReadExt + ?Sized>(
    read: &R,
    premise: u64,
    head: u64,
) -> Result<ChangesSince, ReadError> {
    let mut since = ChangesSince::default();
    let first = premise.saturating_add(1);
    if first > head {
        return Ok(since);
    }
    let records = read
        .records::<SnapshotKey>(SnapshotKey::scan_ids(first..=head))
        .await?;
    let mut expected = first;
    for value in records.into_iter().map(|(_, value)| value) {
        if value.changes_only {
            continue;
        }
        if value.snapshot_id != expected {
            since.commits.push(CommittedChanges::unknown(expected));
        }
        since.commits.push(CommittedChanges::from(&value));
        expected = value.snapshot_id.saturating_add(1);
    }
    if expected <= head {
        since.commits.push(CommittedChanges::unknown(expected));
    }
    Ok(since)
}

/// DuckLake's matrix: whether `committed` excludes `own`. `files` are the data files that the commit's deletions are about.
fn excludes(own: &OwnChange, committed: &ChangeEntry, files: Option<&BTreeSet<u64>>) -> bool {
    use ChangeEntry as Other;
    if matches!(committed, Other::Unknown(_)) || matches!(own, OwnChange::Unknown) {
        return true;
    }
    match own {
        OwnChange::DroppedTable(id) => matches!(committed, Other::DroppedTable(other) if other == id),
        OwnChange::DroppedView(id) => matches!(committed, Other::DroppedView(other) if other == id),
        OwnChange::DroppedScalarMacro(id) => {
            matches!(committed, Other::DroppedScalarMacro(other) if other == id)
        }
        OwnChange::DroppedTableMacro(id) => {
            matches!(committed, Other::DroppedTableMacro(other) if other == id)
        }
        OwnChange::DroppedSchema { schema_id, name } => match committed {
            Other::DroppedSchema(other) => other == schema_id,
            Other::CreatedTable(other) | Other::CreatedView(other) => same(&other.schema, name),
            _ => false,
        },
        OwnChange::CreatedSchema(name) => {
            matches!(committed, Other::CreatedSchema(other) if same(other, name))
        }
        OwnChange::Created {
            kind,
            schema_id,
            name,
        } => excludes_created(*kind, *schema_id, name, committed),
        OwnChange::AlteredView(id) => matches!(committed, Other::AlteredView(other) if other == id),
        of_table => {
            let table = of_table.table_id();
            table.is_some() && table == table_of(committed) && excludes_on_table(of_table, committed, files)
        }
    }
}

fn excludes_created(
    kind: CreatedKind,
    schema_id: u64,
    name: &QualifiedName,
    committed: &ChangeEntry,
) -> bool {
    use ChangeEntry as Other;
    match (kind, committed) {
        (_, Other::DroppedSchema(other)) => *other == schema_id,
        (CreatedKind::Table | CreatedKind::View, Other::CreatedTable(other) | Other::CreatedView(other))
        | (CreatedKind::ScalarMacro, Other::CreatedScalarMacro(other))
        | (CreatedKind::TableMacro, Other::CreatedTableMacro(other)) => {
            same(&other.schema, &name.schema) && same(&other.name, &name.name)
        }
        _ => false,
    }
}

/// Two changes of one table.
fn excludes_on_table(own: &OwnChange, committed: &ChangeEntry, files: Option<&BTreeSet<u64>>) -> bool {
    use ChangeEntry as Other;
    if matches!(committed, Other::DroppedTable(_)) {
        return true;
    }
    match own {
        OwnChange::InsertedIntoTable(_) | OwnChange::InlinedInsert(_) => matches!(
            committed,
            Other::AlteredTable(_) | Other::DeletedFromTable(_) | Other::InlinedDelete(_)
        ),
        OwnChange::DeletedFromTable { data_file_ids, .. } => match committed {
            Other::DeletedFromTable(_) => match (data_file_ids, files) {
                (Some(own), Some(others)) => !own.is_disjoint(others),
                _ => true,
            },
            Other::AlteredTable(_)
            | Other::MergeAdjacent(_)
            | Other::RewriteDelete(_)
            | Other::CompactedTable(_)
            | Other::InsertedIntoTable(_)
            | Other::InlinedInsert(_) => true,
            _ => false,
        },
        OwnChange::InlinedDelete(_) => matches!(
            committed,
            Other::AlteredTable(_)
                | Other::InlinedDelete(_)
                | Other::InlineFlush(_)
                | Other::InsertedIntoTable(_)
                | Other::InlinedInsert(_)
        ),
        OwnChange::InlineFlush(_) => matches!(committed, Other::InlinedDelete(_) | Other::InlineFlush(_)),
        OwnChange::MergeAdjacent(_) | OwnChange::RewriteDelete(_) => matches!(
            committed,
            Other::DeletedFromTable(_)
                | Other::MergeAdjacent(_)
                | Other::RewriteDelete(_)
                | Other::CompactedTable(_)
        ),
        OwnChange::AlteredTable(_) => matches!(committed, Other::AlteredTable(_)),
        _ => false,
    }
}

/// Names compare as DuckDB compares them: letters of ASCII without regard to case.
fn same(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right)
}

/// The table that an entry is about.
fn table_of(committed: &ChangeEntry) -> Option<u64> {
    use ChangeEntry as Other;
    match committed {
        Other::DroppedTable(id)
        | Other::InsertedIntoTable(id)
        | Other::DeletedFromTable(id)
        | Other::AlteredTable(id)
        | Other::InlinedInsert(id)
        | Other::InlinedDelete(id)
        | Other::InlineFlush(id)
        | Other::MergeAdjacent(id)
        | Other::RewriteDelete(id)
        | Other::CompactedTable(id) => Some(*id),
        _ => None,
    }
}

impl OwnChange {
    /// The table whose rows, files or columns the change is about.
    #[must_use]
    pub fn table_id(&self) -> Option<u64> {
        match self {
            OwnChange::DroppedTable(id)
            | OwnChange::InsertedIntoTable(id)
            | OwnChange::InlinedInsert(id)
            | OwnChange::DeletedFromTable { table_id: id, .. }
            | OwnChange::InlinedDelete(id)
            | OwnChange::InlineFlush(id)
            | OwnChange::MergeAdjacent(id)
            | OwnChange::RewriteDelete(id)
            | OwnChange::AlteredTable(id) => Some(*id),
            _ => None,
        }
    }
}

impl CommittedChanges {
    /// A snapshot of which nothing is known but that it was there.
    #[must_use]
    pub fn unknown(snapshot_id: u64) -> Self {
        let entry = ChangeEntry::Unknown("changes that are not known any more".to_owned());
        CommittedChanges {
            snapshot_id,
            changes: ChangesMade { entries: vec![entry] },
            deleted_data_file_ids: None,
        }
    }
}

impl From<&SnapshotValue> for CommittedChanges {
    fn from(value: &SnapshotValue) -> Self {
        let files: BTreeSet<u64> = value.deleted_data_file_ids.iter().copied().collect();
        // A record of an earlier writer has neither files nor the flag: it does not say either.
        let says = !value.deletes_untargeted_files && !files.is_empty();
        CommittedChanges {
            snapshot_id: value.snapshot_id,
            changes: ChangesMade::parse(&value.changes_made),
            deleted_data_file_ids: says.then_some(files),
        }
    }
}

impl fmt::Display for OwnChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OwnChange::DroppedSchema { name, .. } => write!(f, "dropping schema {name:?}"),
            OwnChange::DroppedTable(id) => write!(f, "dropping table {id}"),
            OwnChange::DroppedView(id) => write!(f, "dropping view {id}"),
            OwnChange::DroppedScalarMacro(id) | OwnChange::DroppedTableMacro(id) => {
                write!(f, "dropping macro {id}")
            }
            OwnChange::CreatedSchema(name) => write!(f, "creating schema {name:?}"),
            OwnChange::Created { name, .. } => write!(f, "creating {name}"),
            OwnChange::InsertedIntoTable(id) | OwnChange::InlinedInsert(id) => {
                write!(f, "inserting into table {id}")
            }
            OwnChange::DeletedFromTable { table_id: id, .. } | OwnChange::InlinedDelete(id) => {
                write!(f, "deleting from table {id}")
            }
            OwnChange::InlineFlush(id) => write!(f, "flushing the inlined rows of table {id}"),
            OwnChange::MergeAdjacent(id) | OwnChange::RewriteDelete(id) => write!(f, "compacting table {id}"),
            OwnChange::AlteredTable(id) => write!(f, "altering table {id}"),
            OwnChange::AlteredView(id) => write!(f, "altering view {id}"),
            OwnChange::Unknown => f.write_str("a change that is not known"),
        }
    }
}
