"""`moraine flush` on a lake whose server is down: every snapshot shows the same rows before and after, as after DuckLake's own."""

import os
import subprocess

from harness.catalogs import DuckDbFile, Moraine
from scenarios.crashes import attach, rows

FLUSH_SECONDS_MAX = 120

TYPES = (
    "CREATE TABLE types(a BOOLEAN, b TINYINT, c SMALLINT, d INTEGER, e BIGINT, f UTINYINT, g USMALLINT, h UINTEGER, "
    "i UBIGINT, j FLOAT, k DOUBLE, l DECIMAL(4,1), m DECIMAL(18,3), n DECIMAL(38,10), o VARCHAR, p BLOB, q DATE, r TIME, "
    "s TIMESTAMP, t TIMESTAMP_S, u TIMESTAMP_MS, v TIMESTAMP_NS, w TIMESTAMPTZ, x UUID, y JSON)"
)
TYPE_ROWS = [
    "(true, -128, -32768, -2147483648, -9223372036854775808, 255, 65535, 4294967295, 18446744073709551615, 1.5, 'nan', "
    "-999.9, -123456789012345.678, -1234567890123456789012345678.0123456789, 'ü ''q'' ' || chr(0) || ' x', '\\xAA\\x00'::BLOB, "
    "'0001-01-01', '23:59:59.999999', '1900-01-01 00:00:00.000001', '1969-12-31 23:59:59', '1969-12-31 23:59:59.999', "
    "'1969-12-31 23:59:59.999999999', '2024-02-29 12:00:00+05', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '{\"a\": [1, null]}')",
    "(false, 127, 32767, 2147483647, 9223372036854775807, 0, 0, 0, 0, '-inf', 1e300, 999.9, 0.001, 0, '', ''::BLOB, "
    "'9999-12-31', '00:00:00', '2262-04-11 23:47:16', '2100-01-01', '2100-01-01 00:00:00.5', '2262-04-11 23:47:16.1', "
    "'1970-01-01 00:00:00+00', '00000000-0000-0000-0000-000000000001', '1')",
    "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'infinity', NULL, "
    "'-infinity', NULL, NULL, NULL, 'infinity', NULL, NULL)",
]

HISTORY = [
    "CREATE TABLE t(a INT, b VARCHAR)",
    "INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')",
    "INSERT INTO t VALUES (4, 'n')",
    "UPDATE t SET b = 'w' WHERE a = 3",
    "DELETE FROM t WHERE a = 2",
    "INSERT INTO t SELECT i, 'file' FROM range(100, 150) r(i)",
    "ALTER TABLE t ADD COLUMN c DOUBLE DEFAULT 0.5",
    "INSERT INTO t VALUES (5, 'later', 2)",
    "UPDATE t SET c = 3 WHERE a = 1",
    "UPDATE t SET b = 'again' WHERE a = 3",
    "ALTER TABLE t DROP COLUMN b",
    "INSERT INTO t VALUES (6, 6)",
    "DELETE FROM t WHERE a = 120",
    "CREATE SCHEMA s",
    "CREATE TABLE s.u(a INT)",
    "INSERT INTO s.u VALUES (7)",
    "DELETE FROM s.u",
    "CREATE TABLE untouched(a INT[])",
    "INSERT INTO untouched VALUES ([1, 2])",
    TYPES,
    *[f"INSERT INTO types VALUES {row}" for row in TYPE_ROWS],
]

TABLES = ("t", "s.u", "untouched", "types")
NEWEST = len(HISTORY)
FLUSHES = [
    "CALL ducklake_flush_inlined_data('lake', table_name => 't')",
    "CALL ducklake_flush_inlined_data('lake', schema_name => 's')",
    "CALL ducklake_flush_inlined_data('lake', table_name => 'types')",
]
FILES = "SELECT table_name, file_count, delete_file_count FROM ducklake_table_info('lake') ORDER BY ALL"


