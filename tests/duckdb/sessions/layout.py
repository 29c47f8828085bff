"""How a table's files are laid out: partitions, sort orders, files that others wrote, statistics, encryption."""

from harness.session import Session

FILES = "SELECT count(*) FROM ducklake_list_files('lake', 't')"

SESSIONS = [
    Session(
        "partitions_by_value",
        [
            "CREATE TABLE t(a INT, p INT, q VARCHAR)",
            "ALTER TABLE t SET PARTITIONED BY (p, q)",
            "INSERT INTO t SELECT i, i % 4, CASE WHEN i % 2 = 0 THEN 'even' END FROM range(4000) r(i)",
            "SELECT p, q, count(*), sum(a) FROM t GROUP BY ALL ORDER BY ALL",
            FILES,
            "INSERT INTO t VALUES (1, NULL, 'few'), (2, 5, 'sl/ash = ''quote''')",
            "DELETE FROM t WHERE p = 1 AND a < 2000",
            "UPDATE t SET p = 9 WHERE p = 2 AND a > 3000",
            "SELECT count(*) FROM ducklake_flush_inlined_data('lake')",
        ],
        [
            "SELECT p, q, count(*), sum(a) FROM t GROUP BY ALL ORDER BY ALL",
            FILES,
            "SELECT count(*) FROM t WHERE p = 2",
            "SELECT count(*) FROM t WHERE q IS NULL",
            "SELECT a FROM t WHERE q LIKE 'sl/%'",
        ],
    ),
    Session(
        "partitions_by_transform",
        [
            "CREATE TABLE t(a INT, ts TIMESTAMP)",
            "ALTER TABLE t SET PARTITIONED BY (year(ts), month(ts))",
            "INSERT INTO t SELECT i, TIMESTAMP '2024-01-15' + INTERVAL (i) DAY FROM range(100) r(i)",
            "SELECT count(*), sum(a) FROM t",
            FILES,
            "ALTER TABLE t SET PARTITIONED BY (bucket(4, a), day(ts), hour(ts))",
            "INSERT INTO t SELECT i, TIMESTAMP '2024-05-15' FROM range(200, 300) r(i)",
            FILES,
            "ALTER TABLE t RESET PARTITIONED BY",
            "INSERT INTO t SELECT i, TIMESTAMP '2024-01-15' FROM range(100, 200) r(i)",
            "ALTER TABLE t SET PARTITIONED BY (nothing)",
        ],
        ["SELECT count(*), sum(a) FROM t", FILES, "SELECT month(ts) m, count(*) FROM t GROUP BY 1 ORDER BY 1"],
    ),
    Session(
        "sort_orders",
        [
            "CREATE TABLE t(a INT, b VARCHAR, c DOUBLE)",
            "ALTER TABLE t SET SORTED BY (a ASC NULLS LAST, b DESC)",
            "INSERT INTO t SELECT 1000 - i, 'b' || (i % 7), i FROM range(1000) r(i)",
            "SELECT a FROM t LIMIT 3",
            "ALTER TABLE t SET SORTED BY (c + 1 DESC NULLS FIRST, a ASC)",
            "INSERT INTO t SELECT i, 'z', i FROM range(50) r(i)",
            "INSERT INTO t VALUES (3, 'few', 3), (1, 'few', 1), (2, 'few', 2)",
            "SELECT count(*) FROM ducklake_flush_inlined_data('lake')",
            "SELECT count(*) FROM ducklake_merge_adjacent_files('lake')",
            "ALTER TABLE t RESET SORTED BY",
            "INSERT INTO t SELECT i, 'y', i FROM range(50) r(i)",
        ],
        ["SELECT count(*), sum(a), min(b), max(b), sum(c) FROM t", FILES],
    ),
    Session(
        "files_that_others_wrote",
        [
            "CREATE TABLE t(a INT, b VARCHAR)",
            "COPY (SELECT i::INT AS a, 'f' || i AS b FROM range(50) r(i)) TO '$DATA/first.parquet'",
            "COPY (SELECT 'g' || i AS b, i::INT AS a FROM range(50, 80) r(i)) TO '$DATA/swapped.parquet'",
            "COPY (SELECT i::INT AS a FROM range(80, 90) r(i)) TO '$DATA/missing.parquet'",
            "COPY (SELECT i::INT AS a, 'h' AS b, 1 AS extra FROM range(90, 95) r(i)) TO '$DATA/extra.parquet'",
            "SELECT count(*) FROM ducklake_add_data_files('lake', 't', '$DATA/first.parquet')",
            "SELECT count(*), sum(a), min(b) FROM t",
            "SELECT count(*) FROM ducklake_add_data_files('lake', 't', '$DATA/swapped.parquet')",
            "SELECT count(*), sum(a), max(b) FROM t",
            "CALL ducklake_add_data_files('lake', 't', '$DATA/missing.parquet')",
            "CALL ducklake_add_data_files('lake', 't', '$DATA/missing.parquet', allow_missing => true)",
            "CALL ducklake_add_data_files('lake', 't', '$DATA/extra.parquet')",
            "CALL ducklake_add_data_files('lake', 't', '$DATA/extra.parquet', ignore_extra_columns => true)",
            "CALL ducklake_add_data_files('lake', 't', '$DATA/nowhere.parquet')",
            "DELETE FROM t WHERE a = 60",
            "ALTER TABLE t RENAME b TO c",
            "INSERT INTO t VALUES (1000, 'few')",
        ],
        ["SELECT count(*), sum(a), min(c), max(c), count(c) FROM t", "SELECT a, c FROM t WHERE a IN (60, 61, 85, 93) ORDER BY a", FILES],
    ),
    Session(
        "nested_files_that_others_wrote",
        [
            "CREATE TABLE t(s STRUCT(x INT, y STRUCT(z VARCHAR)), l INT[], m MAP(VARCHAR, INT))",
            "COPY (SELECT {'y': {'z': 'z' || i}, 'x': i::INT} AS s, MAP {'k': i::INT} AS m, [i::INT] AS l FROM range(50) r(i)) TO '$DATA/n.parquet'",
            "SELECT count(*) FROM ducklake_add_data_files('lake', 't', '$DATA/n.parquet')",
            "ALTER TABLE t RENAME s.x TO xx",
        ],
        ["SELECT count(*), sum(s.xx), max(s.y.z), sum(l[1]), sum(m['k']) FROM t"],
    ),
    Session(
        "hive_partitioned_files_that_others_wrote",
        [
            "CREATE TABLE t(a INT, p INT)",
            "COPY (SELECT i::INT AS a, (i % 3)::INT AS p FROM range(90) r(i)) TO '$DATA/hive' (FORMAT parquet, PARTITION_BY (p))",
            "SELECT count(*) FROM ducklake_add_data_files('lake', 't', '$DATA/hive/**/*.parquet', hive_partitioning => true)",
        ],
        ["SELECT p, count(*), sum(a) FROM t GROUP BY p ORDER BY p", FILES],
    ),
    Session(
        "statistics_prune_files",
        [
            "CREATE TABLE t(a INT, s VARCHAR, d DATE, f DOUBLE)",
            *[
                "INSERT INTO t SELECT i, 's' || i, DATE '2024-01-01' + i::INT, CASE WHEN i % 1000 = 7 THEN 'nan'::DOUBLE ELSE i END "
                f"FROM range({k * 1000}, {k * 1000 + 1000}) r(i)"
                for k in range(4)
            ],
            "INSERT INTO t SELECT NULL, NULL, NULL, NULL FROM range(50)",
        ],
        [
            "SELECT count(*) FROM t WHERE a BETWEEN 1500 AND 1600",
            "SELECT min(a), max(a), min(d), max(d), min(f), max(f) FROM t",
            "SELECT count(*) FROM t WHERE s = 's3999'",
            "SELECT count(*) FROM t WHERE a < 0",
            "SELECT count(*) FROM t WHERE a IS NULL",
            "SELECT count(*) FROM t WHERE isnan(f)",
            "SELECT column_name, stats(a) IS NOT NULL FROM (DESCRIBE t), (SELECT a FROM t LIMIT 1) ORDER BY 1",
        ],
    ),
    Session(
        "encrypted_files",
        ["CREATE TABLE t(a INT)", "INSERT INTO t SELECT i FROM range(1000) r(i)", "INSERT INTO t VALUES (1)", "DELETE FROM t WHERE a < 10"],
        ["SELECT count(*), sum(a) FROM t", "SELECT value FROM lake.options() WHERE option_name = 'encrypted'"],
        "ENCRYPTED",
    ),
]
