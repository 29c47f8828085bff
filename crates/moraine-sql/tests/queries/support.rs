//! A lake in memory with a few tables and snapshots, and short ways to ask it.

use std::sync::{Arc, LazyLock};

use moraine_commit::{Catalog, CatalogTransaction};
use moraine_sql::{CatalogRelations, Engine, NamedRelation, Plan, QueryError, SessionFacts, SqlType};
use moraine_store::{MemoryStore, Store};
use moraine_tables::{Relation, Value, insert};
use sqlparser::ast::{Query, Statement};

/// One engine serves all tests, as it serves all sessions of a server.
pub(crate) static ENGINE: LazyLock<Arc<Engine>> = LazyLock::new(|| Arc::new(Engine::new().unwrap()));

/// 2093-11-14 22:13:20 UTC: later than the making of a test's lake, because the times of snapshots only rise.
pub(crate) const NOW: i64 = 3_909_075_200_000_000;

pub(crate) fn query(text: &str) -> Query {
    let mut parsed = moraine_sql::parse_statements(text).unwrap();
    match parsed.pop() {
        Some(Statement::Query(query)) => *query,
        other => panic!("no query: {other:?}"),
    }
}

pub(crate) fn facts() -> Arc<SessionFacts> {
    Arc::new(SessionFacts {
        version: "PostgreSQL 15.0 (moraine)".to_owned(),
        database: "lake".to_owned(),
        search_path: vec!["main".to_owned()],
        user: "somebody".to_owned(),
        pid: 42,
        now: NOW,
        settings: vec![("server_encoding".to_owned(), "UTF8".to_owned())],
        relations: vec![
            NamedRelation {
                oid: 16_400,
                schema: "main".to_owned(),
                name: "ducklake_table".to_owned(),
                key: None,
                index_of: None,
            },
            NamedRelation {
                oid: 16_401,
                schema: "other".to_owned(),
                name: "Ducklake Table".to_owned(),
                key: None,
                index_of: None,
            },
        ],
    })
}

pub(crate) struct Lake {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) store: Arc<MemoryStore>,
}

fn table(id: i64, end: Option<i64>, name: &str) -> Vec<Value> {
    vec![
        Value::Int64(id),
        Value::Uuid([u8::try_from(id).unwrap(); 16]),
        Value::Int64(1),
        end.map_or(Value::Null, Value::Int64),
        Value::Int64(0),
        Value::text(name),
        Value::text("t/"),
        Value::Bool(true),
    ]
}

fn column(table: i64, id: i64, name: &str, kind: &str) -> Vec<Value> {
    vec![
        Value::Int64(id),
        Value::Int64(1),
        Value::Null,
        Value::Int64(table),
        Value::Int64(id),
        Value::text(name),
        Value::text(kind),
        Value::Null,
        Value::Null,
        Value::Bool(id % 2 == 0),
        Value::Null,
        Value::Null,
        Value::Null,
    ]
}

fn file(id: i64, table: i64, rows: i64, bytes: i64) -> Vec<Value> {
    vec![
        Value::Int64(id),
        Value::Int64(table),
        Value::Int64(2),
        Value::Null,
        Value::Null,
        Value::text(format!("f{id}.parquet")),
        Value::Bool(id % 2 == 1),
        Value::text("parquet"),
        Value::Int64(rows),
        Value::Int64(bytes),
        Value::Int64(100),
        Value::Int64(0),
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Null,
    ]
}

impl Lake {
    /// A lake with snapshot 0 and schema `main`.
    pub(crate) async fn empty() -> Self {
        let store = Arc::new(MemoryStore::new());
        let catalog = Catalog::with_store(Arc::clone(&store) as Arc<dyn Store>);
        catalog.create(Some("data/"), false).await.unwrap();
        Self { catalog, store }
    }

