"""The same history on two lakes of one server: one is flushed by DuckDB, one by `moraine flush`. What both register is compared, and
what every table shows at every snapshot, before and after, on both.

What differs and may: names and ids of files, their sizes (two Parquet writers), and what NOT_ALIKE lists with the reason.
"""

import ast
import os
import re

from harness.catalogs import Moraine
from scenarios.crashes import attach, rows
from scenarios.native_flush import flush

from sessions.types import FAMILIES, table_of, writes

# The values of one scalar type in each table, NULL among them. Parquet does not hold what is left out, and both flushes refuse it
# or ours does where DuckDB would change the value.
LEFT_OUT = {
    "INTERVAL": ["INTERVAL '-3 months 5 days'", "INTERVAL '-00:00:00.000001'"],
    # DuckDB's flush writes these as doubles.
    "HUGEINT": ["-9007199254740993000"],
}

SCALARS = [
    statement
    for types in FAMILIES.values()
    for statement in writes({name: [v for v in values if v not in LEFT_OUT.get(name, [])] for name, values in types.items()})
]

NESTED = [
    "CREATE TABLE n(id INT, l INT[], s STRUCT(x INT, y VARCHAR), m MAP(VARCHAR, INT), ll VARCHAR[][], "
    "ls STRUCT(p INT, q INT[])[], sl STRUCT(a STRUCT(b DOUBLE, c VARCHAR[]), d BOOLEAN), mm MAP(INT, STRUCT(k VARCHAR, v DECIMAL(9,2))), "
    "h HUGEINT[], f DOUBLE[])",
    "INSERT INTO n VALUES (1, [1, 2, 3], {'x': 1, 'y': 'q'}, MAP {'k': 1}, [['a', 'b'], ['c']], [{'p': 1, 'q': [1, 2]}, {'p': 2, 'q': []}], "
    "{'a': {'b': 1.5, 'c': ['x', 'y']}, 'd': true}, MAP {1: {'k': 'one', 'v': 1.25}, 2: {'k': 'two', 'v': -0.01}}, "
    "[170141183460469231], [1e20, 0.1, -1e-7])",
    "INSERT INTO n VALUES (2, [], {'x': NULL, 'y': NULL}, MAP {}, [[], NULL, ['', NULL]], [], {'a': NULL, 'd': NULL}, MAP {}, [], [])",
    "INSERT INTO n(id) VALUES (3)",
    "INSERT INTO n(id, l, s, m, ll, ls, sl, mm) VALUES (4, [NULL, -1], {'x': -1, 'y': 'comma, brace } bracket ] equals = \"double\" back\\slash'}, "
    "MAP {'a, b': 1, 'c=d': 2}, [['snöw☃', 'a,b', '[x]', 'NULL', ' sp ', 'q\"q']], [{'p': NULL, 'q': NULL}, NULL], "
    "{'a': {'b': 1e300, 'c': [NULL]}, 'd': false}, MAP {0: NULL})",
    "UPDATE n SET l = [9] WHERE id = 1",
    "DELETE FROM n WHERE id = 2",
    "ALTER TABLE n ADD COLUMN s.z BIGINT",
    "INSERT INTO n(id, s) VALUES (5, {'x': 1, 'y': 'z', 'z': 3})",
]

