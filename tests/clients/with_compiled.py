"""Clients that are compiled: PostgreSQL's JDBC driver, sqlx, and datafusion-ducklake."""

import glob
import json
import os
import shutil
import subprocess

from support import ROOT, Absent, equal, rows

HERE = os.path.dirname(os.path.abspath(__file__))
DRIVERS = ["/usr/share/java/postgresql.jar", "/usr/share/java/postgresql-4*.jar"]
"""Where Debian's libpostgresql-jdbc-java puts the driver; JDBC_DRIVER names another."""
OPTION = "SELECT value FROM ducklake_options('lake') WHERE option_name = 'target_file_size'"
RUN_SECONDS_MAX = 120
HOME = os.environ.get("HOME", "")
"""Where cargo finds its toolchain; the sessions have another."""


def run(command):
    """What a command prints."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout


def jdbc_session(lake):
    """Prepared statements, portions, batches, arrays, savepoints, metadata."""
    found = [os.environ["JDBC_DRIVER"]] if "JDBC_DRIVER" in os.environ else sum(map(glob.glob, DRIVERS), [])
    if not found or not shutil.which("java"):
        raise Absent("java or PostgreSQL's JDBC driver (libpostgresql-jdbc-java) is not installed")
    lake.duckdb().execute("CREATE TABLE t(i INTEGER)")
    url = f"jdbc:postgresql://{lake.host}:{lake.port}/{lake.name}"
    printed = run(["java", "-cp", found[0], os.path.join(HERE, "jdbc", "Session.java"), url])
    equal(printed.split(), ["done"])
    equal(rows(lake.duckdb(), OPTION), [("2MB",)])


def built(binary):
    """A program of the package of Rust clients, built at its first use: that compiles another DataFusion."""
    if not shutil.which("cargo"):
        raise Absent("cargo is not installed")
    target = os.environ.get("MORAINE_CLIENTS_TARGET", os.path.join(ROOT, "target", "clients-rust"))
    manifest = os.path.join(HERE, "rust", "Cargo.toml")
    if not os.path.exists(os.path.join(target, "debug", binary)):
        print(f"        building {binary} and what it needs (once, some minutes) ...", flush=True)
    command = ["cargo", "build", "--locked", "--quiet", "--manifest-path", manifest, "--target-dir", target]
    subprocess.run([*command, "--bin", binary], check=True, env={**os.environ, "HOME": HOME})
    return os.path.join(target, "debug", binary)


def sqlx_session(lake):
    """Typed queries, binary arrays, a stream, nested transactions, COPY."""
    lake.duckdb().execute("CREATE TABLE t(i INTEGER)")
    equal(run([built("with_sqlx"), lake.url()]).split(), ["done"])
    equal(rows(lake.duckdb(), OPTION), [("11MB",)])


def datafusion_ducklake_reads(lake):
    """What DataFusion reads of a lake, its data files and its deletes, is what DuckDB reads."""
    program = built("with_datafusion_ducklake")
    duckdb = lake.duckdb()
    duckdb.execute("CALL lake.set_option('data_inlining_row_limit', 0)")
    duckdb.execute("CREATE TABLE t(i INTEGER, s VARCHAR, d DOUBLE)")
    duckdb.execute("INSERT INTO t SELECT range, 'row ' || range, range / 4 FROM range(1000)")
    duckdb.execute("INSERT INTO t VALUES (1000, NULL, NULL)")
    duckdb.execute("DELETE FROM t WHERE i % 10 = 3")
    duckdb.execute("ALTER TABLE t ADD COLUMN late INTEGER DEFAULT 7")
    for query in [
        "SELECT count(*), sum(i), max(s) FROM {}t",
        "SELECT i, s, late FROM {}t WHERE i BETWEEN 10 AND 25 ORDER BY i",
        "SELECT i, s FROM {}t WHERE s IS NULL",
    ]:
        expected = rows(duckdb, query.format(""))
        printed = run([program, lake.url(), query.format("ducklake.main.")])
        found = [tuple(json.loads(line).values()) for line in printed.splitlines()]
        equal(found, [tuple(row) for row in expected])


SESSIONS = [jdbc_session, sqlx_session, datafusion_ducklake_reads]
