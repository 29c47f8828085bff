//! The statistics of a table, as new rows come to it; and the verbs that set them outright.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use moraine_codec::proto::{FileColumnStatsValue, FileVariantStats, TableColumnStatsValue, TableStatsValue};
use moraine_codec::{Nullable, Record};
use moraine_keys::{FileColumnStatsKey, Kind, TableColumnStatsKey, TableScoped, TableStatsKey};
use moraine_store::ReadExt;

use crate::bounds;
use crate::change::Change;
use crate::lake::files::{
    STATS_NULL_COUNT_FIELD, STATS_VALUE_COUNT_FIELD, VARIANT_NULL_COUNT_FIELD, VARIANT_VALUE_COUNT_FIELD,
};
use crate::lake::{Column, ColumnStats, ColumnType, TableColumnStats, VariantFieldStats};
use crate::verbs::error::{ObjectKind, VerbError};
use crate::verbs::geometry;
use crate::verbs::names::TableRef;
use crate::verbs::transaction::LakeTransaction;
use crate::verbs::work::Work;

/// What new rows add to the statistics of their table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Growth {
    pub(crate) records: u64,
    pub(crate) row_ids: u64,
    pub(crate) file_bytes: u64,
    /// What is known of each lot of new rows, in order: statistics by column id.
    pub(crate) columns: Vec<Vec<(u64, ColumnStats)>>,
}

impl LakeTransaction {
    /// Sets the size of a table, such as after a look at all of its files. The next row id stays.
    ///
    /// # Errors
    /// [`VerbError::NotFound`]; [`VerbError::Refused`] for a table that has had no rows.
    pub async fn set_table_stats(
        &self,
        table: impl Into<TableRef> + Send,
        record_count: u64,
        file_size_bytes: u64,
    ) -> Result<(), VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let set = verb.set_table_stats(&table, record_count, file_size_bytes).await;
        verb.done(set)
    }

    /// Sets the statistics of a column over all of its table. Bounds that are too narrow make readers miss rows.
    ///
    /// # Errors
    /// [`VerbError::NotFound`].
    pub async fn set_table_column_stats(
        &self,
        table: impl Into<TableRef> + Send,
        column_id: u64,
        stats: TableColumnStats,
    ) -> Result<(), VerbError> {
        let table = table.into();
        let mut verb = self.verb().await?;
        let set = verb.set_table_column_stats(&table, column_id, stats).await;
        verb.done(set)
    }
}

impl Work {
    async fn set_table_stats(
        &mut self,
        table: &TableRef,
        record_count: u64,
        file_size_bytes: u64,
    ) -> Result<(), VerbError> {
        let table_id = self.table(table).await?.table_id;
        let Some(found) = self.reading()?.table_stats(table_id).await? else {
            return Err(VerbError::refused(format!(
                "table {table} has had no rows yet, so it has no statistics; add its files"
            )));
        };
        let value = TableStatsValue {
            record_count,
            file_size_bytes,
            ..found
        };
        let key = TableStatsKey { table_id };
        self.stage(vec![Change::Replace {
            old: key.to_key(),
            new: Record::TableStats(key, value),
        }])
        .await?;
        self.mint();
        Ok(())
    }

    async fn set_table_column_stats(
        &mut self,
        table: &TableRef,
        column_id: u64,
        stats: TableColumnStats,
    ) -> Result<(), VerbError> {
        let table_id = self.table(table).await?.table_id;
        let columns = self.reading()?.columns(table_id).await?;
        if !columns.iter().any(|column| column.column_id == column_id) {
            return Err(VerbError::not_found(ObjectKind::Column, column_id));
        }
        let key = TableColumnStatsKey { table_id, column_id };
        let exists = self.read()?.value(&key).await?.is_some();
        let value = TableColumnStatsValue {
            table_id,
            column_id,
            contains_null: stats.contains_null,
            contains_nan: stats.contains_nan,
            min_value: stats.min_value,
            max_value: stats.max_value,
            extra_stats: stats.extra_stats,
            ..TableColumnStatsValue::default()
        };
        let record = Record::TableColumnStats(key.clone(), value);
        let change = if exists {
            Change::Replace {
                old: key.to_key(),
                new: record,
            }
        } else {
            Change::Insert(record)
        };
        self.stage(vec![change]).await?;
        self.mint();
        Ok(())
    }