PARTITIONED = [
    "CREATE TABLE p(a INT, p INT, q VARCHAR, d DATE, ts TIMESTAMP, tz TIMESTAMPTZ, f DOUBLE, n DECIMAL(20,2), u UUID, b BOOLEAN)",
    "ALTER TABLE p SET PARTITIONED BY (p, q)",
    *[
        f"INSERT INTO p SELECT {i}, {i} % 3, CASE WHEN {i} % 2 = 0 THEN 'a/b c''=ü%' END, DATE '2024-01-01' + {i * 40}, TIMESTAMP '2023-12-31 22:10:00' + INTERVAL ({i}) HOUR, "
        f"TIMESTAMPTZ '2024-06-01 00:00:00+00', {i}, {i}, '11111111-2222-3333-4444-{i:012}', {i} % 2 = 1"
        for i in range(6)
    ],
    "INSERT INTO p(a) VALUES (NULL), (7)",
    "UPDATE p SET p = 9 WHERE a = 3",
    # Not of a partition whose value is a text: through a catalog that is a Postgres, DuckDB's flush does not find the rows that ended
    # there, and loses their deletion.
    "DELETE FROM p WHERE a IN (1, 5)",
    "ALTER TABLE p SET PARTITIONED BY (year(d), month(d), bucket(3, a), day(ts), hour(ts), year(ts))",
    *[f"INSERT INTO p(a, d, ts) VALUES ({i * 1000}, DATE '2023-11-05' + {i}, TIMESTAMP '2024-03-01 23:00:00' + INTERVAL ({i}) HOUR)" for i in range(4)],
    "INSERT INTO p(a, d, ts) VALUES (1, 'infinity', '-infinity')",
    "ALTER TABLE p SET PARTITIONED BY (bucket(4, q), bucket(5, f), bucket(6, n), bucket(7, d), bucket(8, ts), bucket(3, b))",
    "INSERT INTO p(a, q, f, n, d, ts, b) VALUES (1, 'iceberg', 1.5, 12.34, '2017-11-16', '2017-11-16 22:31:08', true), (2, '', -0.0, -1, '1969-12-31', '1969-12-31 23:59:59', false)",
    "INSERT INTO p(a) VALUES (3)",
    "CREATE TABLE pi(v BOOLEAN, f DOUBLE, d DATE, n DECIMAL(5,2), ts TIMESTAMP, b BLOB, e INT)",
    "ALTER TABLE pi SET PARTITIONED BY (v, f, d, n, ts, b)",
    "INSERT INTO pi VALUES (true, 1e20, '0044-03-15 (BC)', -1.5, '2024-01-01 10:00:00.25', 'a b/c'::BLOB, 1), (false, 0.1, 'infinity', 0, 'infinity', ''::BLOB, 2), (NULL, NULL, NULL, NULL, NULL, NULL, 3)",
]

SORTED = [
    'CREATE TABLE o(a INT, "B b" VARCHAR, c DOUBLE)',
    "INSERT INTO o VALUES (5, 'x', 1), (3, 'y', 'nan'), (NULL, NULL, NULL)",
    'ALTER TABLE o SET SORTED BY (c DESC NULLS LAST, "B b" ASC NULLS FIRST)',
    "INSERT INTO o VALUES (1, 'z', '-inf'), (2, 'A', 1), (2, NULL, 1)",
    "UPDATE o SET c = 0 WHERE a = 5",
    "DELETE FROM o WHERE a = 3",
    "ALTER TABLE o SET PARTITIONED BY (a)",
    "INSERT INTO o VALUES (1, 'q', 4), (1, 'r', 5), (1, 's', '-0.0'), (1, 't', '0.0'), (2, 'u', 9)",
    "DELETE FROM o WHERE c = 4",
    'ALTER TABLE o RENAME "B b" TO b2',
    "INSERT INTO o VALUES (1, 'v', 7)",
]

# DuckDB sorts by all of it, we up to the first expression; what is shown and registered does not tell.
EXPRESSIONS = [
    "CREATE TABLE e(a INT, b VARCHAR)",
    "ALTER TABLE e SET SORTED BY (a % 2 DESC, b)",
    "INSERT INTO e VALUES (1, 'B'), (2, 'x'), (1, 'a'), (NULL, 'q'), (2, 'C'), (2, NULL)",
    "CREATE TABLE e2(a INT, b INT)",
    "ALTER TABLE e2 SET SORTED BY (b, a + b, a)",
    "INSERT INTO e2 VALUES (1, 3), (0, 9)",
    "INSERT INTO e2 VALUES (5, 3)",
]

