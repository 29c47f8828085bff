//! `moraine migrate` on stores of older formats, good and damaged, from the repository.

// A test fails by panicking, and so may its helpers.
#![allow(clippy::expect_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder of the repository") {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            std::fs::copy(&path, &to).expect("a copy");
        }
    }
}

/// A copy of one of the repository's stores below `folder`.
fn store(folder: &Path, name: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/formats");
    let place = folder.join(name);
    copy(&fixtures.join(name), &place);
    place
}

fn moraine(arguments: &[&str], place: &Path) -> Output {
    let program = Command::new(env!("CARGO_BIN_EXE_moraine"))
        .args(arguments)
        .arg(place)
        .output();
    program.expect("the command runs")
}

/// What a command prints; it must succeed.
fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", refusal(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn refusal(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn an_old_store_is_refused_with_the_command_that_helps_and_that_command_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = store(folder.path(), "08-good");
    let serve = moraine(&["flush", "--take-over"], &place);
    assert!(!serve.status.success());
    let command = format!("`moraine migrate {}`", place.display());
    assert!(refusal(&serve).contains(&command), "{}", refusal(&serve));

    let dry = said(&moraine(&["migrate", "--dry-run"], &place));
    assert!(
        dry.contains("would be migrated from format 8 to 12") && dry.contains("nothing was changed"),
        "{dry}"
    );
    let done = said(&moraine(&["migrate", "--checkpoint", "--take-over"], &place));
    assert!(
        done.contains("was migrated from format 8 to 12") && done.contains("kept as checkpoint"),
        "{done}"
    );
    let again = said(&moraine(&["migrate"], &place));
    assert!(
        again.contains("has format 12, the newest; there is nothing to do"),
        "{again}"
    );
    let checkpoints = said(&moraine(&["checkpoint", "list"], &place));
    assert!(checkpoints.contains("before-migration-from-8"), "{checkpoints}");
}

#[test]
fn of_several_stores_one_is_named_or_all_are_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["09-good", "10-good"] {
        store(folder.path(), name);
    }
    let refused = moraine(&["migrate", "--dry-run"], folder.path());
    assert!(refusal(&refused).contains("--all"), "{}", refusal(&refused));
    let all = said(&moraine(&["migrate", "--all", "--take-over"], folder.path()));
    assert!(
        all.contains("from format 9 to 12") && all.contains("from format 10 to 12"),
        "{all}"
    );
}

#[test]
fn a_damaged_store_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = store(folder.path(), "01-damaged");
    let refused = moraine(&["migrate"], &place);
    assert_eq!(refused.status.code(), Some(1));
    let refusal = refusal(&refused);
    assert!(
        refusal.contains("inline/live/delete{") && refusal.contains("left as it is"),
        "{refusal}"
    );
}
