use std::collections::BTreeSet;

use moraine_codec::proto::SnapshotValue;
use moraine_commit::conflicts::{
    ChangesSince, CommittedChanges, Conflict, CreatedKind, OwnChange, changes_since, check,
};
use moraine_commit::{ChangeEntry, ChangesMade, QualifiedName};
use moraine_keys::{Kind, SnapshotKey};
use moraine_store::Staging;

use crate::support::{commit, head, lake};

/// A data file of table 1.
const A: u64 = 10;
/// Another one.
const B: u64 = 11;

/// For each change of a transaction (rows) whether it can follow a committed one (columns) to the same table: `X` not,
/// `f` not if both delete from the same file.
const TABLE_MATRIX: &str = "
                  insert inlined_insert delete inlined_delete flush merge rewrite compact alter drop
insert            .      .              X      X              .     .     .       .       X     X
inlined_insert    .      .              X      X              .     .     .       .       X     X
delete            X      X              f      .              .     X     X       X       X     X
inlined_delete    X      X              .      X              X     .     .       .       X     X
flush             .      .              .      X              X     .     .       .       .     X
merge             .      .              X      .              .     X     X       X       .     X
rewrite           .      .              X      .              .     X     X       X       .     X
alter             .      .              .      .              .     .     .       .       X     X
drop              .      .              .      .              .     .     .       .       .     X
";

/// The same for what has a name: in the same schema, of the same name or id.
const NAME_MATRIX: &str = "
                    create_schema drop_schema create_table create_view create_macro create_table_macro drop_view alter_view drop_macro drop_table_macro
create_schema       X             .           .            .           .            .                  .         .          .          .
drop_schema         .             X           X            X           .            .                  .         .          .          .
create_table        .             X           X            X           .            .                  .         .          .          .
create_view         .             X           X            X           .            .                  .         .          .          .
create_macro        .             X           .            .           X            .                  .         .          .          .
create_table_macro  .             X           .            .           .            X                  .         .          .          .
drop_view           .             .           .            .           .            .                  X         .          .          .
alter_view          .             .           .            .           .            .                  .         X          .          .
drop_macro          .             .           .            .           .            .                  .         .          X          .
drop_table_macro    .             .           .            .           .            .                  .         .          .          X
";

fn cells(matrix: &str) -> Vec<(String, String, String)> {
    let mut lines = matrix.lines().filter(|line| !line.trim().is_empty());
    let columns: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    let cells_of = |line: &str| {
        let mut words = line.split_whitespace();
        let own = words.next().unwrap().to_owned();
        let verdicts: Vec<&str> = words.collect();
        assert_eq!(verdicts.len(), columns.len(), "{line}");
        let pairs = columns.iter().zip(verdicts);
        pairs
            .map(|(other, verdict)| (own.clone(), (*other).to_owned(), verdict.to_owned()))
            .collect::<Vec<_>>()
    };
    lines.flat_map(cells_of).collect()
}

fn own_on_table(kind: &str, table_id: u64, files: Option<&[u64]>) -> OwnChange {
    match kind {
        "insert" => OwnChange::InsertedIntoTable(table_id),
        "inlined_insert" => OwnChange::InlinedInsert(table_id),
        "delete" => OwnChange::DeletedFromTable {
            table_id,
            data_file_ids: files.map(|files| files.iter().copied().collect()),
        },
        "inlined_delete" => OwnChange::InlinedDelete(table_id),
        "flush" => OwnChange::InlineFlush(table_id),
        "merge" => OwnChange::MergeAdjacent(table_id),
        "rewrite" => OwnChange::RewriteDelete(table_id),
        "alter" => OwnChange::AlteredTable(table_id),
        "drop" => OwnChange::DroppedTable(table_id),
        other => panic!("{other}"),
    }
}

