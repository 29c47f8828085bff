//! Arbitrary keys of every kind, and a way to run one check for each kind.

use moraine_keys::{
    Archived, ByteString, ChangelogKey, ChunkLocatorKey, ChunkRangeKey, ColumnKey, DataFileKey,
    DeleteFileKey, DeleteTargetKey, Entity, FileColumnStatsKey, FileDeleteTableKey, FormatKey, GcFileKey,
    HeadKey, History, HistoryKey, IndexDefinitionKey, InlineDeleteKey, InlineFileDeleteKey, InlineInsertKey,
    InlineSchemaKey, Key, Kind, Live, MacroKey, MaintenanceStatusKey, MappingKey, MigrationKey,
    MultiIndexKey, NameKey, OptionKey, PartitionKey, RowTombstoneKey, SchemaDroppedKey, SchemaKey,
    SchemaVersionKey, SnapshotKey, SortKey, TableColumnStatsKey, TableKey, TableStatsKey, TagKey,
    UniqueIndexKey, Versioned, ViewKey,
};
use proptest::prelude::*;

/// A kind of which arbitrary keys can be made.
pub(crate) trait Sample: Kind {
    /// Arbitrary keys of the kind.
    fn arbitrary() -> BoxedStrategy<Self>;
}

/// Ids: often few and small so that they collide, often at the places where a byte carries or looks like an escape.
pub(crate) fn ids() -> BoxedStrategy<u64> {
    prop_oneof![
        4 => 0..4u64,
        2 => prop::sample::select(vec![255, 256, 257, 1 << 32, 1 << 56, (1 << 56) + 1, 2 << 56, u64::MAX - 1, u64::MAX]),
        1 => any::<u64>(),
    ]
    .boxed()
}

/// Byte strings full of what the codec has to escape.
pub(crate) fn byte_strings() -> BoxedStrategy<ByteString> {
    let byte = prop_oneof![2 => 0..3u8, 1 => any::<u8>()];
    prop::collection::vec(byte, 0..12).prop_map(ByteString).boxed()
}

/// Names, some of them prefixes of others, some with control characters, some not ASCII.
pub(crate) fn names() -> BoxedStrategy<String> {
    let character = prop_oneof![
        3 => prop::sample::select(vec!['a', 'b', '\0', '\u{1}', '\u{2}']),
        1 => any::<char>(),
    ];
    prop::collection::vec(character, 0..6)
        .prop_map(|characters| characters.into_iter().collect())
        .boxed()
}

macro_rules! samples {
    ($($name:ident { $($field:ident: $strategy:expr),* $(,)? }),+ $(,)?) => { $(
        impl Sample for $name {
            fn arbitrary() -> BoxedStrategy<Self> {
                ($($strategy,)*).prop_map(|($($field,)*)| $name { $($field),* }).boxed()
            }
        }
    )+ };
}

macro_rules! unit_samples {
    ($($name:ident),+ $(,)?) => { $(
        impl Sample for $name {
            fn arbitrary() -> BoxedStrategy<Self> {
                Just($name).boxed()
            }
        }
    )+ };
}

unit_samples!(FormatKey, HeadKey, MigrationKey, MaintenanceStatusKey);
samples! {
    SnapshotKey { snapshot_id: ids() },
    SchemaKey { schema_id: ids() },
    TableKey { table_id: ids() },
    ViewKey { view_id: ids() },
    ColumnKey { table_id: ids(), column_id: ids() },
    PartitionKey { table_id: ids(), partition_id: ids() },
    DataFileKey { table_id: ids(), data_file_id: ids() },
    DeleteFileKey { table_id: ids(), delete_file_id: ids() },
    FileColumnStatsKey { table_id: ids(), data_file_id: ids(), column_id: ids() },
    TableStatsKey { table_id: ids() },
    TableColumnStatsKey { table_id: ids(), column_id: ids() },
    TagKey { object_id: ids() },
    OptionKey { scope_kind: 0..3u64, scope_id: ids() },
    SortKey { table_id: ids(), sort_id: ids() },
    MacroKey { macro_id: ids() },
    MappingKey { table_id: ids(), mapping_id: ids() },
    IndexDefinitionKey { table_id: ids(), index_id: ids() },
    GcFileKey { data_file_id: ids() },
    InlineSchemaKey { table_id: ids(), schema_version: ids() },
    InlineInsertKey { table_id: ids(), schema_version: ids(), begin_snapshot: ids(), chunk_seq: ids() },
    InlineDeleteKey { table_id: ids(), row_id: ids() },
    InlineFileDeleteKey { table_id: ids(), data_file_id: ids(), row_id: ids() },
    FileDeleteTableKey { table_id: ids() },
    ChunkRangeKey { table_id: ids(), row_id_end: ids() },
    SchemaDroppedKey { table_id: ids(), schema_version: ids() },
    ChunkLocatorKey {
        table_id: ids(),
        row_id_end: ids(),
        schema_version: ids(),
        begin_snapshot: ids(),
        chunk_seq: ids(),
    },
    RowTombstoneKey { table_id: ids(), row_id: ids(), end_snapshot: ids() },
    UniqueIndexKey { index_id: ids(), canonical: byte_strings() },
    MultiIndexKey { index_id: ids(), canonical: byte_strings(), row_id: ids() },
    SchemaVersionKey { table_id: ids(), begin_snapshot: ids() },
    ChangelogKey { snapshot_id: ids() },
    NameKey { kind: 0..2u64, parent_id: ids(), name: names(), entity_id: ids() },
    DeleteTargetKey { table_id: ids(), data_file_id: ids(), delete_file_id: ids() },
}

