//! A Postgres-protocol server for DuckLake catalogs kept in moraine.
