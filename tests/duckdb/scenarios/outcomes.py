"""What a client knows of its commit when the connection or the server goes away, and how it finds out the rest."""

import ast
import os
import threading
import time

from harness.catalogs import Moraine
from harness.client import Process
from harness.proxy import AFTER, BEFORE, CuttingProxy
from scenarios.crashes import STATEMENT_SECONDS_MAX, attach, rows

CUT_SECONDS_MAX = 30
WRITERS = 3
RESTARTS = 4
ROWS_PER_FILE = 50


def attach_through(proxy, catalog, directory):
    """A DuckDB process whose connections go through the proxy."""
    process = Process(STATEMENT_SECONDS_MAX)
    connection = f"postgres:host=127.0.0.1 port={proxy.port} user=moraine dbname={catalog.database}"
    data = os.path.join(directory, "files")
    answer = process.run(f"ATTACH 'ducklake:{connection}' AS lake (DATA_PATH '{data}')")
    assert answer["ok"], answer
    assert process.run("USE lake")["ok"]
    return process


def commit_noted(process, note, sql):
    """One transaction whose snapshot carries a note by which it can be found again."""
    for statement in ("BEGIN", sql, f"CALL ducklake_set_commit_message('lake', 'ann', 'an insert', extra_info => '{note}')"):
        answer = process.run(statement)
        assert answer["ok"], (statement, answer)
    return process.run("COMMIT")


def connection_lost_at_commit(directory, binary):
    """A COMMIT whose connection breaks is an error that is not tried again, and the note of its snapshot tells what came of it."""
    catalog = Moraine(directory, binary)
    catalog.start()
    proxy = CuttingProxy(*catalog.listen.rsplit(":", 1))
    try:
        witness = attach(catalog, directory)
        assert witness.run("CREATE TABLE t(a INTEGER)")["ok"]
        for number, (when, landed) in enumerate([(BEFORE, 0), (AFTER, 1), (BEFORE, 0), (AFTER, 1)]):
            for rows_of, sql in ((1, f"INSERT INTO t VALUES ({number})"), (ROWS_PER_FILE, f"INSERT INTO t SELECT {number} FROM range({ROWS_PER_FILE})")):
                before = int(rows(witness, "SELECT count(*) FROM t").strip("[](),"))
                process = attach_through(proxy, catalog, directory)
                note = f"{number}-{rows_of}-of-this-client"
                proxy.arm(when)
                answer = commit_noted(process, note, sql)
                assert proxy.cut.wait(CUT_SECONDS_MAX), "the connection was not cut"
                assert not answer["ok"], f"a COMMIT that was cut {when} was acknowledged: {answer}"
                process.kill()
                # What a client does that has come back: it looks for its note.
                found = rows(witness, f"SELECT count(*) FROM ducklake_snapshots('lake') WHERE commit_extra_info = '{note}'")
                assert found == f"[({landed},)]", (when, found)
                after = int(rows(witness, "SELECT count(*) FROM t").strip("[](),"))
                assert after - before == landed * rows_of, (when, before, after)
        witness.close()
    finally:
        proxy.close()
        catalog.stop()


def write_through_restarts(catalog, directory, writer, stop, outcomes):
    """Inserts until told to stop, coming back whenever the server went away; notes what became of each key."""
    process, number = None, 0
    while not stop.is_set():
        if process is None:
            process = attach_when_possible(catalog, directory, stop)
            continue
        key = writer * 100000 + number
        number += 1
        sql = f"INSERT INTO t VALUES ({key})" if number % 3 else f"INSERT INTO t SELECT {key} FROM range({ROWS_PER_FILE})"
        answer = process.run(sql)
        outcomes[key] = (answer["ok"], 1 if number % 3 else ROWS_PER_FILE)
        if not answer["ok"] and "DuckDB process ended" in answer["error"]:
            process = None
    if process:
        process.kill()


def attach_when_possible(catalog, directory, stop):
    """A DuckDB process with the lake in use, as soon as a server is there."""
    while not stop.is_set():
        process = Process(STATEMENT_SECONDS_MAX)
        data = os.path.join(directory, "files")
        if process.run(f"ATTACH 'ducklake:{catalog.connection()}' AS lake (DATA_PATH '{data}')")["ok"] and process.run("USE lake")["ok"]:
            return process
        process.kill()
        time.sleep(0.1)
    return None


def server_restarted_under_load(directory, binary):
    """Servers end and are killed while processes write: each insert is there exactly once, or its client was told and it is there once or not at all."""
    catalog = Moraine(directory, binary)
    catalog.start()
    try:
        assert attach(catalog, directory).run("CREATE TABLE t(k INTEGER)")["ok"]
        stop, outcomes = threading.Event(), {}
        arguments = [(catalog, directory, writer, stop, outcomes) for writer in range(WRITERS)]
        writers = [threading.Thread(target=write_through_restarts, args=each) for each in arguments]
        for writer in writers:
            writer.start()
        for number in range(RESTARTS):
            reached = len(outcomes)
            deadline = time.monotonic() + CUT_SECONDS_MAX
            while sum(ok for ok, _ in list(outcomes.values())[reached:]) < 2 * WRITERS and time.monotonic() < deadline:
                time.sleep(0.02)
            if number % 2:
                catalog.kill()
            else:
                catalog.restart()
        time.sleep(1)
        stop.set()
        for writer in writers:
            writer.join()
        process = attach(catalog, directory)
        counts = dict(ast.literal_eval(rows(process, "SELECT k, count(*) FROM t GROUP BY k")))
        acknowledged = 0
        for key, (ok, size) in outcomes.items():
            acknowledged += ok
            there = counts.pop(key, 0)
            assert there == size or (there == 0 and not ok), f"insert {key} of {size} rows ({ok}) is there {there} times"
        assert not counts, f"rows that nobody wrote: {counts}"
        total = sum(size for key, (ok, size) in outcomes.items() if ok)
        assert int(rows(process, "SELECT count(*) FROM t").strip("[](),")) >= total
        assert rows(process, "SELECT count(*) - count(DISTINCT rowid) FROM t") == "[(0,)]"
        failed = len(outcomes) - acknowledged
        assert acknowledged > WRITERS and failed > 0, (acknowledged, failed)
        process.close()
    finally:
        catalog.stop()
    return f"{acknowledged} inserts acknowledged, {failed} told that they failed, {RESTARTS} restarts"


SCENARIOS = [connection_lost_at_commit, server_restarted_under_load]
