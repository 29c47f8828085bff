//! The marker of an import that has not finished. It stands where that of a format migration stands (`system/migration`), so
//! that every reader and writer that knows of migrations refuses the store, whether or not it knows of imports.

use crate::format;
use crate::proto::MigrationValue;

/// The format that an import comes from: no store ever has it.
const NO_FORMAT: u64 = 0;
/// What the cursor of such a marker begins with.
const HEADING: &str = "moraine import";

/// How far an import has come, and of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportMarker {
    /// The catalog that is imported, in words for people. No secrets.
    pub source: String,
    /// What the state of the source and the options of the import were, so that only the same import is resumed.
    pub fingerprint: String,
    /// How many batches of records are in the store.
    pub batches: u64,
}

impl ImportMarker {
    /// Whether a marker is that of an import, rather than of a migration from one format to another.
    #[must_use]
    pub fn is_import(value: &MigrationValue) -> bool {
        value.from_format == NO_FORMAT
    }

    /// The marker as it is stored.
    #[must_use]
    pub fn to_value(&self) -> MigrationValue {
        let ImportMarker {
            source,
            fingerprint,
            batches,
        } = self;
        let cursor = format!("{HEADING}\n{batches}\n{fingerprint}\n{source}");
        MigrationValue {
            from_format: NO_FORMAT,
            to_format: format::CURRENT,
            cursor: cursor.into_bytes().into(),
        }
    }

    /// The marker that is stored; `None` for that of a migration, and for one that this version cannot read.
    #[must_use]
    pub fn from_value(value: &MigrationValue) -> Option<Self> {
        if !Self::is_import(value) {
            return None;
        }
        let text = std::str::from_utf8(&value.cursor).ok()?;
        let mut parts = text.splitn(4, '\n');
        if parts.next()? != HEADING {
            return None;
        }
        let batches = parts.next()?.parse().ok()?;
        Some(ImportMarker {
            batches,
            fingerprint: parts.next()?.to_owned(),
            source: parts.next()?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ImportMarker;
    use crate::proto::MigrationValue;

    #[test]
    fn a_marker_comes_back_as_it_was_and_a_migrations_is_none() {
        let marker = ImportMarker {
            source: "the SQLite file ./a\nb.sqlite".to_owned(),
            fingerprint: "ab12".to_owned(),
            batches: 17,
        };
        let value = marker.to_value();
        assert!(ImportMarker::is_import(&value));
        assert_eq!(ImportMarker::from_value(&value), Some(marker));
        let migration = MigrationValue {
            from_format: 9,
            to_format: 11,
            ..MigrationValue::default()
        };
        assert!(!ImportMarker::is_import(&migration));
        assert_eq!(ImportMarker::from_value(&migration), None);
    }
}
