//! What the command says to input that it cannot use: one line that tells what to do, and a code that scripts can see.

// A test fails by panicking, and so may its helpers.
#![allow(clippy::expect_used)]

use std::process::{Command, Output};

fn moraine(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_moraine"))
        .args(arguments)
        .output()
        .expect("the command runs")
}

/// The command must fail with `code` and say each of `words` on standard error, and no backtrace.
fn refused(arguments: &[&str], code: i32, words: &[&str]) {
    let output = moraine(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?} said {said}");
    for word in words {
        assert!(said.contains(word), "{arguments:?} does not say {word:?}: {said}");
    }
    assert!(
        !said.contains("panicked") && !said.contains("backtrace"),
        "{said}"
    );
}

#[test]
fn an_unknown_scheme_is_refused_with_those_that_are_known() {
    for command in ["serve", "info"] {
        refused(
            &[command, "ftp://somewhere/lake"],
            2,
            &["ftp", "s3://bucket/prefix", "./lake"],
        );
    }
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("nothing");
    refused(&["info", &missing.display().to_string()], 1, &["nothing"]);
    assert!(!missing.exists(), "looking must not make anything");
}

#[test]
fn an_empty_folder_holds_no_lake() {
    let folder = tempfile::tempdir().expect("a folder");
    refused(
        &["info", &folder.path().display().to_string()],
        1,
        &["no lake", "moraine serve"],
    );
}

#[test]
fn an_address_that_others_can_reach_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("lake").display().to_string();
    refused(
        &["serve", &root, "--listen", "0.0.0.0:0"],
        1,
        &["password", "127.0.0.1"],
    );
    refused(&["serve", &root, "--listen", "[::]:0"], 1, &["password"]);
    refused(&["serve", &root, "--listen", "localhost"], 2, &["127.0.0.1:5433"]);
    assert!(
        !folder.path().join("lake").exists(),
        "nothing is made before the input is good"
    );
}

#[test]
fn an_address_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("lake").display().to_string();
    refused(&["serve", &root, "--listen", &address], 1, &[&address]);
}

#[test]
fn a_file_is_no_place_for_lakes() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    refused(
        &[
            "serve",
            &file.path().display().to_string(),
            "--listen",
            "127.0.0.1:0",
        ],
        1,
        &["file"],
    );
}

#[test]
fn a_bucket_that_cannot_be_reached_is_known_before_anybody_attaches() {
    let output = Command::new(env!("CARGO_BIN_EXE_moraine"))
        .args(["serve", "s3://bucket/lake", "--listen", "127.0.0.1:0"])
        .env("AWS_ENDPOINT", "http://127.0.0.1:1")
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_ACCESS_KEY_ID", "id")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .output()
        .expect("the command runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("s3://bucket/lake cannot be reached"), "{said}");
}

#[test]
fn a_catalog_in_memory_needs_a_data_path() {
    refused(
        &["serve", "memory://m", "--listen", "127.0.0.1:0"],
        1,
        &["--data-path"],
    );
}

#[test]
fn a_bad_log_filter_is_refused() {
    refused(&["info", "./lake", "--log-level", "a=b=c"], 2, &["log-level"]);
}

#[test]
fn without_arguments_the_commands_are_listed() {
    let output = moraine(&[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("serve") && said.contains("info"), "{said}");
}

#[test]
fn a_duckdb_file_without_a_duckdb_is_refused_with_what_was_tried() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("meta.ducklake");
    std::fs::write(&file, b"whatever").expect("a file");
    let root = folder.path().join("lake");
    let from = format!("duckdb:{}", file.display());
    let named = [("MORAINE_DUCKDB", "/nowhere/duckdb")];
    let none = [("PATH", "/nowhere"), ("HOME", "/nowhere")];
    for (environment, tried) in [
        (&named[..], "/nowhere/duckdb: "),
        (&none[..], "installing it with pip: "),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_moraine"))
            .args(["import", "--from", &from])
            .arg(&root)
            .env_remove("MORAINE_DUCKDB")
            .env_remove("XDG_CACHE_HOME")
            .envs(environment.iter().copied())
            .output()
            .expect("the command runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        for words in [tried, "none was found", "set MORAINE_DUCKDB"] {
            assert!(said.contains(words), "{words:?} is not in {said}");
        }
    }
    assert!(!root.exists(), "nothing is made before the source can be read");
}
