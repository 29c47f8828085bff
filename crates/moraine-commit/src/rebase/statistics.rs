//! What the statistics of a table become when an append comes after others that it has not seen. A client writes the sum of
//! what it saw and what it adds; from what it saw and what it wrote follows what it adds, as far as it matters, and that is
//! added to what there is now. Where it does not follow for sure, or there is less now than the client saw, the append is
//! refused.

use std::cmp::Ordering;

use moraine_codec::proto::{TableColumnStatsValue, TableStatsValue};

use crate::bounds::compare;

/// What of a statistic cannot be merged.
pub(super) type Unsure = &'static str;

/// A table's counters: what was there, plus what is added. `seen` and `newest` are `None` where there were none.
pub(super) fn table(
    seen: Option<&TableStatsValue>,
    written: &TableStatsValue,
    newest: Option<&TableStatsValue>,
) -> Result<TableStatsValue, Unsure> {
    let Some(newest) = newest else {
        return match seen {
            None => Ok(written.clone()),
            Some(_) => Err("the counters that the append was counted on are gone"),
        };
    };
    let none = TableStatsValue::default();
    let seen = seen.unwrap_or(&none);
    if !(seen.null_fields.is_empty() && written.null_fields.is_empty() && newest.null_fields.is_empty()) {
        return Err("a counter is NULL");
    }
    let moved = |seen: u64, written: u64, newest: u64| {
        let added = written.checked_sub(seen).ok_or("a counter falls")?;
        newest.checked_add(added).ok_or("a counter overflows")
    };
    Ok(TableStatsValue {
        table_id: written.table_id,
        record_count: moved(seen.record_count, written.record_count, newest.record_count)?,
        next_row_id: moved(seen.next_row_id, written.next_row_id, newest.next_row_id)?,
        file_size_bytes: moved(
            seen.file_size_bytes,
            written.file_size_bytes,
            newest.file_size_bytes,
        )?,
        null_fields: Vec::new(),
    })
}

/// The statistics of a column of this type.
pub(super) fn column(
    column_type: &str,
    seen: Option<&TableColumnStatsValue>,
    written: &TableColumnStatsValue,
    newest: Option<&TableColumnStatsValue>,
) -> Result<TableColumnStatsValue, Unsure> {
    let Some(newest) = newest else {
        return Err("the table has statistics, but not of this column");
    };
    let none = TableColumnStatsValue::default();
    let has_seen = seen.is_some();
    let seen = seen.unwrap_or(&none);
    if !(seen.null_fields.is_empty() && written.null_fields.is_empty() && newest.null_fields.is_empty()) {
        return Err("a statistic is NULL that has another way to be absent");
    }
    if newest.extra_stats != seen.extra_stats || written.extra_stats != seen.extra_stats {
        return Err("it has statistics of another kind, which are not merged");
    }
    let flag = |seen: Option<bool>, written, newest| flag(has_seen.then_some(seen), written, newest);
    let (min_value, max_value) = bounds(column_type, seen, written, newest)?;
    Ok(TableColumnStatsValue {
        table_id: written.table_id,
        column_id: written.column_id,
        contains_null: flag(seen.contains_null, written.contains_null, newest.contains_null)?,
        contains_nan: flag(seen.contains_nan, written.contains_nan, newest.contains_nan)?,
        min_value,
        max_value,
        extra_stats: written.extra_stats.clone(),
        null_fields: Vec::new(),
    })
}

/// Whether the column has a value of a kind. Not known stays not known; yes stays yes. `seen` is `None` where there were
/// no statistics at all.
fn flag(
    seen: Option<Option<bool>>,
    written: Option<bool>,
    newest: Option<bool>,
) -> Result<Option<bool>, Unsure> {
    match (seen, newest) {
        (Some(None), Some(_)) | (Some(Some(true)), Some(false)) => {
            return Err("the column has less than the append was counted on");
        }
        _ => {}
    }
    Ok(match (written, newest) {
        (Some(written), Some(newest)) => Some(written || newest),
        _ => None,
    })
}

type Bound = Option<String>;

/// The least and the greatest value.
fn bounds(
    column_type: &str,
    seen: &TableColumnStatsValue,
    written: &TableColumnStatsValue,
    newest: &TableColumnStatsValue,
) -> Result<(Bound, Bound), Unsure> {
    let has_any = |stats: &TableColumnStatsValue| stats.min_value.is_some() || stats.max_value.is_some();
    if !has_any(newest) {
        // DuckLake takes the bounds of the first values it knows of, whatever came before.
        return match has_any(seen) {
            false => Ok((written.min_value.clone(), written.max_value.clone())),
            true => Err("the column has no bounds any more"),
        };
    }
    let one = |seen_bound: &Bound, written_bound: &Bound, newest_bound: &Bound, wanted: Ordering| {
        if has_any(seen) {
            bound(column_type, seen_bound, written_bound, newest_bound, wanted)
        } else {
            first_bound(column_type, written_bound, newest_bound, wanted)
        }
    };
    Ok((
        one(
            &seen.min_value,
            &written.min_value,
            &newest.min_value,
            Ordering::Less,
        )?,
        one(
            &seen.max_value,
            &written.max_value,
            &newest.max_value,
            Ordering::Greater,
        )?,
    ))
}

/// A bound of a column that had bounds when the append was counted on them: what was written holds what was seen.
fn bound(
    column_type: &str,
    seen: &Bound,
    written: &Bound,
    newest: &Bound,
    wanted: Ordering,
) -> Result<Bound, Unsure> {
    match (seen, written, newest) {
        // One bound alone that is not known stays so.
        (None, None, None) => Ok(None),
        (Some(seen), Some(written), Some(newest)) => {
            if outer(column_type, seen, newest, wanted)? != newest {
                return Err("the column has narrower bounds than the append was counted on");
            }
            Ok(Some(outer(column_type, newest, written, wanted)?.to_owned()))
        }
        _ => Err("a bound is known only in part"),
    }
}

/// A bound of a column that had none when the append was counted on them: what was written is what the append has.
fn first_bound(
    column_type: &str,
    written: &Bound,
    newest: &Bound,
    wanted: Ordering,
) -> Result<Bound, Unsure> {
    match (written, newest) {
        (Some(written), Some(newest)) => Ok(Some(outer(column_type, newest, written, wanted)?.to_owned())),
        // Nothing but NULLs, or values without bounds: from here that looks the same.
        _ => Err("whether the append has values is not known"),
    }
}

/// The outer of two bounds; of equal ones the one that was there.
fn outer<'a>(column_type: &str, there: &'a str, new: &'a str, wanted: Ordering) -> Result<&'a str, Unsure> {
    let order = compare(column_type, new, there).ok_or("its bounds cannot be compared for sure")?;
    Ok(if order == wanted { new } else { there })
}
