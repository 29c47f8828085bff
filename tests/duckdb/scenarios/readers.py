"""Servers that only read beside one that writes, checkpoints, and snapshots that are expired under somebody's eyes."""

import json
import os
import subprocess
import threading

from harness.catalogs import Moraine
from harness.client import Process
from scenarios.crashes import STATEMENT_SECONDS_MAX, attach, rows

READERS = 2
TRANSFERS = 25
ACCOUNTS = 8
COMMAND_SECONDS_MAX = 60
RETRIED_WORDS = ("primary key", "unique", "conflict", "concurrent")


class ReadingMoraine(Moraine):
    """A `moraine serve --read-only` on the lakes of another server."""

    def __init__(self, writer, directory, binary, *options):
        self.options = options
        super().__init__(directory, binary, root=writer.root, database=writer.database)

    def command(self):
        """As any server, reading only."""
        return super().command() + ["--read-only", *self.options]


def reading(writer, directory, binary, name, *options):
    """A running server that only reads, with a directory of its own for its log."""
    place = os.path.join(directory, name)
    os.makedirs(place)
    server = ReadingMoraine(writer, place, binary, *options)
    server.start()
    return server


def attach_to_read(catalog, directory):
    """A DuckDB process with the lake in use, read-only."""
    process = Process(STATEMENT_SECONDS_MAX)
    data = os.path.join(directory, "files")
    answer = process.run(f"ATTACH 'ducklake:{catalog.connection()}' AS lake (DATA_PATH '{data}', READ_ONLY)")
    assert answer["ok"], answer
    assert process.run("USE lake")["ok"]
    return process


