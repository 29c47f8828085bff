//! Changing a lake from Rust: every mutation that DuckLake knows as one verb on a transaction. A verb says the rule it is
//! refused by; ids, versions, statistics and what `ducklake_snapshot_changes` says are as DuckLake would have them, so that
//! DuckDB clients read, and find conflicts with, what was committed here.
//!
//! [`crate::Catalog::commit`] commits what a closure does; [`crate::Catalog::commit_group`] the closures of a group.
//! Reading a lake is in [`crate::lake`].
//!
//! ```
//! use std::sync::Arc;
//! use moraine_commit::lake::{ColumnStats, ColumnType};
//! use moraine_commit::verbs::{ColumnDefinition, NewDataFile, TableDefinition};
//! use moraine_commit::Catalog;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! # let catalog = Catalog::with_store(Arc::new(moraine_store::MemoryStore::new()));
//! catalog.create(Some("s3://bucket/data/"), false).await?;
//!
//! // A table with a file that has been written below its folder.
//! catalog.commit(|tx| async move {
//!     let columns = vec![
//!         ColumnDefinition::new("id", ColumnType::Int64).not_null(),
//!         ColumnDefinition::new("name", ColumnType::Varchar),
//!     ];
//!     let table = tx.create_table("main", TableDefinition::new("people", columns)).await?;
//!     let ids = ColumnStats {
//!         value_count: Some(3),
//!         null_count: Some(0),
//!         min_value: Some("1".into()),
//!         max_value: Some("3".into()),
//!         ..ColumnStats::default()
//!     };
//!     let file = NewDataFile::new("part-0.parquet", 3, 1_024).with_stats(vec![(1, ids)]);
//!     tx.add_data_files(table, vec![file]).await
//! }).await?;
//!
//! let lake = catalog.snapshot().await?;
//! let people = lake.table("main", "people").await?.ok_or("no such table")?;
//! let mut files = lake.data_files(people.table_id).await?;
//! assert_eq!(files.next().await?.map(|file| file.record_count), Some(3));
//! # Ok(())
//! # })
//! # }
//! ```

mod changes;
mod columns;
pub(crate) mod commit;
mod compaction;
mod conflict;
mod definitions;
mod error;
mod files;
mod finish;
mod geometry;
mod inlined;
mod inlined_columns;
mod inlined_stats;
mod layouts;
mod macros;
mod maintenance;
mod names;
mod options;
mod schemas;
mod sql_names;
mod stats;
mod tables;
mod tags;
mod transaction;
mod views;
mod work;

pub use commit::{COMMIT_TRIES_DEFAULT, Commit, CommitOptions, GROUP_BYTES_MAX, GroupMember};
pub use definitions::{
    ColumnDefinition, FlushedDataFile, FlushedDeleteFile, MacroDefinition, NewDataFile, NewDeleteFile,
    PartitionField, TableDefinition, ViewDefinition,
};
pub use error::{CommitError, ObjectKind, VerbError};
pub use inlined_columns::DOOR_TYPE_METADATA_KEY;
pub use names::{ColumnPath, TableRef, TagTarget};
pub use transaction::LakeTransaction;
