//! Snapshots and commits of a DuckLake catalog kept in a moraine store.