CHANGED = [
    "CREATE TABLE c(a INT, b VARCHAR)",
    "INSERT INTO c VALUES (1, 'x'), (2, 'y')",
    "ALTER TABLE c ADD COLUMN d DOUBLE DEFAULT 0.5",
    "INSERT INTO c VALUES (3, 'z', 1)",
    "ALTER TABLE c ALTER a SET DATA TYPE BIGINT",
    "INSERT INTO c VALUES (9223372036854775807, 'big', 2)",
    "ALTER TABLE c RENAME b TO e",
    "INSERT INTO c VALUES (4, 'e', 3)",
    "ALTER TABLE c DROP COLUMN d",
    "INSERT INTO c VALUES (5, 'no d')",
    "UPDATE c SET e = 'updated' WHERE a IN (1, 3)",
    "DELETE FROM c WHERE a = 2",
    "UPDATE c SET e = 'again' WHERE a = 1",
]

DELETED = [
    "CREATE TABLE f(a INT)",
    "INSERT INTO f SELECT i FROM range(1000) r(i)",
    "DELETE FROM f WHERE a IN (3, 4)",
    "DELETE FROM f WHERE a = 7",
    "INSERT INTO f SELECT i FROM range(1000, 2000) r(i)",
    "DELETE FROM f WHERE a >= 1500",
    "DELETE FROM f WHERE a = 1001",
    "UPDATE f SET a = -1 WHERE a = 1002",
]

TEXTS = [
    "CREATE TABLE x(v VARCHAR, b BLOB)",
    *[f"INSERT INTO x VALUES ({v}, ({v})::BLOB)" for v in ("'a'", "repeat('ab', 600)", "repeat('b', 257)")],
    "CREATE TABLE y(v VARCHAR, d DOUBLE, e DOUBLE)",
    "INSERT INTO y VALUES ('a' || repeat('ü', 600), 'nan', 'nan'), ('b', 1, NULL)",
    "CREATE TABLE z(v VARCHAR)",
    "INSERT INTO z VALUES (repeat('ü', 600)), ('a')",
    "CREATE SCHEMA sch",
    "CREATE TABLE sch.t(a INT)",
    "INSERT INTO sch.t VALUES (1)",
    "CREATE TABLE empty(a INT)",
    "INSERT INTO empty VALUES (1)",
    "DELETE FROM empty",
]

# DuckDB's writer keeps no statistics of these, and its flush registers zeros.
UNCOUNTED = ("interval", "timetz")

METADATA = "__ducklake_metadata_lake."


def found_by(process, sql):
    """Rows of a query over the catalog's own tables."""
    answer = process.run(re.sub(r"\bducklake_(\w+)", lambda match: METADATA + match.group(0), sql))
    assert answer["ok"], (sql, answer)
    return answer["rows"]


