//! `cargo xtask bench migrate`: the import and the migration of a catalog with many file records, each beside a plain scan and
//! rewrite of the same keys in SlateDB and, where a PostgreSQL is given, beside `COPY` of the same rows. Each measurement is a
//! process of its own on a store of its own, so that peak memory is that of the work alone. Prints file records per second,
//! ratios and peak memory; asserts nothing.

#![allow(missing_docs)]

mod lake;
mod work;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

/// What a process of its own did.
struct Measured {
    took: Duration,
    peak_kib: u64,
    /// Records or rows gone through.
    records: u64,
    /// Of a migration, the time in which it only looked.
    looking: Duration,
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["work", rest @ ..] => work(rest),
        [sizes, postgres @ ..] => {
            for files in sizes.split(',') {
                let files: u64 = files.parse().context("numbers of files are missing")?;
                let folder = tempfile::Builder::new()
                    .prefix("moraine-bench-migrate-")
                    .tempdir()?;
                compare(folder.path(), files, postgres.first().copied())?;
            }
            Ok(())
        }
        [] => bail!("usage: bench_migrate FILES[,FILES...] [POSTGRES_CONNSTR]"),
    }
}

/// Does one piece of work, in this process, and says how it went in one line of JSON.
fn work(words: &[&str]) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let started = Instant::now();
    let mut looking = Duration::ZERO;
    let records = match words {
        ["make", sqlite, files] => runtime.block_on(lake::make(Path::new(sqlite), files.parse()?))?,
        ["older", newest, older] => runtime.block_on(lake::older(newest, older))?,
        ["import", sqlite, store] => runtime.block_on(work::import_lake(Path::new(sqlite), store))?,
        ["migrate", store] => {
            looking = runtime.block_on(work::migrate_lake(store))?;
            0
        }
        ["same", store] => runtime.block_on(work::same_reads_and_writes(store))?,
        ["rewrite", store] => runtime.block_on(work::rewrite(store))?,
        ["copy", sqlite, postgres] => runtime.block_on(work::copy(Path::new(sqlite), postgres))?,
        other => bail!("no such work: {other:?}"),
    };
    let said = json!({
        "seconds": started.elapsed().as_secs_f64(),
        "looking": looking.as_secs_f64(),
        "records": records,
        "peak_kib": peak_kib(),
    });
    println!("{said}");
    Ok(())
}

/// The most memory that was resident in this process, in KiB; 0 where the system does not tell.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Has a process of its own do one piece of work.
fn measured(words: &[&str]) -> anyhow::Result<Measured> {
    let output = Command::new(std::env::current_exe()?)
        .arg("work")
        .args(words)
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(
        output.status.success(),
        "{} failed ({})",
        words.join(" "),
        output.status
    );
    let said: Value = serde_json::from_slice(&output.stdout)?;
    let seconds = |name: &str| Duration::from_secs_f64(said[name].as_f64().unwrap_or_default());
    Ok(Measured {
        took: seconds("seconds"),
        peak_kib: said["peak_kib"].as_u64().unwrap_or_default(),
        records: said["records"].as_u64().unwrap_or_default(),
        looking: seconds("looking"),
    })
}

fn compare(folder: &Path, files: u64, postgres: Option<&str>) -> anyhow::Result<()> {
    let place = |name: &str| -> anyhow::Result<String> {
        let path = folder.join(name);
        Ok(path.to_str().context("a folder with a name in UTF-8")?.to_owned())
    };
    let (sqlite, imported, older) = (place("lake.sqlite")?, place("imported")?, place("older")?);
    println!(
        "\n{files} file records, half of them delete files, in {} tables",
        lake::TABLES
    );
    measured(&["make", &sqlite, &files.to_string()])?;
    let import = measured(&["import", &sqlite, &imported])?;
    measured(&["older", &imported, &older])?;
    for copy in ["older again", "older once more"] {
        copy_folder(Path::new(&older), &folder.join(copy))?;
    }
    let rewrite = measured(&["rewrite", &imported])?;
    let copied = postgres
        .map(|postgres| measured(&["copy", &sqlite, postgres]))
        .transpose()?;
    let migration = measured(&["migrate", &older])?;
    let same = measured(&["same", &place("older again")?])?;
    let older_rewrite = measured(&["rewrite", &place("older once more")?])?;

    let show = |what: &str, measured: &Measured| show(what, files, measured);
    let ratios = |measured: &Measured, rewrite: &Measured| {
        ratio("a plain scan and rewrite of its keys", measured, rewrite);
        if let Some(copied) = &copied {
            ratio("COPY of the same rows into PostgreSQL", measured, copied);
        }
    };
    show("import from SQLite", &import);
    show("scan and rewrite of its keys", &rewrite);
    if let Some(copied) = &copied {
        show("COPY into PostgreSQL", copied);
    }
    ratios(&import, &rewrite);
    show("migration from format 9 to 12", &migration);
    println!(
        "  of which looking at every record: {:.1} s",
        migration.looking.as_secs_f64()
    );
    show("scan and rewrite of its keys", &older_rewrite);
    show("its own reads and writes alone", &same);
    ratios(&migration, &older_rewrite);
    ratio("its own reads and writes alone", &migration, &same);
    Ok(())
}

/// One line: how fast something was, and how much memory its process took at most.
fn show(what: &str, files: u64, measured: &Measured) {
    let seconds = measured.took.as_secs_f64();
    #[allow(clippy::cast_precision_loss)]
    let per_second = files as f64 / seconds;
    let gone_through = match measured.records {
        0 => String::new(),
        records => format!(" ({records} records or rows)"),
    };
    println!(
        "{what:32} {seconds:7.1} s {per_second:9.0} file records/s  peak memory {:5} MiB{gone_through}",
        measured.peak_kib / 1024
    );
}

fn ratio(what: &str, measured: &Measured, other: &Measured) {
    let ratio = other.took.as_secs_f64() / measured.took.as_secs_f64();
    println!("  {ratio:.2} of the rate of {what}");
}

fn copy_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target: PathBuf = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
