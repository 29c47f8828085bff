"""Drivers of Postgres in Python: psycopg 3, psycopg2, asyncpg, pg8000, and SQLAlchemy's sessions. Each reads the lake's
tables by bound parameters, and writes an option or a tag that DuckDB reads back."""

import asyncio
import datetime
import decimal
import io
import uuid

from support import equal, rows

OPTION = "SELECT value FROM ducklake_options('lake') WHERE option_name = ?"


def filled(lake):
    """A DuckDB on the lake, in which there is a table with a comment and inlined rows of many types."""
    duckdb = lake.duckdb()
    duckdb.execute("CREATE TABLE t(i INTEGER, s SMALLINT, l BIGINT, f DOUBLE, d DECIMAL(10,2), b BOOLEAN, n VARCHAR)")
    duckdb.execute("INSERT INTO t VALUES (1, -2, 5000000000, 0.5, 12.34, true, 'a ''word'''), (NULL, NULL, NULL, NULL, NULL, NULL, NULL)")
    duckdb.execute("COMMENT ON TABLE t IS 'before'")
    return duckdb


def inlined(duckdb):
    """The name of the table of inlined rows, and the rows as DuckDB reads them."""
    found = rows(duckdb, "SELECT table_name FROM __ducklake_metadata_lake.ducklake_inlined_data_tables")
    return found[0][0], rows(duckdb, "SELECT * FROM t ORDER BY i NULLS LAST")


def has_option(lake, name, value):
    """DuckDB reads the option that a driver wrote."""
    equal(lake.duckdb().execute(OPTION, [name]).fetchall(), [(value,)])


def row_values(found):
    """A row of inlined values as DuckDB gives it: strings are kept as bytes."""
    values = [bytes(value).decode() if isinstance(value, (bytes, memoryview)) else value for value in found]
    return tuple(values)


