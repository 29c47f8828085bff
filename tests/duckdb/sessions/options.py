"""Options of a lake, a schema and a table."""

from harness.session import Session

OPTIONS = "SELECT option_name, value, scope, scope_entry FROM lake.options() WHERE option_name NOT IN ('created_by', 'data_path') ORDER BY ALL"

SESSIONS = [
    Session(
        "options_at_three_scopes",
        [
            "CALL lake.set_option('parquet_compression', 'zstd')",
            "CREATE SCHEMA s",
            "CREATE TABLE t(a INT)",
            "CREATE TABLE s.t(a INT)",
            "CALL lake.set_option('data_inlining_row_limit', 5, table_name => 't')",
            "CALL lake.set_option('data_inlining_row_limit', 2, schema => 's')",
            "CALL lake.set_option('data_inlining_row_limit', 0, schema => 's', table_name => 't')",
            OPTIONS,
            "CALL lake.set_option('parquet_compression', 'snappy')",
            "CALL lake.set_option('parquet_compression', 'gzip', table_name => 't')",
            "CALL lake.set_option('parquet_compression', 'lz4', table_name => 't')",
            "CALL lake.set_option('target_file_size', '10MB')",
            "CALL lake.set_option('nonsense', 1)",
            "CALL lake.set_option('parquet_version', 3)",
            "CALL lake.set_option('data_inlining_row_limit', 5, table_name => 'nothing')",
            "INSERT INTO t SELECT i FROM range(4) r(i)",
            "INSERT INTO t SELECT i FROM range(6) r(i)",
            "INSERT INTO s.t VALUES (1)",
            "SELECT count(*) FROM ducklake_list_files('lake', 't')",
            "SELECT count(*) FROM ducklake_list_files('lake', 't', schema => 's')",
        ],
        [OPTIONS, "SELECT count(*) FROM t", "SELECT count(*) FROM s.t", "SELECT name, value IS NOT NULL FROM (SELECT option_name AS name, value FROM lake.options()) WHERE name = 'data_path'"],
    ),
    Session(
        "inlining_limits",
        [
            "CREATE TABLE t(a INT)",
            "INSERT INTO t SELECT i FROM range(3) r(i)",
            "INSERT INTO t SELECT i FROM range(4) r(i)",
            "SELECT count(*) FROM ducklake_list_files('lake', 't')",
            "BEGIN",
            "INSERT INTO t VALUES (1)",
            "INSERT INTO t VALUES (2)",
            "INSERT INTO t SELECT i FROM range(4) r(i)",
            "COMMIT",
            "SELECT count(*) FROM ducklake_list_files('lake', 't')",
        ],
        ["SELECT count(*), sum(a) FROM t"],
        "DATA_INLINING_ROW_LIMIT 3",
    ),
]
