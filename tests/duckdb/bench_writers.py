#!/usr/bin/env python3
"""Many DuckDB processes that write one lake at once, on one catalog beside the other, in one run on one machine.

    python tests/duckdb/bench_writers.py --moraine target/release/moraine [--postgres CONNSTR] [--writers 1,8,16]

Every writer is a process of its own and commits one row per transaction as fast as it can: into one table of all
or a table of its own, by appending or by updating a row that is its alone. Times are of whole statements as the
client sees them; "max/mean" is the longest of them by the mean of all. "tries" are what the catalog saw: how
often a transaction came to commit, for each one that did. Rows are counted at the end, and a row lost or written
twice ends the run with an error; nothing is asserted about time.
`cargo xtask bench writers` builds what is needed and calls this program.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time

from bench_catalogs import SchemaOfPostgres
from harness.catalogs import Moraine
from harness.client import connect

START_SECONDS_MAX = 120


class MoraineOfWriters(Moraine):
    """A moraine server whose log tells how often a race for a snapshot was lost."""

    options = ""

    def start(self):
        """Starts with the commit protocol's log on."""
        before = os.environ.get("MORAINE_LOG")
        os.environ["MORAINE_LOG"] = "warn,moraine_commit=debug"
        try:
            super().start()
        finally:
            os.environ.pop("MORAINE_LOG")
            if before is not None:
                os.environ["MORAINE_LOG"] = before

    def lost(self):
        """Transactions refused so far because another one came first."""
        lines = self.log().splitlines()
        return sum("lost race" in line or "has the commit slot" in line or "commit refused" in line for line in lines)


class PostgresOfWriters(SchemaOfPostgres):
    """A PostgreSQL that counts its rollbacks: what a lost race leaves."""

    def lost(self):
        """Transactions rolled back so far in this database, whoever began them."""
        client = connect()
        client.execute(f"ATTACH '{self.target}' AS target (TYPE postgres)")
        query = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()"
        (count,) = client.execute(f"SELECT * FROM postgres_query('target', '{query}')").fetchone()
        client.close()
        return count


def attach(connection, data, options):
    """A DuckDB with the lake in use."""
    client = connect(threads=1)
    client.execute(f"ATTACH 'ducklake:{connection}' AS lake (DATA_PATH '{data}'{options})")
    client.execute("USE lake")
    return client


def write(lake, number, table, work, commits, barrier, results):
    """One writer: commits, and notes how long each took."""
    client = attach(*lake)
    client.execute(f"SELECT count(*) FROM {table}").fetchall()
    barrier.wait(START_SECONDS_MAX)
    milliseconds, errors = [], []
    for step in range(commits):
        statement = {
            "append": f"INSERT INTO {table} VALUES ({number}, {step}, 'payload {number}-{step}')",
            "update": f"UPDATE {table} SET n = n + 1 WHERE w = {number}",
        }[work]
        started = time.perf_counter()
        try:
            client.execute(statement)
        except Exception as error:  # whatever DuckDB raises is a commit that failed
            errors.append(str(error).splitlines()[-1][:200])
        milliseconds.append((time.perf_counter() - started) * 1e3)
    results.put((number, milliseconds, errors, time.perf_counter()))


def check(client, tables, work, failed, writers, commits):
    """Rows that are there beyond those that were acknowledged: 0 unless a row was lost or written twice."""
    if work == "append":
        found = sum(client.execute(f"SELECT count(DISTINCT (w, n)) FROM {table}").fetchone()[0] for table in tables)
        rows = sum(client.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)
        return max(abs(found - (writers * commits - failed)), abs(rows - found))
    found = sum(client.execute(f"SELECT sum(n) FROM {table}").fetchone()[0] for table in tables)
    return abs(found - (writers * commits - failed))


