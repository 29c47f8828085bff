"""Each file in a process and a folder of its own, a few at a time, with a limit of time."""

import concurrent.futures
import dataclasses
import glob
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import suite as suites

PLAYER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "player.py")
LOG_SHOWN_BYTES = 1500
LOADED = ["ducklake", "postgres_scanner"]
DATABASE_CONFIG = {
    "allow_unsigned_extensions": "true",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


@dataclasses.dataclass
class Pool:
    """How files are run."""

    suite: suites.Suite
    connection: str
    """What follows `postgres:`, with {db} for the database."""
    directory: str
    jobs: int
    timeout_seconds: float
    prepare: str = None
    """A shell command that makes the database {db}, for a server that does not do so by itself."""

    def run(self, files, report):
        """Runs the files and calls `report(file, outcome)` as they end."""
        extensions = installed_extensions()
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            running = {pool.submit(self.outcome, file, extensions): file for file in files}
            for done in concurrent.futures.as_completed(running):
                report(running[done], done.result())

    def outcome(self, file, extensions):
        """Runs one file."""
        started = time.monotonic()
        name = hashlib.sha1(file.encode()).hexdigest()[:10]
        place = os.path.join(self.directory, name)
        specification = self.specification(file, "suite_" + name, place, extensions)
        for directory in (specification["scratch"], specification["working_directory"]):
            os.makedirs(directory)
        # Files name data and other tests relative to the checkout.
        for each in ("data", "test"):
            target = os.path.join(self.suite.root, each)
            if os.path.exists(target):
                os.symlink(target, os.path.join(specification["working_directory"], each))
        with open(os.path.join(place, "specification.json"), "w", encoding="utf-8") as output:
            json.dump(specification, output)
        try:
            self.prepare_databases(file, "suite_" + name)
            outcome = self.play(specification, place)
        except (OSError, subprocess.SubprocessError) as error:
            outcome = {"status": "failed", "reason": f"it could not be run: {error}"}
        shutil.rmtree(place, ignore_errors=True)
        outcome["wall_seconds"] = round(time.monotonic() - started, 3)
        return outcome

    def specification(self, file, database, place, extensions):
        """What the player is told; see player.py."""
        connection = "postgres:" + self.connection.replace("{db}", database)
        return {
            "suite": self.suite.root,
            "file": file,
            "working_directory": os.path.join(place, "working_directory"),
            "scratch": os.path.join(place, "scratch"),
            "outcome": os.path.join(place, "outcome.json"),
            "progress": os.path.join(place, "line"),
            "environment": {**self.suite.environment, "DUCKLAKE_CONNECTION": connection},
            "on_init": self.suite.on_init,
            "on_new_connection": self.suite.on_new_connection,
            "skip_error_messages": self.suite.skip_error_messages,
            "sort_style": self.suite.sort_style,
            "extensions": extensions,
            "load": LOADED,
            "database": DATABASE_CONFIG,
        }

    def prepare_databases(self, file, database):
        """Makes the databases that the file opens, where the server does not."""
        if self.prepare is None:
            return
        with open(os.path.join(self.suite.root, file), encoding="utf-8") as text:
            names = suites.databases(text.read(), database)
        for name in names:
            command = self.prepare.replace("{db}", name)
            subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)

    def play(self, specification, place):
        """Runs the player; what it leaves no outcome of was a crash or took too long."""
        log_path = os.path.join(place, "log")
        with open(log_path, "wb") as log:
            player = subprocess.Popen(
                [sys.executable, PLAYER, os.path.join(place, "specification.json")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "HOME": place, "TZ": os.environ.get("TZ", "UTC")},
            )
            try:
                ending = f"exit status {player.wait(self.timeout_seconds)}"
                status = "crashed"
            except subprocess.TimeoutExpired:
                ending, status = f"over {self.timeout_seconds:g} s", "timed out"
            end_group(player)
        try:
            with open(specification["outcome"], encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            line = read_line_number(specification["progress"])
            with open(log_path, encoding="utf-8", errors="replace") as log:
                said = log.read()[-LOG_SHOWN_BYTES:]
            return {"status": status, "line": line, "reason": f"{ending} {said}".strip()}


def end_group(player):
    """Ends the player and whatever it has started."""
    try:
        os.killpg(player.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    player.wait()


def read_line_number(path):
    """The line that a player has reached; None when it has not begun."""
    try:
        with open(path, encoding="utf-8") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def installed_extensions():
    """Name and path of the DuckDB extensions whose wheels are installed."""
    found = {}
    for directory in sys.path:
        pattern = os.path.join(directory, "duckdb_extension_*", "extensions", "*", "*.duckdb_extension")
        for path in sorted(glob.glob(pattern)):
            found.setdefault(os.path.basename(path).split(".")[0], path)
    missing = [name for name in LOADED if name not in found]
    if missing:
        raise SystemExit(
            f"the wheel of the DuckDB extension {missing[0]} is not installed: install tests/duckdb/requirements.txt "
            "and tests/conformance/requirements.txt, or run `cargo xtask conformance`, which does it"
        )
    return found
