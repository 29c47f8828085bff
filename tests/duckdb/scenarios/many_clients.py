"""Several DuckDB processes at the same moment: first attaches, writers on one table, looks from outside."""

import json
import os
import subprocess

from harness.catalogs import Moraine
from harness.client import Process
from scenarios.crashes import STATEMENT_SECONDS_MAX, attach, rows

WRITERS = 4
INSERTS = 10


def started(directory, binary):
    """A running server of moraine."""
    catalog = Moraine(directory, binary)
    catalog.start()
    return catalog


def first_attaches_at_the_same_moment(directory, binary):
    """A lake that does not exist yet, attached by several processes at once: all succeed, and it is one lake."""
    catalog = started(directory, binary)
    try:
        data = os.path.join(directory, "files")
        sql = f"ATTACH 'ducklake:{catalog.connection()}' AS lake (DATA_PATH '{data}')"
        processes = [Process(STATEMENT_SECONDS_MAX) for _ in range(WRITERS)]
        for process in processes:  # so that none is still loading extensions when it is asked
            assert process.run("SELECT 1")["ok"]
        for process in processes:
            process.send("a", sql)
        for process in processes:
            answer = process.receive()
            assert answer["ok"], answer
        for number, process in enumerate(processes):
            assert process.run(f"CREATE TABLE lake.t{number} AS SELECT {number} AS n")["ok"]
        for process in processes:
            names = rows(process, "SELECT table_name FROM duckdb_tables() WHERE database_name = 'lake' ORDER BY 1")
            assert names == repr([(f"t{number}",) for number in range(WRITERS)]), names
            process.close()
    finally:
        catalog.stop()


def writers_of_one_table(directory, binary):
    """Several processes insert into one table as fast as they can: nothing is lost, nothing comes twice."""
    catalog = started(directory, binary)
    try:
        processes = [attach(catalog, directory) for _ in range(WRITERS)]
        assert processes[0].run("CREATE TABLE t(writer INTEGER, n INTEGER)")["ok"]
        for number in range(INSERTS):
            for writer, process in enumerate(processes):
                process.send("a", f"INSERT INTO t VALUES ({writer}, {number})")
            for process in processes:
                answer = process.receive()
                assert answer["ok"], answer
        expected = WRITERS * INSERTS
        found = rows(processes[-1], "SELECT count(*), count(DISTINCT (writer, n)), count(DISTINCT rowid) FROM t")
        assert found == f"[({expected}, {expected}, {expected})]", found
        for process in processes:
            process.close()
    finally:
        catalog.stop()
    return f"{WRITERS} writers, {expected} commits"


def a_look_into_a_served_store(directory, binary):
    """`moraine info` shows what the server has committed, and the server goes on."""
    catalog = started(directory, binary)
    try:
        process = attach(catalog, directory)
        assert process.run("CREATE TABLE t AS SELECT i AS a FROM range(100) r(i)")["ok"]
        snapshot = int(rows(process, "SELECT max(snapshot_id) FROM ducklake_snapshots('lake')").strip("[](),"))
        looked = subprocess.run([binary, "info", "--json", catalog.root], capture_output=True, text=True, check=True)
        [store] = json.loads(looked.stdout)
        assert store["snapshot"] == snapshot, (store["snapshot"], snapshot)
        assert store["kinds"]["table"]["live"] == 1 and store["kinds"]["data_file"]["live"] == 1, store["kinds"]
        assert subprocess.run([binary, "info", catalog.root], capture_output=True, text=True, check=True).stdout
        assert process.run("INSERT INTO t VALUES (1000)")["ok"]
        assert rows(process, "SELECT count(*) FROM t") == "[(101,)]"
        process.close()
    finally:
        catalog.stop()


def several_lakes_in_one_server(directory, binary):
    """Databases and schemas are lakes of their own, below one root, and `moraine info` lists them."""
    catalog = started(directory, binary)
    try:
        process = Process(STATEMENT_SECONDS_MAX)
        lakes = {
            "a": (catalog.connection(), ""),
            "b": (catalog.connection(), ", METADATA_SCHEMA 'second'"),
            "c": (catalog.connection("other"), ""),
        }
        for name, (connection, options) in lakes.items():
            data = os.path.join(directory, "files", name)
            assert process.run(f"ATTACH 'ducklake:{connection}' AS {name} (DATA_PATH '{data}'{options})")["ok"]
            assert process.run(f"CREATE TABLE {name}.t AS SELECT '{name}' AS who")["ok"]
        for name in lakes:
            assert rows(process, f"FROM {name}.t") == f"[('{name}',)]"
        looked = subprocess.run([binary, "info", "--json", catalog.root], capture_output=True, text=True, check=True)
        stores = json.loads(looked.stdout)
        assert len(stores) == len(lakes), [store["store"] for store in stores]
        assert all(store["kinds"]["table"]["live"] == 1 for store in stores)
        process.close()
    finally:
        catalog.stop()


SCENARIOS = [
    first_attaches_at_the_same_moment,
    writers_of_one_table,
    a_look_into_a_served_store,
    several_lakes_in_one_server,
]
