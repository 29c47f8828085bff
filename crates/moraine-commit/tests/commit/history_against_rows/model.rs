//! The model: the rows of a few `ducklake_*` tables, and what a client does to them. It knows nothing of records.

use std::collections::{BTreeMap, BTreeSet};

/// What a client does in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    CreateSchema,
    DropSchema,
    CreateTable,
    RenameTable,
    MoveTable,
    DropTable,
    ReviveTable,
    AddColumn,
    RenameColumn,
    DropColumn,
    AddFile,
    EndFile,
    CorrectFile,
    DeleteRows,
    MergeFile,
    Expire,
}

impl Action {
    pub const ALL: [Action; 16] = [
        Action::CreateSchema,
        Action::DropSchema,
        Action::CreateTable,
        Action::RenameTable,
        Action::MoveTable,
        Action::DropTable,
        Action::ReviveTable,
        Action::AddColumn,
        Action::RenameColumn,
        Action::DropColumn,
        Action::AddFile,
        Action::EndFile,
        Action::CorrectFile,
        Action::DeleteRows,
        Action::MergeFile,
        Action::Expire,
    ];
}

/// What a row is a row of, with the columns that tell it apart; ids are (table, own).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Id {
    Schema(u64),
    Table(u64),
    Column(u64, u64),
    DataFile(u64, u64),
    DeleteFile(u64, u64),
}

/// A row: its columns are the lifetime, a text (name or path) and a reference (schema of a table, target of a delete
/// file).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    pub id: Id,
    pub begin: u64,
    pub end: Option<u64>,
    pub text: String,
    pub reference: u64,
}

impl Row {
    pub fn is_visible_at(&self, snapshot: u64) -> bool {
        self.begin <= snapshot && self.end.is_none_or(|end| snapshot < end)
    }
}

/// One statement's worth of change to one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    Insert(Row),
    Update { old: Row, new: Row },
    Delete(Row),
}

/// All rows.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub rows: Vec<Row>,
    pub snapshots: BTreeSet<u64>,
    /// The greatest column id each table has ever had.
    pub greatest_columns: BTreeMap<u64, u64>,
    pub next_id: u64,
}

impl Model {
    pub fn live(&self, wanted: impl Fn(Id) -> bool) -> Vec<Row> {
        self.rows
            .iter()
            .filter(|row| row.end.is_none() && wanted(row.id))
            .cloned()
            .collect()
    }

    fn pick(&self, seed: u16, wanted: impl Fn(Id) -> bool) -> Option<Row> {
        let rows = self.live(wanted);
        (!rows.is_empty()).then(|| rows[usize::from(seed) % rows.len()].clone())
    }

    pub fn apply(&mut self, edit: &Edit) {
        match edit {
            Edit::Insert(row) => self.rows.push(row.clone()),
            Edit::Update { old, new } => {
                let row = self.rows.iter_mut().find(|row| *row == old).unwrap();
                row.clone_from(new);
            }
            Edit::Delete(row) => {
                let at = self.rows.iter().position(|found| found == row).unwrap();
                self.rows.remove(at);
            }
        }
    }

    /// Remembers the column ids that a commit leaves behind. What was taken back before it was never given.
    pub fn settle(&mut self) {
        for row in &self.rows {
            if let Id::Column(table, column) = row.id {
                let greatest = self.greatest_columns.entry(table).or_default();
                *greatest = column.max(*greatest);
            }
        }
    }

    fn next_column(&self, table: u64) -> u64 {
        let columns = self.rows.iter().filter_map(|row| match row.id {
            Id::Column(of, column) if of == table => Some(column),
            _ => None,
        });
        columns
            .chain(self.greatest_columns.get(&table).copied())
            .max()
            .map_or(1, |id| id + 1)
    }

