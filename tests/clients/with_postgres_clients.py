"""Clients that know nothing of DuckLake: psql, pg_dump, and SQLAlchemy on psycopg2."""

import os
import subprocess

from support import Absent, equal, rows

PSQL_SECONDS_MAX = 30
PG_DUMP_SECONDS_MAX = 120


def psql(lake, *commands):
    """What psql prints for commands, unaligned and without headers."""
    arguments = ["psql", "--no-psqlrc", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1", lake.url()]
    for command in commands:
        arguments += ["--command", command]
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=PSQL_SECONDS_MAX)
    except FileNotFoundError:
        raise Absent("psql is not installed") from None
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def psql_copies(lake):
    """Selects, and rows out of a table and back into one with \\copy."""
    duckdb = lake.duckdb()
    duckdb.execute("CREATE TABLE t(i INTEGER)")
    duckdb.execute("COMMENT ON TABLE t IS 'a tab\there'")
    equal(psql(lake, "SELECT table_name FROM ducklake_table"), ["t"])
    equal(psql(lake, "SELECT count(*), max(snapshot_id) FROM ducklake_snapshot"), ["3|2"])
    path = os.path.join(lake.data_path, "options.tsv")
    metadata = "SELECT key, value FROM ducklake_metadata ORDER BY key"
    before = psql(lake, metadata)
    copied = [
        f"\\copy ducklake_metadata(key, value) to '{path}'",
        "DELETE FROM ducklake_metadata WHERE key <> 'x'",
        f"\\copy ducklake_metadata(key, value) from '{path}'",
    ]
    equal(psql(lake, *copied)[0].split()[0], "COPY")
    equal(psql(lake, metadata), before)
    equal(psql(lake, "\\copy (SELECT key, value FROM ducklake_tag) to stdout"), ["comment\ta tab\\there"])
    equal(rows(lake.duckdb(), "SELECT comment FROM duckdb_tables() WHERE table_name = 't'"), [("a tab\there",)])


def psql_describes(lake):
    """\\dt and \\d, which ask the system's catalogs."""
    lake.duckdb().execute("CREATE TABLE t(i INTEGER)")
    tables = psql(lake, "\\dt")
    assert len(tables) >= 28 and "public|ducklake_table|table|moraine" in tables, tables
    columns = psql(lake, "\\d ducklake_table")
    assert "table_id|bigint||not null|" in columns or "table_id|bigint|||" in columns, columns
    assert "table_name|character varying|||" in columns, columns
    equal(len([line for line in columns if line.count("|") == 4]), 8)


def psql_lists(lake):
    """The lists that psql has of everything, most of which no lake has."""
    lake.duckdb().execute("CREATE TABLE t(i INTEGER)")
    details = psql(lake, "\\d+ ducklake_snapshot")
    equal(details[0], "snapshot_id|bigint||not null||plain|||")
    equal(len(details), 5)
    equal(psql(lake, "\\dn"), ["public|moraine"])
    equal(psql(lake, "\\di")[0].split("|")[1:3], ["ducklake_data_file_pkey", "index"])
    assert len(psql(lake, "\\z")) >= 28
    equal(psql(lake, "\\du")[0].split("|")[0], "moraine")
    equal(psql(lake, "\\l")[0].split("|")[:3], [lake.name, "moraine", "UTF8"])
    for nothing in ("\\dv", "\\ds", "\\df", "\\dx", "\\dT", "\\dD", "\\dy", "\\dRp", "\\dX", "\\dE", "\\ddp", "\\da", "\\dc", "\\dO"):
        equal(psql(lake, nothing), [])


def pg_dump(lake, *options):
    """What pg_dump writes of a lake."""
    try:
        done = subprocess.run(
            ["pg_dump", *options, lake.url()], capture_output=True, text=True, timeout=PG_DUMP_SECONDS_MAX
        )
    except FileNotFoundError:
        raise Absent("pg_dump is not installed") from None
    assert done.returncode == 0, done.stderr
    return done.stdout


def copied(dump):
    """The rows of each table of a dump, as COPY writes them."""
    tables, rows_of = {}, None
    for line in dump.splitlines():
        if line.startswith("COPY "):
            rows_of = tables.setdefault(line.split()[1].removeprefix("public."), [])
        elif line == "\\.":
            rows_of = None
        elif rows_of is not None:
            rows_of.append(line)
    return tables


