//! Where Postgres and DataFusion give an expression another meaning: casts from and to text, rounding, literals in lists
//! and ranges, sums. Works on a plan whose columns are known and whose types are not yet reconciled.

use std::sync::Arc;

use arrow_array::Array;
use arrow_schema::DataType;
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{
    AggregateFunction, Between, Cast, InList, InSubquery, ScalarFunction, WindowFunction,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, WindowFunctionDefinition,
};
use moraine_tables::{ColumnType, Numeric, Value};

use crate::calls;
use crate::dialect::{is_unknown, typed_literal};
use crate::emptiness;
use crate::error::QueryError;
use crate::functions::{self, SessionFacts};
use crate::ties;
use crate::types::{SqlType, TRIMMED_NUMERIC};
use crate::values;

/// The digits a sum of `BIGINT` can have.
const SUM_TYPE: DataType = DataType::Decimal128(38, 0);

/// Gives a plan's expressions Postgres's meaning.
pub(crate) fn apply(plan: LogicalPlan, facts: &Arc<SessionFacts>) -> Result<LogicalPlan> {
    let transformed = narrow(emptiness::without_empty_tables(ties::with_ties(plan)?)?)?
        .transform_up_with_subqueries(|node| {
            let mut schema = merge_schema(&node.inputs());
            if let LogicalPlan::TableScan(scan) = &node {
                let source =
                    DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?;
                schema.merge(&source);
            }
            let preserver = NamePreserver::new(&node);
            let sorts = matches!(node, LogicalPlan::Sort(_));
            node.map_expressions(|expr| {
                let name = preserver.save(&expr);
                let mut rewritten = expr.transform_up(|expr| rewrite(expr, &schema, facts))?;
                if sorts {
                    rewritten.data = calls::sorted_by(rewritten.data, &schema)?;
                }
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
        Expr::ScalarFunction(function) if function.func.name() == "pg_typeof" => type_of(&function, schema),
        Expr::ScalarFunction(function) => calls::call(function, schema),
        Expr::BinaryExpr(binary) => calls::operator(binary, schema),
        other => Ok(Transformed::no(other)),
    }
}

/// `pg_typeof(x)` as the number of the type. A quoted literal has none yet.
fn type_of(function: &ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    const UNKNOWN_OID: i64 = 705;
    let oid = match function.args.first() {
        Some(argument) if !is_unknown(argument) => {
            let (_, field) = argument.to_field(schema)?;
            let sql_type = SqlType::of_field(&field).map_err(QueryError::wrapped)?;
            if field.data_type().is_null() {
                UNKNOWN_OID
            } else {
                functions::type_oid(sql_type).unwrap_or(UNKNOWN_OID)
            }
        }
        _ => UNKNOWN_OID,
    };
    let scalar = values::scalar(&Value::Int64(oid), SqlType::RegType).map_err(QueryError::wrapped)?;
    let field = SqlType::RegType.field("", true);
    let metadata = FieldMetadata::new_from_field(&field);
    Ok(Transformed::yes(Expr::Literal(scalar, Some(metadata))))
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

/// `x = ANY (array)` over an array that is known by now as a list of its elements, which the tables can look up.
pub(crate) fn spelled_out(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| {
        let preserver = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = preserver.save(&expr);
            let spelled = expr.transform_up(|expr| match expr {
                Expr::ScalarFunction(function) if functions::is_any_equal(&function.func) => {
                    Ok(list_of(function))
                }
                expr => Ok(Transformed::no(expr)),
            })?;
            Ok(if spelled.transformed {
                Transformed::yes(name.restore(spelled.data))
            } else {
                Transformed::no(spelled.data)
            })
        })
    })?;
    Ok(plan.data)
}

fn list_of(function: ScalarFunction) -> Transformed<Expr> {
    if let [needle, Expr::Literal(ScalarValue::List(list), _)] = function.args.as_slice()
        && !list.is_null(0)
        && !list.value(0).is_empty()
    {
        let items = list.value(0);
        let elements = (0..items.len()).map(|index| ScalarValue::try_from_array(&items, index));
        if let Ok(elements) = elements.collect::<Result<Vec<_>>>() {
            return Transformed::yes(Expr::InList(InList {
                expr: Box::new(needle.clone()),
                list: elements
                    .into_iter()
                    .map(|element| Expr::Literal(element, None))
                    .collect(),
                negated: false,
            }));
        }
    }
    Transformed::no(Expr::ScalarFunction(function))
}

/// Gives whole numbers that a query writes Postgres's type: `integer` where they fit.
fn narrow(plan: LogicalPlan) -> Result<LogicalPlan> {
    // The table a recursive query works on has the types that were found while it was planned.
    if plan.exists(|node| Ok(matches!(node, LogicalPlan::RecursiveQuery(_))))? {
        return Ok(plan);
    }
    let narrowed = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Limit(_) => Ok(Transformed::no(node)),
        LogicalPlan::Values(values) => {
            let rows = values.values.into_iter();
            let rows = rows.map(|row| row.into_iter().map(narrowed).collect::<Result<Vec<_>>>());
            let rows = rows.collect::<Result<Vec<_>>>()?;
            Ok(Transformed::yes(LogicalPlanBuilder::values(rows)?.build()?))
        }
        node => {
            let preserver = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = preserver.save(&expr);
                let expr = narrowed(expr)?;
                Ok(Transformed::yes(name.restore(expr)))
            })?
            .map_data(LogicalPlan::recompute_schema)
        }
    })?;
    Ok(narrowed.data)
}

