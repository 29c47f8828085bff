#!/usr/bin/env python3
"""Many DuckDB processes that write one lake at once, on one catalog beside the other, in one run on one machine.

    python tests/duckdb/bench_writers.py --moraine target/release/moraine [--postgres CONNSTR] [--writers 1,8,16]

Every writer is a process of its own and commits one row per transaction as fast as it can: into one table of all or a
table of its own, by appending or by updating a row that is its alone. Times are of whole statements as the client
sees them; each writer has committed once before the clock starts, so that nobody waits for another's first statement,
and none ends before all are done: the end of a DuckDB process costs as much CPU as several commits. "max/mean" is the
longest of them by the mean of all. "tries" are what the catalog saw: how often a transaction came to commit, for each
one that did; "moved" is how many of them were shifted to a newer snapshot instead. "client" and "server" are
milliseconds of CPU for one commit, and "bound" is the commits per second that all of the machine's CPU would give at
that: where commits/s come near it nothing but the clients' own work is left. (PostgreSQL's CPU is not counted.) Rows
are counted at the end, and a row lost or written twice ends the run with an error; nothing is asserted about time.
With --write-ms the catalog lies in a bucket whose writes take so long.
`cargo xtask bench commit` builds what is needed and runs this program over all works; `cargo xtask bench writers`
over one.
"""

import argparse
import dataclasses
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import time

from bench_catalogs import SchemaOfPostgres
from harness.catalogs import Moraine
from harness.client import connect
from harness.slow_bucket import SlowBucket

START_SECONDS_MAX = 120
# The number of the commit before the clock starts.
WARM_UP = -1
TICKS = os.sysconf("SC_CLK_TCK")