fn committed_on_table(kind: &str, table_id: u64) -> String {
    let entry = match kind {
        "insert" => "inserted_into_table",
        "inlined_insert" => "inlined_insert",
        "delete" => "deleted_from_table",
        "inlined_delete" => "inlined_delete",
        "flush" => "inline_flush",
        "merge" => "merge_adjacent",
        "rewrite" => "rewrite_delete",
        "compact" => "compacted_table",
        "alter" => "altered_table",
        "drop" => "dropped_table",
        other => panic!("{other}"),
    };
    format!("{entry}:{table_id}")
}

/// Schema 5 is "s"; what is created in it is "n" unless said otherwise.
fn own_of_name(kind: &str, id: u64, schema_id: u64, name: &str) -> OwnChange {
    let schema = if schema_id == 5 { "S" } else { "other" };
    let created = |kind| OwnChange::Created {
        kind,
        schema_id,
        name: QualifiedName {
            schema: schema.to_owned(),
            name: name.to_owned(),
        },
    };
    match kind {
        "create_schema" => OwnChange::CreatedSchema(name.to_owned()),
        "drop_schema" => OwnChange::DroppedSchema {
            schema_id,
            name: schema.to_owned(),
        },
        "create_table" => created(CreatedKind::Table),
        "create_view" => created(CreatedKind::View),
        "create_macro" => created(CreatedKind::ScalarMacro),
        "create_table_macro" => created(CreatedKind::TableMacro),
        "drop_view" => OwnChange::DroppedView(id),
        "alter_view" => OwnChange::AlteredView(id),
        "drop_macro" => OwnChange::DroppedScalarMacro(id),
        "drop_table_macro" => OwnChange::DroppedTableMacro(id),
        other => panic!("{other}"),
    }
}

fn committed_of_name(kind: &str) -> &'static str {
    match kind {
        "create_schema" => r#"created_schema:"N""#,
        "drop_schema" => "dropped_schema:5",
        "create_table" => r#"created_table:"s"."N""#,
        "create_view" => r#"created_view:"s"."N""#,
        "create_macro" => r#"created_scalar_macro:"s"."N""#,
        "create_table_macro" => r#"created_table_macro:"s"."N""#,
        "drop_view" => "dropped_view:1",
        "alter_view" => "altered_view:1",
        "drop_macro" => "dropped_scalar_macro:1",
        "drop_table_macro" => "dropped_table_macro:1",
        other => panic!("{other}"),
    }
}

fn since(changes_made: &str, files: Option<&[u64]>) -> ChangesSince {
    let commit = CommittedChanges {
        snapshot_id: 8,
        changes: ChangesMade::parse(changes_made),
        deleted_data_file_ids: files.map(|files| files.iter().copied().collect()),
    };
    ChangesSince {
        commits: vec![commit],
    }
}

fn excluded(own: OwnChange, since: &ChangesSince) -> bool {
    check(&[own], since).is_err()
}

#[test]
fn every_pair_of_changes_to_a_table_is_judged_as_ducklake_does() {
    let mut judged = 0;
    for (own, other, verdict) in cells(TABLE_MATRIX) {
        let text = committed_on_table(&other, 1);
        let together = |own: OwnChange, files: Option<&[u64]>| excluded(own, &since(&text, files));
        let same_file = together(own_on_table(&own, 1, Some(&[A])), Some(&[A, B]));
        let other_file = together(own_on_table(&own, 1, Some(&[A])), Some(&[B]));
        let unknown = [
            together(own_on_table(&own, 1, None), Some(&[B])),
            together(own_on_table(&own, 1, Some(&[A])), None),
        ];
        let expected = match verdict.as_str() {
            "X" => (true, true, [true, true]),
            "f" => (true, false, [true, true]),
            "." => (false, false, [false, false]),
            other => panic!("{other}"),
        };
        assert_eq!((same_file, other_file, unknown), expected, "{own} after {other}");
        let elsewhere = own_on_table(&own, 2, Some(&[A]));
        assert!(
            !excluded(elsewhere, &since(&text, Some(&[B]))),
            "{own} after {other} of another table"
        );
        judged += 1;
    }
    assert_eq!(judged, 90);
}

