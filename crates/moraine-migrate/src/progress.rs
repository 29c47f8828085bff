//! What is told, while a lake moves, to who waits for it.

/// Is told how far the work is. All of it is called often, from one task at a time.
pub trait Progress: Send + Sync {
    /// Work on a table begins; `rows` is how many it has, where that is known.
    fn table(&self, table: &str, rows: Option<u64>);

    /// So many rows more of the table are done.
    fn rows(&self, rows: u64);
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn table(&self, _table: &str, _rows: Option<u64>) {}

    fn rows(&self, _rows: u64) {}
}