    /// The next row id of a table.
    pub(crate) async fn next_row_id(&self, table_id: u64) -> Result<u64, VerbError> {
        let found = self.reading()?.table_stats(table_id).await?;
        Ok(found.map_or(0, |found| found.next_row_id))
    }

    /// Adds to the statistics of a table. As in DuckLake, its first rows decide which columns have statistics.
    pub(crate) async fn grow(&mut self, table_id: u64, growth: Growth) -> Result<(), VerbError> {
        let found = self.reading()?.table_stats(table_id).await?;
        let types = self.column_types(table_id).await?;
        let range = TableColumnStatsKey::scan_table(table_id);
        let stored = self.read()?.records::<TableColumnStatsKey>(range).await?;
        let mut merged: BTreeMap<u64, TableColumnStatsValue> = stored
            .into_iter()
            .map(|(key, value)| (key.column_id, value))
            .collect();
        let is_first = found.is_none();
        let mut touched: BTreeMap<u64, TableColumnStatsValue> = BTreeMap::new();
        for (column_id, new) in growth.columns.iter().flatten() {
            let Some(column_type) = types.get(column_id) else {
                return Err(VerbError::not_found(ObjectKind::Column, column_id));
            };
            let value = match merged.get(column_id) {
                Some(current) => merge(current, new, column_type)?,
                None if is_first => first(table_id, *column_id, new, column_type)?,
                None => continue,
            };
            merged.insert(*column_id, value.clone());
            touched.insert(*column_id, value);
        }
        let mut changes = Vec::new();
        let key = TableStatsKey { table_id };
        let value = grown(table_id, found, &growth);
        changes.push(put(key.to_key(), is_first, Record::TableStats(key, value)));
        for (column_id, value) in touched {
            let key = TableColumnStatsKey { table_id, column_id };
            changes.push(put(key.to_key(), is_first, Record::TableColumnStats(key, value)));
        }
        self.stage(changes).await
    }

    /// Counts a table anew after its files were rewritten, where its files then say all: no row of them is deleted, and
    /// there are no inlined rows. Otherwise its statistics stay, which are never too narrow.
    pub(crate) async fn recount(&mut self, table_id: u64) -> Result<(), VerbError> {
        let reading = self.reading()?;
        let Some(found) = reading.table_stats(table_id).await? else {
            return Ok(());
        };
        let files = reading.data_files(table_id).await?.all().await?;
        if reading.delete_files(table_id).await?.next().await?.is_some() {
            return Ok(());
        }
        let live: BTreeSet<u64> = files.iter().map(|file| file.data_file_id).collect();
        let deletes = moraine_inline::file_deletes(self.read()?, table_id, 0..=u64::MAX).await?;
        if deletes
            .iter()
            .any(|(data_file_id, ..)| live.contains(data_file_id))
            || self.has_inlined_rows(table_id).await?
        {
            return Ok(());
        }
        let types = self.column_types(table_id).await?;
        let mut counted: BTreeMap<u64, TableColumnStatsValue> = BTreeMap::new();
        for file in &files {
            let range = FileColumnStatsKey::scan_file(table_id, file.data_file_id);
            for (key, value) in self.read()?.records::<FileColumnStatsKey>(range).await? {
                let Some(column_type) = types.get(&key.column_id) else {
                    continue;
                };
                let new = ColumnStats::of(value);
                let value = match counted.get(&key.column_id) {
                    Some(current) => merge(current, &new, column_type)?,
                    None => first(table_id, key.column_id, &new, column_type)?,
                };
                counted.insert(key.column_id, value);
            }
        }
        let key = TableStatsKey { table_id };
        let value = TableStatsValue {
            record_count: files.iter().map(|file| file.record_count).sum(),
            file_size_bytes: files.iter().map(|file| file.file_size_bytes).sum(),
            ..found
        };
        let mut changes = vec![put(key.to_key(), false, Record::TableStats(key, value))];
        let range = TableColumnStatsKey::scan_table(table_id);
        for (key, _) in self.read()?.records::<TableColumnStatsKey>(range).await? {
            if types.contains_key(&key.column_id) {
                let value = counted.remove(&key.column_id).unwrap_or(TableColumnStatsValue {
                    table_id,
                    column_id: key.column_id,
                    ..TableColumnStatsValue::default()
                });
                changes.push(put(key.to_key(), false, Record::TableColumnStats(key, value)));
            }
        }
        self.stage(changes).await
    }

