//! The `moraine` command.
fn main() {}