    /// The edits of an action at a new snapshot; none where there is nothing to do it to.
    pub fn edits(&mut self, action: Action, snapshot: u64, left: u16, right: u16) -> Vec<Edit> {
        self.next_id += 1;
        let text = format!("n{}", right % 4);
        match action {
            Action::AddFile
            | Action::EndFile
            | Action::CorrectFile
            | Action::DeleteRows
            | Action::MergeFile
            | Action::Expire => self.file_edits(action, snapshot, left, &text),
            Action::AddColumn => self.in_table(left, |model, table| {
                let next = model.next_column(table) + u64::from(right % 3);
                vec![inserted(Id::Column(table, next), snapshot, text.clone(), 0)]
            }),
            Action::RenameColumn => versioned(self.pick(left, is_column), snapshot, |row| {
                row.text.clone_from(&text)
            }),
            Action::DropColumn => end_all(self.pick(left, is_column), snapshot),
            _ => self.table_edits(action, snapshot, left, right, text),
        }
    }

    fn table_edits(
        &mut self,
        action: Action,
        snapshot: u64,
        left: u16,
        right: u16,
        text: String,
    ) -> Vec<Edit> {
        let new_id = self.next_id;
        let schema = self.pick(right, is_schema).map_or(0, |row| match row.id {
            Id::Schema(id) => id,
            _ => 0,
        });
        match action {
            Action::CreateSchema => vec![inserted(Id::Schema(new_id), snapshot, text, 0)],
            Action::DropSchema => end_all(self.pick(left, is_schema), snapshot),
            Action::CreateTable => vec![
                inserted(Id::Table(new_id), snapshot, text, schema),
                inserted(Id::Column(new_id, 1), snapshot, "a".to_owned(), 0),
            ],
            Action::RenameTable => versioned(self.pick(left, is_table), snapshot, |row| {
                row.text.clone_from(&text)
            }),
            Action::MoveTable => versioned(self.pick(left, is_table), snapshot, |row| row.reference = schema),
            Action::DropTable => match self.pick(left, is_table) {
                Some(table) => self.drop_table(&table, snapshot),
                None => Vec::new(),
            },
            Action::ReviveTable => {
                let revived = self.revive(left, snapshot, schema);
                if let Some(Edit::Insert(Row {
                    id: Id::Table(table), ..
                })) = revived.first()
                {
                    // Its newest version may have expired, and its counter with it.
                    self.greatest_columns.remove(table);
                }
                revived
            }
            _ => Vec::new(),
        }
    }

