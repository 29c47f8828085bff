"""What is told about a run: a line for each file, a summary, a JSON file; and the list of files that pass."""

import json
import os
import time

PASSES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "passes.txt")
STATUSES = ("passed", "failed", "crashed", "timed out", "skipped")
REASON_SHOWN_MAX = 600

HEADER = """\
# Files of DuckLake's sqllogictest suite that pass on moraine, at the commit of DuckLake's release for DuckDB 1.5.5.
# A run in which one of them does not pass fails. `cargo xtask conformance --suite CHECKOUT --update` writes the
# list anew: files that were run come or go, the others stay.
"""


class Report:
    """Collects outcomes and prints them as they come."""

    def __init__(self, file_count, beyond):
        self.file_count = file_count
        self.beyond = beyond
        """Files that the suite's configuration for PostgreSQL skips, told apart."""
        self.outcomes = {}
        self.started = time.monotonic()

    def add(self, file, outcome):
        """Prints one outcome."""
        self.outcomes[file] = outcome
        line = f"line {outcome['line']}: " if outcome.get("line") else ""
        reason = outcome.get("reason", "")[:REASON_SHOWN_MAX]
        why = f": {line}{reason}" if reason else ""
        place = f"[{len(self.outcomes)}/{self.file_count}]"
        seconds = outcome.get("wall_seconds", 0)
        print(f"{place} {outcome['status']:9} {seconds:6.1f} s {file}{why}", flush=True)

    def seconds(self):
        """How long the run has taken."""
        return time.monotonic() - self.started

    def count(self, files):
        """How many of the files came out which way."""
        found = [self.outcomes[file]["status"] for file in files]
        return {status: found.count(status) for status in STATUSES}

    def summary(self):
        """Prints the counts."""
        ordinary = [file for file in self.outcomes if file not in self.beyond]
        beyond = [file for file in self.outcomes if file in self.beyond]
        print(f"\nin {self.seconds():.0f} s: {in_words(self.count(ordinary))}")
        opened = sum(
            outcome["status"] == "passed" and outcome.get("used_catalog", False) for outcome in self.outcomes.values()
        )
        print(f"{opened} of the files that passed opened the catalog under test")
        if any(self.outcomes[file]["status"] != "skipped" for file in beyond):
            print(f"skipped by the suite's configuration for PostgreSQL, run all the same: {in_words(self.count(beyond))}")
        elif beyond:
            print(f"{len(beyond)} more are skipped by the suite's configuration for PostgreSQL; --all runs them too")

    def write(self, path, details):
        """Writes everything as JSON."""
        report = {
            **details,
            "wall_seconds": round(self.seconds(), 1),
            "counts": self.count(self.outcomes),
            "files": dict(sorted(self.outcomes.items())),
        }
        with open(path, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)

    def ran(self):
        """The files that were played, and not skipped by the configuration."""
        return {file for file, outcome in self.outcomes.items() if not outcome.get("by_configuration")}

    def passed(self):
        """The files that passed."""
        return {file for file, outcome in self.outcomes.items() if outcome["status"] == "passed"}


def in_words(count):
    """`450 passed, 1 failed, …`"""
    return ", ".join(f"{number} {status}" for status, number in count.items())


def read_passes(path=PASSES):
    """The files that have to pass."""
    if not os.path.exists(path):
        return set()
    with open(path, encoding="utf-8") as file:
        lines = (line.strip() for line in file)
        return {line for line in lines if line and not line.startswith("#")}


def write_passes(files, path=PASSES):
    """Writes the list."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(HEADER + "".join(name + "\n" for name in sorted(files)))


def guard(report, update):
    """Compares the run with the list; False when a file of the list did not pass."""
    listed, ran, passed = read_passes(), report.ran(), report.passed()
    if update:
        write_passes((listed - ran) | passed)
        print(f"{PASSES}: {len(passed - listed)} added, {len((listed & ran) - passed)} taken off")
        return True
    lost, gained = sorted((listed & ran) - passed), sorted(passed - listed)
    for file in lost:
        print(f"no longer passes: {file}")
    if lost:
        print("What is lost on purpose comes off tests/conformance/passes.txt with --update.")
    if gained:
        print(f"{len(gained)} files pass that tests/conformance/passes.txt does not name; --update adds them")
    return not lost
