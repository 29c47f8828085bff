//! Random statements on one relation against a plain list of rows.

use moraine_commit::CatalogTransaction;
use moraine_tables::{CompareOp, Comparison, Filter, Relation, Value, delete, insert, update};
use proptest::prelude::*;

use crate::support::{Lake, Null, addressed, and, equals, put, row, rows, uuid};

/// A relation of small rows: how many columns it has, which of them name the row, which of them may change, and the one that
/// says whether the row has ended, which is part of its name then.
#[derive(Clone, Copy, Debug)]
struct Subject {
    relation: Relation,
    keys: &'static [usize],
    end: Option<usize>,
    editable: &'static [usize],
    unique: bool,
}

const SUBJECTS: [Subject; 5] = [
    Subject {
        relation: Relation::SortInfo,
        keys: &[0, 1],
        end: Some(3),
        editable: &[2, 3],
        unique: true,
    },
    Subject {
        relation: Relation::TableStats,
        keys: &[0],
        end: None,
        editable: &[1, 2, 3],
        unique: true,
    },
    Subject {
        relation: Relation::SchemaVersions,
        keys: &[0, 2],
        end: None,
        editable: &[0, 1],
        unique: true,
    },
    Subject {
        relation: Relation::Tag,
        keys: &[0],
        end: None,
        editable: &[1, 2],
        unique: false,
    },
    Subject {
        relation: Relation::ColumnTag,
        keys: &[0, 1],
        end: None,
        editable: &[2, 3],
        unique: false,
    },
];

impl Subject {
    fn row(&self, seed: &[i64; 4]) -> Vec<Value> {
        let number = |n: i64| if n == 0 { Value::Null } else { Value::Int64(n) };
        let [a, b, c, d] = *seed;
        match self.relation {
            Relation::SortInfo => row![a + 1, b + 1, number(c), number(d)],
            Relation::TableStats => row![a * 4 + b, c, number(d), number(a)],
            Relation::SchemaVersions => row![a, number(b), c],
            Relation::Tag => row![a, number(b), number(c), if d == 0 { "x" } else { "y" }, "v"],
            Relation::ColumnTag => row![a, b, number(c), number(d), "x", "v"],
            other => panic!("{other} is no subject"),
        }
    }

    /// What rows of the subject belong to: tables 0 to 3, of whose columns 0 to 3 the odd ones are there.
    async fn prepare(&self, tx: &mut CatalogTransaction) {
        if self.relation != Relation::ColumnTag {
            return;
        }
        put(tx, Relation::Table, (0..4).map(|id| table_row(id, 1)).collect()).await;
        let columns = (0..4).flat_map(|table| [column_row(table, 1, 1), column_row(table, 3, 1)]);
        put(tx, Relation::Column, columns.collect()).await;
    }

    /// Gives a table or a column that the rows may belong to a new version, be it the first. It changes no row.
    async fn revise(&self, tx: &mut CatalogTransaction, [table, column, which, _]: &[i64; 4]) {
        if self.relation != Relation::ColumnTag {
            return;
        }
        let versions = rows(tx, Relation::Table).await.len() + rows(tx, Relation::Column).await.len();
        let snapshot = i64::try_from(versions).unwrap();
        let (relation, end, named, row) = if *which == 0 {
            (Relation::Table, 3, equals(0, *table), table_row(*table, snapshot))
        } else {
            let named = and([equals(0, *column), equals(3, *table)]);
            (Relation::Column, 2, named, column_row(*table, *column, snapshot))
        };
        let live = and([named, Filter::only(Comparison::IsNull { column: end })]);
        let ends = addressed(tx, relation, live).await.into_iter();
        let ends = ends.map(|(address, _)| (address, vec![(end, Value::Int64(snapshot))]));
        update(tx, relation, ends.collect()).await.unwrap();
        put(tx, relation, vec![row]).await;
    }

    /// What no two rows may share.
    fn name(&self, row: &[Value]) -> Vec<Value> {
        self.keys
            .iter()
            .chain(&self.end)
            .map(|column| row[*column].clone())
            .collect()
    }

    /// Whether two rows share a name, or one ends before it begins.
    fn clashes(&self, rows: &[Vec<Value>]) -> bool {
        let number = |cell: &Value| if let Value::Int64(n) = cell { *n } else { 0 };
        if self.end.is_some_and(|end| {
            rows.iter()
                .any(|row| !row[end].is_null() && number(&row[end]) < number(&row[2]))
        }) {
            return true;
        }
        let names: std::collections::HashSet<_> = rows.iter().map(|row| self.name(row)).collect();
        self.unique && names.len() < rows.len()
    }
}

fn table_row(id: i64, begin: i64) -> Vec<Value> {
    row![id, uuid(1), begin, Null, 0, "t", "t/", true]
}

fn column_row(table: i64, id: i64, begin: i64) -> Vec<Value> {
    row![
        id, begin, Null, table, id, "c", "int32", Null, Null, true, Null, Null, Null
    ]
}

#[derive(Clone, Debug)]
enum Statement {
    Insert(Vec<[i64; 4]>),
    Update(Vec<Test>, usize, i64),
    Delete(Vec<Test>),
    Scan(Vec<Test>),
    Revise([i64; 4]),
}

/// Column, operator and literal; a literal of 0 is NULL.
type Test = (usize, u8, i64);

fn tests() -> impl Strategy<Value = Vec<Test>> {
    prop::collection::vec((0_usize..3, 0_u8..9, -1_i64..5), 0..3)
}

