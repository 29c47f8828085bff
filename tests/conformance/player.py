"""Plays one sqllogictest file, in a process of its own.

    python player.py SPECIFICATION.json

The specification, written by pool.py, says what to play, where, and on which catalog; the outcome goes to a file
that it names. A crash of DuckDB takes only this process along.
"""

import ctypes
import gzip
import json
import os
import re
import shutil
import sys
import threading
import time
import traceback
import uuid

import answers
import sqllogic
from duckdb_api import Library

ALWAYS_MET = {
    "64bit", "block_size", "no_alternative_verify", "no_extension_autoloading", "no_latest_storage",
    "no_vector_verification", "noforcestorage", "notmusl", "notwindows", "skip_reload", "vector_size",
}  # fmt: skip
NEVER_MET = {"disk_space", "mingw", "ram", "windows"}
OTHER_CATALOGS = {"sqlite_scanner"}
"""An extension that says "only for this catalog" in a file which opens the catalog under test."""

CATALOG_VARIABLE = "DUCKLAKE_CONNECTION"
SLEEP_SECONDS = {"second": 1, "millisecond": 1e-3, "microsecond": 1e-6, "nanosecond": 1e-9}

SIGNED = "tinyint smallint integer bigint hugeint"
UNSIGNED = "utinyint usmallint uinteger ubigint uhugeint"
NAMED_LISTS = {
    "<signed>": SIGNED,
    "<unsigned>": UNSIGNED,
    "<integral>": f"{SIGNED} {UNSIGNED}",
    "<numeric>": f"{SIGNED} {UNSIGNED} float double",
    "<alltypes>": f"{SIGNED} {UNSIGNED} float double bool interval varchar",
    "<compression>": "none uncompressed rle bitpacking",
}


class Skip(Exception):
    """The file asks for something that is not there."""


class Halt(Exception):
    """The file ends here."""


class Failure(Exception):
    """A step did not do what the file expects."""

    def __init__(self, step, message):
        super().__init__(message)
        self.step = step


class Scope:
    """Loop variables and connections: one for the file, one more for each thread of a concurrent loop."""

    def __init__(self, variables=(), concurrent=False):
        self.variables = list(variables)
        self.connections = {}
        self.concurrent = concurrent


