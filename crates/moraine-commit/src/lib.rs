//! Lakes: their snapshots, and what changes them. Not a query engine and not a SQL front end: this crate knows no statement
//! and no wire. Two doors lead into one core.
//!
//! **From Rust**, a [`Catalog`] is read and changed as what it is:
//!
//! - [`Catalog::snapshot`] and [`Catalog::snapshot_at`] show the lake at a snapshot, as plain values; see [`lake`].
//!   [`Catalog::read_only`] is a handle that does nothing else.
//! - [`Catalog::commit`] commits what a closure does with verbs, such as creating a table or adding a file;
//!   [`Catalog::commit_group`] the closures of a group. See [`verbs`]. [`Catalog::create`] makes a lake.
//!
//! ```
//! use std::sync::Arc;
//! use moraine_commit::{Catalog, lake::ColumnType, verbs::{ColumnDefinition, TableDefinition}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! # let catalog = Catalog::with_store(Arc::new(moraine_store::MemoryStore::new()));
//! catalog.create(Some("s3://bucket/data/"), false).await?;
//! let committed = catalog.commit(|tx| async move {
//!     let columns = vec![ColumnDefinition::new("id", ColumnType::Int64)];
//!     tx.create_table("main", TableDefinition::new("orders", columns)).await
//! }).await?;
//! assert_eq!(committed.snapshot_id, Some(1));
//! assert!(catalog.snapshot().await?.table("main", "orders").await?.is_some());
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! **For clients of a DuckLake catalog**, who bring rows of `ducklake_*` tables with ids of their own, it is what stands
//! between those rows and one atomic batch of a store: pinned transactions, what a staged change does to records, who wins
//! a race for a snapshot.
//!
//! - [`Catalog`] is one lake. [`Catalog::begin`] gives a [`CatalogTransaction`]: a pinned view with the transaction's own
//!   [`Change`]s on top, for every relation alike.
//! - Inserting the row of `ducklake_snapshot` ([`CatalogTransaction::insert_snapshot`]) takes the lake's commit slot; there,
//!   and not at COMMIT, a lost race is refused ([`StageError::LostRace`]).
//! - [`CatalogTransaction::commit`] writes what was staged and what follows from it as one batch, and returns once it is
//!   durable. A batch without a snapshot (maintenance) meets others only where they write the same records.
//! - [`conflicts`] says which changes of two transactions exclude each other.
//! - [`views`] reads the catalog at any snapshot as typed records.
//!
//! ```
//! use std::sync::Arc;
//! use moraine_codec::{Record, proto::{SnapshotValue, TableValue}};
//! use moraine_commit::{Catalog, Change, SnapshotChanges, views};
//! use moraine_keys::TableKey;
//! use moraine_store::MemoryStore;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let catalog = Catalog::with_store(Arc::new(MemoryStore::new()));
//! catalog.create(Some("s3://bucket/data/"), false).await?;
//!
//! let mut transaction = catalog.begin().await?;
//! let snapshot = SnapshotValue { snapshot_id: 1, schema_version: 1, next_catalog_id: 2, ..Default::default() };
//! transaction.insert_snapshot(snapshot).await?;
//! let table = TableValue { table_id: 1, begin_snapshot: 1, table_name: "orders".into(), ..Default::default() };
//! transaction.stage(vec![Change::Insert(Record::Table(TableKey { table_id: 1 }, table))]).await?;
//! transaction.set_snapshot_changes(SnapshotChanges {
//!     snapshot_id: 1,
//!     changes_made: Some(r#"created_table:"main"."orders""#.into()),
//!     ..Default::default()
//! }).await?;
//! assert_eq!(transaction.commit().await?.snapshot_id, Some(1));
//!
//! let reader = catalog.begin().await?;
//! assert_eq!(views::tables_at(reader.read(), 0).await?.len(), 0);
//! assert_eq!(views::tables_at(reader.read(), 1).await?[0].1.table_name, "orders");
//! # Ok(())
//! # })
//! # }
//! ```

mod activity;
mod batch;
mod bounds;
pub mod bulk;
mod catalog;
mod change;
mod changes_made;
pub mod check;
mod claims;
mod commit;
pub mod conflicts;
mod definitions;
mod derive;
mod drop_index;
mod error;
pub mod flush;
mod flush_check;
mod flushed_rows;
mod genesis;
mod indexes;
mod inline_rules;
pub mod lake;
mod premise;
mod presence;
mod rebase;
mod rules;
mod slot;
mod snapshot;
mod tags;
mod transaction;
mod validate;
pub mod verbs;
pub mod views;
pub mod words;

pub use catalog::{
    Access, BATCH_BYTES_MAX, Catalog, CatalogOptions, RESERVATION_DEFAULT, SLOT_IDLE_DEFAULT,
    SLOT_WAIT_DEFAULT, Turn, TurnPlace,
};
pub use change::{Change, InlineChange, SnapshotChanges};
pub use changes_made::{ChangeEntry, ChangesMade, QualifiedName};
pub use commit::Committed;
pub use drop_index::DroppedIndexes;
pub use error::{CatalogError, CommitFailure, StageError};
pub use transaction::{CatalogTransaction, TransactionSavepoint};

// What it takes to say where a lake is and why it cannot be opened or read.
pub use moraine_store::checkpoints::is_served;
pub use moraine_store::{OpenError, OpenOptions, ReadError, ReadPoint, StoreUrl, list_stores};
