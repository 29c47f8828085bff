#!/usr/bin/env python3
"""Plays DuckDB sessions on a DuckDB-file catalog and on moraine, and compares every result row by row.

    python tests/duckdb/run.py [--moraine target/debug/moraine] [--jobs 2] [--list] [NAME ...]

NAME chooses sessions and scenarios whose name contains it; all of them without one. `--against CONNSTR` plays
the sessions on another Postgres server instead, to see whether a difference is moraine's or DuckLake's own;
{db} in it is a database name that `--prepare COMMAND` makes. Exit status 1 when anything differs.
`cargo xtask test` builds what is needed, makes the Python environment, and calls this program.
"""

import argparse
import functools
import os
import sys

import scenarios
import sessions
from harness import catalogs, runner

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--moraine", default=os.path.join(ROOT, "target", "debug", "moraine"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--against", metavar="CONNSTR", help="another Postgres server, with {db} for the database")
    parser.add_argument("--prepare", metavar="COMMAND", help="makes the database {db} on that server")
    return parser.parse_args()


def tasks(options):
    """Name and task of everything that was asked for."""
    if options.against:
        other = lambda directory: catalogs.Postgres(options.against, options.prepare)
    else:
        other = lambda directory: catalogs.Moraine(directory, options.moraine)
    found = [(s.name, functools.partial(runner.play_session, s, other)) for s in sessions.SESSIONS]
    if not options.against:
        found += [(s.__name__, functools.partial(runner.play_scenario, s, options.moraine)) for s in scenarios.SCENARIOS]
    return [(name, task) for name, task in found if not options.names or any(part in name for part in options.names)]


def main():
    """Runs what was asked for."""
    options = arguments()
    chosen = tasks(options)
    if options.list:
        print("\n".join(name for name, _ in chosen))
        return
    if not chosen:
        sys.exit(f"no session is called like {', '.join(options.names)}: --list prints all names")
    if not options.against and not os.path.exists(options.moraine):
        sys.exit(f"{options.moraine} does not exist: `cargo build -p moraine-cli` builds it")
    sys.exit(1 if runner.run_all([task for _, task in chosen], options.jobs) else 0)


if __name__ == "__main__":
    main()
