"""The library's verbs beside DuckDB: after the same changes all tables of the catalog hold the same rows, and DuckDB goes on.

Each step is a statement of DuckDB and the verbs that do the same. DuckDB plays its statements on a lake of its own; the
verbs are played on another lake by `verb_player`, an example of the workspace's tests. Files are written by DuckDB alone:
the verbs register what DuckDB's catalog says of them. Times and UUIDs are left out of the comparison, nothing else.
"""

import json
import os
import subprocess

from harness.catalogs import Moraine
from harness.client import Process
from scenarios.crashes import STATEMENT_SECONDS_MAX, rows

TABLES = (
    "column", "column_mapping", "column_tag", "data_file", "delete_file", "file_column_stats", "file_partition_value",
    "file_variant_stats", "files_scheduled_for_deletion", "inlined_data_tables", "macro", "macro_impl",
    "macro_parameters", "metadata", "name_mapping", "partition_column", "partition_info", "schema", "schema_versions",
    "snapshot", "snapshot_changes", "sort_expression", "sort_info", "table", "table_column_stats", "table_stats", "tag",
    "view",
)
# A schema or table with an odd name has a folder named after its UUID.
COLUMNS = {
    "schema": "* EXCLUDE (schema_uuid) REPLACE (replace(path, schema_uuid::VARCHAR, 'UUID') AS path)",
    "table": "* EXCLUDE (table_uuid) REPLACE (replace(path, table_uuid::VARCHAR, 'UUID') AS path)",
    "view": "* EXCLUDE (view_uuid)",
    "snapshot": "* EXCLUDE (snapshot_time)",
    "files_scheduled_for_deletion": "* EXCLUDE (schedule_start)",
}
# What was installed differs; what lake it is does not.
METADATA = "key <> 'created_by'"
PLAYER_SECONDS_MAX = 300


class Catalog:
    """A lake on a moraine of its own, a DuckDB that has it attached, and that sees the catalog's tables as such."""

    def __init__(self, directory, binary, data):
        os.makedirs(directory, exist_ok=True)
        self.server = Moraine(directory, binary, database="lake")
        self.data = data
        self.process = None

    def open(self):
        """Starts the server and attaches."""
        self.server.start()
        self.process = Process(STATEMENT_SECONDS_MAX)
        connection = self.server.connection()
        self.must(f"ATTACH 'ducklake:{connection}' AS lake (DATA_PATH '{self.data}')")
        self.must(f"ATTACH '{connection.removeprefix('postgres:')}' AS catalog (TYPE postgres, READ_ONLY)")
        self.must("USE lake")
        return self

    def must(self, sql):
        """Runs a statement that has to succeed."""
        answer = self.process.run(sql)
        assert answer["ok"], (sql, answer)
        return answer

    def table(self, name):
        """All rows of a table of the catalog, as dictionaries."""
        self.must("CALL pg_clear_cache()")
        answer = self.must(f"SELECT to_json(t)::VARCHAR FROM catalog.public.ducklake_{name} t")
        return [json.loads(row) for (row,) in eval(answer["rows"])]  # the repr of a list of tuples of strings

    def dump(self):
        """What is to be compared, table by table."""
        self.must("CALL pg_clear_cache()")
        found = {}
        for table in TABLES:
            columns = COLUMNS.get(table, "*")
            where = f"WHERE {METADATA}" if table == "metadata" else ""
            found[table] = rows(
                self.process, f"SELECT {columns} FROM catalog.public.ducklake_{table} {where} ORDER BY ALL"
            )
        for row in self.table("inlined_data_tables"):
            name = row["table_name"]
            found[name] = rows(self.process, f"SELECT * FROM catalog.public.{name} ORDER BY ALL")
        return found

    def close(self):
        """Ends DuckDB, then the server."""
        if self.process:
            self.process.close()
        self.server.stop()


