//! Running a plan: the stamp that rises, then each unit with its start, its batches and its finish. What a step does to a
//! record is in [`super::steps`], what a batch looks like in [`super::writer`].

use moraine_store::{Bytes, KeyRange, Read, View};

use super::error::MigrateError;
use super::frozen::Damage;
use super::plan::{NEWEST, Plan, key_text};
use super::progress::{Observer, Progress};
use super::step::{Action, Source, Unit, Walk};
use super::steps::schema_versions;
use super::writer::{Stamp, Writer};
use super::{MigrateOptions, MigrationReport, UnitReport};

/// Bytes of keys and values that one batch writes, but for its last record.
const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// Batches after which a walk pins a newer state: one that is pinned for long may be compacted away.
const BATCHES_PER_VIEW: u64 = 64;

/// A run in progress.
pub(crate) struct Run<'a> {
    writer: Writer<'a>,
    options: &'a MigrateOptions,
    observer: &'a mut dyn Observer,
    done: u64,
    total: u64,
    report: MigrationReport,
}

/// Actions that wait to be written together, and the records they came from.
#[derive(Default)]
struct Batch {
    actions: Vec<Action>,
    bytes: usize,
    records: u64,
    last: Option<Bytes>,
}

impl Batch {
    fn add(&mut self, key: Bytes, actions: Vec<Action>) {
        self.records += 1;
        self.last = Some(key);
        for action in actions {
            self.bytes += match &action {
                Action::Put { key, value } => key.len() + value.len(),
                Action::Delete { key } => key.len(),
            };
            self.actions.push(action);
        }
    }

    fn is_full(&self, records_max: usize) -> bool {
        self.records >= records_max as u64 || self.bytes >= BATCH_BYTES_MAX
    }
}

