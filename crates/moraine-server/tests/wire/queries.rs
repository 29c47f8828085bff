//! Queries and changes that need more than one relation, over the wire.

use tokio_postgres::NoTls;
use tokio_postgres::types::Type;

use crate::client::{Client, TestServer};

async fn lake(server: &TestServer) -> Client {
    let mut client = server.connect_to_lake().await;
    client.create_table(1, "events").await;
    client.create_table(2, "users").await;
    client
}

async fn driver(server: &TestServer) -> tokio_postgres::Client {
    let port = server.address.port();
    let config = format!("host=127.0.0.1 port={port} user=tester dbname=lake");
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test]
async fn joins_groups_and_windows_are_answered() {
    let server = TestServer::start().await;
    let mut client = lake(&server).await;
    for (sql, expected) in [
        (
            "SELECT t.table_name, s.schema_name FROM ducklake_table t JOIN ducklake_schema s USING (schema_id) ORDER BY 1",
            vec![vec!["events", "main"], vec!["users", "main"]],
        ),
        (
            "SELECT schema_id, count(*) FROM ducklake_table GROUP BY schema_id",
            vec![vec!["0", "2"]],
        ),
        (
            "SELECT lower(upper(table_name)) FROM ducklake_table WHERE table_id = 1",
            vec![vec!["events"]],
        ),
        (
            "WITH t AS (SELECT * FROM ducklake_table) SELECT table_id, row_number() OVER (ORDER BY table_id DESC) FROM t ORDER BY 1",
            vec![vec!["1", "2"], vec!["2", "1"]],
        ),
        (
            "SELECT table_id + 1 FROM ducklake_table WHERE table_name LIKE 'us%' FOR UPDATE",
            vec![vec!["3"]],
        ),
        (
            "SELECT table_name FROM public.ducklake_table WHERE table_id IN (SELECT max(table_id) FROM ducklake_table)",
            vec![vec!["users"]],
        ),
        (
            "SELECT c.relname FROM pg_class c JOIN ducklake_schema s ON s.schema_name = 'main' AND c.relname = 'ducklake_view' GROUP BY 1",
            vec![vec!["ducklake_view"]],
        ),
    ] {
        assert_eq!(client.run(sql).await.table(), expected, "{sql}");
    }
}

#[tokio::test]
async fn a_query_is_copied_out() {
    let server = TestServer::start().await;
    let mut client = lake(&server).await;
    let sql =
        "COPY (SELECT table_id, upper(table_name) FROM ducklake_table ORDER BY table_id DESC) TO STDOUT";
    let lines = client.run(sql).await.copy_data().concat();
    assert_eq!(String::from_utf8(lines).unwrap(), "2\tUSERS\n1\tEVENTS\n");
}

#[tokio::test]
async fn a_query_sees_the_changes_of_its_transaction() {
    let server = TestServer::start().await;
    let mut client = lake(&server).await;
    client.run("BEGIN").await;
    client
        .run("INSERT INTO ducklake_metadata VALUES ('k', 'v', NULL, NULL)")
        .await;
    let sql = "SELECT upper(value) FROM ducklake_metadata WHERE key = 'k'";
    assert_eq!(client.run(sql).await.table(), [["V"]]);
    client.run("ROLLBACK").await;
    assert_eq!(client.run(sql).await.table(), Vec::<Vec<String>>::new());
}

#[tokio::test]
async fn rows_are_inserted_from_a_query() {
    let server = TestServer::start().await;
    let mut client = lake(&server).await;
    let sql = "INSERT INTO ducklake_metadata (key, value) SELECT 'n' || table_id, upper(table_name) FROM ducklake_table";
    assert_eq!(client.run(sql).await.tags(), ["INSERT 0 2"]);
    let sql = "INSERT INTO ducklake_metadata VALUES ('low', lower('ABC'), NULL, NULL) RETURNING key, value || '!' AS shout";
    let answer = client.run(sql).await;
    assert_eq!(
        (answer.table(), answer.tags()),
        (
            vec![vec!["low".to_owned(), "abc!".to_owned()]],
            vec!["INSERT 0 1".to_owned()]
        )
    );
    let sql = "SELECT key, value FROM ducklake_metadata WHERE key IN ('n1', 'n2', 'low') ORDER BY key";
    assert_eq!(
        client.run(sql).await.table(),
        [["low", "abc"], ["n1", "EVENTS"], ["n2", "USERS"]]
    );
}

#[tokio::test]
async fn rows_are_changed_under_any_condition() {
    let server = TestServer::start().await;
    let mut client = lake(&server).await;
    client.run("INSERT INTO ducklake_metadata VALUES ('a', '1', NULL, NULL), ('b', '2', NULL, NULL), ('c', '3', NULL, NULL)").await;
    let sql = "UPDATE ducklake_metadata m SET value = m.value || t.table_name FROM ducklake_table t \
               WHERE t.table_id::text = m.value RETURNING m.key, value";
    let answer = client.run(sql).await;
    let mut changed = answer.table();
    changed.sort();
    assert_eq!(
        (changed, answer.tags()),
        (
            vec![
                vec!["a".to_owned(), "1events".to_owned()],
                vec!["b".to_owned(), "2users".to_owned()]
            ],
            vec!["UPDATE 2".to_owned()]
        )
    );
    let sql = "DELETE FROM ducklake_metadata WHERE value LIKE '%events' OR key = (SELECT 'c') RETURNING key";
    let mut deleted = client.run(sql).await.table();
    deleted.sort();
    assert_eq!(deleted, [["a"], ["c"]]);
    let sql = "DELETE FROM ducklake_metadata USING ducklake_table t WHERE value = '2' || t.table_name";
    assert_eq!(client.run(sql).await.tags(), ["DELETE 1"]);
}

