"""ducklake-dataframe: Polars and Pandas without DuckDB; it speaks SQL to the catalog, through psycopg2."""

from support import equal, rows


def polars_reads(lake):
    """What DuckDB wrote: files, deleted rows, inlined rows, other versions."""
    import ducklake_polars
    import polars

    duckdb = lake.duckdb()
    duckdb.execute("CREATE TABLE t AS SELECT i::INTEGER AS id, 'n' || i AS name FROM range(1000) r(i)")
    duckdb.execute("INSERT INTO t VALUES (5000, 'inlined')")
    before = rows(duckdb, "SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")[0][0]
    duckdb.execute("DELETE FROM t WHERE id % 7 = 0")
    everything = rows(duckdb, "FROM t ORDER BY id")
    equal(ducklake_polars.read_ducklake(lake.keywords(), "t").sort("id").rows(), everything)
    some = ducklake_polars.scan_ducklake(lake.keywords(), "t").filter(polars.col("id") > 990).collect()
    equal(some.sort("id").rows(), [row for row in everything if row[0] > 990])
    equal(ducklake_polars.read_ducklake(lake.keywords(), "t", snapshot_version=before).height, 1001)


def polars_writes(lake):
    """Tables, appends, deletes, updates and columns that DuckDB then reads."""
    import ducklake_polars
    import polars

    duckdb = lake.duckdb()
    duckdb.execute("CREATE TABLE t AS SELECT i::INTEGER AS id, 'n' || i AS name FROM range(100) r(i)")
    where = lake.keywords()
    more = polars.DataFrame({"id": polars.Series([1000], dtype=polars.Int32), "name": ["new"]})
    ducklake_polars.write_ducklake(more, where, "t", mode="append")
    equal(ducklake_polars.delete_ducklake(where, "t", polars.col("id") == 7), 1)
    ducklake_polars.update_ducklake(where, "t", updates={"name": "changed"}, predicate=polars.col("id") == 8)
    ducklake_polars.write_ducklake(polars.DataFrame({"a": [1.5, None]}), where, "u", mode="error")
    ducklake_polars.alter_ducklake_add_column(where, "t", "extra", polars.Int32)
    equal(rows(duckdb, "SELECT count(*), max(id) FROM t"), [(100, 1000)])
    equal(rows(duckdb, "SELECT name, extra FROM t WHERE id IN (7, 8, 1000) ORDER BY id"), [("changed", None), ("new", None)])
    equal(rows(duckdb, "FROM u"), [(1.5,), (None,)])
    equal(rows(duckdb, "FROM t ORDER BY id"), ducklake_polars.read_ducklake(where, "t").sort("id").rows())


def pandas_reads(lake):
    """The same through Pandas."""
    import ducklake_pandas

    duckdb = lake.duckdb()
    duckdb.execute("CREATE TABLE t AS SELECT i::INTEGER AS id, 'n' || i AS name FROM range(1000) r(i)")
    frame = ducklake_pandas.read_ducklake(lake.keywords(), "t").sort_values("id")
    equal([tuple(row) for row in frame.itertuples(index=False)], rows(duckdb, "FROM t ORDER BY id"))


SESSIONS = [polars_reads, polars_writes, pandas_reads]