def psycopg3_reads_and_writes(lake):
    """Text and binary results, server-side cursors, pipelines, COPY and savepoints."""
    import psycopg

    name, expected = inlined(filled(lake))
    query = f"SELECT i, s, l, f, d, b, n FROM {name} WHERE i >= %s OR i IS NULL ORDER BY i NULLS LAST"
    with psycopg.connect(lake.keywords()) as connection:
        for binary in (False, True):
            found = connection.execute(query, [0], binary=binary).fetchall()
            equal([row_values(each) for each in found], expected)
        found = connection.execute("SELECT table_name FROM ducklake_table WHERE table_id = ANY(%s)", [[1, 2]]).fetchall()
        equal(found, [("t",)])
        with connection.cursor(name="bit_by_bit") as cursor:
            cursor.execute("SELECT key FROM ducklake_metadata WHERE key > %s ORDER BY key", ["d"])
            equal([len(cursor.fetchmany(2)), len(cursor.fetchmany(2))], [2, 1])
        with connection.cursor(name="scrolls", scrollable=True) as cursor:
            cursor.execute("SELECT snapshot_id FROM ducklake_snapshot ORDER BY snapshot_id")
            equal(cursor.fetchone(), (0,))
            cursor.scroll(1)
            equal(cursor.fetchone(), (2,))
            cursor.scroll(0, mode="absolute")
            equal(cursor.fetchone(), (0,))
        connection.commit()
        with connection.pipeline():
            first = connection.execute("SELECT count(*) FROM ducklake_table WHERE table_name = %s", ["t"])
            second = connection.execute("SELECT max(snapshot_id) FROM ducklake_snapshot")
            equal([first.fetchone(), second.fetchone()], [(1,), (3,)])
        connection.commit()
        with connection.transaction():
            insert = "INSERT INTO ducklake_metadata (key, value) VALUES (%s, %s)"
            connection.execute(insert, ["target_file_size", "5MB"])
            try:
                with connection.transaction():
                    connection.execute(insert, ["never", "x"])
                    connection.execute("SELECT nothing")
            except psycopg.errors.UndefinedColumn as error:
                equal(error.diag.statement_position, "8")
        with connection.cursor() as cursor:
            with cursor.copy("COPY ducklake_metadata (key, value) FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(["varchar", "varchar"])
                copy.write_row(("parquet_compression", "zstd"))
            with cursor.copy("COPY (SELECT key FROM ducklake_metadata WHERE value = 'zstd') TO STDOUT") as copy:
                equal([bytes(each) for each in copy], [b"parquet_compression\n"])
    has_option(lake, "target_file_size", "5MB")
    has_option(lake, "parquet_compression", "zstd")
    equal(rows(lake.duckdb(), "SELECT count(*) FROM __ducklake_metadata_lake.ducklake_metadata WHERE key = 'never'"), [(0,)])


def psycopg2_reads_and_writes(lake):
    """Text only, a named cursor, COPY with CSV, savepoints."""
    import psycopg2

    name, expected = inlined(filled(lake))
    connection = psycopg2.connect(lake.keywords())
    with connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT i, s, l, f, d, b, n FROM {name} WHERE i = %s OR i IS NULL ORDER BY i NULLS LAST", [1])
        equal([row_values(each) for each in cursor.fetchall()], expected)
        cursor.execute("SELECT table_name FROM ducklake_table WHERE table_id = ANY(%s)", [[1, 2]])
        equal(cursor.fetchall(), [("t",)])
    with connection, connection.cursor("bit_by_bit") as cursor:
        cursor.itersize = 2
        cursor.execute("SELECT key FROM ducklake_metadata")
        assert len(list(cursor)) >= 4
    with connection, connection.cursor() as cursor:
        cursor.copy_expert("COPY ducklake_metadata (key, value) FROM STDIN (FORMAT csv)", io.StringIO('target_file_size,"6MB"\n'))
        cursor.execute("SAVEPOINT s")
        cursor.execute("DELETE FROM ducklake_metadata WHERE key = 'target_file_size'")
        cursor.execute("ROLLBACK TO SAVEPOINT s")
        out = io.StringIO()
        cursor.copy_expert("COPY (SELECT value FROM ducklake_metadata WHERE key = 'target_file_size') TO STDOUT CSV HEADER", out)
        equal(out.getvalue(), "value\n6MB\n")
    connection.close()
    has_option(lake, "target_file_size", "6MB")


SCALARS = {
    "bool": True,
    "int2": -32768,
    "int4": 7,
    "int8": 5000000000,
    "float4": 0.5,
    "float8": 0.1,
    "numeric": decimal.Decimal("-12.340"),
    "text": "it's",
    "varchar": "snöw",
    "bytea": b"\x00\xff",
    "uuid": uuid.UUID("11111111-2222-3333-4444-555555555555"),
    "date": datetime.date(2024, 2, 29),
    "time": datetime.time(12, 34, 56, 789),
    "timetz": datetime.time(12, 34, 56, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
    "timestamp": datetime.datetime(2024, 1, 2, 3, 4, 5, 678901),
    "timestamptz": datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc),
    "interval": datetime.timedelta(days=3, hours=4, microseconds=5),
    "json": '{"a": [1, null]}',
    "jsonb": '{"a": 1}',
}
"""A value of each type that goes to the server and comes back."""


async def values_by_asyncpg(connection):
    """Parameters and results of every scalar type, of NULL, and of arrays of each."""
    import asyncpg

    for kind, value in SCALARS.items():
        for sent in (value, None):
            equal((kind, await connection.fetchval(f"SELECT $1::{kind}", sent)), (kind, sent))
        if kind in ("json", "jsonb"):
            continue
        for sent in ([value, None, value], []):
            equal((kind, await connection.fetchval(f"SELECT $1::{kind}[]", sent)), (kind, sent))
        equal((kind, await connection.fetchval(f"SELECT count(*) FROM unnest($1::{kind}[])", [value, value])), (kind, 2))
    statement = await connection.prepare("SELECT table_id, table_name, $2::int4[] FROM ducklake_table WHERE table_id = $1")
    equal([each.name for each in statement.get_parameters()], ["int8", "int4[]"])
    equal([each.type.name for each in statement.get_attributes()], ["int8", "text", "int4[]"])
    equal(tuple(await statement.fetchrow(1, [1, 2])), (1, "t", [1, 2]))
    try:
        await connection.fetchval("SELECT $1::int4", "seven")
    except asyncpg.DataError:
        pass
    # What asyncpg asks about types that it does not know by itself.
    kinds = [20, 25, 1009, 1016, 3904, 2249]
    await connection._introspect_types(kinds, 10)


async def copies_by_asyncpg(connection):
    """Whole tables in and out."""
    out = io.BytesIO()
    keys = "SELECT key FROM ducklake_metadata WHERE key = $1"
    equal(await connection.copy_from_query(keys, "version", output=out, format="csv", header=True), "COPY 1")
    equal(out.getvalue(), b"key\nversion\n")
    out = io.BytesIO()
    await connection.copy_from_table("ducklake_table", columns=["table_id", "table_name"], output=out, format="binary")
    assert out.getvalue().startswith(b"PGCOPY\n"), out.getvalue()
    records = [("row_group_size", "1000")]
    equal(await connection.copy_records_to_table("ducklake_metadata", columns=["key", "value"], records=records), "COPY 1")
    source = io.BytesIO(b"hive_file_pattern,false\n")
    taken = await connection.copy_to_table("ducklake_metadata", columns=["key", "value"], source=source, format="csv")
    equal(taken, "COPY 1")


async def by_asyncpg(lake, name, expected):
    """asyncpg's session: everything in binary form."""
    import asyncpg

    connection = await asyncpg.connect(lake.url())
    found = await connection.fetch(f"SELECT i, s, l, f, d, b, n FROM {name} WHERE i = $1 OR i IS NULL ORDER BY i NULLS LAST", 1)
    equal([row_values(tuple(each)) for each in found], expected)
    equal(await connection.fetchval("SELECT table_name FROM ducklake_table WHERE table_uuid IS NOT NULL AND begin_snapshot = $1", 1), "t")
    equal(await connection.fetchval("SELECT count(*) FROM ducklake_metadata WHERE key = ANY($1::text[])", ["version", "nothing"]), 1)
    taken = await connection.fetchval("SELECT snapshot_time FROM ducklake_snapshot WHERE snapshot_id = 1")
    assert isinstance(taken, datetime.datetime) and taken.tzinfo, taken
    await values_by_asyncpg(connection)
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        seen = [each["key"] async for each in connection.cursor("SELECT key FROM ducklake_metadata ORDER BY key", prefetch=2)]
        equal(seen, sorted(seen))
        cursor = await connection.cursor("SELECT key FROM ducklake_metadata WHERE key > $1 ORDER BY key", "a")
        await cursor.forward(1)
        equal([each["key"] for each in await cursor.fetch(2)], seen[1:3])
    async with connection.transaction():
        insert = "INSERT INTO ducklake_metadata (key, value) VALUES ($1, $2)"
        await connection.executemany(insert, [("target_file_size", "8MB"), ("parquet_compression", "snappy")])
        try:
            async with connection.transaction():
                await connection.execute(insert, "never", "x")
                await connection.fetch("SELECT nothing")
        except asyncpg.UndefinedColumnError:
            pass
    equal(await connection.fetchval("SELECT count(*) FROM ducklake_metadata WHERE key = 'never'"), 0)
    await copies_by_asyncpg(connection)
    await connection.close()
    async with asyncpg.create_pool(lake.url(), min_size=2, max_size=2) as pool:
        counts = [pool.fetchval("SELECT count(*) FROM ducklake_table WHERE table_id >= $1", at) for at in range(4)]
        equal(await asyncio.gather(*counts), [1, 1, 0, 0])


def asyncpg_reads_and_writes(lake):
    """Binary parameters and results, cursors, nested transactions, binary COPY."""
    name, expected = inlined(filled(lake))
    asyncio.run(by_asyncpg(lake, name, expected))
    has_option(lake, "target_file_size", "8MB")
    has_option(lake, "parquet_compression", "snappy")
    has_option(lake, "row_group_size", "1000")
    has_option(lake, "hive_file_pattern", "false")


def pg8000_reads_and_writes(lake):
    """A driver that leaves all types to the server."""
    import pg8000.dbapi

    name, expected = inlined(filled(lake))
    connection = pg8000.dbapi.connect(user="moraine", host=lake.host, port=int(lake.port), database=lake.name)
    cursor = connection.cursor()
    cursor.execute(f"SELECT i, s, l, f, d, b, n FROM {name} WHERE i = %s OR i IS NULL ORDER BY i NULLS LAST", (1,))
    equal([row_values(each) for each in cursor.fetchall()], expected)
    cursor.execute("INSERT INTO ducklake_metadata (key, value) VALUES (%s, %s)", ("target_file_size", "9MB"))
    connection.commit()
    connection.close()
    has_option(lake, "target_file_size", "9MB")


def sqlalchemy_sessions(lake):
    """The ORM on psycopg: a mapped table, nested transactions, rows that are streamed, isolation levels."""
    import sqlalchemy
    from sqlalchemy import orm

    filled(lake)

    class Base(orm.DeclarativeBase):
        """What is mapped."""

    class Option(Base):
        """An option of the lake."""

        __tablename__ = "ducklake_metadata"
        key: orm.Mapped[str] = orm.mapped_column(primary_key=True)
        value: orm.Mapped[str]

    engine = sqlalchemy.create_engine(lake.url("postgresql+psycopg"))
    with orm.Session(engine) as session:
        session.add(Option(key="target_file_size", value="3MB"))
        session.flush()
        nested = session.begin_nested()
        session.add(Option(key="never", value="x"))
        session.flush()
        nested.rollback()
        session.get(Option, "target_file_size").value = "4MB"
        session.commit()
        equal(session.scalars(sqlalchemy.select(Option).where(Option.key == "never")).all(), [])
        streamed = session.scalars(sqlalchemy.select(Option).order_by(Option.key).execution_options(yield_per=2))
        assert "target_file_size" in [option.key for option in streamed]
    with engine.connect().execution_options(isolation_level="SERIALIZABLE") as connection:
        equal(connection.get_isolation_level(), "SERIALIZABLE")
        equal(connection.scalar(sqlalchemy.text("SELECT count(*) FROM ducklake_table WHERE table_name = :name"), {"name": "t"}), 1)
    engine.dispose()
    has_option(lake, "target_file_size", "4MB")


SESSIONS = [
    psycopg3_reads_and_writes,
    psycopg2_reads_and_writes,
    asyncpg_reads_and_writes,
    pg8000_reads_and_writes,
    sqlalchemy_sessions,
]
