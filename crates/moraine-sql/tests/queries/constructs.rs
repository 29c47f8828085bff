//! What a SELECT can be made of, over a lake whose answers are written down by hand.

use crate::support::Lake;

macro_rules! answers {
    ($($name:ident: $query:expr => [$($row:expr),* $(,)?];)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                let expected: Vec<&str> = vec![$($row),*];
                assert_eq!(Lake::filled().await.text($query).await, expected, "{}", $query);
            }
        )*
    };
}

answers! {
    plain_columns: "SELECT table_id, table_name FROM ducklake_table ORDER BY table_id" => ["1|events", "2|Old", "3|users"];
    qualified_by_schema: "SELECT t.table_name FROM main.ducklake_table AS t WHERE t.table_id = 3" => ["users"];
    qualified_by_database: "SELECT table_name FROM lake.main.ducklake_table WHERE table_id = 3" => ["users"];
    inner_join: "SELECT t.table_name, f.path FROM ducklake_table t JOIN ducklake_data_file f ON f.table_id = t.table_id \
        WHERE f.record_count > 150 ORDER BY f.data_file_id" => ["events|f11.parquet", "events|f12.parquet"];
    join_using: "SELECT table_id, count(*) FROM ducklake_table JOIN ducklake_data_file USING (table_id) GROUP BY table_id ORDER BY 1"
        => ["1|3", "3|2"];
    natural_names_repeat: "SELECT t.table_id, f.table_id FROM ducklake_table t, ducklake_data_file f \
        WHERE t.table_id = f.table_id AND f.data_file_id = 13" => ["3|3"];
    left_join: "SELECT t.table_id, f.data_file_id FROM ducklake_table t LEFT JOIN ducklake_data_file f \
        ON f.table_id = t.table_id AND f.record_count < 6 ORDER BY 1" => ["1|~", "2|~", "3|13"];
    full_join: "SELECT a.table_id, b.table_id FROM (SELECT table_id FROM ducklake_table WHERE table_id <= 2) a \
        FULL JOIN (SELECT table_id FROM ducklake_table WHERE table_id >= 2) b ON a.table_id = b.table_id \
        ORDER BY coalesce(a.table_id, b.table_id)" => ["1|~", "2|2", "~|3"];
    grouped: "SELECT table_id, count(*), sum(record_count), max(file_size_bytes), min(path) FROM ducklake_data_file \
        GROUP BY table_id HAVING count(*) > 1 ORDER BY table_id" => ["1|3|600|2500|f10.parquet", "3|2|12|70|f13.parquet"];
    filtered_aggregate: "SELECT count(*) FILTER (WHERE path_is_relative), count(*) FROM ducklake_data_file" => ["2|5"];
    count_of_nothing: "SELECT count(*), sum(record_count) FROM ducklake_data_file WHERE table_id = 99" => ["0|~"];
    distinct: "SELECT DISTINCT table_id FROM ducklake_data_file ORDER BY table_id DESC" => ["3", "1"];
    distinct_on: "SELECT DISTINCT ON (table_id) table_id, data_file_id FROM ducklake_data_file ORDER BY table_id, data_file_id DESC"
        => ["1|12", "3|14"];
    window: "SELECT data_file_id, row_number() OVER (PARTITION BY table_id ORDER BY record_count DESC), \
        sum(record_count) OVER (PARTITION BY table_id) FROM ducklake_data_file ORDER BY data_file_id"
        => ["10|3|600", "11|2|600", "12|1|600", "13|2|12", "14|1|12"];
    common_table: "WITH big AS (SELECT * FROM ducklake_data_file WHERE record_count >= 100), \
        n AS (SELECT table_id, count(*) AS n FROM big GROUP BY table_id) SELECT table_id, n FROM n" => ["1|3"];
    recursive: "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT n FROM r ORDER BY n"
        => ["1", "2", "3", "4"];
    exists: "SELECT table_id FROM ducklake_table t WHERE EXISTS (SELECT 1 FROM ducklake_data_file f WHERE f.table_id = t.table_id) \
        ORDER BY 1" => ["1", "3"];
    not_exists: "SELECT table_id FROM ducklake_table t WHERE NOT EXISTS \
        (SELECT 1 FROM ducklake_data_file f WHERE f.table_id = t.table_id)" => ["2"];
    in_subquery: "SELECT path FROM ducklake_data_file WHERE table_id IN (SELECT table_id FROM ducklake_table WHERE table_name = 'users') \
        ORDER BY path" => ["f13.parquet", "f14.parquet"];
    scalar_subquery: "SELECT max(snapshot_id) - (SELECT min(snapshot_id) FROM ducklake_snapshot) FROM ducklake_snapshot" => ["3"];
    correlated_scalar: "SELECT table_id, (SELECT sum(record_count) FROM ducklake_data_file f WHERE f.table_id = t.table_id) \
        FROM ducklake_table t ORDER BY 1" => ["1|600", "2|~", "3|12"];
    newest_snapshot: "SELECT * FROM (SELECT snapshot_id, schema_version FROM ducklake_snapshot \
        WHERE snapshot_id = (SELECT max(snapshot_id) FROM ducklake_snapshot)) s" => ["3|3"];
    lateral: "SELECT t.table_id, l.n FROM ducklake_table t, LATERAL (SELECT count(*) AS n FROM ducklake_data_file f \
        WHERE f.table_id = t.table_id) l ORDER BY 1" => ["1|3", "2|0", "3|2"];
    union: "SELECT table_id FROM ducklake_table UNION SELECT table_id FROM ducklake_data_file ORDER BY 1" => ["1", "2", "3"];
    union_all: "SELECT count(*) FROM ducklake_table UNION ALL SELECT count(*) FROM ducklake_data_file" => ["3", "5"];
    except: "SELECT table_id FROM ducklake_table EXCEPT SELECT table_id FROM ducklake_data_file" => ["2"];
    intersect: "SELECT table_id FROM ducklake_table INTERSECT SELECT table_id FROM ducklake_data_file ORDER BY 1" => ["1", "3"];
    limit_offset: "SELECT data_file_id FROM ducklake_data_file ORDER BY 1 LIMIT 2 OFFSET 1" => ["11", "12"];
    limit_all: "SELECT count(*) FROM (SELECT 1 FROM ducklake_data_file LIMIT ALL) x" => ["5"];
    fetch_first: "SELECT data_file_id FROM ducklake_data_file ORDER BY 1 OFFSET 3 ROWS FETCH FIRST 1 ROW ONLY" => ["13"];
    for_update: "SELECT table_name FROM ducklake_table WHERE table_id = 1 FOR UPDATE" => ["events"];
    nulls_last_by_default: "SELECT end_snapshot FROM ducklake_table ORDER BY end_snapshot, table_id" => ["3", "~", "~"];
    nulls_first_descending: "SELECT end_snapshot FROM ducklake_table ORDER BY end_snapshot DESC, table_id" => ["~", "~", "3"];
    bytewise_order: "SELECT table_name FROM ducklake_table ORDER BY table_name COLLATE \"C\"" => ["Old", "events", "users"];
    case_when: "SELECT CASE WHEN end_snapshot IS NULL THEN 'live' ELSE 'ended' END FROM ducklake_table ORDER BY table_id"
        => ["live", "ended", "live"];
    ilike: "SELECT table_name FROM ducklake_table WHERE table_name ILIKE 'o%'" => ["Old"];
    regex: "SELECT table_name FROM ducklake_table WHERE table_name ~ '^u' OR table_name ~* '^OLD$' ORDER BY 1" => ["Old", "users"];
    not_regex: "SELECT table_name FROM ducklake_table WHERE table_name !~ 's$'" => ["Old"];
    operator_by_name: "SELECT table_name FROM ducklake_table WHERE table_name OPERATOR(pg_catalog.~) '^(users)$' \
        COLLATE pg_catalog.default" => ["users"];
    any_of_array: "SELECT table_name FROM ducklake_table WHERE table_id = ANY(ARRAY[1, 3]) ORDER BY table_id" => ["events", "users"];
    any_of_array_text: "SELECT table_name FROM ducklake_table WHERE table_id = ANY('{1,3}') ORDER BY table_id" => ["events", "users"];
    any_of_subquery: "SELECT table_name FROM ducklake_table WHERE table_id = ANY(SELECT table_id FROM ducklake_data_file) ORDER BY 1"
        => ["events", "users"];
    none_of_array: "SELECT table_name FROM ducklake_table WHERE table_id <> ALL(ARRAY[1, 3])" => ["Old"];
    rows_equal: "SELECT table_name FROM ducklake_table WHERE (table_id, schema_id) = (3, 0)" => ["users"];
    rows_in_list: "SELECT table_name FROM ducklake_table WHERE (table_id, schema_id) IN ((3, 0), (1, 1))" => ["users"];
    escape_string: "SELECT E'a\\tb' || 'c' FROM ducklake_table WHERE table_id = 1" => ["a\tbc"];
    between: "SELECT data_file_id FROM ducklake_data_file WHERE data_file_id BETWEEN '11' AND '12' ORDER BY 1" => ["11", "12"];
    quoted_numbers: "SELECT data_file_id FROM ducklake_data_file WHERE table_id = '3' AND record_count >= '7'" => ["14"];
    quoted_number_list: "SELECT data_file_id FROM ducklake_data_file WHERE data_file_id IN ('10', '14') ORDER BY 1" => ["10", "14"];
    quoted_uuid: "SELECT table_name FROM ducklake_table WHERE table_uuid = '03030303-0303-0303-0303-030303030303'" => ["users"];
    quoted_uuid_list: "SELECT table_name FROM ducklake_table WHERE table_uuid IN ('03030303-0303-0303-0303-030303030303')" => ["users"];
    quoted_timestamp: "SELECT snapshot_id FROM ducklake_snapshot WHERE snapshot_time = '2093-11-14 22:13:22+00'" => ["2"];
    timestamp_with_offset: "SELECT snapshot_id FROM ducklake_snapshot WHERE snapshot_time = timestamptz '2093-11-14 23:13:22+01'" => ["2"];
    interval_arithmetic: "SELECT snapshot_time + INTERVAL '1 day' FROM ducklake_snapshot WHERE snapshot_id = 2" => ["2093-11-15 22:13:22+00"];
    quoted_interval: "SELECT snapshot_time + '1 hour' FROM ducklake_snapshot WHERE snapshot_id = 2" => ["2093-11-14 23:13:22+00"];
    difference_of_times: "SELECT b.snapshot_time - a.snapshot_time FROM ducklake_snapshot a, ducklake_snapshot b \
        WHERE a.snapshot_id = 1 AND b.snapshot_id = 3" => ["00:00:02"];
    at_utc: "SELECT snapshot_time AT TIME ZONE 'UTC' FROM ducklake_snapshot WHERE snapshot_id = 1" => ["2093-11-14 22:13:21"];
    extract: "SELECT extract(year FROM snapshot_time)::int FROM ducklake_snapshot WHERE snapshot_id = 1" => ["2093"];
    date_trunc: "SELECT date_trunc('day', snapshot_time) FROM ducklake_snapshot WHERE snapshot_id = 1" => ["2093-11-14 00:00:00+00"];
    string_agg: "SELECT string_agg(table_name, ',' ORDER BY table_name) FROM ducklake_table" => ["Old,events,users"];
    array_agg: "SELECT array_agg(table_id ORDER BY table_id) FROM ducklake_table" => ["{1,2,3}"];
    array_of_subquery: "SELECT array_to_string(ARRAY(SELECT table_name FROM ducklake_table WHERE table_id > 1), '/')" => ["Old/users"];
    series: "SELECT g FROM generate_series(2, 4) AS g ORDER BY g DESC" => ["4", "3", "2"];
    unnest: "SELECT x FROM unnest(ARRAY['a', 'b']) AS u(x)" => ["a", "b"];
    values_list: "SELECT * FROM (VALUES (1, 'one'), (2, 'two')) AS v(n, word) ORDER BY n DESC" => ["2|two", "1|one"];
    no_from: "SELECT 1 + 1, 'x', NULL, TRUE" => ["2|x|~|t"];
    grouping_sets: "SELECT table_id, count(*) FROM ducklake_data_file GROUP BY ROLLUP (table_id) ORDER BY table_id" => ["1|3", "3|2", "~|5"];
    sum_does_not_overflow: "SELECT sum(x) FROM (VALUES (9223372036854775807), (9223372036854775807)) AS v(x)" => ["18446744073709551614"];
    is_distinct_from: "SELECT table_id FROM ducklake_table WHERE end_snapshot IS DISTINCT FROM 3 ORDER BY 1" => ["1", "3"];
    ctid_of_rows: "SELECT ctid, table_id FROM ducklake_table WHERE table_name = 'users'" => ["0|3"];
}