class Player:
    """A DuckDB, and the state of the file that is played on it."""

    def __init__(self, specification):
        self.specification = specification
        self.library = Library()
        self.directory = specification["scratch"]
        self.forced = specification["environment"]
        self.variables = {}
        name, here = specification["file"], os.getcwd()
        self.builtin = {
            "TEST_DIR": self.directory,
            "UUID": str(uuid.uuid4()),
            "TEST_NAME": name,
            "BASE_TEST_NAME": re.sub(r"[/\\]", "_", name),
            "WORKING_DIR": here,
            "WORKING_DIRECTORY": here,
        }
        self.text = ""
        self.labels = {}
        self.skipping = 0
        self.statements = 0
        self.used_catalog = False
        self.failure = None
        self.database, self.opened, self.loaded = None, (None, False), set()
        self.scope = None
        self.progress = os.open(specification["progress"], os.O_RDWR | os.O_CREAT, 0o600)

    def play(self, text):
        """Plays the file; returns when it has passed."""
        self.text = text
        self.open()
        try:
            self.steps(sqllogic.parse(text), self.scope)
        except Halt:
            pass
        if self.statements == 0 and self.skipping:
            raise Skip("the file skips all of itself")

    # --- the database and its connections

    def open(self, path=None, read_only=False):
        """Opens the database with what the suite's configuration asks for."""
        self.opened = (path, read_only)
        config = dict(self.specification["database"])
        if read_only:
            config["access_mode"] = "READ_ONLY"
        self.database = self.library.open_database(path, config)
        self.scope = Scope()
        connection = self.library.connection(self.database)
        self.scope.connections[""] = connection
        sql = "SELECT extension_name FROM duckdb_extensions() WHERE loaded"
        _, _, rows = self.library.run(connection, sql, with_rows=True)
        self.loaded = {row[0] for row in rows}
        for name in self.specification["load"]:
            if not self.load_extension(connection, name):
                raise RuntimeError(f"the wheel of the extension {name} is missing")
        for sql in self.specification["on_init"]:
            self.must_run(connection, self.replaced(sql, self.scope))
        self.prepare(connection, self.scope)

    def close(self):
        """Closes all connections and the database."""
        self.disconnect(self.scope)
        self.library.close(ctypes.byref(self.database))

    def disconnect(self, scope):
        """Closes the connections of a scope."""
        for connection in scope.connections.values():
            self.library.disconnect(ctypes.byref(connection))
        scope.connections.clear()

    def connection(self, scope, name=""):
        """The connection of this name, made when it is first asked for."""
        if name not in scope.connections:
            scope.connections[name] = self.library.connection(self.database)
            self.prepare(scope.connections[name], scope)
        return scope.connections[name]

    def prepare(self, connection, scope):
        """What the suite's configuration wants of a new connection."""
        for sql in self.specification["on_new_connection"]:
            self.must_run(connection, self.replaced(sql, scope))

    def must_run(self, connection, sql):
        """Runs what is not under test."""
        error, _, _ = self.library.run(connection, sql)
        if error:
            raise RuntimeError(f"{sql}: {error}")

    def load_extension(self, connection, name):
        """Loads an extension from its wheel; False when there is none."""
        if name in self.loaded:
            return True
        path = self.specification["extensions"].get(name)
        if path is None:
            return False
        self.must_run(connection, f"LOAD '{path}'")
        self.loaded.add(name)
        return True

    # --- variables and conditions

    def replaced(self, text, scope):
        """The text with variables filled in; inner loops win over outer ones, and those over the file's."""
        if "{" not in text and "__" not in text:
            return text
        if CATALOG_VARIABLE in self.forced and "{" + CATALOG_VARIABLE + "}" in text:
            self.used_catalog = True
        known = scope.variables[::-1] + list(self.variables.items()) + list(self.builtin.items())
        for name, value in known:
            text = text.replace("${%s}" % name, value).replace("{%s}" % name, value)
        return text.replace("__TEST_DIR__", self.directory).replace("__WORKING_DIRECTORY__", os.getcwd())

    def wanted(self, step, scope):
        """Whether `skipif` and `onlyif` let the step run."""
        return all(self.holds(step, condition, scope) == (word == "onlyif") for word, condition in step.conditions)

    def holds(self, step, condition, scope):
        """Whether a condition holds: the name of this database, or a comparison with a loop variable."""
        parts = re.fullmatch(r"(\w+)\s*(<>|!=|>=|<=|=|<|>)\s*(.*)", condition)
        if parts is None:
            return condition.lower() == "duckdb"
        left, right = dict(scope.variables).get(parts[1]), self.replaced(parts[3], scope)
        if left is None:
            raise Failure(step, f"{condition} names no loop variable")
        try:
            left, right = int(left), int(right)
        except ValueError:
            pass
        return {
            "=": left == right,
            "<>": left != right,
            "!=": left != right,
            "<": left < right,
            ">": left > right,
            "<=": left <= right,
            ">=": left >= right,
        }[parts[2]]

    # --- the directives

    def steps(self, steps, scope):
        """Runs steps one after the other; a thread whose neighbour has failed stops."""
        for step in steps:
            if self.failure and scope.concurrent:
                return
            if step.directive == "mode":
                self.skipping += {"skip": 1, "unskip": -1}.get(step.arguments[0], 0)
                continue
            if self.skipping or not self.wanted(step, scope):
                continue
            os.pwrite(self.progress, b"%-12d" % step.line, 0)
            run = getattr(self, "do_" + step.directive.replace("-", "_"), None)
            if run is None:
                raise Failure(step, f"the directive {step.directive} is not known")
            run(step, scope)

    def do_require(self, step, scope):
        """An extension, or a property of the machine or the build."""
        name = step.arguments[0].lower()
        if name in ALWAYS_MET or name.startswith("longdouble"):
            return
        if name in NEVER_MET:
            raise Skip("require " + step.rest)
        if name in OTHER_CATALOGS and "test-env " + CATALOG_VARIABLE in self.text:
            raise Skip(f"only for a catalog of {name}")
        if not self.load_extension(self.connection(scope), name):
            raise Skip(f"require {name}: the extension is not installed")

    def do_require_env(self, step, _scope):
        """A variable of the environment, perhaps with a certain value."""
        name, *value = step.arguments
        found = self.forced.get(name, os.environ.get(name))
        if found is None or (value and found != value[0]):
            raise Skip("require-env " + step.rest)
        self.variables[name] = found

    def do_test_env(self, step, scope):
        """A variable that the suite's configuration may set."""
        name = step.arguments[0]
        value = step.rest[len(name) :].strip()
        value = self.forced.get(name, os.environ.get(name, value))
        self.variables[name] = self.replaced(value, scope)

    def do_load(self, step, scope):
        """Opens another database."""
        arguments = [self.replaced(argument, scope) for argument in step.arguments]
        read_only = "readonly" in arguments
        self.close()
        self.open(arguments[0] if arguments and arguments[0] != "readonly" else None, read_only)
        scope.connections = self.scope.connections

    def do_restart(self, _step, scope):
        """Closes the database and opens it again."""
        self.close()
        self.open(*self.opened)
        scope.connections = self.scope.connections

    def do_reconnect(self, _step, scope):
        """Closes the connections."""
        self.disconnect(scope)

    def do_unzip(self, step, scope):
        """Unpacks a file."""
        source, target = (self.replaced(argument, scope) for argument in step.arguments[:2])
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
        with gzip.open(source) as packed, open(target, "wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)

    def do_sleep(self, step, _scope):
        """Waits."""
        unit = (step.arguments[1] if len(step.arguments) > 1 else "seconds").rstrip("s")
        time.sleep(float(step.arguments[0]) * SLEEP_SECONDS[unit])

    def do_halt(self, _step, _scope):
        """Ends the file."""
        raise Halt

    def do_reset(self, step, _scope):
        """Forgets the result under a label."""
        self.labels.pop(step.arguments[-1], None)

    def ignore(self, _step, _scope):
        """Seeds, tags and thresholds change nothing here."""

    do_set = do_tags = do_hash_threshold = ignore

    def do_loop(self, step, scope):
        """Runs the body for each value, one after the other or all at the same time."""
        arguments = [self.replaced(argument, scope) for argument in step.arguments]
        names, values = loop_values(step.directive, arguments)
        if not step.directive.startswith("concurrent"):
            for value in values:
                scope.variables += zip(names, value)
                self.steps(step.body, scope)
                del scope.variables[-len(names) :]
            return
        variables = [scope.variables + list(zip(names, value)) for value in values]
        threads = [threading.Thread(target=self.branch, args=(step, each)) for each in variables]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failure:
            raise self.failure

    do_foreach = do_concurrentloop = do_concurrentforeach = do_loop

    def branch(self, step, variables):
        """One thread of a concurrent loop."""
        scope = Scope(variables, concurrent=True)
        try:
            self.steps(step.body, scope)
        except BaseException as error:  # the main thread raises it
            self.failure = self.failure or error
        finally:
            self.disconnect(scope)

    # --- statements and queries

    def execute(self, step, scope, connection_name, with_rows):
        """Runs the SQL of a step."""
        sql = self.replaced(step.sql, scope)
        self.statements += 1
        connection = self.connection(scope, connection_name)
        outcome = self.library.run(connection, sql, with_rows)
        if re.search(r"(?i)\bset\b.*time_?\s*zone", sql):
            setting = "SELECT current_setting('TimeZone')"
            error, _, rows = self.library.run(connection, setting, with_rows=True)
            if not error:
                self.library.printer.time_zone = rows[0][0]
        return outcome

    def failed(self, step, error, message):
        """What an error that was not expected amounts to: the suite's configuration skips on some."""
        if any(text in error for text in self.specification["skip_error_messages"]):
            return Skip("an error on which the configuration skips: " + error.split("\n")[0])
        return Failure(step, message)

    def do_statement(self, step, scope):
        """A statement that succeeds, fails, or may do either."""
        mode, *name = step.arguments
        error, _, _ = self.execute(step, scope, name[0] if name else "", with_rows=False)
        if error and (error.startswith("INTERNAL") or "differs from original result!" in error):
            raise Failure(step, "internal error: " + error)
        if mode == "ok":
            if error:
                raise self.failed(step, error, "the statement failed: " + error)
            return
        if mode == "error" and not error:
            raise Failure(step, "the statement succeeded, an error was expected: " + "\n".join(step.expected))
        expected = self.replaced("\n".join(step.expected), scope)
        if error and expected not in error and not answers.matches_pattern(error + "\n", expected):
            raise self.failed(step, error, f"another error: {error}\nexpected: {expected}")

    def do_query(self, step, scope):
        """A query whose rows are compared."""
        types, *rest = step.arguments
        sort = next((word for word in rest if word in answers.SORTS), None)
        before = rest[: rest.index(sort)] if sort else rest
        after = rest[rest.index(sort) + 1 :] if sort else []
        name = next((word for word in before if re.fullmatch(r"con\w*", word)), "")
        error, found, rows = self.execute(step, scope, name, with_rows=True)
        if error:
            raise self.failed(step, error, "the query failed: " + error)
        rows = [[answers.shown(value, number) for value, number in zip(row, found)] for row in rows]
        expected = [self.replaced(line, scope) for line in step.expected]
        sort = sort or self.specification["sort_style"]
        try:
            if len(expected) == 1 and expected[0].startswith("<FILE>:"):
                text = self.answer_file(step, scope, name, expected[0].removeprefix("<FILE>:"))
                answers.check_csv(rows, found, text)
                return
            if after:
                self.check_label(after[0], sorted(rows) if sort == "rowsort" else rows)
                if not expected:
                    return
            if len(found) != len(types):
                raise answers.Mismatch(f"{len(types)} columns expected, the query gives {len(found)}")
            answers.check(rows, found, expected, sort)
        except answers.Mismatch as mismatch:
            raise Failure(step, str(mismatch)) from None

    def check_label(self, label, rows):
        """Queries under one label have one result."""
        digest = answers.digest(rows)
        if self.labels.setdefault(label, digest) != digest:
            raise answers.Mismatch(f"not the result that {label} had before: {rows[: answers.ROWS_SHOWN_MAX]}")

    def answer_file(self, step, scope, connection_name, path):
        """The text of a file of answers. Those of TPC-H lie in DuckDB's repository; its extension has them too."""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return file.read()
        of_tpch = re.search(r"tpch/.*/sf([\d.]+)/q(\d+)\.csv$", path)
        if of_tpch is None:
            raise Failure(step, "no such file: " + path)
        sql = f"SELECT answer FROM tpch_answers() WHERE scale_factor = {of_tpch[1]} AND query_nr = {int(of_tpch[2])}"
        error, _, rows = self.library.run(self.connection(scope, connection_name), sql, with_rows=True)
        if error or not rows:
            raise Failure(step, f"there are no answers for {path}: {error}")
        return rows[0][0]


def loop_values(directive, arguments):
    """The variables of a loop and the tuples of values that they take."""
    if directive.endswith("loop"):
        name, first, end = arguments[:3]
        return [name], [(str(number),) for number in range(int(first), int(end))]
    names, items = arguments[0].split(","), []
    for argument in arguments[1:]:
        if argument in NAMED_LISTS:
            items += NAMED_LISTS[argument].split()
        elif argument.startswith("!"):
            items = [item for item in items if item != argument[1:]]
        else:
            items.append(argument)
    return names, [tuple(item.split(",")) if len(names) > 1 else (item,) for item in items]


def outcome_of(specification):
    """Plays the file of a specification and says how it went."""
    started = time.monotonic()
    outcome, player = {"status": "passed"}, None
    try:
        player = Player(specification)
        with open(os.path.join(specification["suite"], specification["file"]), encoding="utf-8") as file:
            player.play(file.read())
    except Skip as skip:
        outcome = {"status": "skipped", "reason": str(skip)}
    except Failure as failure:
        step = failure.step
        outcome = {"status": "failed", "line": step.line, "reason": str(failure), "sql": step.sql}
    except Exception as error:
        outcome = {"status": "failed", "reason": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
    if player:
        outcome.update(statements=player.statements, used_catalog=player.used_catalog)
    outcome["seconds"] = round(time.monotonic() - started, 3)
    return outcome


def main():
    """Plays what the command line names and leaves at once: taking DuckDB down is not under test."""
    with open(sys.argv[1], encoding="utf-8") as file:
        specification = json.load(file)
    os.chdir(specification["working_directory"])
    outcome = outcome_of(specification)
    unfinished = specification["outcome"] + ".unfinished"
    with open(unfinished, "w", encoding="utf-8") as file:
        json.dump(outcome, file)
    os.rename(unfinished, specification["outcome"])
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
