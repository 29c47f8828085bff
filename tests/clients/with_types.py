"""Inlined rows of every type of DuckLake, as drivers of Postgres are given them: the same values of the same types that
PostgreSQL gives of the same lake, in text and in binary, and found again by their values."""

import asyncio
import os
import sys
import tempfile

from support import ROOT, Absent, equal

sys.path.append(os.path.join(ROOT, "tests", "duckdb"))

from harness import postgres  # noqa: E402
from harness.client import connect  # noqa: E402
from sessions import types  # noqa: E402

NESTED = {
    "INTEGER[]": ["[1, NULL, 3]", "[]"],
    "VARCHAR[]": ["['a', 'it''s', NULL, 'x,y']"],
    "STRUCT(a INTEGER, b VARCHAR)": ["{'a': 1, 'b': 'x'}", "{'a': NULL, 'b': ''}"],
    "MAP(VARCHAR, INTEGER)": ["MAP {'k': 1, 'l': NULL}"],
    "STRUCT(a INTEGER[], b STRUCT(c DATE))[]": ["[{'a': [1], 'b': {'c': DATE '2024-01-02'}}]"],
}
OWN = "row_id, begin_snapshot, end_snapshot"
"""The columns that every table of inlined rows has."""


def fill(duckdb):
    """A table for each type, and a row for each value."""
    for number, family in enumerate([*types.FAMILIES.values(), types.INLINED_ONLY, NESTED]):
        for statement in types.writes(family):
            # Tables are named after their types, which several families have.
            duckdb.execute(statement.replace(" t_", f" t{number}_", 1))
    tables = duckdb.execute(
        "SELECT table_name FROM __ducklake_metadata_lake.ducklake_inlined_data_tables ORDER BY table_id"
    ).fetchall()
    return [name for (name,) in tables]


def shown(found):
    """Rows so that NaN equals NaN, and 0.0 is not -0.0."""
    return [repr(tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)) for row in found]


def question(table, condition=""):
    """All rows of a table of inlined rows that meet a condition."""
    return f"SELECT {OWN}, id, v FROM {table} {condition} ORDER BY row_id"


def by_psycopg(keywords, tables, binary):
    """What psycopg is given: types and values, and how many rows have each value."""
    import psycopg

    seen = []
    with psycopg.connect(keywords) as connection:
        # Dates that Python does not have (of BC, or beyond all years) stay text.
        for table in tables:
            cursor = connection.execute(f"SELECT {OWN}, id, v::text FROM {table} ORDER BY row_id", binary=binary)
            seen.append((table, shown(cursor.fetchall())))
            cursor = connection.execute(question(table), binary=binary)
            columns = [(each.name, each.type_code, each.precision, each.scale) for each in cursor.description]
            try:
                found = cursor.fetchall()
            except psycopg.DataError as error:
                seen.append((table, columns, str(error)))
                continue
            seen.append((table, columns, shown(found)))
            for value in [row[-1] for row in found if row[-1] is not None]:
                again = connection.execute(question(table, "WHERE v = %s"), [value], binary=binary)
                seen.append((table, value, shown(again.fetchall())))
    return [repr(each) for each in seen]


async def fetched_by_asyncpg(url, tables):
    """The same for asyncpg, which knows binary only."""
    import asyncpg

    seen = []
    connection = await asyncpg.connect(url)
    for table in tables:
        statement = await connection.prepare(question(table))
        columns = [(each.name, each.type.name) for each in statement.get_attributes()]
        found = [tuple(row) for row in await statement.fetch()]
        seen.append((table, columns, shown(found)))
        by_value = await connection.prepare(question(table, "WHERE v = $1"))
        # PostgreSQL compares VARCHAR as TEXT; to a client both are the same.
        taken = [each.name.replace("varchar", "text") for each in by_value.get_parameters()]
        for value in [row[-1] for row in found if row[-1] is not None]:
            again = [tuple(row) for row in await by_value.fetch(value)]
            seen.append((table, taken, value, shown(again)))
    await connection.close()
    return [repr(each) for each in seen]


def alike(got, expected):
    """Each line of what a driver saw is what it sees of PostgreSQL."""
    equal(len(got), len(expected))
    for one, other in zip(got, expected):
        equal(one, other)


def inlined_rows_of_every_type(lake):
    """psycopg in text and in binary, and asyncpg, on moraine and on PostgreSQL."""
    if postgres.programs() is None:
        raise Absent("PostgreSQL is not installed")
    # A place that PostgreSQL's own user can reach.
    with tempfile.TemporaryDirectory(prefix="moraine-postgres-") as place, postgres.Cluster(place) as cluster:
        data = os.path.join(lake.data_path, "beside") + os.sep
        os.makedirs(data)
        beside = connect()
        beside.execute(f"ATTACH 'ducklake:postgres:{cluster.connection()}' AS lake (DATA_PATH '{data}')")
        beside.execute("USE lake")
        tables = fill(beside)
        equal(fill(lake.duckdb()), tables)
        for binary in (False, True):
            expected = by_psycopg(cluster.connection(), tables, binary)
            alike(by_psycopg(lake.keywords(), tables, binary), expected)
        url = f"postgresql://postgres@127.0.0.1:{cluster.port}/postgres"
        expected = asyncio.run(fetched_by_asyncpg(url, tables))
        alike(asyncio.run(fetched_by_asyncpg(lake.url(), tables)), expected)


SESSIONS = [inlined_rows_of_every_type]
