//! Verbs of columns, and of the fields of nested ones. Every change ends a version and begins another under the same id,
//! so files written before go on being read by id.

use moraine_codec::Record;
use moraine_codec::proto::ColumnValue;
use moraine_keys::{ColumnKey, TableColumnStatsKey};
use moraine_store::ReadExt;

use crate::change::Change;
use crate::lake::entities::{DUCKDB, EXPRESSION, LITERAL, NO_DEFAULT, same_name};
use crate::lake::{ColumnDefault, ColumnType};
use crate::verbs::definitions::ColumnDefinition;
use crate::verbs::error::{ObjectKind, VerbError};
use crate::verbs::names::{self, ColumnPath, TableRef};
use crate::verbs::tables::insert_column;
use crate::verbs::transaction::LakeTransaction;
use crate::verbs::work::Work;

impl LakeTransaction {
    /// Adds a column to a table and gives its id. Rows that are there already have its default, which must be a literal.
    ///
    /// # Errors
    /// [`VerbError::NotFound`], [`VerbError::AlreadyExists`], [`VerbError::InvalidName`]; [`VerbError::Refused`] for a
    /// default or type that a new column cannot have.
    pub async fn add_column(
        &self,
        table: impl Into<TableRef> + Send,
        column: ColumnDefinition,
    ) -> Result<u64, VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let added = verb.add_column(&table, column).await;
        verb.done(added)
    }

    /// Adds a field to the struct at `parent` and gives its id.
    ///
    /// # Errors
    /// As [`LakeTransaction::add_column`]; [`VerbError::Refused`] where `parent` is no struct.
    pub async fn add_field(
        &self,
        table: impl Into<TableRef> + Send,
        parent: impl Into<ColumnPath> + Send,
        field: ColumnDefinition,
    ) -> Result<u64, VerbError> {
        let (table, parent) = (table.into(), parent.into());
        let mut verb = self.verb().await?;
        let added = verb.add_field(&table, &parent, field).await;
        verb.done(added)
    }

    /// Drops a column with its fields, or a field of a struct.
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::InUse`] while the table is partitioned or sorted by it;
    /// [`VerbError::Refused`] for the last column, the last field of a struct, and parts of lists and maps.
    pub async fn drop_column(
        &self,
        table: impl Into<TableRef> + Send,
        column: impl Into<ColumnPath> + Send,
    ) -> Result<(), VerbError> {
        let (table, column) = (table.into(), column.into());
        let mut verb = self.verb().await?;
        let dropped = verb.drop_column(&table, &column).await;
        verb.done(dropped)
    }

    /// Renames a column, or a field of a struct. The table's sort order follows.
    ///
    /// # Errors
    /// [`VerbError::NotFound`], [`VerbError::AlreadyExists`], [`VerbError::InvalidName`]; [`VerbError::Refused`] for
    /// parts of lists and maps.
    pub async fn rename_column(
        &self,
        table: impl Into<TableRef> + Send,
        column: impl Into<ColumnPath> + Send,
        name: &str,
    ) -> Result<(), VerbError> {
        let (table, column) = (table.into(), column.into());
        let mut verb = self.verb().await?;
        let renamed = verb.rename_column(&table, &column, name).await;
        verb.done(renamed)
    }

    /// Changes the type of a column to a wider one. Of a nested type every field is changed, added or dropped, by name,
    /// until it is as `column_type` says.
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::TypeChange`] where DuckLake would not.
    pub async fn set_column_type(
        &self,
        table: impl Into<TableRef> + Send,
        column: impl Into<ColumnPath> + Send,
        column_type: ColumnType,
    ) -> Result<(), VerbError> {
        let (table, column) = (table.into(), column.into());
        let mut verb = self.verb().await?;
        let changed = verb.set_column_type(&table, &column, &column_type).await;
        verb.done(changed)
    }

    /// Changes what new rows have in a column where nothing is given. Rows that are there already stay as they are.
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::Refused`] for a default of a nested column.
    pub async fn set_column_default(
        &self,
        table: impl Into<TableRef> + Send,
        column: &str,
        default: ColumnDefault,
    ) -> Result<(), VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let changed = verb.set_column_default(&table, column, &default).await;
        verb.done(changed)
    }

    /// Forbids NULL in a column, of which the statistics say that it has none.
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::Refused`] where NULL is forbidden already, or the statistics do not exclude
    /// that there is one: look, and use [`LakeTransaction::set_not_null_unchecked`].
    pub async fn set_not_null(
        &self,
        table: impl Into<TableRef> + Send,
        column: &str,
    ) -> Result<(), VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let changed = verb.set_nulls_allowed(&table, column, false, true).await;
        verb.done(changed)
    }

    /// Forbids NULL in a column, of which the caller knows that it has none.
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::Refused`] where NULL is forbidden already.
    pub async fn set_not_null_unchecked(
        &self,
        table: impl Into<TableRef> + Send,
        column: &str,
    ) -> Result<(), VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let changed = verb.set_nulls_allowed(&table, column, false, false).await;
        verb.done(changed)
    }

    /// Allows NULL in a column.
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::Refused`] where it is allowed already.
    pub async fn drop_not_null(
        &self,
        table: impl Into<TableRef> + Send,
        column: &str,
    ) -> Result<(), VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let changed = verb.set_nulls_allowed(&table, column, true, false).await;
        verb.done(changed)
    }
}

