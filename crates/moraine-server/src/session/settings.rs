//! SET, SHOW and RESET: the settings a client may read or write. Those that would change what is answered are refused
//! unless they say what is the case anyway.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::errors::{SqlError, state};
use crate::lakes::DEFAULT_SCHEMA;

/// The version told to clients: they decide by it what they may ask. The catalogs served are those of PostgreSQL 15.
pub(crate) const SERVER_VERSION: &str = "15.0";

/// Whether transactions that do not say so themselves may write.
const READ_ONLY: &str = "default_transaction_read_only";

/// Name, default value, and whether a client may set it to anything.
const KNOWN: [(&str, &str, Writable); 28] = [
    ("application_name", "", Writable::Freely),
    (
        "client_encoding",
        "UTF8",
        Writable::Only(&["utf8", "utf-8", "unicode"]),
    ),
    ("client_min_messages", "notice", Writable::Freely),
    (
        "datestyle",
        "ISO, YMD",
        Writable::Only(&["iso", "iso, ymd", "iso, mdy", "iso, dmy"]),
    ),
    ("default_table_access_method", "heap", Writable::Only(&["heap"])),
    ("default_tablespace", "", Writable::Only(&["", "pg_default"])),
    (
        "default_transaction_isolation",
        "repeatable read",
        Writable::Freely,
    ),
    (READ_ONLY, "off", Writable::Switch),
    ("extra_float_digits", "1", Writable::Freely),
    ("idle_in_transaction_session_timeout", "0", Writable::Freely),
    ("in_hot_standby", "off", Writable::Never),
    ("integer_datetimes", "on", Writable::Never),
    ("intervalstyle", "postgres", Writable::Only(&["postgres"])),
    ("is_superuser", "on", Writable::Never),
    ("lock_timeout", "0", Writable::Freely),
    ("max_identifier_length", "63", Writable::Never),
    ("row_security", "on", Writable::Switch),
    ("search_path", DEFAULT_SCHEMA, Writable::Freely),
    ("server_encoding", "UTF8", Writable::Never),
    ("server_version", SERVER_VERSION, Writable::Never),
    ("server_version_num", "150000", Writable::Never),
    (
        "standard_conforming_strings",
        "on",
        Writable::Only(&["on", "true", "1", "yes"]),
    ),
    ("statement_timeout", "0", Writable::Freely),
    ("synchronize_seqscans", "on", Writable::Switch),
    (
        "synchronous_commit",
        "on",
        Writable::Only(&["on", "true", "1", "yes"]),
    ),
    (
        "timezone",
        "UTC",
        Writable::Only(&["utc", "etc/utc", "gmt", "zulu", "0"]),
    ),
    ("transaction_isolation", "repeatable read", Writable::Freely),
    ("transaction_read_only", "off", Writable::Freely),
];

#[derive(Debug, Clone, Copy)]
enum Writable {
    Never,
    Freely,
    /// On or off, in the words of Postgres; kept as `on` or `off`.
    Switch,
    /// To these values, in lower case.
    Only(&'static [&'static str]),
}

/// What a session has set.
#[derive(Debug, Default, Clone)]
pub(crate) struct Settings {
    values: BTreeMap<&'static str, String>,
    /// Whether the server only reads; then it says so as a hot standby of Postgres does.
    is_standby: bool,
}

/// What a hot standby says of itself: these are on.
const STANDBY: [&str; 3] = ["in_hot_standby", READ_ONLY, "transaction_read_only"];

fn known(name: &str) -> Result<(&'static str, &'static str, Writable), SqlError> {
    let name = name.to_lowercase();
    KNOWN
        .iter()
        .find(|(known, _, _)| *known == name)
        .copied()
        .ok_or_else(|| {
            SqlError::new(
                state::UNDEFINED_OBJECT,
                format!("unrecognized configuration parameter \"{name}\""),
            )
        })
}

impl Settings {
    /// The settings of a new session, on a server that only reads or on any other.
    pub(crate) fn new(is_standby: bool) -> Settings {
        Settings {
            is_standby,
            ..Settings::default()
        }
    }

    pub(crate) fn get(&self, name: &str) -> Result<String, SqlError> {
        let (name, default, _) = known(name)?;
        if self.is_standby && STANDBY.contains(&name) {
            return Ok("on".to_owned());
        }
        Ok(self
            .values
            .get(name)
            .cloned()
            .unwrap_or_else(|| default.to_owned()))
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let (name, _, writable) = known(name)?;
        let mut value = value;
        match writable {
            Writable::Never => {
                return Err(SqlError::new(
                    "55P02",
                    format!("parameter \"{name}\" cannot be changed"),
                ));
            }
            Writable::Only(allowed) if !allowed.contains(&value.to_lowercase().as_str()) => {
                return Err(SqlError::unsupported(format!("{name} = {value}")));
            }
            Writable::Switch => value = parse_switch(name, value)?,
            Writable::Only(_) | Writable::Freely => {}
        }
        if name == "statement_timeout" {
            parse_timeout(value)?;
        }
        self.values.insert(name, value.to_owned());
        Ok(())
    }

