//! Names of SQL: folding, schemas, databases.

use sqlparser::ast::{Ident, ObjectName};

use super::Binder;
use crate::errors::{SqlError, state};

/// A table as a statement names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TableName {
    /// The schema, when the statement said one.
    pub(crate) schema: Option<String>,
    pub(crate) table: String,
}

impl std::fmt::Display for TableName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(schema) = &self.schema {
            write!(f, "{schema}.")?;
        }
        f.write_str(&self.table)
    }
}

/// An identifier as Postgres reads it: quoted as written, unquoted in lower case.
pub(crate) fn fold(ident: &Ident) -> String {
    if ident.quote_style.is_some() {
        ident.value.clone()
    } else {
        ident.value.to_lowercase()
    }
}

/// The folded parts of a dotted name.
pub(super) fn parts(name: &ObjectName) -> Result<Vec<String>, SqlError> {
    name.0
        .iter()
        .map(|part| {
            part.as_ident()
                .map(fold)
                .ok_or_else(|| SqlError::unsupported(format!("the name {name}")))
        })
        .collect()
}

/// A name as it stands, whatever database it says.
pub(crate) fn object_name(name: &ObjectName) -> Result<TableName, SqlError> {
    let mut parts = parts(name)?;
    let table = parts.pop();
    let table = table.ok_or_else(|| SqlError::new(state::SYNTAX_ERROR, format!("improper name: {name}")))?;
    Ok(TableName {
        schema: parts.pop(),
        table,
    })
}

impl Binder<'_> {
    pub(super) fn table_name(&self, name: &ObjectName) -> Result<TableName, SqlError> {
        let mut parts = parts(name)?;
        if parts.len() == 3 {
            let database = parts.remove(0);
            self.check_database(&database)?;
        }
        let table = parts.pop();
        match (table, parts.pop(), parts.is_empty()) {
            (Some(table), schema, true) => Ok(TableName { schema, table }),
            _ => Err(SqlError::new(
                state::SYNTAX_ERROR,
                format!("improper qualified name: {name}"),
            )),
        }
    }

    fn check_database(&self, database: &str) -> Result<(), SqlError> {
        if database == self.session.database {
            return Ok(());
        }
        Err(SqlError::unsupported(format!(
            "a reference to another database ({database})"
        )))
    }

    /// The schema a table is created or looked for in.
    pub(super) fn schema_of(&self, name: &TableName) -> String {
        name.schema.clone().unwrap_or_else(|| self.session.schema.clone())
    }
}
