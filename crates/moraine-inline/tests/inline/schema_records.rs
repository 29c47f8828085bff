//! Schema records: registration, the dropped marker, and storing equal schemas once.

use moraine_codec::proto::InlineSchemaValue;
use moraine_inline::{InlineError, create_table, deregister, encode_schema, register, schema, versions};
use moraine_keys::{InlineSchemaKey, SchemaDroppedKey};
use moraine_store::{MemoryStore, ReadExt, Staging};

use crate::support::{
    TABLE, columns, drop_version, fresh, insert, is_corruption_at, keys, put, put_unverified, rows, run,
    staging,
};

fn key(schema_version: u64) -> InlineSchemaKey {
    InlineSchemaKey {
        table_id: TABLE,
        schema_version,
    }
}

async fn record(staging: &Staging, version: u64) -> InlineSchemaValue {
    staging.value(&key(version)).await.unwrap().unwrap()
}

fn refer(staging: &mut Staging, from: u64, to: u64) {
    let reference = InlineSchemaValue {
        arrow_schema: bytes::Bytes::new(),
        same_as_version: Some(to),
    };
    put_unverified(staging, &key(from), &reference);
}

fn other_columns() -> arrow_schema::Schema {
    columns().project(&[1]).unwrap()
}

#[test]
fn a_version_is_listed_while_registered_and_resolves_ever_after() {
    run(async {
        let mut staging = fresh().await;
        create_table(&mut staging, TABLE, 4, &other_columns(), false)
            .await
            .unwrap();
        create_table(&mut staging, 8, 1, &columns(), true).await.unwrap();
        let listed = versions(&staging, None).await.unwrap();
        assert_eq!(listed, vec![(TABLE, 3, true), (TABLE, 4, false), (8, 1, true)]);

        register(&mut staging, TABLE, 4).await.unwrap();
        deregister(&mut staging, TABLE, 3).await.unwrap();
        assert_eq!(
            versions(&staging, Some(TABLE)).await.unwrap(),
            vec![(TABLE, 3, false), (TABLE, 4, true)]
        );
        assert_eq!(schema(&staging, TABLE, 3).await.unwrap(), Some(columns()));
        assert_eq!(schema(&staging, TABLE, 5).await.unwrap(), None);
    });
}

#[test]
fn registering_a_version_clears_its_marker() {
    run(async {
        let mut staging = fresh().await;
        deregister(&mut staging, TABLE, 3).await.unwrap();
        assert_eq!(keys::<SchemaDroppedKey>(&staging).await.len(), 1);
        create_table(&mut staging, TABLE, 3, &columns(), true)
            .await
            .unwrap();
        assert!(keys::<SchemaDroppedKey>(&staging).await.is_empty());
    });
}

#[test]
fn creating_a_version_again_with_its_own_columns_changes_nothing() {
    run(async {
        let mut staging = fresh().await;
        let before = crate::support::everything(&staging).await;
        create_table(&mut staging, TABLE, 3, &columns(), false)
            .await
            .unwrap();
        create_table(&mut staging, TABLE, 3, &columns(), true)
            .await
            .unwrap();
        assert_eq!(crate::support::everything(&staging).await, before);
    });
}

#[test]
fn other_columns_replace_an_unused_record_and_never_one_that_rows_or_references_need() {
    run(async {
        let mut staging = fresh().await;
        create_table(&mut staging, TABLE, 3, &other_columns(), true)
            .await
            .unwrap();
        assert_eq!(
            *schema(&staging, TABLE, 3).await.unwrap().unwrap(),
            other_columns()
        );

        create_table(&mut staging, TABLE, 4, &other_columns(), true)
            .await
            .unwrap();
        deregister(&mut staging, TABLE, 4).await.unwrap();
        let error = create_table(&mut staging, TABLE, 3, &columns(), true)
            .await
            .unwrap_err();
        assert!(
            matches!(
                error,
                InlineError::SchemaConflict {
                    schema_version: 3,
                    ..
                }
            ),
            "{error}"
        );

        create_table(&mut staging, TABLE, 5, &columns(), true)
            .await
            .unwrap();
        put(&mut staging, 5, 1, &[0]).await;
        let error = create_table(&mut staging, TABLE, 5, &other_columns(), true)
            .await
            .unwrap_err();
        assert!(
            matches!(
                error,
                InlineError::SchemaConflict {
                    schema_version: 5,
                    ..
                }
            ),
            "{error}"
        );
    });
}

