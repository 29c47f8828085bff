"""The past: time travel, change feeds, snapshots and their messages."""

from harness.session import Session

SUM = "SELECT count(*), sum(a), min(b), max(b) FROM t"
CHANGES = (
    "SELECT snapshot_id, change_type, count(*), sum(a) FROM ducklake_table_changes('lake', 'main', 't', 0, {last}) "
    "GROUP BY ALL ORDER BY ALL"
)

SESSIONS = [
    Session(
        "rows_of_the_past",
        [
            "CREATE TABLE t(a INT, b VARCHAR)",
            "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
            "INSERT INTO t SELECT i, 'r' || i FROM range(10, 110) r(i)",
            "UPDATE t SET b = 'z' WHERE a = 1",
            "DELETE FROM t WHERE a = 2",
            "DELETE FROM t WHERE a >= 60",
            "TRUNCATE t",
        ],
        [
            *[f"{SUM} AT (VERSION => {version})" for version in range(0, 9)],
            "SELECT count(*), sum(a) FROM t AT (TIMESTAMP => now())",
            "SELECT count(*) FROM t AT (TIMESTAMP => TIMESTAMP '2000-01-01')",
        ],
    ),
    Session(
        "tables_of_the_past",
        [
            "CREATE TABLE t(a INT)",
            "INSERT INTO t VALUES (1)",
            "ALTER TABLE t ADD COLUMN b INT",
            "INSERT INTO t VALUES (2, 2)",
            "ALTER TABLE t RENAME COLUMN a TO aa",
            "ALTER TABLE t RENAME TO t2",
            "DROP TABLE t2",
        ],
        [
            "FROM t AT (VERSION => 2)",
            "FROM t AT (VERSION => 4) ORDER BY a",
            "FROM t AT (VERSION => 5) ORDER BY aa",
            "FROM t2 AT (VERSION => 6) ORDER BY aa",
            "FROM t AT (VERSION => 6)",
            "FROM t2",
            "DESCRIBE FROM t AT (VERSION => 1)",
        ],
    ),
    Session(
        "a_lake_attached_in_the_past",
        [
            "CREATE TABLE t(a INT)",
            "INSERT INTO t VALUES (1)",
            "INSERT INTO t VALUES (2)",
            "USE memory",
            "DETACH lake",
            "ATTACH 'ducklake:$OTHER' AS second (DATA_PATH '$DATA/second')",
            "CREATE TABLE second.t(a INT)",
            "INSERT INTO second.t VALUES (1)",
            "INSERT INTO second.t VALUES (2)",
            "DETACH second",
            "ATTACH 'ducklake:$OTHER' AS second (SNAPSHOT_VERSION 2)",
            "FROM second.t",
            "INSERT INTO second.t VALUES (3)",
        ],
        ["FROM t ORDER BY a"],
    ),
    Session(
        "change_feeds",
        [
            "CREATE TABLE t(a INT, b VARCHAR)",
            "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
            "UPDATE t SET b = 'z' WHERE a = 1",
            "DELETE FROM t WHERE a = 2",
            "INSERT INTO t SELECT i, 'f' FROM range(100, 200) r(i)",
            "DELETE FROM t WHERE a < 150 AND a >= 100",
            "UPDATE t SET b = 'g' WHERE a > 190",
            CHANGES.format(last=7),
            "SELECT count(*) FROM ducklake_flush_inlined_data('lake')",
            "INSERT INTO t VALUES (5, 'after')",
        ],
        [
            CHANGES.format(last=7),
            CHANGES.format(last=9),
            "SELECT * FROM ducklake_table_insertions('lake', 'main', 't', 2, 3) ORDER BY ALL",
            "SELECT count(*) FROM ducklake_table_deletions('lake', 'main', 't', 2, 7)",
            "SELECT snapshot_id, rowid, change_type, a, b FROM lake.table_changes('t', 2, 4) ORDER BY ALL",
        ],
    ),
    Session(
        "snapshots_and_their_messages",
        [
            "CREATE TABLE t(a INT)",
            "BEGIN",
            "INSERT INTO t VALUES (1)",
            "CALL lake.set_commit_message('me', 'hello; it''s me', extra_info => '{\"k\":1}')",
            "COMMIT",
            "CREATE SCHEMA s",
            "CREATE VIEW v AS SELECT 1",
            "CREATE MACRO m(x) AS x",
            "ALTER TABLE t ADD COLUMN \"comma, colon: quote\"\"\" INT",
            "INSERT INTO t SELECT i, i FROM range(100) r(i)",
            "DELETE FROM t WHERE a = 50",
            "UPDATE t SET a = 7 WHERE a = 8",
            "DROP VIEW v",
            "DROP MACRO m",
            "CREATE TABLE s.\"we,ird\"\"name\"(a INT)",
            "DROP TABLE s.\"we,ird\"\"name\"",
            "DROP SCHEMA s",
            "SELECT count(*) FROM ducklake_flush_inlined_data('lake')",
            "FROM lake.current_snapshot()",
            "FROM lake.last_committed_snapshot()",
        ],
        [
            "SELECT snapshot_id, schema_version, changes, author, commit_message, commit_extra_info FROM ducklake_snapshots('lake') ORDER BY 1",
            "SELECT snapshot_time > TIMESTAMP '2020-01-01' FROM ducklake_snapshots('lake') ORDER BY snapshot_id",
            "FROM lake.current_snapshot()",
        ],
    ),
]
