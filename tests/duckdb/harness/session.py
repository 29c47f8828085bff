"""The vocabulary in which sessions are written, and how one is played on a catalog.

A session is a list of steps. A step that is a string is a statement of client "a", with the lake attached as
`lake` and in use. The other kinds of steps are made by the functions below. In statements, `$DATA` is the
lake's data directory, `$SAME` and `$OTHER` are connection strings of two more lakes (see catalogs.py).

`reads` are statements that are run four times: at the end of the session, by a new process, by a new process
after the server was restarted, and by a new process after the server was killed.
"""

import dataclasses
import os

from harness.client import Process

STATEMENT_SECONDS_MAX = 60


@dataclasses.dataclass(frozen=True)
class On:
    """A statement of another client than "a". On a Postgres catalog every client is a process of its own."""

    client: str
    sql: str


@dataclasses.dataclass(frozen=True)
class Together:
    """Statements that several clients run at the same moment."""

    statements: tuple


@dataclasses.dataclass(frozen=True)
class Differs:
    """A statement whose result is known not to be the reference's: what it is instead, and why."""

    sql: str
    ok: bool
    text: str
    why: str


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that happens to the clients or to the server: "reopen", "restart" or "kill"."""

    what: str


def on(client, sql):
    """A statement of another client; the lake is attached when the client first speaks."""
    return On(client, sql)


def together(*statements):
    """Statements `on` different clients, handed over at the same moment."""
    return Together(statements)


def differs(sql, rows, why):
    """A statement on which every Postgres catalog answers `rows`, and not what the reference answers."""
    return Differs(sql, True, rows, why)


def fails(sql, error, why):
    """A statement that fails on every Postgres catalog with an error that begins with `error`."""
    return Differs(sql, False, error, why)


REOPEN = Event("reopen")  # all clients end; the next statement comes from a new process
RESTART = Event("restart")  # as REOPEN, and the server ends in good order and starts again
KILL = Event("kill")  # as RESTART, but the server is killed


@dataclasses.dataclass(frozen=True)
class Session:
    """A named list of steps, the options of its ATTACH, and statements that each process runs before it."""

    name: str
    steps: list
    reads: list = dataclasses.field(default_factory=list)
    attach: str = ""
    before: tuple = ()

    def script(self):
        """All steps in order, the reads' repetitions included."""
        script = [*self.steps, *self.reads]
        for event in (REOPEN, RESTART, KILL) if self.reads else ():
            script += [event, *self.reads]
        return script


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of one statement. `step` is what the session's author wrote, for the report."""

    step: str
    ok: bool
    text: str
    differs: Differs = None


class Player:
    """Plays one session on one catalog, in one directory, and records the outcome of each statement."""

    def __init__(self, session, catalog, directory):
        self.session = session
        self.catalog = catalog
        self.directory = directory
        self.data = os.path.join(directory, "files")
        os.makedirs(self.data)
        self.processes = {}
        self.attached = set()
        self.recording = []
        self.part = ""

    def play(self):
        """Runs the whole session. The server is stopped on every path out, and its bad end is an error."""
        self.catalog.start()
        try:
            for step in self.session.script():
                self._step(step)
            self._end_clients()
        finally:
            for process in self.processes.values():
                process.kill()
            self.catalog.stop()
        return self.recording

    def _step(self, step):
        if isinstance(step, Event):
            self._end_clients()
            if step.what != "reopen":
                getattr(self.catalog, step.what)()
            self.part = f"after {step.what}: "
        elif isinstance(step, Together):
            self._together(step.statements)
        elif isinstance(step, Differs):
            self._record(step.sql, self._ask("a", step.sql), step)
        elif isinstance(step, On):
            self._record(f"{step.client}: {step.sql}", self._ask(step.client, step.sql))
        else:
            self._record(step, self._ask("a", step))

    def _together(self, statements):
        for statement in statements:
            self._attach(statement.client)
        if self.catalog.processes_share_it:
            for statement in statements:
                self._process(statement.client).send(statement.client, self._fill(statement.sql))
            for statement in statements:
                answer = self._process(statement.client).receive()
                self._record(f"{statement.client}, together: {statement.sql}", answer)
        else:
            for statement in statements:
                answer = self._ask(statement.client, statement.sql)
                self._record(f"{statement.client}, together: {statement.sql}", answer)

    def _ask(self, client, sql):
        self._attach(client)
        return self._process(client).run(self._fill(sql), client)

    def _attach(self, client):
        """The lake is attached once in each process and put in use by each client."""
        process = self._process(client)
        if process not in self.attached:
            for sql in (*self.session.before, self._attach_sql()):
                self._must(process.run(sql, client))
            self.attached.add(process)
        if (process, client) not in self.attached:
            self._must(process.run("USE lake", client))
            self.attached.add((process, client))

    def _must(self, answer):
        """Without its lake a session cannot go on."""
        if not answer["ok"]:
            raise RuntimeError(f"{self.part}cannot attach the lake: {answer['error']}")

    def _attach_sql(self):
        options = ", ".join(filter(None, [f"DATA_PATH '{self.data}'", self.session.attach]))
        return f"ATTACH 'ducklake:{self.catalog.connection()}' AS lake ({options})"

    def _process(self, client):
        key = client if self.catalog.processes_share_it else "all"
        if key not in self.processes:
            self.processes[key] = Process(STATEMENT_SECONDS_MAX)
        return self.processes[key]

    def _end_clients(self):
        for process in self.processes.values():
            process.close()
        self.processes = {}
        self.attached = set()

    def _fill(self, sql):
        sql = sql.replace("$DATA", self.data)
        sql = sql.replace("$SAME", self.catalog.connection("same"))
        return sql.replace("$OTHER", self.catalog.connection("other"))

    def _record(self, step, answer, known=None):
        text = f"{', '.join(answer['columns'])} | {answer['rows']}" if answer["ok"] else answer["error"]
        self.recording.append(Outcome(self.part + step, answer["ok"], self._plain(text), known))

    def _plain(self, text):
        """The same text whatever directory, port and database name the session was given."""
        for which in ("other", "same", "main"):
            text = text.replace(self.catalog.connection(which), "$CONNECTION")
        return text.replace(self.directory, "$DIRECTORY")