impl Work {
    /// The records of a new column and its fields, with ids that the table has never given.
    pub(crate) fn column_records(
        &mut self,
        table_id: u64,
        column: &ColumnDefinition,
        parent: Option<u64>,
    ) -> Result<Vec<ColumnValue>, VerbError> {
        let default = default_cells(column)?;
        let mut records = Vec::new();
        self.field_records(table_id, &column.name, &column.column_type, parent, &mut records);
        let at = self.snapshot_id();
        if let Some(root) = records.first_mut() {
            root.nulls_allowed = column.nulls_allowed;
            if !column.column_type.is_nested() {
                (root.initial_default, root.default_value, root.default_value_type) = default;
            }
            root.tags = column
                .comment
                .iter()
                .map(|comment| crate::lake::entities::column_tag(at, "comment", Some(comment)))
                .collect();
        }
        Ok(records)
    }

    fn field_records(
        &mut self,
        table_id: u64,
        name: &str,
        column_type: &ColumnType,
        parent: Option<u64>,
        records: &mut Vec<ColumnValue>,
    ) {
        let next = self.state.next_column_ids.entry(table_id).or_insert(1);
        let column_id = *next;
        *next = next.saturating_add(1);
        let default_type = if column_type.is_nested() { "" } else { LITERAL };
        records.push(ColumnValue {
            column_id,
            begin_snapshot: self.snapshot_id(),
            table_id,
            column_order: column_id,
            column_name: name.to_owned(),
            column_type: column_type.to_string(),
            default_value: Some(NO_DEFAULT.to_owned()),
            nulls_allowed: true,
            parent_column: parent,
            default_value_type: Some(default_type.to_owned()),
            default_value_dialect: Some(DUCKDB.to_owned()),
            ..ColumnValue::default()
        });
        for (field, field_type) in column_type.fields() {
            self.field_records(table_id, field, field_type, Some(column_id), records);
        }
    }

    /// Finds out the next column id of a table that is not new.
    async fn know_column_ids(&mut self, table_id: u64, columns: &[ColumnValue]) -> Result<(), VerbError> {
        let stored = self.reading()?.table_by_id(table_id).await?;
        let stored = stored.map_or(1, |table| table.next_column_id);
        let greatest = columns.iter().map(|column| column.column_id).max();
        let least = stored.max(greatest.map_or(1, |greatest| greatest.saturating_add(1)));
        let next = self.state.next_column_ids.entry(table_id).or_insert(least);
        *next = least.max(*next);
        Ok(())
    }