def measure(catalog, directory, writers, commits, work, own_tables):
    """One fleet of writers on a fresh lake."""
    lake = (catalog.connection(), os.path.join(directory, "files"), catalog.options)
    client = attach(*lake)
    tables = [f"t{number}" for number in range(writers if own_tables else 1)]
    for number, table in enumerate(tables):
        client.execute(f"CREATE TABLE {table}(w INTEGER, n INTEGER, s VARCHAR)")
        if work == "update":
            rows = [number] if own_tables else range(writers)
            client.execute(f"INSERT INTO {table} VALUES " + ", ".join(f"({row}, 0, 'x')" for row in rows))
    barrier = multiprocessing.Barrier(writers + 1)
    results = multiprocessing.Queue()
    fleet = []
    for number in range(writers):
        table = tables[number if own_tables else 0]
        arguments = (lake, number, table, work, commits, barrier, results)
        fleet.append(multiprocessing.Process(target=write, args=arguments))
        fleet[-1].start()
    barrier.wait(START_SECONDS_MAX)
    lost = catalog.lost()
    started = time.perf_counter()
    outcomes = [results.get() for _ in fleet]
    seconds = time.perf_counter() - started
    for process in fleet:
        process.join()
    times = sorted(value for outcome in outcomes for value in outcome[1])
    errors = [error for outcome in outcomes for error in outcome[2]]
    committed = writers * commits - len(errors)
    time.sleep(1.1)  # PostgreSQL reports its counters late
    tries = 1 + (catalog.lost() - lost) / max(committed, 1)
    wrong = check(client, tables, work, len(errors), writers, commits)
    client.close()
    return seconds, times, errors, committed, tries, wrong


def report(name, writers, outcome):
    """One line of the table."""
    seconds, times, errors, committed, tries, wrong = outcome
    mean = statistics.fmean(times)
    print(
        f"{name:12}{writers:>8}{committed / seconds:>11.1f}{times[len(times) // 2]:>9.0f}"
        f"{times[int(len(times) * 0.99)]:>9.0f}{times[-1]:>9.0f}{times[-1] / mean:>10.1f}{tries:>7.2f}"
        f"{len(errors):>8}{wrong:>7}",
        flush=True,
    )
    for error in sorted(set(errors))[:3]:
        print(f"    {errors.count(error)} x {error}", flush=True)


def main():
    """Fleets of every size on all catalogs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moraine", required=True, action="append", help="may be given more than once")
    parser.add_argument("--postgres", metavar="CONNSTR")
    parser.add_argument("--writers", default="1,4,8,16,32", help="sizes of the fleet, separated by commas")
    parser.add_argument("--commits", type=int, default=20, help="commits of each writer")
    parser.add_argument("--work", choices=["append", "update"], default="append")
    parser.add_argument("--own-tables", action="store_true", help="a table for each writer rather than one of all")
    options = parser.parse_args()
    makers = {}
    for number, binary in enumerate(options.moraine):
        name = "moraine" if number == 0 else f"moraine {number + 1}"
        makers[name] = lambda directory, binary=binary: MoraineOfWriters(directory, binary)
    if options.postgres:
        makers["PostgreSQL"] = lambda directory: PostgresOfWriters(options.postgres)
    where = "tables of their own" if options.own_tables else "one table"
    print(f"{options.work}, {where}, {options.commits} commits a writer; times in milliseconds")
    print(
        f"{'':12}{'writers':>8}{'commits/s':>11}{'p50':>9}{'p99':>9}{'max':>9}{'max/mean':>10}{'tries':>7}"
        f"{'failed':>8}{'wrong':>7}"
    )
    wrong = 0
    for writers in (int(size) for size in options.writers.split(",")):
        for name, maker in makers.items():
            with tempfile.TemporaryDirectory(prefix="moraine-bench-") as directory:
                catalog = maker(directory)
                catalog.start()
                try:
                    outcome = measure(catalog, directory, writers, options.commits, options.work, options.own_tables)
                finally:
                    catalog.stop()
            report(name, writers, outcome)
            wrong += outcome[-1]
    sys.exit(f"{wrong} rows were lost or written twice" if wrong else 0)


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    main()
