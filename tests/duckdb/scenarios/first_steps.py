"""What a newcomer does first: paste what the server prints, and run the quickstart."""

import os
import subprocess
import sys

from harness.client import Process
from scenarios.crashes import STATEMENT_SECONDS_MAX, rows

QUICKSTART_SECONDS_MAX = 120


def the_printed_attach_statement(directory, binary):
    """The ATTACH statement that `moraine serve` prints works as it stands, apostrophes in the path included."""
    root = os.path.join(directory, "ann's lake")
    command = [binary, "serve", root, "--listen", "127.0.0.1:0", "--database", "ann's"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        lines = iter(server.stdout.readline, "")
        attach = next(line for line in lines if line.startswith("ATTACH "))
        process = Process(STATEMENT_SECONDS_MAX)
        answer = process.run(attach)
        assert answer["ok"], (attach, answer)
        assert process.run("CREATE TABLE lake.t AS SELECT i AS a FROM range(100) r(i)")["ok"]
        assert rows(process, "SELECT count(*) FROM lake.t") == "[(100,)]"
        process.close()
        assert os.listdir(os.path.join(root, "data")), "the Parquet files lie below the root"
    finally:
        server.terminate()
        code = server.wait()
        server.stdout.close()
    assert code == 0, code


def the_quickstart(directory, binary):
    """The session of `cargo xtask quickstart`, twice in one folder."""
    program = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "quickstart.py")
    lake = os.path.join(directory, "lake")
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, program, "--moraine", binary, "--dir", lake],
            capture_output=True,
            text=True,
            timeout=QUICKSTART_SECONDS_MAX,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        for words in ("the first with a note", "rows_flushed", "To go on by hand", "ducklake_snapshot"):
            assert words in done.stdout, f"the quickstart does not show {words!r}"


SCENARIOS = [the_printed_attach_statement, the_quickstart]