    async fn add_column(&mut self, table: &TableRef, column: ColumnDefinition) -> Result<u64, VerbError> {
        let table_id = self.table(table).await?.table_id;
        let columns = self.reading()?.columns(table_id).await?;
        let present = siblings(&columns, None).map(|column| column.column_name.clone());
        let present: Vec<String> = present.collect();
        self.check_new_columns(std::slice::from_ref(&column), &present)?;
        self.refuse_reserved(table_id, &column.name).await?;
        if matches!(column.default, ColumnDefault::Expression(_)) {
            return Err(VerbError::refused(format!(
                "column {}: a column that is added has a literal as default, because present rows have it too; add it \
                 without and set the default afterwards",
                column.name
            )));
        }
        self.know_column_ids(table_id, &columns).await?;
        let records = self.column_records(table_id, &column, None)?;
        let column_id = records.first().map_or(0, |record| record.column_id);
        self.stage(records.into_iter().map(insert_column).collect())
            .await?;
        self.altered(table_id, true, true);
        Ok(column_id)
    }

    async fn add_field(
        &mut self,
        table: &TableRef,
        parent: &ColumnPath,
        field: ColumnDefinition,
    ) -> Result<u64, VerbError> {
        let table_id = self.table(table).await?.table_id;
        let columns = self.reading()?.columns(table_id).await?;
        let parent_column = find(&columns, parent)?;
        if !parent_column.column_type.eq_ignore_ascii_case("struct") {
            return Err(VerbError::refused(format!(
                "{parent} is of type {}, and only structs take new fields",
                parent_column.column_type
            )));
        }
        let parent_id = parent_column.column_id;
        let present = siblings(&columns, Some(parent_id)).map(|column| column.column_name.clone());
        let present: Vec<String> = present.collect();
        self.check_new_columns(std::slice::from_ref(&field), &present)?;
        self.know_column_ids(table_id, &columns).await?;
        let mut records = self.column_records(table_id, &field, Some(parent_id))?;
        for record in &mut records {
            // As DuckLake has it; of fields it never asks whether they may be NULL.
            record.nulls_allowed = false;
            if record.default_value_type.as_deref() == Some("") {
                record.default_value_type = Some(LITERAL.to_owned());
            }
        }
        let column_id = records.first().map_or(0, |record| record.column_id);
        self.stage(records.into_iter().map(insert_column).collect())
            .await?;
        self.altered(table_id, true, true);
        Ok(column_id)
    }

    /// Refuses a column name that inlined tables have on their own, where rows of the table are inlined.
    async fn refuse_reserved(&self, table_id: u64, name: &str) -> Result<(), VerbError> {
        if !names::is_inlined_column(name) || self.inlining_row_limit(table_id).await? == 0 {
            return Ok(());
        }
        Err(VerbError::InvalidName {
            kind: ObjectKind::Column,
            name: name.to_owned(),
            reason: "inlined tables have a column of that name; set option data_inlining_row_limit of the table to 0 first"
                .to_owned(),
        })
    }

    async fn drop_column(&mut self, table: &TableRef, path: &ColumnPath) -> Result<(), VerbError> {
        let table_id = self.table(table).await?.table_id;
        let columns = self.reading()?.columns(table_id).await?;
        let column = find(&columns, path)?.clone();
        check_part(&columns, &column, path)?;
        if siblings(&columns, column.parent_column).count() == 1 {
            let whole = if column.parent_column.is_none() {
                "table"
            } else {
                "struct"
            };
            return Err(VerbError::refused(format!(
                "{path} is the last column of its {whole}; drop that instead"
            )));
        }
        if column.parent_column.is_none() {
            self.refuse_in_use(table_id, &column).await?;
        }
        let gone = subtree(&columns, &column);
        let changes = gone
            .into_iter()
            .map(|column| {
                let key = key_of(&column);
                self.ended(key, column)
            })
            .collect();
        self.stage(changes).await?;
        self.altered(table_id, true, true);
        Ok(())
    }

