//! The chain of format units, from format 1 to the newest: one file per unit, each with frozen copies of the keys and
//! fields it needs, and the protocol by which they run. What the newest format means is not here.
//!
//! A unit runs as start, steps and finish. The start writes a marker, on which every reader and writer refuses the store;
//! each step writes a bounded batch together with a cursor that says how far it has come; the finish raises the stamp and
//! takes the marker away, in one batch. Whatever interrupts it, the next run goes on after the cursor. Every batch moves
//! the head, so that nobody goes on believing that there is no marker.

mod error;
mod frozen;
mod plan;
mod progress;
mod run;
mod step;
mod steps;
mod survey;
mod writer;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use moraine_keys::HeadKey;
use moraine_store::checkpoints::is_served;
use moraine_store::{OpenOptions, Read, ReadExt, SlateReader, SlateStore, Store, StoreUrl};

pub use error::MigrateError;
pub use progress::{Observer, Progress, Unobserved};

use plan::Plan;
use run::{Run, walks};
use survey::{Survey, survey};
use writer::Writer;

/// Records that one batch goes through, unless told otherwise.
pub const BATCH_RECORDS_DEFAULT: usize = 2048;

/// How a store is migrated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrateOptions {
    /// Whether to look at the store, say what would be done, and do nothing. Default: no.
    pub dry_run: bool,
    /// Whether to make a checkpoint of the database before anything is changed. It is kept. Default: no.
    pub checkpoint: bool,
    /// Whether to refuse a store that a server has open, rather than shut it out; asking takes some seconds, and is done
    /// once the look has found nothing wrong. Default: no.
    pub ask_for_server: bool,
    /// Records that one batch goes through at most; a batch writes about 1 MiB at most, too. At least 1.
    pub batch_records: usize,
    /// How the store is opened. Default: to write much at once.
    pub store: OpenOptions,
}

impl Default for MigrateOptions {
    fn default() -> Self {
        MigrateOptions {
            dry_run: false,
            checkpoint: false,
            ask_for_server: false,
            batch_records: BATCH_RECORDS_DEFAULT,
            store: OpenOptions {
                bulk: true,
                ..OpenOptions::default()
            },
        }
    }
}

/// A unit that was run to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitReport {
    /// Its name, for people.
    pub name: &'static str,
    /// The format it started from.
    pub from_format: u64,
    /// The format it led to.
    pub to_format: u64,
    /// Records it went through in this run; without those before an interruption.
    pub records: u64,
}

/// What a migration did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MigrationReport {
    /// The format before.
    pub from_format: u64,
    /// The format now; with [`MigrateOptions::dry_run`], the one it would have.
    pub to_format: u64,
    /// Whether it went on with a migration that had been interrupted.
    pub resumed: bool,
    /// The units, in order; with [`MigrateOptions::dry_run`], those to be run, without counts.
    pub units: Vec<UnitReport>,
    /// All records of the store before.
    pub records: u64,
    /// Records that the units and completions have to go through.
    pub to_do: u64,
    /// Records that older software had left out or behind: written or removed, see RFC 0005 and RFC 0007.
    pub completed: u64,
    /// The checkpoint that was made, by its id.
    pub checkpoint: Option<String>,
}

/// Migrates the store at `url` to the newest format, or goes on with a migration that was interrupted. A store that has
/// the newest format is left alone.
///
/// The store is looked at whole, record by record, before anything is changed, through a handle that disturbs nobody. Then
/// it is opened as its one writer: a server that runs on it is shut out. Nothing here can be undone, but a checkpoint can
/// be made first.
///
/// # Errors
/// See [`MigrateError`].
pub async fn migrate(
    url: &StoreUrl,
    options: &MigrateOptions,
    observer: &mut dyn Observer,
) -> Result<MigrationReport, MigrateError> {
    let reader = moraine_store::open_reader_ungated(url, &options.store).await?;
    match look(&reader, options, observer).await? {
        Looked::Done(report) => Ok(report),
        Looked::Go(survey) => {
            if options.ask_for_server && is_served(url, &options.store).await? {
                return Err(MigrateError::Served { url: url.to_string() });
            }
            let store = moraine_store::open_ungated(url, &options.store).await?;
            take(store, survey, options, observer).await
        }
    }
}

