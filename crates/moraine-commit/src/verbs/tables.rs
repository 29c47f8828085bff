//! Verbs of whole tables. Their columns are changed in [`crate::verbs::columns`].

use moraine_codec::Record;
use moraine_codec::proto::{ColumnValue, TableValue};
use moraine_keys::{ColumnKey, DataFileKey, DeleteFileKey, NameKey, PartitionKey, SortKey, TableKey};

use crate::change::Change;
use crate::changes_made::QualifiedName;
use crate::lake::entities::same_name;
use crate::verbs::changes::{Created, CreatedObject};
use crate::verbs::definitions::{ColumnDefinition, TableDefinition};
use crate::verbs::error::{ObjectKind, VerbError};
use crate::verbs::names::{self, TableRef};
use crate::verbs::transaction::LakeTransaction;
use crate::verbs::work::Work;

impl LakeTransaction {
    /// Creates a table in a schema and gives its id. Column ids are 1, 2 and so on, those of nested fields after their
    /// column.
    ///
    /// # Errors
    /// [`VerbError::NotFound`] for the schema; [`VerbError::AlreadyExists`] where a table or view has the name;
    /// [`VerbError::InvalidName`]; [`VerbError::Refused`] for columns that cannot be.
    pub async fn create_table(&self, schema: &str, definition: TableDefinition) -> Result<u64, VerbError> {
        let mut verb = self.verb().await?;
        let created = verb.create_table(schema, definition).await;
        verb.done(created)
    }

