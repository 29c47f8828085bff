//! Row values: compared, looked up, and handed to functions as a whole.

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    BinaryOperator, CaseWhen, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    GroupByExpr, Ident, OrderByExpr, Query, Select, SelectItem, SetExpr, TableAliasColumnDef, TableFactor,
    Value,
};

use super::expressions::{call, cast, not, null, parse};
use super::names;
use super::scopes::Scope;
use crate::dialect::{OF_TABLE, OfTable, QUANTIFIED};
use crate::error::QueryError;

/// The table of a subquery's rows, and its columns before their number. No query can write them.
const ROWS: &str = "\u{1}rows";
const PART: &str = "\u{1}part";

/// Functions that take a row, which a query says by the name of a table.
const OF_ROWS: &[&str] = &["row_to_json", "to_json", "to_jsonb", "json_agg", "jsonb_agg"];

/// `ROW(a, b)`, which is `(a, b)`.
pub(super) fn constructed(function: &Function) -> Option<Expr> {
    (names::last(&function.name) == "row").then(|| Expr::Tuple(arguments(function)))
}

fn arguments(function: &Function) -> Vec<Expr> {
    let FunctionArguments::List(list) = &function.args else {
        return Vec::new();
    };
    let exprs = list.args.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    exprs.collect()
}

/// What is made of the columns of a table: the planner knows them, and whether a name is not a column's after all.
fn made_of(table: String, wanted: OfTable) -> Expr {
    let name = OF_TABLE.iter().find(|(_, known)| *known == wanted);
    let name = name.map_or("", |(name, _)| *name).to_owned();
    Expr::BinaryOp {
        left: Box::new(text(table)),
        op: BinaryOperator::PGCustomBinaryOperator(vec![QUANTIFIED.to_owned(), name]),
        right: Box::new(null()),
    }
}

/// The row of a table as a value; `may_lack` of one that a join may give no row of.
pub(super) fn of_table(table: String, may_lack: bool) -> Expr {
    let wanted = if may_lack {
        OfTable::RecordOrNull
    } else {
        OfTable::Record
    };
    made_of(table, wanted)
}

/// The table whose row an expression is, and whether it may lack.
fn whole_row(expr: &Expr) -> Option<(String, bool)> {
    let Expr::BinaryOp {
        left,
        op: BinaryOperator::PGCustomBinaryOperator(parts),
        ..
    } = expr
    else {
        return None;
    };
    let (Expr::Value(table), [schema, name]) = (left.as_ref(), parts.as_slice()) else {
        return None;
    };
    let Value::SingleQuotedString(table) = &table.value else {
        return None;
    };
    let (_, wanted) = OF_TABLE.iter().find(|(known, _)| known == name)?;
    (schema == QUANTIFIED).then(|| (table.clone(), *wanted == OfTable::RecordOrNull))
}

/// A row that is tested as a whole: it is NULL when all of it is, and not NULL when nothing of it is.
pub(super) fn tested(expr: &mut Expr) {
    let (row, wanted) = match &*expr {
        Expr::IsNull(row) => (row, OfTable::Nothing),
        Expr::IsNotNull(row) => (row, OfTable::Everything),
        _ => return,
    };
    if let Some((table, _)) = whole_row(row) {
        *expr = Expr::Nested(Box::new(made_of(table, wanted)));
    }
}

/// Rows that are given to a function.
pub(super) fn as_arguments(function: &mut Function, scope: &Scope) {
    let name = names::last(&function.name);
    let of_rows = OF_ROWS.contains(&name.as_str());
    let FunctionArguments::List(list) = &mut function.args else {
        return;
    };
    for argument in &mut list.args {
        if let FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table)) = argument {
            let table = names::last(table);
            let may_lack = scope.table(&table).unwrap_or(false);
            *argument = FunctionArg::Unnamed(FunctionArgExpr::Expr(of_table(table, may_lack)));
        }
    }
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(row))) = list.args.first_mut() else {
        return;
    };
    if !of_rows {
        return;
    }
    let as_json = |may_lack: bool| {
        if may_lack {
            OfTable::JsonOrNull
        } else {
            OfTable::Json
        }
    };
    let whole = match row {
        Expr::Identifier(ident) => made_of(names::fold(ident), OfTable::Json),
        Expr::Tuple(parts) => {
            let named = parts.iter().enumerate();
            let named = named.flat_map(|(index, part)| [text(format!("f{}", index + 1)), part.clone()]);
            call("json_row", named.collect())
        }
        ref other => match whole_row(other) {
            Some((table, may_lack)) => made_of(table, as_json(may_lack)),
            None => return,
        },
    };
    *row = whole;
}

/// Rows that are values where they stand, which nothing else has taken apart.
pub(super) fn as_values(expr: &mut Expr) {
    let _ = sqlparser::ast::visit_expressions_mut(expr, |part| {
        if let Expr::Tuple(parts) = part {
            *part = call(crate::functions::RECORD, std::mem::take(parts));
        }
        std::ops::ControlFlow::<()>::Continue(())
    });
}

