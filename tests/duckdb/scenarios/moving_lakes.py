"""A lake with history comes in from each other catalog, is used for a day of work, and goes out again to each: every query at
every snapshot is equal throughout."""

import os
import subprocess
import sys

from harness import postgres
from harness.catalogs import Moraine
from harness.client import Process
from scenarios.crashes import rows
from scenarios.native_flush import TYPE_ROWS, TYPES

COMMAND_SECONDS_MAX = 240
STATEMENT_SECONDS_MAX = 60
EXPIRED = "versions => [2, 4]"

HISTORY = [
    "CREATE TABLE t(a INT, b VARCHAR)",
    "INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')",
    "INSERT INTO t VALUES (4, 'it''s'), (5, NULL)",
    "UPDATE t SET b = 'w' WHERE a = 3",
    "DELETE FROM t WHERE a = 2",
    "INSERT INTO t SELECT i, 'file' FROM range(100, 150) r(i)",
    "DELETE FROM t WHERE a BETWEEN 120 AND 125",
    "ALTER TABLE t ADD COLUMN c DOUBLE DEFAULT 0.5",
    "INSERT INTO t VALUES (6, 'later', 2)",
    "UPDATE t SET c = 3 WHERE a = 1",
    "ALTER TABLE t RENAME b TO label",
    "COMMENT ON TABLE t IS 'a table; with ''quotes'''",
    "COMMENT ON COLUMN t.label IS 'first'",
    "COMMENT ON COLUMN t.label IS 'second'",
    "ALTER TABLE t ALTER a TYPE BIGINT",
    "INSERT INTO t VALUES (7, 'wide', 7)",
    "ALTER TABLE t DROP COLUMN label",
    "INSERT INTO t VALUES (8, 8)",
    "CREATE SCHEMA s",
    "CREATE TABLE s.u(a INT, d DATE)",
    "ALTER TABLE s.u SET PARTITIONED BY (year(d), a)",
    "INSERT INTO s.u SELECT i % 3, DATE '2024-01-01' + i::INT * 100 FROM range(30) r(i)",
    "INSERT INTO s.u VALUES (9, '2030-01-01')",
    "CREATE TABLE nested(l INT[], r STRUCT(x INT, \"y Z\" VARCHAR), m MAP(VARCHAR, DOUBLE), d STRUCT(q INT[])[])",
    "INSERT INTO nested VALUES ([1, NULL], {'x': 1, 'y Z': 'b, \"c\"'}, MAP{'k': 1.5, 'n': NULL}, [{'q': [1]}, NULL]), (NULL, NULL, NULL, NULL), "
    "([], {'x': NULL, 'y Z': NULL}, MAP{}, [])",
    "ALTER TABLE nested ADD COLUMN r.z TINYINT",
    "INSERT INTO nested VALUES ([2], {'x': 2, 'y Z': 'd', 'z': 3}, MAP{'e': 1e300}, [])",
    "UPDATE nested SET l = [9] WHERE l = [2]",
    TYPES,
    *[f"INSERT INTO types VALUES {row}" for row in TYPE_ROWS],
    "CREATE TABLE wide(a HUGEINT, b UHUGEINT, c TIMETZ, d INTERVAL)",
    "INSERT INTO wide VALUES (-170141183460469231731687303715884105727, 340282366920938463463374607431768211455, "
    "'12:00:00.5+05:30', INTERVAL '14 months 2 days 3.5 seconds'), (1, 2, '00:00:00+00', INTERVAL '-5 hours')",
    "CREATE VIEW v AS SELECT a, c FROM t WHERE a < 100",
    "CREATE OR REPLACE VIEW v AS SELECT a * 10 AS ten FROM t WHERE a < 100",
    "COMMENT ON VIEW v IS 'tenfold'",
    "CREATE MACRO plus(x, y := 5) AS x + y",
    "CREATE MACRO numbers(n) AS TABLE SELECT * FROM range(n)",
    "CREATE TABLE sorted(a INT, b VARCHAR)",
    "ALTER TABLE sorted SET SORTED BY (b DESC, a ASC NULLS FIRST)",
    "INSERT INTO sorted SELECT 100 - i, 'b' || (i % 3) FROM range(100) r(i)",
    "CALL lake.set_option('parquet_compression', 'zstd')",
    "CALL lake.set_option('data_inlining_row_limit', 20, table_name => 'sorted')",
    "INSERT INTO sorted SELECT i, 'x' FROM range(15) r(i)",
    "CREATE TABLE merged(a INT)",
    *[f"INSERT INTO merged SELECT i FROM range({k * 100}, {k * 100 + 50}) r(i)" for k in range(4)],
    "DELETE FROM merged WHERE a % 50 > 10",
    "CALL ducklake_rewrite_data_files('lake', 'merged', delete_threshold => 0)",
    "CALL ducklake_merge_adjacent_files('lake', 'merged')",
    "CREATE TABLE gone(a INT)",
    "INSERT INTO gone VALUES (1)",
    "DROP TABLE gone",
    "ALTER TABLE s.u RENAME TO renamed",
    f"CALL ducklake_expire_snapshots('lake', {EXPIRED})",
    "INSERT INTO t VALUES (9, NULL)",
]