#[tokio::test]
async fn a_row_that_is_there_is_left_or_changed() {
    let server = TestServer::start().await;
    let mut client = lake(&server).await;
    let row = "(0, '00000000-0000-0000-0000-000000000000', 0, NULL, 'other', 'other/', true)";
    let sql = format!("INSERT INTO ducklake_schema VALUES {row} ON CONFLICT DO NOTHING");
    assert_eq!(client.run(&sql).await.tags(), ["INSERT 0 0"]);
    let sql = format!(
        "INSERT INTO ducklake_schema AS s VALUES {row} ON CONFLICT (schema_id) DO UPDATE SET path = excluded.path || s.schema_name \
         RETURNING schema_name, path"
    );
    let answer = client.run(&sql).await;
    assert_eq!(
        (answer.table(), answer.tags()),
        (
            vec![vec!["main".to_owned(), "other/main".to_owned()]],
            vec!["INSERT 0 1".to_owned()]
        )
    );
    let sql = format!("INSERT INTO ducklake_schema VALUES {row} ON CONFLICT (path) DO NOTHING");
    assert_eq!(client.query(&sql).await.state(), "42P10");
}

#[tokio::test]
async fn a_driver_gives_parameters_and_takes_results_in_binary() {
    let server = TestServer::start().await;
    let _lake = lake(&server).await;
    let client = driver(&server).await;
    let sql = "SELECT t.table_id, t.table_name, t.table_uuid::text, s.snapshot_time IS NOT NULL, count(*) OVER () \
               FROM ducklake_table t JOIN ducklake_snapshot s ON s.snapshot_id = t.begin_snapshot \
               WHERE t.table_id = $1 AND upper(t.table_name) = $2";
    let statement = client.prepare(sql).await.unwrap();
    assert_eq!(statement.params(), [Type::INT8, Type::TEXT]);
    let row = client.query_one(&statement, &[&2i64, &"USERS"]).await.unwrap();
    assert_eq!(
        (
            row.get::<_, i64>(0),
            row.get::<_, &str>(1),
            row.get::<_, bool>(3),
            row.get::<_, i64>(4)
        ),
        (2, "users", true, 1)
    );
    let inserted = client
        .query_one(
            "INSERT INTO ducklake_metadata VALUES ($1, upper($2), $3, $4) RETURNING key, value",
            &[&"k", &"v", &None::<&str>, &None::<i64>],
        )
        .await
        .unwrap();
    assert_eq!(
        (inserted.get::<_, &str>(0), inserted.get::<_, &str>(1)),
        ("k", "V")
    );
    let changed = client
        .execute(
            "UPDATE ducklake_metadata SET value = $1 WHERE key || value = $2",
            &[&"w", &"kV"],
        )
        .await
        .unwrap();
    assert_eq!(changed, 1);
    let oid = client
        .query_one(
            "SELECT c.oid, c.relkind, lower(c.relname) FROM pg_catalog.pg_class c WHERE c.relname = $1",
            &[&"ducklake_table"],
        )
        .await
        .unwrap();
    assert!(oid.get::<_, u32>(0) > 16_000);
    assert_eq!(
        (oid.get::<_, i8>(1), oid.get::<_, &str>(2)),
        (i8::try_from(b'r').unwrap(), "ducklake_table")
    );
}

#[tokio::test]
async fn what_fails_has_its_state() {
    let server = TestServer::start().await;
    let mut client = lake(&server).await;
    for (sql, state) in [
        ("SELECT 1 / (table_id - table_id) FROM ducklake_table", "22012"),
        ("SELECT (SELECT table_id FROM ducklake_table)", "21000"),
        ("SELECT frobnicate(table_id) FROM ducklake_table", "42883"),
        (
            "SELECT x.y FROM ducklake_table t JOIN ducklake_schema s USING (schema_id)",
            "42703",
        ),
        (
            "SELECT 1 FROM ducklake_table JOIN orders USING (table_id)",
            "42P01",
        ),
        (
            "SELECT 1 FROM ducklake_table a JOIN ducklake_table b ON a.table_id = 'x'",
            "22P02",
        ),
        (
            "SELECT upper(table_name) FROM ducklake_table TABLESAMPLE SYSTEM (1)",
            "0A000",
        ),
        ("INSERT INTO ducklake_metadata SELECT 1, 2, 3, 4, 5", "42601"),
        (
            "UPDATE ducklake_table SET table_id = lower('X') WHERE true",
            "22P02",
        ),
    ] {
        let answer = client.query(sql).await;
        assert_eq!(answer.state(), state, "{sql}: {}", answer.error().1);
        assert_eq!(client.run("SELECT 1").await.table(), [["1"]]);
    }
}

#[tokio::test]
async fn a_whole_row_is_a_value() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    for (sql, expected) in [
        (
            "SELECT s FROM (SELECT schema_id, schema_name FROM ducklake_schema) s",
            "(0,main)",
        ),
        ("SELECT count(s) FROM ducklake_schema s", "1"),
        (
            "SELECT (s.schema_id, s.schema_name) FROM ducklake_schema s",
            "(0,main)",
        ),
        ("SELECT schema_name::char(6) FROM ducklake_schema", "main  "),
    ] {
        assert_eq!(client.run(sql).await.table(), [[expected]], "{sql}");
    }
    assert_eq!(client.run("TABLE ducklake_schema").await.table().len(), 1);
    let row = client
        .run("SELECT ducklake_schema FROM ducklake_schema")
        .await
        .table();
    assert!(row[0][0].starts_with("(0,"), "{row:?}");
}
