//! The answer to a statement does not depend on who gives it: the direct path or the query engine for one relation of a
//! lake, the small evaluator or the query engine for the system catalogs. A common table expression sends a statement to
//! the query engine, whatever it reads.

use crate::client::{Client, TestServer, create_table};

/// A generator of the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        // Knuth's linear congruential generator; the high bits are the better ones.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// Rows, or the SQLSTATE.
async fn answer(client: &mut Client, text: &str) -> Result<Vec<Vec<String>>, String> {
    let answer = client.query(text).await;
    if answer.of_kind('E').is_empty() {
        return Ok(answer.table());
    }
    Err(answer.error().0)
}

async fn lake() -> (TestServer, Client) {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    for (id, name) in [(1, "events"), (2, "Users"), (3, "o''dd")] {
        client.query(&create_table(id, name)).await;
    }
    client
        .query("INSERT INTO ducklake_metadata VALUES ('k', 'v', 'table', 1), ('K', NULL, NULL, NULL), ('a_b', 'x%y', 'schema', 0)")
        .await;
    (server, client)
}

/// The columns of every relation of the lake, with their types.
async fn columns(client: &mut Client) -> Vec<(String, Vec<(String, String)>)> {
    let rows = answer(
        client,
        "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public'",
    )
    .await
    .unwrap();
    let mut tables: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for row in rows {
        let [table, column, kind] = <[String; 3]>::try_from(row).unwrap();
        match tables.last_mut() {
            Some((last, columns)) if *last == table => columns.push((column, kind)),
            _ => tables.push((table, vec![(column, kind)])),
        }
    }
    tables
}

fn condition(numbers: &mut Numbers, column: &str, kind: &str) -> String {
    let number = numbers.below(6).to_string();
    let quoted = format!("'{number}'");
    let literal: &str = match kind {
        "bigint" | "integer" => numbers.one(&[&number, &quoted]),
        "boolean" => numbers.one(&["true", "false"]),
        "uuid" => "'00000000-0000-0000-0000-000000000001'",
        "timestamp with time zone" => numbers.one(&["'2020-01-01 00:00:00+00'", "'2100-01-01 00:00:00+00'"]),
        _ => numbers.one(&["'events'", "'k'", "'K'", "'v'", "''", "'o''dd'", "'main'"]),
    };
    let operator = numbers.one(&["=", "<>", "<", "<=", ">", ">="]);
    match numbers.below(10) {
        0 => format!("{column} IS NULL"),
        1 => format!("{column} IS NOT NULL"),
        2 => format!("{column} IN ({literal}, {literal})"),
        3 => format!("{column} NOT IN ({literal}, NULL)"),
        4 => format!("{column} BETWEEN {literal} AND {literal}"),
        5 if kind == "character varying" => {
            let pattern = numbers.one(&["'%e%'", "'_'", "'a\\_b'", "'K%'", "'%'"]);
            format!(
                "{column} {} {pattern}",
                numbers.one(&["LIKE", "NOT LIKE", "ILIKE"])
            )
        }
        6 => format!("NOT ({column} {operator} {literal})"),
        7 => format!("({column} {operator} {literal} OR {column} IS NULL)"),
        8 => format!("{column}::text = {quoted}"),
        _ => format!("{column} {operator} {literal}"),
    }
}

#[tokio::test]
async fn a_statement_of_one_relation_has_the_same_answer_on_both_paths() {
    let (server, mut client) = lake().await;
    let tables = columns(&mut client).await;
    assert!(tables.len() >= 28, "{}", tables.len());
    let mut numbers = Numbers(7);
    let mut with_rows = 0;
    for round in 0..6 {
        for (table, columns) in &tables {
            let mut conditions = Vec::new();
            for _ in 0..numbers.below(3) {
                let (column, kind) = &columns[numbers.below(columns.len())];
                conditions.push(condition(&mut numbers, column, kind));
            }
            let (first, _) = &columns[0];
            let (other, _) = &columns[numbers.below(columns.len())];
            let items = match round {
                0 => "*".to_owned(),
                1 => format!("count(*), min({first}), max({first})"),
                _ => format!("{other}, {first}"),
            };
            let filter = match conditions.is_empty() {
                true => String::new(),
                false => format!(" WHERE {}", conditions.join(numbers.one(&[" AND ", " OR "]))),
            };
            let tail = match round {
                3 => format!(" ORDER BY {first}, {other} LIMIT {}", numbers.below(4)),
                4 => format!(" ORDER BY {other} DESC NULLS LAST, {first}"),
                _ => String::new(),
            };
            let direct = format!("SELECT {items} FROM {table}{filter}{tail}");
            let general = format!("WITH q AS (SELECT * FROM {table}) SELECT {items} FROM q{filter}{tail}");
            let expected = answer(&mut client, &general).await;
            let mut found = answer(&mut client, &direct).await;
            let mut expected = expected;
            if tail.is_empty() {
                found.iter_mut().for_each(|rows| rows.sort());
                expected.iter_mut().for_each(|rows| rows.sort());
            }
            with_rows += usize::from(found.as_ref().is_ok_and(|rows| !rows.is_empty()));
            assert_eq!(found, expected, "{direct}");
        }
    }
    assert!(with_rows > 30, "only {with_rows} statements had rows");
    server.stop().await;
}

