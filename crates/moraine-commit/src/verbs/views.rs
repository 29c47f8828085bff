//! Verbs of views.

use moraine_codec::Record;
use moraine_codec::proto::ViewValue;
use moraine_keys::ViewKey;

use crate::change::Change;
use crate::changes_made::QualifiedName;
use crate::lake::entities::quoted_list;
use crate::verbs::changes::{Created, CreatedObject};
use crate::verbs::definitions::ViewDefinition;
use crate::verbs::error::{ObjectKind, VerbError};
use crate::verbs::names;
use crate::verbs::transaction::LakeTransaction;
use crate::verbs::work::Work;

impl LakeTransaction {
    /// Creates a view in a schema and gives its id.
    ///
    /// # Errors
    /// [`VerbError::NotFound`] for the schema; [`VerbError::AlreadyExists`] where a table or view has the name;
    /// [`VerbError::InvalidName`].
    pub async fn create_view(&self, schema: &str, definition: ViewDefinition) -> Result<u64, VerbError> {
        let mut verb = self.verb().await?;
        let created = verb.create_view(schema, definition).await;
        verb.done(created)
    }

    /// Drops a view.
    ///
    /// # Errors
    /// [`VerbError::NotFound`].
    pub async fn drop_view(&self, schema: &str, name: &str) -> Result<(), VerbError> {
        let mut verb = self.verb().await?;
        let dropped = match verb.view_named(schema, name).await {
            Ok(found) => verb.drop_view_value(found).await,
            Err(error) => Err(error),
        };
        verb.done(dropped)
    }

    /// Renames a view within its schema.
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::AlreadyExists`] where a table or view has the name, the view itself
    /// included; [`VerbError::InvalidName`].
    pub async fn rename_view(&self, schema: &str, name: &str, new_name: &str) -> Result<(), VerbError> {
        let mut verb = self.verb().await?;
        let renamed = verb.rename_view(schema, name, new_name).await;
        verb.done(renamed)
    }
}

impl Work {
    /// The live view of a name.
    pub(crate) async fn view_named(&self, schema: &str, name: &str) -> Result<ViewValue, VerbError> {
        let schema_id = self.schema(schema).await?.schema_id;
        let found = self.reading()?.view(schema_id, name).await?;
        found.ok_or_else(|| VerbError::not_found(ObjectKind::View, format!("{schema}.{name}")))
    }

    async fn create_view(&mut self, schema: &str, definition: ViewDefinition) -> Result<u64, VerbError> {
        names::check(ObjectKind::View, &definition.name)?;
        let schema = self.schema(schema).await?;
        self.check_relation_name(schema.schema_id, &definition.name, None)
            .await?;
        if definition.sql.trim().is_empty() {
            return Err(VerbError::refused(format!(
                "view {} must have a query",
                definition.name
            )));
        }
        let view_id = self.give_catalog_id();
        let value = ViewValue {
            view_id,
            view_uuid: uuid::Uuid::new_v4().to_string(),
            begin_snapshot: self.snapshot_id(),
            schema_id: schema.schema_id,
            view_name: definition.name.clone(),
            dialect: definition.dialect,
            sql: definition.sql,
            column_aliases: Some(quoted_list(&definition.column_aliases)),
            ..ViewValue::default()
        };
        let record = Record::View(ViewKey { view_id }, value);
        self.stage(vec![Change::Insert(record)]).await?;
        let schema_id = schema.schema_id;
        self.created_view(view_id, schema_id, &schema.schema_name, &definition.name, true);
        Ok(view_id)
    }

    pub(crate) async fn drop_view_value(&mut self, view: ViewValue) -> Result<(), VerbError> {
        let view_id = view.view_id;
        let is_new = self.is_new_view(view_id).await?;
        let ended = self.ended(ViewKey { view_id }, view);
        self.stage(vec![ended]).await?;
        self.end_tags(view_id).await?;
        self.state.changes.created.remove(&view_id);
        self.state.changes.altered_views.remove(&view_id);
        if !is_new {
            self.state.changes.dropped_views.insert(view_id);
        }
        self.mint_schema();
        Ok(())
    }

    async fn rename_view(&mut self, schema: &str, name: &str, new_name: &str) -> Result<(), VerbError> {
        names::check(ObjectKind::View, new_name)?;
        let old = self.view_named(schema, name).await?;
        self.check_relation_name(old.schema_id, new_name, Some(old.view_id))
            .await?;
        let (view_id, schema_id) = (old.view_id, old.schema_id);
        let schema = self.schema_name(schema_id).await?;
        let is_new = self.is_new_view(view_id).await?;
        let mut new = old.clone();
        new.view_name = new_name.to_owned();
        let changes = self.replaced(ViewKey { view_id }, old, new);
        self.stage(changes).await?;
        self.created_view(view_id, schema_id, &schema, new_name, is_new);
        Ok(())
    }

    /// Whether a view came to be in this transaction.
    async fn is_new_view(&self, view_id: u64) -> Result<bool, VerbError> {
        let below = self.read()?.base();
        let found = moraine_store::ReadExt::value(below.as_ref(), &ViewKey { view_id }).await?;
        Ok(found.is_none())
    }

    fn created_view(&mut self, view_id: u64, schema_id: u64, schema: &str, name: &str, is_new: bool) {
        let created = Created {
            kind: CreatedObject::View,
            schema_id,
            name: QualifiedName {
                schema: schema.to_owned(),
                name: name.to_owned(),
            },
        };
        self.state.changes.create(view_id, created, is_new);
        self.mint_schema();
    }
}
