//! What is refused, and by which name.

use moraine_sql::{InputError, QueryError};

use crate::support::Lake;

async fn refusal(text: &str) -> QueryError {
    match Lake::filled().await.ask(text).await {
        Ok(rows) => panic!("{text} was answered: {rows:?}"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    let error = refusal("SELECT 1 FROM nothing").await;
    assert!(
        matches!(&error, QueryError::UndefinedTable { name } if name == "nothing"),
        "{error:?}"
    );
    let error = refusal("SELECT 1 FROM other.ducklake_table").await;
    assert!(
        matches!(&error, QueryError::UndefinedTable { name } if name == "other.ducklake_table"),
        "{error:?}"
    );
    let error = refusal("SELECT wrong FROM ducklake_table").await;
    assert!(
        matches!(&error, QueryError::UndefinedColumn { name } if name == "wrong"),
        "{error:?}"
    );
    let error = refusal("SELECT frobnicate(1)").await;
    assert!(
        matches!(&error, QueryError::UndefinedFunction { name } if name == "frobnicate"),
        "{error:?}"
    );
    // One that Postgres has is another matter.
    let error = refusal("SELECT to_tsvector('a')").await;
    assert!(
        matches!(&error, QueryError::Unsupported { construct } if construct == "function to_tsvector"),
        "{error:?}"
    );
}

#[tokio::test]
async fn an_ambiguous_column_is_refused() {
    let error = refusal("SELECT table_id FROM ducklake_table, ducklake_data_file").await;
    assert!(matches!(error, QueryError::AmbiguousColumn { .. }), "{error:?}");
}

#[tokio::test]
async fn unsupported_constructs_are_named() {
    for (text, construct) in [
        ("SELECT * INTO x FROM ducklake_table", "SELECT INTO"),
        (
            "SELECT * FROM ducklake_table TABLESAMPLE BERNOULLI (10)",
            "TABLESAMPLE",
        ),
        (
            "SELECT table_name FROM ducklake_table ORDER BY table_name COLLATE \"de_DE\"",
            "collation",
        ),
        (
            "SELECT t FROM ducklake_table t ORDER BY 1",
            "the order of rows that are not written out",
        ),
        (
            "SELECT * FROM ducklake_table a FULL JOIN ducklake_table b ON EXISTS (SELECT 1 FROM ducklake_column c \
             WHERE c.table_id < a.table_id + b.table_id)",
            "a Full join on a subquery that depends on its rows",
        ),
        (
            "SELECT snapshot_time AT TIME ZONE 'Europe/Rome' FROM ducklake_snapshot",
            "time zone",
        ),
    ] {
        let error = refusal(text).await;
        assert!(
            matches!(&error, QueryError::Unsupported { construct: found } if found.contains(construct)),
            "{text}: {error:?}"
        );
    }
}

#[tokio::test]
async fn a_literal_that_is_no_value_of_its_column_is_refused() {
    for (text, kind) in [
        ("SELECT 1 FROM ducklake_table WHERE table_id = 'x'", "bigint"),
        (
            "SELECT 1 FROM ducklake_table WHERE table_id IN ('1', 'y')",
            "bigint",
        ),
        (
            "SELECT 1 FROM ducklake_table WHERE table_uuid = 'not-a-uuid'",
            "uuid",
        ),
        (
            "SELECT 1 FROM ducklake_snapshot WHERE snapshot_time > 'yesterday-ish'",
            "timestamp with time zone",
        ),
        ("SELECT 'x'::integer", "integer"),
    ] {
        let error = refusal(text).await;
        assert!(
            matches!(&error, QueryError::Input(InputError::Syntax { type_name, .. }) if type_name == kind),
            "{text}: {error:?}"
        );
    }
}

#[tokio::test]
async fn arithmetic_fails_by_name() {
    let error = refusal("SELECT 1 / (table_id - table_id) FROM ducklake_table").await;
    assert!(matches!(error, QueryError::DivisionByZero), "{error:?}");
    let error = refusal("SELECT (SELECT table_id FROM ducklake_table)").await;
    assert!(matches!(error, QueryError::Cardinality), "{error:?}");
    let error = refusal("SELECT 70000.4::smallint").await;
    assert!(
        matches!(error, QueryError::Input(InputError::Range { .. })),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_column_outside_of_group_by_is_refused() {
    let error = refusal("SELECT table_name, count(*) FROM ducklake_table").await;
    assert!(matches!(error, QueryError::Invalid { .. }), "{error:?}");
}

#[tokio::test]
async fn text_is_compared_with_text_only() {
    let error = refusal("SELECT 1 FROM ducklake_table t WHERE t.table_name = 5").await;
    assert!(
        matches!(&error, QueryError::UndefinedFunction { name } if name.contains("text = bigint")),
        "{error:?}"
    );
    let error = refusal("SELECT 1 FROM ducklake_table WHERE table_id = lower('X')").await;
    assert!(
        matches!(&error, QueryError::UndefinedFunction { .. }),
        "{error:?}"
    );
    let error = refusal("SELECT 1 FROM elsewhere.main.ducklake_table").await;
    assert!(
        matches!(&error, QueryError::Unsupported { construct } if construct.contains("elsewhere")),
        "{error:?}"
    );
}
