//! Damaged lakes: refused by name, and nothing changed.