class Player:
    """The program that plays verbs on the store of a lake."""

    def __init__(self, binary, store):
        program = os.path.join(os.path.dirname(binary), "examples", "verb_player")
        assert os.path.exists(program), f"{program} is missing: cargo build --workspace --example verb_player"
        os.makedirs(store, exist_ok=True)
        self.child = subprocess.Popen([program, store], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def play(self, verbs):
        """Plays the verbs of one transaction; the answer."""
        self.child.stdin.write(json.dumps(verbs) + "\n")
        self.child.stdin.flush()
        line = self.child.stdout.readline()
        assert line, f"verb_player ended with {self.child.wait()}"
        return json.loads(line)

    def end(self):
        """Ends a player that has not been closed."""
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()

    def close(self):
        """Ends the player in good order."""
        self.child.stdin.close()
        self.child.stdout.read()
        code = self.child.wait(PLAYER_SECONDS_MAX)
        self.child.stdout.close()
        assert code == 0, code


def newest(catalog):
    """The id of the newest snapshot."""
    return max(row["snapshot_id"] for row in catalog.table("snapshot"))


def new_files(catalog, snapshot=None):
    """The data files that the newest snapshot has registered, as the verbs take them."""
    files = catalog.table("data_file")
    snapshot = newest(catalog) if snapshot is None else snapshot
    known = catalog.known_files if hasattr(catalog, "known_files") else set()
    found = [file for file in files if file["data_file_id"] not in known]
    catalog.known_files = {file["data_file_id"] for file in files}
    stats = catalog.table("file_column_stats")
    variants = catalog.table("file_variant_stats")
    places = catalog.table("file_partition_value")
    for file in sorted(found, key=lambda file: file["data_file_id"]):
        of_file = lambda rows, file=file: [row for row in rows if row["data_file_id"] == file["data_file_id"]]
        place = sorted(of_file(places), key=lambda row: row["partition_key_index"])
        file["partition_values"] = [row["partition_value"] for row in place]
        file["column_stats"] = of_file(stats)
        for column in file["column_stats"]:
            column["variant_fields"] = [
                field for field in of_file(variants) if field["column_id"] == column["column_id"]
            ]
    return sorted(found, key=lambda file: file["data_file_id"])


def new_delete_files(catalog):
    """The delete files that are new since this was asked last; those of the present snapshot begin there by themselves."""
    files = catalog.table("delete_file")
    known = getattr(catalog, "known_delete_files", {})
    catalog.known_delete_files = {file["delete_file_id"]: file["data_file_id"] for file in files}
    found = [file for file in files if file["delete_file_id"] not in known]
    snapshot = newest(catalog)
    for file in found:
        earlier = [before for before, data_file in known.items() if data_file == file["data_file_id"]]
        file["replaces"] = max(earlier, default=None)
        if file["begin_snapshot"] == snapshot:
            del file["begin_snapshot"]
    return sorted(found, key=lambda file: file["delete_file_id"])


def verb(called, /, **arguments):
    """A verb with its arguments."""
    return {"verb": called, **arguments}


def column(called, column_type, /, **more):
    """A column definition."""
    return {"name": called, "type": column_type, **more}


ORDERS = [
    column("id", "int32", not_null=True),
    column("note", "varchar", default={"literal": "none"}),
    column("spot", {"struct": [["x", "int32"], ["y", {"list": "varchar"}]]}),
    column("m", {"map": ["varchar", "decimal(10,2)"]}),
]


def added(table="t", **more):
    """The verb that registers what an INSERT has just written."""
    return lambda catalog: [verb("add_data_files", table=table, files=new_files(catalog), **more)]


def gone_files(catalog):
    """The data files that were there when this or `new_files` was asked last, and are live no more."""
    live = {file["data_file_id"] for file in catalog.table("data_file") if file["end_snapshot"] is None}
    gone = sorted(catalog.live_files - live) if hasattr(catalog, "live_files") else []
    catalog.live_files = live
    return gone


def appended(catalog):
    """The verb that registers what an INSERT has just written, noting which files are live."""
    gone_files(catalog)
    return [verb("add_data_files", table="t", files=new_files(catalog))]


def flushed(catalog):
    """The verb that registers what a flush has just written: one file, with all rows that there were."""
    (file,) = new_files(catalog)
    deletes = new_delete_files(catalog)
    file["delete_file"] = deletes[0] if deletes else None
    file["row_ids"] = list(range(file["record_count"]))
    gone_files(catalog)
    return [verb("flush_inlined", table="t", schema_version=1, until=newest(catalog) - 1, files=[file])]


def merged(catalog):
    """The verb that registers what a merge has just written: one file in the place of those that have gone."""
    sources = gone_files(catalog)
    (file,) = new_files(catalog)
    return [verb("merge_adjacent_files", table="t", sources=sources, file=file)]


def rewritten(catalog):
    """The verbs that register what a rewrite has just written: a file in the place of each that has gone."""
    sources, files = gone_files(catalog), new_files(catalog)
    assert len(files) == 1, files
    return [verb("rewrite_data_files", table="t", sources=sources, file=files[0], row_id_start=files[0]["row_id_start"])]


def deleted(table="t"):
    """The verb that registers what a DELETE has just written."""
    return lambda catalog: [verb("add_delete_files", table=table, files=new_delete_files(catalog))]


DEFINITIONS = [
    ("CREATE SCHEMA s", [verb("create_schema", name="s")]),
    ("CREATE SCHEMA \"odd name\"", [verb("create_schema", name="odd name")]),
    (
        "CREATE TABLE s.orders(id INT NOT NULL, note VARCHAR DEFAULT 'none', spot STRUCT(x INT, y VARCHAR[]), m MAP(VARCHAR, DECIMAL(10,2)))",
        [verb("create_table", schema="s", name="orders", columns=ORDERS)],
    ),
    ("ALTER TABLE s.orders ADD COLUMN price DOUBLE DEFAULT 1.5",
     [verb("add_column", schema="s", table="orders", column=column("price", "float64", default={"literal": "1.5"}))]),
    ("ALTER TABLE s.orders RENAME COLUMN note TO remark",
     [verb("rename_column", schema="s", table="orders", column="note", to="remark")]),
    ("ALTER TABLE s.orders RENAME COLUMN spot TO place",
     [verb("rename_column", schema="s", table="orders", column="spot", to="place")]),
    ("ALTER TABLE s.orders ADD COLUMN place.z BIGINT",
     [verb("add_field", schema="s", table="orders", parent=["place"], column=column("z", "int64"))]),
    ("ALTER TABLE s.orders ADD COLUMN place.w STRUCT(a INT, b INT)",
     [verb("add_field", schema="s", table="orders", parent=["place"],
           column=column("w", {"struct": [["a", "int32"], ["b", "int32"]]}))]),
    ("ALTER TABLE s.orders RENAME COLUMN place.x TO xx",
     [verb("rename_column", schema="s", table="orders", column=["place", "x"], to="xx")]),
    ("ALTER TABLE s.orders DROP COLUMN place.w",
     [verb("drop_column", schema="s", table="orders", column=["place", "w"])]),
    ("ALTER TABLE s.orders ALTER id SET DATA TYPE BIGINT",
     [verb("set_column_type", schema="s", table="orders", column="id", type="int64")]),
    ("ALTER TABLE s.orders ALTER place SET DATA TYPE STRUCT(xx BIGINT, y VARCHAR[], z BIGINT, v DATE)",
     [verb("set_column_type", schema="s", table="orders", column="place",
           type={"struct": [["xx", "int64"], ["y", {"list": "varchar"}], ["z", "int64"], ["v", "date"]]})]),
    ("ALTER TABLE s.orders ALTER remark SET DEFAULT 'some'",
     [verb("set_column_default", schema="s", table="orders", column="remark", default={"literal": "some"})]),
    ("ALTER TABLE s.orders ALTER remark DROP DEFAULT",
     [verb("set_column_default", schema="s", table="orders", column="remark")]),
    ("ALTER TABLE s.orders ALTER id DROP NOT NULL",
     [verb("drop_not_null", schema="s", table="orders", column="id")]),
    ("ALTER TABLE s.orders SET PARTITIONED BY (remark, bucket(4, id))",
     [verb("set_partition", schema="s", table="orders", fields=[
         {"column": "remark"}, {"column": "id", "transform": "bucket", "count": 4}])]),
    ("ALTER TABLE s.orders RESET PARTITIONED BY", [verb("reset_partition", schema="s", table="orders")]),
    ("ALTER TABLE s.orders SET SORTED BY (remark DESC, id ASC NULLS FIRST)",
     [verb("set_sort", schema="s", table="orders", expressions=[
         {"expression": "remark", "descending": True}, {"expression": "id", "nulls_first": True}])]),
    ("ALTER TABLE s.orders RENAME COLUMN remark TO words",
     [verb("rename_column", schema="s", table="orders", column="remark", to="words")]),
    ("ALTER TABLE s.orders RENAME COLUMN price TO cost",
     [verb("rename_column", schema="s", table="orders", column="price", to="cost")]),
    ("ALTER TABLE s.orders RESET SORTED BY", [verb("reset_sort", schema="s", table="orders")]),
    ("ALTER TABLE s.orders DROP COLUMN m", [verb("drop_column", schema="s", table="orders", column="m")]),
    ("COMMENT ON TABLE s.orders IS 'a comment'", [verb("set_comment", schema="s", table="orders", comment="a comment")]),
    ("COMMENT ON TABLE s.orders IS 'another'", [verb("set_comment", schema="s", table="orders", comment="another")]),
    ("COMMENT ON TABLE s.orders IS NULL", [verb("set_comment", schema="s", table="orders")]),
    ("COMMENT ON COLUMN s.orders.id IS 'the id'",
     [verb("set_comment", schema="s", table="orders", column="id", comment="the id")]),
    ("ALTER TABLE s.orders RENAME TO requests", [verb("rename_table", schema="s", table="orders", to="requests")]),
    ("CREATE VIEW s.v AS SELECT 1 AS one", [verb("create_view", schema="s", name="v", sql="SELECT 1 AS one")]),
    ("CREATE VIEW s.w(a, \"b c\") AS SELECT 1, 2",
     [verb("create_view", schema="s", name="w", sql="SELECT 1, 2", aliases=["a", "b c"])]),
    ("COMMENT ON VIEW s.v IS 'a view'", [verb("set_comment", schema="s", view="v", comment="a view")]),
    ("ALTER VIEW s.v RENAME TO u", [verb("rename_view", schema="s", name="v", to="u")]),
    ("DROP VIEW s.w", [verb("drop_view", schema="s", name="w")]),
    ("CREATE MACRO s.plus(a, b := 5) AS a + b",
     [verb("create_macro", schema="s", name="plus", implementations=[
         {"sql": "(a + b)", "parameters": [{"name": "a"}, {"name": "b", "default": "5", "default_type": "int32"}]}])]),
    ("CREATE MACRO s.series(n) AS TABLE SELECT range AS i FROM range(n)",
     [verb("create_macro", schema="s", name="series", kind="table", implementations=[
         {"sql": 'SELECT "range" AS i FROM "range"(n)', "parameters": [{"name": "n"}]}])]),
    ("CREATE MACRO s.many(a) AS a, (a, b) AS a * b",
     [verb("create_macro", schema="s", name="many", implementations=[
         {"sql": "a", "parameters": [{"name": "a"}]},
         {"sql": "(a * b)", "parameters": [{"name": "a"}, {"name": "b"}]}])]),
    ("DROP MACRO s.plus", [verb("drop_macro", schema="s", name="plus")]),
    ("DROP MACRO TABLE s.series", [verb("drop_macro", schema="s", name="series", kind="table")]),
    ("DROP TABLE s.requests", [verb("drop_table", schema="s", table="requests")]),
    ("CREATE TABLE s.other(a INT)",
     [verb("create_table", schema="s", name="other", columns=[column("a", "int32")])]),
    ("DROP SCHEMA \"odd name\"", [verb("drop_schema", name="odd name")]),
    ("DROP SCHEMA s CASCADE", [verb("drop_schema_cascade", name="s")]),
]

T = [
    column("id", "int32"),
    column("name", "varchar"),
    column("price", "decimal(10,2)"),
    column("day", "date"),
    column("f", "float64"),
]

ROWS = [
    ("CREATE TABLE t(id INT, name VARCHAR, price DECIMAL(10,2), day DATE, f DOUBLE)",
     [verb("create_table", name="t", columns=T)]),
    ("CALL lake.set_option('target_file_size', '1MB')",
     [verb("set_option", name="target_file_size", value="1000000")]),
    ("CALL lake.set_option('parquet_compression', 'zstd', table_name => 't')",
     [verb("set_option", name="parquet_compression", value="zstd", table_id=1)]),
    ("INSERT INTO t VALUES (1, 'a', 1.5, '2024-01-01', 0.5), (2, 'b', -2.25, '2023-12-31', 1e20), (3, NULL, NULL, NULL, NULL)",
     [verb("insert_inlined", table="t", rows=[
         [1, "a", 150, 19723, 0.5], [2, "b", -225, 19722, 1e20], [3, None, None, None, None]])]),
    ("INSERT INTO t SELECT i, 'n' || i, i, DATE '2024-01-01' + i::INT, i / 4 FROM range(100, 200) r(i)", added()),
    ("INSERT INTO t VALUES (4, 'd', 4, '2025-06-01', -1)",
     [verb("insert_inlined", table="t", rows=[[4, "d", 400, 20240, -1.0]])]),
    ("DELETE FROM t WHERE id = 2", [verb("delete_inlined", table="t", row_ids=[1])]),
    ("UPDATE t SET name = 'aa' WHERE id = 1", [
        verb("update_inlined", table="t", row_ids=[0], rows=[[1, "aa", 150, 19723, 0.5]])]),
    ("DELETE FROM t WHERE id BETWEEN 110 AND 150", deleted()),
    ("DELETE FROM t WHERE id BETWEEN 160 AND 180", deleted()),
    ("DELETE FROM t WHERE id = 190",
     lambda catalog: [verb("delete_from_file_inlined", table="t", data_file_id=1, positions=[90])]),
    ("ALTER TABLE t ADD COLUMN late BIGINT DEFAULT 7",
     [verb("add_column", table="t", column=column("late", "int64", default={"literal": "7"}))]),
    ("INSERT INTO t SELECT i, 'x', NULL, NULL, i, i FROM range(300, 320) r(i)", added()),
    ("INSERT INTO t SELECT i, 'y', NULL, NULL, 'nan', i FROM range(320, 340) r(i)", added()),
    ("ALTER TABLE t SET PARTITIONED BY (name)", [verb("set_partition", table="t", fields=[{"column": "name"}])]),
    ("INSERT INTO t SELECT i, CASE WHEN i % 2 = 0 THEN 'even' END, 1, NULL, i, i FROM range(400, 430) r(i)", added()),
    ("BEGIN; CALL lake.set_commit_message('me', 'why', extra_info => '{}'); CREATE TABLE u(a INT); COMMIT",
     [verb("set_commit_info", author="me", message="why", extra_info="{}"),
      verb("create_table", name="u", columns=[column("a", "int32")])]),
    ("BEGIN; CREATE TABLE w(a INT); ALTER TABLE w ADD COLUMN b INT; INSERT INTO w VALUES (1, 2); ALTER TABLE w RENAME TO ww; COMMIT",
     [verb("create_table", name="w", columns=[column("a", "int32")]),
      verb("add_column", table="w", column=column("b", "int32")),
      verb("insert_inlined", table="w", rows=[[1, 2]]),
      verb("rename_table", table="w", to="ww")]),
    ("CREATE TABLE shapes(p GEOMETRY)", [verb("create_table", name="shapes", columns=[column("p", "geometry")])]),
    ("INSERT INTO shapes SELECT ('POINT(' || i || ' 2)')::GEOMETRY FROM range(5, 10) r(i)", added("shapes")),
    ("INSERT INTO shapes SELECT ('POINT(' || i || ' 7)')::GEOMETRY FROM range(8) r(i)", added("shapes")),
    ("CREATE TABLE things(v VARIANT)", [verb("create_table", name="things", columns=[column("v", "variant")])]),
    ("INSERT INTO things SELECT {'a': i, 'b': 'x' || i}::VARIANT FROM range(30) r(i)", added("things")),
    ("DELETE FROM t WHERE id BETWEEN 300 AND 319",
     lambda catalog: [verb("drop_data_files", table="t", ids=[
         file["data_file_id"] for file in catalog.table("data_file") if file["end_snapshot"] == newest(catalog)])]),
]


MAINTENANCE = [
    ("CREATE TABLE t(id INT, name VARCHAR)", [verb("create_table", name="t", columns=T[:2])]),
    ("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)",
     [verb("insert_inlined", table="t", rows=[[1, "a"], [2, "b"], [3, None]])]),
    ("INSERT INTO t VALUES (4, 'd'), (5, 'e')", [verb("insert_inlined", table="t", rows=[[4, "d"], [5, "e"]])]),
    ("DELETE FROM t WHERE id = 2", [verb("delete_inlined", table="t", row_ids=[1])]),
    ("CALL ducklake_flush_inlined_data('lake')", flushed),
    ("INSERT INTO t SELECT i, 'n' || i FROM range(100, 200) r(i)", appended),
    ("INSERT INTO t SELECT i, 'm' || i FROM range(200, 300) r(i)", appended),
    ("CALL ducklake_merge_adjacent_files('lake')", merged),
    ("DELETE FROM t WHERE id BETWEEN 120 AND 280", deleted()),
    ("CALL ducklake_rewrite_data_files('lake', 't', delete_threshold => 0.5)", rewritten),
    ("CALL ducklake_expire_snapshots('lake', versions => [2, 3, 6])", [verb("expire_snapshots", ids=[2, 3, 6])]),
    ("CREATE VIEW v AS SELECT 1 AS one", [verb("create_view", name="v", sql="SELECT 1 AS one")]),
    ("DROP VIEW v", [verb("drop_view", name="v")]),
    ("CREATE TABLE u(a INT)", [verb("create_table", name="u", columns=[column("a", "int32")])]),
    ("COMMENT ON TABLE u IS 'short-lived'", [verb("set_comment", table="u", comment="short-lived")]),
    ("INSERT INTO u SELECT range FROM range(50)",
     lambda catalog: [verb("add_data_files", table="u", files=new_files(catalog))]),
    ("DROP TABLE u", [verb("drop_table", table="u")]),
    ("CALL ducklake_expire_snapshots('lake', versions => [1, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15])",
     [verb("expire_snapshots", ids=[1, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15])]),
]


def play(directory, binary, steps, afterwards):
    """Plays the steps both ways and compares; then DuckDB plays `afterwards` on both lakes."""
    data = os.path.join(directory, "data/")
    ours = Catalog(os.path.join(directory, "duckdb"), binary, data)
    theirs = Catalog(os.path.join(directory, "verbs"), binary, data)
    player = Player(binary, os.path.join(directory, "verbs", "lake", "catalog", "lake", "public"))
    try:
        ours.open()
        created = player.play([verb("create_lake", data_path=data)])
        assert created == {"snapshot": 0}, created
        for sql, verbs in steps:
            for statement in sql.split("; "):
                ours.must(statement)
            verbs = verbs(ours) if callable(verbs) else verbs
            answer = player.play(verbs)
            assert "error" not in answer, (sql, verbs, answer)
            snapshot = answer["snapshot"]
            assert snapshot in (None, newest(ours)), (sql, answer, newest(ours))
        player.close()
        theirs.open()
        compare(ours, theirs, "the steps")
        looks_alike(ours, theirs)
        for statement in afterwards:
            for catalog in (ours, theirs):
                catalog.must(statement)
        looks_alike(ours, theirs)
    finally:
        player.end()
        theirs.close()
        ours.close()


def compare(ours, theirs, what):
    """Whether all tables of both catalogs hold the same rows."""
    one, other = ours.dump(), theirs.dump()
    different = [name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name)]
    shown = "\n".join(f"{name}:\n  DuckDB {one.get(name)}\n  verbs  {other.get(name)}" for name in different)
    assert not different, f"after {what}, {', '.join(different)} differ:\n{shown}"


