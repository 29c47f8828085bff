//! COPY: what is copied, and in which form.

use sqlparser::ast::{
    CopyLegacyCsvOption, CopyLegacyOption, CopyOption, CopySource, CopyTarget, Ident, Statement,
};

use super::modify::positions;
use super::names::fold;
use super::{Binder, Bound, RowFilter, Select, Source, column_output};
use crate::errors::{SqlError, state};

/// The form of the data of a COPY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CopyFormat {
    Binary,
    Text(CopyTextOptions),
    Csv(CopyCsvOptions),
}

/// What the CSV form leaves open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyCsvOptions {
    pub(crate) delimiter: u8,
    pub(crate) null: String,
    pub(crate) header: bool,
    pub(crate) quote: u8,
    pub(crate) escape: u8,
    pub(crate) force_quote: ForceQuote,
    /// Columns in which the mark of NULL, unquoted, is no NULL.
    pub(crate) force_not_null: Vec<String>,
    /// Columns in which the mark of NULL, quoted, is NULL all the same.
    pub(crate) force_null: Vec<String>,
}

/// The columns whose values are quoted even where they need not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ForceQuote {
    All,
    Columns(Vec<String>),
}

/// What the text form leaves open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyTextOptions {
    pub(crate) delimiter: u8,
    pub(crate) null: String,
    pub(crate) header: bool,
}

impl Default for CopyTextOptions {
    fn default() -> CopyTextOptions {
        CopyTextOptions {
            delimiter: b'\t',
            null: "\\N".to_owned(),
            header: false,
        }
    }
}

/// Rows that will arrive after the statement.
#[derive(Debug, Clone)]
pub(crate) struct CopyIn {
    pub(crate) target: Source,
    /// The columns in the order of the fields.
    pub(crate) columns: Vec<usize>,
    pub(crate) format: CopyFormat,
}

impl Binder<'_> {
    pub(super) async fn copy(&mut self, statement: &Statement) -> Result<Bound, SqlError> {
        let Statement::Copy {
            source,
            to,
            target,
            options,
            legacy_options,
            ..
        } = statement
        else {
            return Err(SqlError::internal("not a COPY"));
        };
        match (to, target) {
            (true, CopyTarget::Stdout) | (false, CopyTarget::Stdin) => {}
            (_, CopyTarget::File { .. }) => {
                return Err(SqlError::unsupported("COPY with a file of the server"));
            }
            (_, CopyTarget::Program { .. }) => return Err(SqlError::unsupported("COPY with a program")),
            _ => {
                return Err(SqlError::new(
                    state::SYNTAX_ERROR,
                    "COPY TO goes to STDOUT, COPY FROM comes from STDIN",
                ));
            }
        }
        let format = format(options, legacy_options)?;
        match (source, to) {
            (CopySource::Query(query), true) => {
                let select = Box::new(self.query(query).await?);
                Ok(Bound::CopyOut { select, format })
            }
            (CopySource::Query(_), false) => Err(SqlError::new(
                state::SYNTAX_ERROR,
                "COPY FROM needs a table, not a query",
            )),
            (CopySource::Table { table_name, columns }, to) => {
                let table = self.table(&self.table_name(table_name)?).await?;
                let names: Vec<String> = columns.iter().map(fold).collect();
                let columns = positions(&table, &names)?;
                let of_table = |position: &usize| table.columns().get(*position);
                let copied = columns.iter().filter_map(of_table);
                let copied: Vec<String> = copied.map(|column| column.name.clone()).collect();
                check_forced(&format, &copied)?;
                if *to {
                    return Ok(Bound::CopyOut {
                        select: Box::new(whole(table, &columns)),
                        format,
                    });
                }
                Ok(Bound::CopyIn(CopyIn {
                    target: table,
                    columns,
                    format,
                }))
            }
        }
    }
}

/// The form a COPY asks for.
pub(crate) fn copy_format(statement: &Statement) -> Result<CopyFormat, SqlError> {
    match statement {
        Statement::Copy {
            options,
            legacy_options,
            ..
        } => format(options, legacy_options),
        _ => Err(SqlError::internal("not a COPY")),
    }
}

