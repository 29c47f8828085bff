//! What a column reference can mean in one place of a statement.

use moraine_tables::ColumnType;
use sqlparser::ast::{Expr, Ident};

use super::names::fold;
use super::{OutputKind, Source};
use crate::errors::{SqlError, state};

/// The columns of one source under the name a statement gives it.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    /// The alias, or the table's name; what may stand before a column's name.
    qualifier: Option<String>,
    columns: Vec<(String, OutputKind)>,
    /// The types of the source's columns.
    types: Vec<ColumnType>,
}

impl Scope {
    /// The scope of a table, with its hidden `ctid`.
    pub(super) fn of_source(source: &Source, alias: Option<String>) -> Scope {
        let mut columns: Vec<(String, OutputKind)> = source
            .columns()
            .iter()
            .enumerate()
            .map(|(index, column)| (column.name.clone(), OutputKind::Column(index)))
            .collect();
        // A column of that name hides the system column.
        if !columns.iter().any(|(name, _)| name == "ctid") {
            columns.push(("ctid".to_owned(), OutputKind::Ctid));
        }
        let types = source.columns().iter().map(|column| column.column_type).collect();
        Scope {
            qualifier: Some(alias.unwrap_or_else(|| source.name())),
            columns,
            types,
        }
    }

    /// The scope of a subquery: its result columns under their names.
    pub(super) fn of_outputs(
        outputs: impl IntoIterator<Item = (String, OutputKind)>,
        source: &Source,
        alias: Option<String>,
    ) -> Scope {
        let types = source.columns().iter().map(|column| column.column_type).collect();
        Scope {
            qualifier: alias,
            columns: outputs.into_iter().collect(),
            types,
        }
    }

    /// The scope of rows that have names only; a column's place is its position.
    pub(super) fn of_names(names: Vec<String>, alias: String) -> Scope {
        let columns = names
            .into_iter()
            .enumerate()
            .map(|(index, name)| (name, OutputKind::Column(index)))
            .collect();
        Scope {
            qualifier: Some(alias),
            columns,
            types: Vec::new(),
        }
    }

    pub(super) fn qualifier(&self) -> Option<&str> {
        self.qualifier.as_deref()
    }

    /// The type of a source column.
    pub(super) fn type_of(&self, column: usize) -> Option<ColumnType> {
        self.types.get(column).copied()
    }

    /// The name a source column has here, for error texts.
    pub(super) fn name_of(&self, column: usize) -> &str {
        let found = self
            .columns
            .iter()
            .find(|(_, kind)| *kind == OutputKind::Column(column));
        found.map_or("?column?", |(name, _)| name)
    }

    /// The visible columns, in order.
    pub(super) fn visible(&self) -> impl Iterator<Item = &(String, OutputKind)> {
        self.columns.iter().filter(|(_, kind)| *kind != OutputKind::Ctid)
    }

    /// What the reference means here: `None` when it is no column of this scope.
    pub(super) fn find(&self, reference: &Reference) -> Result<Option<&OutputKind>, SqlError> {
        if let Some(qualifier) = &reference.qualifier
            && self.qualifier.as_deref() != Some(qualifier)
        {
            return Ok(None);
        }
        let mut found = self.columns.iter().filter(|(name, _)| *name == reference.column);
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => Err(ambiguous(reference)),
            (first, _) => Ok(first.map(|(_, kind)| kind)),
        }
    }

    /// What the reference means here, or 42703.
    pub(super) fn resolve(&self, reference: &Reference) -> Result<&OutputKind, SqlError> {
        self.find(reference)?.ok_or_else(|| match &reference.qualifier {
            Some(qualifier) if self.qualifier.as_deref() != Some(qualifier) => SqlError::new(
                state::UNDEFINED_TABLE,
                format!("missing FROM-clause entry for table \"{qualifier}\""),
            ),
            Some(qualifier) => SqlError::undefined_column(format!("{qualifier}.{}", reference.column)),
            None if self.qualifier.as_deref() == Some(reference.column.as_str()) => {
                SqlError::unsupported("a whole row")
            }
            None => SqlError::undefined_column(&reference.column),
        })
    }
}

pub(super) fn ambiguous(reference: &Reference) -> SqlError {
    SqlError::new(
        state::AMBIGUOUS_COLUMN,
        format!("column reference \"{}\" is ambiguous", reference.column),
    )
}

/// A column as an expression names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) qualifier: Option<String>,
    pub(super) column: String,
}

impl Reference {
    /// The reference an expression is, if it is one.
    pub(super) fn of(expr: &Expr) -> Option<Reference> {
        match expr {
            Expr::Identifier(ident) => Some(Reference {
                qualifier: None,
                column: fold(ident),
            }),
            Expr::CompoundIdentifier(idents) => Reference::of_idents(idents),
            Expr::Nested(inner) => Reference::of(inner),
            _ => None,
        }
    }

    fn of_idents(idents: &[Ident]) -> Option<Reference> {
        let (column, qualifiers) = idents.split_last()?;
        // A schema in front of the table's name adds nothing here: there is one source of a name.
        Some(Reference {
            qualifier: qualifiers.last().map(fold),
            column: fold(column),
        })
    }
}
