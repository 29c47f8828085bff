"""What two transactions on one snapshot may both do: every pair of changes, through two DuckDB processes.

For each pair (own, other) the first process begins and makes its change, the second makes and commits the other
change, and then the first commits. (A flush removes rows before it commits, and on PostgreSQL whoever touches them
waits for it: there the first process reads, the second commits, and then the first makes its change.) EXCLUDES says which pairs fail, and is what PostgreSQL as a catalog gives:

    python tests/duckdb/scenarios/conflicts.py --against "dbname=.. host=.." [--moraine target/debug/moraine]

plays all pairs on that PostgreSQL and, where given, on moraine, and prints where they differ from EXCLUDES. The same
matrix, as a pure function, is `moraine_commit::conflicts`; crates/moraine-commit/tests/commit/conflict_matrix.rs has
it as a table.
"""

import argparse
import os
import sys
import tempfile
import uuid

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness.catalogs import Moraine, Postgres
from harness.client import Process

STATEMENT_SECONDS_MAX = 120

# What a change to one table is, as a statement. Every table has a file of ids 0 to 99 (a), one of 100 to 199 (b), one of
# 200 to 299 that rows are deleted from (so that there is something to rewrite), and inlined rows of ids 1000 to 1004.
# Two deletions from a file that has had some before are not among them: DuckLake dates the new delete file back and
# overlooks it in its check, so that PostgreSQL takes both and keeps one, where moraine refuses the second.
TABLE_CHANGES = {
    "insert": "INSERT INTO {t} SELECT i FROM range(2000, 2100) r(i)",
    "inlined_insert": "INSERT INTO {t} VALUES (3000)",
    "delete_a": "DELETE FROM {t} WHERE id < 100 AND id % 2 = 0",
    "delete_b": "DELETE FROM {t} WHERE id BETWEEN 100 AND 199 AND id % 2 = 0",
    "inlined_delete": "DELETE FROM {t} WHERE id = 1001",
    "update": "UPDATE {t} SET id = id + 10000 WHERE id = 1002",
    "flush": "CALL ducklake_flush_inlined_data('lake', table_name => '{t}')",
    "merge": "CALL ducklake_merge_adjacent_files('lake', '{t}')",
    "rewrite": "CALL ducklake_rewrite_data_files('lake', '{t}', delete_threshold => 0)",
    "alter": "ALTER TABLE {t} ADD COLUMN extra INTEGER",
    "drop": "DROP TABLE {t}",
}

# For each own change, the other changes that exclude it.
TABLE_EXCLUDES = {
    "insert": {"delete_a", "delete_b", "inlined_delete", "update", "alter", "drop"},
    "inlined_insert": {"delete_a", "delete_b", "inlined_delete", "update", "alter", "drop"},
    "delete_a": {"insert", "inlined_insert", "delete_a", "update", "merge", "rewrite", "alter", "drop"},
    "delete_b": {"insert", "inlined_insert", "delete_b", "update", "merge", "rewrite", "alter", "drop"},
    "inlined_delete": {"insert", "inlined_insert", "inlined_delete", "update", "flush", "alter", "drop"},
    "update": {
        "insert", "inlined_insert", "delete_a", "delete_b", "inlined_delete", "update", "flush", "alter", "drop",
    },
    "flush": {"inlined_delete", "update", "flush", "drop"},
    "merge": {"delete_a", "delete_b", "merge", "rewrite", "drop"},
    "rewrite": {"delete_a", "delete_b", "merge", "rewrite", "drop"},
    "alter": {"alter", "drop"},
    "drop": {"drop"},
}  # fmt: skip

# The same for changes of what has a name: each pair has a schema {s} with a view v, a scalar macro m and a table macro
# tm in it.
NAME_CHANGES = {
    "create_schema": "CREATE SCHEMA {s}_new",
    "drop_schema": "DROP SCHEMA {s} CASCADE",
    "create_table": "CREATE TABLE {s}.fresh(id INTEGER)",
    "create_view": "CREATE VIEW {s}.fresh AS SELECT 1 AS one",
    "create_macro": "CREATE MACRO {s}.fresh(a) AS a + 1",
    "create_table_macro": "CREATE MACRO {s}.fresh(a) AS TABLE SELECT a",
    "drop_view": "DROP VIEW {s}.v",
    "alter_view": "COMMENT ON VIEW {s}.v IS 'seen'",
    "drop_macro": "DROP MACRO {s}.m",
    "drop_table_macro": "DROP MACRO TABLE {s}.tm",
}

# DuckLake lets both of these commit, and cannot load a lake any more that has a macro in a schema that is gone.
UNPLAYED = {("drop_schema", "create_macro"), ("drop_schema", "create_table_macro")}

NAME_EXCLUDES = {
    "create_schema": {"create_schema"},
    "drop_schema": {"drop_schema", "create_table", "create_view", "drop_view", "drop_macro", "drop_table_macro"},
    "create_table": {"create_table", "create_view", "drop_schema"},
    "create_view": {"create_table", "create_view", "drop_schema"},
    "create_macro": {"create_macro", "drop_schema"},
    "create_table_macro": {"create_table_macro", "drop_schema"},
    "drop_view": {"drop_view", "drop_schema"},
    "alter_view": {"alter_view"},
    "drop_macro": {"drop_macro", "drop_schema"},
    "drop_table_macro": {"drop_table_macro", "drop_schema"},
}


