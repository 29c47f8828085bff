#!/usr/bin/env python3
"""What a DuckDB client waits for, on one catalog beside the other, in one run on one machine.

    python tests/duckdb/bench_catalogs.py --moraine target/release/moraine [--postgres CONNSTR] [--rounds 5]

Each round gives every catalog a fresh lake, in rotated order, so that a busy moment of the machine hits all of
them alike. Times are of whole statements as the client sees them. Every workload checks its result. Medians are
printed with their ratio to the DuckDB-file catalog; nothing is asserted about time.
`cargo xtask bench catalogs` builds what is needed and calls this program.
"""

import argparse
import os
import statistics
import tempfile
import time
import uuid

from harness.catalogs import DuckDbFile, Moraine
from harness.client import connect

TABLES = 50
INSERTS = 100


class SchemaOfPostgres:
    """A PostgreSQL that is there already; each lake gets a schema of its own, dropped at the end."""

    def __init__(self, connection):
        self.target = connection
        self.schema = "moraine_bench_" + uuid.uuid4().hex[:12]
        self.options = f", METADATA_SCHEMA '{self.schema}'"

    def connection(self):
        """What follows `ducklake:` in an ATTACH."""
        return "postgres:" + self.target

    def start(self):
        """It runs already."""

    def stop(self):
        """Leaves nothing behind."""
        client = connect()
        client.execute(f"ATTACH '{self.target}' AS target (TYPE postgres)")
        client.execute(f"""CALL postgres_execute('target', 'DROP SCHEMA IF EXISTS "{self.schema}" CASCADE')""")
        client.close()


class Lake:
    """A fresh lake on one catalog."""

    def __init__(self, catalog, directory):
        self.catalog = catalog
        self.data = os.path.join(directory, "files")

    def attach(self):
        """A new DuckDB, not yet attached, and the statement that attaches it."""
        options = getattr(self.catalog, "options", "")
        return connect(), f"ATTACH 'ducklake:{self.catalog.connection()}' AS lake (DATA_PATH '{self.data}'{options})"

    def open(self):
        """A new DuckDB with the lake in use."""
        client, attach = self.attach()
        client.execute(attach)
        client.execute("USE lake")
        return client


def timed(times, metric, work):
    """Runs `work` and notes its milliseconds."""
    started = time.perf_counter()
    work()
    times.setdefault(metric, []).append((time.perf_counter() - started) * 1e3)


def expect(client, sql, rows):
    """A benchmark of a wrong result is worth nothing."""
    found = client.execute(sql).fetchall()
    if found != rows:
        raise SystemExit(f"{sql} gave {found}, not {rows}")


def measure(lake, times):
    """All workloads on one lake."""
    client, attach = lake.attach()
    timed(times, "first attach (makes the lake)", lambda: client.execute(attach))
    client.execute("USE lake")

    def create_tables():
        for number in range(TABLES):
            client.execute(f"CREATE TABLE c{number}(id BIGINT, name VARCHAR, made TIMESTAMP, v DOUBLE)")

    def insert_rows():
        for number in range(INSERTS):
            client.execute(f"INSERT INTO ins VALUES ({number}, 'n{number}', {number}.5)")

    timed(times, f"{TABLES} CREATE TABLE", create_tables)
    client.execute("CREATE TABLE ins(id BIGINT, name VARCHAR, v DOUBLE)")
    timed(times, f"{INSERTS} single-row INSERT", insert_rows)
    client.close()
    client, attach = lake.attach()
    timed(times, "attach", lambda: client.execute(attach))
    timed(times, "first query after attach", lambda: client.execute("SELECT count(*) FROM lake.ins").fetchall())
    timed(times, f"sum over {INSERTS} inlined rows", lambda: client.execute("SELECT sum(v) FROM lake.ins").fetchall())
    expect(client, "SELECT count(*), sum(id), count(DISTINCT rowid) FROM lake.ins", [(INSERTS, INSERTS * (INSERTS - 1) // 2, INSERTS)])
    expect(client, "SELECT count(*) FROM duckdb_tables() WHERE database_name = 'lake'", [(TABLES + 1,)])
    client.close()


def table(times, names):
    """Prints the medians, with the ratio to the first catalog."""
    print("\nmedian milliseconds, and times the DuckDB file")
    print(f"{'':34}" + "".join(f"{name:>24}" for name in names))
    for metric in times[names[0]]:
        base = statistics.median(times[names[0]][metric])
        cells = []
        for name in names:
            median = statistics.median(times[name][metric])
            cells.append(f"{median:.1f} ({median / base:.2f}x)")
        print(f"{metric:34}" + "".join(f"{cell:>24}" for cell in cells))


def main():
    """Rounds over all catalogs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moraine", required=True)
    parser.add_argument("--postgres", metavar="CONNSTR")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    makers = {"DuckDB file": DuckDbFile, "moraine": lambda directory: Moraine(directory, options.moraine)}
    if options.postgres:
        makers["PostgreSQL"] = lambda directory: SchemaOfPostgres(options.postgres)
    names = list(makers)
    times = {name: {} for name in names}
    for number in range(options.rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            print(f"round {number + 1} of {options.rounds}: {name}", flush=True)
            with tempfile.TemporaryDirectory(prefix="moraine-bench-") as directory:
                catalog = makers[name](directory)
                catalog.start()
                try:
                    measure(Lake(catalog, directory), times[name])
                finally:
                    catalog.stop()
    table(times, names)


if __name__ == "__main__":
    main()
