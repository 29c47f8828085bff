"""Servers and clients that are killed at any moment: what was acknowledged stays, what was not leaves no trace."""

import ast
import os
import threading
import time

from harness.catalogs import Moraine
from harness.client import Process

ROUNDS = 5
STATEMENT_SECONDS_MAX = 30
DRAIN_SECONDS_MAX = 20
TRIES_AFTER_A_RESTART = 5


def attach(catalog, directory, options=""):
    """A DuckDB process with the lake in use; `options` are further ones of its ATTACH."""
    process = Process(STATEMENT_SECONDS_MAX)
    data = os.path.join(directory, "files")
    answer = process.run(f"ATTACH 'ducklake:{catalog.connection()}' AS lake (DATA_PATH '{data}'{', ' if options else ''}{options})")
    assert answer["ok"], answer
    assert process.run("USE lake")["ok"]
    return process


def rows(process, sql):
    """The rows of a query, which must not fail."""
    answer = process.run(sql)
    assert answer["ok"], f"{sql}: {answer}"
    return answer["rows"]


def write_until_it_fails(process, round_number, acknowledged):
    """Inserts single rows and files in turn until a statement fails; notes what was acknowledged."""
    number = 0
    while True:
        key = round_number * 100000 + number
        if number % 5 == 4:
            sql = f"INSERT INTO t SELECT {key}, 'file' FROM range(50)"
        else:
            sql = f"INSERT INTO t VALUES ({key}, 'row')"
        if not process.run(sql)["ok"]:
            return key
        acknowledged.append(key)
        number += 1


def server_killed_while_clients_write(directory, binary):
    """SIGKILL in the middle of commits, again and again: every acknowledged commit is there, and no half of one."""
    catalog = Moraine(directory, binary)
    catalog.start()
    try:
        process = attach(catalog, directory)
        assert process.run("CREATE TABLE t(k INTEGER, what VARCHAR)")["ok"]
        acknowledged, unknown = [], []
        for number in range(ROUNDS):
            done = []
            writer = threading.Thread(target=lambda: done.append(write_until_it_fails(process, number, acknowledged)))
            before = len(acknowledged)
            writer.start()
            while len(acknowledged) < before + 5 and writer.is_alive():
                time.sleep(0.01)
            time.sleep(0.037 * number)
            catalog.kill()
            writer.join()
            unknown += done
            process.kill()
            process = attach(catalog, directory)
            check(process, acknowledged, unknown)
        process.close()
    finally:
        catalog.stop()
    return f"{len(acknowledged)} commits acknowledged, {ROUNDS} kills"


def check(process, acknowledged, unknown):
    """The table holds every acknowledged commit whole, of the others all or nothing, and numbers its rows once."""
    found = ast.literal_eval(rows(process, "SELECT k, count(*) FROM t GROUP BY k ORDER BY k"))
    counts = dict(found)
    for key in acknowledged:
        assert key in counts, f"commit {key} was acknowledged and is lost"
    for key, count in found:
        assert count == (50 if key % 5 == 4 else 1), f"commit {key} is there by halves: {count} rows"
        assert key in acknowledged or key in unknown, f"commit {key} was never made"
    assert rows(process, "SELECT count(*) - count(DISTINCT rowid) FROM t") == "[(0,)]"


def clients_that_vanish(directory, binary):
    """A client killed within a transaction, before and after it wrote to the catalog, leaves nothing behind."""
    catalog = Moraine(directory, binary)
    catalog.start()
    try:
        witness = attach(catalog, directory)
        assert witness.run("CREATE TABLE t(k INTEGER)")["ok"]
        before = rows(witness, "SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")
        for delay_seconds in (None, 0.0, 0.01, 0.03, 0.1):
            victim = attach(catalog, directory)
            for sql in ("BEGIN", "INSERT INTO t VALUES (1)", "CREATE TABLE u(a INTEGER)"):
                assert victim.run(sql)["ok"]
            if delay_seconds is not None:
                victim.send("a", "COMMIT")
                time.sleep(delay_seconds)
            victim.kill()
            after = rows(witness, "SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")
            if delay_seconds is None:
                assert after == before, "a transaction that was never committed made a snapshot"
            # Whole or not at all: the row and the table belong to one commit.
            tables = rows(witness, "SELECT count(*) FROM duckdb_tables() WHERE database_name = 'lake' AND table_name = 'u'")
            assert tables == rows(witness, "SELECT count(*) FROM t")
            assert witness.run("DROP TABLE IF EXISTS u")["ok"]
            assert witness.run("DELETE FROM t")["ok"]
        witness.close()
    finally:
        catalog.stop()


def server_asked_to_end_while_clients_are_attached(directory, binary):
    """SIGTERM ends the server soon and in good order, whatever its clients are doing; they go on with the next one."""
    catalog = Moraine(directory, binary)
    catalog.start()
    try:
        idle, busy = attach(catalog, directory), attach(catalog, directory)
        assert busy.run("CREATE TABLE t(k INTEGER)")["ok"]
        for sql in ("BEGIN", "INSERT INTO t VALUES (1)"):
            assert busy.run(sql)["ok"]
        started = time.monotonic()
        catalog.restart()  # fails unless the server ends by itself with code 0
        seconds = time.monotonic() - started
        assert seconds < DRAIN_SECONDS_MAX, f"{seconds:.1f} s to end and start again"
        assert not busy.run("COMMIT")["ok"], "a commit on a connection that is gone cannot succeed"
        busy.run("ROLLBACK")
        for process in (idle, busy):
            answer = eventually(process, "SELECT count(*) FROM t")
            assert answer["rows"] == "[(0,)]", answer
            assert eventually(process, "INSERT INTO t VALUES (2)")["ok"]
            assert process.run("DELETE FROM t")["ok"]
            process.close()
    finally:
        catalog.stop()
    return f"{seconds:.1f} s to end and start again"


def eventually(process, sql):
    """The answer to a statement that a client may have to try once for each connection that the server took along."""
    for _ in range(TRIES_AFTER_A_RESTART):
        answer = process.run(sql)
        if answer["ok"]:
            return answer
    raise AssertionError(f"{sql}: {answer}")


SCENARIOS = [server_killed_while_clients_write, clients_that_vanish, server_asked_to_end_while_clients_are_attached]