fn statements() -> impl Strategy<Value = Vec<Statement>> {
    let seed = prop::array::uniform4(0_i64..4);
    let statement = prop_oneof![
        3 => prop::collection::vec(seed.clone(), 1..6).prop_map(Statement::Insert),
        2 => (tests(), 0_usize..3, 0_i64..5).prop_map(|(tests, column, value)| Statement::Update(tests, column, value)),
        1 => tests().prop_map(Statement::Delete),
        2 => tests().prop_map(Statement::Scan),
        2 => seed.prop_map(Statement::Revise),
    ];
    prop::collection::vec(statement, 1..15)
}

fn filter(tests: &[Test]) -> Filter {
    let literal = |n: i64| if n == 0 { Value::Null } else { Value::Int64(n) };
    let comparison = |&(column, op, n): &Test| {
        let compare = |op| Comparison::Compare {
            column,
            op,
            value: literal(n),
        };
        match op {
            0 => compare(CompareOp::Eq),
            1 => compare(CompareOp::Ne),
            2 => compare(CompareOp::Lt),
            3 => compare(CompareOp::Le),
            4 => compare(CompareOp::Gt),
            5 => compare(CompareOp::Ge),
            6 => Comparison::IsNull { column },
            7 => Comparison::IsNotNull { column },
            _ => Comparison::In {
                column,
                values: vec![literal(n), literal(n + 2), Value::Null],
            },
        }
    };
    Filter {
        all_of: tests.iter().map(comparison).collect(),
    }
}

fn passes(tests: &[Test], row: &[Value]) -> bool {
    tests.iter().all(|&(column, op, n)| {
        let value = match row[column] {
            Value::Int64(value) => Some(value),
            Value::Null => None,
            ref other => panic!("{other:?}"),
        };
        let literal = (n != 0).then_some(n);
        let both = value.zip(literal);
        match op {
            0 => both.is_some_and(|(a, b)| a == b),
            1 => both.is_some_and(|(a, b)| a != b),
            2 => both.is_some_and(|(a, b)| a < b),
            3 => both.is_some_and(|(a, b)| a <= b),
            4 => both.is_some_and(|(a, b)| a > b),
            5 => both.is_some_and(|(a, b)| a >= b),
            6 => value.is_none(),
            7 => value.is_some(),
            _ => value.is_some_and(|value| Some(value) == literal || (value == n + 2 && n != -2)),
        }
    })
}

fn sorted(mut rows: Vec<Vec<Value>>) -> Vec<String> {
    rows.sort_by_key(|row| format!("{row:?}"));
    rows.into_iter().map(|row| format!("{row:?}")).collect()
}

async fn check(tx: &CatalogTransaction, subject: Subject, model: &[Vec<Value>], tests: &[Test]) {
    let ours = addressed(tx, subject.relation, filter(tests))
        .await
        .into_iter()
        .map(|(_, row)| row)
        .collect();
    let theirs = model.iter().filter(|row| passes(tests, row)).cloned().collect();
    assert_eq!(sorted(ours), sorted(theirs), "{subject:?} under {tests:?}");
}

/// Runs one statement on both sides; where the model breaks a rule, ours must be refused and change nothing.
async fn run(
    tx: &mut CatalogTransaction,
    subject: Subject,
    model: &mut Vec<Vec<Value>>,
    statement: &Statement,
) {
    match statement {
        Statement::Insert(seeds) => {
            let rows: Vec<_> = seeds.iter().map(|seed| subject.row(seed)).collect();
            let all = [model.clone(), rows.clone()].concat();
            let outcome = insert(tx, subject.relation, rows).await;
            assert_eq!(outcome.is_err(), subject.clashes(&all), "{outcome:?}");
            if outcome.is_ok() {
                *model = all;
            }
        }
        Statement::Update(tests, column, n) => {
            let column = subject.editable[column % subject.editable.len()];
            let named = subject.keys.contains(&column);
            let value = if *n == 0 && !named {
                Value::Null
            } else {
                Value::Int64(*n)
            };
            let found = addressed(tx, subject.relation, filter(tests)).await;
            let edits = found
                .iter()
                .map(|(address, _)| (address.clone(), vec![(column, value.clone())]))
                .collect();
            let mut all = model.clone();
            for row in all.iter_mut().filter(|row| passes(tests, row)) {
                row[column] = value.clone();
            }
            let outcome = update(tx, subject.relation, edits).await;
            match outcome {
                Ok(count) => {
                    assert_eq!(count, found.len() as u64);
                    assert!(!subject.clashes(&all), "an update broke a rule");
                    *model = all;
                }
                // Two rows may pass each other's names on the way although the outcome is clean.
                Err(error) => assert!(subject.unique, "{error}"),
            }
        }
        Statement::Delete(tests) => {
            let found = addressed(tx, subject.relation, filter(tests)).await;
            let addresses = found.into_iter().map(|(address, _)| address).collect::<Vec<_>>();
            let count = addresses.len() as u64;
            assert_eq!(delete(tx, subject.relation, addresses).await.unwrap(), count);
            model.retain(|row| !passes(tests, row));
        }
        Statement::Scan(tests) => check(tx, subject, model, tests).await,
        Statement::Revise(seed) => subject.revise(tx, seed).await,
    }
    check(tx, subject, model, &[]).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn statements_do_to_a_relation_what_they_do_to_a_list_of_rows(subject in 0_usize..SUBJECTS.len(), statements in statements()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let subject = SUBJECTS[subject];
            let lake = Lake::new().await;
            let mut tx = lake.begin_snapshot().await;
            subject.prepare(&mut tx).await;
            let mut model = Vec::new();
            for statement in &statements {
                run(&mut tx, subject, &mut model, statement).await;
            }
            tx.commit().await.unwrap();
            check(&lake.reopen().begin().await, subject, &model, &[]).await;
        });
    }
}
