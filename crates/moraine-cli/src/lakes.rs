//! `moraine import`, `moraine export` and `moraine verify`: opens both sides, shows how far the work is, and prints what came of
//! it. What is done is `moraine-migrate`'s.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use comfy_table::Table;
use indicatif::{ProgressBar, ProgressStyle};
use moraine_commit::Catalog;
use moraine_migrate::Progress;
use moraine_migrate::export::{ExportOptions, export};
use moraine_migrate::import::{ImportOptions, ImportReport, import};
use moraine_migrate::lake::{CatalogLocation, open_source, open_target};
use moraine_migrate::verify::{Sum, TableComparison, VerifyOptions, verify};
use moraine_store::{OpenError, OpenOptions, ReadPoint, Store, StoreUrl, open, open_read_only};

use crate::arguments::{ExportArguments, ImportArguments, LakeChoice, VerifyArguments};
use crate::places;
use crate::report::{align_right, plain_table};

/// How often a lake that is read is looked at again; what is read is one state all the same.
const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// The database of a lake that is imported, unless another is named.
const DATABASE: &str = "lake";
/// The schema of a lake, unless another is named.
const SCHEMA: &str = "public";

/// Imports, and prints what was imported and repaired.
pub(crate) async fn run_import(arguments: ImportArguments) -> anyhow::Result<()> {
    let location = CatalogLocation::parse(&arguments.from, arguments.from_schema.as_deref())?;
    let mut source = open_source(&location).await?;
    let database = arguments.lake.database.as_deref().unwrap_or(DATABASE);
    let url = store_of(&arguments.url, database, &arguments.lake);
    let options = OpenOptions {
        resume_import: true,
        bulk: true,
        ..OpenOptions::create()
    };
    let store = open(&url, &options).await?;
    let import_options = ImportOptions {
        repair: arguments.repair,
        restart: arguments.restart,
        data_path: arguments.data_path.as_deref().map(with_slash),
    };
    let progress = Bar::new();
    let shared: Arc<dyn Store> = Arc::clone(&store) as Arc<dyn Store>;
    let imported = import(source.as_mut(), shared, &import_options, &progress).await;
    progress.finish();
    let closed = store.close().await;
    let report = imported.with_context(|| format!("cannot import {location} into {url}"))?;
    closed.with_context(|| format!("cannot close {url}"))?;
    print!("{}", import_text(&report, &location, &url));
    if !arguments.verify {
        return Ok(());
    }
    let mut source = open_source(&location).await?;
    let options = VerifyOptions {
        ignore_data_path: import_options.data_path.is_some(),
    };
    let compared = compare(&url, source.as_mut(), &options).await?;
    println!("{}", comparison_table(&compared));
    if !report.problems.is_empty() {
        println!("what was repaired differs");
        return Ok(());
    }
    all_equal(&compared)
}

/// Exports, and prints what was exported.
pub(crate) async fn run_export(arguments: ExportArguments) -> anyhow::Result<()> {
    let location = CatalogLocation::parse(&arguments.to, arguments.to_schema.as_deref())?;
    let url = the_lake(&arguments.url, &arguments.lake).await?;
    let catalog = read_only(&url).await?;
    let target = open_target(&location).await?;
    let options = ExportOptions {
        data_path: arguments.data_path.as_deref().map(with_slash),
    };
    let progress = Bar::new();
    let exported = export(&catalog, target, &options, &progress).await;
    progress.finish();
    catalog
        .close()
        .await
        .with_context(|| format!("cannot close {url}"))?;
    let report = exported.with_context(|| format!("cannot export {url} to {location}"))?;
    let rows: u64 = report.rows.values().sum();
    println!(
        "exported {rows} rows of {} tables to {location}, up to snapshot {}",
        report.rows.len(),
        report.snapshot_id
    );
    if !arguments.verify {
        return Ok(());
    }
    let mut source = open_source(&location).await?;
    let options = VerifyOptions {
        ignore_data_path: options.data_path.is_some(),
    };
    let compared = compare(&url, source.as_mut(), &options).await?;
    println!("{}", comparison_table(&compared));
    all_equal(&compared)
}

/// Compares, and prints the comparison.
pub(crate) async fn run_verify(arguments: VerifyArguments) -> anyhow::Result<()> {
    let location = CatalogLocation::parse(&arguments.against, arguments.against_schema.as_deref())?;
    let url = the_lake(&arguments.url, &arguments.lake).await?;
    let mut source = open_source(&location).await?;
    let options = VerifyOptions {
        ignore_data_path: arguments.ignore_data_path,
    };
    let compared = compare(&url, source.as_mut(), &options).await?;
    println!("{}", comparison_table(&compared));
    all_equal(&compared)
}

