//! A few hundred queries whose answers PostgreSQL 15 gave over the same rows, frozen beside them.
//!
//! `corpus/*.txt` has a query a line; `corpus/*.expected` has the answers, as `corpus/ask_postgres.py` wrote them down:
//! it fills a database from `corpus/lake.sql` and asks. `lake.sql` is this lake's own account of itself, which a test
//! here compares with the lake. Where PostgreSQL refuses, moraine refuses with the same SQLSTATE; a query that is listed
//! in `corpus/refused.txt` moraine refuses with 0A000.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use moraine_sql::{InputError, QueryError};
use moraine_tables::{Relation, Value, describe, list, scan};

use crate::support::Lake;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/queries/corpus")
}

fn read(name: &str) -> String {
    let path = directory().join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The SQLSTATE the server gives an error; the same table as the server's, for the errors of queries.
fn state(error: &QueryError) -> &'static str {
    match error {
        QueryError::UndefinedTable { .. } | QueryError::Input(InputError::Relation { .. }) => "42P01",
        QueryError::UndefinedColumn { .. } => "42703",
        QueryError::AmbiguousColumn { .. } => "42702",
        QueryError::UndefinedFunction { .. } => "42883",
        QueryError::Unsupported { .. } => "0A000",
        QueryError::Input(InputError::Syntax { .. }) => "22P02",
        QueryError::Input(InputError::Range { .. }) | QueryError::OutOfRange { .. } => "22003",
        QueryError::Input(InputError::Buckets { .. }) => "2201G",
        QueryError::Input(InputError::Logarithm { .. }) => "2201E",
        QueryError::Input(InputError::Power { .. }) => "2201F",
        QueryError::Invalid { .. } => "42804",
        QueryError::DivisionByZero => "22012",
        QueryError::Cardinality => "21000",
        _ => "XX000",
    }
}

/// Errors that say the same in other words: a query that does not fit together.
fn alike(expected: &str, found: &str) -> bool {
    const MISFITS: [&str; 6] = ["42804", "42803", "42601", "42P10", "42883", "42846"];
    const DATES: [&str; 4] = ["22P02", "22003", "22007", "22008"];
    expected == found
        || (MISFITS.contains(&expected) && MISFITS.contains(&found))
        || (DATES.contains(&expected) && DATES.contains(&found))
}

/// Query and answer: a line behind `= ` for each line of a row, or `error` and a SQLSTATE.
fn expected(topic: &str) -> Vec<(String, Vec<String>)> {
    let text = read(&format!("{topic}.expected"));
    let blocks = text
        .split("\n\n")
        .map(|block| block.trim_end_matches('\n'))
        .filter(|block| !block.is_empty());
    blocks
        .map(|block| {
            let mut lines = block.lines();
            let query = lines.next().unwrap_or_default().to_owned();
            let rows = lines.map(|line| line.strip_prefix("= ").unwrap_or(line).to_owned());
            (query, rows.collect())
        })
        .collect()
}

fn sorted(query: &str, mut rows: Vec<String>) -> Vec<String> {
    // Without an order of its own a query has its rows in any.
    if !query.to_uppercase().contains("ORDER BY") {
        rows.sort();
    }
    rows
}

async fn compare(topic: &str) {
    let lake = Lake::filled().await;
    let refused: BTreeMap<String, String> = read("refused.txt")
        .lines()
        .filter_map(|line| line.split_once(" -- "))
        .map(|(query, construct)| (query.to_owned(), construct.to_owned()))
        .collect();
    let mut differences = Vec::new();
    let mut asked = 0;
    for (query, answer) in expected(topic) {
        asked += 1;
        let parsed = moraine_sql::parse_statements(&query);
        let found = match parsed {
            Ok(_) => lake
                .ask(&query)
                .await
                .map_err(|error| (state(&error), error.to_string())),
            Err(error) => Err(("42601", error.to_string())),
        };
        let found = match found {
            Ok(rows) => {
                let rows = crate::support::shown(&rows);
                let rows = rows
                    .iter()
                    .flat_map(|row| row.split('\n').map(str::to_owned).collect::<Vec<_>>());
                sorted(&query, rows.collect())
            }
            Err((state, error)) => vec![format!("error {state} {error}")],
        };
        let answer = sorted(&query, answer);
        let same = match (
            answer.first().and_then(|line| line.strip_prefix("error ")),
            found.first(),
        ) {
            _ if refused.contains_key(&query) => {
                let refusals = ["error 0A000", "error 42601"];
                found
                    .first()
                    .is_some_and(|line| refusals.iter().any(|refusal| line.starts_with(refusal)))
            }
            (Some(state), Some(found)) => found
                .strip_prefix("error ")
                .and_then(|found| found.get(..5))
                .is_some_and(|found| alike(state, found)),
            _ => found == answer,
        };
        if !same {
            differences.push(format!(
                "{query}\n  PostgreSQL: {answer:?}\n  moraine:    {found:?}"
            ));
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {asked} differ\n{}",
        differences.len(),
        differences.join("\n")
    );
}

macro_rules! topics {
    ($($name:ident)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                compare(stringify!($name)).await;
            }
        )*
    };
}

topics! { dependent grouping joins lakes moments numbers rows sets strings whole_rows windows }

/// A value as a literal of SQL.
fn literal(value: &Value) -> String {
    match moraine_sql::text::format(value) {
        None => "NULL".to_owned(),
        Some(text) => format!("'{}'", text.replace('\'', "''")),
    }
}

/// The lake's relations as SQL. What differs from one making of the lake to the next is left out.
async fn account(lake: &Lake) -> String {
    let tx = lake.begin().await;
    let mut out = String::new();
    let mut relations: Vec<Relation> = list(&tx)
        .await
        .unwrap()
        .into_iter()
        .map(|(relation, _)| relation)
        .collect();
    relations.sort();
    for relation in relations {
        let shape = describe(&tx, relation).await.unwrap().unwrap();
        let columns: Vec<String> = shape
            .columns
            .iter()
            .map(|column| format!("{} {}", column.name, column.column_type.sql_name()))
            .collect();
        out.push_str(&format!("CREATE TABLE {relation} ({});\n", columns.join(", ")));
        let all: Vec<usize> = (0..shape.columns.len()).collect();
        let rows = scan(&tx, relation, &all, &moraine_tables::Filter::all())
            .await
            .unwrap();
        for row in rows.collect().await.unwrap() {
            let values = row.values.iter().zip(&shape.columns).map(|(value, column)| {
                let varies = match relation {
                    Relation::Snapshot => {
                        column.name == "snapshot_time" && row.values.first() == Some(&Value::Int64(0))
                    }
                    Relation::Schema => column.name == "schema_uuid",
                    Relation::Metadata => column.name == "value",
                    _ => false,
                };
                if varies { "NULL".to_owned() } else { literal(value) }
            });
            let values: Vec<String> = values.collect();
            out.push_str(&format!(
                "INSERT INTO {relation} VALUES ({});\n",
                values.join(", ")
            ));
        }
    }
    out
}

#[tokio::test]
async fn postgres_was_asked_about_this_lake() {
    let account = account(&Lake::filled().await).await;
    if std::env::var_os("MORAINE_WRITE_CORPUS").is_some() {
        std::fs::write(directory().join("lake.sql"), &account).unwrap();
    }
    assert_eq!(read("lake.sql"), account);
}