    /// The types of a table's columns and fields, by id.
    pub(crate) async fn column_types(&self, table_id: u64) -> Result<BTreeMap<u64, ColumnType>, VerbError> {
        fn collect(columns: &[Column], types: &mut BTreeMap<u64, ColumnType>) {
            for column in columns {
                types.insert(column.column_id, column.column_type.clone());
                collect(&column.fields, types);
            }
        }
        let records = self.reading()?.columns(table_id).await?;
        let mut types = BTreeMap::new();
        collect(&Column::trees(&records, self.snapshot_id()), &mut types);
        Ok(types)
    }
}

fn put(old: moraine_keys::Key, is_first: bool, new: Record) -> Change {
    if is_first {
        Change::Insert(new)
    } else {
        Change::Replace { old, new }
    }
}

fn grown(table_id: u64, found: Option<TableStatsValue>, growth: &Growth) -> TableStatsValue {
    let found = found.unwrap_or(TableStatsValue {
        table_id,
        ..TableStatsValue::default()
    });
    TableStatsValue {
        record_count: found.record_count.saturating_add(growth.records),
        next_row_id: found.next_row_id.saturating_add(growth.row_ids),
        file_size_bytes: found.file_size_bytes.saturating_add(growth.file_bytes),
        ..found
    }
}

/// The statistics of a column whose first values these are.
fn first(
    table_id: u64,
    column_id: u64,
    new: &ColumnStats,
    column_type: &ColumnType,
) -> Result<TableColumnStatsValue, VerbError> {
    if *column_type == ColumnType::Geometry && any_valid(new) {
        geometry::check(new.extra_stats.as_deref())?;
    }
    Ok(TableColumnStatsValue {
        table_id,
        column_id,
        contains_null: new.null_count.map(|count| count > 0),
        contains_nan: new.contains_nan,
        min_value: new.min_value.clone(),
        max_value: new.max_value.clone(),
        extra_stats: new.extra_stats.clone(),
        ..TableColumnStatsValue::default()
    })
}

/// Whether there is a value that is not NULL, as far as is known.
fn any_valid(stats: &ColumnStats) -> bool {
    stats.null_count.is_none() || stats.value_count != Some(0)
}

/// The statistics of a column with more values (DuckLake's `MergeStats`).
fn merge(
    current: &TableColumnStatsValue,
    new: &ColumnStats,
    column_type: &ColumnType,
) -> Result<TableColumnStatsValue, VerbError> {
    let mut merged = current.clone();
    let either = |left: Option<bool>, right: Option<bool>| Some(left? || right?);
    merged.contains_null = either(current.contains_null, new.null_count.map(|count| count > 0));
    merged.contains_nan = either(current.contains_nan, new.contains_nan);
    if !any_valid(new) {
        return Ok(merged);
    }
    let has_values =
        current.min_value.is_some() || current.max_value.is_some() || current.extra_stats.is_some();
    let none_yet = !has_values && current.contains_null == Some(true);
    if none_yet {
        merged.min_value.clone_from(&new.min_value);
        merged.max_value.clone_from(&new.max_value);
    } else {
        let bound = |left: &Option<String>, right: &Option<String>, wanted| {
            let (left, right) = (left.as_ref()?, right.as_ref()?);
            let order = compare(column_type, right, left)?;
            Some(if order == wanted {
                right.clone()
            } else {
                left.clone()
            })
        };
        merged.min_value = bound(&current.min_value, &new.min_value, Ordering::Less);
        merged.max_value = bound(&current.max_value, &new.max_value, Ordering::Greater);
    }
    merged.extra_stats = match column_type {
        ColumnType::Geometry => Some(geometry::merge(
            current.extra_stats.as_deref(),
            new.extra_stats.as_deref(),
        )?),
        // Without statistics of its fields a variant is read whole, which is right.
        _ if current.extra_stats == new.extra_stats => current.extra_stats.clone(),
        _ => None,
    };
    Ok(merged)
}

