//! The functions of system queries.

use moraine_tables::Value;
use postgres_types::Type;
use sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments};

use super::engine::Engine;
use super::evaluate::text_of;
use crate::errors::{SqlError, state};
use crate::session::settings::SERVER_VERSION;
use crate::transaction::now_micros;

/// What `version()` says. Clients read the digits after the first word.
pub(crate) fn version() -> String {
    format!(
        "PostgreSQL {SERVER_VERSION} (moraine {})",
        env!("CARGO_PKG_VERSION")
    )
}

/// A function's name without its schema.
pub(super) fn name(function: &Function) -> String {
    let name = function.name.to_string().to_lowercase();
    name.strip_prefix("pg_catalog.")
        .map(str::to_owned)
        .unwrap_or(name)
}

/// The arguments of a call; `count(*)` has none.
pub(super) fn arguments(function: &Function) -> Result<Vec<&Expr>, SqlError> {
    if function.over.is_some() {
        return Err(SqlError::unsupported(format!(
            "window function {}",
            function.name
        )));
    }
    let list = match &function.args {
        FunctionArguments::None => return Ok(Vec::new()),
        FunctionArguments::List(list) if list.duplicate_treatment.is_none() => &list.args,
        _ => {
            return Err(SqlError::unsupported(format!(
                "{} with these arguments",
                function.name
            )));
        }
    };
    let mut arguments = Vec::with_capacity(list.len());
    for argument in list {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => arguments.push(expr),
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => {}
            _ => {
                return Err(SqlError::unsupported(format!(
                    "{} with these arguments",
                    function.name
                )));
            }
        }
    }
    Ok(arguments)
}

/// The type of a function's result.
pub(super) fn result_type(name: &str) -> Type {
    match name {
        "count" => Type::INT8,
        "pg_backend_pid" => Type::INT4,
        "pg_is_in_recovery" => Type::BOOL,
        "now" | "current_timestamp" | "transaction_timestamp" | "statement_timestamp" | "clock_timestamp" => {
            Type::TIMESTAMPTZ
        }
        _ => Type::TEXT,
    }
}

/// Calls a function on its arguments.
pub(super) async fn call(
    engine: &mut Engine<'_, '_>,
    function: &Function,
    arguments: &[Value],
) -> Result<Value, SqlError> {
    let name = name(function);
    let text = |index: usize| arguments.get(index).and_then(text_of);
    Ok(match name.as_str() {
        "version" => Value::text(version()),
        "current_database" | "current_catalog" => Value::text(engine.transaction.database()),
        "current_schema" => Value::text(engine.context.schema),
        "current_user" | "session_user" | "user" | "current_role" => Value::text(engine.context.user),
        "pg_backend_pid" => Value::Int32(engine.context.pid),
        "pg_is_in_recovery" => Value::Bool(false),
        "to_regclass" => engine.table_named(text(0)).await?,
        "now" | "current_timestamp" | "transaction_timestamp" => {
            Value::TimestampTz(engine.transaction.started)
        }
        "statement_timestamp" | "clock_timestamp" => Value::TimestampTz(now_micros()),
        "current_setting" => {
            let wanted = text(0).unwrap_or_default().to_lowercase();
            let found = engine.context.settings.iter().find(|(name, _)| *name == wanted);
            match found {
                Some((_, value)) => Value::text(value),
                None if arguments.get(1) == Some(&Value::Bool(true)) => Value::Null,
                None => {
                    let message = format!("unrecognized configuration parameter \"{wanted}\"");
                    return Err(SqlError::new(state::UNDEFINED_OBJECT, message));
                }
            }
        }
        "coalesce" => arguments
            .iter()
            .find(|value| !value.is_null())
            .cloned()
            .unwrap_or(Value::Null),
        "lower" => text(0).map_or(Value::Null, |text| Value::text(text.to_lowercase())),
        "upper" => text(0).map_or(Value::Null, |text| Value::text(text.to_uppercase())),
        other => return Err(SqlError::unsupported(format!("function {other}"))),
    })
}
