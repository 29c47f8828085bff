//! Inlined rows of a DuckLake lake as Arrow chunks, tombstones and a chunk directory in a moraine store.