#[test]
fn a_deregistration_collapses_its_record_to_a_version_with_the_same_bytes() {
    run(async {
        let mut staging = fresh().await;
        create_table(&mut staging, TABLE, 4, &columns(), true)
            .await
            .unwrap();
        create_table(&mut staging, TABLE, 5, &other_columns(), true)
            .await
            .unwrap();
        // Another table's equal bytes are no place to refer to.
        create_table(&mut staging, 8, 1, &other_columns(), true)
            .await
            .unwrap();
        for version in [3, 5] {
            deregister(&mut staging, TABLE, version).await.unwrap();
        }
        assert_eq!(record(&staging, 3).await.same_as_version, Some(4));
        assert!(record(&staging, 3).await.arrow_schema.is_empty());
        assert_eq!(record(&staging, 5).await.same_as_version, None);
        assert_eq!(schema(&staging, TABLE, 3).await.unwrap(), Some(columns()));
    });
}

#[test]
fn a_version_that_is_a_reference_or_is_referred_to_is_left_whole() {
    run(async {
        let mut staging = fresh().await;
        for version in [4, 5] {
            create_table(&mut staging, TABLE, version, &columns(), true)
                .await
                .unwrap();
        }
        deregister(&mut staging, TABLE, 4).await.unwrap();
        let first = record(&staging, 4).await;
        assert_eq!(first.same_as_version, Some(3));
        // Again: already a reference.
        deregister(&mut staging, TABLE, 4).await.unwrap();
        assert_eq!(record(&staging, 4).await, first);
        // Referred to by 4, although 5 holds the same bytes.
        deregister(&mut staging, TABLE, 3).await.unwrap();
        assert_eq!(record(&staging, 3).await.same_as_version, None);
        // 5 may refer to 3, which carries bytes, never to 4, which does not.
        deregister(&mut staging, TABLE, 5).await.unwrap();
        assert_eq!(record(&staging, 5).await.same_as_version, Some(3));
        for version in [3, 4, 5] {
            assert_eq!(schema(&staging, TABLE, version).await.unwrap(), Some(columns()));
        }
    });
}

#[test]
fn a_reference_naming_a_version_that_carries_no_bytes_is_corruption() {
    run(async {
        let mut staging = fresh().await;
        refer(&mut staging, 4, 3);
        refer(&mut staging, 5, 4);
        refer(&mut staging, 6, 6);
        refer(&mut staging, 8, 9);
        assert!(schema(&staging, TABLE, 4).await.is_ok());
        for version in [5, 6, 8] {
            let error = schema(&staging, TABLE, version).await.unwrap_err();
            assert!(is_corruption_at(&error, &key(version)), "{error}");
        }
    });
}

#[test]
fn a_damaged_schema_stream_is_corruption_naming_the_record() {
    run(async {
        let mut staging = fresh().await;
        let bytes = encode_schema(&columns()).unwrap();
        let value = InlineSchemaValue {
            arrow_schema: bytes.slice(..bytes.len() - 9),
            same_as_version: None,
        };
        staging.put(&key(3), &value).unwrap();
        let error = schema(&staging, TABLE, 3).await.unwrap_err();
        assert!(is_corruption_at(&error, &key(3)), "{error}");
    });
}

#[test]
fn a_version_that_receives_rows_is_registered_again() {
    run(async {
        let mut staging = fresh().await;
        drop_version(&mut staging, TABLE, 3).await.unwrap();
        assert_eq!(versions(&staging, None).await.unwrap(), vec![(TABLE, 3, false)]);
        put(&mut staging, 3, 9, &[1]).await;
        assert_eq!(versions(&staging, None).await.unwrap(), vec![(TABLE, 3, true)]);
    });
}

#[test]
fn what_was_never_created_cannot_be_registered_deregistered_or_filled() {
    run(async {
        let mut staging = staging(&MemoryStore::new());
        let missing =
            |result: Result<(), InlineError>| matches!(result, Err(InlineError::NoSuchVersion { .. }));
        assert!(missing(register(&mut staging, TABLE, 3).await));
        assert!(missing(deregister(&mut staging, TABLE, 3).await));
        assert!(missing(
            insert(&mut staging, TABLE, 3, 1, &[0], &rows(&[0])).await
        ));
        drop_version(&mut staging, TABLE, 3).await.unwrap();
        assert!(staging.is_empty());
    });
}

#[test]
fn listing_registrations_decodes_no_schema() {
    run(async {
        let mut staging = fresh().await;
        let undecodable = InlineSchemaValue {
            arrow_schema: bytes::Bytes::from_static(b"no schema"),
            same_as_version: None,
        };
        put_unverified(&mut staging, &key(9), &undecodable);
        let listed = versions(&staging, Some(TABLE)).await.unwrap();
        assert_eq!(listed, vec![(TABLE, 3, true), (TABLE, 9, true)]);
        schema(&staging, TABLE, 9).await.unwrap_err();
    });
}