    /// Drops a table with all that belongs to it. Earlier snapshots go on seeing it.
    ///
    /// # Errors
    /// [`VerbError::NotFound`].
    pub async fn drop_table(&self, table: impl Into<TableRef> + Send) -> Result<(), VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let dropped = match verb.table(&table).await {
            Ok(found) => verb.drop_table_value(found).await,
            Err(error) => Err(error),
        };
        verb.done(dropped)
    }

    /// Renames a table within its schema. Its files stay where they are.
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::AlreadyExists`] where a table or view has the name, the table itself
    /// included; [`VerbError::InvalidName`].
    pub async fn rename_table(&self, table: impl Into<TableRef> + Send, name: &str) -> Result<(), VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let renamed = verb.rename_table(&table, name).await;
        verb.done(renamed)
    }
}

impl Work {
    async fn create_table(&mut self, schema: &str, definition: TableDefinition) -> Result<u64, VerbError> {
        let TableDefinition {
            name,
            columns,
            path,
            comment,
        } = definition;
        names::check(ObjectKind::Table, &name)?;
        let schema = self.schema(schema).await?;
        self.check_relation_name(schema.schema_id, &name, None).await?;
        if columns.is_empty() {
            return Err(VerbError::refused(format!("table {name} must have a column")));
        }
        self.check_new_columns(&columns, &[])?;
        let table_id = self.give_catalog_id();
        let uuid = uuid::Uuid::new_v4().to_string();
        let (path, path_is_relative) = match path {
            Some(path) => table_path(&path),
            None => (names::folder(&name, &uuid), true),
        };
        let value = TableValue {
            table_id,
            begin_snapshot: self.snapshot_id(),
            schema_id: schema.schema_id,
            table_name: name.clone(),
            path,
            path_is_relative,
            table_uuid: uuid,
            ..TableValue::default()
        };
        let mut changes = vec![Change::Insert(Record::Table(TableKey { table_id }, value))];
        for column in &columns {
            let records = self.column_records(table_id, column, None)?;
            changes.extend(records.into_iter().map(insert_column));
        }
        self.stage(changes).await?;
        self.rename_entry(None, Some(NameKey::table(schema.schema_id, &name, table_id)))?;
        self.created_table(table_id, &schema.schema_name, schema.schema_id, &name, true);
        if let Some(comment) = comment {
            self.put_tag(table_id, "comment", Some(&comment)).await?;
        }
        Ok(table_id)
    }

    /// Refuses a name that a table or view of the schema has, unless it is `own`, to be renamed in its letters' case.
    pub(crate) async fn check_relation_name(
        &self,
        schema_id: u64,
        name: &str,
        own: Option<u64>,
    ) -> Result<(), VerbError> {
        let reading = self.reading()?;
        let table = reading.table(schema_id, name).await?;
        if table.is_some_and(|table| Some(table.table_id) != own || table.table_name == name) {
            return Err(VerbError::exists(ObjectKind::Table, name));
        }
        let view = reading.view(schema_id, name).await?;
        if view.is_some_and(|view| Some(view.view_id) != own || view.view_name == name) {
            return Err(VerbError::exists(ObjectKind::View, name));
        }
        Ok(())
    }

    /// Refuses columns that cannot be beside each other, or beside `present` ones.
    pub(crate) fn check_new_columns(
        &self,
        columns: &[ColumnDefinition],
        present: &[String],
    ) -> Result<(), VerbError> {
        for (place, column) in columns.iter().enumerate() {
            names::check(ObjectKind::Column, &column.name)?;
            check_type(&column.name, &column.column_type)?;
            let earlier = columns.iter().take(place).map(|column| &column.name);
            if earlier.chain(present).any(|other| same_name(other, &column.name)) {
                return Err(VerbError::exists(ObjectKind::Column, &column.name));
            }
        }
        Ok(())
    }

    pub(crate) async fn drop_table_value(&mut self, table: TableValue) -> Result<(), VerbError> {
        let table_id = table.table_id;
        let at = self.snapshot_id();
        let mut changes = Vec::new();
        for mut column in self.reading()?.columns(table_id).await? {
            for tag in &mut column.tags {
                tag.end_snapshot = tag.end_snapshot.or(Some(at));
            }
            let key = ColumnKey {
                table_id,
                column_id: column.column_id,
            };
            changes.push(self.ended(key, column));
        }
        let reading = self.reading()?;
        let files = reading.data_files(table_id).await?.all().await?;
        let delete_files = reading.delete_files(table_id).await?.all().await?;
        let partition = reading.partition(table_id).await?;
        let sort = reading.sort(table_id).await?;
        changes.extend(files.into_iter().map(|file| {
            let data_file_id = file.data_file_id;
            let key = DataFileKey {
                table_id,
                data_file_id,
            };
            self.ended(key, file)
        }));
        changes.extend(delete_files.into_iter().map(|file| {
            let delete_file_id = file.delete_file_id;
            let key = DeleteFileKey {
                table_id,
                delete_file_id,
            };
            self.ended(key, file)
        }));
        changes.extend(partition.map(|found| {
            let partition_id = found.partition_id;
            let key = PartitionKey {
                table_id,
                partition_id,
            };
            self.ended(key, found)
        }));
        changes.extend(sort.map(|found| {
            let sort_id = found.sort_id;
            self.ended(SortKey { table_id, sort_id }, found)
        }));
        let entry = NameKey::table(table.schema_id, &table.table_name, table_id);
        let is_new = self.is_new_table(table_id).await?;
        let mut table = table;
        for stray in &mut table.stray_column_tags {
            if let Some(tag) = &mut stray.tag {
                tag.end_snapshot = tag.end_snapshot.or(Some(at));
            }
        }
        changes.push(self.ended(TableKey { table_id }, table));
        self.stage(changes).await?;
        self.end_tags(table_id).await?;
        self.rename_entry(Some(entry), None)?;
        self.forget_table(table_id, is_new);
        Ok(())
    }

    /// Whether a table came to be in this transaction.
    async fn is_new_table(&self, table_id: u64) -> Result<bool, VerbError> {
        let staging = self.read()?;
        let found = moraine_store::ReadExt::value(staging.base().as_ref(), &TableKey { table_id }).await?;
        Ok(found.is_none())
    }

    fn forget_table(&mut self, table_id: u64, is_new: bool) {
        let state = &mut self.state;
        state.changes.forget_table(table_id);
        state.new_schema_versions.remove(&table_id);
        state.new_inlined_tables.remove(&table_id);
        state.tables_with_files.remove(&table_id);
        state.inlined.retain(|rows| rows.table_id != table_id);
        if !is_new {
            state.changes.dropped_tables.insert(table_id);
        }
        self.mint_schema();
    }

    async fn rename_table(&mut self, table: &TableRef, name: &str) -> Result<(), VerbError> {
        names::check(ObjectKind::Table, name)?;
        let old = self.table(table).await?;
        self.check_relation_name(old.schema_id, name, Some(old.table_id))
            .await?;
        let (table_id, schema_id) = (old.table_id, old.schema_id);
        let schema = self.schema_name(schema_id).await?;
        let is_new = self.is_new_table(table_id).await?;
        let mut new = old.clone();
        new.table_name = name.to_owned();
        let entry = NameKey::table(schema_id, &old.table_name, table_id);
        let changes = self.replaced(TableKey { table_id }, old, new);
        self.stage(changes).await?;
        self.rename_entry(Some(entry), Some(NameKey::table(schema_id, name, table_id)))?;
        self.created_table(table_id, &schema, schema_id, name, is_new);
        Ok(())
    }

    fn created_table(&mut self, table_id: u64, schema: &str, schema_id: u64, name: &str, is_new: bool) {
        let created = Created {
            kind: CreatedObject::Table,
            schema_id,
            name: QualifiedName {
                schema: schema.to_owned(),
                name: name.to_owned(),
            },
        };
        self.state.changes.create(table_id, created, is_new);
        self.state.new_schema_versions.insert(table_id);
        self.state.new_inlined_tables.insert(table_id);
        self.mint_schema();
    }

    /// Notes that a table was altered. `files_differ`: files written from now on have other columns than earlier ones, so
    /// that the table gets a version of its own. `rows_differ`: so do inlined rows.
    pub(crate) fn altered(&mut self, table_id: u64, files_differ: bool, rows_differ: bool) {
        self.state.changes.altered_tables.insert(table_id);
        if files_differ {
            self.state.new_schema_versions.insert(table_id);
        }
        if rows_differ {
            self.state.new_inlined_tables.insert(table_id);
        }
        self.mint_schema();
    }
}

pub(crate) fn insert_column(value: ColumnValue) -> Change {
    let key = ColumnKey {
        table_id: value.table_id,
        column_id: value.column_id,
    };
    Change::Insert(Record::Column(key, value))
}

pub(crate) fn check_type(name: &str, column_type: &crate::lake::ColumnType) -> Result<(), VerbError> {
    if let Some(reason) = column_type.unusable() {
        return Err(VerbError::refused(format!("column {name}: {reason}")));
    }
    check_fields(name, column_type)
}

fn check_fields(name: &str, column_type: &crate::lake::ColumnType) -> Result<(), VerbError> {
    let fields = column_type.fields();
    for (place, (field, field_type)) in fields.iter().enumerate() {
        names::check(ObjectKind::Column, field)?;
        if fields
            .iter()
            .take(place)
            .any(|(other, _)| same_name(other, field))
        {
            return Err(VerbError::exists(ObjectKind::Column, format!("{name}.{field}")));
        }
        check_fields(&format!("{name}.{field}"), field_type)?;
    }
    Ok(())
}

/// A folder as given, with a slash at its end, and whether it is below the schema's.
fn table_path(path: &str) -> (String, bool) {
    let folder = format!("{}/", path.trim_end_matches('/'));
    let is_absolute = path.starts_with('/') || path.contains("://");
    (folder, !is_absolute)
}