def registered(process, paths):
    """What a flush has registered, without names, ids and sizes of files."""
    # DuckDB's writer counts no NULLs of intervals and of times with zone, and counts wrong within structs of lists and maps.
    counted = (
        f"(c.column_type NOT IN {UNCOUNTED} AND NOT EXISTS (SELECT 1 FROM ducklake_column s1 JOIN ducklake_column l1 "
        f"ON l1.table_id = s1.table_id AND l1.column_id = s1.parent_column WHERE s1.table_id = c.table_id "
        f"AND s1.column_id = c.parent_column AND s1.column_type = 'struct' AND l1.column_type IN ('list', 'map')))"
    )
    folder = "regexp_replace(d.path, '[^/]*$', '')" if paths else "NULL"
    key = (
        f"SELECT d.data_file_id, d.table_id, t.table_name, d.begin_snapshot b, d.row_id_start r, {folder} p "
        "FROM ducklake_data_file d JOIN ducklake_table t USING (table_id) WHERE t.end_snapshot IS NULL"
    )
    return {
        "files": found_by(
            process,
            f"SELECT k.table_name, k.b, k.r, k.p, d.end_snapshot, d.file_order, d.path_is_relative, d.file_format, d.record_count, "
            f"d.file_size_bytes > 0, d.footer_size > 0, d.mapping_id, d.partial_max, d.partition_id, d.encryption_key IS NULL "
            f"FROM ({key}) k JOIN ducklake_data_file d USING (data_file_id) ORDER BY ALL",
        ),
        "delete files": found_by(
            process,
            f"SELECT k.table_name, k.b, k.r, k.p, x.begin_snapshot, x.end_snapshot, x.path_is_relative, x.format, x.delete_count, "
            f"x.file_size_bytes > 0, x.footer_size > 0, x.partial_max, x.encryption_key IS NULL "
            f"FROM ({key}) k JOIN ducklake_delete_file x USING (data_file_id) ORDER BY ALL",
        ),
        "partition values": found_by(
            process,
            f"SELECT k.table_name, k.b, k.r, v.partition_key_index, v.partition_value "
            f"FROM ({key}) k JOIN ducklake_file_partition_value v USING (data_file_id) ORDER BY ALL",
        ),
        "statistics": found_by(
            process,
            f"SELECT DISTINCT k.table_name, k.b, k.r, k.p, s.column_id, c.column_type, "
            f"CASE WHEN {counted} THEN s.value_count END, CASE WHEN {counted} THEN s.null_count END, "
            f"s.min_value, s.max_value, s.contains_nan, s.extra_stats "
            f"FROM ({key}) k JOIN ducklake_file_column_stats s USING (data_file_id) "
            f"JOIN ducklake_column c ON c.table_id = k.table_id AND c.column_id = s.column_id AND c.end_snapshot IS NULL ORDER BY ALL",
        ),
        "table statistics": found_by(
            process,
            "SELECT table_id, record_count, next_row_id, file_size_bytes = (SELECT sum(file_size_bytes) FROM ducklake_data_file d WHERE d.table_id = t.table_id) "
            "FROM ducklake_table_stats t ORDER BY ALL",
        ),
        "column statistics": found_by(process, "SELECT table_id, column_id, contains_null, contains_nan FROM ducklake_table_column_stats ORDER BY ALL"),
        "snapshots": found_by(process, "SELECT snapshot_id, schema_version, next_catalog_id FROM ducklake_snapshot ORDER BY ALL"),
        "changes": found_by(process, "SELECT snapshot_id, changes_made FROM ducklake_snapshot_changes ORDER BY ALL"),
        "scheduled": found_by(process, "SELECT count(*), bool_and(path_is_relative) FROM ducklake_files_scheduled_for_deletion"),
        "inlined tables": found_by(process, "SELECT * FROM ducklake_inlined_data_tables ORDER BY ALL"),
    }


def compared(found, expected):
    """Every section that differs, row by row."""
    differences = []
    for section, rows_expected in expected.items():
        if found[section] == rows_expected:
            continue
        ours, theirs = (set(re.findall(r"\((?:[^()]|\([^()]*\))*\)", text)) for text in (found[section], rows_expected))
        differences.append((section, "only here", sorted(ours - theirs)[:12], "only by DuckDB", sorted(theirs - ours)[:12]))
    return differences


def shown(process, tables, snapshots):
    """What every table shows at every snapshot, row ids included, as text that no client's own types blur."""
    everything = {}
    for snapshot in snapshots:
        for table in tables:
            answer = process.run(f"SELECT rowid, COLUMNS(*)::VARCHAR FROM lake.{table} AT (VERSION => {snapshot}) ORDER BY ALL")
            everything[snapshot, table] = answer["rows"] if answer["ok"] else "no such table"
    return everything


