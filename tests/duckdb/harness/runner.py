"""Which sessions and scenarios run, a few at a time, and what is printed about them."""

import concurrent.futures
import dataclasses
import os
import shutil
import sys
import tempfile
import time
import traceback

from harness import catalogs
from harness.compare import differences
from harness.session import Player

DIFFERENCES_SHOWN_MAX = 8
# DuckDB 1.5.5 corrupts its own heap now and then while it flushes inlined data, on a DuckDB file too. A crash that a
# catalog causes comes again each time.
PLAYS_MAX = 3
CRASH = "the DuckDB process ended with -"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """How one session or scenario ended."""

    name: str
    problems: list
    note: str
    seconds: float


def play_session(session, other_catalog):
    """Plays a session on the reference and on the other catalog and compares the two recordings."""
    started = time.monotonic()
    place = tempfile.mkdtemp(prefix="moraine-session-")
    try:
        recordings, crashes = [], 0
        for label, make in (("reference", catalogs.DuckDbFile), ("other", other_catalog)):
            recording, crashed = play_until_whole(session, make, os.path.join(place, label))
            recordings.append(recording)
            crashes += crashed
        problems = differences(*recordings)
        note = f"{len(recordings[0])} statements" + (f", DuckDB crashed {crashes} times" if crashes else "")
    except Exception as error:
        problems, note = [f"{type(error).__name__}: {error}"], "broken off"
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return Verdict(session.name, problems, note, time.monotonic() - started)


def play_until_whole(session, make, directory):
    """Plays a session on new lakes until DuckDB lives to its end; the recording, and how often it did not."""
    for play in range(PLAYS_MAX):
        lake = directory if play == 0 else f"{directory}{play}"
        os.makedirs(lake)
        recording = Player(session, make(lake), lake).play()
        if not any(outcome.text.startswith(CRASH) for outcome in recording):
            return recording, play
    return recording, PLAYS_MAX


def play_scenario(scenario, binary):
    """Runs a scenario; an assertion that does not hold, or any error, is its problem."""
    started = time.monotonic()
    place = tempfile.mkdtemp(prefix="moraine-scenario-")
    problems, note = [], "scenario"
    try:
        note = scenario(place, binary) or note
    except Exception:
        problems = [traceback.format_exc(limit=3)]
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return Verdict(scenario.__name__, problems, note, time.monotonic() - started)


def report(verdict):
    """Prints one verdict as it arrives."""
    mark = "FAILED" if verdict.problems else "ok"
    print(f"{mark:6} {verdict.name} ({verdict.note}, {verdict.seconds:.1f} s)")
    for problem in verdict.problems[:DIFFERENCES_SHOWN_MAX]:
        print(f"    {problem}")
    if len(verdict.problems) > DIFFERENCES_SHOWN_MAX:
        print(f"    and {len(verdict.problems) - DIFFERENCES_SHOWN_MAX} more differences")
    sys.stdout.flush()


def run_all(tasks, jobs):
    """Runs the tasks, `jobs` at a time, prints each verdict and at last a line that counts them."""
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        pending = [pool.submit(task) for task in tasks]
        for done in concurrent.futures.as_completed(pending):
            verdict = done.result()
            report(verdict)
            failed += bool(verdict.problems)
    print(f"{len(tasks) - failed} passed, {failed} failed")
    return failed
