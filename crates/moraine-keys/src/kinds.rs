//! The kinds of keys, one module per area. Their place in the tree is in [`crate::key`].

pub(crate) mod directory;
pub(crate) mod entity;
pub(crate) mod index;
pub(crate) mod inline;
pub(crate) mod system;
