//! The ordered key tree of a moraine store: subspaces, kinds, components and scan bounds.
