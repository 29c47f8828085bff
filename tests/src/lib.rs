//! End-to-end and cross-crate tests of moraine.