def looks_alike(ours, theirs):
    """Whether DuckDB sees the same in both lakes: snapshots, tables and rows, now and at every snapshot."""
    questions = ["SELECT * EXCLUDE (snapshot_time) FROM ducklake_snapshots('lake')", "SELECT * EXCLUDE (table_uuid) FROM ducklake_table_info('lake') ORDER BY ALL"]
    for snapshot in range(1, newest(ours) + 1):
        for table in ("t", "u", "ww"):
            questions.append(f"SELECT rowid, * FROM lake.{table} AT (VERSION => {snapshot}) ORDER BY ALL")
    for question in questions:
        one, other = ours.process.run(question), theirs.process.run(question)
        if not one["ok"]:
            assert not other["ok"], (question, one, other)
            continue
        assert one == other, (question, one, other)


def definitions_are_as_duckdb_leaves_them(directory, binary):
    """Schemas, tables, columns, views, macros, layouts and comments."""
    play(directory, binary, DEFINITIONS, ["CREATE TABLE t(a INT)", "INSERT INTO t VALUES (1)", "ALTER TABLE t ADD COLUMN b INT"])


def rows_are_as_duckdb_leaves_them(directory, binary):
    """Files, delete files, inlined rows, statistics, options, partitions."""
    play(directory, binary, ROWS, [
        "UPDATE t SET price = 9 WHERE id < 105",
        "INSERT INTO t VALUES (9, 'z', 1, NULL, 1, 1)",
        "CALL ducklake_flush_inlined_data('lake')",
        "CALL ducklake_merge_adjacent_files('lake')",
        "CALL ducklake_rewrite_data_files('lake')",
        "ALTER TABLE t DROP COLUMN f",
        "DROP TABLE u",
    ])


