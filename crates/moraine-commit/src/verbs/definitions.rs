//! What verbs are given: definitions of tables, columns, views and macros, and descriptions of files. Plain values; what
//! a verb makes of them is not here.

use crate::lake::{
    ColumnDefault, ColumnStats, ColumnType, MacroImplementation, MacroKind, SortExpression, Transform,
};

/// A column that is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: String,
    /// Its type, with the fields of a nested one.
    pub column_type: ColumnType,
    /// What new rows have where nothing is given. A column that is added to a table takes a literal only, which its
    /// present rows have too.
    pub default: ColumnDefault,
    /// Whether it may be NULL.
    pub nulls_allowed: bool,
    /// A comment on it.
    pub comment: Option<String>,
}

/// A table that is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDefinition {
    /// Its name.
    pub name: String,
    /// Its columns, in order; at least one.
    pub columns: Vec<ColumnDefinition>,
    /// Its folder, with or without a slash at the end: below the schema's, or absolute. `None`: named like the table, as
    /// DuckLake does.
    pub path: Option<String>,
    /// A comment on it.
    pub comment: Option<String>,
}

/// A view that is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewDefinition {
    /// Its name.
    pub name: String,
    /// The query, in DuckDB's SQL. Name tables of the lake itself below `{DUCKLAKE_CATALOG}`, such as
    /// `{DUCKLAKE_CATALOG}.main.orders`: whoever attaches the lake then finds them, whatever he calls it.
    pub sql: String,
    /// The dialect of `sql`.
    pub dialect: String,
    /// Names for the columns of the query; empty: as they are.
    pub column_aliases: Vec<String>,
}

/// A macro that is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MacroDefinition {
    /// Its name.
    pub name: String,
    /// Whether it stands for a value or for a table.
    pub kind: MacroKind,
    /// Its overloads, at least one.
    pub implementations: Vec<MacroImplementation>,
}

/// One column of a partition key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionField {
    /// The name of the column, at the top level.
    pub column: String,
    /// How it makes the key.
    pub transform: Transform,
}

/// A Parquet file with new rows, written and not yet known to the lake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewDataFile {
    /// Where it is: below the table's folder, or absolute.
    pub path: String,
    /// Whether `path` is below the table's folder.
    pub path_is_relative: bool,
    /// Rows in it.
    pub record_count: u64,
    /// Its size in bytes.
    pub file_size_bytes: u64,
    /// The size of its Parquet footer in bytes, if known.
    pub footer_size: Option<u64>,
    /// Its key, in base64, in an encrypted lake.
    pub encryption_key: Option<String>,
    /// The mapping to read it with, where its columns carry no field ids.
    pub mapping_id: Option<u64>,
    /// Its place in the table's partitioning: for each key column, in order, the value as text, or NULL. Empty where the
    /// table is not partitioned.
    pub partition_values: Vec<Option<String>>,
    /// What is known of its columns, by column id.
    pub column_stats: Vec<(u64, ColumnStats)>,
}

/// A file that deletes rows of a data file, written and not yet known to the lake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDeleteFile {
    /// The data file whose rows it deletes.
    pub data_file_id: u64,
    /// Where it is: below the table's folder, or absolute.
    pub path: String,
    /// Whether `path` is below the table's folder.
    pub path_is_relative: bool,
    /// `parquet`, or `puffin` for a deletion vector.
    pub format: String,
    /// The delete file whose place it takes, and all of whose deletions it has; `None` where the data file has none yet.
    pub replaces: Option<u64>,
    /// Rows it deletes: all rows of its data file that are deleted.
    pub delete_count: u64,
    /// Its size in bytes.
    pub file_size_bytes: u64,
    /// The size of its footer in bytes.
    pub footer_size: u64,
    /// Its key, in base64, in an encrypted lake.
    pub encryption_key: Option<String>,
    /// The snapshot from which on it holds, where it names deletions of several snapshots and says of each which;
    /// `None`: the one that this commit makes.
    pub begin_snapshot: Option<u64>,
    /// The greatest snapshot of its deletions, where they are of several.
    pub partial_max: Option<u64>,
}

/// A Parquet file that takes the place of inlined rows: it holds their row ids and the snapshots they began at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlushedDataFile {
    /// The file. Its rows are not counted again.
    pub file: NewDataFile,
    /// The least row id in it.
    pub row_id_start: u64,
    /// The first snapshot that any of its rows began at.
    pub begin_snapshot: u64,
    /// The last.
    pub partial_max: u64,
    /// The row ids in it, one for each row, in any order; they are compared with those of the rows that are taken away.
    pub row_ids: Vec<u64>,
    /// The file that ends those of its rows that had ended, with the first snapshot that it ends rows at.
    pub delete_file: Option<FlushedDeleteFile>,
}