    /// Refuses to drop a column that the table is partitioned or sorted by.
    async fn refuse_in_use(&self, table_id: u64, column: &ColumnValue) -> Result<(), VerbError> {
        let in_use = |by: &str| VerbError::InUse {
            kind: ObjectKind::Column,
            name: column.column_name.clone(),
            by: by.to_owned(),
        };
        let partition = self.reading()?.partition(table_id).await?;
        let mut keys = partition.iter().flat_map(|found| &found.columns);
        if keys.any(|key| key.column_id == column.column_id) {
            return Err(in_use("the table's partitioning"));
        }
        let sort = self.reading()?.sort(table_id).await?;
        let mut expressions = sort.iter().flat_map(|found| &found.expressions);
        if expressions.any(|found| super::sql_names::mentions(&found.expression, &column.column_name)) {
            return Err(in_use("the table's sort order"));
        }
        Ok(())
    }

    async fn rename_column(
        &mut self,
        table: &TableRef,
        path: &ColumnPath,
        name: &str,
    ) -> Result<(), VerbError> {
        names::check(ObjectKind::Column, name)?;
        let table_id = self.table(table).await?.table_id;
        let columns = self.reading()?.columns(table_id).await?;
        let old = find(&columns, path)?.clone();
        check_part(&columns, &old, path)?;
        let mut others = siblings(&columns, old.parent_column)
            .filter(|column| column.column_id != old.column_id || column.column_name == name);
        if others.any(|other| same_name(&other.column_name, name)) {
            return Err(VerbError::exists(ObjectKind::Column, name));
        }
        if old.parent_column.is_none() {
            self.refuse_reserved(table_id, name).await?;
        }
        let mut new = old.clone();
        new.column_name = name.to_owned();
        rewritten(&mut new);
        let at_top = old.parent_column.is_none();
        let before = old.column_name.clone();
        let changes = self.replaced(key_of(&old), old, new);
        self.stage(changes).await?;
        if at_top {
            self.rename_in_sort(table_id, &before, name).await?;
        }
        self.altered(table_id, true, true);
        Ok(())
    }

    async fn set_column_type(
        &mut self,
        table: &TableRef,
        path: &ColumnPath,
        column_type: &ColumnType,
    ) -> Result<(), VerbError> {
        super::tables::check_type(&path.to_string(), column_type)?;
        let table_id = self.table(table).await?.table_id;
        let columns = self.reading()?.columns(table_id).await?;
        let column = find(&columns, path)?.clone();
        self.know_column_ids(table_id, &columns).await?;
        let mut changes = Vec::new();
        self.evolve(&columns, &column, column_type, &path.to_string(), &mut changes)?;
        self.stage(changes).await?;
        self.altered(table_id, true, true);
        Ok(())
    }

    /// Collects what makes a column one of type `target`.
    fn evolve(
        &mut self,
        columns: &[ColumnValue],
        column: &ColumnValue,
        target: &ColumnType,
        path: &str,
        changes: &mut Vec<Change>,
    ) -> Result<(), VerbError> {
        let refuse = || VerbError::TypeChange {
            column: path.to_owned(),
            from: column.column_type.clone(),
            to: target.to_string(),
        };
        let fields: Vec<&ColumnValue> = siblings(columns, Some(column.column_id)).collect();
        if fields.is_empty() {
            let source = ColumnType::from_text(&column.column_type, Vec::new());
            if source == *target {
                return Ok(());
            }
            if !source.widens_to(target) {
                return Err(refuse());
            }
            let mut new = column.clone();
            new.column_type = target.to_string();
            rewritten(&mut new);
            changes.extend(self.replaced(key_of(column), column.clone(), new));
            return Ok(());
        }
        if !target.is_nested() || !column.column_type.eq_ignore_ascii_case(&target.to_string()) {
            return Err(refuse());
        }
        for (name, field_type) in target.fields() {
            let path = format!("{path}.{name}");
            match fields.iter().find(|field| same_name(&field.column_name, name)) {
                Some(field) => self.evolve(columns, field, field_type, &path, changes)?,
                None => {
                    let mut records = Vec::new();
                    let parent = Some(column.column_id);
                    self.field_records(column.table_id, name, field_type, parent, &mut records);
                    changes.extend(records.into_iter().map(insert_column));
                }
            }
        }
        for field in fields {
            let mut kept = target.fields().into_iter();
            if !kept.any(|(name, _)| same_name(name, &field.column_name)) {
                for gone in subtree(columns, field) {
                    changes.push(self.ended(key_of(&gone), gone));
                }
            }
        }
        Ok(())
    }

