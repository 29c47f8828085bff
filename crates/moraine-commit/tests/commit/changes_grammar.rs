use moraine_commit::{ChangeEntry, ChangesMade, QualifiedName};
use proptest::prelude::*;

fn name(schema: &str, name: &str) -> QualifiedName {
    QualifiedName {
        schema: schema.to_owned(),
        name: name.to_owned(),
    }
}

#[test]
fn what_ducklake_writes_is_understood_and_written_back_the_same() {
    let text = concat!(
        r#"dropped_schema:3,dropped_table:4,dropped_view:5,created_schema:"s",created_table:"s"."t","#,
        r#"created_view:"s"."v",created_scalar_macro:"s"."m",created_table_macro:"s"."n",dropped_scalar_macro:6,"#,
        r#"dropped_table_macro:7,inserted_into_table:8,deleted_from_table:9,altered_table:10,altered_view:11,"#,
        r#"inlined_insert:12,inlined_delete:13,inline_flush:14,merge_adjacent:15,rewrite_delete:16,"#,
        r#"compacted_table:17"#
    );
    let changes = ChangesMade::parse(text);
    assert!(!changes.has_unknown(), "{changes:?}");
    assert_eq!(changes.entries.len(), 20);
    assert_eq!(changes.to_string(), text);
    assert_eq!(changes.tables_deleted_from().into_iter().collect::<Vec<_>>(), [9]);
    assert_eq!(
        changes
            .tables_inline_deleted_from()
            .into_iter()
            .collect::<Vec<_>>(),
        [13]
    );
}

#[test]
fn names_may_hold_commas_quotes_dots_and_colons() {
    let entry = ChangeEntry::CreatedTable(name(r#"a"b,c"#, r#"d.":e"#));
    let text = entry.to_string();
    assert_eq!(text, r#"created_table:"a""b,c"."d."":e""#);
    assert_eq!(ChangesMade::parse(&text).entries, [entry]);
}

#[test]
fn kinds_are_read_in_any_case_and_flushes_under_both_names() {
    let changes = ChangesMade::parse("INLINED_INSERT:1,flushed_inlined:2");
    assert_eq!(
        changes.entries,
        [ChangeEntry::InlinedInsert(1), ChangeEntry::InlineFlush(2)]
    );
}

#[test]
fn what_the_grammar_does_not_know_is_kept_and_told() {
    for text in [
        "no_colon",
        "dropped_table:x",
        "branch_merge:4",
        r#"created_table:"s""#,
        r#"created_schema:"s"x"#,
        ",",
    ] {
        let changes = ChangesMade::parse(text);
        assert!(changes.has_unknown(), "{text}");
        assert_eq!(changes.to_string(), text);
    }
    assert_eq!(ChangesMade::parse(""), ChangesMade::default());
}

proptest! {
    #[test]
    fn any_text_is_kept_by_parsing(text in ".{0,60}") {
        let known = "inlined_insert:3,created_table:\"";
        for text in [text.clone(), format!("{known}{text}")] {
            let changes = ChangesMade::parse(&text);
            // Kinds in other cases, other spellings of a number and `flushed_inlined` are written in one form.
            if changes.entries.iter().all(|entry| matches!(entry, ChangeEntry::Unknown(_))) {
                prop_assert_eq!(changes.to_string(), text);
            } else {
                prop_assert_eq!(ChangesMade::parse(&changes.to_string()), changes);
            }
        }
    }

    #[test]
    fn any_names_survive(schema in ".{0,20}", table in ".{0,20}", id in any::<u64>()) {
        let changes = ChangesMade {
            entries: vec![
                ChangeEntry::CreatedView(name(&schema, &table)),
                ChangeEntry::AlteredTable(id),
                ChangeEntry::CreatedSchema(schema),
            ],
        };
        prop_assert_eq!(ChangesMade::parse(&changes.to_string()), changes);
    }
}
