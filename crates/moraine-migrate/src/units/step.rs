//! What a step is: it looks at one record of an old format and says what takes its place. Reading the records, writing
//! the actions in batches and remembering how far it has come is the driver's ([`super::run`]).

use bytes::Bytes;

use super::frozen::Damage;

/// What becomes of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// A record is written, new or over another.
    Put {
        /// Its key.
        key: Bytes,
        /// Its value.
        value: Bytes,
    },
    /// A record goes.
    Delete {
        /// Its key.
        key: Bytes,
    },
}

/// A record that a step looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    /// Its key.
    pub(crate) key: &'a Bytes,
    /// Its value.
    pub(crate) value: &'a Bytes,
}

/// Names other records by their keys.
pub(crate) type Beside = fn(Source<'_>) -> Result<Vec<Bytes>, Damage>;
/// Decides about a record.
pub(crate) type Act = fn(Source<'_>, &[Option<Bytes>]) -> Result<Vec<Action>, Damage>;

/// One pass over the records of one kind, ascending by key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk {
    /// The records, in words for people.
    pub(crate) of: &'static str,
    /// Whether it sets right what older software left out or behind, rather than what the formats differ in.
    pub(crate) completes: bool,
    /// What the keys of the kind begin with.
    pub(crate) prefix: &'static [u8],
    /// The keys of other records that the step has to see beside this one.
    pub(crate) beside: Beside,
    /// What becomes of the record, given it and those beside it.
    pub(crate) act: Act,
}

/// For steps that look at one record at a time.
pub(crate) fn nothing_beside(_: Source<'_>) -> Result<Vec<Bytes>, Damage> {
    Ok(Vec::new())
}

/// A structural step of the format: what has to be rewritten before the stamp may say `to`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit {
    /// Name, for people.
    pub(crate) name: &'static str,
    /// The format it starts from.
    pub(crate) from: u64,
    /// The format it leads to.
    pub(crate) to: u64,
    /// Its passes, ascending by prefix.
    pub(crate) walks: &'static [Walk],
}