    async fn set_column_default(
        &mut self,
        table: &TableRef,
        name: &str,
        default: &ColumnDefault,
    ) -> Result<(), VerbError> {
        let table_id = self.table(table).await?.table_id;
        let columns = self.reading()?.columns(table_id).await?;
        let old = find(&columns, &ColumnPath::from(name))?.clone();
        if siblings(&columns, Some(old.column_id)).next().is_some() && *default != ColumnDefault::Null {
            return Err(VerbError::refused(format!(
                "column {name} is of type {}, which has no defaults",
                old.column_type
            )));
        }
        let mut new = old.clone();
        let (text, kind) = default_text(default)?;
        (new.default_value, new.default_value_type) = (Some(text), Some(kind.to_owned()));
        let changes = self.replaced(key_of(&old), old, new);
        self.stage(changes).await?;
        self.altered(table_id, true, false);
        Ok(())
    }

    async fn set_nulls_allowed(
        &mut self,
        table: &TableRef,
        name: &str,
        allowed: bool,
        check: bool,
    ) -> Result<(), VerbError> {
        let table_id = self.table(table).await?.table_id;
        let columns = self.reading()?.columns(table_id).await?;
        let old = find(&columns, &ColumnPath::from(name))?.clone();
        if old.nulls_allowed == allowed {
            let state = if allowed { "allowed" } else { "forbidden" };
            return Err(VerbError::refused(format!(
                "NULL is {state} in column {name} already"
            )));
        }
        if check && self.may_hold_null(table_id, old.column_id).await? {
            return Err(VerbError::refused(format!(
                "column {name} may hold a NULL, as far as its statistics say; look, delete such rows, and forbid NULL \
                 unchecked"
            )));
        }
        let mut new = old.clone();
        new.nulls_allowed = allowed;
        rewritten(&mut new);
        let changes = self.replaced(key_of(&old), old, new);
        self.stage(changes).await?;
        self.altered(table_id, true, false);
        Ok(())
    }

    async fn may_hold_null(&self, table_id: u64, column_id: u64) -> Result<bool, VerbError> {
        if self.reading()?.table_stats(table_id).await?.is_none() {
            return Ok(false);
        }
        let key = TableColumnStatsKey { table_id, column_id };
        let found = self.read()?.value(&key).await?;
        Ok(found.and_then(|stats| stats.contains_null) != Some(false))
    }

    /// Puts a tag on a column in the place of the one of its key.
    pub(crate) async fn put_column_tag(
        &mut self,
        table: &TableRef,
        path: &ColumnPath,
        key: &str,
        value: super::tags::TagChange<'_>,
    ) -> Result<(), VerbError> {
        let table_id = self.table(table).await?.table_id;
        let columns = self.reading()?.columns(table_id).await?;
        let mut column = find(&columns, path)?.clone();
        let at = self.snapshot_id();
        let live = |tag: &moraine_codec::proto::ColumnTag| tag.end_snapshot.is_none() && tag.key == key;
        if matches!(value, super::tags::TagChange::Remove) && !column.tags.iter().any(live) {
            return Err(VerbError::not_found(ObjectKind::Tag, format!("{key} of {path}")));
        }
        column.tags.retain(|tag| !(live(tag) && tag.begin_snapshot == at));
        for tag in column.tags.iter_mut().filter(|tag| live(tag)) {
            tag.end_snapshot = Some(at);
        }
        if let super::tags::TagChange::Set(value) = value {
            column
                .tags
                .push(crate::lake::entities::column_tag(at, key, value));
        }
        let column_key = key_of(&column);
        let change = Change::Replace {
            old: moraine_keys::Kind::to_key(&column_key),
            new: Record::Column(column_key, column),
        };
        self.stage(vec![change]).await?;
        self.altered(table_id, false, false);
        Ok(())
    }
}

