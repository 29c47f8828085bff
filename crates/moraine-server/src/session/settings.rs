//! SET, SHOW and RESET: the settings a client may read or write. Those that would change what is answered are refused
//! unless they say what is the case anyway.

use std::collections::BTreeMap;
use std::time::Duration;

use super::control::Modes;
use crate::errors::{SqlError, state};
use crate::lakes::DEFAULT_SCHEMA;

/// The version told to clients: they decide by it what they may ask. The catalogs served are those of PostgreSQL 15.
pub(crate) const SERVER_VERSION: &str = "15.0";

/// Whether transactions that do not say so themselves may write.
const READ_ONLY: &str = "default_transaction_read_only";
/// The isolation of the present transaction, and of those that do not say it themselves.
const ISOLATION: &str = "transaction_isolation";
const ISOLATION_DEFAULT: &str = "default_transaction_isolation";

/// Name, default value, and whether a client may set it to anything.
const KNOWN: &[(&str, &str, Writable)] = &[
    ("application_name", "", Writable::Freely),
    ("bytea_output", "hex", Writable::Only(&["hex"])),
    ("check_function_bodies", "on", Writable::Switch),
    (
        "client_encoding",
        "UTF8",
        // SQL_ASCII asks for no conversion, and there is none.
        Writable::Only(&["utf8", "unicode", "sqlascii"]),
    ),
    ("client_min_messages", "notice", Writable::Freely),
    (
        "datestyle",
        "ISO, YMD",
        Writable::Only(&["iso", "iso, ymd", "iso, mdy", "iso, dmy"]),
    ),
    ("default_table_access_method", "heap", Writable::Only(&["heap"])),
    ("default_tablespace", "", Writable::Only(&["", "pg_default"])),
    (ISOLATION_DEFAULT, "repeatable read", Writable::Freely),
    (READ_ONLY, "off", Writable::Switch),
    ("escape_string_warning", "on", Writable::Switch),
    ("extra_float_digits", "1", Writable::Freely),
    ("idle_in_transaction_session_timeout", "0", Writable::Only(NEVER)),
    ("in_hot_standby", "off", Writable::Never),
    ("integer_datetimes", "on", Writable::Never),
    ("intervalstyle", "postgres", Writable::Only(&["postgres"])),
    ("is_superuser", "on", Writable::Never),
    ("jit", "off", Writable::Switch),
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
    ("statement_timeout", "0", Writable::Timeout),
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
    ("transaction_deferrable", "off", Writable::Switch),
    (ISOLATION, "repeatable read", Writable::Freely),
    ("transaction_read_only", "off", Writable::Switch),
];

/// What says that something never happens.
const NEVER: &[&str] = &["0", "0ms", "0s", "0min"];

/// Settings whose changes clients are told of, in the spelling of the protocol. Source: PostgreSQL, chapter "Message Flow",
/// "Asynchronous Operations".
const TOLD: [(&str, &str); 4] = [
    ("application_name", "application_name"),
    ("client_encoding", "client_encoding"),
    ("datestyle", "DateStyle"),
    ("timezone", "TimeZone"),
];

#[derive(Debug, Clone, Copy)]
enum Writable {
    Never,
    Freely,
    /// On or off, in the words of Postgres; kept as `on` or `off`.
    Switch,
    /// A span of time, kept as Postgres shows it.
    Timeout,
    /// To these values, in lower case.
    Only(&'static [&'static str]),
}

/// What a session has set.
#[derive(Debug, Default, Clone)]
pub(crate) struct Settings {
    values: BTreeMap<String, String>,
    /// What holds until the end of the transaction.
    local: BTreeMap<String, String>,
    /// What a new session has set by its start-up message; RESET goes back to it.
    initial: BTreeMap<String, String>,
    /// What the client was told last of settings that it follows.
    told: BTreeMap<&'static str, String>,
    /// Whether the server only reads; then it says so as a hot standby of Postgres does.
    is_standby: bool,
}

/// What a hot standby says of itself: these are on.
const STANDBY: [&str; 3] = ["in_hot_standby", READ_ONLY, "transaction_read_only"];

fn unrecognized(name: &str) -> SqlError {
    let message = format!("unrecognized configuration parameter \"{name}\"");
    SqlError::new(state::UNDEFINED_OBJECT, message)
}

