//! Rows that a query reads once and goes through again and again, for each row around a subquery. They are kept in memory
//! for as long as the query runs, up to a number of bytes; what is more is read anew each time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use futures::stream::{self, BoxStream, StreamExt};

/// Bytes of rows that one query keeps.
pub(crate) const KEPT_BYTES_MAX: usize = 256 << 20;

/// The scans whose rows a query keeps, by what tells them apart.
pub(crate) struct KeptScans {
    scans: Mutex<HashMap<Arc<str>, Arc<Scan>>>,
    memory: Arc<MemoryReservation>,
}

impl KeptScans {
    pub(crate) fn new(pool: &Arc<dyn MemoryPool>) -> Self {
        let reservation = MemoryConsumer::new("rows that subqueries read").register(pool);
        Self {
            scans: Mutex::default(),
            memory: Arc::new(reservation),
        }
    }

    /// What is known of a scan.
    pub(crate) fn scan(&self, name: &Arc<str>) -> Arc<Scan> {
        let mut scans = self.scans.lock().unwrap_or_else(PoisonError::into_inner);
        let scan = scans.entry(Arc::clone(name)).or_insert_with(|| {
            Arc::new(Scan {
                rows: Mutex::default(),
                memory: Arc::clone(&self.memory),
            })
        });
        Arc::clone(scan)
    }

    /// Whether something had too many rows to be kept.
    pub(crate) fn is_full(&self) -> bool {
        let scans = self.scans.lock().unwrap_or_else(PoisonError::into_inner);
        scans.values().any(|scan| matches!(*scan.rows(), Rows::TooMany))
    }
}

#[derive(Default)]
enum Rows {
    #[default]
    Unread,
    Read(Arc<Vec<RecordBatch>>),
    TooMany,
}

/// One scan.
pub(crate) struct Scan {
    rows: Mutex<Rows>,
    memory: Arc<MemoryReservation>,
}

impl Scan {
    fn rows(&self) -> std::sync::MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows, if they have been read.
    pub(crate) fn batches(&self) -> Option<Arc<Vec<RecordBatch>>> {
        match &*self.rows() {
            Rows::Read(batches) => Some(Arc::clone(batches)),
            _ => None,
        }
    }

    fn takes(&self, bytes: usize) -> bool {
        self.memory.size().saturating_add(bytes) <= KEPT_BYTES_MAX && self.memory.try_grow(bytes).is_ok()
    }

    fn gives_back(&self, bytes: usize) {
        self.memory.shrink(bytes);
    }

    /// The rows of a scan that starts now. All of them are read before the first is given, whatever is wanted of them.
    pub(crate) fn reading(
        self: Arc<Self>,
        rows: impl futures::Stream<Item = Result<RecordBatch>> + Send + 'static,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        let rows = rows.boxed();
        if matches!(*self.rows(), Rows::TooMany) {
            return rows;
        }
        stream::once(self.read(rows)).flatten().boxed()
    }

    async fn read(
        self: Arc<Self>,
        mut rows: BoxStream<'static, Result<RecordBatch>>,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        let mut batches = Vec::new();
        let mut taken = 0;
        while let Some(batch) = rows.next().await {
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => {
                    self.gives_back(taken);
                    return stream::once(async { Err(error) }).boxed();
                }
            };
            let bytes = batch.get_array_memory_size();
            let fits = self.takes(bytes);
            batches.push(batch);
            if !fits {
                *self.rows() = Rows::TooMany;
                self.gives_back(taken);
                return stream::iter(batches.into_iter().map(Ok)).chain(rows).boxed();
            }
            taken += bytes;
        }
        let batches = Arc::new(batches);
        *self.rows() = Rows::Read(Arc::clone(&batches));
        let given = (0..batches.len()).filter_map(move |index| batches.get(index).cloned().map(Ok));
        stream::iter(given).boxed()
    }
}