fn text(value: String) -> Expr {
    Expr::value(Value::SingleQuotedString(value))
}

/// `row op row` and `row op (subquery)`; `None` when no row is compared.
pub(super) fn comparison(left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Option<Expr>, QueryError> {
    match (left, right) {
        (Expr::Tuple(lefts), Expr::Tuple(rights)) => compared(lefts, op, rights).map(Some),
        (Expr::Tuple(lefts), Expr::Subquery(query)) => {
            let value = compared(lefts, op, &parts(lefts.len()))?;
            let query = over_rows(query, lefts.len(), value, None)?;
            Ok(Some(Expr::Subquery(Box::new(query))))
        }
        (Expr::Tuple(_), Expr::Nested(inner)) => comparison(left, op, inner),
        (Expr::Nested(inner), Expr::Tuple(_)) => comparison(inner, op, right),
        _ => Ok(None),
    }
}

/// Rows are compared by their first parts that are not equal.
fn compared(lefts: &[Expr], op: &BinaryOperator, rights: &[Expr]) -> Result<Expr, QueryError> {
    let strict = match op {
        BinaryOperator::Eq => return all_equal(lefts, rights),
        BinaryOperator::NotEq => return all_equal(lefts, rights).map(not),
        BinaryOperator::Lt | BinaryOperator::LtEq => BinaryOperator::Lt,
        BinaryOperator::Gt | BinaryOperator::GtEq => BinaryOperator::Gt,
        BinaryOperator::Overlaps if lefts.len() == 2 && rights.len() == 2 => {
            return Ok(call("overlaps", lefts.iter().chain(rights).cloned().collect()));
        }
        other => return Err(QueryError::unsupported(format!("rows compared by {other}"))),
    };
    let mut pairs = pairs(lefts, rights)?.into_iter().rev();
    let Some((left, right)) = pairs.next() else {
        return Err(QueryError::Invalid {
            detail: "cannot compare rows of zero length".to_owned(),
        });
    };
    let last = binary(left, op, right);
    Ok(pairs.fold(last, |rest, (left, right)| {
        let equal = binary(left, &BinaryOperator::Eq, right);
        let rest = binary(&equal, &BinaryOperator::And, &rest);
        binary(&binary(left, &strict, right), &BinaryOperator::Or, &rest)
    }))
}

fn binary(left: &Expr, op: &BinaryOperator, right: &Expr) -> Expr {
    Expr::Nested(Box::new(Expr::BinaryOp {
        left: Box::new(Expr::Nested(Box::new(left.clone()))),
        op: op.clone(),
        right: Box::new(Expr::Nested(Box::new(right.clone()))),
    }))
}

fn pairs<'a>(lefts: &'a [Expr], rights: &'a [Expr]) -> Result<Vec<(&'a Expr, &'a Expr)>, QueryError> {
    if lefts.len() != rights.len() {
        return Err(QueryError::Invalid {
            detail: "unequal number of entries in row expressions".to_owned(),
        });
    }
    Ok(lefts.iter().zip(rights).collect())
}

fn all_equal(lefts: &[Expr], rights: &[Expr]) -> Result<Expr, QueryError> {
    let equal = pairs(lefts, rights)?.into_iter();
    let equal = equal.map(|(left, right)| binary(left, &BinaryOperator::Eq, right));
    Ok(Expr::Nested(Box::new(joined(equal, &BinaryOperator::And))))
}

fn joined(parts: impl Iterator<Item = Expr>, op: &BinaryOperator) -> Expr {
    parts
        .reduce(|left, right| Expr::BinaryOp {
            left: Box::new(left),
            op: op.clone(),
            right: Box::new(right),
        })
        .unwrap_or_else(|| Expr::value(Value::Boolean(matches!(op, BinaryOperator::And))))
}

/// `row IN (row, …)`.
pub(super) fn in_list(row: &Expr, list: &[Expr]) -> Result<Expr, QueryError> {
    let Expr::Tuple(lefts) = row else {
        return Err(QueryError::unsupported("this row"));
    };
    let mut rows = Vec::with_capacity(list.len());
    for item in list {
        match item {
            Expr::Tuple(rights) => rows.push(all_equal(lefts, rights)?),
            other => return Err(QueryError::unsupported(format!("a row compared with {other}"))),
        }
    }
    Ok(Expr::Nested(Box::new(joined(
        rows.into_iter(),
        &BinaryOperator::Or,
    ))))
}