def flushed_alike(directory, binary, history, tables, options="", sparse=1, paths=True, prelude=()):
    """Plays the history on two lakes and flushes each its own way."""
    by_duckdb, by_moraine = (Moraine(os.path.join(directory, who), binary, database=who) for who in ("duckdb", "moraine"))
    for catalog in (by_duckdb, by_moraine):
        os.makedirs(os.path.join(directory, catalog.database), exist_ok=True)
        catalog.start()
    try:
        processes = [attach(catalog, os.path.join(directory, catalog.database), options) for catalog in (by_duckdb, by_moraine)]
        for statement in [*prelude, *history]:
            for process in processes:
                answer = process.run(statement)
                assert answer["ok"], (statement, answer)
        newest = int(rows(processes[0], "SELECT max(snapshot_id) FROM ducklake_snapshots('lake')").strip("[](),"))
        snapshots = sorted({*range(1, newest + 1, sparse), newest})
        before = [shown(process, tables, snapshots) for process in processes]
        # DuckDB's flush merges what it registers of the files into these, and so loses bounds; no value has changed.
        bounds = "SELECT table_id, column_id, min_value, max_value, extra_stats FROM ducklake_table_column_stats ORDER BY ALL"
        bounds_before = found_by(processes[1], bounds)
        answer = processes[0].run("CALL ducklake_flush_inlined_data('lake')")
        assert answer["ok"], answer
        processes[1].close()
        by_moraine.stop()
        flushed = flush(by_moraine, binary)
        assert flushed.returncode == 0, flushed
        by_moraine.start()
        processes[1] = attach(by_moraine, os.path.join(directory, by_moraine.database), options)
        for statement in prelude:
            assert processes[1].run(statement)["ok"], statement
        expected, found = (registered(process, paths) for process in processes)
        differences = compared(found, expected)
        assert not differences, differences
        assert found_by(processes[1], bounds) == bounds_before
        for process, earlier, who in zip(processes, before, ("DuckDB", "moraine")):
            after = shown(process, tables, [*snapshots, newest + 1])
            differing = [(key, earlier[key], after[key]) for key in earlier if earlier[key] != after[key] and who == "moraine"]
            assert not differing, (who, differing[:3])
            assert all(after[newest + 1, table] == after[newest, table] for table in tables), who
        for process in processes:
            process.close()
    finally:
        by_duckdb.stop()
        by_moraine.stop()


def scalars_are_flushed_alike(directory, binary):
    """Every scalar type with its ordinary values, NULL, extremes and oddities."""
    tables = [table_of(name) for types in FAMILIES.values() for name in types]
    flushed_alike(directory, binary, SCALARS, [table for table in tables if table != "t_timetz"], sparse=7)


def nested_values_are_flushed_alike(directory, binary):
    """Lists, structs and maps, nested, of every scalar that their text carries."""
    flushed_alike(directory, binary, NESTED, ["n"])


def partitions_are_flushed_alike(directory, binary):
    """Every transform, several partitionings of one table, NULLs and names that have to be escaped."""
    flushed_alike(directory, binary, PARTITIONED, ["p", "pi"])


def sort_orders_are_flushed_alike(directory, binary):
    """Sorted, then sorted and partitioned, with updated and deleted rows, and a sort column that is renamed."""
    flushed_alike(directory, binary, SORTED, ["o"])


def sort_orders_by_expressions_are_flushed_alike(directory, binary):
    """What only DuckDB evaluates decides on the order within a file and on nothing that is registered or shown. Expressions of texts
    DuckDB's own flush does not evaluate either on a catalog that is a Postgres, where texts are bytes."""
    flushed_alike(directory, binary, EXPRESSIONS, ["e", "e2"])
    catalog = Moraine(directory, binary)
    catalog.start()
    try:
        process = attach(catalog, directory)
        for statement in (
            "CREATE TABLE t(a INT, b VARCHAR)",
            "ALTER TABLE t SET SORTED BY (a, lower(b))",
            "INSERT INTO t VALUES (2, 'B'), (1, 'x'), (2, 'a')",
        ):
            assert process.run(statement)["ok"], statement
        before = rows(process, "SELECT rowid, a, b FROM t ORDER BY ALL")
        refused = process.run("CALL ducklake_flush_inlined_data('lake')")
        assert not refused["ok"] and "lower(BLOB)" in refused["error"], refused
        process.close()
        catalog.stop()
        flushed = flush(catalog, binary)
        words = "main.t: 3 row versions in 1 file, not sorted by lower(b), which only DuckDB evaluates"
        assert flushed.returncode == 0 and words in flushed.stdout, flushed
        catalog.start()
        process = attach(catalog, directory)
        assert rows(process, "SELECT rowid, a, b FROM t ORDER BY ALL") == before
        files = rows(process, "SELECT data_file FROM ducklake_list_files('lake', 't')")
        found = rows(process, f"SELECT a FROM read_parquet('{ast.literal_eval(files)[0][0]}')")
        assert found == "[(1,), (2,), (2,)]", found
        process.close()
    finally:
        catalog.stop()


def changed_columns_are_flushed_alike(directory, binary):
    """Columns added, dropped, renamed and promoted between the rows, which lie under several schema versions."""
    flushed_alike(directory, binary, CHANGED, ["c"])