#[test]
fn every_pair_of_changes_to_names_is_judged_as_ducklake_does() {
    let mut judged = 0;
    for (own, other, verdict) in cells(NAME_MATRIX) {
        let since = since(committed_of_name(&other), None);
        let found = excluded(own_of_name(&own, 1, 5, "n"), &since);
        assert_eq!(found, verdict == "X", "{own} after {other}");
        let elsewhere = excluded(own_of_name(&own, 2, 6, "m"), &since);
        assert!(!elsewhere, "{own} after {other} of another name");
        judged += 1;
    }
    assert_eq!(judged, 100);
}

#[test]
fn what_is_not_known_conflicts_with_everything() {
    let benign = since("created_schema:\"x\"", None);
    assert!(!excluded(OwnChange::InlinedInsert(1), &benign));
    assert!(excluded(OwnChange::Unknown, &benign));
    for text in ["merged_branch:7", "inserted_into_table:x", "dropped_table"] {
        let unknown = since(text, None);
        for (own, _, _) in cells(TABLE_MATRIX) {
            assert!(
                excluded(own_on_table(&own, 1, Some(&[A])), &unknown),
                "{own} after {text}"
            );
        }
    }
}

#[test]
fn a_conflict_names_both_sides() {
    let mut both = since("inserted_into_table:1", None);
    both.commits.push(CommittedChanges {
        snapshot_id: 9,
        changes: ChangesMade::parse("altered_table:3,altered_table:1"),
        deleted_data_file_ids: None,
    });
    let own = [OwnChange::InlinedInsert(2), OwnChange::InlinedInsert(1)];
    let conflict = check(&own, &both).unwrap_err();
    let expected = Conflict {
        own: OwnChange::InlinedInsert(1),
        committed: ChangeEntry::AlteredTable(1),
        snapshot_id: 9,
    };
    assert_eq!(*conflict, expected);
    let text = "inserting into table 1 conflicts with snapshot 9, whose changes are altered_table:1";
    assert_eq!(conflict.to_string(), text);
}

#[test]
fn a_record_names_files_only_where_it_knows_all_of_them() {
    let record = |files: &[u64], untargeted| SnapshotValue {
        snapshot_id: 8,
        changes_made: "deleted_from_table:1".to_owned(),
        deleted_data_file_ids: files.to_vec(),
        deletes_untargeted_files: untargeted,
        ..SnapshotValue::default()
    };
    let files = |value: &SnapshotValue| CommittedChanges::from(value).deleted_data_file_ids;
    assert_eq!(files(&record(&[A, B], false)), Some(BTreeSet::from([A, B])));
    assert_eq!(files(&record(&[A], true)), None);
    assert_eq!(
        files(&record(&[], false)),
        None,
        "by a writer that recorded neither"
    );
}

#[tokio::test]
async fn what_was_committed_since_is_read_from_the_records_and_gaps_are_unknown() {
    let (catalog, _) = lake().await;
    for text in ["inserted_into_table:1", "inlined_insert:2", "altered_table:3"] {
        commit(&catalog, text, Vec::new()).await;
    }
    let newest = head(&catalog).await.snapshot_id;
    let view = catalog.store().view().unwrap();
    let read = changes_since(view.as_ref(), newest - 2, newest).await.unwrap();
    let texts: Vec<String> = read
        .commits
        .iter()
        .map(|commit| commit.changes.to_string())
        .collect();
    assert_eq!(texts, ["inlined_insert:2", "altered_table:3"]);
    assert!(
        changes_since(view.as_ref(), newest, newest)
            .await
            .unwrap()
            .commits
            .is_empty()
    );

    let expired = SnapshotKey {
        snapshot_id: newest - 1,
    };
    let mut without = Staging::new(view);
    without.delete_raw(expired.encode());
    let read = changes_since(&without, newest - 2, newest).await.unwrap();
    assert!(excluded(OwnChange::InlinedInsert(7), &read));
}
