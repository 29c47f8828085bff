"""pyducklake: a Python library in the manner of pyiceberg; it drives DuckDB itself."""

from support import equal, rows


def pyducklake(lake):
    """Tables, appends, deletes, upserts, evolution, time travel and changes; DuckDB beside it sees the same."""
    import pyarrow
    from pyducklake import Catalog, IntegerType, Schema, StringType, optional, required

    catalog = Catalog("lake", "postgres:" + lake.keywords(), data_path=lake.data_path)
    schema = Schema.of(required("id", IntegerType()), optional("name", StringType()))
    table = catalog.create_table("users", schema)
    ids = lambda *values: pyarrow.array(values, pyarrow.int32())
    table.append(pyarrow.table({"id": ids(1, 2, 3), "name": ["ann", "bob", None]}))
    before = table.current_snapshot().snapshot_id
    equal(table.scan("id > 1").count(), 2)

    table.delete("id = 2")
    table.upsert(pyarrow.table({"id": ids(3, 4), "name": ["cay", "dan"]}), ["id"])
    with table.update_schema() as update:
        update.add_column("age", IntegerType())
    table = table.refresh()

    beside = lake.duckdb()
    query = "SELECT id, name, age FROM users ORDER BY id"
    expected = [(1, "ann", None), (3, "cay", None), (4, "dan", None)]
    equal(rows(beside, query), expected)
    equal(sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist()), expected)
    equal(table.scan(snapshot_id=before).count(), 3)
    equal(rows(beside, f"SELECT count(*) FROM users AT (VERSION => {before})"), [(3,)])
    equal([snapshot.snapshot_id for snapshot in table.snapshots()], list(range(len(table.snapshots()))))

    beside.execute("INSERT INTO users VALUES (5, 'eve', 44)")
    beside.execute("CREATE SCHEMA other; CREATE TABLE other.t AS SELECT 1 AS a")
    equal(table.scan("age = 44").to_arrow().to_pylist(), [{"id": 5, "name": "eve", "age": 44}])
    equal(sorted(catalog.list_namespaces()), ["main", "other"])
    equal(catalog.list_tables("other"), [("other", "t")])
    changes = rows(beside, f"SELECT count(*) FROM ducklake_table_changes('lake', 'main', 'users', 0, {before})")
    equal(table.table_changes(0, before).num_rows, changes[0][0])
    catalog.close()


SESSIONS = [pyducklake]