def moraine(binary, *arguments):
    """Runs a command of moraine, which must succeed; what it printed."""
    done = subprocess.run([binary, *arguments], capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def watch(process, done, seen):
    """Looks at the accounts again and again: what is moved between them is never seen on its way."""
    while not done.is_set():
        answer = process.run("SELECT sum(amount), count(*), (SELECT count(*) FROM moves) FROM accounts")
        seen.append(answer)


def readers_beside_a_writer(directory, binary):
    """Readers see each transaction whole while it is written, keep up, time travel, and change nothing."""
    writer = Moraine(directory, binary)
    writer.start()
    readers = []
    try:
        process = attach(writer, directory)
        for sql in (
            f"CREATE TABLE accounts AS SELECT i AS id, 100 AS amount FROM range({ACCOUNTS}) r(i)",
            "CREATE TABLE moves(id INTEGER)",
        ):
            assert process.run(sql)["ok"]
        first = int(rows(process, "SELECT max(snapshot_id) FROM ducklake_snapshots('lake')").strip("[](),"))
        readers = [reading(writer, directory, binary, f"reader{n}", "--poll-interval", "50ms") for n in range(READERS)]
        watchers = [attach_to_read(reader, directory) for reader in readers]
        done, seen = threading.Event(), [[] for _ in watchers]
        threads = [threading.Thread(target=watch, args=(w, done, s)) for w, s in zip(watchers, seen)]
        for thread in threads:
            thread.start()
        for number in range(TRANSFERS):
            source, target = number % ACCOUNTS, (number * 3 + 1) % ACCOUNTS
            for sql in (
                "BEGIN",
                f"UPDATE accounts SET amount = amount - 10 WHERE id = {source}",
                f"UPDATE accounts SET amount = amount + 10 WHERE id = {target}",
                f"INSERT INTO moves VALUES ({number})",
                "COMMIT",
            ):
                answer = process.run(sql)
                assert answer["ok"], (sql, answer)
        done.set()
        for thread in threads:
            thread.join()
        states = set()
        for answer in (answer for looks in seen for answer in looks):
            assert answer["ok"], answer
            total, accounts, moves = eval(answer["rows"])[0]
            assert (total, accounts) == (100 * ACCOUNTS, ACCOUNTS), answer
            states.add(moves)
        assert len(states) > 2, f"the watchers saw only {states}"
        for watcher in watchers:
            keeps_up(watcher, "SELECT count(*) FROM moves", f"[({TRANSFERS},)]")
            assert rows(watcher, f"SELECT count(*) FROM moves AT (VERSION => {first})") == "[(0,)]"
            watcher.close()
        a_change_is_refused(readers[0], directory)
        assert process.run("INSERT INTO moves VALUES (1000)")["ok"], "the writer goes on"
        process.close()
    finally:
        for server in [*readers, writer]:
            server.stop()
    return f"{sum(map(len, seen))} looks, {len(states)} states of {TRANSFERS + 1}"


def keeps_up(process, sql, expected):
    """The reader comes to see what the writer has committed."""
    for _ in range(100):
        if rows(process, sql) == expected:
            return
    raise AssertionError(f"{sql}: never {expected}")


def a_change_is_refused(reader, directory):
    """Attached to write, a reader refuses each change in words that DuckLake does not try again."""
    process = attach(reader, directory)
    for sql in ("INSERT INTO moves VALUES (1)", "CREATE TABLE u(a INTEGER)", "DELETE FROM moves", "CALL ducklake_expire_snapshots('lake', older_than => now())"):
        answer = process.run(sql)
        if "expire" in sql and answer["ok"]:
            continue  # there was nothing to expire
        assert not answer["ok"] and "it only reads" in answer["error"], (sql, answer)
        assert not any(word in answer["error"].lower() for word in RETRIED_WORDS), answer
    process.close()
    missing = Process(STATEMENT_SECONDS_MAX)
    nowhere = reader.connection("other")
    for options in ("READ_ONLY", f"DATA_PATH '{directory}/elsewhere'"):
        answer = missing.run(f"ATTACH 'ducklake:{nowhere}' AS other ({options})")
        assert not answer["ok"], answer
        assert "only reads" in answer["error"] or "does not exist" in answer["error"], answer
    missing.close()


def a_reader_at_a_checkpoint_while_the_writer_expires_and_compacts(directory, binary):
    """A checkpoint made beside a server shows its lake, whatever is expired, flushed and merged afterwards, until it is deleted."""
    writer = Moraine(directory, binary)
    writer.start()
    reader = None
    try:
        process = attach(writer, directory)
        for sql in (
            "CREATE TABLE t(a INTEGER, b VARCHAR)",
            *[f"INSERT INTO t VALUES ({number}, 'inlined')" for number in range(5)],
            *[f"INSERT INTO t SELECT {number}, 'file' FROM range(100)" for number in range(3)],
            "UPDATE t SET b = 'updated' WHERE a = 1 AND b = 'inlined'",
        ):
            assert process.run(sql)["ok"], sql
        question = "SELECT b, count(*), sum(a) FROM t GROUP BY b ORDER BY b"
        history = "SELECT snapshot_id, changes FROM ducklake_snapshots('lake') ORDER BY snapshot_id"
        before = (rows(process, question), rows(process, history))
        made = json.loads(moraine(binary, "checkpoint", "create", writer.root, "--name", "kept", "--lifetime", "1h", "--json"))
        assert [kept["name"] for kept in made] == ["kept"], made
        assert process.run("INSERT INTO t VALUES (77, 'later')")["ok"], "the server goes on"
        reader = reading(writer, directory, binary, "reader", "--checkpoint", made[0]["id"])
        pinned = attach_to_read(reader, directory)
        for sql in (
            "DELETE FROM t WHERE a = 2",
            "SELECT * FROM ducklake_flush_inlined_data('lake')",
            "SELECT * FROM ducklake_merge_adjacent_files('lake')",
            "SELECT * FROM ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)",
            "INSERT INTO t VALUES (78, 'later')",
        ):
            assert process.run(sql)["ok"], (sql, process.run(sql))
        assert rows(process, question) != before[0]
        assert (rows(pinned, question), rows(pinned, history)) == before
        assert rows(pinned, "SELECT count(*) FROM t AT (VERSION => 3)") == "[(2,)]"
        again = attach_to_read(reader, directory)
        assert (rows(again, question), rows(again, history)) == before
        for client in (pinned, again):
            client.close()
        assert "kept" in moraine(binary, "checkpoint", "list", writer.root)
        assert "checkpoint kept" in moraine(binary, "info", writer.root)
        moraine(binary, "checkpoint", "delete", writer.root, "kept")
        assert json.loads(moraine(binary, "checkpoint", "list", writer.root, "--json")) == []
        refused = subprocess.run([binary, "flush", writer.root], capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX)
        assert refused.returncode == 1 and "a server has" in refused.stderr, refused
        assert process.run("INSERT INTO t VALUES (79, 'later')")["ok"], "the server was not shut out"
        process.close()
    finally:
        for server in filter(None, [reader, writer]):
            server.stop()


def snapshots_expired_under_an_open_transaction(directory, binary):
    """A transaction goes on at its snapshot after it has been expired; what it then writes is committed whole or refused."""
    catalog = Moraine(directory, binary)
    catalog.start()
    try:
        one, other = attach(catalog, directory), attach(catalog, directory)
        for sql in ("CREATE TABLE t(a INTEGER)", "INSERT INTO t VALUES (1), (2)", "INSERT INTO t SELECT 3 FROM range(100)"):
            assert one.run(sql)["ok"]
        question = "SELECT count(*), sum(a) FROM t"
        assert one.run("BEGIN")["ok"]
        before = rows(one, question)
        for sql in (
            "UPDATE t SET a = a + 1 WHERE a < 3",
            "SELECT * FROM ducklake_flush_inlined_data('lake')",
            "SELECT * FROM ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)",
        ):
            answer = other.run(sql)
            assert answer["ok"], (sql, answer)
        assert rows(one, question) == before, "the transaction has moved"
        inserted = one.run("INSERT INTO t VALUES (1000)")
        committed = one.run("COMMIT")
        one.run("ROLLBACK")
        found = rows(other, "SELECT count(*) FROM t WHERE a = 1000")
        assert found == ("[(1,)]" if inserted["ok"] and committed["ok"] else "[(0,)]"), (inserted, committed, found)
        assert rows(other, "SELECT count(*), sum(a) FROM t WHERE a < 1000") == "[(102, 305)]"
        assert rows(one, "SELECT count(*), sum(a) FROM t WHERE a < 1000") == "[(102, 305)]"
        for process in (one, other):
            process.close()
    finally:
        catalog.stop()
    return "committed" if committed["ok"] else f"refused: {committed['error'][:60]}"


SCENARIOS = [
    readers_beside_a_writer,
    a_reader_at_a_checkpoint_while_the_writer_expires_and_compacts,
    snapshots_expired_under_an_open_transaction,
]