/// The read of the given columns of a table.
fn whole(source: Source, columns: &[usize]) -> Select {
    let output = |position: &usize| {
        let column = source.columns().get(*position)?;
        Some(column_output(column.name.clone(), *position, column.column_type))
    };
    let outputs = columns.iter().filter_map(output).collect();
    Select {
        source,
        outputs,
        filter: RowFilter::default(),
        order: Vec::new(),
        limit: None,
        offset: 0,
    }
}

/// What a statement's options say, before they are one of the forms.
#[derive(Default)]
struct Said {
    form: Option<String>,
    delimiter: Option<char>,
    null: Option<String>,
    header: bool,
    quote: Option<char>,
    escape: Option<char>,
    force_quote: Vec<String>,
    force_not_null: Vec<String>,
    force_null: Vec<String>,
}

fn names(columns: &[Ident]) -> Vec<String> {
    columns.iter().map(fold).collect()
}

impl Said {
    fn option(&mut self, option: &CopyOption) -> Result<(), SqlError> {
        match option {
            CopyOption::Format(name) => self.form = Some(name.value.to_lowercase()),
            CopyOption::Delimiter(delimiter) => self.delimiter = Some(*delimiter),
            CopyOption::Null(null) => self.null = Some(null.clone()),
            CopyOption::Header(header) => self.header = *header,
            CopyOption::Quote(quote) => self.quote = Some(*quote),
            CopyOption::Escape(escape) => self.escape = Some(*escape),
            CopyOption::ForceQuote(columns) => self.force_quote = names(columns),
            CopyOption::ForceNotNull(columns) => self.force_not_null = names(columns),
            CopyOption::ForceNull(columns) => self.force_null = names(columns),
            CopyOption::Freeze(false) => {}
            CopyOption::Encoding(name) if matches!(name.to_lowercase().as_str(), "utf8" | "utf-8") => {}
            other => return Err(SqlError::unsupported(format!("COPY option {other}"))),
        }
        Ok(())
    }

    /// An option in the form it had before PostgreSQL 9.0.
    fn legacy(&mut self, option: &CopyLegacyOption) -> Result<(), SqlError> {
        match option {
            CopyLegacyOption::Binary => self.form = Some("binary".to_owned()),
            CopyLegacyOption::Null(null) => self.null = Some(null.clone()),
            CopyLegacyOption::Delimiter(delimiter) => self.delimiter = Some(*delimiter),
            CopyLegacyOption::Header => self.header = true,
            CopyLegacyOption::Csv(options) => {
                self.form = Some("csv".to_owned());
                for option in options {
                    match option {
                        CopyLegacyCsvOption::Header => self.header = true,
                        CopyLegacyCsvOption::Quote(quote) => self.quote = Some(*quote),
                        CopyLegacyCsvOption::Escape(escape) => self.escape = Some(*escape),
                        CopyLegacyCsvOption::ForceQuote(columns) => self.force_quote = names(columns),
                        CopyLegacyCsvOption::ForceNotNull(columns) => self.force_not_null = names(columns),
                    }
                }
            }
            other => return Err(SqlError::unsupported(format!("COPY option {other}"))),
        }
        Ok(())
    }

    fn form(self) -> Result<CopyFormat, SqlError> {
        let form = self.form.as_deref().unwrap_or("text");
        let is_csv = form == "csv";
        for (said, option) in [
            (self.quote.is_some(), "quote"),
            (self.escape.is_some(), "escape"),
            (!self.force_quote.is_empty(), "force quote"),
            (!self.force_not_null.is_empty(), "force not null"),
            (!self.force_null.is_empty(), "force null"),
        ] {
            if said && !is_csv {
                let message = format!("COPY {option} is available only in CSV mode");
                return Err(SqlError::new(state::FEATURE_NOT_SUPPORTED, message));
            }
        }
        match form {
            "binary" if self.delimiter.is_some() || self.null.is_some() || self.header => Err(SqlError::new(
                state::SYNTAX_ERROR,
                "cannot specify DELIMITER, NULL or HEADER in BINARY mode",
            )),
            "binary" => Ok(CopyFormat::Binary),
            "text" => self.text().map(CopyFormat::Text),
            "csv" => self.csv().map(CopyFormat::Csv),
            other => Err(SqlError::unsupported(format!("COPY format {other}"))),
        }
    }