/// `row IN (subquery)` where only its truth counts: a row without a match is the same as one of which that is not known.
pub(super) fn in_where(condition: &mut Expr) -> Result<(), QueryError> {
    match condition {
        Expr::Nested(inner) => in_where(inner),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And | BinaryOperator::Or,
            right,
        } => {
            in_where(left)?;
            in_where(right)
        }
        Expr::InSubquery {
            expr: row,
            subquery,
            negated: false,
        } if let Expr::Tuple(parts) = row.as_ref() => {
            *condition = matches(parts, subquery, false)?;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// `row IN (subquery)` with its three truth values.
pub(super) fn member(row: &[Expr], subquery: &Query, negated: bool) -> Result<Expr, QueryError> {
    let when = |condition: Expr, result: Expr| CaseWhen { condition, result };
    let truth = |value: bool| Expr::value(Value::Boolean(value));
    Ok(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![
            when(matches(row, subquery, false)?, truth(!negated)),
            when(matches(row, subquery, true)?, cast(null(), DataType::Boolean)),
        ],
        else_result: Some(Box::new(truth(negated))),
    })
}

/// Whether a subquery has a row that equals this one, or may do so.
fn matches(row: &[Expr], subquery: &Query, maybe: bool) -> Result<Expr, QueryError> {
    let mut equal = all_equal(row, &parts(row.len()))?;
    if maybe {
        equal = Expr::IsNotFalse(Box::new(equal));
    }
    let one = Expr::value(Value::Number("1".to_owned(), false));
    Ok(Expr::Exists {
        subquery: Box::new(over_rows(subquery, row.len(), one, Some(equal))?),
        negated: false,
    })
}

fn parts(count: usize) -> Vec<Expr> {
    let part = |index: usize| Expr::CompoundIdentifier(vec![quoted(ROWS), quoted(&format!("{PART}{index}"))]);
    (0..count).map(part).collect()
}

fn quoted(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

/// `SELECT value FROM (query) AS rows(part…) WHERE condition`.
fn over_rows(query: &Query, count: usize, value: Expr, condition: Option<Expr>) -> Result<Query, QueryError> {
    let mut outer = parse("SELECT 1 FROM (SELECT 1) AS \"e\"(\"v\")")?;
    if let SetExpr::Select(select) = outer.body.as_mut() {
        select.projection = vec![SelectItem::UnnamedExpr(value)];
        select.selection = condition;
        if let Some(TableFactor::Derived {
            subquery,
            alias: Some(alias),
            ..
        }) = select.from.first_mut().map(|from| &mut from.relation)
        {
            **subquery = query.clone();
            alias.name = quoted(ROWS);
            let columns = (0..count).map(|index| TableAliasColumnDef {
                name: quoted(&format!("{PART}{index}")),
                data_type: None,
            });
            alias.columns = columns.collect();
        }
    }
    Ok(outer)
}

/// Tests of a row as a whole: `row IS NULL` when all of its parts are, `row IS DISTINCT FROM row` when any part is.
pub(super) fn as_whole(expr: &Expr) -> Result<Option<Expr>, QueryError> {
    let each = |parts: &[Expr], test: fn(Box<Expr>) -> Expr| {
        let tests = parts.iter().map(|part| test(Box::new(part.clone())));
        Expr::Nested(Box::new(joined(tests, &BinaryOperator::And)))
    };
    let distinct = |lefts: &[Expr], rights: &[Expr]| {
        let any = pairs(lefts, rights)?.into_iter();
        let any =
            any.map(|(left, right)| Expr::IsDistinctFrom(Box::new(left.clone()), Box::new(right.clone())));
        Ok::<_, QueryError>(Expr::Nested(Box::new(joined(any, &BinaryOperator::Or))))
    };
    Ok(match expr {
        Expr::IsNull(row) if let Expr::Tuple(parts) = row.as_ref() => Some(each(parts, Expr::IsNull)),
        Expr::IsNotNull(row) if let Expr::Tuple(parts) = row.as_ref() => Some(each(parts, Expr::IsNotNull)),
        Expr::IsDistinctFrom(left, right) => match (left.as_ref(), right.as_ref()) {
            (Expr::Tuple(lefts), Expr::Tuple(rights)) => Some(distinct(lefts, rights)?),
            _ => None,
        },
        Expr::IsNotDistinctFrom(left, right) => match (left.as_ref(), right.as_ref()) {
            (Expr::Tuple(lefts), Expr::Tuple(rights)) => Some(not(distinct(lefts, rights)?)),
            _ => None,
        },
        _ => None,
    })
}

/// Groups of rows are groups of their parts.
pub(super) fn in_groups(select: &mut Select) {
    if let GroupByExpr::Expressions(exprs, _) = &mut select.group_by {
        let parts = std::mem::take(exprs).into_iter().flat_map(|expr| match expr {
            Expr::Tuple(parts) => parts,
            expr => vec![expr],
        });
        *exprs = parts.collect();
    }
}

/// Rows are in the order of their parts.
pub(super) fn in_order(order: &mut Vec<OrderByExpr>) {
    let parts = std::mem::take(order)
        .into_iter()
        .flat_map(|ordered| match &ordered.expr {
            Expr::Tuple(parts) => {
                let by = |part: &Expr| OrderByExpr {
                    expr: part.clone(),
                    ..ordered.clone()
                };
                parts.iter().map(by).collect()
            }
            _ => vec![ordered],
        });
    *order = parts.collect();
}