/// The delete file of a flushed data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlushedDeleteFile {
    /// Where it is.
    pub path: String,
    /// Whether `path` is below the table's folder.
    pub path_is_relative: bool,
    /// `parquet` or `puffin`.
    pub format: String,
    /// Rows it deletes.
    pub delete_count: u64,
    /// Its size in bytes.
    pub file_size_bytes: u64,
    /// The size of its footer in bytes.
    pub footer_size: u64,
    /// Its key, in base64, in an encrypted lake.
    pub encryption_key: Option<String>,
    /// The first snapshot at which one of its rows ended.
    pub begin_snapshot: u64,
    /// The last, where they are several.
    pub partial_max: Option<u64>,
}

impl ColumnDefinition {
    /// A column that may be NULL, without default or comment.
    #[must_use]
    pub fn new(name: impl Into<String>, column_type: ColumnType) -> Self {
        ColumnDefinition {
            name: name.into(),
            column_type,
            default: ColumnDefault::Null,
            nulls_allowed: true,
            comment: None,
        }
    }

    /// The column with NULL forbidden.
    #[must_use]
    pub fn not_null(mut self) -> Self {
        self.nulls_allowed = false;
        self
    }

    /// The column with a default.
    #[must_use]
    pub fn with_default(mut self, default: ColumnDefault) -> Self {
        self.default = default;
        self
    }

    /// The column with a comment.
    #[must_use]
    pub fn with_comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = Some(comment.into());
        self
    }
}

impl TableDefinition {
    /// A table in a folder named like it, without a comment.
    #[must_use]
    pub fn new(name: impl Into<String>, columns: Vec<ColumnDefinition>) -> Self {
        TableDefinition {
            name: name.into(),
            columns,
            path: None,
            comment: None,
        }
    }

    /// The table with a comment.
    #[must_use]
    pub fn with_comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = Some(comment.into());
        self
    }
}

impl ViewDefinition {
    /// A view in DuckDB's SQL, whose columns are named as in the query.
    #[must_use]
    pub fn new(name: impl Into<String>, sql: impl Into<String>) -> Self {
        ViewDefinition {
            name: name.into(),
            sql: sql.into(),
            dialect: crate::lake::entities::DUCKDB.to_owned(),
            column_aliases: Vec::new(),
        }
    }
}

impl PartitionField {
    /// A key column.
    #[must_use]
    pub fn new(column: impl Into<String>, transform: Transform) -> Self {
        PartitionField {
            column: column.into(),
            transform,
        }
    }
}

impl SortExpression {
    /// A column or expression in ascending order, NULL last.
    #[must_use]
    pub fn ascending(expression: impl Into<String>) -> Self {
        SortExpression {
            expression: expression.into(),
            descending: false,
            nulls_first: false,
        }
    }

    /// A column or expression in descending order, NULL last.
    #[must_use]
    pub fn descending(expression: impl Into<String>) -> Self {
        SortExpression {
            descending: true,
            ..SortExpression::ascending(expression)
        }
    }
}

impl NewDataFile {
    /// A file below the table's folder, of so many rows and bytes, of whose columns nothing is known.
    #[must_use]
    pub fn new(path: impl Into<String>, record_count: u64, file_size_bytes: u64) -> Self {
        NewDataFile {
            path: path.into(),
            path_is_relative: true,
            record_count,
            file_size_bytes,
            ..NewDataFile::default()
        }
    }

    /// The file with what is known of its columns, by column id.
    #[must_use]
    pub fn with_stats(mut self, column_stats: Vec<(u64, ColumnStats)>) -> Self {
        self.column_stats = column_stats;
        self
    }
}

impl NewDeleteFile {
    /// A Parquet file below the table's folder that deletes so many rows of a data file.
    #[must_use]
    pub fn new(data_file_id: u64, path: impl Into<String>, delete_count: u64, file_size_bytes: u64) -> Self {
        NewDeleteFile {
            data_file_id,
            path: path.into(),
            path_is_relative: true,
            format: "parquet".to_owned(),
            replaces: None,
            delete_count,
            file_size_bytes,
            footer_size: 0,
            encryption_key: None,
            begin_snapshot: None,
            partial_max: None,
        }
    }
}
