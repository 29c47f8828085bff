#!/usr/bin/env python3
"""Runs DuckLake's own sqllogictest suite against a moraine server that it starts, each file on a lake of its own.

    python tests/conformance/run.py --suite CHECKOUT [--filter REGEX] [--jobs 2] [--json FILE] [--all] [--update]

CHECKOUT is a checkout of github.com/duckdb/ducklake at the commit of the ducklake extension that is installed.
Exit status 1 when a file of passes.txt did not pass. `cargo xtask conformance` builds what is needed, makes the
Python environment, and calls this program.

    suite.py       the files of the suite, and its configuration for PostgreSQL
    pool.py        each file in a process and a folder of its own, with a limit of time
    player.py      plays one file
    sqllogic.py    the text of a file as steps
    answers.py     whether rows are those expected
    duckdb_api.py  DuckDB through its C API
    report.py      what is told about a run; the list of files that pass
    test_player.py files of known outcome, for the programs above
"""

import argparse
import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.append(os.path.join(ROOT, "tests", "duckdb"))

import pool  # noqa: E402
import report as reports  # noqa: E402
import suite as suites  # noqa: E402
from harness import catalogs  # noqa: E402


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", required=True, metavar="CHECKOUT")
    parser.add_argument("--filter", action="append", default=[], metavar="REGEX", help="only files whose path matches")
    parser.add_argument("--no-slow", action="store_true", help="leave out *.test_slow")
    parser.add_argument("--all", action="store_true", help="also what the configuration for PostgreSQL skips")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--timeout", type=float, default=300, metavar="SECONDS", help="for each file")
    parser.add_argument("--json", metavar="FILE", help="write the outcome of each file there")
    parser.add_argument("--update", action="store_true", help="write passes.txt anew")
    parser.add_argument("--moraine", default=os.path.join(ROOT, "target", "debug", "moraine"))
    parser.add_argument("--against", metavar="CONNSTR", help="another Postgres server, with {db} for the database")
    parser.add_argument("--prepare", metavar="COMMAND", help="makes the database {db} on that server")
    return parser.parse_args()


def play(options, suite, files, connection, directory):
    """Runs the files on a server that is up, and reports."""
    report = reports.Report(len(files), suite.skips.keys() | suites.IMPOSSIBLE.keys())
    skips = {**({} if options.all else suite.skips), **suites.IMPOSSIBLE}
    for file in [file for file in files if file in skips]:
        reason = "skipped for PostgreSQL: " + skips[file]
        report.add(file, {"status": "skipped", "reason": reason, "by_configuration": True})
    runner = pool.Pool(suite, connection, directory, options.jobs, options.timeout, options.prepare)
    runner.run([file for file in files if file not in skips], report.add)
    report.summary()
    if options.json:
        report.write(options.json, {"suite": suite.root, "connection": connection})
    return report


def main():
    """Runs what was asked for."""
    options = arguments()
    suite = suites.read(options.suite)
    files = suite.files(options.filter, slow=not options.no_slow)
    if not files:
        sys.exit("no file of the suite matches")
    place = tempfile.mkdtemp(prefix="moraine-conformance-")
    try:
        if options.against:
            play(options, suite, files, options.against, place)
            return
        server = catalogs.Moraine(place, options.moraine)
        server.start()
        try:
            host, port = server.listen.rsplit(":", 1)
            connection = f"host={host} port={port} user=moraine dbname={{db}}"
            report = play(options, suite, files, connection, place)
        finally:
            server.stop()
        sys.exit(0 if reports.guard(report, options.update) else 1)
    finally:
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