/// [`migrate`] on an object store of the caller's, below `prefix`; no server is asked for.
///
/// # Errors
/// See [`MigrateError`].
pub async fn migrate_on(
    object_store: Arc<dyn object_store::ObjectStore>,
    prefix: &str,
    options: &MigrateOptions,
    observer: &mut dyn Observer,
) -> Result<MigrationReport, MigrateError> {
    let reader = SlateReader::open_ungated_on(Arc::clone(&object_store), prefix, &options.store).await?;
    match look(&reader, options, observer).await? {
        Looked::Done(report) => Ok(report),
        Looked::Go(survey) => {
            let store = SlateStore::open_ungated_on(object_store, prefix, &options.store).await?;
            take(store, survey, options, observer).await
        }
    }
}

/// [`migrate`] on an opened store that nobody else uses; `dry_run` and `checkpoint` are the openers' and not looked at.
///
/// # Errors
/// See [`MigrateError`].
pub async fn migrate_store(
    store: &dyn Store,
    options: &MigrateOptions,
    observer: &mut dyn Observer,
) -> Result<MigrationReport, MigrateError> {
    let view = store.view()?;
    let (plan, survey) = plan_and_survey(view.as_ref(), observer).await?;
    drop(view);
    run_plan(store, &plan, &survey, options, observer).await
}

/// What a look at the store came to.
enum Looked {
    /// There is nothing to do, or nothing to be done.
    Done(MigrationReport),
    /// There is; this was seen.
    Go(Survey),
}

async fn look(
    reader: &SlateReader,
    options: &MigrateOptions,
    observer: &mut dyn Observer,
) -> Result<Looked, MigrateError> {
    let looked = plan_and_survey(reader, observer).await;
    if let Err(error) = reader.close().await {
        tracing::debug!(%error, "closing a store that was only looked at");
    }
    let (plan, survey) = looked?;
    if !plan.is_empty() && !options.dry_run {
        return Ok(Looked::Go(survey));
    }
    let mut report = first_report(&plan, &survey);
    if let Some(last) = plan.units.last() {
        report.to_format = last.to;
    }
    report.units = plan
        .units
        .iter()
        .map(|unit| UnitReport {
            name: unit.name,
            from_format: unit.from,
            to_format: unit.to,
            records: 0,
        })
        .collect();
    Ok(Looked::Done(report))
}

/// Migrates a store that has been looked at and opened, and closes it.
async fn take(
    store: Arc<SlateStore>,
    seen: Survey,
    options: &MigrateOptions,
    observer: &mut dyn Observer,
) -> Result<MigrationReport, MigrateError> {
    let outcome = run_taken(&store, seen, options, observer).await;
    let closed = store.close().await;
    let report = outcome?;
    closed?;
    Ok(report)
}

async fn run_taken(
    store: &SlateStore,
    seen: Survey,
    options: &MigrateOptions,
    observer: &mut dyn Observer,
) -> Result<MigrationReport, MigrateError> {
    let view = store.view()?;
    // Somebody may have written between the look and the takeover.
    let (plan, survey) = if view.value(&HeadKey).await? == seen.head {
        (Plan::read(view.as_ref()).await?, seen)
    } else {
        plan_and_survey(view.as_ref(), observer).await?
    };
    drop(view);
    let mut checkpoint = None;
    if options.checkpoint && !plan.is_empty() {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!(
            "before-migration-from-{}-at-{}",
            plan.stamped,
            since_1970.as_secs()
        );
        checkpoint = Some(store.create_checkpoint(&name, None).await?);
    }
    let mut report = run_plan(store, &plan, &survey, options, observer).await?;
    report.checkpoint = checkpoint;
    Ok(report)
}

async fn plan_and_survey(
    read: &dyn Read,
    observer: &mut dyn Observer,
) -> Result<(Plan, Survey), MigrateError> {
    let plan = Plan::read(read).await?;
    let survey = survey(read, &plan, &walks(&plan), observer).await?;
    Ok((plan, survey))
}

fn first_report(plan: &Plan, survey: &Survey) -> MigrationReport {
    MigrationReport {
        from_format: plan.stamped,
        to_format: plan.stamped,
        resumed: plan.marker.is_some(),
        records: survey.records,
        to_do: survey.to_do,
        ..MigrationReport::default()
    }
}

async fn run_plan(
    store: &dyn Store,
    plan: &Plan,
    survey: &Survey,
    options: &MigrateOptions,
    observer: &mut dyn Observer,
) -> Result<MigrationReport, MigrateError> {
    let options = &MigrateOptions {
        batch_records: options.batch_records.max(1),
        ..options.clone()
    };
    let writer = Writer::new(store, plan.stamped, plan.marker.clone());
    let report = first_report(plan, survey);
    Run::new(writer, options, observer, survey.to_do, report)
        .all(plan)
        .await
}
