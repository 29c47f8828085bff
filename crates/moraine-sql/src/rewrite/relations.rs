//! What stands in FROM.

use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, TableAlias, TableAliasColumnDef, TableFactor,
};

use super::names;
use crate::error::QueryError;
use crate::relations::RelationName;

/// The relation a name means; `None` for more than database, schema and name.
pub(crate) fn relation_name(name: &ObjectName) -> Option<RelationName> {
    let parts: Vec<String> = name
        .0
        .iter()
        .filter_map(|part| part.as_ident())
        .map(names::fold)
        .collect();
    match parts.as_slice() {
        [name] => Some(RelationName {
            schema: None,
            name: name.clone(),
        }),
        [schema, name] | [_, schema, name] => Some(RelationName {
            schema: Some(schema.clone()),
            name: name.clone(),
        }),
        _ => None,
    }
}

pub(super) fn rewrite(factor: &mut TableFactor) -> Result<(), QueryError> {
    match factor {
        TableFactor::Table { .. } => table(factor),
        TableFactor::UNNEST {
            alias,
            array_exprs,
            with_ordinality,
            with_offset,
            ..
        } => {
            if *with_offset {
                return Err(QueryError::unsupported("WITH OFFSET"));
            }
            *factor = unnested(
                std::mem::take(array_exprs),
                alias.take(),
                "unnest",
                *with_ordinality,
            );
            Ok(())
        }
        TableFactor::Function {
            name,
            args,
            alias,
            with_ordinality,
            ..
        } => {
            let function = names::last(name);
            if let Some(arrays) = arrays_of(&function, args)? {
                *factor = unnested(arrays, alias.take(), &function, *with_ordinality);
            }
            Ok(())
        }
        TableFactor::Derived { alias, sample, .. } => {
            if sample.is_some() {
                return Err(QueryError::unsupported("TABLESAMPLE"));
            }
            if alias.is_none() {
                // A subquery without a name cannot be referred to by one.
                *alias = Some(named("unnamed_subquery".to_owned(), Vec::new()));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A relation, or a function that is called like one.
fn table(factor: &mut TableFactor) -> Result<(), QueryError> {
    let TableFactor::Table {
        name,
        alias,
        args,
        with_ordinality,
        sample,
        ..
    } = factor
    else {
        return Ok(());
    };
    if sample.is_some() {
        return Err(QueryError::unsupported("TABLESAMPLE"));
    }
    if name.0.len() == 3 {
        // The database is the session's own; another one has been refused.
        name.0.remove(0);
    }
    if let Some(arguments) = args {
        let function = names::last(name);
        if function == "pg_options_to_table" {
            *factor = no_options(alias.take())?;
            return Ok(());
        }
        if let Some(arrays) = arrays_of(&function, &arguments.args)? {
            *factor = unnested(arrays, alias.take(), &function, *with_ordinality);
            return Ok(());
        }
        function_alias(alias, &function, 1, false);
        *name = ObjectName::from(Ident::new(function));
    }
    if *with_ordinality {
        return Err(QueryError::unsupported("WITH ORDINALITY of this function"));
    }
    Ok(())
}

/// No object of a lake has options: a table of them has no rows.
fn no_options(alias: Option<TableAlias>) -> Result<TableFactor, QueryError> {
    let query = "SELECT NULL::text AS option_name, NULL::text AS option_value WHERE false";
    let alias = alias.unwrap_or_else(|| named("pg_options_to_table".to_owned(), Vec::new()));
    Ok(TableFactor::Derived {
        lateral: false,
        subquery: Box::new(super::expressions::parse(query)?),
        alias: Some(alias),
        sample: None,
    })
}

/// The arrays whose elements a function in FROM gives as rows; `None` for a function that gives no elements of arrays.
fn arrays_of(function: &str, arguments: &[FunctionArg]) -> Result<Option<Vec<Expr>>, QueryError> {
    if !matches!(
        function,
        "unnest" | "generate_series" | "generate_subscripts" | "regexp_split_to_table"
    ) {
        return Ok(None);
    }
    let mut exprs = Vec::with_capacity(arguments.len());
    for argument in arguments {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => exprs.push(expr.clone()),
            other => return Err(QueryError::unsupported(format!("{function} of {other}"))),
        }
    }
    Ok(Some(match function {
        "unnest" => exprs,
        "regexp_split_to_table" => vec![super::expressions::call("regexp_split_to_array", exprs)],
        other => vec![super::expressions::call(&format!("{other}_array"), exprs)],
    }))
}

fn named(name: String, columns: Vec<String>) -> TableAlias {
    TableAlias {
        explicit: true,
        name: Ident::with_quote('"', name),
        columns: columns
            .into_iter()
            .map(|column| TableAliasColumnDef {
                name: Ident::with_quote('"', column),
                data_type: None,
            })
            .collect(),
        at: None,
    }
}

/// The elements of arrays as rows, side by side; their numbers may follow, which are the elements of one array more.
fn unnested(
    mut arrays: Vec<Expr>,
    mut alias: Option<TableAlias>,
    function: &str,
    with_ordinality: bool,
) -> TableFactor {
    function_alias(&mut alias, function, arrays.len(), with_ordinality);
    if with_ordinality {
        arrays.push(super::expressions::call("ordinals_array", arrays.clone()));
    }
    TableFactor::UNNEST {
        alias,
        array_exprs: arrays,
        with_offset: false,
        with_offset_alias: None,
        with_ordinality: false,
    }
}

/// The one column of a function in FROM has the name of its alias, or else the function's; several have the function's.
fn function_alias(alias: &mut Option<TableAlias>, function: &str, columns: usize, with_ordinality: bool) {
    let (name, given) = match alias.take() {
        Some(alias) => {
            let given = alias.columns.iter().map(|column| names::fold(&column.name));
            (names::fold(&alias.name), given.collect())
        }
        None => (function.to_owned(), Vec::new()),
    };
    let of_values = if columns == 1 { &name } else { function };
    let mut all: Vec<String> = vec![of_values.to_owned(); columns];
    all.extend(with_ordinality.then(|| "ordinality".to_owned()));
    // More names than columns are left for the planner to refuse.
    let rest = all.into_iter().skip(given.len());
    let all = given.iter().cloned().chain(rest).collect();
    *alias = Some(named(name, all));
}