DAY = [
    "INSERT INTO t VALUES (10, 10), (11, 11)",
    "UPDATE t SET c = c + 1 WHERE a IN (1, 8, 130)",
    "DELETE FROM t WHERE a = 140",
    "ALTER TABLE t ADD COLUMN day VARCHAR DEFAULT 'new'",
    "INSERT INTO t SELECT i, i, 'file' FROM range(500, 560) r(i)",
    "CALL ducklake_flush_inlined_data('lake', table_name => 't')",
    "CREATE TABLE tomorrow(a INT, l VARCHAR[])",
    "INSERT INTO tomorrow VALUES (1, ['a', NULL])",
    "INSERT INTO nested SELECT [3], {'x': 3, 'y Z': 'e', 'z': NULL}, MAP{}, NULL",
    "DELETE FROM nested WHERE l = [9]",
    "COMMENT ON COLUMN t.c IS 'counted'",
    "INSERT INTO s.renamed VALUES (1, '2024-06-01'), (4, NULL)",
    "CREATE OR REPLACE MACRO plus(x, y := 6) AS x + y",
    "DROP VIEW v",
    "CALL ducklake_expire_snapshots('lake', versions => [7])",
]

# Column statistics that are lost by a change of type and then come of one file alone mislead DuckLake itself: no filters here.
TOMORROW = ["INSERT INTO t VALUES (99, 99, 'on')", "CALL ducklake_flush_inlined_data('lake', table_name => 't')"]
COUNTED = "SELECT count(*), sum(a), sum(c) FROM t"

TABLES = ["t", "s.u", "s.renamed", "nested", "types", "wide", "v", "sorted", "merged", "gone", "tomorrow"]
# What a lake says of itself. Paths and UUIDs differ between two lakes with the same history, times too.
STATEMENTS = [
    "SELECT snapshot_id, schema_version, changes, author FROM ducklake_snapshots('lake') ORDER BY 1",
    "SELECT table_name, file_count, delete_file_count FROM ducklake_table_info('lake') ORDER BY ALL",
    "SELECT option_name, value, scope FROM ducklake_options('lake') WHERE option_name NOT IN ('data_path', 'created_by') ORDER BY ALL",
    "SELECT schema_name, table_name, comment FROM duckdb_tables() WHERE database_name = 'lake' ORDER BY ALL",
    "SELECT schema_name, table_name, column_name, data_type, column_default, comment FROM duckdb_columns() "
    "WHERE database_name = 'lake' ORDER BY ALL",
    "SELECT view_name, comment, sql FROM duckdb_views() WHERE database_name = 'lake' AND NOT internal ORDER BY 1",
    "SELECT lake.plus(1), (SELECT count(*) FROM lake.numbers(3))",
    "SELECT snapshot_id, rowid, change_type, a FROM ducklake_table_changes('lake', 'main', 't', {first}, {newest}) ORDER BY ALL",
]
OWN = "SELECT snapshot_id, snapshot_time FROM ducklake_snapshots('lake') ORDER BY 1"


def attach(connection, options=""):
    """A DuckDB process with a lake in use."""
    process = Process(STATEMENT_SECONDS_MAX)
    answer = process.run(f"ATTACH 'ducklake:{connection}' AS lake{options}")
    assert answer["ok"], answer
    assert process.run("USE lake")["ok"]
    return process


def play(process, statements):
    """Runs statements that must not fail."""
    for statement in statements:
        answer = process.run(statement)
        assert answer["ok"], (statement, answer)


def tables_at(process, snapshots):
    """Which of the tables each snapshot has."""
    found = {}
    for snapshot in snapshots:
        asked = {table: process.run(f"FROM {table} AT (VERSION => {snapshot}) LIMIT 0") for table in TABLES}
        found[snapshot] = [table for table, answer in asked.items() if answer["ok"]]
    return found


def snapshots_of(process):
    """The ids of all snapshots."""
    listed = rows(process, "SELECT list(snapshot_id ORDER BY snapshot_id) FROM ducklake_snapshots('lake')")
    return [int(part) for part in listed.strip("[](),").split(",")]


def everything(process, tables):
    """What a lake says of itself, and every row of every table at every snapshot."""
    snapshots = snapshots_of(process)
    names = {"first": snapshots[-20], "newest": snapshots[-1]}
    found = {statement: rows(process, statement.format(**names)) for statement in STATEMENTS}
    for snapshot in snapshots:
        parts = [
            f"SELECT '{table}', x::VARCHAR FROM (SELECT {'' if table == 'v' else 'rowid, '}* FROM {table} AT (VERSION => {snapshot})) x"
            for table in tables[snapshot]
        ]
        found[snapshot] = rows(process, " UNION ALL ".join(parts) + " ORDER BY ALL") if parts else "no tables"
    return found