impl<K: Versioned + Sample> Sample for History<K> {
    fn arbitrary() -> BoxedStrategy<Self> {
        (K::arbitrary(), ids())
            .prop_map(|(entity, end_snapshot)| Self { entity, end_snapshot })
            .boxed()
    }
}

impl<K: Live + Sample> Sample for Archived<K> {
    fn arbitrary() -> BoxedStrategy<Self> {
        K::arbitrary().prop_map(|operation| Self { operation }).boxed()
    }
}

/// Calls the generic function `$check` once for each kind that has a type of its own.
macro_rules! for_every_kind {
    ($check:ident) => {
        $crate::samples::for_every_kind!(@ $check:
            FormatKey, HeadKey, MigrationKey, MaintenanceStatusKey, SnapshotKey, SchemaKey, TableKey, ViewKey,
            ColumnKey, PartitionKey, DataFileKey, DeleteFileKey, FileColumnStatsKey, TableStatsKey,
            TableColumnStatsKey, TagKey, OptionKey, SortKey, MacroKey, MappingKey, IndexDefinitionKey, GcFileKey,
            History<SchemaKey>, History<TableKey>, History<ViewKey>, History<ColumnKey>, History<PartitionKey>,
            History<DataFileKey>, History<DeleteFileKey>, History<SortKey>, History<MacroKey>,
            History<IndexDefinitionKey>, InlineSchemaKey, InlineInsertKey, InlineDeleteKey, InlineFileDeleteKey,
            Archived<InlineInsertKey>, Archived<InlineDeleteKey>, Archived<InlineFileDeleteKey>,
            FileDeleteTableKey, ChunkRangeKey, SchemaDroppedKey, ChunkLocatorKey, RowTombstoneKey,
            UniqueIndexKey, MultiIndexKey, SchemaVersionKey, ChangelogKey, NameKey, DeleteTargetKey
        )
    };
    (@ $check:ident: $($kind:ty),+) => {{
        #[allow(unused_imports, clippy::wildcard_imports)]
        use moraine_keys::*;
        $( $check::<$kind>(); )+
    }};
}
pub(crate) use for_every_kind;

/// Keys of kind `K`, as keys of the tree.
fn tree<K: Sample>() -> BoxedStrategy<Key> {
    K::arbitrary().prop_map(|key| key.to_key()).boxed()
}

/// Arbitrary keys of every kind, those that are never written included.
pub(crate) fn keys() -> BoxedStrategy<Key> {
    let mut kinds = Vec::new();
    macro_rules! push {
        ($($kind:ty),+ $(,)?) => { $( kinds.push(tree::<$kind>()); )+ };
    }
    push!(
        FormatKey,
        HeadKey,
        MigrationKey,
        MaintenanceStatusKey,
        SnapshotKey,
        GcFileKey
    );
    push!(
        InlineSchemaKey,
        InlineInsertKey,
        InlineDeleteKey,
        InlineFileDeleteKey,
        FileDeleteTableKey
    );
    push!(
        Archived<InlineInsertKey>,
        Archived<InlineDeleteKey>,
        Archived<InlineFileDeleteKey>
    );
    push!(
        ChunkRangeKey,
        SchemaDroppedKey,
        ChunkLocatorKey,
        RowTombstoneKey,
        UniqueIndexKey,
        MultiIndexKey
    );
    push!(SchemaVersionKey, ChangelogKey, NameKey, DeleteTargetKey);
    macro_rules! push_entities {
        ($($kind:ty),+ $(,)?) => { $(
            kinds.push(tree::<$kind>());
            kinds.push(
                (<$kind>::arbitrary(), ids())
                    .prop_map(|(key, end_snapshot)| {
                        Key::History(HistoryKey { entity: key.to_entity(), end_snapshot })
                    })
                    .boxed(),
            );
        )+ };
    }
    push_entities!(
        SchemaKey,
        TableKey,
        ViewKey,
        ColumnKey,
        PartitionKey,
        DataFileKey,
        DeleteFileKey
    );
    push_entities!(
        FileColumnStatsKey,
        TableStatsKey,
        TableColumnStatsKey,
        TagKey,
        OptionKey,
        SortKey,
        MacroKey
    );
    push_entities!(MappingKey, IndexDefinitionKey);
    prop::strategy::Union::new(kinds).boxed()
}

/// Runs `check` on many values of `strategy`.
pub(crate) fn check<S: Strategy>(strategy: &S, check: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    if let Err(error) = runner.run(strategy, check) {
        panic!("{error}");
    }
}
