//! COPY: what is copied, and in which form.

use sqlparser::ast::{CopyLegacyOption, CopyOption, CopySource, CopyTarget, Statement};

use super::modify::positions;
use super::names::fold;
use super::{Binder, Bound, RowFilter, Select, Source, column_output};
use crate::errors::{SqlError, state};

/// The form of the data of a COPY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CopyFormat {
    Binary,
    Text(CopyTextOptions),
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

fn format(options: &[CopyOption], legacy: &[CopyLegacyOption]) -> Result<CopyFormat, SqlError> {
    let mut binary = legacy
        .iter()
        .any(|option| matches!(option, CopyLegacyOption::Binary));
    let mut text = CopyTextOptions::default();
    for option in options {
        match option {
            CopyOption::Format(name) => match name.value.to_lowercase().as_str() {
                "binary" => binary = true,
                "text" => binary = false,
                other => return Err(SqlError::unsupported(format!("COPY format {other}"))),
            },
            CopyOption::Delimiter(delimiter) => {
                let invalid =
                    || SqlError::new(state::INVALID_PARAMETER, "COPY delimiter must be one plain byte");
                let byte = u8::try_from(*delimiter)
                    .ok()
                    .filter(u8::is_ascii)
                    .ok_or_else(invalid)?;
                if byte.is_ascii_alphanumeric() || matches!(byte, b'\\' | b'.' | b'\n' | b'\r') {
                    return Err(invalid());
                }
                text.delimiter = byte;
            }
            CopyOption::Null(null) => text.null.clone_from(null),
            CopyOption::Header(header) => text.header = *header,
            CopyOption::Encoding(name) if matches!(name.to_lowercase().as_str(), "utf8" | "utf-8") => {}
            other => return Err(SqlError::unsupported(format!("COPY option {other}"))),
        }
    }
    for option in legacy {
        match option {
            CopyLegacyOption::Binary => {}
            CopyLegacyOption::Null(null) => text.null.clone_from(null),
            other => return Err(SqlError::unsupported(format!("COPY option {other}"))),
        }
    }
    Ok(if binary {
        CopyFormat::Binary
    } else {
        CopyFormat::Text(text)
    })
}
