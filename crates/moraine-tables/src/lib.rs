//! The ducklake_* tables as relations over a moraine catalog.