/// (initial default, default, kind of the default) of a new column.
type DefaultCells = (Option<String>, Option<String>, Option<String>);

fn default_cells(column: &ColumnDefinition) -> Result<DefaultCells, VerbError> {
    if column.column_type.is_nested() && column.default != ColumnDefault::Null {
        return Err(VerbError::refused(format!(
            "column {} is of type {}, which has no defaults",
            column.name, column.column_type
        )));
    }
    let (text, kind) = default_text(&column.default)?;
    let initial = match &column.default {
        ColumnDefault::Literal(literal) => Some(literal.clone()),
        _ => None,
    };
    Ok((initial, Some(text), Some(kind.to_owned())))
}

fn default_text(default: &ColumnDefault) -> Result<(String, &'static str), VerbError> {
    match default {
        ColumnDefault::Null => Ok((NO_DEFAULT.to_owned(), LITERAL)),
        ColumnDefault::Literal(text) if text == NO_DEFAULT => Err(VerbError::refused(
            "the literal NULL is how DuckLake writes that there is no default; use an expression such as 'NULL'",
        )),
        ColumnDefault::Literal(text) => Ok((text.clone(), LITERAL)),
        ColumnDefault::Expression(sql) => Ok((sql.clone(), EXPRESSION)),
    }
}

/// What DuckLake makes of a column's other cells when it writes it anew: of the kind of an absent default, and of whether a
/// field may be NULL, which it never asks.
fn rewritten(column: &mut ColumnValue) {
    column.nulls_allowed &= column.parent_column.is_none();
    if column.default_value.as_deref() == Some(NO_DEFAULT)
        && column.default_value_type.as_deref() != Some(EXPRESSION)
    {
        let kind = if column.parent_column.is_some() {
            ""
        } else {
            LITERAL
        };
        column.default_value_type = Some(kind.to_owned());
    }
}

fn key_of(column: &ColumnValue) -> ColumnKey {
    ColumnKey {
        table_id: column.table_id,
        column_id: column.column_id,
    }
}

/// The columns below a parent, or at the top level.
pub(crate) fn siblings(columns: &[ColumnValue], parent: Option<u64>) -> impl Iterator<Item = &ColumnValue> {
    columns
        .iter()
        .filter(move |column| column.parent_column == parent)
}

/// The column at a path.
pub(crate) fn find<'a>(columns: &'a [ColumnValue], path: &ColumnPath) -> Result<&'a ColumnValue, VerbError> {
    let mut found: Option<&ColumnValue> = None;
    for name in &path.0 {
        let parent = found.map(|found| found.column_id);
        found = siblings(columns, parent).find(|column| same_name(&column.column_name, name));
        if found.is_none() {
            break;
        }
    }
    found.ok_or_else(|| VerbError::not_found(ObjectKind::Column, path))
}

/// Refuses a part of a list or map, which has no life of its own.
fn check_part(columns: &[ColumnValue], column: &ColumnValue, path: &ColumnPath) -> Result<(), VerbError> {
    let parent = columns
        .iter()
        .find(|parent| Some(parent.column_id) == column.parent_column);
    match parent {
        Some(parent) if !parent.column_type.eq_ignore_ascii_case("struct") => Err(VerbError::refused(
            format!("{path} is part of a {}, which stays as it is", parent.column_type),
        )),
        _ => Ok(()),
    }
}

/// A column and all that is below it.
fn subtree(columns: &[ColumnValue], column: &ColumnValue) -> Vec<ColumnValue> {
    let mut found = vec![column.clone()];
    for field in siblings(columns, Some(column.column_id)) {
        found.extend(subtree(columns, field));
    }
    found
}
