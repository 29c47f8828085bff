//! The lake as values: a [`Snapshot`] and what it shows, without a record, a key or a row of SQL in it. Changes are not
//! made here; see [`crate::verbs`].

mod column_type;
pub(crate) mod entities;
mod error;
pub(crate) mod files;
mod inlined;
mod options;
mod reader;
pub(crate) mod reading;
mod snapshot;

pub use column_type::ColumnType;
pub use entities::{
    Column, ColumnDefault, Macro, MacroImplementation, MacroKind, MacroParameter, MappedColumn, Mapping,
    Partition, PartitionColumn, Schema, SnapshotInfo, Sort, SortExpression, Table, Tag, View,
};
pub use error::LakeError;
pub use files::{
    ColumnStats, DataFile, DataFileScan, DeleteFile, DeleteFileScan, ScheduledFile, TableColumnStats,
    TableStats, VariantFieldStats,
};
pub use inlined::{InlinedBatch, InlinedRows, InlinedTable};
pub use moraine_inline::PartitionTransform as Transform;
pub use options::OptionScope;
pub use reader::{ReadOnlyLake, SnapshotAt};
pub use snapshot::Snapshot;