#[tokio::test]
async fn a_question_of_the_catalogs_has_the_same_answer_from_both_evaluators() {
    let (server, mut client) = lake().await;
    let conditions = [
        "relname = 'ducklake_table'",
        "relname IN ('ducklake_table', 'nothing')",
        "relname LIKE 'ducklake\\_s%'",
        "relname NOT LIKE 'ducklake%'",
        "relkind = 'r' AND relname <> 'ducklake_table'",
        "relkind IN ('r', 'v', 'p') AND relpages = 0",
        "relname > 'ducklake_s' OR relname IS NULL",
        "NOT (relname < 'ducklake_s')",
        "relname BETWEEN 'ducklake_a' AND 'ducklake_d'",
        "relhasindex",
        "nspname = 'public'",
        "nspname = current_schema()",
        "nspname NOT IN ('pg_catalog', NULL)",
        "relname = 'ducklake_snapshot_pkey'",
        "relname NOT LIKE 'x/_%' ESCAPE '/'",
        "coalesce(relname, 'x') = lower('DUCKLAKE_TABLE')",
        "CASE WHEN relkind = 'r' THEN relnatts ELSE 0 END > 8",
        "pg_class.oid::text <> '0' AND relnatts::text = '5'",
    ];
    let items = [
        "relname, relkind, relnatts",
        "pg_class.oid, relname, nspname, relnamespace = pg_namespace.oid",
        "count(*)",
        "relname, relpages + 1, reltuples, relhasindex, relpersistence",
        "NULL, 'x', relname, CASE relkind WHEN 'r' THEN 'table' END",
    ];
    for condition in conditions {
        for item in items {
            let small = format!(
                "SELECT {item} FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid WHERE {condition}"
            );
            let general = format!("WITH unused AS (SELECT 1) {small}");
            let mut found = answer(&mut client, &small).await;
            let mut expected = answer(&mut client, &general).await;
            found.iter_mut().for_each(|rows| rows.sort());
            expected.iter_mut().for_each(|rows| rows.sort());
            assert_eq!(found, expected, "{small}");
        }
    }
    for text in [
        "SELECT 1, 'x', NULL, true, 1.5, -2",
        "SELECT version(), current_database(), current_schema(), pg_is_in_recovery()",
        "SELECT attname, attnum, atttypid, atttypmod, attnotnull FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE relname = 'ducklake_table' ORDER BY attnum",
        "SELECT attname, typname FROM pg_attribute JOIN pg_type ON atttypid = pg_type.oid JOIN pg_class ON attrelid = pg_class.oid WHERE relname = 'ducklake_column' AND attnum > 2 ORDER BY attnum DESC LIMIT 3",
        "SELECT conname, contype, conkey FROM pg_constraint ORDER BY conname",
        "SELECT c.relname, i.indisprimary FROM pg_class c LEFT JOIN pg_index i ON i.indrelid = c.oid WHERE c.relkind = 'r' ORDER BY 1",
        "SELECT table_name, column_name, ordinal_position, is_nullable FROM information_schema.columns WHERE table_name = 'ducklake_snapshot' ORDER BY ordinal_position",
        "SELECT table_schema, count(*) FROM information_schema.tables GROUP BY table_schema",
        "SELECT nspname FROM pg_namespace UNION ALL SELECT relname FROM pg_class WHERE relname = 'ducklake_tag'",
        "SELECT to_regclass('ducklake_table') IS NULL, to_regclass('nothing') IS NULL",
        "SELECT 5 BETWEEN NULL AND 3, NOT (5 BETWEEN 1 AND NULL), NULL IN (1), 1 IN (2, NULL)",
        "SELECT name, setting FROM pg_settings WHERE name LIKE 'server%' ORDER BY name",
        "SELECT 1 / 0",
        "SELECT relname FROM pg_class WHERE nothing = 1",
        "SELECT 2147483647 + 1",
    ] {
        let general = format!("WITH unused AS (SELECT 1) {text}");
        let found = answer(&mut client, text).await;
        let expected = answer(&mut client, &general).await;
        assert_eq!(found, expected, "{text}");
    }
    server.stop().await;
}