async fn compare(
    url: &StoreUrl,
    source: &mut dyn moraine_migrate::lake::Source,
    options: &VerifyOptions,
) -> anyhow::Result<Vec<TableComparison>> {
    let catalog = read_only(url).await?;
    let progress = Bar::new();
    let compared = verify(&catalog, source, options, &progress).await;
    progress.finish();
    catalog
        .close()
        .await
        .with_context(|| format!("cannot close {url}"))?;
    compared.with_context(|| format!("cannot compare {url} with {}", source.name()))
}

/// The store of the lake that a server with this root serves under these names.
fn store_of(root: &StoreUrl, database: &str, lake: &LakeChoice) -> StoreUrl {
    let schema = lake.schema.as_deref().unwrap_or(SCHEMA);
    root.join("catalog").join(database).join(schema)
}

/// The lake that is named, else the one lake at or below `url`.
async fn the_lake(url: &StoreUrl, lake: &LakeChoice) -> anyhow::Result<StoreUrl> {
    if let Some(database) = &lake.database {
        return Ok(store_of(url, database, lake));
    }
    let mut urls = places::lakes(url).await?;
    if let Some(schema) = &lake.schema {
        urls.retain(|found| found.to_string().ends_with(&format!("/{schema}")));
    }
    match (urls.pop(), urls.is_empty()) {
        (Some(lake), true) => Ok(lake),
        (None, _) => anyhow::bail!("there is no lake of that schema at or below {url}"),
        (Some(_), false) => {
            anyhow::bail!("there is more than one lake below {url}; name one with --database")
        }
    }
}

/// The lake, open for reading: a server that runs on it goes on undisturbed.
async fn read_only(url: &StoreUrl) -> Result<Arc<Catalog>, OpenError> {
    let newest = ReadPoint::Newest {
        poll_interval: POLL_INTERVAL,
    };
    let store = open_read_only(url, &OpenOptions::default(), &newest).await?;
    Ok(Catalog::with_store(store))
}

fn with_slash(path: &str) -> String {
    if path.ends_with('/') {
        path.to_owned()
    } else {
        format!("{path}/")
    }
}

fn import_text(report: &ImportReport, location: &CatalogLocation, url: &StoreUrl) -> String {
    let rows: u64 = report.rows.values().sum();
    let mut text = format!(
        "imported {rows} rows from {location} into {url}, up to snapshot {}\n",
        report.snapshot_id
    );
    if report.resumed_batches > 0 {
        text.push_str(&format!(
            "{} batches were there already, from an import that was interrupted\n",
            report.resumed_batches
        ));
    }
    if !report.problems.is_empty() {
        text.push_str(&format!(
            "{} repairs:\n{}",
            report.problems.total, report.problems
        ));
    }
    text
}

fn comparison_table(compared: &[TableComparison]) -> Table {
    let mut table = plain_table(&["table", "rows here", "rows there", "sum here", "sum there", ""]);
    let rows = |sum: Option<Sum>| sum.map_or_else(|| "-".to_owned(), |sum| sum.rows.to_string());
    let hash = |sum: Option<Sum>| sum.map_or_else(|| "-".to_owned(), |sum| format!("{:032x}", sum.hash));
    for of in compared {
        let verdict = if of.is_equal() { "same" } else { "DIFFERENT" };
        table.add_row([
            of.table.clone(),
            rows(of.here),
            rows(of.there),
            hash(of.here),
            hash(of.there),
            verdict.to_owned(),
        ]);
    }
    align_right(&mut table, 1..3);
    table
}

fn all_equal(compared: &[TableComparison]) -> anyhow::Result<()> {
    let different: Vec<&str> = compared
        .iter()
        .filter(|of| !of.is_equal())
        .map(|of| of.table.as_str())
        .collect();
    anyhow::ensure!(
        different.is_empty(),
        "the two lakes differ in {}",
        different.join(", ")
    );
    println!("{} tables are the same on both sides", compared.len());
    Ok(())
}

/// A bar on the terminal, where there is one.
struct Bar {
    bar: ProgressBar,
    table: Mutex<String>,
}

impl Bar {
    fn new() -> Bar {
        let bar = if std::io::stderr().is_terminal() {
            ProgressBar::no_length()
        } else {
            ProgressBar::hidden()
        };
        Bar {
            bar,
            table: Mutex::default(),
        }
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn table(&self, table: &str, rows: Option<u64>) {
        let mut known = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.clone_into(&mut known);
        let template = match rows {
            Some(_) => "{msg:32} {bar:32} {pos}/{len} rows, {per_sec}, {eta} left",
            None => "{msg:32} {pos} rows, {per_sec}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
        self.bar.reset();
        if let Some(rows) = rows {
            self.bar.set_length(rows);
        }
        self.bar.set_message(known.clone());
    }

    fn rows(&self, rows: u64) {
        self.bar.inc(rows);
    }
}
