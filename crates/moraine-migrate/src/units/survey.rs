//! The look at every record before anything is changed: whatever this version could not read afterwards is found here, so
//! that a damaged store is refused as it is. Counts what the units will go through, too.

use moraine_codec::proto::HeadValue;
use moraine_codec::{Record, decode_record};
use moraine_store::{Bytes, KeyRange, Read};

use super::error::{DAMAGES_SHOWN_MAX, MigrateError};
use super::plan::{Plan, key_text};
use super::progress::{Observer, Progress};
use super::step::Walk;

/// How many records pass between two reports.
const RECORDS_PER_REPORT: u64 = 4096;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// All records of the store.
    pub(crate) records: u64,
    /// Records that the units have yet to go through.
    pub(crate) to_do: u64,
    /// The head of the state that was looked at.
    pub(crate) head: Option<HeadValue>,
}

/// Kinds of records that only some formats have: what their keys begin with, and the first and last such format.
const BOUND_KINDS: [(&[u8], &str, u64, u64); 4] = [
    (&[6, 3, 3], "ends of inlined rows as one record per row", 0, 8),
    (&[6, 9], "ends of inlined rows as events", 9, u64::MAX),
    (&[10], "a name directory", 11, u64::MAX),
    (&[11], "a directory of delete files", 12, u64::MAX),
];

/// Looks at every record of one state of the store.
pub(crate) async fn survey(
    read: &dyn Read,
    plan: &Plan,
    walks: &[Walk],
    observer: &mut dyn Observer,
) -> Result<Survey, MigrateError> {
    let mut survey = Survey::default();
    let mut damages = Damages::default();
    let mut scan = read.scan(KeyRange::all()).await?;
    while let Some((key, value)) = scan.next().await? {
        survey.records += 1;
        match decode_record(&key, &value) {
            Ok(Record::Head(_, head)) => survey.head = Some(head),
            Ok(_) => {
                if let Some(detail) = out_of_place(&key, plan) {
                    damages.add(|| format!("{}: {detail}", key_text(&key)));
                }
            }
            Err(error) => damages.add(|| format!("{}: {error}", key_text(&key))),
        }
        if let Some(walk) = walks.iter().find(|walk| key.starts_with(walk.prefix)) {
            let is_done = plan.cursor().is_some_and(|cursor| key <= *cursor);
            survey.to_do += u64::from(!is_done || !is_of_first_unit(plan, walk));
        }
        if survey.records.is_multiple_of(RECORDS_PER_REPORT) {
            let progress = Progress {
                doing: "looking at every record",
                done: survey.records,
                total: None,
            };
            if observer.progress(&progress).is_break() {
                return Err(MigrateError::Stopped { format: plan.stamped });
            }
        }
    }
    damages.check()?;
    Ok(survey)
}

fn is_of_first_unit(plan: &Plan, walk: &Walk) -> bool {
    let first = plan.units.first().into_iter();
    first
        .flat_map(|unit| unit.walks)
        .any(|of| of.prefix == walk.prefix)
}

/// Why a store of this format cannot have this record.
fn out_of_place(key: &Bytes, plan: &Plan) -> Option<String> {
    let (_, kind, first, last) = BOUND_KINDS.iter().find(|(prefix, ..)| key.starts_with(prefix))?;
    let reached = plan
        .marker
        .as_ref()
        .map_or(plan.stamped, |marker| marker.to_format);
    // While a unit is under way the store has records of both of its formats.
    if (*first..=*last).contains(&plan.stamped) || (*first..=*last).contains(&reached) {
        return None;
    }
    Some(format!(
        "the store has format {}, and no store of that format has {kind}",
        plan.stamped
    ))
}

/// The damaged records: the first few in words, and how many.
#[derive(Debug, Default)]
struct Damages {
    found: Vec<String>,
    count: u64,
}

impl Damages {
    fn add(&mut self, text: impl FnOnce() -> String) {
        self.count += 1;
        if self.found.len() < DAMAGES_SHOWN_MAX {
            self.found.push(text());
        }
    }

    fn check(self) -> Result<(), MigrateError> {
        if self.count == 0 {
            return Ok(());
        }
        Err(MigrateError::Damaged {
            found: self.found,
            count: self.count,
        })
    }
}
