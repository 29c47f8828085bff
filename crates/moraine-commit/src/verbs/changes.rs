//! What a transaction has changed so far, as DuckLake will say it in `changes_made`, in DuckLake's order.

use std::collections::{BTreeMap, BTreeSet};

use crate::changes_made::{ChangeEntry, ChangesMade, QualifiedName};

/// What a transaction has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Schemas dropped: their names by id.
    pub(crate) dropped_schemas: BTreeMap<u64, String>,
    pub(crate) dropped_tables: BTreeSet<u64>,
    pub(crate) dropped_views: BTreeSet<u64>,
    pub(crate) dropped_scalar_macros: BTreeSet<u64>,
    pub(crate) dropped_table_macros: BTreeSet<u64>,
    /// Schemas created: their names by id.
    pub(crate) created_schemas: BTreeMap<u64, String>,
    /// Tables, views and macros created or renamed, by id. What was created here and then renamed has both names.
    pub(crate) created: BTreeMap<u64, Vec<Created>>,
    pub(crate) inserted: BTreeSet<u64>,
    /// Tables with deletions by files, and the data files.
    pub(crate) deleted: BTreeMap<u64, BTreeSet<u64>>,
    pub(crate) altered_tables: BTreeSet<u64>,
    pub(crate) altered_views: BTreeSet<u64>,
    pub(crate) inlined_inserts: BTreeSet<u64>,
    pub(crate) inlined_deletes: BTreeSet<u64>,
    pub(crate) inline_flushes: BTreeSet<u64>,
    pub(crate) merges: BTreeSet<u64>,
    pub(crate) rewrites: BTreeSet<u64>,
}

/// Something created within a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Created {
    pub(crate) kind: CreatedObject,
    pub(crate) schema_id: u64,
    pub(crate) name: QualifiedName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CreatedObject {
    Table,
    View,
    ScalarMacro,
    TableMacro,
}

impl Changes {
    /// Whether files were compacted; DuckLake commits nothing else with that.
    pub(crate) fn has_compaction(&self) -> bool {
        !self.merges.is_empty() || !self.rewrites.is_empty()
    }

    /// Notes a new name; of what came to be here the ones before stay.
    pub(crate) fn create(&mut self, id: u64, created: Created, is_new: bool) {
        let names = self.created.entry(id).or_default();
        if !is_new {
            names.clear();
        }
        names.push(created);
    }

    /// Forgets all that was done to a table; it has been dropped.
    pub(crate) fn forget_table(&mut self, table_id: u64) {
        self.created.remove(&table_id);
        self.deleted.remove(&table_id);
        for tables in [
            &mut self.inserted,
            &mut self.altered_tables,
            &mut self.inlined_inserts,
            &mut self.inlined_deletes,
            &mut self.inline_flushes,
            &mut self.merges,
            &mut self.rewrites,
        ] {
            tables.remove(&table_id);
        }
    }

    /// The entries of `changes_made`.
    pub(crate) fn made(&self) -> ChangesMade {
        use ChangeEntry as Entry;
        let mut entries = Vec::new();
        let mut add = |ids: &BTreeSet<u64>, entry: fn(u64) -> Entry| {
            entries.extend(ids.iter().map(|id| entry(*id)));
        };
        add(
            &self.dropped_schemas.keys().copied().collect(),
            Entry::DroppedSchema,
        );
        add(&self.dropped_tables, Entry::DroppedTable);
        add(&self.dropped_views, Entry::DroppedView);
        entries.extend(sorted(self.created_schemas.values()).map(Entry::CreatedSchema));
        for kinds in [
            &[CreatedObject::Table, CreatedObject::View][..],
            &[CreatedObject::ScalarMacro],
            &[CreatedObject::TableMacro],
        ] {
            entries.extend(self.created_entries(kinds));
        }
        let mut add = |ids: &BTreeSet<u64>, entry: fn(u64) -> Entry| {
            entries.extend(ids.iter().map(|id| entry(*id)));
        };
        add(&self.dropped_scalar_macros, Entry::DroppedScalarMacro);
        add(&self.dropped_table_macros, Entry::DroppedTableMacro);
        add(&self.inserted, Entry::InsertedIntoTable);
        add(&self.deleted.keys().copied().collect(), Entry::DeletedFromTable);
        add(&self.altered_tables, Entry::AlteredTable);
        add(&self.altered_views, Entry::AlteredView);
        add(&self.inlined_inserts, Entry::InlinedInsert);
        add(&self.inlined_deletes, Entry::InlinedDelete);
        add(&self.inline_flushes, Entry::InlineFlush);
        add(&self.merges, Entry::MergeAdjacent);
        add(&self.rewrites, Entry::RewriteDelete);
        ChangesMade { entries }
    }

    fn created_entries(&self, kinds: &[CreatedObject]) -> Vec<ChangeEntry> {
        let mut found: Vec<&Created> = self
            .created
            .values()
            .flatten()
            .filter(|created| kinds.contains(&created.kind))
            .collect();
        found.sort_by(|left, right| {
            let order = |created: &Created| (created.name.schema.clone(), created.name.name.clone());
            order(left).cmp(&order(right))
        });
        let entry = |created: &Created| {
            let name = created.name.clone();
            match created.kind {
                CreatedObject::Table => ChangeEntry::CreatedTable(name),
                CreatedObject::View => ChangeEntry::CreatedView(name),
                CreatedObject::ScalarMacro => ChangeEntry::CreatedScalarMacro(name),
                CreatedObject::TableMacro => ChangeEntry::CreatedTableMacro(name),
            }
        };
        found.into_iter().map(entry).collect()
    }
}

fn sorted<'a>(names: impl Iterator<Item = &'a String>) -> impl Iterator<Item = String> {
    let mut names: Vec<String> = names.cloned().collect();
    names.sort();
    names.into_iter()
}
