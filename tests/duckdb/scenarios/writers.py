"""Many DuckDB processes that write one lake at once: appends with and without rebase, updates of rows of one table."""

from harness.catalogs import Moraine
from scenarios.crashes import attach, rows

WRITERS = 6
COMMITS = 6
FILE_ROWS = 40


def served(directory, binary, *arguments):
    """A running server with these arguments."""
    catalog = Moraine(directory, binary)
    catalog.arguments = arguments
    catalog.environment = {"MORAINE_LOG": "warn,moraine_commit=debug"}
    catalog.start()
    return catalog


def together(processes, statement):
    """The same moment, each process its statement; all must succeed."""
    for number, process in enumerate(processes):
        process.send("a", statement(number))
    for process in processes:
        answer = process.receive()
        assert answer["ok"], answer["error"]


def appended(directory, binary, *arguments):
    """Appends of inlined rows and of files into one table by all processes; what the server wrote to its log."""
    catalog = served(directory, binary, *arguments)
    try:
        processes = [attach(catalog, directory) for _ in range(WRITERS)]
        assert processes[0].run("CREATE TABLE t(w INTEGER, n INTEGER, s VARCHAR, d DATE)")["ok"]
        values = "SELECT {w}, {n} * 1000 + i, 'k' || i, DATE '2020-01-01' + {n} FROM range({count}) r(i)"
        for n in range(COMMITS):
            count = FILE_ROWS if n % 2 else 1
            together(processes, lambda w, n=n, count=count: "INSERT INTO t " + values.format(w=w, n=n, count=count))
        expected = WRITERS * (COMMITS // 2) * (FILE_ROWS + 1)
        reader = attach(catalog, directory)
        found = rows(
            reader,
            "SELECT count(*), count(DISTINCT (w, n)), count(DISTINCT rowid), min(rowid), max(rowid) FROM t",
        )
        assert found == f"[({expected}, {expected}, {expected}, 0, {expected - 1})]", found
        # What DuckDB answers from statistics is what it counts.
        least = rows(reader, "SELECT min(n), max(n), min(s), max(s), min(d), max(d) FROM t")
        counted = rows(reader, "SELECT min(n), max(n), min(s), max(s), min(d), max(d) FROM t WHERE random() < 2")
        assert least == counted, (least, counted)
        commits = WRITERS * COMMITS
        snapshots = rows(
            reader,
            "SELECT count(*), max(snapshot_id), count(DISTINCT snapshot_time) FROM ducklake_snapshots('lake')",
        )
        assert snapshots == f"[({commits + 2}, {commits + 1}, {commits + 2})]", snapshots
        times = rows(
            reader,
            "SELECT count(*) FROM (SELECT snapshot_time > lag(snapshot_time) OVER (ORDER BY snapshot_id) AS later "
            "FROM ducklake_snapshots('lake')) WHERE NOT later",
        )
        assert times == "[(0,)]", times
        # Every snapshot shows the rows of those before it and of one more commit.
        for version in (commits // 2, commits):
            whole = rows(reader, f"SELECT count(DISTINCT (w, n // 1000)) FROM t AT (VERSION => {version + 1})")
            assert whole == f"[({version},)]", (version, whole)
        for process in [*processes, reader]:
            process.close()
    finally:
        catalog.stop()
    return catalog.log()


def appends_without_rebase(directory, binary):
    """Who loses a race tries again, and nothing is lost or comes twice."""
    log = appended(directory, binary)
    assert "rebased an append" not in log
    return f"{WRITERS} writers, {WRITERS * COMMITS} commits, {log.count('lost race')} races lost"


def appends_with_rebase(directory, binary):
    """Who loses a race is shifted to the newest snapshot, and nothing is lost or comes twice."""
    log = appended(directory, binary, "--rebase-appends")
    shifted = log.count("rebased an append")
    assert shifted, "no append met another one"
    return f"{WRITERS} writers, {WRITERS * COMMITS} commits, {shifted} shifted, {log.count('not rebased')} not"


def updates_of_disjoint_rows(directory, binary):
    """Processes that update rows of one table, each its own: DuckLake tries none of these twice, and all succeed."""
    # On a machine that is busy with other things a client may be silent for long.
    catalog = served(directory, binary, "--turn-seconds", "60")
    try:
        processes = [attach(catalog, directory) for _ in range(WRITERS)]
        # Some rows lie in a file, some are inlined.
        for count, first in ((WRITERS // 2 * 20, 0), (WRITERS - WRITERS // 2, WRITERS // 2)):
            rows_of = f"SELECT {first} + i % {WRITERS // 2} AS w, 0 AS n FROM range({count}) r(i)"
            into = "CREATE TABLE t AS" if first == 0 else "INSERT INTO t"
            assert processes[0].run(f"{into} {rows_of}")["ok"]
        for _ in range(COMMITS):
            together(processes, lambda w: f"UPDATE t SET n = n + 1 WHERE w = {w}")
        reader = attach(catalog, directory)
        found = rows(reader, "SELECT DISTINCT n FROM t")
        assert found == f"[({COMMITS},)]", found
        for process in [*processes, reader]:
            process.close()
    finally:
        catalog.stop()
    return f"{WRITERS} writers, {WRITERS * COMMITS} updates"


SCENARIOS = [appends_without_rebase, appends_with_rebase, updates_of_disjoint_rows]