class MoraineOfWriters(Moraine):
    """A moraine server whose log tells how often a race for a snapshot was lost."""

    options = ""

    def __init__(self, directory, binary, arguments=(), write_ms=0):
        self.bucket = SlowBucket(write_ms / 1e3) if write_ms else None
        super().__init__(directory, binary, root="s3://bucket/lakes" if write_ms else None)
        self.arguments = arguments
        self.environment = {"MORAINE_LOG": "warn,moraine_commit=debug"}
        if self.bucket:
            self.environment.update(self.bucket.environment)

    def stop(self):
        """Ends the server, and the bucket."""
        super().stop()
        if self.bucket:
            self.bucket.stop()

    def lost(self):
        """Transactions refused so far because another one came first."""
        lines = self.log().splitlines()
        return sum("lost race" in line or "has the commit slot" in line or "commit refused" in line for line in lines)

    def moved(self):
        """Transactions shifted so far to a newer snapshot."""
        return self.log().count("rebased an append")

    def cpu_seconds(self):
        """CPU the server has used so far."""
        with open(f"/proc/{self.server.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


class PostgresOfWriters(SchemaOfPostgres):
    """A PostgreSQL that counts its rollbacks: what a lost race leaves."""

    def moved(self):
        """PostgreSQL shifts nothing."""
        return 0

    def cpu_seconds(self):
        """Not counted."""
        return 0

    def lost(self):
        """Transactions rolled back so far in this database, whoever began them."""
        client = connect()
        client.execute(f"ATTACH '{self.target}' AS target (TYPE postgres)")
        query = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()"
        (count,) = client.execute(f"SELECT * FROM postgres_query('target', '{query}')").fetchone()
        client.close()
        return count


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one fleet did."""

    seconds: float
    times: list
    errors: list
    committed: int
    tries: float
    moved: float
    client_ms: float
    server_ms: float
    wrong: int


def attach(connection, data, options, threads=1):
    """A DuckDB with the lake in use."""
    client = connect(threads=threads)
    client.execute(f"ATTACH 'ducklake:{connection}' AS lake (DATA_PATH '{data}'{options})")
    client.execute("USE lake")
    return client


def write(lake, number, table, work, commits, barrier, results):
    """One writer: commits, and notes how long each took."""
    client = attach(*lake)
    while commit(client, number, WARM_UP, table, work):
        pass
    barrier.wait(START_SECONDS_MAX)
    milliseconds, errors = [], []
    before = cpu_seconds()
    for step in range(commits):
        started = time.perf_counter()
        error = commit(client, number, step, table, work)
        milliseconds.append((time.perf_counter() - started) * 1e3)
        if error:
            errors.append(error)
    results.put((number, milliseconds, errors, cpu_seconds() - before))
    barrier.wait()


def commit(client, number, step, table, work):
    """One commit of a writer; the error, if it failed."""
    statement = {
        "append": f"INSERT INTO {table} VALUES ({number}, {step}, 'payload {number}-{step}')",
        "update": f"UPDATE {table} SET n = n + 1 WHERE w = {number}",
    }[work]
    try:
        client.execute(statement)
    except Exception as error:  # whatever DuckDB raises is a commit that failed
        return str(error).splitlines()[-1][:200]
    return None


def cpu_seconds():
    """CPU this process has used so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def check(client, tables, work, acknowledged):
    """Rows that are there beyond those that were acknowledged: 0 unless a row was lost or written twice."""
    if work == "append":
        found = sum(client.execute(f"SELECT count(DISTINCT (w, n)) FROM {table}").fetchone()[0] for table in tables)
        rows = sum(client.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)
        return max(abs(found - acknowledged), abs(rows - found))
    found = sum(client.execute(f"SELECT sum(n) FROM {table}").fetchone()[0] for table in tables)
    return abs(found - acknowledged)


def measure(catalog, directory, writers, commits, work, own_tables, threads):
    """One fleet of writers on a fresh lake."""
    lake = (catalog.connection(), os.path.join(directory, "files"), catalog.options, threads)
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
    lost, moved, server = catalog.lost(), catalog.moved(), catalog.cpu_seconds()
    started = time.perf_counter()
    outcomes = [results.get() for _ in fleet]
    seconds = time.perf_counter() - started
    server = catalog.cpu_seconds() - server
    barrier.wait()
    for process in fleet:
        process.join()
    times = sorted(value for outcome in outcomes for value in outcome[1])
    errors = [error for outcome in outcomes for error in outcome[2]]
    committed = writers * commits - len(errors)
    time.sleep(1.1)  # PostgreSQL reports its counters late
    done = max(committed, 1)
    outcome = Outcome(
        seconds=seconds,
        times=times,
        errors=errors,
        committed=committed,
        tries=1 + (catalog.lost() - lost) / done,
        moved=(catalog.moved() - moved) / done,
        client_ms=sum(outcome[3] for outcome in outcomes) * 1e3 / done,
        server_ms=server * 1e3 / done,
        wrong=check(client, tables, work, writers + committed),
    )
    client.close()
    return outcome


def report(name, writers, outcome):
    """One line of the table."""
    times = outcome.times
    mean = statistics.fmean(times)
    bound = os.cpu_count() * 1e3 / (outcome.client_ms + outcome.server_ms)
    print(
        f"{name:16}{writers:>8}{outcome.committed / outcome.seconds:>11.1f}{times[len(times) // 2]:>8.0f}"
        f"{times[int(len(times) * 0.99)]:>8.0f}{times[-1]:>8.0f}{times[-1] / mean:>9.1f}{outcome.tries:>7.2f}"
        f"{outcome.moved:>7.2f}{outcome.client_ms:>8.1f}{outcome.server_ms:>8.1f}{bound:>8.0f}"
        f"{len(outcome.errors):>8}{outcome.wrong:>7}",
        flush=True,
    )
    for error in sorted(set(outcome.errors))[:3]:
        print(f"    {outcome.errors.count(error)} x {error}", flush=True)


def catalogs(options):
    """What is measured, by name, each made anew for every fleet."""
    makers = {}
    for number, binary in enumerate(options.moraine):
        name = "moraine" if number == 0 else f"moraine {number + 1}"
        variants = {name: ()}
        if options.rebase and options.work == "append":
            variants[name + " rebase"] = ("--rebase-appends",)
        for variant, arguments in variants.items():
            makers[variant] = lambda directory, binary=binary, arguments=arguments: MoraineOfWriters(
                directory, binary, arguments, options.write_ms
            )
    if options.postgres and not options.write_ms:
        makers["PostgreSQL"] = lambda directory: PostgresOfWriters(options.postgres)
    return makers


def compare(options):
    """Fleets of every size on all catalogs, for one kind of work; the rows lost or written twice."""
    where = "tables of their own" if options.own_tables else "one table"
    stored = f", writes take {options.write_ms} ms" if options.write_ms else ""
    writer = f"{options.commits} commits a writer of {options.threads} threads"
    print(f"{options.work}, {where}, {writer}{stored}; times in milliseconds")
    print(
        f"{'':16}{'writers':>8}{'commits/s':>11}{'p50':>8}{'p99':>8}{'max':>8}{'max/mean':>9}{'tries':>7}"
        f"{'moved':>7}{'client':>8}{'server':>8}{'bound':>8}{'failed':>8}{'wrong':>7}",
        flush=True,
    )
    wrong = 0
    for writers in (int(size) for size in options.writers.split(",")):
        for name, maker in catalogs(options).items():
            with tempfile.TemporaryDirectory(prefix="moraine-bench-") as directory:
                catalog = maker(directory)
                catalog.start()
                try:
                    outcome = measure(
                        catalog,
                        directory,
                        writers,
                        options.commits,
                        options.work,
                        options.own_tables,
                        options.threads,
                    )
                finally:
                    catalog.stop()
            report(name, writers, outcome)
            wrong += outcome.wrong
    return wrong


def main():
    """One kind of work, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moraine", required=True, action="append", help="may be given more than once")
    parser.add_argument("--postgres", metavar="CONNSTR")
    parser.add_argument("--writers", default="1,4,8,16,32", help="sizes of the fleet, separated by commas")
    parser.add_argument("--commits", type=int, default=20, help="commits of each writer")
    parser.add_argument("--work", choices=["append", "update"], default="append")
    parser.add_argument(
        "--threads",
        type=int,
        default=os.cpu_count(),
        help="threads of each DuckDB; as many as there are cores unless given, as DuckDB itself does",
    )
    parser.add_argument("--own-tables", action="store_true", help="a table for each writer rather than one of all")
    parser.add_argument("--rebase", action="store_true", help="appends with --rebase-appends too")
    parser.add_argument("--write-ms", type=float, default=0, help="keep the catalog in a bucket as slow as that")
    parser.add_argument("--all", action="store_true", help="all kinds of work, on a local disk and with 30 ms writes")
    options = parser.parse_args()
    if not options.all:
        kinds = [{}]
    else:
        works = [
            {"work": "append", "own_tables": False},
            {"work": "append", "own_tables": True},
            {"work": "update", "own_tables": False},
        ]
        kinds = [{**work, "rebase": True, "write_ms": write_ms} for write_ms in (0, 30) for work in works]
    wrong = sum(compare(argparse.Namespace(**{**vars(options), **kind})) for kind in kinds)
    sys.exit(f"{wrong} rows were lost or written twice" if wrong else 0)


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    main()
