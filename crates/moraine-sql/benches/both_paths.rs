//! The same statement of one relation, as the direct path reads it and through DataFusion, over a lake in memory; prints
//! how many times longer the second takes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use moraine_commit::{Catalog, CatalogTransaction};
use moraine_sql::{CatalogRelations, Engine, SessionFacts};
use moraine_store::{MemoryStore, Store};
use moraine_tables::{CompareOp, Comparison, Filter, Relation, Value, describe, insert, scan};
use sqlparser::ast::Statement;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use tokio::runtime::Runtime;

/// Tables of the lake, each with one column.
const TABLES: i64 = 2_000;
/// Runs of each path behind the printed ratio.
const RATIO_RUNS: u32 = 200;

async fn lake() -> Arc<Catalog> {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let catalog = Catalog::with_store(store);
    catalog.create(Some("data/"), false).await.unwrap();
    let mut tx = catalog.begin().await.unwrap();
    let snapshot = vec![
        Value::Int64(1),
        Value::TimestampTz(4_000_000_000_000_000),
        Value::Int64(1),
        Value::Int64(TABLES + 1),
        Value::Int64(0),
    ];
    insert(&mut tx, Relation::Snapshot, vec![snapshot]).await.unwrap();
    let changes = vec![
        Value::Int64(1),
        Value::text("created_table:\"main\".\"t\""),
        Value::Null,
        Value::Null,
        Value::Null,
    ];
    insert(&mut tx, Relation::SnapshotChanges, vec![changes])
        .await
        .unwrap();
    let rows = (1..=TABLES).map(|id| {
        vec![
            Value::Int64(id),
            Value::Uuid([0; 16]),
            Value::Int64(1),
            Value::Null,
            Value::Int64(0),
            Value::text(format!("t{id}")),
            Value::text(format!("t{id}/")),
            Value::Bool(true),
        ]
    });
    insert(&mut tx, Relation::Table, rows.collect()).await.unwrap();
    tx.commit().await.unwrap();
    catalog
}

async fn direct(tx: &CatalogTransaction, filter: &Filter) -> usize {
    let schema = describe(tx, Relation::Table).await.unwrap().unwrap();
    let columns: Vec<usize> = (0..schema.columns.len()).collect();
    let rows = scan(tx, Relation::Table, &columns, filter).await.unwrap();
    rows.collect().await.unwrap().len()
}

async fn planned(engine: &Arc<Engine>, tx: &CatalogTransaction, text: &str) -> usize {
    let mut parsed = Parser::parse_sql(&PostgreSqlDialect {}, text).unwrap();
    let Some(Statement::Query(query)) = parsed.pop() else {
        panic!("no query");
    };
    let mut relations = CatalogRelations::new(tx, "main");
    let facts = Arc::new(SessionFacts::default());
    let plan = engine.plan(&query, &mut relations, &facts, &[]).await.unwrap();
    plan.run(&[], &relations)
        .await
        .unwrap()
        .collect()
        .await
        .unwrap()
        .len()
}

fn both_paths(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let catalog = runtime.block_on(lake());
    let tx = runtime.block_on(catalog.begin()).unwrap();
    let engine = Arc::new(Engine::new().unwrap());
    let by_id = Filter {
        all_of: vec![Comparison::Compare {
            column: 0,
            op: CompareOp::Eq,
            value: Value::Int64(7),
        }],
    };
    let mut group = criterion.benchmark_group("both_paths");
    group.sample_size(20).measurement_time(Duration::from_secs(2));
    for (name, filter, text) in [
        (
            "one row by its id",
            by_id,
            "SELECT * FROM ducklake_table WHERE table_id = 7",
        ),
        ("all rows", Filter::all(), "SELECT * FROM ducklake_table"),
    ] {
        group.bench_function(format!("direct, {name}"), |bench| {
            bench.iter(|| runtime.block_on(direct(&tx, &filter)));
        });
        group.bench_function(format!("DataFusion, {name}"), |bench| {
            bench.iter(|| runtime.block_on(planned(&engine, &tx, text)));
        });
        let started = Instant::now();
        let found = (0..RATIO_RUNS)
            .map(|_| runtime.block_on(direct(&tx, &filter)))
            .max();
        let first = started.elapsed();
        let started = Instant::now();
        let other = (0..RATIO_RUNS)
            .map(|_| runtime.block_on(planned(&engine, &tx, text)))
            .max();
        let second = started.elapsed();
        assert_eq!(found, other, "{text}");
        println!(
            "{name}: direct {:?}, DataFusion {:?}, ratio {:.1}",
            first / RATIO_RUNS,
            second / RATIO_RUNS,
            second.as_secs_f64() / first.as_secs_f64()
        );
    }
    group.finish();
}

criterion_group!(benches, both_paths);
criterion_main!(benches);
