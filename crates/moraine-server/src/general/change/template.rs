//! The queries a change needs, built from the parts of its statement.

use moraine_tables::Column;
use sqlparser::ast::{CastKind, Expr, Ident, Query, Select, SelectItem, SetExpr, TableWithJoins, Value};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

use crate::bind::{Source, TableName};
use crate::errors::SqlError;

fn parse(text: &str) -> Result<Query, SqlError> {
    let parsed = Parser::new(&PostgreSqlDialect {})
        .try_with_sql(text)
        .and_then(|mut parser| parser.parse_query());
    parsed
        .map(|query| *query)
        .map_err(|error| SqlError::internal(format!("a query of its own could not be read: {error}")))
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

fn body(query: &mut Query) -> Result<&mut Select, SqlError> {
    match query.body.as_mut() {
        SetExpr::Select(select) => Ok(select),
        _ => Err(SqlError::internal("a query without a SELECT")),
    }
}

/// The rows to be changed: each row's number, the values given, the row as it is.
pub(super) fn select(
    alias: &str,
    target: &Source,
    values: Vec<Expr>,
    from: Vec<TableWithJoins>,
    selection: Option<&Expr>,
) -> Result<Query, SqlError> {
    let mut query = parse("SELECT 1")?;
    let select = body(&mut query)?;
    let of_target = |name: &str| Expr::CompoundIdentifier(vec![quoted(alias), quoted(name)]);
    let mut items = vec![of_target("ctid")];
    items.extend(values);
    items.extend(target.columns().iter().map(|column| of_target(&column.name)));
    select.projection = items.into_iter().map(SelectItem::UnnamedExpr).collect();
    select.from = from;
    select.selection = selection.cloned();
    Ok(query)
}

/// The items of RETURNING over the changed rows.
pub(super) fn returning(items: &[SelectItem], name: &TableName, alias: &str) -> Result<Query, SqlError> {
    let schema = name
        .schema
        .as_ref()
        .map_or_else(String::new, |schema| format!("{}.", quoted(schema)));
    let text = format!(
        "SELECT 1 FROM {schema}{} AS {}",
        quoted(&name.table),
        quoted(alias)
    );
    let mut query = parse(&text)?;
    body(&mut query)?.projection = items.to_vec();
    Ok(query)
}

/// A query of rows that exist, joined with rows that were to be inserted.
pub(super) fn existing(name: &TableName, alias: &str, excluded: &str, key: &str) -> Result<Query, SqlError> {
    let schema = name
        .schema
        .as_ref()
        .map_or_else(String::new, |schema| format!("{}.", quoted(schema)));
    let (alias, excluded, key) = (quoted(alias), quoted(excluded), quoted(key));
    let table = quoted(&name.table);
    parse(&format!(
        "SELECT 1 FROM {schema}{table} AS {alias} JOIN {excluded} ON {alias}.{key} = {excluded}.{key}"
    ))
}

/// The tables of a query.
pub(super) fn tables(mut query: Query) -> Result<Vec<TableWithJoins>, SqlError> {
    Ok(std::mem::take(&mut body(&mut query)?.from))
}

/// An expression that is given to a column: a parameter has the column's type.
pub(super) fn typed(expr: Expr, column: Option<&Column>) -> Result<Expr, SqlError> {
    let is_parameter = matches!(&expr, Expr::Value(value) if matches!(value.value, Value::Placeholder(_)));
    let (true, Some(column)) = (is_parameter, column) else {
        return Ok(expr);
    };
    let data_type = Parser::new(&PostgreSqlDialect {})
        .try_with_sql(&column.column_type.sql_name())
        .and_then(|mut parser| parser.parse_data_type())
        .map_err(|error| SqlError::internal(error.to_string()))?;
    Ok(Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type,
        array: false,
        format: None,
    })
}

/// The source of an INSERT, its parameters typed as the columns they are for.
pub(super) fn with_types(source: &Query, target: &Source, positions: &[usize]) -> Result<Query, SqlError> {
    let mut query = source.clone();
    let column = |index: usize| {
        positions
            .get(index)
            .and_then(|position| target.columns().get(*position))
    };
    match query.body.as_mut() {
        SetExpr::Values(values) => {
            for row in &mut values.rows {
                for (index, expr) in row.content.iter_mut().enumerate() {
                    let given = std::mem::replace(expr, Expr::value(Value::Null));
                    if matches!(&given, Expr::Identifier(ident) if ident.value.eq_ignore_ascii_case("default"))
                    {
                        // No column of the tables has a default.
                        continue;
                    }
                    *expr = typed(given, column(index))?;
                }
            }
        }
        SetExpr::Select(select) => {
            for (index, item) in select.projection.iter_mut().enumerate() {
                if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                    let given = std::mem::replace(expr, Expr::value(Value::Null));
                    *expr = typed(given, column(index))?;
                }
            }
        }
        _ => {}
    }
    Ok(query)
}