    pub(crate) fn reset(&mut self, name: &str) -> Result<(), SqlError> {
        let (name, _, _) = known(name)?;
        self.values.remove(name);
        Ok(())
    }

    pub(crate) fn reset_all(&mut self) {
        self.values.clear();
    }

    /// All settings in order of their names.
    pub(crate) fn all(&self) -> Vec<(&'static str, String)> {
        KNOWN
            .iter()
            .filter_map(|(name, _, _)| Some((*name, self.get(name).ok()?)))
            .collect()
    }

    /// The schema of unqualified names: the first of the search path that is not the user's own.
    pub(crate) fn schema(&self) -> String {
        let path = self
            .values
            .get("search_path")
            .map_or(DEFAULT_SCHEMA, String::as_str);
        let mut names = path.split(',').map(|name| name.trim().trim_matches('"'));
        let found = names.find(|name| !name.is_empty() && *name != "$user" && !name.starts_with("pg_"));
        found.unwrap_or(DEFAULT_SCHEMA).to_owned()
    }

    /// Whether transactions that do not say so themselves are read-only.
    pub(crate) fn reads_only(&self) -> bool {
        self.values.get(READ_ONLY).is_some_and(|value| value == "on")
    }

    /// Makes transactions that do not say so themselves read-only, or not.
    pub(crate) fn set_reads_only(&mut self, read_only: bool) {
        let value = if read_only { "on" } else { "off" };
        self.values.insert(READ_ONLY, value.to_owned());
    }

    /// How long a statement may run.
    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        let value = self.values.get("statement_timeout")?;
        parse_timeout(value).ok().flatten()
    }
}

/// `on` or `off`, whichever of Postgres's words says it.
fn parse_switch(name: &str, value: &str) -> Result<&'static str, SqlError> {
    match value.trim().to_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" | "y" => Ok("on"),
        "off" | "false" | "no" | "0" | "f" | "n" => Ok("off"),
        _ => {
            let message = format!("parameter \"{name}\" requires a Boolean value");
            Err(SqlError::new(state::INVALID_PARAMETER, message))
        }
    }
}

/// Milliseconds, or a number with a unit; 0 is no limit.
fn parse_timeout(value: &str) -> Result<Option<Duration>, SqlError> {
    let value = value.trim();
    let digits = value.trim_end_matches(|sign: char| sign.is_ascii_alphabetic());
    let unit = value.get(digits.len()..).unwrap_or_default();
    let factor = match unit.to_lowercase().as_str() {
        "" | "ms" => Some(1),
        "s" => Some(1_000),
        "min" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let amount: Option<u64> = digits.trim().parse().ok();
    match amount.zip(factor) {
        Some((0, _)) => Ok(None),
        Some((amount, factor)) => Ok(Some(Duration::from_millis(amount.saturating_mul(factor)))),
        None => {
            let message = format!("invalid value for parameter \"statement_timeout\": \"{value}\"");
            Err(SqlError::new(state::INVALID_PARAMETER, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_would_change_answers_are_refused() {
        let mut settings = Settings::default();
        assert_eq!(
            settings.set("TimeZone", "America/New_York").unwrap_err().state,
            "0A000"
        );
        assert_eq!(settings.set("timezone", "UTC"), Ok(()));
        assert_eq!(settings.set("server_version", "16").unwrap_err().state, "55P02");
        assert_eq!(settings.set("no_such_thing", "1").unwrap_err().state, "42704");
        assert_eq!(settings.get("server_version").unwrap(), "15.0");
    }

    #[test]
    fn timeouts_have_units() {
        let mut settings = Settings::default();
        assert_eq!(settings.statement_timeout(), None);
        settings.set("statement_timeout", "2s").unwrap();
        assert_eq!(settings.statement_timeout(), Some(Duration::from_secs(2)));
        settings.set("statement_timeout", "0").unwrap();
        assert_eq!(settings.statement_timeout(), None);
        assert_eq!(
            settings.set("statement_timeout", "soon").unwrap_err().state,
            "22023"
        );
    }

    #[test]
    fn the_search_path_gives_unqualified_names_their_schema() {
        let mut settings = Settings::default();
        assert_eq!(settings.schema(), "public");
        settings
            .set("search_path", "\"$user\", \"Lake\", public")
            .unwrap();
        assert_eq!(settings.schema(), "Lake");
    }
}
