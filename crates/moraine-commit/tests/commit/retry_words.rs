use std::time::Duration;

use moraine_codec::EncodeError;
use moraine_commit::lake::LakeError;
use moraine_commit::verbs::{self, VerbError};
use moraine_commit::{CatalogError, CommitFailure, StageError, words};
use moraine_inline::InlineError;
use moraine_store::{CommitError, ReadError};

/// Text that an object store or an engine may put into an error, with all four words.
const HOSTILE: &str = "409 Conflict: CONCURRENT write of a Unique primary KEY";

fn read_errors() -> Vec<ReadError> {
    vec![
        ReadError::corruption("current/table{table_id=7}", HOSTILE),
        ReadError::Fenced {
            detail: HOSTILE.to_owned(),
        },
        ReadError::Unavailable {
            doing: HOSTILE.to_owned(),
            detail: HOSTILE.to_owned(),
        },
        ReadError::Closed,
        ReadError::Stopped {
            detail: HOSTILE.to_owned(),
        },
        ReadError::Invalid {
            detail: HOSTILE.to_owned(),
        },
    ]
}

fn mismatch() -> EncodeError {
    EncodeError::Mismatch {
        key: HOSTILE.to_owned(),
        detail: HOSTILE.to_owned(),
    }
}

fn inline_errors() -> Vec<InlineError> {
    let mut errors = vec![
        InlineError::Encode(mismatch()),
        InlineError::NoSuchVersion {
            table_id: 1,
            schema_version: 2,
        },
        InlineError::SchemaConflict {
            table_id: 1,
            schema_version: 2,
            held_by: HOSTILE,
        },
        InlineError::EmptyInsert,
        InlineError::RowIdCount { row_ids: 1, rows: 2 },
        InlineError::DuplicateRow {
            table_id: 1,
            row_id: 2,
            begin_snapshot: 3,
        },
        InlineError::AlreadyEnded {
            row_id: 1,
            begin_snapshot: 2,
            ended: 3,
        },
    ];
    errors.extend(read_errors().into_iter().map(InlineError::Read));
    errors
}

fn permanent_stage_errors() -> Vec<StageError> {
    let mut errors = vec![
        StageError::NoLake,
        StageError::Duplicate {
            key: "current/data_file{table_id=1, data_file_id=2}".to_owned(),
        },
        StageError::Missing {
            key: "history/column{table_id=1, column_id=2, end_snapshot=3}".to_owned(),
        },
        StageError::Constraint {
            detail: HOSTILE.to_owned(),
        },
        StageError::Limit { bytes: 2, max: 1 },
        StageError::Encode(mismatch()),
    ];
    errors.extend(read_errors().into_iter().map(StageError::Read));
    errors.extend(inline_errors().into_iter().map(StageError::Inline));
    errors
}

/// Fails to compile when a variant is added, so that it is added to the lists below as well.
fn invites_retry(error: &StageError) -> bool {
    match error {
        StageError::LostRace { .. }
        | StageError::SlotTaken { .. }
        | StageError::SlotBusy { .. }
        | StageError::Claimed { .. } => true,
        StageError::NoLake
        | StageError::Duplicate { .. }
        | StageError::Missing { .. }
        | StageError::Constraint { .. }
        | StageError::Limit { .. }
        | StageError::Inline(_)
        | StageError::Read(_)
        | StageError::Encode(_) => false,
        other => panic!("{other:?} is not in this test"),
    }
}

#[test]
fn only_lost_races_and_conflicts_invite_a_retry() {
    let races = [
        StageError::LostRace { asked: 1, newest: 1 },
        StageError::SlotTaken { asked: 1 },
        StageError::Claimed { table_id: 1 },
        StageError::SlotBusy {
            waited: Duration::from_secs(1),
        },
    ];
    for error in races.into_iter().chain(permanent_stage_errors()) {
        assert_eq!(
            words::invites_retry(&error.to_string()),
            invites_retry(&error),
            "{error}"
        );
    }
    let begin = [
        CatalogError::MidMigration {
            from_format: 9,
            to_format: 11,
        },
        CatalogError::NewerFormat {
            found: 13,
            newest: 12,
        },
        CatalogError::Read(ReadError::ReadOnly),
    ];
    for error in begin
        .into_iter()
        .chain(read_errors().into_iter().map(CatalogError::from))
    {
        assert!(!words::invites_retry(&error.to_string()), "{error}");
    }
}

#[test]
fn only_a_conflict_at_commit_invites_a_retry() {
    let hostile = || HOSTILE.to_owned();
    let outcomes = [
        CommitError::Conflicted,
        CommitError::Fenced { detail: hostile() },
        CommitError::Unknown { detail: hostile() },
    ];
    let abandoned = read_errors()
        .into_iter()
        .map(|source| CommitError::Abandoned { source });
    let mut failures: Vec<CommitFailure> = outcomes
        .into_iter()
        .chain(abandoned)
        .map(CommitFailure::from)
        .collect();
    failures.extend(permanent_stage_errors().into_iter().map(CommitFailure::from));
    failures.push(CommitFailure::Conflict { detail: hostile() });
    failures.push(CommitFailure::Constraint { detail: hostile() });
    for failure in failures {
        let conflict = matches!(failure, CommitFailure::Conflict { .. });
        assert_eq!(words::invites_retry(&failure.to_string()), conflict, "{failure}");
    }
}

#[test]
fn outcomes_keep_their_kind_on_the_way_up() {
    let detail = || "x".to_owned();
    assert!(matches!(
        CommitFailure::from(CommitError::Conflicted),
        CommitFailure::Conflict { .. }
    ));
    let fenced = [
        CommitFailure::from(CommitError::Fenced { detail: detail() }),
        CommitFailure::from(CommitError::Abandoned {
            source: ReadError::Fenced { detail: detail() },
        }),
        CommitFailure::from(ReadError::Fenced { detail: detail() }),
    ];
    assert!(
        fenced
            .iter()
            .all(|failure| matches!(failure, CommitFailure::Fenced { .. })),
        "{fenced:?}"
    );
    let unknown = CommitFailure::from(CommitError::Unknown { detail: detail() });
    assert!(matches!(unknown, CommitFailure::Unknown { .. }));
}

#[test]
fn quoted_text_loses_the_words_and_nothing_else() {
    assert_eq!(
        words::permanent("Über-Unique, uniquely; concurrently"),
        "Über-distinct, distinctly; simultaneously"
    );
    assert!(!words::invites_retry(&words::permanent(HOSTILE)));
    assert!(words::invites_retry("Transaction CONFLICT"));
}

#[test]
fn store_that_cannot_be_read_is_the_same_failure_of_inlined_rows() {
    for (of_rows, plain) in read_errors().into_iter().zip(read_errors()) {
        let of_rows = InlineError::Read(of_rows);
        assert!(
            matches!(StageError::from(of_rows), StageError::Read(_)),
            "{plain:?}"
        );
    }
    let fence = || ReadError::Fenced {
        detail: HOSTILE.to_owned(),
    };
    let rows = || InlineError::Read(fence());
    assert!(matches!(
        CommitFailure::from(rows()),
        CommitFailure::Fenced { .. }
    ));
    let verb = VerbError::from(rows());
    assert!(matches!(
        verbs::CommitError::from(verb),
        verbs::CommitError::Fenced { .. }
    ));
    assert!(matches!(
        LakeError::from(rows()),
        LakeError::Read(ReadError::Fenced { .. })
    ));
}
