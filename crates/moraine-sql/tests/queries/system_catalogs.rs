//! Relations in memory, as a server gives its system catalogs: numbers of objects, hidden columns, qualified names.

use moraine_sql::{
    RelationError, RelationName, Relations, Resolved, ScanRequest, ScanSink, SqlColumn, SqlType,
};
use moraine_tables::{ColumnType, Value};

use crate::support::{ENGINE, facts, query, shown};

struct Catalogs;

#[async_trait::async_trait]
impl Relations for Catalogs {
    async fn resolve(&mut self, name: &RelationName) -> Result<Option<Resolved>, RelationError> {
        let text = ColumnType::Text;
        Ok(match name.name.as_str() {
            "pg_class" => Some(Resolved::Rows {
                columns: vec![
                    SqlColumn::new("oid", SqlType::Oid),
                    SqlColumn::hidden("tableoid", SqlType::Oid),
                    SqlColumn::new("relname", SqlType::Name),
                    SqlColumn::new("relnamespace", SqlType::Oid),
                    SqlColumn::new("relkind", SqlType::Char),
                    SqlColumn::new("reltuples", ColumnType::Float32),
                ],
                rows: [
                    (16_400, "ducklake_table", 2200),
                    (16_401, "Ducklake Table", 16_500),
                ]
                .map(|(oid, name, schema)| {
                    let kind = Value::text("r");
                    let oids = [Value::Int64(oid), Value::Int64(1259)];
                    let rest = [
                        Value::text(name),
                        Value::Int64(schema),
                        kind,
                        Value::Float32(-1.0),
                    ];
                    oids.into_iter().chain(rest).collect()
                })
                .to_vec(),
            }),
            "pg_namespace" => Some(Resolved::Rows {
                columns: vec![
                    SqlColumn::new("oid", SqlType::Oid),
                    SqlColumn::new("nspname", SqlType::Name),
                ],
                rows: vec![
                    vec![Value::Int64(2200), Value::text("main")],
                    vec![Value::Int64(16_500), Value::text("other")],
                ],
            }),
            "pg_index" => Some(Resolved::Rows {
                columns: vec![
                    SqlColumn::new("indrelid", SqlType::Oid),
                    SqlColumn::new("indkey", text),
                ],
                rows: Vec::new(),
            }),
            _ => None,
        })
    }

    async fn scan(&self, _: ScanRequest, _: ScanSink) -> Result<(), RelationError> {
        Err("nothing is stored here".into())
    }
}

async fn ask(text: &str) -> (Vec<String>, Vec<String>) {
    let mut relations = Catalogs;
    let plan = ENGINE
        .plan(&query(text), &mut relations, &facts(), &[])
        .await
        .unwrap();
    let names = plan
        .columns()
        .iter()
        .map(|column| column.sql_type.sql_name())
        .collect();
    let rows = plan.run(&[], &relations).await.unwrap().collect().await.unwrap();
    (names, shown(&rows))
}

#[tokio::test]
async fn objects_are_joined_by_their_numbers() {
    let (types, rows) = ask(
        "SELECT c.oid, n.nspname, c.relname, c.relkind FROM pg_catalog.pg_class c \
         LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind IN ('r','p','') AND n.nspname !~ '^pg_toast' AND n.nspname <> 'pg_catalog' \
         AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 1, 2",
    )
    .await;
    assert_eq!(types, ["oid", "name", "name", "char"]);
    assert_eq!(rows, ["16400|main|ducklake_table|r"]);
}

#[tokio::test]
async fn numbers_are_compared_with_text_and_relations() {
    for condition in [
        "oid = '16400'",
        "oid = 16400",
        "oid = 'ducklake_table'::regclass",
        "oid::regclass::text = 'ducklake_table'",
    ] {
        let (_, rows) = ask(&format!("SELECT relname FROM pg_class WHERE {condition}")).await;
        assert_eq!(rows, ["ducklake_table"], "{condition}");
    }
}

#[tokio::test]
async fn a_hidden_column_must_be_said() {
    let (types, _) = ask("SELECT * FROM pg_class").await;
    assert_eq!(types.len(), 5);
    let (_, rows) = ask("SELECT tableoid, oid FROM pg_class WHERE relname = 'ducklake_table'").await;
    assert_eq!(rows, ["1259|16400"]);
}

#[tokio::test]
async fn a_case_over_kinds_is_text() {
    let (types, rows) = ask(
        "SELECT CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' END AS \"Type\", \
         pg_catalog.pg_get_userbyid(10) AS \"Owner\" FROM pg_catalog.pg_class c LIMIT 1",
    )
    .await;
    assert_eq!(types, ["text", "name"]);
    assert_eq!(rows, ["table|moraine"]);
}
