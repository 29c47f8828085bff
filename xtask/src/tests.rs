//! `cargo xtask test`: the Rust tests, then the DuckDB sessions, and at last one line that counts both.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use clap::Args;

use crate::{python, steps};

/// Arguments of `cargo xtask test`.
#[derive(Debug, Default, Args)]
pub(crate) struct Options {
    /// Run the DuckDB sessions and scenarios whose names contain one of these, and nothing else
    #[arg(value_name = "SESSION")]
    sessions: Vec<String>,
}

/// How many tests passed and failed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Count {
    passed: u64,
    failed: u64,
}

/// Runs everything, whatever fails on the way, and fails if anything did.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let mut count = Count::default();
    let moraine = if options.sessions.is_empty() {
        let mut cargo = steps::cargo(&["test", "--workspace", "--no-fail-fast"]);
        counted("Rust tests", &mut cargo, cargo_line, &mut count)?;
        // The tests of the command have built it, with the features of the whole workspace; building its package alone
        // would compile most dependencies once more, with fewer.
        steps::moraine("debug")?
    } else {
        steps::build_moraine(false)?
    };
    let mut sessions = python::SESSIONS.program("tests/duckdb/run.py")?;
    sessions.arg("--moraine").arg(moraine).args(&options.sessions);
    counted("DuckDB sessions", &mut sessions, session_line, &mut count)?;
    println!("\n{} passed, {} failed", count.passed, count.failed);
    if count.failed > 0 {
        bail!("{} tests failed", count.failed);
    }
    Ok(())
}

/// Runs a test program, shows what it prints, and counts. A program that fails without having counted a failure (a test
/// that does not compile, a runner that breaks off) counts as one.
fn counted(
    what: &str,
    command: &mut Command,
    read: fn(&str) -> Option<Count>,
    total: &mut Count,
) -> anyhow::Result<()> {
    steps::announce(what);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", command.get_program().display()))?;
    let mut count = Count::default();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line?;
            println!("{line}");
            std::io::stdout().flush()?;
            if let Some(found) = read(&line) {
                count.passed += found.passed;
                count.failed += found.failed;
            }
        }
    }
    if !child.wait()?.success() && count.failed == 0 {
        count.failed = 1;
    }
    total.passed += count.passed;
    total.failed += count.failed;
    Ok(())
}

/// `test result: ok. 5 passed; 0 failed; …`
fn cargo_line(line: &str) -> Option<Count> {
    let rest = line.strip_prefix("test result: ")?;
    Some(Count {
        passed: number_before(rest, " passed")?,
        failed: number_before(rest, " failed")?,
    })
}

/// `5 passed, 0 failed`
fn session_line(line: &str) -> Option<Count> {
    let (passed, failed) = line.strip_suffix(" failed")?.split_once(" passed, ")?;
    Some(Count {
        passed: passed.parse().ok()?,
        failed: failed.parse().ok()?,
    })
}

fn number_before(text: &str, word: &str) -> Option<u64> {
    let (before, _) = text.split_once(word)?;
    before.rsplit([' ', ';']).next()?.parse().ok()
}

#[cfg(test)]
mod reading_summaries {
    use super::*;

    #[test]
    fn a_line_of_cargo_is_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(
            cargo_line(line),
            Some(Count {
                passed: 12,
                failed: 3
            })
        );
        assert_eq!(cargo_line("test keys::order ... ok"), None);
    }

    #[test]
    fn a_line_of_the_sessions_is_counted() {
        assert_eq!(
            session_line("91 passed, 2 failed"),
            Some(Count {
                passed: 91,
                failed: 2
            })
        );
        assert_eq!(session_line("ok     views (35 statements, 2.9 s)"), None);
    }
}