#[tokio::test]
async fn a_star_does_not_show_ctid() {
    let lake = Lake::filled().await;
    let plain = lake.columns("SELECT * FROM ducklake_schema_versions").await;
    let both = lake.columns("SELECT ctid, * FROM ducklake_schema_versions").await;
    assert_eq!(plain.len(), 3);
    assert_eq!(both.first(), Some(&("ctid".to_owned(), "tid".to_owned())));
    assert_eq!(both.get(1..), Some(plain.as_slice()));
}

#[tokio::test]
async fn columns_are_named_as_postgres_names_them() {
    let lake = Lake::filled().await;
    let columns = lake
        .columns(
            "SELECT count(*), count(*), 1, 'x', table_id::text, max(table_id)::varchar, '1'::bigint, \
             CASE WHEN true THEN 1 END, coalesce(table_id, 0), (SELECT max(snapshot_id) FROM ducklake_snapshot), \
             table_id AS \"Mixed\", pg_catalog.lower('A'), EXISTS (SELECT 1) FROM ducklake_table GROUP BY table_id",
        )
        .await;
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "count", "count", "?column?", "?column?", "table_id", "max", "int8", "case", "coalesce", "max",
            "Mixed", "lower", "exists"
        ]
    );
}

#[tokio::test]
async fn a_query_sees_what_its_transaction_has_changed() {
    let lake = Lake::filled().await;
    let mut tx = lake.begin().await;
    let row = vec![
        moraine_tables::Value::text("k"),
        moraine_tables::Value::text("v"),
        moraine_tables::Value::Null,
        moraine_tables::Value::Null,
    ];
    moraine_tables::insert(&mut tx, moraine_tables::Relation::Metadata, vec![row])
        .await
        .unwrap();
    let text = "SELECT value FROM ducklake_metadata WHERE key = 'k'";
    let rows = crate::support::answer(&tx, text, &[], &[]).await.unwrap();
    assert_eq!(crate::support::shown(&rows), ["v"]);
    assert_eq!(lake.text(text).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_shared_column_of_a_join_is_one_column() {
    let lake = Lake::filled().await;
    for condition in ["table_id = 3", "table_id = '3'", "table_id IN ('3')"] {
        let text = format!(
            "SELECT f.path FROM ducklake_table JOIN ducklake_data_file f USING (table_id) WHERE {condition} AND record_count = 5"
        );
        assert_eq!(lake.text(&text).await, ["f13.parquet"], "{condition}");
    }
}

#[tokio::test]
async fn a_list_may_hold_null() {
    let lake = Lake::filled().await;
    for (condition, expected) in [
        ("table_id IN (1, NULL)", vec!["1"]),
        ("table_name IN ('events', 'Old', NULL)", vec!["1", "2"]),
        ("table_id IN (NULL)", vec![]),
        ("table_id NOT IN (1, NULL)", vec![]),
        ("table_id = 1 OR NULL", vec!["1"]),
        ("table_id = 1 OR false", vec!["1"]),
        ("table_id = 1 AND NULL", vec![]),
        ("table_id = NULL", vec![]),
    ] {
        let text = format!("SELECT table_id FROM ducklake_table WHERE {condition} ORDER BY 1");
        assert_eq!(lake.text(&text).await, expected, "{condition}");
    }
}
