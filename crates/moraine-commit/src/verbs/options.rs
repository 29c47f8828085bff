//! Verbs of options. An option has no history, and setting one makes no snapshot.

use moraine_codec::Record;
use moraine_codec::proto::OptionScopeValue;
use moraine_keys::{Kind, OptionKey};
use moraine_store::ReadExt;

use crate::change::Change;
use crate::lake::OptionScope;
use crate::verbs::error::{ObjectKind, VerbError};
use crate::verbs::transaction::LakeTransaction;
use crate::verbs::work::Work;

/// Options that say what lake it is; they are given when it is created.
const FIXED_OPTIONS: [&str; 4] = ["encrypted", "data_path", "version", "created_by"];

/// How many rows of an insert DuckLake inlines at most, unless an option says otherwise.
const DATA_INLINING_ROWS_DEFAULT: u64 = 10;

const DATA_INLINING_ROW_LIMIT: &str = "data_inlining_row_limit";

impl LakeTransaction {
    /// Sets an option of a scope, such as `data_inlining_row_limit` or `target_file_size`.
    ///
    /// # Errors
    /// [`VerbError::NotFound`] for the scope; [`VerbError::Refused`] for an option that is fixed when a lake is created.
    pub async fn set_option(&self, scope: OptionScope, name: &str, value: &str) -> Result<(), VerbError> {
        let mut verb = self.verb().await?;
        let set = verb.set_option(scope, name, Some(value)).await;
        verb.done(set)
    }

    /// Takes an option of a scope back, so that a wider scope decides.
    ///
    /// # Errors
    /// [`VerbError::NotFound`], for the option too; [`VerbError::Refused`] for an option that is fixed when a lake is
    /// created.
    pub async fn unset_option(&self, scope: OptionScope, name: &str) -> Result<(), VerbError> {
        let mut verb = self.verb().await?;
        let set = verb.set_option(scope, name, None).await;
        verb.done(set)
    }
}

impl Work {
    async fn set_option(
        &mut self,
        scope: OptionScope,
        name: &str,
        value: Option<&str>,
    ) -> Result<(), VerbError> {
        super::names::check(ObjectKind::Option, name)?;
        if scope == OptionScope::Global && FIXED_OPTIONS.contains(&name) {
            return Err(VerbError::refused(format!(
                "option {name} is given when a lake is created, and stays"
            )));
        }
        let reading = self.reading()?;
        let found = match scope {
            OptionScope::Global => true,
            OptionScope::Schema(id) => reading.schema_by_id(id).await?.is_some(),
            OptionScope::Table(id) => reading.table_by_id(id).await?.is_some(),
        };
        let (scope_kind, scope_id) = scope.key();
        if !found {
            let kind = match scope {
                OptionScope::Table(_) => ObjectKind::Table,
                _ => ObjectKind::Schema,
            };
            return Err(VerbError::not_found(kind, scope_id));
        }
        let key = OptionKey { scope_kind, scope_id };
        let present: Option<OptionScopeValue> = self.read()?.value(&key).await?;
        let exists = present.is_some();
        let mut options = present.unwrap_or_default();
        match value {
            Some(value) => {
                options.options.insert(name.to_owned(), value.to_owned());
            }
            None if options.options.remove(name).is_none() => {
                return Err(VerbError::not_found(ObjectKind::Option, name));
            }
            None => {}
        }
        let change = match (exists, options.options.is_empty()) {
            (true, true) => Change::Remove { key: key.to_key() },
            (true, false) => Change::Replace {
                old: key.to_key(),
                new: Record::Option(key, options),
            },
            (false, _) => Change::Insert(Record::Option(key, options)),
        };
        self.stage(vec![change]).await
    }

    /// How many rows of an insert are inlined at most.
    pub(crate) async fn inlining_row_limit(&self, table_id: u64) -> Result<u64, VerbError> {
        let reading = self.reading()?;
        let Some(table) = reading.table_by_id(table_id).await? else {
            return Ok(0);
        };
        let set = reading.table_option(&table, DATA_INLINING_ROW_LIMIT).await?;
        Ok(set
            .and_then(|set| set.trim().parse().ok())
            .unwrap_or(DATA_INLINING_ROWS_DEFAULT))
    }
}