/// All that a plan goes through, in order.
pub(crate) fn walks(plan: &Plan) -> Vec<Walk> {
    plan.units.iter().flat_map(|unit| unit.walks).copied().collect()
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        writer: Writer<'a>,
        options: &'a MigrateOptions,
        observer: &'a mut dyn Observer,
        total: u64,
        report: MigrationReport,
    ) -> Self {
        Run {
            writer,
            options,
            observer,
            done: 0,
            total,
            report,
        }
    }

    /// Does what the plan says. Everything is durable when this returns, whatever it returns.
    pub(crate) async fn all(mut self, plan: &Plan) -> Result<MigrationReport, MigrateError> {
        let outcome = self.units(plan).await;
        let settled = self.writer.settle_all().await;
        self.report.to_format = self.writer.stamped();
        outcome.and(settled).map(|()| self.report)
    }

    async fn units(&mut self, plan: &Plan) -> Result<(), MigrateError> {
        if let Some(to) = plan.raise_to {
            self.writer.write(Stamp::Raise(to), &[]).await?;
            self.tell("raising the stamp")?;
        }
        for (place, unit) in plan.units.iter().enumerate() {
            let resume = plan.marker.as_ref().filter(|_| place == 0);
            self.unit(unit, resume.map(|marker| &marker.cursor)).await?;
        }
        Ok(())
    }

    /// `resume` is the cursor of a unit that has started.
    async fn unit(&mut self, unit: &Unit, resume: Option<&Bytes>) -> Result<(), MigrateError> {
        tracing::info!(
            unit = unit.name,
            from = unit.from,
            to = unit.to,
            resumed = resume.is_some()
        );
        if resume.is_none() {
            self.writer.write(Stamp::Start(unit), &[]).await?;
            self.tell(unit.name)?;
        }
        let cursor = resume.filter(|cursor| !cursor.is_empty());
        let mut records = 0;
        for walk in unit.walks {
            let mut range = prefix_range(walk.prefix);
            if let Some(cursor) = cursor {
                if !cursor.starts_with(walk.prefix) && walk.prefix < cursor.as_ref() {
                    continue;
                }
                if cursor.starts_with(walk.prefix) {
                    range.start = [cursor.as_ref(), &[0]].concat().into();
                }
            }
            records += self.walk(unit, walk, range).await?;
        }
        if unit.to == NEWEST {
            self.add_missing_schema_versions(unit).await?;
        }
        self.writer.write(Stamp::Finish(unit), &[]).await?;
        self.report.units.push(UnitReport {
            name: unit.name,
            from_format: unit.from,
            to_format: unit.to,
            records,
        });
        self.tell(unit.name)
    }

    /// Rows that no single record tells of. There are few of them, if any, and all of this can be done again.
    async fn add_missing_schema_versions(&mut self, unit: &Unit) -> Result<(), MigrateError> {
        let missing = self.missing_schema_versions().await?;
        for actions in missing.chunks(self.options.batch_records) {
            self.writer.write(Stamp::Within, actions).await?;
            self.report.completed += actions.len() as u64;
            self.tell(unit.name)?;
        }
        Ok(())
    }

    async fn missing_schema_versions(&mut self) -> Result<Vec<Action>, MigrateError> {
        let view = self.writer.store().view()?;
        let mut floors = schema_versions::Floors::default();
        let read = view.as_ref();
        each(read, schema_versions::SCHEMA_VERSION, |source| floors.row(source)).await?;
        each(read, schema_versions::FROM_SNAPSHOTS.prefix, |source| {
            floors.snapshot(source)
        })
        .await?;
        each(read, schema_versions::DATA_FILE, |source| floors.file(source)).await?;
        each(read, schema_versions::ENDED_DATA_FILE, |source| {
            floors.file(source)
        })
        .await?;
        Ok(floors.missing())
    }

    /// Goes through the records of one walk in `range`; a walk writes none that it has yet to go through. Returns how
    /// many there were.
    async fn walk(&mut self, unit: &Unit, walk: &Walk, range: KeyRange) -> Result<u64, MigrateError> {
        let mut view = self.writer.store().view()?;
        let mut scan = view.scan(range.clone()).await?;
        let mut batch = Batch::default();
        let (mut records, mut batches) = (0, 0);
        while let Some((key, value)) = scan.next().await? {
            records += 1;
            let actions = act(view.as_ref(), walk, &key, &value).await?;
            batch.add(key.clone(), actions);
            if batch.is_full(self.options.batch_records) {
                self.flush(unit, walk, std::mem::take(&mut batch)).await?;
                batches += 1;
                if batches % BATCHES_PER_VIEW == 0 {
                    view = self.writer.store().view()?;
                    scan = view.scan(range.after_key(&key)).await?;
                }
            }
        }
        self.flush(unit, walk, batch).await?;
        Ok(records)
    }

    async fn flush(&mut self, unit: &Unit, walk: &Walk, batch: Batch) -> Result<(), MigrateError> {
        let Some(last) = &batch.last else {
            return Ok(());
        };
        self.writer.write(Stamp::Step(unit, last), &batch.actions).await?;
        if walk.completes {
            self.report.completed += batch.actions.len() as u64;
        }
        self.done += batch.records;
        self.tell(walk.of)
    }

    fn tell(&mut self, doing: &'static str) -> Result<(), MigrateError> {
        let progress = Progress {
            doing,
            done: self.done,
            total: Some(self.total.max(self.done)),
        };
        if self.observer.progress(&progress).is_break() {
            return Err(MigrateError::Stopped {
                format: self.writer.stamped(),
            });
        }
        Ok(())
    }
}

async fn act(view: &dyn View, walk: &Walk, key: &Bytes, value: &Bytes) -> Result<Vec<Action>, MigrateError> {
    let source = Source { key, value };
    let damaged = |damage: Damage| damaged_on_the_way(key, &damage);
    let mut beside = Vec::new();
    for other in (walk.beside)(source).map_err(damaged)? {
        beside.push(view.get(&other).await?);
    }
    (walk.act)(source, &beside).map_err(damaged)
}

async fn each(
    read: &dyn Read,
    prefix: &[u8],
    mut note: impl FnMut(Source<'_>) -> Result<(), Damage>,
) -> Result<(), MigrateError> {
    let mut scan = read.scan(prefix_range(prefix)).await?;
    while let Some((key, value)) = scan.next().await? {
        let source = Source {
            key: &key,
            value: &value,
        };
        note(source).map_err(|damage| damaged_on_the_way(&key, &damage))?;
    }
    Ok(())
}

fn damaged_on_the_way(key: &Bytes, damage: &Damage) -> MigrateError {
    MigrateError::DamagedOnTheWay {
        key: key_text(key),
        detail: damage.to_string(),
    }
}

/// Every key that begins with `prefix`, which never ends with the greatest byte.
fn prefix_range(prefix: &[u8]) -> KeyRange {
    let mut end = prefix.to_vec();
    if let Some(last) = end.last_mut() {
        *last = last.saturating_add(1);
    }
    KeyRange {
        start: Bytes::copy_from_slice(prefix),
        end: Some(end.into()),
    }
}