fn narrowed(expr: Expr) -> Result<Expr> {
    let narrowed = expr.transform_down(|expr| match expr {
        Expr::Literal(ScalarValue::Int64(Some(value)), None) => {
            let literal = match i32::try_from(value) {
                Ok(value) => ScalarValue::Int32(Some(value)),
                Err(_) => ScalarValue::Int64(Some(value)),
            };
            Ok(Transformed::new(
                Expr::Literal(literal, None),
                true,
                TreeNodeRecursion::Jump,
            ))
        }
        // Window functions read their arguments themselves, and a lambda's variable has the type it was planned with.
        expr @ (Expr::WindowFunction(_) | Expr::HigherOrderFunction(_)) => {
            Ok(Transformed::new(expr, false, TreeNodeRecursion::Jump))
        }
        expr => Ok(Transformed::no(expr)),
    })?;
    Ok(narrowed.data)
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
        SqlType::RegProc if from_text => functions::regproc_of_text(),
        SqlType::Oid if from_text => functions::parse(SqlType::Oid),
        SqlType::Array(_) | SqlType::Vector(_) if from_text => functions::parse(into),
        SqlType::Array(_) | SqlType::Vector(_) => return Ok(Transformed::no(Expr::Cast(cast))),
        SqlType::Numeric => return Ok(Transformed::yes(plain_numeric(cast, from.data_type()))),
        SqlType::Json | SqlType::Jsonb if from_text => functions::json_of_text(into == SqlType::Jsonb),
        into if from_text && into.column_type() != ColumnType::Text => functions::parse(into),
        into if into.column_type() == ColumnType::Text => match SqlType::of_field(&from) {
            Ok(SqlType::RegClass) => functions::regclass_text(facts),
            Ok(SqlType::RegType) => functions::regtype_text(),
            Ok(SqlType::Tid) => functions::tid_text_function(),
            Ok(SqlType::Oid) => return Ok(Transformed::no(Expr::Cast(cast))),
            Ok(from)
                if needs_text_function(from.column_type())
                    || matches!(from, SqlType::Array(_) | SqlType::Vector(_)) =>
            {
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

/// `x::numeric`: the digits that `x` has.
fn plain_numeric(cast: Cast, from: &DataType) -> Expr {
    let inner = *cast.expr;
    let into = match from {
        DataType::Decimal128(..) | DataType::Decimal256(..) => return inner,
        integer if integer.is_integer() => DataType::Decimal128(20, 0),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            if let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = &inner
                && let Some(number) = Numeric::parse(text.trim())
            {
                let literal = ScalarValue::Decimal128(Some(number.unscaled), 38, number.scale);
                return Expr::Literal(literal, None);
            }
            let parsed = functions::parse(SqlType::Numeric).call(vec![inner]);
            return Expr::Cast(Cast::new(Box::new(parsed), TRIMMED_NUMERIC));
        }
        _ => {
            let text = functions::text_of().call(vec![inner]);
            let parsed = functions::parse(SqlType::Numeric).call(vec![text]);
            return Expr::Cast(Cast::new(Box::new(parsed), TRIMMED_NUMERIC));
        }
    };
    Expr::Cast(Cast::new(Box::new(inner), into))
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
        DataType::Float32 | DataType::Float64 | DataType::Decimal128(..) | DataType::Decimal256(..)
    )
}
