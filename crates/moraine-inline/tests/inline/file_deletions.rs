//! Inlined deletions from Parquet files, and the marker of their table.

use moraine_inline::{
    InlineError, create_file_delete_table, drop_file_delete_table, file_delete_table_exists,
    file_delete_tables, file_deletes, insert_file_deletes, remove_deletes_of_file, remove_file_deletes,
};
use moraine_keys::FileDeleteTableKey;
use moraine_store::MemoryStore;

use crate::support::{TABLE, everything, keys, run, staging};

const ALL: std::ops::RangeInclusive<u64> = 0..=u64::MAX;

#[test]
fn deletions_are_listed_by_file_and_row() {
    run(async {
        let mut staging = staging(&MemoryStore::new());
        insert_file_deletes(&mut staging, TABLE, &[(4, 2, 9), (3, 7, 8), (4, 1, 9)])
            .await
            .unwrap();
        insert_file_deletes(&mut staging, 8, &[(4, 1, 9)]).await.unwrap();
        assert_eq!(
            file_deletes(&staging, TABLE, ALL).await.unwrap(),
            vec![(3, 7, 8), (4, 1, 9), (4, 2, 9)]
        );
        assert_eq!(
            file_deletes(&staging, TABLE, 3..=3).await.unwrap(),
            vec![(3, 7, 8)]
        );
        assert_eq!(file_deletes(&staging, TABLE, 5..=9).await.unwrap(), vec![]);
        assert_eq!(file_delete_tables(&staging).await.unwrap(), vec![TABLE, 8]);
    });
}

#[test]
fn an_emptied_table_still_exists() {
    run(async {
        let mut staging = staging(&MemoryStore::new());
        assert!(!file_delete_table_exists(&staging, TABLE).await.unwrap());
        insert_file_deletes(&mut staging, TABLE, &[(3, 7, 8)])
            .await
            .unwrap();
        remove_file_deletes(&mut staging, TABLE, &[(3, 7)]).await.unwrap();
        assert!(file_deletes(&staging, TABLE, ALL).await.unwrap().is_empty());
        assert!(file_delete_table_exists(&staging, TABLE).await.unwrap());
        drop_file_delete_table(&mut staging, TABLE).await.unwrap();
        assert!(!file_delete_table_exists(&staging, TABLE).await.unwrap());
        drop_file_delete_table(&mut staging, TABLE).await.unwrap();
        create_file_delete_table(&mut staging, TABLE).await.unwrap();
        assert!(file_delete_table_exists(&staging, TABLE).await.unwrap());
    });
}

#[test]
fn a_store_without_the_marker_resolves_its_rows_and_heals_on_the_first_removal() {
    run(async {
        let mut staging = staging(&MemoryStore::new());
        insert_file_deletes(&mut staging, TABLE, &[(3, 7, 8), (3, 8, 8)])
            .await
            .unwrap();
        staging.delete(&FileDeleteTableKey { table_id: TABLE });
        assert!(file_delete_table_exists(&staging, TABLE).await.unwrap());
        remove_file_deletes(&mut staging, TABLE, &[(3, 7)]).await.unwrap();
        assert_eq!(keys::<FileDeleteTableKey>(&staging).await.len(), 1);
    });
}

#[test]
fn a_deletion_is_inserted_once_and_removed_only_if_it_is_there() {
    run(async {
        let mut staging = staging(&MemoryStore::new());
        insert_file_deletes(&mut staging, TABLE, &[(3, 7, 8)])
            .await
            .unwrap();
        let before = everything(&staging).await;
        for repeated in [vec![(3, 1, 9), (3, 7, 9)], vec![(3, 1, 9), (3, 1, 9)]] {
            let error = insert_file_deletes(&mut staging, TABLE, &repeated)
                .await
                .unwrap_err();
            assert!(
                matches!(error, InlineError::DuplicateFileDelete { .. }),
                "{error}"
            );
        }
        let error = remove_file_deletes(&mut staging, TABLE, &[(3, 7), (3, 8)])
            .await
            .unwrap_err();
        assert!(
            matches!(error, InlineError::FileDeleteNotFound { row_id: 8, .. }),
            "{error}"
        );
        assert_eq!(everything(&staging).await, before);
    });
}

#[test]
fn a_pruned_file_takes_its_deletions_along_and_a_file_without_any_is_ordinary() {
    run(async {
        let mut staging = staging(&MemoryStore::new());
        insert_file_deletes(&mut staging, TABLE, &[(3, 7, 8), (3, 9, 8), (4, 7, 8)])
            .await
            .unwrap();
        remove_deletes_of_file(&mut staging, TABLE, 3).await.unwrap();
        remove_deletes_of_file(&mut staging, TABLE, 99).await.unwrap();
        assert_eq!(file_deletes(&staging, TABLE, ALL).await.unwrap(), vec![(4, 7, 8)]);
        assert!(file_delete_table_exists(&staging, TABLE).await.unwrap());
    });
}
