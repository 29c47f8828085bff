"""What the DuckDB sessions and scenarios run on.

client.py    one DuckDB process that is told, statement by statement, what to run
catalogs.py  what a lake's catalog is kept in: a DuckDB file, a moraine server, any other Postgres server
proxy.py     a proxy that cuts a connection at COMMIT
session.py   the vocabulary in which sessions are written, and how one is played on a catalog
compare.py   two recordings of the same session, side by side
runner.py    which sessions and scenarios run, a few at a time, and what is printed about them
"""
