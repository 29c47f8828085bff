//! How a lake comes into being: the records of a fresh one, and whether two that were being created at the same moment
//! are the same.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use moraine_codec::Record;
use moraine_codec::format;
use moraine_codec::proto::{FormatValue, OptionScopeValue, SchemaValue, SnapshotValue};
use moraine_keys::{OptionKey, SchemaKey};

use crate::catalog::Catalog;
use crate::change::{Change, SnapshotChanges};
use crate::commit::Committed;
use crate::error::{CatalogError, CommitFailure, StageError};

/// `ducklake_metadata.version` of a fresh lake: the version of the DuckLake specification.
const DUCKLAKE_VERSION: &str = "1.0";

/// The options that make two lakes different ones, fixed when a lake is created.
const IDENTITY_OPTIONS: [&str; 2] = ["data_path", "encrypted"];

/// The format stamp of a fresh store.
pub(crate) fn format_stamp() -> FormatValue {
    FormatValue {
        format_version: format::CURRENT,
        writer_version: concat!("moraine ", env!("CARGO_PKG_VERSION")).to_owned(),
    }
}

/// Refuses unless the lake that was being created is the lake that is there.
pub(crate) fn check_same_lake(
    ours: &OptionScopeValue,
    theirs: &OptionScopeValue,
) -> Result<(), CommitFailure> {
    for option in IDENTITY_OPTIONS {
        let (Some(asked), found) = (ours.options.get(option), theirs.options.get(option)) else {
            continue;
        };
        if Some(asked) != found {
            let found = found.map_or_else(|| "no value".to_owned(), |found| format!("'{found}'"));
            let detail = format!(
                "this lake has just been created with {found} for option {option}, not '{asked}'; attach with the \
                 same value, or to another lake"
            );
            return Err(CommitFailure::Constraint { detail });
        }
    }
    Ok(())
}

impl Catalog {
    /// Creates the lake without a client: snapshot 0 with schema `main`, and the options a DuckLake client expects.
    /// Where a lake is there already, or is being created by somebody else, succeeds if it is the same lake.
    ///
    /// # Errors
    /// [`CommitFailure::Constraint`] when there is a lake with another data path or encryption.
    pub async fn create(
        self: &Arc<Self>,
        data_path: Option<&str>,
        encrypted: bool,
    ) -> Result<Committed, CommitFailure> {
        let mut options = BTreeMap::from([
            ("version".to_owned(), DUCKLAKE_VERSION.to_owned()),
            (
                "created_by".to_owned(),
                concat!("moraine ", env!("CARGO_PKG_VERSION")).to_owned(),
            ),
            ("encrypted".to_owned(), encrypted.to_string()),
        ]);
        if let Some(data_path) = data_path {
            options.insert("data_path".to_owned(), data_path.to_owned());
        }
        let options = OptionScopeValue { options };
        let key = OptionKey {
            scope_kind: 0,
            scope_id: 0,
        };
        let mut transaction = self.begin().await.map_err(begin_failure)?;
        if transaction.exists() {
            let found = moraine_store::ReadExt::value(transaction.read(), &key)
                .await?
                .unwrap_or_default();
            check_same_lake(&options, &found)?;
            return transaction.commit().await;
        }
        transaction.create_lake().await?;
        transaction.insert_snapshot(first_snapshot()).await?;
        transaction
            .set_snapshot_changes(SnapshotChanges {
                changes_made: Some("created_schema:\"main\"".to_owned()),
                ..SnapshotChanges::default()
            })
            .await?;
        let schema = Record::Schema(SchemaKey { schema_id: 0 }, main_schema());
        transaction
            .stage(vec![
                Change::Insert(schema),
                Change::Insert(Record::Option(key, options)),
            ])
            .await?;
        transaction.commit().await
    }
}

pub(crate) fn begin_failure(error: CatalogError) -> CommitFailure {
    match error {
        CatalogError::Read(error) => error.into(),
        error => StageError::Constraint {
            detail: error.to_string(),
        }
        .into(),
    }
}

fn first_snapshot() -> SnapshotValue {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    SnapshotValue {
        snapshot_id: 0,
        snapshot_time_micros: i64::try_from(now.as_micros()).unwrap_or(i64::MAX),
        schema_version: 0,
        next_catalog_id: 1,
        next_file_id: 0,
        ..SnapshotValue::default()
    }
}

fn main_schema() -> SchemaValue {
    SchemaValue {
        schema_id: 0,
        schema_uuid: uuid::Uuid::new_v4().to_string(),
        begin_snapshot: 0,
        schema_name: "main".to_owned(),
        path: "main/".to_owned(),
        path_is_relative: true,
        ..SchemaValue::default()
    }
}
