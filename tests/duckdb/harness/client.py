"""One DuckDB process that runs what it is told, statement by statement.

A DuckDB in a process of its own can crash, be killed or hang without taking the run with it. The two sides
speak JSON, one object a line: {"client": "a", "sql": "..."} in, {"ok": true, "columns": [...], "rows": "..."}
or {"ok": false, "error": "..."} out. Several named clients may live in one process; each is a connection
of its own to the same DuckDB.
"""

import importlib.util
import json
import os
import subprocess
import sys
import threading

EXTENSIONS = ("ducklake", "postgres_scanner", "sqlite_scanner")
HARD_LIMIT_EXTRA_SECONDS = 20


def extension_path(name):
    """Where the wheel of a DuckDB extension put it, so that nothing is downloaded while sessions run."""
    spec = importlib.util.find_spec("duckdb_extension_" + name)
    if spec is None:
        raise SystemExit(
            f"the Python package duckdb-extension-{name.replace('_', '-')} is missing: "
            "install tests/duckdb/requirements.txt, or run `cargo xtask test`, which does it"
        )
    versions = os.path.join(list(spec.submodule_search_locations)[0], "extensions")
    return os.path.join(versions, sorted(os.listdir(versions))[-1], name + ".duckdb_extension")


def connect(threads=2):
    """An in-memory DuckDB with the extensions that a lake needs, in the time zone that the sessions expect."""
    import duckdb

    connection = duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": threads})
    connection.execute("SET python_enable_replacements=false")
    for name in EXTENSIONS:
        connection.execute(f"LOAD '{extension_path(name)}'")
    connection.execute("SET TimeZone='UTC'")
    return connection


def run(connection, sql, timeout_seconds):
    """Runs one statement and puts all of its result, or its error, in a form that can be compared."""
    timer = threading.Timer(timeout_seconds, connection.interrupt)
    timer.start()
    try:
        cursor = connection.execute(sql)
        columns = [f"{column[0]} {column[1]}" for column in cursor.description or []]
        return {"ok": True, "columns": columns, "rows": repr(cursor.fetchall())}
    except Exception as error:  # whatever DuckDB raises is a result to compare
        return {"ok": False, "error": f"{type(error).__name__}: {error}"}
    finally:
        timer.cancel()


def serve():
    """The child's side: answers until its input ends."""
    root = connect()
    clients = {}
    for line in sys.stdin:
        order = json.loads(line)
        if order["client"] not in clients:
            clients[order["client"]] = root.cursor()
        answer = run(clients[order["client"]], order["sql"], order["timeout_seconds"])
        print(json.dumps(answer), flush=True)


class Process:
    """The parent's side of one DuckDB process."""

    def __init__(self, timeout_seconds):
        self.timeout_seconds = timeout_seconds
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        self.child = subprocess.Popen(
            [sys.executable, "-m", "harness.client"],
            cwd=here,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def send(self, client, sql):
        """Hands over a statement without waiting, so that several processes can work at the same moment."""
        order = {"client": client, "sql": sql, "timeout_seconds": self.timeout_seconds}
        try:
            self.child.stdin.write(json.dumps(order) + "\n")
            self.child.stdin.flush()
        except OSError:
            pass  # the process is gone: receive() says so

    def receive(self):
        """The answer to the statement handed over last; a process that died or hangs is an error like any other."""
        timer = threading.Timer(self.timeout_seconds + HARD_LIMIT_EXTRA_SECONDS, self.child.kill)
        timer.start()
        line = self.child.stdout.readline()
        timer.cancel()
        if line:
            return json.loads(line)
        code = self.child.wait()
        return {"ok": False, "error": f"the DuckDB process ended with {code}: {self.child.stderr.read()[-600:]}"}

    def run(self, sql, client="a"):
        """Runs one statement and waits for its answer."""
        self.send(client, sql)
        return self.receive()

    def kill(self):
        """Ends the process as a crash would: nothing is closed or rolled back by it."""
        self.child.kill()
        self._reap()

    def close(self):
        """Ends the process in good order."""
        try:
            self.child.stdin.close()
        except OSError:
            pass
        try:
            self.child.wait(self.timeout_seconds)
        except subprocess.TimeoutExpired:
            self.child.kill()
        self._reap()

    def _reap(self):
        self.child.wait()
        for pipe in (self.child.stdin, self.child.stdout, self.child.stderr):
            try:
                pipe.close()
            except OSError:
                pass


if __name__ == "__main__":
    serve()
