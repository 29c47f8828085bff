#!/usr/bin/env python3
"""Sessions of clients other than DuckDB, each on a lake of its own of one moraine server.

    python tests/clients/run.py [--moraine target/debug/moraine] [NAME ...]

NAME chooses sessions whose name contains it. What a client reads is what DuckDB reads, and what it writes DuckDB
reads back. A session may say that it needs queries that moraine refuses by name (`needs_queries`): such a one is
expected to be refused, and fails the run when it no longer is, so that the mark comes off. `cargo xtask clients`
builds the server, installs the clients from their registries, and calls this program.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback

import support
import with_compiled
import with_dataframes
import with_drivers
import with_postgres_clients
import with_pyducklake
import with_types

SESSIONS = [
    *with_pyducklake.SESSIONS,
    *with_dataframes.SESSIONS,
    *with_postgres_clients.SESSIONS,
    *with_drivers.SESSIONS,
    *with_types.SESSIONS,
    *with_compiled.SESSIONS,
]
TRACE_LINES_SHOWN = 8


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--moraine", default=os.path.join(support.ROOT, "target", "debug", "moraine"))
    return parser.parse_args()


def play(session, lake):
    """How a session went: a word for it, and what there is to tell."""
    is_refused = getattr(session, "needs_queries", False)
    try:
        session(lake)
    except support.Absent as absent:
        return "absent", str(absent)
    except Exception as error:
        if is_refused and any(refusal in str(error) for refusal in support.REFUSALS):
            return "refused", " ".join(str(error).split())[:200]
        return "FAILED", "\n".join(traceback.format_exc().splitlines()[-TRACE_LINES_SHOWN:])
    if is_refused:
        return "FAILED", "nothing was refused: the mark needs_queries can go"
    return "ok", ""


def main():
    """Runs what was asked for."""
    options = arguments()
    chosen = [each for each in SESSIONS if not options.names or any(name in each.__name__ for name in options.names)]
    if not chosen:
        sys.exit(f"no session is called like {', '.join(options.names)}")
    place = tempfile.mkdtemp(prefix="moraine-clients-")
    # pyducklake installs DuckDB's extensions below HOME; nothing of this stays.
    os.environ["HOME"] = place
    server = support.catalogs.Moraine(place, options.moraine)
    counts = {"ok": 0, "refused": 0, "absent": 0, "FAILED": 0}
    try:
        support.install_extensions(place)
        server.start()
        for session in chosen:
            started = time.monotonic()
            verdict, note = play(session, support.Lake(server, place, session.__name__))
            counts[verdict] += 1
            print(f"{verdict:7} {session.__name__} ({time.monotonic() - started:.1f} s) {note}", flush=True)
        server.stop()
    finally:
        server.stop()
        shutil.rmtree(place, ignore_errors=True)
    print(f"{counts['refused']} refused as expected, {counts['absent']} clients not at hand")
    print(f"{counts['ok']} passed, {counts['FAILED']} failed")
    sys.exit(1 if counts["FAILED"] else 0)


if __name__ == "__main__":
    main()