    fn text(self) -> Result<CopyTextOptions, SqlError> {
        let mut text = CopyTextOptions {
            header: self.header,
            ..CopyTextOptions::default()
        };
        if let Some(delimiter) = self.delimiter {
            let byte = plain(delimiter, "delimiter")?;
            if byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'\\' | b'.') {
                return Err(invalid(format!("COPY delimiter cannot be \"{delimiter}\"")));
            }
            text.delimiter = byte;
        }
        text.null = null_mark(self.null, "\\N", text.delimiter)?;
        Ok(text)
    }

    fn csv(self) -> Result<CopyCsvOptions, SqlError> {
        let quote = self.quote.map_or(Ok(b'"'), |quote| plain(quote, "quote"))?;
        let escape = self.escape.map_or(Ok(quote), |escape| plain(escape, "escape"))?;
        let delimiter = self
            .delimiter
            .map_or(Ok(b','), |delimiter| plain(delimiter, "delimiter"))?;
        if delimiter == quote {
            return Err(invalid("COPY delimiter and quote must be different"));
        }
        let null = null_mark(self.null, "", delimiter)?;
        if null.as_bytes().contains(&quote) {
            return Err(invalid(
                "CSV quote character must not appear in the NULL specification",
            ));
        }
        Ok(CopyCsvOptions {
            delimiter,
            null,
            header: self.header,
            quote,
            escape,
            force_quote: match self.force_quote.as_slice() {
                [all] if all == "*" => ForceQuote::All,
                _ => ForceQuote::Columns(self.force_quote),
            },
            force_not_null: self.force_not_null,
            force_null: self.force_null,
        })
    }
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(state::INVALID_PARAMETER, message)
}

/// A character that is one byte and ends no line.
fn plain(character: char, what: &str) -> Result<u8, SqlError> {
    let byte = u8::try_from(character).ok().filter(u8::is_ascii);
    let byte = byte.ok_or_else(|| invalid(format!("COPY {what} must be a single one-byte character")))?;
    if matches!(byte, b'\n' | b'\r') {
        return Err(invalid(format!(
            "COPY {what} cannot be newline or carriage return"
        )));
    }
    Ok(byte)
}

/// The mark of NULL, which must not look like anything else.
fn null_mark(said: Option<String>, default: &str, delimiter: u8) -> Result<String, SqlError> {
    let null = said.unwrap_or_else(|| default.to_owned());
    if null.contains(['\n', '\r']) {
        return Err(invalid(
            "COPY null representation cannot use newline or carriage return",
        ));
    }
    if null.as_bytes().contains(&delimiter) {
        return Err(invalid(
            "COPY delimiter must not appear in the NULL specification",
        ));
    }
    Ok(null)
}

fn format(options: &[CopyOption], legacy: &[CopyLegacyOption]) -> Result<CopyFormat, SqlError> {
    let mut said = Said::default();
    for option in options {
        said.option(option)?;
    }
    for option in legacy {
        said.legacy(option)?;
    }
    said.form()
}

/// Refuses columns that the options name and the COPY does not have.
fn check_forced(format: &CopyFormat, columns: &[String]) -> Result<(), SqlError> {
    let CopyFormat::Csv(options) = format else {
        return Ok(());
    };
    let quoted = match &options.force_quote {
        ForceQuote::All => &[][..],
        ForceQuote::Columns(columns) => columns,
    };
    let forced = quoted
        .iter()
        .chain(&options.force_not_null)
        .chain(&options.force_null);
    for column in forced {
        if !columns.contains(column) {
            let message = format!("column \"{column}\" of a FORCE option is not referenced by COPY");
            return Err(SqlError::new(state::INVALID_COLUMN_REFERENCE, message));
        }
    }
    Ok(())
}