    fn file_edits(&self, action: Action, snapshot: u64, left: u16, text: &str) -> Vec<Edit> {
        let new_id = self.next_id;
        match (action, self.pick(left, is_file)) {
            (Action::AddFile, _) => self.in_table(left, |_, table| {
                vec![inserted(
                    Id::DataFile(table, new_id),
                    snapshot,
                    text.to_owned(),
                    0,
                )]
            }),
            (Action::EndFile, file) => end_all(file, snapshot),
            (Action::CorrectFile, Some(old)) => {
                vec![Edit::Update {
                    new: Row {
                        text: format!("{}!", old.text),
                        ..old.clone()
                    },
                    old,
                }]
            }
            (Action::DeleteRows, Some(file)) => self.delete_rows(&file, new_id, snapshot),
            (Action::MergeFile, Some(file)) => self
                .files_and_deletes(&file)
                .into_iter()
                .map(Edit::Delete)
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The rows that no snapshot of `left` sees any more.
    pub fn dead_rows(&self, left: &BTreeSet<u64>) -> Vec<Edit> {
        let dead = |row: &&Row| {
            row.end
                .is_some_and(|end| left.range(row.begin..end).next().is_none())
        };
        self.rows.iter().filter(dead).cloned().map(Edit::Delete).collect()
    }

    fn in_table(&self, seed: u16, edits: impl Fn(&Model, u64) -> Vec<Edit>) -> Vec<Edit> {
        match self.pick(seed, |id| matches!(id, Id::Table(_))).map(|row| row.id) {
            Some(Id::Table(table)) => edits(self, table),
            _ => Vec::new(),
        }
    }

    /// Ends a table with everything in it.
    fn drop_table(&self, table: &Row, snapshot: u64) -> Vec<Edit> {
        let Id::Table(dropped) = table.id else {
            return Vec::new();
        };
        let inside = self.live(|id| match id {
            Id::Schema(_) => false,
            Id::Table(table) | Id::Column(table, _) | Id::DataFile(table, _) | Id::DeleteFile(table, _) => {
                table == dropped
            }
        });
        end_all(inside, snapshot)
    }

    /// A version of a table that had ended comes back under its id.
    fn revive(&self, seed: u16, snapshot: u64, schema: u64) -> Vec<Edit> {
        let is_live = |id: Id| self.rows.iter().any(|row| row.id == id && row.end.is_none());
        let ended: BTreeSet<Id> = self
            .rows
            .iter()
            .map(|row| row.id)
            .filter(|id| matches!(id, Id::Table(_)) && !is_live(*id))
            .collect();
        let Some(id) = ended.iter().nth(usize::from(seed) % ended.len().max(1)) else {
            return Vec::new();
        };
        let text = "revived".to_owned();
        vec![Edit::Insert(Row {
            id: *id,
            begin: snapshot,
            end: None,
            text,
            reference: schema,
        })]
    }

    /// A delete file for a data file, in place of the one it has.
    fn delete_rows(&self, data_file: &Row, new_id: u64, snapshot: u64) -> Vec<Edit> {
        let Id::DataFile(table, file) = data_file.id else {
            return Vec::new();
        };
        let before = self.live(|id| matches!(id, Id::DeleteFile(..)));
        let mut edits = end_all(before.into_iter().filter(|row| row.reference == file), snapshot);
        edits.push(inserted(
            Id::DeleteFile(table, new_id),
            snapshot,
            String::new(),
            file,
        ));
        edits
    }

    /// All versions of a file and of its delete files.
    fn files_and_deletes(&self, file: &Row) -> Vec<Row> {
        let Id::DataFile(_, data_file) = file.id else {
            return Vec::new();
        };
        let belongs = |row: &&Row| match row.id {
            Id::DeleteFile(..) => row.reference == data_file,
            id => id == file.id,
        };
        self.rows.iter().filter(belongs).cloned().collect()
    }
}

/// A change that ends a version and begins the next.
fn versioned(row: Option<Row>, snapshot: u64, change: impl Fn(&mut Row)) -> Vec<Edit> {
    let Some(old) = row else { return Vec::new() };
    let mut next = Row {
        begin: snapshot,
        ..old.clone()
    };
    change(&mut next);
    if old.begin == snapshot {
        // Twice in one transaction is one change to the client.
        return vec![Edit::Update { old, new: next }];
    }
    let ended = Row {
        end: Some(snapshot),
        ..old.clone()
    };
    vec![Edit::Update { old, new: ended }, Edit::Insert(next)]
}

/// Ends rows. What began in the same transaction was never there: the client takes it back instead.
fn end_all(rows: impl IntoIterator<Item = Row>, snapshot: u64) -> Vec<Edit> {
    let end = |old: Row| match old.begin == snapshot {
        true => Edit::Delete(old),
        false => Edit::Update {
            new: Row {
                end: Some(snapshot),
                ..old.clone()
            },
            old,
        },
    };
    rows.into_iter().map(end).collect()
}

fn inserted(id: Id, begin: u64, text: String, reference: u64) -> Edit {
    Edit::Insert(Row {
        id,
        begin,
        end: None,
        text,
        reference,
    })
}

fn is_schema(id: Id) -> bool {
    matches!(id, Id::Schema(_))
}

fn is_table(id: Id) -> bool {
    matches!(id, Id::Table(_))
}

fn is_column(id: Id) -> bool {
    matches!(id, Id::Column(..))
}

fn is_file(id: Id) -> bool {
    matches!(id, Id::DataFile(..))
}
