//! The functions Postgres clients use and DataFusion does not have, or has otherwise.

mod arithmetic;
mod arrays;
mod buckets;
mod encodings;
mod evaluation;
mod exponentials;
mod formats;
mod json;
mod moments;
mod patterns;
mod quantified;
mod records;
mod row;
mod session;
mod system;
mod texts;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use datafusion::logical_expr::ScalarUDF;

pub(crate) use arithmetic::{average, checked};
pub(crate) use exponentials::{Exponential, exact};
pub(crate) use json::{json_of_text, json_row};
pub(crate) use moments::{interval_length, interval_over, interval_times, part_function};
pub(crate) use patterns::of_similar;
pub(crate) use quantified::{is_any_equal, quantified, quantified_name};
pub(crate) use records::{RECORD, character, character_name, record, refuse_order};
pub use session::{NamedRelation, SessionFacts};
pub use system::procedure_oid;
pub(crate) use texts::output_text;
pub use texts::type_name;
pub(crate) use texts::{
    parse, parsed, regclass_of_text, regclass_text, regproc_of_text, regtype_of_text, regtype_text,
    round_even, text_of, tid_text_function, timezone, to_integer, type_oid,
};

/// Functions by name.
pub(crate) type Functions = HashMap<String, Arc<ScalarUDF>>;

/// Functions of DataFusion that Postgres has under the same name with another meaning, or does not have at all where a
/// client would be misled.
const OTHERWISE: &[&str] = &[
    "to_char",
    "to_date",
    "to_local_time",
    "to_time",
    "to_timestamp",
    "to_timestamp_micros",
    "to_timestamp_millis",
    "to_timestamp_nanos",
    "to_timestamp_seconds",
    "to_unixtime",
    "version",
];

/// The functions that PostgreSQL 15 has.
const OF_POSTGRES: &str = include_str!("postgres_functions.txt");

/// Whether Postgres has a function of this name, so that a query that calls it is right.
pub(crate) fn is_of_postgres(name: &str) -> bool {
    static NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| OF_POSTGRES.lines().collect());
    NAMES.contains(name)
}

/// Whether DataFusion's function of this name must not be used.
pub(crate) fn is_otherwise(name: &str) -> bool {
    OTHERWISE.contains(&name)
}

/// The functions that are the same in every session.
pub(crate) fn shared() -> Functions {
    let mut functions = Functions::new();
    let own = [
        system::functions(),
        texts::functions(),
        arrays::functions(),
        buckets::functions(),
        encodings::functions(),
        json::functions(),
        moments::functions(),
        patterns::functions(),
        records::functions(),
    ];
    for function in own.into_iter().flatten() {
        functions.insert(function.name().to_owned(), function);
    }
    let average = average();
    functions.insert(average.name().to_owned(), average);
    functions
}

/// The functions that speak about the session.
pub(crate) fn of_session(facts: &Arc<SessionFacts>) -> Functions {
    let functions = session::functions(facts).into_iter();
    functions
        .chain(moments::of_session(facts))
        .map(|function| (function.name().to_owned(), function))
        .collect()
}
