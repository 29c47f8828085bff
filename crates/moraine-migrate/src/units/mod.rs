//! The chain of format units, from format 1 to the newest: one file per unit, each with frozen copies of the keys and
//! constants it needs, and the protocol by which they run. What the newest format means is not here.
