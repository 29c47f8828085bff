"""DuckDB processes that write one table while another flushes it: nothing is lost and nothing doubled, at any snapshot.

Each writer keeps to rows of its own, and a dictionary beside them that it changes only with a statement that succeeded.
MORAINE_RACE_SECONDS says for how long; without it, for a few seconds.
"""

import ast
import os
import random
import threading
import time

from harness.catalogs import Moraine
from scenarios.crashes import attach, rows

SECONDS = int(os.environ.get("MORAINE_RACE_SECONDS", "6"))
WRITERS = 3
# A table is flushed into ever more files: after so many commits of a writer, the next round has another table.
COMMITS = 12
# What DuckLake says where another transaction came first and it does not try again.
LOST = ("conflict", "Conflict", "has been committed", "already been")


class Writer:
    """One process, its rows, and what they were at each of its commits."""

    def __init__(self, catalog, directory, number):
        self.process = attach(catalog, directory)
        self.number = number
        self.chance = random.Random(number)
        self.held, self.seen, self.lost, self.next = {}, {}, 0, 0
        self.failed = None

    def statement(self, table):
        """A statement, and what the rows are once it has succeeded."""
        after, kind = dict(self.held), self.chance.random()
        some = [key for key in self.held if self.chance.random() < 0.3]
        keys = ", ".join(map(str, some))
        if kind < 0.5 or not some:
            new = range(self.next, self.next + self.chance.randint(1, 4))
            self.next = new.stop
            after.update({key: key for key in new})
            return f"INSERT INTO {table} VALUES " + ", ".join(f"({self.number}, {key}, {key})" for key in new), after
        if kind < 0.8:
            after.update({key: after[key] + 1000 for key in some})
            return f"UPDATE {table} SET v = v + 1000 WHERE w = {self.number} AND k IN ({keys})", after
        return f"DELETE FROM {table} WHERE w = {self.number} AND k IN ({keys})", {k: v for k, v in after.items() if k not in some}

    def write(self, table):
        """Some commits; a failure that is no lost race is kept for whoever waits."""
        try:
            for _ in range(COMMITS):
                sql, after = self.statement(table)
                answer = self.process.run(sql)
                if not answer["ok"]:
                    assert any(word in answer["error"] for word in LOST), (sql, answer)
                    self.lost += 1
                    continue
                self.held = after
                snapshot = rows(self.process, "FROM lake.last_committed_snapshot()")
                self.seen[ast.literal_eval(snapshot)[0][0]] = after
        except Exception as error:  # whatever it is, the thread that waits has to know
            self.failed = error


def flush_until(process, table, is_over, counts):
    """Flushes again and again, and once more in the end."""
    last = False
    while not last:
        last = is_over.is_set()
        answer = process.run(f"SELECT coalesce(sum(rows_flushed), 0)::BIGINT FROM ducklake_flush_inlined_data('lake', table_name => '{table}')")
        assert answer["ok"] or any(word in answer["error"] for word in LOST), answer
        counts.append(bool(answer["ok"]) and answer["rows"] != "[(0,)]")


def compared(process, table, writers):
    """Everybody's rows at everybody's commits, counted, added up and one by one."""
    whole = rows(process, f"SELECT w, k, v FROM {table} ORDER BY ALL")
    expected = sorted((writer.number, key, value) for writer in writers for key, value in writer.held.items())
    assert whole == repr(expected), (whole, expected)
    doubled = rows(process, f"SELECT count(*), count(DISTINCT rowid) FROM {table}")
    assert doubled == f"[({len(expected)}, {len(expected)})]", doubled
    for writer in writers:
        for snapshot, held in writer.seen.items():
            where = f"FROM {table} AT (VERSION => {snapshot}) WHERE w = {writer.number}"
            found = rows(process, f"SELECT count(*), coalesce(sum(v), 0)::BIGINT {where}")
            assert found == f"[({len(held)}, {sum(held.values())})]", (snapshot, found, held)
            found = rows(process, f"SELECT k, v {where} ORDER BY k")
            assert found == repr(sorted(held.items())), (snapshot, found, held)


def flushes_beside_writers(directory, binary):
    """Inserts, updates and deletions of three processes, and the flushes of a fourth."""
    catalog = Moraine(directory, binary)
    catalog.start()
    try:
        flusher = attach(catalog, directory)
        writers = [Writer(catalog, directory, number) for number in range(WRITERS)]
        end, rounds, counts = time.monotonic() + SECONDS, 0, []
        while rounds == 0 or time.monotonic() < end:
            table, is_over = f"t{rounds}", threading.Event()
            assert flusher.run(f"CREATE TABLE {table}(w INTEGER, k INTEGER, v INTEGER)")["ok"]
            for writer in writers:
                writer.held, writer.seen = {}, {}
            threads = [threading.Thread(target=writer.write, args=(table,)) for writer in writers]
            for thread in threads:
                thread.start()
            watch = threading.Thread(target=lambda: [thread.join() for thread in threads] and is_over.set())
            watch.start()
            flush_until(flusher, table, is_over, counts)
            watch.join()
            for writer in writers:
                assert writer.failed is None, writer.failed
            compared(flusher, table, writers)
            rounds += 1
        assert any(counts), "nothing was flushed"
        for process in [flusher, *(writer.process for writer in writers)]:
            process.close()
    finally:
        catalog.stop()
    return f"{rounds} tables, {sum(counts)} of {len(counts)} flushes moved rows, {sum(writer.lost for writer in writers)} races lost"


SCENARIOS = [flushes_beside_writers]