def pg_dump_dumps(lake):
    """A dump has every table, its key and its rows as the server shows them."""
    duckdb = lake.duckdb()
    duckdb.execute("CREATE TABLE t(i INTEGER, s VARCHAR)")
    duckdb.execute("INSERT INTO t VALUES (1, 'a\tb'), (2, NULL), (3, '\\.')")
    duckdb.execute("COMMENT ON TABLE t IS 'it''s a \\ comment'")
    tables = copied(pg_dump(lake, "--data-only"))
    names = [line.split("|")[1] for line in psql(lake, "\\dt")]
    equal(sorted(tables), sorted(names))
    for name in names:
        equal(tables[name], psql(lake, f"\\copy {name} to stdout"))
    schema = pg_dump(lake, "--schema-only")
    equal(schema.count("CREATE TABLE public."), len(names))
    assert "ADD CONSTRAINT ducklake_snapshot_pkey PRIMARY KEY (snapshot_id);" in schema, schema


def sqlalchemy_tables(lake):
    """Selects with bound parameters and an insert, as Core writes them, in transactions of their own."""
    import sqlalchemy
    from sqlalchemy import BigInteger, Column, MetaData, String, Table, insert, select

    duckdb = lake.duckdb()
    duckdb.execute("CREATE TABLE t(i INTEGER)")
    duckdb.execute("INSERT INTO t VALUES (1), (2)")
    engine = sqlalchemy.create_engine(lake.url("postgresql+psycopg2"))
    names = MetaData()
    tables = Table(
        "ducklake_table", names, Column("table_id", BigInteger), Column("table_name", String), Column("end_snapshot", BigInteger)
    )
    options = Table("ducklake_metadata", names, *(Column(name, String) for name in ("key", "value")))
    with engine.connect() as connection:
        live = select(tables.c.table_id, tables.c.table_name).where(tables.c.end_snapshot.is_(None))
        equal([tuple(row) for row in connection.execute(live)], [(1, "t")])
        named = select(tables.c.table_id).where(tables.c.table_name == "it's").limit(1)
        equal(connection.execute(named).first(), None)
        ordered = select(options.c.key).where(options.c.key.in_(["version", "data_path"])).order_by(options.c.key.desc())
        equal(connection.execute(ordered).scalars().all(), ["version", "data_path"])
    with engine.begin() as connection:
        connection.execute(insert(options), [{"key": "target_file_size", "value": "7MB"}])
    with engine.connect() as connection:
        connection.execute(insert(options), [{"key": "never", "value": "x"}])
        connection.rollback()
        equal(connection.execute(select(options.c.value).where(options.c.key == "never")).all(), [])
    engine.dispose()
    found = rows(lake.duckdb(), "SELECT value FROM ducklake_options('lake') WHERE option_name = 'target_file_size'")
    equal(found, [("7MB",)])


def sqlalchemy_inspects(lake):
    """Tables and columns by SQLAlchemy's inspector, and a table that it reflects."""
    import sqlalchemy

    lake.duckdb().execute("CREATE TABLE t(i INTEGER)")
    engine = sqlalchemy.create_engine(lake.url("postgresql+psycopg2"))
    inspector = sqlalchemy.inspect(engine)
    assert "ducklake_table" in inspector.get_table_names(), inspector.get_table_names()
    equal((inspector.has_table("ducklake_table"), inspector.has_table("nothing")), (True, False))
    columns = {column["name"]: column for column in inspector.get_columns("ducklake_snapshot")}
    equal(str(columns["snapshot_id"]["type"]), "BIGINT")
    equal([name for name, column in columns.items() if not column["nullable"]], ["snapshot_id"])
    equal(inspector.get_pk_constraint("ducklake_snapshot")["constrained_columns"], ["snapshot_id"])
    for nothing in (inspector.get_foreign_keys, inspector.get_indexes, inspector.get_unique_constraints):
        equal(nothing("ducklake_snapshot"), [])
    equal((inspector.get_view_names(), inspector.get_sequence_names(), inspector.get_enums()), ([], [], []))
    whole = sqlalchemy.MetaData()
    whole.reflect(engine)
    equal(sorted(whole.tables), sorted(inspector.get_table_names()))
    table = sqlalchemy.Table("ducklake_table", sqlalchemy.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        equal([row.table_name for row in connection.execute(sqlalchemy.select(table))], ["t"])
    engine.dispose()


SESSIONS = [psql_copies, psql_describes, psql_lists, pg_dump_dumps, sqlalchemy_tables, sqlalchemy_inspects]
