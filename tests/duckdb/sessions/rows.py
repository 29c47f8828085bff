"""Rows: inserted few and many, updated, deleted, merged, and with contents that would upset a careless parser."""

from harness.session import Session

SUM = "SELECT count(*), sum(a), min(b), max(b) FROM t"
INFO = "SELECT table_name, file_count, delete_file_count FROM ducklake_table_info('lake') ORDER BY 1"

HAZARDS = [
    "delete from ducklake_data_file; drop",
    "semi;colon",
    "values (1,2),(3,4)",
    "q'uo\"te",
    "back\\slash",
    "back\\'slash and quote",
    "line\nbreak",
    "tab\there, return\rthere",
    "$1 ? :name %s {}",
    "snöw☃ 🦆 \u202ereversed",
    "null",
    "NULL",
    "\\N",
    "\b",
    "",
    "   pad  ",
    "'",
    "''",
    "\"",
    "--comment",
    "/* comment */",
    "E'\\x41'",
    "\\x41",
    "a" * 5000,
]


def literal(text):
    """A SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


SESSIONS = [
    Session(
        "few_rows_are_inserted",
        [
            "CREATE TABLE t(a INT, b VARCHAR)",
            "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
            "INSERT INTO t VALUES (3, NULL)",
            "INSERT INTO t VALUES (NULL, '')",
            "INSERT INTO t VALUES (4, 'NULL')",
            "INSERT INTO t SELECT 5, NULL WHERE false",
            "FROM t ORDER BY a NULLS LAST, b",
            "SELECT * FROM t WHERE a = 2",
        ],
        [
            "FROM t ORDER BY a NULLS LAST, b",
            "SELECT count(*), sum(a), count(b), min(a), max(a), min(b), max(b) FROM t",
            "SELECT b, b IS NULL, length(b) FROM t WHERE a IS NULL OR a >= 3 ORDER BY a NULLS LAST",
            "SELECT rowid, snapshot_id, a FROM t ORDER BY rowid",
        ],
    ),
    Session(
        "many_rows_are_inserted",
        [
            "CREATE TABLE t(a INT, b VARCHAR)",
            "INSERT INTO t SELECT i, 'r' || i FROM range(10000) r(i)",
            "INSERT INTO t SELECT i, 'r' || i FROM range(10000, 20000) r(i)",
            "SELECT count(*) FROM ducklake_list_files('lake', 't')",
        ],
        [
            SUM,
            INFO,
            "SELECT * FROM t WHERE a = 15000",
            "SELECT count(*) FROM t WHERE a < 100",
            "SELECT min(rowid), max(rowid), count(DISTINCT rowid) FROM t",
        ],
    ),
    Session(
        "rows_arrive_one_by_one",
        [
            "CREATE TABLE t(a INT, b VARCHAR)",
            *[f"INSERT INTO t VALUES ({i}, 'v{i}')" for i in range(30)],
            "SELECT count(*), sum(a) FROM t",
            "DELETE FROM t WHERE a % 3 = 0",
            "UPDATE t SET b = 'changed' WHERE a % 5 = 0",
        ],
        [SUM, "SELECT count(DISTINCT rowid) FROM t", "SELECT rowid, a, b FROM t ORDER BY rowid"],
    ),
    Session(
        "inlined_rows_are_updated_and_deleted",
        [
            "CREATE TABLE t(a INT, b VARCHAR)",
            "INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')",
            "UPDATE t SET b = 'Q' WHERE a = 1",
            "FROM t ORDER BY a",
            "UPDATE t SET b = b || '!'",
            "FROM t ORDER BY a",
            "DELETE FROM t WHERE a = 2",
            "FROM t ORDER BY a",
            "INSERT INTO t VALUES (9, 'n')",
            "DELETE FROM t WHERE a = 77",
            "UPDATE t SET a = a WHERE a = 9",
        ],
        ["FROM t ORDER BY a", "SELECT rowid, * FROM t ORDER BY rowid", "SELECT count(*) FROM t"],
    ),
    Session(
        "rows_of_files_are_deleted",
        [
            "CREATE TABLE t(a INT, b VARCHAR)",
            "INSERT INTO t SELECT i, 'r' || i FROM range(1000) r(i)",
            "DELETE FROM t WHERE a = 7",
            SUM,
            "DELETE FROM t WHERE a IN (8, 9)",
            SUM,
            "DELETE FROM t WHERE a < 500",
            SUM,
            "DELETE FROM t WHERE a % 2 = 0",
        ],
        [SUM, INFO, "SELECT count(*) FROM t AT (VERSION => 3)", "SELECT count(*) FROM t AT (VERSION => 5)"],
    ),
    Session(
        "rows_of_files_are_updated",
        [
            "CREATE TABLE t(a INT, b VARCHAR)",
            "INSERT INTO t SELECT i, 'r' || i FROM range(1000) r(i)",
            "UPDATE t SET b = 'U' WHERE a < 300",
            "SELECT count(*), sum(a), count(*) FILTER (WHERE b = 'U') FROM t",
            "UPDATE t SET b = 'S' WHERE a = 999",
            "UPDATE t SET b = 'T' WHERE a BETWEEN 299 AND 301",
        ],
        [SUM, "SELECT b, count(*) FROM t WHERE length(b) = 1 GROUP BY b ORDER BY b", INFO],
    ),
    Session(
        "inlined_rows_and_files_are_changed_together",
        [
            "CREATE TABLE t(a INT, b VARCHAR)",
            "INSERT INTO t SELECT i, 'file' FROM range(100) r(i)",
            "INSERT INTO t VALUES (100, 'few'), (101, 'few')",
            "DELETE FROM t WHERE a IN (5, 100)",
            SUM,
            "UPDATE t SET b = 'both' WHERE a IN (6, 101)",
            SUM,
            "DELETE FROM t WHERE a >= 90",
            "INSERT INTO t VALUES (102, 'late')",
        ],
        [SUM, "SELECT rowid, a FROM t WHERE b <> 'file' ORDER BY rowid", "SELECT count(*), sum(a) FROM t AT (VERSION => 3)"],
    ),
    Session(
        "tables_are_emptied",
        [
            "CREATE TABLE t(a INT, b VARCHAR)",
            "INSERT INTO t SELECT i, 'f' FROM range(1000) r(i)",
            "DELETE FROM t",
            "SELECT count(*) FROM t",
            "INSERT INTO t VALUES (5, 'i')",
            "FROM t",
            "TRUNCATE t",
            "SELECT count(*) FROM t",
            "INSERT INTO t SELECT i, 'g' FROM range(1000) r(i)",
            "TRUNCATE t",
        ],
        [SUM, INFO, "SELECT count(*) FROM t AT (VERSION => 2)", "FROM t AT (VERSION => 4)"],
    ),
    Session(
        "rows_are_merged",
        [
            "CREATE TABLE t(a INT, b VARCHAR)",
            "INSERT INTO t SELECT i, 'o' FROM range(100) r(i)",
            "MERGE INTO t USING (SELECT i AS a, 'm' AS b FROM range(50, 150) r(i)) s ON t.a = s.a "
            "WHEN MATCHED THEN UPDATE SET b = s.b WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.b)",
            "SELECT b, count(*), sum(a) FROM t GROUP BY b ORDER BY b",
            "MERGE INTO t USING (VALUES (1), (2)) s(a) ON t.a = s.a WHEN MATCHED THEN DELETE",
        ],
        ["SELECT b, count(*), sum(a) FROM t GROUP BY b ORDER BY b"],
    ),
    Session(
        "row_counts_are_returned",
        [
            "CREATE TABLE t(a INT)",
            "INSERT INTO t VALUES (1), (2)",
            "INSERT INTO t SELECT i FROM range(100) r(i)",
            "UPDATE t SET a = a + 1 WHERE a < 50",
            "DELETE FROM t WHERE a > 60",
            "INSERT INTO t VALUES (3) RETURNING a",
            "INSERT INTO t VALUES ('x')",
            "INSERT INTO t VALUES (1, 2)",
            "INSERT INTO nowhere VALUES (1)",
        ],
        ["SELECT count(*), sum(a) FROM t"],
    ),
    Session(
        "strings_that_look_like_sql",
        [
            "CREATE TABLE t(a INT, b VARCHAR)",
            "CREATE TABLE f(a INT, b VARCHAR)",
            *[f"INSERT INTO t VALUES ({i}, {literal(text)})" for i, text in enumerate(HAZARDS)],
            "INSERT INTO f SELECT a + 100 * i, b FROM t, range(5) r(i)",
        ],
        [
            "SELECT a, b, length(b) FROM t ORDER BY a",
            *[f"SELECT a FROM t WHERE b = {literal(text)}" for text in HAZARDS[:20]],
            "SELECT count(*), count(DISTINCT b), min(b), max(b) FROM f",
        ],
    ),
    Session(
        "a_byte_of_zero_in_a_string",
        [
            "CREATE TABLE t(a INT, b VARCHAR)",
            "INSERT INTO t VALUES (1, 'a' || chr(0) || 'b')",
            "INSERT INTO t SELECT i, 'a' || chr(0) || i FROM range(50) r(i)",
        ],
        ["SELECT a, b FROM t ORDER BY a, b"],
    ),
]
