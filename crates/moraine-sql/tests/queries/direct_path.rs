//! A statement of one relation has the same answer on the direct path and through DataFusion.

use moraine_tables::{CompareOp, Comparison, Filter, Relation, Value, describe, scan};
use proptest::prelude::*;

use crate::support::{Lake, answer};

const RELATIONS: [Relation; 5] = [
    Relation::Table,
    Relation::Column,
    Relation::DataFile,
    Relation::Snapshot,
    Relation::Schema,
];

/// One condition: which column, how it is compared, and with what.
#[derive(Clone, Debug)]
struct Condition {
    column: usize,
    kind: u8,
    number: i64,
    text: String,
}

fn condition() -> impl Strategy<Value = Condition> {
    let text = prop_oneof![
        Just("events".to_owned()),
        Just("id".to_owned()),
        "[a-z.]{0,3}",
        Just("f12.parquet".to_owned())
    ];
    (0usize..16, 0u8..9, -1i64..16, text).prop_map(|(column, kind, number, text)| Condition {
        column,
        kind,
        number,
        text,
    })
}

/// The value a condition compares a column with, and its literal.
fn literal(condition: &Condition, column_type: moraine_tables::ColumnType) -> (Value, String) {
    use moraine_tables::ColumnType;
    match column_type {
        ColumnType::Int64 => (Value::Int64(condition.number), condition.number.to_string()),
        ColumnType::Bool => {
            let value = condition.number % 2 == 0;
            (Value::Bool(value), value.to_string())
        }
        ColumnType::Text => (Value::text(&condition.text), format!("'{}'", condition.text)),
        ColumnType::Uuid => {
            let byte = u8::try_from(condition.number.max(0)).unwrap();
            let hex = format!("{byte:02x}").repeat(16);
            (Value::Uuid([byte; 16]), format!("'{hex}'"))
        }
        ColumnType::TimestampTz => {
            let micros = crate::support::NOW + condition.number * 1_000_000;
            let text = moraine_sql::text::format(&Value::TimestampTz(micros)).unwrap();
            (Value::TimestampTz(micros), format!("'{text}'"))
        }
        other => panic!("no relation here has a column of type {other:?}"),
    }
}

fn both(
    condition: &Condition,
    name: &str,
    column: usize,
    column_type: moraine_tables::ColumnType,
) -> (Comparison, String) {
    let (value, literal) = literal(condition, column_type);
    let ops = [
        (CompareOp::Eq, "="),
        (CompareOp::Ne, "<>"),
        (CompareOp::Lt, "<"),
        (CompareOp::Le, "<="),
        (CompareOp::Gt, ">"),
        (CompareOp::Ge, ">="),
    ];
    match ops.get(usize::from(condition.kind)) {
        Some((op, symbol)) => (
            Comparison::Compare {
                column,
                op: *op,
                value,
            },
            format!("{name} {symbol} {literal}"),
        ),
        None if condition.kind == 6 => (Comparison::IsNull { column }, format!("{name} IS NULL")),
        None if condition.kind == 7 => (Comparison::IsNotNull { column }, format!("{name} IS NOT NULL")),
        None => (
            Comparison::In {
                column,
                values: vec![value.clone(), value],
            },
            format!("{name} IN ({literal}, {literal})"),
        ),
    }
}

/// Runs both paths; the second one with an expression in front that the tables cannot evaluate.
async fn compare(lake: &Lake, relation: Relation, conditions: &[Condition], opaque: bool) {
    let tx = lake.begin().await;
    let schema = describe(&tx, relation).await.unwrap().unwrap();
    let mut filter = Filter::all();
    let mut texts = Vec::new();
    for condition in conditions {
        let column = condition.column % schema.columns.len();
        let declared = &schema.columns[column];
        let (comparison, text) = both(condition, &declared.name, column, declared.column_type);
        filter.all_of.push(comparison);
        texts.push(if opaque {
            format!("coalesce({text}, false)")
        } else {
            text
        });
    }
    let columns: Vec<usize> = (0..schema.columns.len()).collect();
    let rows = scan(&tx, relation, &columns, &filter)
        .await
        .unwrap()
        .collect()
        .await
        .unwrap();
    let direct: Vec<Vec<Value>> = rows.into_iter().map(|row| row.values).collect();
    let mut query = format!("SELECT * FROM {relation}");
    if !texts.is_empty() {
        query = format!("{query} WHERE {}", texts.join(" AND "));
    }
    let planned = answer(&tx, &query, &[], &[]).await.unwrap();
    assert_eq!(planned, direct, "{query}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_paths_agree(
        relation in 0usize..5,
        conditions in prop::collection::vec(condition(), 0..3),
        opaque in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let lake = Lake::filled().await;
            compare(&lake, RELATIONS[relation], &conditions, opaque).await;
        });
    }
}