def same(found, expected, where):
    """Fails with the first thing that differs."""
    assert found.keys() == expected.keys(), (where, found.keys() ^ expected.keys())
    for key, value in expected.items():
        assert found[key] == value, (where, key, value, found[key])


def moraine(binary, *arguments):
    """Runs a command of moraine, which must succeed; what it printed."""
    environment = {**os.environ, "MORAINE_DUCKDB": sys.executable}
    command = [binary, *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX, env=environment)
    assert ran.returncode == 0 and "panicked" not in ran.stderr, ran
    return ran.stdout


class Places:
    """Catalogs of the other kinds, by name: what DuckLake and moraine call each."""

    def __init__(self, directory, cluster):
        self.directory = directory
        self.cluster = cluster
        self.kinds = ["sqlite", "duckdb"] + (["postgres"] if cluster else [])

    def name(self, kind, place):
        """A catalog of its own for each place."""
        if kind == "postgres":
            return f"postgres:{self.cluster.connection()}"
        return f"{kind}:{os.path.join(self.directory, place + '.' + kind)}"

    def schema(self, kind, place):
        """The options of an ATTACH and of moraine that name a schema of its own in the one database."""
        if kind != "postgres":
            return "", lambda side: []
        return f"METADATA_SCHEMA '{place}'", lambda side: [f"--{side}-schema", place]


def attach_there(places, kind, place, options=()):
    """DuckDB on a catalog of another kind."""
    schema, _ = places.schema(kind, place)
    told = [option for option in (schema, *options) if option]
    name = places.name(kind, place).removeprefix("duckdb:")
    return attach(name, f" ({', '.join(told)})" if told else "")


def life(directory, binary, places, kind, expected, tables):
    """In from one kind, a day of work, out to every kind."""
    process = attach_there(places, kind, "from_" + kind, [f"DATA_PATH '{directory}/data_{kind}/'"])
    play(process, HISTORY)
    before, times = everything(process, tables[0]), rows(process, OWN)
    same(before, expected[0], (kind, "its history"))
    process.close()

    catalog = Moraine(directory, binary, root=os.path.join(directory, "root_" + kind), database="lake")
    _, schema_of = places.schema(kind, "from_" + kind)
    source = places.name(kind, "from_" + kind)
    told = moraine(binary, "import", "--from", source, *schema_of("from"), catalog.root, "--verify")
    assert "are the same on both sides" in told, told
    catalog.start()
    try:
        process = attach(catalog.connection())
        same(everything(process, tables[0]), before, (kind, "imported"))
        assert rows(process, OWN) == times, kind
        play(process, DAY)
        after, times = everything(process, tables[1]), rows(process, OWN)
        same(after, expected[1], (kind, "after a day of work"))
        process.close()
        for to in places.kinds:
            place = f"from_{kind}_to_{to}"
            _, schema_of = places.schema(to, place)
            target = places.name(to, place)
            told = moraine(binary, "export", "--to", target, *schema_of("to"), catalog.root, "--verify")
            assert "are the same on both sides" in told, told
            process = attach_there(places, to, place)
            same(everything(process, tables[1]), after, (kind, "exported to", to))
            assert rows(process, OWN) == times, (kind, to)
            play(process, TOMORROW)
            assert rows(process, COUNTED) == expected[2], (kind, to)
            process.close()
    finally:
        catalog.stop()


def with_kinds(directory, binary, cluster):
    """Every kind, against a lake that has never moved."""
    places = Places(directory, cluster)
    reference = attach(os.path.join(directory, "reference.ducklake"), f" (DATA_PATH '{directory}/reference/')")
    expected, tables = [], []
    for statements in (HISTORY, DAY):
        play(reference, statements)
        tables.append(tables_at(reference, snapshots_of(reference)))
        expected.append(everything(reference, tables[-1]))
    play(reference, TOMORROW)
    expected.append(rows(reference, COUNTED))
    reference.close()
    for kind in places.kinds:
        life(directory, binary, places, kind, expected, tables)
    return f"{', '.join(places.kinds)}, each to each; {len(tables[1])} snapshots"


def lakes_move_between_catalogs(directory, binary):
    """In from SQLite, a DuckDB file and, where the machine has one, PostgreSQL, and out to each of them."""
    if postgres.programs() is None:
        return with_kinds(directory, binary, None) + " (no PostgreSQL on this machine)"
    with postgres.Cluster(directory) as cluster:
        return with_kinds(directory, binary, cluster)


SCENARIOS = [lakes_move_between_catalogs]
