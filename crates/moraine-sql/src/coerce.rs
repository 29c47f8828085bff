//! Where Postgres and DataFusion give an expression another meaning: casts from and to text, rounding, literals in lists
//! and ranges, sums. Works on a plan whose columns are known and whose types are not yet reconciled.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{
    AggregateFunction, Between, Cast, InList, InSubquery, ScalarFunction, WindowFunction,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, WindowFunctionDefinition};
use moraine_tables::ColumnType;

use crate::dialect::{is_unknown, typed_literal};
use crate::error::QueryError;
use crate::functions::{self, SessionFacts};
use crate::types::SqlType;

/// The digits a sum of `BIGINT` can have.
const SUM_TYPE: DataType = DataType::Decimal128(38, 0);

/// Gives a plan's expressions Postgres's meaning.
pub(crate) fn apply(plan: LogicalPlan, facts: &Arc<SessionFacts>) -> Result<LogicalPlan> {
    let transformed = plan.transform_up_with_subqueries(|node| {
        let mut schema = merge_schema(&node.inputs());
        if let LogicalPlan::TableScan(scan) = &node {
            let source = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?;
            schema.merge(&source);
        }
        let preserver = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = preserver.save(&expr);
            let rewritten = expr.transform_up(|expr| rewrite(expr, &schema, facts))?;
            if rewritten.transformed {
                Ok(Transformed::yes(name.restore(rewritten.data)))
            } else {
                Ok(Transformed::no(rewritten.data))
            }
        })?
        .map_data(LogicalPlan::recompute_schema)
    })?;
    Ok(transformed.data)
}

fn rewrite(expr: Expr, schema: &DFSchema, facts: &Arc<SessionFacts>) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Cast(cast) => self::cast(cast, schema, facts),
        Expr::InList(list) => in_list(list, schema),
        Expr::Between(between) => self::between(between, schema),
        Expr::InSubquery(subquery) => in_subquery(subquery),
        Expr::AggregateFunction(function) => sum(function, schema),
        Expr::WindowFunction(function) => window_sum(*function, schema),
        Expr::ScalarFunction(function) => timezone(function, schema),
        other => Ok(Transformed::no(other)),
    }
}

fn in_list(list: InList, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let InList { expr, list, negated } = list;
    if is_unknown(&expr) || !list.iter().any(is_unknown) {
        return Ok(Transformed::no(Expr::InList(InList { expr, list, negated })));
    }
    let (_, field) = expr.to_field(schema)?;
    let list = list
        .into_iter()
        .map(|item| typed_literal(item, &field))
        .collect::<Result<Vec<_>>>()?;
    Ok(Transformed::yes(Expr::InList(InList { expr, list, negated })))
}

fn between(between: Between, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Between {
        expr,
        negated,
        low,
        high,
    } = between;
    let (_, field) = expr.to_field(schema)?;
    Ok(Transformed::yes(Expr::Between(Between {
        expr,
        negated,
        low: Box::new(typed_literal(*low, &field)?),
        high: Box::new(typed_literal(*high, &field)?),
    })))
}

fn in_subquery(subquery: InSubquery) -> Result<Transformed<Expr>> {
    let InSubquery {
        expr,
        subquery,
        negated,
    } = subquery;
    let expr = match subquery.subquery.schema().fields().first() {
        Some(field) => Box::new(typed_literal(*expr, field)?),
        None => expr,
    };
    Ok(Transformed::yes(Expr::InSubquery(InSubquery {
        expr,
        subquery,
        negated,
    })))
}

/// A sum of `BIGINT` is a numeric: it does not overflow.
fn sum(mut function: AggregateFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = function.func.name() == "sum" && widen(&mut function.params.args, schema)?;
    let expr = Expr::AggregateFunction(function);
    Ok(if changed {
        Transformed::yes(expr)
    } else {
        Transformed::no(expr)
    })
}

fn window_sum(mut function: WindowFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_sum =
        matches!(&function.fun, WindowFunctionDefinition::AggregateUDF(udaf) if udaf.name() == "sum");
    let changed = is_sum && widen(&mut function.params.args, schema)?;
    let expr = Expr::WindowFunction(Box::new(function));
    Ok(if changed {
        Transformed::yes(expr)
    } else {
        Transformed::no(expr)
    })
}

/// `AT TIME ZONE` takes an instant out of its zone, or puts a local time into one.
fn timezone(function: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if function.func.name() != "timezone" {
        return Ok(Transformed::no(Expr::ScalarFunction(function)));
    }
    let local = match function.args.get(1) {
        Some(time) => matches!(time.get_type(schema)?, DataType::Timestamp(_, None)),
        None => false,
    };
    if local {
        let zoned = functions::timezone(ColumnType::TimestampTz);
        return Ok(Transformed::yes(zoned.call(function.args)));
    }
    Ok(Transformed::no(Expr::ScalarFunction(function)))
}

fn widen(arguments: &mut [Expr], schema: &DFSchema) -> Result<bool> {
    let mut changed = false;
    for argument in arguments {
        if argument.get_type(schema)? == DataType::Int64 {
            let inner = std::mem::take(argument);
            *argument = Expr::Cast(Cast::new(Box::new(inner), SUM_TYPE));
            changed = true;
        }
    }
    Ok(changed)
}

fn cast(cast: Cast, schema: &DFSchema, facts: &Arc<SessionFacts>) -> Result<Transformed<Expr>> {
    let (_, from) = cast.expr.to_field(schema)?;
    let into = SqlType::of_field(&cast.field).map_err(QueryError::wrapped)?;
    let from_text = matches!(
        from.data_type(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    );
    let function = match into {
        SqlType::RegClass if from_text => functions::regclass_of_text(facts),
        SqlType::RegType if from_text => functions::regtype_of_text(),
        SqlType::Oid if from_text => functions::parse(SqlType::Oid),
        SqlType::Array => return Ok(Transformed::no(Expr::Cast(cast))),
        into if from_text && into.column_type() != ColumnType::Text => functions::parse(into),
        into if into.column_type() == ColumnType::Text => match SqlType::of_field(&from) {
            Ok(SqlType::RegClass) => functions::regclass_text(facts),
            Ok(SqlType::RegType) => functions::regtype_text(),
            Ok(SqlType::Tid) => functions::tid_text_function(),
            Ok(SqlType::Oid) => return Ok(Transformed::no(Expr::Cast(cast))),
            Ok(from) if needs_text_function(from.column_type()) || from == SqlType::Array => {
                functions::text_of()
            }
            _ => return Ok(Transformed::no(Expr::Cast(cast))),
        },
        SqlType::Column(integer @ (ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64))
            if is_fractional(from.data_type()) =>
        {
            functions::to_integer(integer)
        }
        _ => return Ok(Transformed::no(Expr::Cast(cast))),
    };
    Ok(Transformed::yes(function.call(vec![*cast.expr])))
}

/// Whether Postgres writes values of the type in another way than Arrow.
fn needs_text_function(from: ColumnType) -> bool {
    !matches!(
        from,
        ColumnType::Text | ColumnType::Int16 | ColumnType::Int32 | ColumnType::Int64
    )
}

fn is_fractional(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Float32 | DataType::Float64 | DataType::Decimal128(..)
    )
}
