"""What a lake's catalog is kept in: a DuckDB file (the reference), a moraine server, any other Postgres server.

A catalog lives in a directory of its own, made for one session. `connection(which)` is what follows
`ducklake:` in an ATTACH, for one of three lakes: "main", "same" (another lake that a Postgres catalog keeps in
the same database, under another METADATA_SCHEMA) and "other" (a lake in a database of its own).
"""

import os
import signal
import subprocess
import time
import uuid

START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 60
CHECK_SECONDS_MAX = 60


class DuckDbFile:
    """The reference: DuckLake on a DuckDB file. Only one process at a time can open it."""

    name = "a DuckDB file"
    processes_share_it = False

    def __init__(self, directory):
        self.directory = directory

    def connection(self, which="main"):
        """A file for each lake: one DuckDB cannot attach the same file twice."""
        return os.path.join(self.directory, which + ".ducklake")

    def start(self):
        """A file needs no server."""

    def restart(self):
        """A file needs no server; the clients are opened anew all the same."""

    def kill(self):
        """A file needs no server; the clients are opened anew all the same."""

    def stop(self):
        """A file needs no server."""


class Postgres:
    """Any other server of Postgres catalogs: to see whether a difference is moraine's or DuckLake's own."""

    name = "the other server"
    processes_share_it = True

    def __init__(self, connection, prepare):
        self.template = connection
        self.prepare = prepare
        self.database = "d" + uuid.uuid4().hex[:12]

    def connection(self, which="main"):
        """The connection string given on the command line, with {db} filled in."""
        return "postgres:" + self.template.replace("{db}", self._database(which))

    def _database(self, which):
        return self.database + "_other" if which == "other" else self.database

    def start(self):
        """Lets the caller's command make the databases."""
        for which in ("main", "other") if self.prepare else ():
            command = self.prepare.replace("{db}", self._database(which))
            subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)

    def restart(self):
        """Somebody else's server is left alone."""

    def kill(self):
        """Somebody else's server is left alone."""

    def stop(self):
        """Somebody else's server is left alone."""


class Moraine:
    """A `moraine serve` on a lake in a local directory, listening on a loopback port that was free."""

    name = "moraine"
    processes_share_it = True
    # More of the command line of `moraine serve`, and of its environment.
    arguments = ()
    environment = {}

    def __init__(self, directory, binary, listen="127.0.0.1:0", root=None, database=None):
        self.binary = binary
        self.listen = listen
        self.root = root or os.path.join(directory, "lake")
        self.log_path = os.path.join(directory, "server.log")
        self.database = database or "d" + uuid.uuid4().hex[:12]
        self.server = None

    def connection(self, which="main"):
        """One server serves every lake; the database name says which."""
        host, port = self.listen.rsplit(":", 1)
        database = self.database + "_other" if which == "other" else self.database
        return f"postgres:host={host} port={port} user=moraine dbname={database}"

    def command(self):
        """What starts the server."""
        return [self.binary, "serve", self.root, "--listen", self.listen, *self.arguments]

    def start(self):
        """Starts the server and waits until it says where it listens."""
        with open(self.log_path, "ab") as log:
            self.server = subprocess.Popen(
                self.command(),
                env={**os.environ, **self.environment},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline:
            line = self.server.stdout.readline()
            if not line:
                break
            if "listening on " in line:
                self.listen = line.split("listening on ", 1)[1].split()[0]
                return
        self.server.kill()
        raise RuntimeError(f"moraine serve did not start: {self.log()[-2000:]}")

    def restart(self):
        """Asks the server to end, as an operator would, and starts it again on the same port."""
        self.stop()
        self.start()

    def kill(self):
        """Ends the server as a crash would and starts it again on the same port."""
        self.server.kill()
        self.server.wait()
        self.server.stdout.close()
        self.start()

    def stop(self):
        """Asks the server to end; one that does not, or not well, is a failure."""
        if self.server is None or self.server.stdout.closed:
            return
        self.server.send_signal(signal.SIGTERM)
        try:
            code = self.server.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.server.kill()
            code = f"none within {STOP_SECONDS_MAX} s"
            self.server.wait()
        self.server.stdout.close()
        log = self.log()
        if code != 0 or "panicked" in log:
            raise RuntimeError(f"moraine serve ended badly (exit {code}): {log[-2000:]}")
        self.check()

    def check(self):
        """Whatever clients did, every invariant of the format holds on every lake of the stopped server."""
        if not os.path.isdir(os.path.join(self.root, "catalog")):
            return
        command = [self.binary, "check", self.root]
        checked = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_SECONDS_MAX, check=False)
        if checked.returncode != 0:
            raise RuntimeError(f"moraine check ended with {checked.returncode}: {checked.stdout}{checked.stderr}")

    def log(self):
        """What the server wrote to its log so far."""
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()
