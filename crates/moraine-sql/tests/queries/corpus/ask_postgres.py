#!/usr/bin/env python3
"""Asks a PostgreSQL 15 the queries of the corpus and writes its answers down.

    python ask_postgres.py 'host=127.0.0.1 port=5432 user=postgres dbname=corpus'

The database must be empty, of encoding UTF8 and locale C, and its time zone UTC. `lake.sql` fills it; it is written by
the test `corpus::postgres_was_asked_about_this_lake` when MORAINE_WRITE_CORPUS is set. Needs psycopg2.
"""

import pathlib
import sys

import psycopg2
import psycopg2.extensions

HERE = pathlib.Path(__file__).parent


def text_of_anything(value, _cursor):
    """Values stay the text that PostgreSQL sent."""
    return "~" if value is None else value


def as_text(cursor):
    """Makes a cursor give every column as text."""
    kinds = tuple({column.type_code for column in cursor.description})
    plain = psycopg2.extensions.new_type(kinds, "TEXT", text_of_anything)
    psycopg2.extensions.register_type(plain, cursor)


def answer(connection, query):
    """The rows of a query, or its SQLSTATE."""
    with connection.cursor() as cursor:
        try:
            # Once to learn the types, once with every column as text.
            cursor.execute(query)
            as_text(cursor)
            cursor.execute(query)
            rows = ["|".join("~" if value is None else value for value in row) for row in cursor.fetchall()]
            return ["= " + line for row in rows for line in row.split("\n")]
        except psycopg2.Error as error:
            return [f"error {error.pgcode}"]
        finally:
            connection.rollback()


def main():
    """Fills the database and writes a file of answers beside each file of queries."""
    connection = psycopg2.connect(sys.argv[1])
    with connection.cursor() as cursor:
        cursor.execute((HERE / "lake.sql").read_text())
        cursor.execute("SET TIME ZONE 'UTC'")
        cursor.execute("SET datestyle = 'ISO, YMD'")
    connection.commit()
    for queries in sorted(HERE.glob("*.txt")):
        if queries.stem == "refused":
            continue
        blocks = []
        for query in queries.read_text().splitlines():
            blocks.append("\n".join([query, *answer(connection, query)]))
        queries.with_suffix(".expected").write_text("\n\n".join(blocks) + "\n")


if __name__ == "__main__":
    main()
