//! An import that stops half way leaves a store that says so by name, and goes on where it stopped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use moraine_migrate::Silent;
use moraine_migrate::import::{ImportError, ImportOptions, import};
use moraine_migrate::lake::{LakeError, Query, Rows, Source, SourceColumn, open_source};
use moraine_store::{MemoryStore, OpenError, Store, check_format};

use crate::support::{export_to, import_from, lake, records, sqlite};

/// A source that fails after a number of answers.
struct Failing {
    below: Box<dyn Source>,
    left: AtomicU64,
}

#[async_trait]
impl Source for Failing {
    fn name(&self) -> &str {
        self.below.name()
    }

    fn tables(&self) -> &BTreeMap<String, Vec<SourceColumn>> {
        self.below.tables()
    }

    async fn prepare(&mut self, queries: &[Query]) -> Result<(), LakeError> {
        self.below.prepare(queries).await
    }

    async fn rows(&self, query: &Query) -> Result<Box<dyn Rows>, LakeError> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 0 {
            return Err(LakeError::Changed {
                catalog: "the connection".to_owned(),
            });
        }
        self.below.rows(query).await
    }

    async fn count(&self, table: &str) -> Result<u64, LakeError> {
        self.below.count(table).await
    }

    async fn is_unchanged(&self) -> Result<bool, LakeError> {
        self.below.is_unchanged().await
    }
}

#[tokio::test]
async fn an_import_that_stops_anywhere_is_resumed_to_the_same_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lake.sqlite");
    let (_, catalog) = lake().await;
    export_to(&catalog, &sqlite(&path)).await;
    let whole = Arc::new(MemoryStore::new());
    import_from(&sqlite(&path), &whole, &ImportOptions::default())
        .await
        .unwrap();
    let whole = records(&whole).await;
    let mut interrupted = 0;
    for answers in 0.. {
        let store = Arc::new(MemoryStore::new());
        let mut source = Failing {
            below: open_source(&sqlite(&path)).await.unwrap(),
            left: AtomicU64::new(answers),
        };
        let shared = Arc::clone(&store) as Arc<dyn Store>;
        let outcome = import(&mut source, shared, &ImportOptions::default(), &Silent).await;
        if outcome.is_ok() {
            break;
        }
        assert!(matches!(&outcome, Err(ImportError::Lake(_))), "{outcome:?}");
        let gate = check_format(store.view().unwrap().as_ref()).await;
        if let Err(error) = &gate {
            interrupted += 1;
            assert!(matches!(error, OpenError::MidImport { .. }), "{error:?}");
            let told = error.to_string();
            assert!(
                told.contains("lake.sqlite") && told.contains("--restart"),
                "{told}"
            );
        }
        let options = ImportOptions {
            restart: answers % 2 == 1,
            ..ImportOptions::default()
        };
        import_from(&sqlite(&path), &store, &options).await.unwrap();
        let resumed = records(&store).await;
        assert_eq!(resumed.len(), whole.len());
        let differing = resumed
            .iter()
            .find(|(key, value)| whole.get(*key) != Some(*value));
        // The head alone counts batches, and an interruption may have cost one.
        assert!(
            differing.is_none_or(|(key, _)| key.as_ref() == [2, 3]),
            "{differing:?}"
        );
    }
    assert!(interrupted > 5, "{interrupted}");
}

#[tokio::test]
async fn another_import_does_not_go_on_with_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lake.sqlite");
    let (_, catalog) = lake().await;
    export_to(&catalog, &sqlite(&path)).await;
    let store = Arc::new(MemoryStore::new());
    let mut source = Failing {
        below: open_source(&sqlite(&path)).await.unwrap(),
        left: AtomicU64::new(20),
    };
    let shared = Arc::clone(&store) as Arc<dyn Store>;
    import(&mut source, shared, &ImportOptions::default(), &Silent)
        .await
        .unwrap_err();
    drop(source);
    let changed = rusqlite::Connection::open(&path).unwrap();
    changed.execute_batch("DELETE FROM ducklake_tag").unwrap();
    let refused = import_from(&sqlite(&path), &store, &ImportOptions::default()).await;
    let told = refused.unwrap_err().to_string();
    assert!(
        told.contains("its source has changed") && told.contains("--restart"),
        "{told}"
    );
    let options = ImportOptions {
        restart: true,
        ..ImportOptions::default()
    };
    import_from(&sqlite(&path), &store, &options).await.unwrap();
}
