#!/usr/bin/env python3
"""A first session on a lake: what it does is said, run, and shown.

    python tests/duckdb/quickstart.py --moraine target/debug/moraine --dir ./lake

`cargo xtask quickstart` builds what is needed and calls this program. The lake stays in the folder; running the
session again replaces its table and goes on in the same lake.
"""

import argparse
import os
import subprocess
import sys
import tempfile

from harness.catalogs import Moraine
from harness.client import connect

DATABASE = "lake"


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moraine", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--listen", default="127.0.0.1:0")
    return parser.parse_args()


class Guide:
    """Says what comes, runs it, and shows the result."""

    def __init__(self, connection):
        self.connection = connection

    def step(self, what, *statements):
        """A line of explanation, the statements, and the result of each that has rows."""
        print(f"\n-- {what}")
        for sql in statements:
            print(f"{sql};")
            relation = self.connection.sql(sql)
            if relation is not None and relation.columns not in (["Count"], ["Success"]):
                print(relation)

    def value(self, sql):
        """The only value of a query."""
        return self.connection.execute(sql).fetchone()[0]


def session(guide):
    """The session itself."""
    guide.step(
        "A table. Its definition is a row in the catalog, which moraine keeps in the folder.",
        "CREATE OR REPLACE TABLE orders(id INTEGER, buyer VARCHAR, amount DECIMAL(10,2))",
    )
    guide.step(
        "A few rows. They stay in the catalog (inlined): no Parquet file is written for them.",
        "INSERT INTO orders VALUES (1, 'ann', 12.50), (2, 'bob', 7.00), (3, 'cay', 99.90)",
        "SELECT count(*) AS files FROM ducklake_list_files('lake', 'orders')",
    )
    before = guide.value("SELECT id FROM lake.current_snapshot()")
    guide.step(
        "Many rows. These go to a Parquet file, and the catalog remembers the file and its statistics.",
        "INSERT INTO orders SELECT i, 'customer ' || i % 50, i / 10 FROM range(100, 100000) r(i)",
        "SELECT count(*) AS files FROM ducklake_list_files('lake', 'orders')",
        "SELECT count(*) AS orders, sum(amount) AS total FROM orders",
    )
    guide.step(
        "An update and a delete; each is one snapshot.",
        "UPDATE orders SET amount = amount * 2 WHERE buyer = 'ann'",
        "DELETE FROM orders WHERE buyer = 'bob' OR id % 3 = 0",
        "SELECT count(*) AS orders, sum(amount) AS total FROM orders",
    )
    guide.step(
        "Time travel: the table as it was after the first three rows.",
        f"SELECT * FROM orders AT (VERSION => {before}) ORDER BY id",
    )
    guide.step(
        "Another column. Old rows have its default, old snapshots do not have the column.",
        "ALTER TABLE orders ADD COLUMN note VARCHAR DEFAULT 'none'",
        "INSERT INTO orders VALUES (100001, 'dan', 1.00, 'the first with a note')",
        "SELECT * FROM orders WHERE buyer IN ('ann', 'dan') ORDER BY id",
    )
    guide.step(
        "Flush: the inlined rows move to Parquet, and nothing else changes.",
        "SELECT table_name, rows_flushed FROM ducklake_flush_inlined_data('lake')",
        "SELECT count(*) AS files FROM ducklake_list_files('lake', 'orders')",
        "SELECT * FROM orders WHERE buyer IN ('ann', 'dan') ORDER BY id",
    )
    guide.step(
        "What has happened, snapshot by snapshot.",
        "SELECT snapshot_id, schema_version, changes FROM ducklake_snapshots('lake') ORDER BY snapshot_id DESC LIMIT 8",
    )


def shown(path):
    """A path as one would type it here."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else os.path.join(".", relative)


def main():
    """Serves, plays the session, stops the server, and says how to go on."""
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="moraine-quickstart-") as place:
        server = Moraine(place, options.moraine, options.listen, options.dir, DATABASE)
        print(f"Starting `moraine serve {shown(options.dir)}`, the catalog server.")
        server.start()
        try:
            data = os.path.join(options.dir, "data", DATABASE, "public", "")
            attach = f"ATTACH 'ducklake:{server.connection()}' AS lake (DATA_PATH '{data}')"
            connection = connect()
            guide = Guide(connection)
            guide.step("An unmodified DuckDB attaches the lake, through its ducklake and postgres extensions.", attach, "USE lake")
            session(guide)
            connection.close()
        finally:
            server.stop()
    moraine = shown(options.moraine)
    print("\n-- The server has ended; all of the lake is in the folder. A look into the catalog:")
    sys.stdout.flush()
    subprocess.run([options.moraine, "info", options.dir], check=True)
    print(
        f"\nTo go on by hand, start the server again and paste into DuckDB what it prints:\n\n"
        f"    {moraine} serve {shown(options.dir)}\n\n"
        f"and with `USE lake; FROM orders;` the table is there. `{moraine} info {shown(options.dir)}` looks into the catalog."
    )


if __name__ == "__main__":
    main()
