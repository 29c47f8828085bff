//! Verbs of tags and comments.

use moraine_codec::Record;
use moraine_keys::{Kind, TagKey};

use crate::change::Change;
use crate::lake::entities::tag_entry;
use crate::verbs::error::{ObjectKind, VerbError};
use crate::verbs::names::{ColumnPath, TableRef, TagTarget};
use crate::verbs::transaction::LakeTransaction;
use crate::verbs::work::Work;

/// The tag that `COMMENT ON` sets.
const COMMENT: &str = "comment";

/// What becomes of the tag of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TagChange<'a> {
    /// It has this text; `None` is SQL NULL.
    Set(Option<&'a str>),
    /// It goes.
    Remove,
}

impl LakeTransaction {
    /// Comments on something, or takes the comment back with `None`, as `COMMENT ON … IS` does.
    ///
    /// # Errors
    /// [`VerbError::NotFound`].
    pub async fn set_comment(&self, target: TagTarget, comment: Option<&str>) -> Result<(), VerbError> {
        self.set_tag(target, COMMENT, comment).await
    }

    /// Sets a tag of any key; `None` is SQL NULL. The one that was there ends.
    ///
    /// # Errors
    /// [`VerbError::NotFound`], [`VerbError::InvalidName`].
    pub async fn set_tag(&self, target: TagTarget, key: &str, value: Option<&str>) -> Result<(), VerbError> {
        let mut verb = self.verb().await?;
        let changed = verb.change_tag(target, key, TagChange::Set(value)).await;
        verb.done(changed)
    }

    /// Ends a tag.
    ///
    /// # Errors
    /// [`VerbError::NotFound`], for the tag too.
    pub async fn remove_tag(&self, target: TagTarget, key: &str) -> Result<(), VerbError> {
        let mut verb = self.verb().await?;
        let changed = verb.change_tag(target, key, TagChange::Remove).await;
        verb.done(changed)
    }
}

impl Work {
    async fn change_tag(
        &mut self,
        target: TagTarget,
        key: &str,
        change: TagChange<'_>,
    ) -> Result<(), VerbError> {
        super::names::check(ObjectKind::Tag, key)?;
        match target {
            TagTarget::Column(table, path) => self.change_column_tag(&table, &path, key, change).await,
            TagTarget::Table(table) => {
                let table_id = self.table(&table).await?.table_id;
                self.change_object_tag(table_id, key, change).await?;
                self.altered(table_id, false, false);
                Ok(())
            }
            TagTarget::View(schema, name) => {
                let view_id = self.view_named(&schema, &name).await?.view_id;
                self.change_object_tag(view_id, key, change).await?;
                self.state.changes.altered_views.insert(view_id);
                self.mint_schema();
                Ok(())
            }
            TagTarget::Schema(name) => {
                let schema_id = self.schema(&name).await?.schema_id;
                self.change_object_tag(schema_id, key, change).await?;
                self.mint_schema();
                Ok(())
            }
            TagTarget::Macro(schema, name) => {
                let macro_id = self.macro_named(&schema, &name).await?.macro_id;
                self.change_object_tag(macro_id, key, change).await?;
                self.mint_schema();
                Ok(())
            }
        }
    }

    async fn change_column_tag(
        &mut self,
        table: &TableRef,
        path: &ColumnPath,
        key: &str,
        change: TagChange<'_>,
    ) -> Result<(), VerbError> {
        self.put_column_tag(table, path, key, change).await
    }

    pub(crate) async fn put_tag(
        &mut self,
        object_id: u64,
        key: &str,
        value: Option<&str>,
    ) -> Result<(), VerbError> {
        self.change_object_tag(object_id, key, TagChange::Set(value))
            .await
    }

    async fn change_object_tag(
        &mut self,
        object_id: u64,
        key: &str,
        change: TagChange<'_>,
    ) -> Result<(), VerbError> {
        let at = self.snapshot_id();
        let mut value = self.reading()?.tag(object_id).await?;
        let live = |entry: &moraine_codec::proto::TagEntry| entry.end_snapshot.is_none() && entry.key == key;
        if matches!(change, TagChange::Remove) && !value.entries.iter().any(live) {
            return Err(VerbError::not_found(ObjectKind::Tag, key));
        }
        value
            .entries
            .retain(|entry| !(live(entry) && entry.begin_snapshot == at));
        for entry in value.entries.iter_mut().filter(|entry| live(entry)) {
            entry.end_snapshot = Some(at);
        }
        if let TagChange::Set(text) = change {
            value.entries.push(tag_entry(at, key, text));
        }
        self.write_tags(object_id, value).await
    }

    /// Ends all tags of an object that goes.
    pub(crate) async fn end_tags(&mut self, object_id: u64) -> Result<(), VerbError> {
        let at = self.snapshot_id();
        let mut value = self.reading()?.tag(object_id).await?;
        if value.entries.iter().all(|entry| entry.end_snapshot.is_some()) {
            return Ok(());
        }
        value
            .entries
            .retain(|entry| entry.end_snapshot.is_some() || entry.begin_snapshot != at);
        for entry in &mut value.entries {
            entry.end_snapshot = entry.end_snapshot.or(Some(at));
        }
        self.write_tags(object_id, value).await
    }

    async fn write_tags(
        &mut self,
        object_id: u64,
        value: moraine_codec::proto::TagValue,
    ) -> Result<(), VerbError> {
        let key = TagKey { object_id };
        let exists = moraine_store::ReadExt::value(self.read()?, &key).await?.is_some();
        let change = match (exists, value.entries.is_empty()) {
            (true, true) => Change::Remove { key: key.to_key() },
            (false, true) => return Ok(()),
            (true, false) => Change::Replace {
                old: key.to_key(),
                new: Record::Tag(key, value),
            },
            (false, false) => Change::Insert(Record::Tag(key, value)),
        };
        self.stage(vec![change]).await
    }
}