def deletions_from_files_are_flushed_alike(directory, binary):
    """Inlined deletions alone, and beside a delete file that has to be replaced."""
    flushed_alike(directory, binary, DELETED, ["f"])


def bounds_are_flushed_alike(directory, binary):
    """Bounds of long texts and blobs, of NaNs; a schema of its own; a table without rows that live."""
    flushed_alike(directory, binary, TEXTS, ["x", "y", "z", "sch.t", "empty"])


def encrypted_lakes_are_flushed_alike(directory, binary):
    """Data and delete files of an encrypted lake, partitioned and not, read back by DuckDB with the keys in the catalog."""
    history = [
        "CREATE TABLE c(a INT, b VARCHAR)",
        "INSERT INTO c VALUES (1, 'x'), (2, 'y')",
        "DELETE FROM c WHERE a = 1",
        "INSERT INTO c SELECT i, 'file' FROM range(100) r(i)",
        "DELETE FROM c WHERE a = 77",
        "CREATE TABLE p(a INT, l VARCHAR)",
        "ALTER TABLE p SET PARTITIONED BY (a)",
        "INSERT INTO p VALUES (1, 's'), (2, NULL)",
        *NESTED,
    ]
    # DuckDB's flush names the folders of an encrypted lake after their partition, its INSERT does not; ours does as INSERT does.
    flushed_alike(directory, binary, history, ["c", "p", "n"], "ENCRYPTED", paths=False, prelude=["SET force_mbedtls_unsafe = 'true'"])


def encrypted_files_of_both_meet(directory, binary):
    """Files of many pages, flat and nested; delete files that DuckDB has written are read and replaced by ours, and ours by DuckDB's."""
    catalog = Moraine(directory, binary)
    catalog.start()
    options = "ENCRYPTED, DATA_INLINING_ROW_LIMIT 100000"
    unsafe = "SET force_mbedtls_unsafe = 'true'"
    content = (
        "SELECT count(*), count(DISTINCT rowid), sum(a), count(b), sum(len(l)), sum(s.x), count(s.y), min(s.y), max(s.y) FROM big"
    )
    try:
        process = attach(catalog, directory, options)
        assert process.run(unsafe)["ok"]
        ours = False
        for first in (0, 25_000, 50_000, 75_000):
            for statement in (
                "CREATE TABLE IF NOT EXISTS big(a INT, b VARCHAR, l INT[], s STRUCT(x INT, y VARCHAR))",
                f"INSERT INTO big SELECT i, CASE WHEN i % 3 > 0 THEN 'b' || i END, [i, i + 1], {{'x': i, 'y': 'y' || i}} "
                f"FROM range({first}, {first} + 25000) r(i)",
                f"DELETE FROM big WHERE a IN ({first + 1}, {first + 20000})",
                # From older files, whose delete file both find there.
                f"DELETE FROM big WHERE a % 25000 = {2 + first // 25_000}",
            ):
                answer = process.run(statement)
                assert answer["ok"], (statement, answer)
            before = rows(process, content)
            if ours:
                process.close()
                catalog.stop()
                flushed = flush(catalog, binary)
                assert flushed.returncode == 0, flushed
                catalog.start()
                process = attach(catalog, directory, options)
                assert process.run(unsafe)["ok"]
            else:
                answer = process.run("CALL ducklake_flush_inlined_data('lake')")
                assert answer["ok"], answer
            ours = not ours
            after = rows(process, content)
            assert after == before, (first, before, after)
        process.close()
        for folder, _, names in os.walk(os.path.join(directory, "files")):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    assert file.read(4) == b"PARE", name
    finally:
        catalog.stop()


