//! The inlined tables `ducklake_inlined_data_<t>_<v>` and `ducklake_inlined_delete_<t>`: what the door carries as text or
//! bytes is stored as Arrow of the type DuckLake declared, and given back exactly as it came. Chunks, tombstones and
//! directories are `moraine-inline`'s.

pub(crate) mod data;
mod decode;
mod encode;
pub(crate) mod file_deletes;
mod form;
pub(crate) mod tables;

pub(crate) use form::Form;
pub use form::{DOOR_TYPE_METADATA_KEY, door_type, inlined_schema};
