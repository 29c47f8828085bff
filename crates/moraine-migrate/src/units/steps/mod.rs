//! The steps, one file each. A step is a pure function from records to actions, and imports nothing but
//! [`super::frozen`], [`super::step`] and other steps: no constant and no record type of the live format, whose later change would
//! change what the step does. A test reads these files and holds them to it.

pub(super) mod additive_to_8;
pub(super) mod chunk_directory;
pub(super) mod delete_targets_12;
pub(super) mod names_11;
pub(super) mod row_tombstones_9;
pub(super) mod schema_versions;
