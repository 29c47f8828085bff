//! Verbs of partitionings and sort orders.

use moraine_codec::Record;
use moraine_codec::proto::{self, PartitionValue, SortValue};
use moraine_keys::{PartitionKey, SortKey};

use crate::change::Change;
use crate::lake::entities::DUCKDB;
use crate::lake::{SortExpression, Transform};
use crate::verbs::columns::find;
use crate::verbs::definitions::PartitionField;
use crate::verbs::error::VerbError;
use crate::verbs::names::{ColumnPath, TableRef};
use crate::verbs::transaction::LakeTransaction;
use crate::verbs::work::Work;

/// How DuckLake writes the order of NULL.
const NULLS_FIRST: &str = "NULLS_FIRST";
const NULLS_LAST: &str = "NULLS_LAST";

impl LakeTransaction {
    /// Partitions the files that are written to a table from now on; those that are there stay as they are. Does nothing
    /// where the table is partitioned like that.
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::Refused`] for no field, or a bucket count of 0.
    pub async fn set_partition(
        &self,
        table: impl Into<TableRef> + Send,
        fields: Vec<PartitionField>,
    ) -> Result<(), VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let set = if fields.is_empty() {
            Err(VerbError::refused(format!(
                "table {table} cannot be partitioned by nothing; reset its partitioning"
            )))
        } else {
            verb.set_partition(&table, fields).await
        };
        verb.done(set)
    }

    /// Partitions the files that are written to a table from now on no longer.
    ///
    /// # Errors
    /// [`VerbError::NotFound`].
    pub async fn reset_partition(&self, table: impl Into<TableRef> + Send) -> Result<(), VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let set = verb.set_partition(&table, Vec::new()).await;
        verb.done(set)
    }

    /// Sorts the files that are written to a table from now on.
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::Refused`] for no expression.
    pub async fn set_sort(
        &self,
        table: impl Into<TableRef> + Send,
        expressions: Vec<SortExpression>,
    ) -> Result<(), VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let set = if expressions.is_empty() {
            Err(VerbError::refused(format!(
                "table {table} cannot be sorted by nothing; reset its sort order"
            )))
        } else {
            verb.set_sort(&table, &expressions).await
        };
        verb.done(set)
    }

    /// Sorts the files that are written to a table from now on no longer.
    ///
    /// # Errors
    /// [`VerbError::NotFound`].
    pub async fn reset_sort(&self, table: impl Into<TableRef> + Send) -> Result<(), VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let set = verb.set_sort(&table, &[]).await;
        verb.done(set)
    }
}

impl Work {
    async fn set_partition(
        &mut self,
        table: &TableRef,
        fields: Vec<PartitionField>,
    ) -> Result<(), VerbError> {
        let table_id = self.table(table).await?.table_id;
        let records = self.reading()?.columns(table_id).await?;
        let mut columns = Vec::new();
        for (field, partition_key_index) in fields.into_iter().zip(0..) {
            if field.transform == Transform::Bucket(0) {
                return Err(VerbError::refused(format!(
                    "column {} cannot be spread over no buckets",
                    field.column
                )));
            }
            let column = find(&records, &ColumnPath::from(field.column.as_str()))?;
            columns.push(proto::PartitionColumn {
                partition_key_index,
                column_id: column.column_id,
                transform: field.transform.to_string(),
                ..proto::PartitionColumn::default()
            });
        }
        let current = self.reading()?.partition(table_id).await?;
        if current.as_ref().map_or(&[][..], |current| &current.columns) == columns {
            return Ok(());
        }
        let partition_id = self.give_catalog_id();
        let mut changes = Vec::new();
        changes.extend(current.map(|current| {
            let key = PartitionKey {
                table_id,
                partition_id: current.partition_id,
            };
            self.ended(key, current)
        }));
        let value = PartitionValue {
            partition_id,
            table_id,
            begin_snapshot: self.snapshot_id(),
            columns,
            ..PartitionValue::default()
        };
        let key = PartitionKey {
            table_id,
            partition_id,
        };
        changes.push(Change::Insert(Record::Partition(key, value)));
        self.stage(changes).await?;
        self.altered(table_id, true, true);
        Ok(())
    }

    async fn set_sort(&mut self, table: &TableRef, expressions: &[SortExpression]) -> Result<(), VerbError> {
        let table_id = self.table(table).await?.table_id;
        for expression in expressions {
            if expression.expression.trim().is_empty() {
                return Err(VerbError::refused(format!(
                    "table {table} cannot be sorted by an empty expression"
                )));
            }
        }
        let expressions = expressions.iter().zip(0..).map(stored).collect();
        self.put_sort(table_id, expressions).await?;
        self.altered(table_id, false, false);
        Ok(())
    }

    /// Puts a sort order in the place of the present one. As in DuckLake, an equal one changes nothing, but uses an id up.
    async fn put_sort(
        &mut self,
        table_id: u64,
        expressions: Vec<proto::SortExpression>,
    ) -> Result<(), VerbError> {
        let current = self.reading()?.sort(table_id).await?;
        let sort_id = (!expressions.is_empty()).then(|| self.give_catalog_id());
        if current.as_ref().map_or(&[][..], |current| &current.expressions) == expressions {
            return Ok(());
        }
        let mut changes = Vec::new();
        changes.extend(current.map(|current| {
            let key = SortKey {
                table_id,
                sort_id: current.sort_id,
            };
            self.ended(key, current)
        }));
        if let Some(sort_id) = sort_id {
            let value = SortValue {
                sort_id,
                table_id,
                begin_snapshot: self.snapshot_id(),
                expressions,
                ..SortValue::default()
            };
            changes.push(Change::Insert(Record::Sort(SortKey { table_id, sort_id }, value)));
        }
        self.stage(changes).await
    }

    /// Lets the sort order of a table follow a column to its new name.
    pub(crate) async fn rename_in_sort(
        &mut self,
        table_id: u64,
        column: &str,
        name: &str,
    ) -> Result<(), VerbError> {
        let Some(current) = self.reading()?.sort(table_id).await? else {
            return Ok(());
        };
        let mut expressions = current.expressions;
        for expression in &mut expressions {
            expression.expression = super::sql_names::renamed(&expression.expression, column, name);
        }
        self.put_sort(table_id, expressions).await
    }
}

fn stored((expression, sort_key_index): (&SortExpression, u64)) -> proto::SortExpression {
    let direction = if expression.descending { "DESC" } else { "ASC" };
    let nulls = if expression.nulls_first {
        NULLS_FIRST
    } else {
        NULLS_LAST
    };
    proto::SortExpression {
        sort_key_index,
        expression: expression.expression.clone(),
        dialect: DUCKDB.to_owned(),
        sort_direction: direction.to_owned(),
        null_order: nulls.to_owned(),
        ..proto::SortExpression::default()
    }
}