/// The order of two bounds; a NaN, which DuckLake takes into them, is above all numbers.
fn compare(column_type: &ColumnType, left: &str, right: &str) -> Option<Ordering> {
    let is_nan = |text: &str| text.eq_ignore_ascii_case("nan");
    if matches!(column_type, ColumnType::Float32 | ColumnType::Float64) && (is_nan(left) || is_nan(right)) {
        return Some(is_nan(left).cmp(&is_nan(right)));
    }
    bounds::compare(&column_type.to_string(), left, right)
}

/// The record of what is known of a column of a data file.
pub(crate) fn file_column_stats(
    table_id: u64,
    data_file_id: u64,
    column_id: u64,
    stats: &ColumnStats,
) -> Change {
    let key = FileColumnStatsKey {
        table_id,
        data_file_id,
        column_id,
    };
    let mut value = FileColumnStatsValue {
        data_file_id,
        table_id,
        column_id,
        column_size_bytes: stats.column_size_bytes,
        value_count: stats.value_count.unwrap_or_default(),
        null_count: stats.null_count.unwrap_or_default(),
        min_value: stats.min_value.clone(),
        max_value: stats.max_value.clone(),
        contains_nan: stats.contains_nan,
        extra_stats: stats.extra_stats.clone(),
        variant_stats: stats.variant_fields.iter().map(variant_field_stats).collect(),
        ..FileColumnStatsValue::default()
    };
    value.set_null(STATS_VALUE_COUNT_FIELD, stats.value_count.is_none());
    value.set_null(STATS_NULL_COUNT_FIELD, stats.null_count.is_none());
    Change::Insert(Record::FileColumnStats(key, value))
}

fn variant_field_stats(field: &VariantFieldStats) -> FileVariantStats {
    let stats = &field.stats;
    let mut value = FileVariantStats {
        variant_path: field.path.clone(),
        shredded_type: field.shredded_type.clone(),
        column_size_bytes: stats.column_size_bytes,
        value_count: stats.value_count.unwrap_or_default(),
        null_count: stats.null_count.unwrap_or_default(),
        min_value: stats.min_value.clone(),
        max_value: stats.max_value.clone(),
        contains_nan: stats.contains_nan,
        extra_stats: stats.extra_stats.clone(),
        ..FileVariantStats::default()
    };
    value.set_null(VARIANT_VALUE_COUNT_FIELD, stats.value_count.is_none());
    value.set_null(VARIANT_NULL_COUNT_FIELD, stats.null_count.is_none());
    value
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering::{Equal, Greater, Less};

    use super::compare;
    use crate::lake::ColumnType as T;

    #[test]
    fn bounds_compare_as_the_values_of_their_column() {
        let decimal = T::Decimal {
            precision: 18,
            scale: 3,
        };
        assert_eq!(compare(&decimal, "1.5", "1.500"), Some(Equal));
        assert_eq!(compare(&T::Int64, "-9", "-10"), Some(Greater));
        assert_eq!(compare(&T::Varchar, "10", "9"), Some(Less));
        assert_eq!(compare(&T::List(Box::new(T::Int64)), "[9]", "[10]"), None);
    }

    #[test]
    fn a_nan_is_above_all_numbers() {
        assert_eq!(compare(&T::Float64, "nan", "inf"), Some(Greater));
        assert_eq!(compare(&T::Float32, "-1.0", "nan"), Some(Less));
        assert_eq!(compare(&T::Float64, "nan", "nan"), Some(Equal));
    }
}