    /// Three tables (one ended), two columns each, five files, three snapshots after genesis.
    pub(crate) async fn filled() -> Self {
        let lake = Self::empty().await;
        lake.write(vec![
            (
                Relation::Table,
                vec![
                    table(1, None, "events"),
                    table(2, Some(3), "Old"),
                    table(3, None, "users"),
                ],
            ),
            (
                Relation::Column,
                [1, 2, 3]
                    .iter()
                    .flat_map(|id| [column(*id, 1, "id", "int64"), column(*id, 2, "name", "varchar")])
                    .collect(),
            ),
        ])
        .await;
        lake.write(vec![(
            Relation::DataFile,
            vec![
                file(10, 1, 100, 1000),
                file(11, 1, 200, 2500),
                file(12, 1, 300, 100),
                file(13, 3, 5, 50),
                file(14, 3, 7, 70),
            ],
        )])
        .await;
        lake.write(Vec::new()).await;
        lake
    }

    /// Inserts rows in one snapshot.
    pub(crate) async fn write(&self, rows: Vec<(Relation, Vec<Vec<Value>>)>) {
        let mut tx = self.begin().await;
        let snapshot = i64::try_from(tx.newest_snapshot_id().unwrap()).unwrap() + 1;
        let row = vec![
            Value::Int64(snapshot),
            Value::TimestampTz(NOW + snapshot * 1_000_000),
            Value::Int64(snapshot),
            Value::Int64(1000),
            Value::Int64(1000),
        ];
        insert(&mut tx, Relation::Snapshot, vec![row]).await.unwrap();
        let changes = vec![
            Value::Int64(snapshot),
            Value::text("altered_table:1"),
            Value::text("ann"),
            Value::Null,
            Value::Null,
        ];
        insert(&mut tx, Relation::SnapshotChanges, vec![changes])
            .await
            .unwrap();
        for (relation, rows) in rows {
            insert(&mut tx, relation, rows).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    pub(crate) async fn begin(&self) -> CatalogTransaction {
        self.catalog.begin().await.unwrap()
    }

    /// The answer to a query in a new transaction.
    pub(crate) async fn ask(&self, text: &str) -> Result<Vec<Vec<Value>>, QueryError> {
        answer(&self.begin().await, text, &[], &[]).await
    }

    /// The answer as text: fields separated by `|`, NULL as `~`.
    pub(crate) async fn text(&self, text: &str) -> Vec<String> {
        match self.ask(text).await {
            Ok(rows) => shown(&rows),
            Err(error) => panic!("{text}: {error} ({error:?})"),
        }
    }

    /// The names and types of a query's columns.
    pub(crate) async fn columns(&self, text: &str) -> Vec<(String, String)> {
        let tx = self.begin().await;
        let mut relations = CatalogRelations::new(&tx, "main");
        let plan = plan(&mut relations, text, &[]).await.unwrap();
        plan.columns()
            .iter()
            .map(|column| (column.name.clone(), column.sql_type.sql_name()))
            .collect()
    }
}

pub(crate) async fn plan(
    relations: &mut CatalogRelations<'_>,
    text: &str,
    declared: &[Option<SqlType>],
) -> Result<Plan, QueryError> {
    ENGINE.plan(&query(text), relations, &facts(), declared).await
}

pub(crate) async fn answer(
    tx: &CatalogTransaction,
    text: &str,
    declared: &[Option<SqlType>],
    parameters: &[Value],
) -> Result<Vec<Vec<Value>>, QueryError> {
    let mut relations = CatalogRelations::new(tx, "main");
    let plan = plan(&mut relations, text, declared).await?;
    plan.run(parameters, &relations).await?.collect().await
}

pub(crate) fn shown(rows: &[Vec<Value>]) -> Vec<String> {
    let field = |value: &Value| moraine_sql::text::format(value).unwrap_or_else(|| "~".to_owned());
    rows.iter()
        .map(|row| row.iter().map(field).collect::<Vec<_>>().join("|"))
        .collect()
}