def maintenance_is_as_duckdb_leaves_it(directory, binary):
    """Flushes, merges, rewrites and expiry, which the verbs register and DuckDB writes."""
    play(directory, binary, MAINTENANCE, [
        "SELECT count(*) FROM ducklake_cleanup_old_files('lake', dry_run => true, cleanup_all => true)",
        "INSERT INTO t VALUES (9, 'z')",
        "DELETE FROM t WHERE id < 110",
        "CALL ducklake_flush_inlined_data('lake')",
    ])


def a_lake_that_the_example_made(directory, binary):
    """The example of the library makes a lake; DuckDB attaches it, reads it at both snapshots, and changes it."""
    program = os.path.join(os.path.dirname(binary), "examples", "lake_of_files")
    assert os.path.exists(program), f"{program} is missing: cargo build --workspace --example lake_of_files"
    root = os.path.join(directory, "lake")
    done = subprocess.run([program, root], capture_output=True, text=True, timeout=PLAYER_SECONDS_MAX)
    assert done.returncode == 0, done.stderr
    assert "refused: there is a column CITY already" in done.stdout, done.stdout
    catalog = Catalog(directory, binary, os.path.join(os.path.realpath(root), "data/lake/public/")).open()
    try:
        found = rows(catalog.process, "SELECT * FROM people_0 ORDER BY id")
        assert found == "[(1, 'Ada', '?'), (2, None, '?'), (3, 'Grace', '?')]", found
        found = rows(catalog.process, "SELECT * FROM people_0 AT (VERSION => 1) ORDER BY id")
        assert found == "[(1, 'Ada'), (2, None), (3, 'Grace')]", found
        catalog.must("INSERT INTO people_0 SELECT i, 'n' || i, 'c' FROM range(4, 50) r(i)")
        catalog.must("UPDATE people_0 SET name = 'Alan' WHERE id = 2")
        catalog.must("CALL ducklake_flush_inlined_data('lake')")
        assert rows(catalog.process, "SELECT count(*), min(name) FROM people_0") == "[(49, 'Ada')]"
        authors = rows(catalog.process, "SELECT author FROM ducklake_snapshots('lake') WHERE snapshot_id = 1")
        assert authors == "[('lake_of_files',)]", authors
    finally:
        catalog.close()


SCENARIOS = [
    a_lake_that_the_example_made,
    definitions_are_as_duckdb_leaves_them,
    rows_are_as_duckdb_leaves_them,
    maintenance_is_as_duckdb_leaves_it,
]
