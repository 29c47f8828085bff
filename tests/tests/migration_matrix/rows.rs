//! Every row of every table of a lake, as the relations serve it.

use std::collections::BTreeMap;
use std::sync::Arc;

use moraine_commit::Catalog;
use moraine_tables::{Filter, Relation, Value, list, scan};
use serde_json::json;

/// Rows as JSON texts, sorted, by the name of their relation.
pub(crate) type Rows = BTreeMap<String, Vec<String>>;

/// All rows of the newest state.
pub(crate) async fn all(catalog: &Arc<Catalog>) -> Rows {
    let tx = catalog.begin().await.unwrap();
    let mut rows = Rows::new();
    for (relation, schema) in list(&tx).await.unwrap() {
        let columns: Vec<usize> = (0..schema.columns.len()).collect();
        let found = scan(&tx, relation, &columns, &Filter::all()).await.unwrap();
        let found = found.collect().await.unwrap();
        let mut texts: Vec<String> = found
            .iter()
            .map(|row| serde_json::Value::Array(row.values.iter().map(cell).collect()).to_string())
            .collect();
        texts.sort();
        rows.insert(relation.name(), texts);
    }
    rows
}

/// The names of the inlined tables that `ducklake_inlined_data_tables` lists.
pub(crate) async fn registered(catalog: &Arc<Catalog>) -> Vec<String> {
    let tx = catalog.begin().await.unwrap();
    let rows = scan(&tx, Relation::InlinedDataTables, &[1], &Filter::all())
        .await
        .unwrap();
    let rows = rows.collect().await.unwrap();
    rows.iter()
        .map(|row| cell(&row.values[0]).as_str().unwrap().to_owned())
        .collect()
}

fn cell(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => json!(value),
        Value::Int64(value) | Value::Timestamp(value) | Value::TimestampTz(value) => json!(value),
        Value::Text(value) => json!(value.as_ref()),
        Value::Bytes(value) => json!(String::from_utf8_lossy(value)),
        Value::Uuid(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let parts = [
                &digits[..8],
                &digits[8..12],
                &digits[12..16],
                &digits[16..20],
                &digits[20..],
            ];
            json!(parts.join("-"))
        }
        other => json!(format!("{other:?}")),
    }
}

/// The first differences between two sets of rows, in words.
pub(crate) fn difference(found: &Rows, expected: &Rows) -> Option<String> {
    let mut differences = Vec::new();
    for name in found
        .keys()
        .chain(expected.keys().filter(|name| !found.contains_key(*name)))
    {
        let (none, one) = (Vec::new(), Vec::new());
        let (found, expected) = (
            found.get(name).unwrap_or(&none),
            expected.get(name).unwrap_or(&one),
        );
        let extra = found.iter().filter(|row| !expected.contains(row));
        differences.extend(extra.map(|row| format!("{name} has {row}")));
        let missing = expected.iter().filter(|row| !found.contains(row));
        differences.extend(missing.map(|row| format!("{name} has no {row}")));
        if found.len() != expected.len() {
            differences.push(format!("{name} has {} rows, not {}", found.len(), expected.len()));
        }
    }
    let count = differences.len();
    differences.truncate(8);
    (count > 0).then(|| format!("{count} differences: {}", differences.join("; ")))
}