/// The default value of a setting, and what it may be set to. Names with a point belong to clients.
fn known(name: &str) -> Result<(String, &'static str, Writable), SqlError> {
    let name = name.to_lowercase();
    let mut known = KNOWN.iter();
    match known.find(|(known, _, _)| *known == name) {
        Some((_, default, writable)) => Ok((name, default, *writable)),
        None if name.contains('.') => Ok((name, "", Writable::Freely)),
        None => Err(unrecognized(&name)),
    }
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
        if self.is_standby && STANDBY.contains(&name.as_str()) {
            return Ok("on".to_owned());
        }
        let set = self.local.get(&name).or_else(|| self.values.get(&name));
        match set.or_else(|| self.initial.get(&name)) {
            Some(value) => Ok(value.clone()),
            None if name == ISOLATION => self.get(ISOLATION_DEFAULT),
            None if name.contains('.') => Err(unrecognized(&name)),
            None => Ok(default.to_owned()),
        }
    }

    /// A setting's name as SHOW writes it, and its value.
    pub(crate) fn shown(&self, name: &str) -> Result<(String, String), SqlError> {
        let value = self.get(name)?;
        let name = name.to_lowercase();
        let told = TOLD.iter().find(|(known, _)| *known == name);
        let spelled = told.map_or(name.clone(), |(_, spelled)| (*spelled).to_owned());
        Ok((spelled, value))
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let (name, value) = checked(name, value)?;
        self.local.remove(&name);
        self.values.insert(name, value);
        Ok(())
    }

    /// Sets something until the end of the transaction.
    pub(crate) fn set_local(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let (name, value) = checked(name, value)?;
        self.local.insert(name, value);
        Ok(())
    }

    /// Sets something for the whole session, as the start-up message may.
    pub(crate) fn set_initial(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let (name, value) = checked(name, value)?;
        self.initial.insert(name, value);
        Ok(())
    }

    /// Sets what the `options` of a start-up message say: `-c name=value` and `--name=value`. A backslash keeps the blank
    /// behind it.
    pub(crate) fn set_options(&mut self, options: &str) -> Result<(), SqlError> {
        let kept = options.replace("\\ ", "\0");
        let mut words = kept.split_whitespace().map(|word| word.replace('\0', " "));
        while let Some(word) = words.next() {
            let assignment = match word.strip_prefix("-c") {
                Some("") => words.next().unwrap_or_default(),
                Some(rest) => rest.to_owned(),
                None => word.strip_prefix("--").unwrap_or(&word).to_owned(),
            };
            let Some((name, value)) = assignment.split_once('=') else {
                return Err(SqlError::unsupported(format!("the start-up option {word}")));
            };
            self.set_initial(name, value)?;
        }
        Ok(())
    }

    /// The transaction is over.
    pub(crate) fn end_local(&mut self) {
        self.local.clear();
    }

    /// Goes back to settings as they were. What the client was told stays what it was told.
    pub(crate) fn replace(&mut self, before: Settings) {
        let told = std::mem::take(&mut self.told);
        *self = Settings { told, ..before };
    }

    pub(crate) fn reset(&mut self, name: &str) -> Result<(), SqlError> {
        let (name, _, _) = known(name)?;
        self.values.remove(&name);
        self.local.remove(&name);
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

    /// Settings that the client follows and that are not what it was told last.
    pub(crate) fn changes_to_tell(&mut self) -> Vec<(&'static str, String)> {
        let mut changes = Vec::new();
        for (name, spelled) in TOLD {
            let Ok(value) = self.get(name) else { continue };
            let default = KNOWN.iter().find(|(known, _, _)| *known == name);
            let default = default.map_or("", |(_, default, _)| default);
            let told = self.told.get(name).map_or(default, String::as_str);
            if told != value {
                self.told.insert(name, value.clone());
                changes.push((spelled, value));
            }
        }
        changes
    }

    /// The schema of unqualified names: the first of the search path that is not the user's own.
    pub(crate) fn schema(&self) -> String {
        let path = self.get("search_path").unwrap_or_default();
        let mut names = path.split(',').map(|name| name.trim().trim_matches('"'));
        let found = names.find(|name| !name.is_empty() && *name != "$user" && !name.starts_with("pg_"));
        found.unwrap_or(DEFAULT_SCHEMA).to_owned()
    }

    /// Whether transactions that do not say so themselves are read-only.
    pub(crate) fn reads_only(&self) -> bool {
        self.get(READ_ONLY).is_ok_and(|value| value == "on")
    }

    /// What transactions are that do not say so themselves.
    pub(super) fn set_default_modes(&mut self, modes: Modes) -> Result<(), SqlError> {
        if let Some(read_only) = modes.read_only {
            self.set(READ_ONLY, if read_only { "on" } else { "off" })?;
        }
        match modes.isolation {
            Some(isolation) => self.set(ISOLATION_DEFAULT, isolation),
            None => Ok(()),
        }
    }

    /// What the present transaction is.
    pub(super) fn note_modes(&mut self, modes: Modes) {
        if let Some(read_only) = modes.read_only {
            let value = if read_only { "on" } else { "off" };
            self.local
                .insert("transaction_read_only".to_owned(), value.to_owned());
        }
        if let Some(isolation) = modes.isolation {
            self.local.insert(ISOLATION.to_owned(), isolation.to_owned());
        }
    }

    /// How long a statement may run.
    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        let value = self.get("statement_timeout").ok()?;
        parse_timeout("statement_timeout", &value).ok().flatten()
    }
}

/// A setting's name and the value it is to have, if it may.
fn checked(name: &str, value: &str) -> Result<(String, String), SqlError> {
    let (name, _, writable) = known(name)?;
    let value = match writable {
        Writable::Never => {
            let message = format!("parameter \"{name}\" cannot be changed");
            return Err(SqlError::new("55P02", message));
        }
        // As in Postgres, only the letters and digits of an encoding's name count.
        Writable::Only(allowed) if name == "client_encoding" => {
            let plain: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
            if !allowed.contains(&plain.to_lowercase().as_str()) {
                return Err(SqlError::unsupported(format!("{name} = {value}")));
            }
            "UTF8"
        }
        Writable::Only(allowed) if !allowed.contains(&value.to_lowercase().as_str()) => {
            return Err(SqlError::unsupported(format!("{name} = {value}")));
        }
        Writable::Switch => parse_switch(&name, value)?,
        Writable::Timeout => {
            parse_timeout(&name, value)?;
            value
        }
        Writable::Only(_) | Writable::Freely => value,
    };
    Ok((name, value.to_owned()))
}

/// `on` or `off`, whichever of Postgres's words says it.
pub(super) fn parse_switch(name: &str, value: &str) -> Result<&'static str, SqlError> {
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
fn parse_timeout(name: &str, value: &str) -> Result<Option<Duration>, SqlError> {
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
            let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
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
