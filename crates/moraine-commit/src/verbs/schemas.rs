//! Verbs of schemas.

use moraine_codec::Record;
use moraine_codec::proto::SchemaValue;
use moraine_keys::{NameKey, SchemaKey};

use crate::change::Change;
use crate::verbs::error::{ObjectKind, VerbError};
use crate::verbs::names;
use crate::verbs::transaction::LakeTransaction;
use crate::verbs::work::Work;

/// The id of schema `main`, which every lake has.
const MAIN_SCHEMA_ID: u64 = 0;

impl LakeTransaction {
    /// Creates a schema and gives its id. Its folder is named like it.
    ///
    /// # Errors
    /// [`VerbError::AlreadyExists`], [`VerbError::InvalidName`].
    pub async fn create_schema(&self, name: &str) -> Result<u64, VerbError> {
        let mut verb = self.verb().await?;
        let created = verb.create_schema(name).await;
        verb.done(created)
    }

    /// Drops a schema that has nothing in it.
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::InUse`] while there is a table, view or macro in it.
    pub async fn drop_schema(&self, name: &str) -> Result<(), VerbError> {
        let mut verb = self.verb().await?;
        let dropped = verb.drop_schema(name, false).await;
        verb.done(dropped)
    }

    /// Drops a schema with all tables, views and macros in it (`DROP SCHEMA … CASCADE`).
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::Refused`] for `main`.
    pub async fn drop_schema_cascade(&self, name: &str) -> Result<(), VerbError> {
        let mut verb = self.verb().await?;
        let dropped = verb.drop_schema(name, true).await;
        verb.done(dropped)
    }
}

impl Work {
    async fn create_schema(&mut self, name: &str) -> Result<u64, VerbError> {
        names::check(ObjectKind::Schema, name)?;
        if self.reading()?.schema(name).await?.is_some() {
            return Err(VerbError::exists(ObjectKind::Schema, name));
        }
        let schema_id = self.give_catalog_id();
        let uuid = uuid::Uuid::new_v4().to_string();
        let value = SchemaValue {
            schema_id,
            begin_snapshot: self.snapshot_id(),
            schema_name: name.to_owned(),
            path: names::folder(name, &uuid),
            path_is_relative: true,
            schema_uuid: uuid,
            ..SchemaValue::default()
        };
        let record = Record::Schema(SchemaKey { schema_id }, value);
        self.stage(vec![Change::Insert(record)]).await?;
        self.rename_entry(None, Some(NameKey::schema(name, schema_id)))?;
        self.state
            .changes
            .created_schemas
            .insert(schema_id, name.to_owned());
        self.mint_schema();
        Ok(schema_id)
    }

    async fn drop_schema(&mut self, name: &str, cascade: bool) -> Result<(), VerbError> {
        let schema = self.schema(name).await?;
        let schema_id = schema.schema_id;
        if schema_id == MAIN_SCHEMA_ID {
            return Err(VerbError::refused(format!(
                "schema {name:?} is the lake's own and cannot be dropped; drop what is in it"
            )));
        }
        if cascade {
            self.drop_contents(schema_id).await?;
        } else if let Some(by) = self.first_in(schema_id).await? {
            return Err(VerbError::InUse {
                kind: ObjectKind::Schema,
                name: schema.schema_name,
                by,
            });
        }
        let entry = NameKey::schema(&schema.schema_name, schema_id);
        let name = schema.schema_name.clone();
        let ended = self.ended(SchemaKey { schema_id }, schema);
        self.stage(vec![ended]).await?;
        self.end_tags(schema_id).await?;
        self.rename_entry(Some(entry), None)?;
        if self.state.changes.created_schemas.remove(&schema_id).is_none() {
            self.state.changes.dropped_schemas.insert(schema_id, name);
        }
        self.mint_schema();
        Ok(())
    }

    /// What keeps a schema from being dropped, in words.
    async fn first_in(&self, schema_id: u64) -> Result<Option<String>, VerbError> {
        let reading = self.reading()?;
        let tables = reading.tables().await?;
        if let Some(table) = tables.iter().find(|table| table.schema_id == schema_id) {
            return Ok(Some(format!("table {}", table.table_name)));
        }
        let views = reading.views().await?;
        if let Some(view) = views.iter().find(|view| view.schema_id == schema_id) {
            return Ok(Some(format!("view {}", view.view_name)));
        }
        let macros = reading.macros().await?;
        let found = macros.iter().find(|found| found.schema_id == schema_id);
        Ok(found.map(|found| format!("macro {}", found.macro_name)))
    }

    async fn drop_contents(&mut self, schema_id: u64) -> Result<(), VerbError> {
        for table in self.reading()?.tables().await? {
            if table.schema_id == schema_id {
                self.drop_table_value(table).await?;
            }
        }
        for view in self.reading()?.views().await? {
            if view.schema_id == schema_id {
                self.drop_view_value(view).await?;
            }
        }
        for found in self.reading()?.macros().await? {
            if found.schema_id == schema_id {
                self.drop_macro_value(found).await?;
            }
        }
        Ok(())
    }
}