def changes(process, newest):
    """What DuckLake tells of the changes of the flushed tables. A row that was updated twice is told otherwise after a flush."""
    columns = "* EXCLUDE (snapshot_id)"
    feed = "SELECT {columns} FROM ducklake_table_changes('lake', 'main', '{table}', 0, {newest}) ORDER BY ALL"
    return [rows(process, feed.format(columns=columns, table=table, newest=newest)) for table in ("t", "types")]


def flushed_by_ducklake(directory):
    """The changes, files and statistics after the same history with DuckLake's own flush."""
    os.makedirs(directory)
    process = attach(DuckDbFile(directory), directory)
    for statement in HISTORY + FLUSHES:
        answer = process.run(statement)
        assert answer["ok"], (statement, answer)
    found = (changes(process, NEWEST), rows(process, FILES))
    process.close()
    return found


def contents(process, snapshots):
    """What every table shows at every snapshot, row ids included."""
    found = {}
    for snapshot in snapshots:
        for table in TABLES:
            answer = process.run(f"SELECT rowid, * FROM lake.{table} AT (VERSION => {snapshot}) ORDER BY ALL")
            found[snapshot, table] = answer["rows"] if answer["ok"] else "no such table"
    return found


def flush(catalog, binary, *arguments):
    """Runs `moraine flush` on the one lake of a server that is down."""
    command = [binary, "flush", "--take-over", catalog.root, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=FLUSH_SECONDS_MAX)


def every_snapshot_is_the_same_after_a_native_flush(directory, binary):
    """Rows of every type, updated, deleted, of several schema versions and tables; then DuckDB goes on as if nothing was."""
    catalog = Moraine(directory, binary)
    catalog.start()
    try:
        process = attach(catalog, directory)
        for statement in HISTORY:
            answer = process.run(statement)
            assert answer["ok"], (statement, answer)
        newest = int(rows(process, "SELECT max(snapshot_id) FROM ducklake_snapshots('lake')").strip("[](),"))
        assert newest == NEWEST, newest
        snapshots = range(1, newest + 1)
        before = contents(process, snapshots)
        process.close()

        catalog.stop()
        unknown = flush(catalog, binary, "t", "nothing")
        assert unknown.returncode == 1 and "nothing" in unknown.stderr, unknown
        flushed = flush(catalog, binary, "t", "s.u", "types")
        assert flushed.returncode == 0, flushed
        for words in ("main.t: 9 row versions in 3 files, 1 deletion from older files", "s.u: 1 row versions in 1 file", "main.types: 3 row"):
            assert words in flushed.stdout, flushed.stdout
        again = flush(catalog, binary, "t", "s.u", "types")
        assert (again.returncode, "nothing to flush" in again.stdout) == (0, True), again

        catalog.start()
        process = attach(catalog, directory)
        after = contents(process, snapshots)
        for key, expected in before.items():
            assert after[key] == expected, (key, expected, after[key])
        found = (changes(process, NEWEST), rows(process, FILES))
        expected = flushed_by_ducklake(os.path.join(directory, "reference"))
        assert found == expected, (found, expected)
        for statement in (
            "INSERT INTO t VALUES (8, 8)",
            "UPDATE t SET c = 9 WHERE a = 1",
            "DELETE FROM t WHERE a = 6",
            "SELECT * FROM ducklake_flush_inlined_data('lake')",
            "SELECT * FROM ducklake_merge_adjacent_files('lake')",
        ):
            answer = process.run(statement)
            assert answer["ok"], (statement, answer)
        assert rows(process, "SELECT * FROM t WHERE a < 10 ORDER BY a") == "[(1, 9.0), (3, 0.5), (4, 0.5), (5, 2.0), (8, 8.0)]"
        last = contents(process, snapshots)
        for key, expected in before.items():
            assert last[key] == expected, (key, expected, last[key])
        assert rows(process, "SELECT count(*) FROM types WHERE d = 2147483647 AND q = DATE '9999-12-31'") == "[(1,)]"
        process.close()
    finally:
        catalog.stop()


SCENARIOS = [every_snapshot_is_the_same_after_a_native_flush]
