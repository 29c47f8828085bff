"""What the sessions of clients share: a lake on a served root, and DuckDB beside it to compare with."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tests", "duckdb"))

from harness import catalogs  # noqa: E402
from harness.client import EXTENSIONS, connect, extension_path  # noqa: E402

REFUSALS = ("is not supported by moraine", 'relation "pg_catalog.', "no function matches the given name")
"""What the server says of statements that it does not take, and of catalogs and functions that it does not have."""

INSTALL = "import duckdb, sys; [duckdb.execute(f\"INSTALL '{path}'\") for path in sys.argv[1:]]"


class Lake:
    """One lake of one server; each session has its own."""

    def __init__(self, server, directory, name):
        self.server = server
        self.name = name
        self.host, self.port = server.listen.rsplit(":", 1)
        self.data_path = os.path.join(directory, "data", name) + os.sep
        os.makedirs(self.data_path)

    def keywords(self):
        """The connection as libpq writes it."""
        return f"host={self.host} port={self.port} user=moraine dbname={self.name}"

    def url(self, scheme="postgresql"):
        """The connection as a URL."""
        return f"{scheme}://moraine@{self.host}:{self.port}/{self.name}"

    def duckdb(self):
        """A DuckDB with the lake attached and used."""
        connection = connect()
        connection.execute(f"ATTACH 'ducklake:postgres:{self.keywords()}' AS lake (DATA_PATH '{self.data_path}')")
        connection.execute("USE lake")
        return connection


class Absent(Exception):
    """A client that no registry of packages has, and that this machine does not have either."""


def needs_queries(session):
    """Marks a session of a client that sends queries which moraine refuses by name."""
    session.needs_queries = True
    return session


def rows(connection, sql):
    """All rows of a query of DuckDB."""
    return connection.execute(sql).fetchall()


def equal(got, expected):
    """Fails with both sides."""
    assert got == expected, f"\nexpected: {expected!r}\n     got: {got!r}"


def install_extensions(home):
    """Puts the extensions of the wheels where a DuckDB with this HOME looks for them, as INSTALL does from the network."""
    paths = [extension_path(name) for name in EXTENSIONS]
    environment = {**os.environ, "HOME": home}
    subprocess.run([sys.executable, "-c", INSTALL, *paths], check=True, env=environment)