def options_are_followed(directory, binary):
    """Compression, version, row groups and file sizes, of the lake, a schema and a table."""
    catalog = Moraine(directory, binary)
    catalog.start()
    try:
        process = attach(catalog, directory, "DATA_INLINING_ROW_LIMIT 100000")
        for statement in (
            "CREATE TABLE small(a BIGINT, b VARCHAR)",
            "CREATE TABLE other(a BIGINT)",
            "CALL lake.set_option('parquet_compression', 'zstd')",
            "CALL lake.set_option('parquet_compression', 'gzip', schema => 'main')",
            "CALL lake.set_option('parquet_compression', 'lz4', table_name => 'small')",
            "CALL lake.set_option('parquet_version', 2)",
            "CALL lake.set_option('parquet_row_group_size', 3000, table_name => 'other')",
            "CALL lake.set_option('target_file_size', '100KB', table_name => 'small')",
            "CALL lake.set_option('auto_compact', false, table_name => 'other')",
            *[f"INSERT INTO small SELECT i, uuid()::VARCHAR FROM range({k} * 10000, {k} * 10000 + 10000) r(i)" for k in range(4)],
            "INSERT INTO other SELECT i FROM range(10000) r(i)",
        ):
            answer = process.run(statement)
            assert answer["ok"], (statement, answer)
        process.close()
        catalog.stop()
        flushed = flush(catalog, binary)
        assert flushed.returncode == 0 and "main.other" not in flushed.stdout, flushed
        flushed = flush(catalog, binary, "other")
        assert flushed.returncode == 0 and "main.other: 10000 row versions in 1 file" in flushed.stdout, flushed
        catalog.start()
        process = attach(catalog, directory)
        files = os.path.join(directory, "files", "main", "{}", "*.parquet")
        codecs = "SELECT DISTINCT compression FROM parquet_metadata('{}')"
        assert rows(process, codecs.format(files.format("small"))) == "[('LZ4_RAW',)]"
        assert rows(process, codecs.format(files.format("other"))) == "[('GZIP',)]"
        groups = f"SELECT max(row_group_num_rows), count(DISTINCT row_group_id) FROM parquet_metadata('{files.format('other')}')"
        assert rows(process, groups) == "[(3000, 4)]", rows(process, groups)
        sizes = "SELECT count(*) > 3, max(data_file_size_bytes) < 1000000 FROM ducklake_list_files('lake', 'small')"
        assert rows(process, sizes) == "[(True, True)]", rows(process, sizes)
        content = "SELECT count(*), count(DISTINCT a), count(DISTINCT b), sum(a), count(DISTINCT rowid), max(rowid) FROM small"
        assert rows(process, content) == "[(40000, 40000, 40000, 799980000, 40000, 39999)]", rows(process, content)
        process.close()
    finally:
        catalog.stop()


def what_parquet_does_not_hold_is_refused(directory, binary):
    """Values that would change are named, with their column; nothing is left at the data path, and the rows stay inlined."""
    catalog = Moraine(directory, binary)
    catalog.start()
    try:
        process = attach(catalog, directory)
        for statement in (
            "CREATE TABLE i(v INTERVAL)",
            "INSERT INTO i VALUES (INTERVAL '-3 months')",
            "CREATE TABLE h(v HUGEINT)",
            "INSERT INTO h VALUES (170141183460469231731687303715884105727)",
        ):
            answer = process.run(statement)
            assert answer["ok"], (statement, answer)
        process.close()
        catalog.stop()
        for table, words in (("i", 'column "v"'), ("h", "38 digits")):
            refused = flush(catalog, binary, table)
            assert refused.returncode == 1 and words in refused.stderr and f"main.{table}" in refused.stderr, refused
        left = [name for _, _, names in os.walk(os.path.join(directory, "files")) for name in names]
        assert not left, left
        catalog.start()
        process = attach(catalog, directory)
        assert rows(process, "SELECT (SELECT count(*) FROM i), (SELECT v FROM h)").startswith("[(1, 170141"), "rows"
        process.close()
    finally:
        catalog.stop()


SCENARIOS = [
    encrypted_lakes_are_flushed_alike,
    encrypted_files_of_both_meet,
    options_are_followed,
    what_parquet_does_not_hold_is_refused,
    scalars_are_flushed_alike,
    nested_values_are_flushed_alike,
    partitions_are_flushed_alike,
    sort_orders_are_flushed_alike,
    sort_orders_by_expressions_are_flushed_alike,
    changed_columns_are_flushed_alike,
    deletions_from_files_are_flushed_alike,
    bounds_are_flushed_alike,
]
