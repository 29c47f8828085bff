//! A session of sqlx: typed queries in binary form, arrays, a stream, nested transactions, COPY.

use anyhow::{Result, ensure};
use futures::TryStreamExt;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Acquire, Row};

const INSERT: &str = "INSERT INTO ducklake_metadata (key, value) VALUES ($1, $2)";

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::args().nth(1).unwrap_or_default();
    let pool = PgPoolOptions::new().max_connections(2).connect(&url).await?;
    let row = sqlx::query("SELECT table_id, table_name, table_uuid, end_snapshot FROM ducklake_table WHERE table_id = $1")
        .bind(1i64)
        .fetch_one(&pool)
        .await?;
    ensure!(row.try_get::<i64, _>(0)? == 1 && row.try_get::<String, _>(1)? == "t");
    row.try_get::<sqlx::types::Uuid, _>(2)?;
    ensure!(row.try_get::<Option<i64>, _>(3)?.is_none());
    let keys = vec!["version".to_owned(), "nothing".to_owned()];
    let count: i64 = sqlx::query_scalar("SELECT count(*) FROM ducklake_metadata WHERE key = ANY($1)")
        .bind(keys)
        .fetch_one(&pool)
        .await?;
    ensure!(count == 1);
    let time: sqlx::types::chrono::DateTime<sqlx::types::chrono::Utc> =
        sqlx::query_scalar("SELECT snapshot_time FROM ducklake_snapshot ORDER BY snapshot_id DESC")
            .fetch_one(&pool)
            .await?;
    ensure!(time.timestamp() > 0);
    let streamed: Vec<String> = sqlx::query_scalar("SELECT key FROM ducklake_metadata ORDER BY key")
        .fetch(&pool)
        .try_collect()
        .await?;
    ensure!(streamed.len() >= 4 && streamed.is_sorted());
    let mut transaction = pool.begin().await?;
    sqlx::query(INSERT).bind("target_file_size").bind("11MB").execute(&mut *transaction).await?;
    {
        let mut nested = transaction.begin().await?;
        sqlx::query(INSERT).bind("never").bind("x").execute(&mut *nested).await?;
        let error = sqlx::query("SELECT nothing").execute(&mut *nested).await;
        let state = error.err().and_then(|error| error.as_database_error().and_then(|error| error.code().map(String::from)));
        ensure!(state.as_deref() == Some("42703"), "{state:?}");
        nested.rollback().await?;
    }
    transaction.commit().await?;
    let mut connection = pool.acquire().await?;
    let mut copy = connection.copy_in_raw("COPY ducklake_metadata (key, value) FROM STDIN (FORMAT csv)").await?;
    copy.send("parquet_compression,zstd\n".as_bytes()).await?;
    ensure!(copy.finish().await? == 1);
    let never: i64 = sqlx::query_scalar("SELECT count(*) FROM ducklake_metadata WHERE key = 'never'")
        .fetch_one(&mut *connection)
        .await?;
    ensure!(never == 0);
    println!("done");
    Ok(())
}