def told(process, sql):
    """The answer to a statement that must succeed."""
    answer = process.run(sql)
    assert answer["ok"], f"{sql}: {answer['error']}"
    return answer


def attached(catalog, directory):
    """A DuckDB process with the lake in use."""
    process = Process(STATEMENT_SECONDS_MAX)
    told(process, f"ATTACH 'ducklake:{catalog.connection()}' AS lake (DATA_PATH '{directory}/files')")
    told(process, "USE lake")
    return process


def made_tables(process, names):
    """A table for each name, with files, deleted rows and inlined rows as TABLE_CHANGES needs them."""
    for insert in (
        "CREATE TABLE {t}(id INTEGER)",
        "INSERT INTO {t} SELECT i FROM range(100) r(i)",
        "INSERT INTO {t} SELECT i FROM range(100, 200) r(i)",
        "INSERT INTO {t} SELECT i FROM range(200, 300) r(i)",
        "DELETE FROM {t} WHERE id BETWEEN 200 AND 299 AND id % 5 = 1",
        "INSERT INTO {t} SELECT i FROM range(1000, 1005) r(i)",
    ):
        told(process, "BEGIN")
        for name in names:
            told(process, insert.format(t=name))
        told(process, "COMMIT")


def made_schemas(process, names):
    """A schema for each name, with a view and macros in it."""
    told(process, "BEGIN")
    for name in names:
        told(process, f"CREATE SCHEMA {name}")
        told(process, f"CREATE VIEW {name}.v AS SELECT 1 AS one")
        told(process, f"CREATE MACRO {name}.m(a) AS a")
        told(process, f"CREATE MACRO {name}.tm(a) AS TABLE SELECT a")
    told(process, "COMMIT")


def outcome(first, second, own, other, own_comes_last):
    """"" when both commit, else how the first one failed."""
    told(first, "BEGIN")
    if own_comes_last:
        told(first, "SELECT count(*) FROM ducklake_snapshots('lake')")
        told(second, other)
        answer = first.run(own)
    else:
        told(first, own)
        told(second, other)
        answer = {"ok": True}
    if answer["ok"]:
        answer = first.run("COMMIT")
    if not answer["ok"]:
        first.run("ROLLBACK")
    return "" if answer["ok"] else answer["error"]


def differences(catalog, directory):
    """Plays every pair; the pairs whose outcome is not the expected one, as lines to print, and how many there were."""
    found, pairs = [], 0
    groups = (
        (TABLE_CHANGES, TABLE_EXCLUDES, made_tables, "t"),
        (NAME_CHANGES, NAME_EXCLUDES, made_schemas, "s"),
    )
    for changes, excludes, make, kind in groups:
        names = {(own, other): f"{own}__{other}" for own in changes for other in changes}
        setup = attached(catalog, directory)
        make(setup, names.values())
        setup.close()
        first, second = attached(catalog, directory), attached(catalog, directory)
        for (own, other), name in names.items():
            if (own, other) in UNPLAYED:
                continue
            statements = [changes[change].format(**{kind: name}) for change in (own, other)]
            try:
                error = outcome(first, second, *statements, own_comes_last=own == "flush")
            except AssertionError as failure:
                found.append(f"{own} x {other}: {failure}")
                first.run("ROLLBACK")
                continue
            pairs += 1
            expected = other in excludes[own]
            if expected != bool(error):
                found.append(f"{own} x {other}: {error or 'both committed'}")
            elif error and "onflict" not in error and "could not serialize" not in error:
                found.append(f"{own} x {other}: no conflict but {error}")
        for process in (first, second):
            process.close()
    return found, pairs


def conflicts_of_every_pair_of_changes(directory, binary):
    """Two DuckDB processes on one snapshot: what excludes what is what PostgreSQL as a catalog gives."""
    catalog = Moraine(directory, binary)
    # Nobody is to wait for the one that is about to lose.
    catalog.arguments = ("--turn-seconds", "0.01")
    catalog.start()
    try:
        found, pairs = differences(catalog, directory)
    finally:
        catalog.stop()
    assert not found, "\n".join(found)
    return f"{pairs} pairs"


SCENARIOS = [conflicts_of_every_pair_of_changes]


class PostgresSchema(Postgres):
    """A schema of its own in a database that is there."""

    def connection(self, which="main"):
        """The connection string as given; the schema keeps runs apart."""
        return "postgres:" + self.template


def main():
    """Plays all pairs on PostgreSQL and on moraine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="CONNSTR", help="an empty database of a PostgreSQL")
    parser.add_argument("--moraine", metavar="BINARY")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="moraine-conflicts-") as directory:
        catalogs = []
        if options.against:
            catalogs.append(PostgresSchema(options.against, None))
        if options.moraine:
            catalogs.append(Moraine(directory, options.moraine, database="d" + uuid.uuid4().hex[:12]))
        for number, catalog in enumerate(catalogs):
            files = os.path.join(directory, str(number))
            os.makedirs(files)
            catalog.start()
            try:
                found, pairs = differences(catalog, files)
            finally:
                catalog.stop()
            print(f"{catalog.name}: {pairs} pairs, {len(found)} not as written down")
            print("\n".join("    " + line.replace("\n", " ") for line in found), flush=True)
            failed += len(found)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
