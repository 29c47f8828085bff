//! Many lakes in one server.

use crate::client::{Client, TestServer};

async fn tables(client: &mut Client, schema: &str) -> Vec<Vec<String>> {
    client
        .run(&format!("SELECT table_name FROM {schema}.ducklake_table"))
        .await
        .table()
}

#[tokio::test]
async fn database_and_schema_choose_the_lake() {
    let server = TestServer::start().await;
    let mut one = server.connect_to_lake().await;
    one.create_table(1, "one").await;
    let mut two = Client::connect(server.address, "an other lake").await;
    assert_eq!(two.query("SELECT * FROM ducklake_table").await.state(), "42P01");
    two.create_lake("public").await;
    two.create_table(1, "two").await;
    one.run("CREATE SCHEMA IF NOT EXISTS \"Annex\"").await;
    one.create_lake("Annex").await;
    assert_eq!(tables(&mut one, "public").await, [["one"]]);
    assert!(tables(&mut one, "\"Annex\"").await.is_empty());
    assert_eq!(tables(&mut two, "public").await, [["two"]]);
    let schemas = |client: Client| async move {
        let mut client = client;
        client
            .run("SELECT nspname FROM pg_namespace WHERE oid > 13000 OR nspname = 'public' ORDER BY nspname")
            .await
            .table()
    };
    assert_eq!(schemas(one).await, [["Annex"], ["public"]]);
    assert_eq!(schemas(two).await, [["public"]]);
}

#[tokio::test]
async fn the_search_path_names_the_schema_of_unqualified_tables() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.create_table(1, "t").await;
    client.create_lake("annex").await;
    client.run("SET search_path TO annex, public").await;
    assert!(
        client
            .run("SELECT table_name FROM ducklake_table")
            .await
            .rows()
            .is_empty()
    );
    assert_eq!(client.run("SELECT current_schema()").await.table(), [["annex"]]);
}

#[tokio::test]
async fn one_transaction_changes_one_lake() {
    let server = TestServer::start().await;
    let mut client = server.connect_to_lake().await;
    client.create_lake("annex").await;
    client.run("BEGIN").await;
    client
        .run("INSERT INTO public.ducklake_metadata VALUES ('a', 'b', NULL, NULL)")
        .await;
    client.run("SELECT * FROM annex.ducklake_metadata").await;
    let (state, message) = client
        .query("INSERT INTO annex.ducklake_metadata VALUES ('a', 'b', NULL, NULL)")
        .await
        .error();
    assert_eq!(state, "0A000");
    assert!(
        message.contains("\"public\"") && message.contains("\"annex\""),
        "{message}"
    );
}

#[tokio::test]
async fn looking_for_a_lake_creates_nothing() {
    let place = tempfile::tempdir().unwrap();
    let server = TestServer::start_at(place.path().to_str().unwrap()).await;
    let mut client = server.connect().await;
    client
        .run("BEGIN; SELECT relname FROM pg_class; SELECT nspname FROM pg_namespace; COMMIT")
        .await;
    assert_eq!(
        client.query("SELECT * FROM ducklake_metadata").await.state(),
        "42P01"
    );
    assert_eq!(
        client.query("DELETE FROM ducklake_metadata").await.state(),
        "42P01"
    );
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    client.create_lake("public").await;
    assert!(place.path().join("catalog/lake/public").is_dir());
}

#[tokio::test]
async fn names_that_are_no_folder_are_refused() {
    let server = TestServer::start().await;
    for bad in ["..", "a/b", "a\\b"] {
        let refused = Client::try_connect(server.address, bad)
            .await
            .err()
            .expect("no session");
        assert_eq!(refused.state(), "3D000", "{bad}");
    }
    let mut client = server.connect().await;
    assert_eq!(client.query("CREATE SCHEMA \"../x\"").await.state(), "3F000");
    assert_eq!(
        client.query("SELECT * FROM \"..\".ducklake_table").await.state(),
        "3F000"
    );
}

#[tokio::test]
async fn data_within_the_catalog_is_refused_when_the_lake_is_created() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().to_str().unwrap();
    let server = TestServer::start_at(root).await;
    let mut client = server.connect().await;
    client.begin_lake("public").await;
    client
        .run(&format!(
            "UPDATE ducklake_metadata SET value = '{root}/' WHERE key = 'data_path'"
        ))
        .await;
    let (state, message) = client.query("COMMIT").await.error();
    assert_eq!(state, "22023");
    assert!(message.contains("catalog"), "{message}");
    assert_eq!(
        client.query("SELECT * FROM ducklake_metadata").await.state(),
        "42P01"
    );
    client.create_lake("public").await;
}

#[tokio::test]
async fn a_store_that_cannot_be_opened_says_why() {
    let place = tempfile::tempdir().unwrap();
    let lake = place.path().join("catalog/lake/public");
    std::fs::create_dir_all(&lake).unwrap();
    std::fs::write(lake.join("notes.txt"), "not a store").unwrap();
    let server = TestServer::start_at(place.path().to_str().unwrap()).await;
    let mut client = server.connect().await;
    let (state, message) = client.query("SELECT * FROM ducklake_metadata").await.error();
    assert_eq!(state, "58000", "{message}");
    assert!(message.contains("is not a store"), "{message}");
    assert_eq!(client.run("SELECT 1").await.table(), [["1"]]);
}

#[tokio::test]
async fn a_lake_outlives_its_server() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().to_str().unwrap().to_owned();
    let server = TestServer::start_at(&root).await;
    let mut client = server.connect_to_lake().await;
    client.create_table(1, "t").await;
    drop(client);
    server.stop().await;
    let server = TestServer::start_at(&root).await;
    let mut client = server.connect().await;
    assert_eq!(tables(&mut client, "public").await, [["t"]]);
}
