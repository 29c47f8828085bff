//! SELECTs over the system catalogs: joins, conditions, UNION ALL, ORDER BY, LIMIT. Small and general: the tables have a
//! few thousand rows at most, and joins on equal columns are hashed.

use std::cmp::Ordering;
use std::collections::HashMap;

use futures::FutureExt;
use futures::future::BoxFuture;
use moraine_tables::{Relation, Value};
use postgres_types::Type;
use sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, JoinConstraint, JoinOperator, LimitClause, OrderByKind, Query, Select,
    SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor, TableWithJoins, Value as SqlValue,
};

use super::evaluate::{Field, Fields, compare, truth};
use super::scan_names::{Hint, system_relation};
use super::{Context, ResultSet, catalog, functions};
use crate::bind::fold;
use crate::errors::{SqlError, state};
use crate::general::wire_type;
use crate::transaction::Transaction;
use crate::values::literal::Literal;
use crate::values::types;

/// What a subquery can see of the row around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outer<'o> {
    pub(super) fields: &'o Fields,
    pub(super) row: &'o [Value],
    pub(super) parent: Option<&'o Outer<'o>>,
}

static NO_FIELDS: Fields = Fields(Vec::new());

impl Outer<'static> {
    pub(super) fn none() -> Outer<'static> {
        Outer {
            fields: &NO_FIELDS,
            row: &[],
            parent: None,
        }
    }
}

/// Evaluates system queries in one transaction.
pub(super) struct Engine<'e, 'c> {
    pub(super) transaction: &'e mut Transaction,
    pub(super) context: &'e Context<'c>,
}

/// Joined rows and their columns.
#[derive(Debug, Clone, Default)]
struct Joined {
    fields: Fields,
    rows: Vec<Vec<Value>>,
}

/// A result with what ORDER BY can still look at.
struct Sortable {
    result: ResultSet,
    /// The joined row behind each result row, and its columns; empty after UNION and aggregates.
    behind: Joined,
}

impl Engine<'_, '_> {
    /// Evaluates a query, which may contain others.
    pub(super) fn query<'f>(
        &'f mut self,
        query: &'f Query,
        outer: &'f Outer<'f>,
    ) -> BoxFuture<'f, Result<ResultSet, SqlError>> {
        self.whole_query(query, outer).boxed()
    }

    async fn whole_query(&mut self, query: &Query, outer: &Outer<'_>) -> Result<ResultSet, SqlError> {
        if query.with.is_some() || !query.locks.is_empty() || query.fetch.is_some() {
            return Err(SqlError::unsupported(
                "WITH, FETCH or FOR in a query of the system",
            ));
        }
        let mut sortable = self.body(&query.body, outer).await?;
        if let Some(order) = &query.order_by {
            let OrderByKind::Expressions(expressions) = &order.kind else {
                return Err(SqlError::unsupported("ORDER BY ALL"));
            };
            self.sort(&mut sortable, expressions, outer).await?;
        }
        let mut result = sortable.result;
        if let Some(LimitClause::LimitOffset {
            limit,
            offset,
            limit_by,
        }) = &query.limit_clause
        {
            if !limit_by.is_empty() {
                return Err(SqlError::unsupported("LIMIT BY"));
            }
            if let Some(offset) = offset {
                let skipped = count(&offset.value)?.unwrap_or(0).min(result.rows.len());
                result.rows.drain(..skipped);
            }
            if let Some(limit) = limit.as_ref().map(count).transpose()?.flatten() {
                result.rows.truncate(limit);
            }
        }
        Ok(result)
    }

    fn body<'f>(
        &'f mut self,
        body: &'f SetExpr,
        outer: &'f Outer<'f>,
    ) -> BoxFuture<'f, Result<Sortable, SqlError>> {
        self.whole_body(body, outer).boxed()
    }

    async fn whole_body(&mut self, body: &SetExpr, outer: &Outer<'_>) -> Result<Sortable, SqlError> {
        match body {
            SetExpr::Select(select) => self.select(select, outer).await,
            SetExpr::Query(query) => {
                let result = self.query(query, outer).await?;
                Ok(Sortable {
                    result,
                    behind: Joined::default(),
                })
            }
            SetExpr::SetOperation {
                op: SetOperator::Union,
                set_quantifier: SetQuantifier::All,
                left,
                right,
            } => {
                let mut left = self.body(left, outer).await?.result;
                let right = self.body(right, outer).await?.result;
                if left.columns.len() != right.columns.len() {
                    let message = "each UNION query must have the same number of columns";
                    return Err(SqlError::new(state::SYNTAX_ERROR, message));
                }
                left.rows.extend(right.rows);
                Ok(Sortable {
                    result: left,
                    behind: Joined::default(),
                })
            }
            SetExpr::SetOperation { op, .. } => Err(SqlError::unsupported(format!(
                "{op} in a query of the system (UNION ALL is)"
            ))),
            _ => Err(SqlError::unsupported("this query of the system")),
        }
    }

    async fn select(&mut self, select: &Select, outer: &Outer<'_>) -> Result<Sortable, SqlError> {
        let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(list, _) if list.is_empty());
        if grouped || select.having.is_some() || select.distinct.is_some() || !select.named_window.is_empty()
        {
            return Err(SqlError::unsupported(
                "GROUP BY, HAVING, DISTINCT or WINDOW in a query of the system",
            ));
        }
        let hint = Hint::of(select);
        let mut joined = self.from(&select.from, &hint, outer).await?;
        if let Some(selection) = &select.selection {
            joined.rows = self.filter(joined.rows, &joined.fields, selection, outer).await?;
        }
        self.project(select, joined, outer).await
    }

    /// The rows on which a condition holds.
    async fn filter(
        &mut self,
        rows: Vec<Vec<Value>>,
        fields: &Fields,
        condition: &Expr,
        outer: &Outer<'_>,
    ) -> Result<Vec<Vec<Value>>, SqlError> {
        let mut kept = Vec::new();
        for row in rows {
            let scope = Outer {
                fields,
                row: &row,
                parent: Some(outer),
            };
            if truth(&self.value(condition, &row, &scope).await?) == Some(true) {
                kept.push(row);
            }
        }
        Ok(kept)
    }

    async fn from(
        &mut self,
        from: &[TableWithJoins],
        hint: &Hint,
        outer: &Outer<'_>,
    ) -> Result<Joined, SqlError> {
        // Without FROM there is one row without columns.
        let mut joined = Joined {
            fields: Fields::default(),
            rows: vec![Vec::new()],
        };
        for table in from {
            let right = self.with_joins(table, hint, outer).await?;
            joined = self.join(joined, right, None, false, outer).await?;
        }
        Ok(joined)
    }

    fn with_joins<'f>(
        &'f mut self,
        table: &'f TableWithJoins,
        hint: &'f Hint,
        outer: &'f Outer<'f>,
    ) -> BoxFuture<'f, Result<Joined, SqlError>> {
        self.all_joins(table, hint, outer).boxed()
    }

    async fn all_joins(
        &mut self,
        table: &TableWithJoins,
        hint: &Hint,
        outer: &Outer<'_>,
    ) -> Result<Joined, SqlError> {
        let mut joined = self.factor(&table.relation, hint, outer).await?;
        for join in &table.joins {
            let right = self.factor(&join.relation, hint, outer).await?;
            let (constraint, left_join) = match &join.join_operator {
                JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) => (Some(constraint), false),
                JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
                    (Some(constraint), true)
                }
                JoinOperator::CrossJoin(_) => (None, false),
                _ => {
                    return Err(SqlError::unsupported(
                        "this kind of JOIN in a query of the system",
                    ));
                }
            };
            let condition = match constraint {
                Some(JoinConstraint::On(condition)) => Some(condition),
                Some(JoinConstraint::None) | None => None,
                Some(_) => return Err(SqlError::unsupported("JOIN … USING in a query of the system")),
            };
            joined = self.join(joined, right, condition, left_join, outer).await?;
        }
        Ok(joined)
    }

    async fn factor(
        &mut self,
        factor: &TableFactor,
        hint: &Hint,
        outer: &Outer<'_>,
    ) -> Result<Joined, SqlError> {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => {
                let (schema, table) = system_relation(name).ok_or_else(|| SqlError::undefined_table(name))?;
                let settings = self.context.settings;
                let found = catalog::table(self.transaction, schema, &table, hint, settings).await?;
                let qualifier = alias.as_ref().map_or(table, |alias| fold(&alias.name));
                let columns = found.columns().into_iter();
                let fields = columns.map(|(name, sql_type, hidden)| Field {
                    qualifier: qualifier.clone(),
                    name: name.to_owned(),
                    wire_type: wire_type(sql_type),
                    hidden,
                });
                Ok(Joined {
                    fields: Fields(fields.collect()),
                    rows: found.rows,
                })
            }
            TableFactor::Derived {
                lateral: false,
                subquery,
                alias,
                ..
            } => {
                let result = self.query(subquery, outer).await?;
                let qualifier = alias.as_ref().map(|alias| fold(&alias.name)).unwrap_or_default();
                let columns = result.columns.into_iter();
                let fields = columns.map(|(name, wire_type)| Field {
                    qualifier: qualifier.clone(),
                    name,
                    wire_type,
                    hidden: false,
                });
                Ok(Joined {
                    fields: Fields(fields.collect()),
                    rows: result.rows,
                })
            }
            TableFactor::NestedJoin { table_with_joins, .. } => {
                self.with_joins(table_with_joins, hint, outer).await
            }
            other => Err(SqlError::unsupported(format!(
                "FROM {other} in a query of the system"
            ))),
        }
    }

    /// Joins two sets of rows; equal columns are looked up, the rest of the condition is evaluated.
    async fn join(
        &mut self,
        left: Joined,
        right: Joined,
        condition: Option<&Expr>,
        left_join: bool,
        outer: &Outer<'_>,
    ) -> Result<Joined, SqlError> {
        let width = right.fields.0.len();
        let keys = match condition {
            Some(condition) => equal_columns(condition, &left.fields, &right.fields)?,
            None => None,
        };
        let mut index: HashMap<&Value, Vec<usize>> = HashMap::new();
        if let Some((_, right_key)) = keys {
            for (position, row) in right.rows.iter().enumerate() {
                if let Some(value) = row.get(right_key).filter(|value| !value.is_null()) {
                    index.entry(value).or_default().push(position);
                }
            }
        }
        let mut fields = left.fields.0;
        fields.extend(right.fields.0);
        let fields = Fields(fields);
        let every: Vec<usize> = (0..right.rows.len()).collect();
        let mut rows = Vec::new();
        for row in left.rows {
            let candidates: &[usize] = match keys {
                Some((left_key, _)) => row
                    .get(left_key)
                    .and_then(|value| index.get(value))
                    .map(Vec::as_slice)
                    .unwrap_or_default(),
                None => &every,
            };
            let mut matched = false;
            for partner in candidates.iter().filter_map(|position| right.rows.get(*position)) {
                let mut whole = row.clone();
                whole.extend(partner.iter().cloned());
                if let Some(condition) = condition {
                    let scope = Outer {
                        fields: &fields,
                        row: &whole,
                        parent: Some(outer),
                    };
                    if truth(&self.value(condition, &whole, &scope).await?) != Some(true) {
                        continue;
                    }
                }
                matched = true;
                rows.push(whole);
            }
            if left_join && !matched {
                let mut whole = row;
                whole.extend(std::iter::repeat_n(Value::Null, width));
                rows.push(whole);
            }
        }
        Ok(Joined { fields, rows })
    }

    async fn project(
        &mut self,
        select: &Select,
        joined: Joined,
        outer: &Outer<'_>,
    ) -> Result<Sortable, SqlError> {
        let items = projection(select, &joined.fields)?;
        let counts = items.iter().any(|(_, item)| is_count(item));
        let columns: Vec<(String, Type)> = items
            .iter()
            .map(|(name, item)| (name.clone(), item.wire_type(&joined.fields)))
            .collect();
        if counts {
            let mut row = Vec::with_capacity(items.len());
            for (name, item) in &items {
                let value = match item {
                    item if is_count(item) => {
                        Value::Int64(i64::try_from(joined.rows.len()).unwrap_or(i64::MAX))
                    }
                    Item::Expr(expr) => self.value(expr, &[], outer).await?,
                    Item::Field(_) => return Err(not_grouped(name)),
                };
                row.push(value);
            }
            let result = ResultSet {
                columns,
                rows: vec![row],
            };
            return Ok(Sortable {
                result,
                behind: Joined::default(),
            });
        }
        let mut rows = Vec::with_capacity(joined.rows.len());
        for row in &joined.rows {
            let scope = Outer {
                fields: &joined.fields,
                row,
                parent: Some(outer),
            };
            let mut shown = Vec::with_capacity(items.len());
            for (_, item) in &items {
                shown.push(match item {
                    Item::Field(position) => row.get(*position).cloned().unwrap_or(Value::Null),
                    Item::Expr(expr) => self.value(expr, row, &scope).await?,
                });
            }
            rows.push(shown);
        }
        let columns = refined(columns, &items, &rows);
        Ok(Sortable {
            result: ResultSet { columns, rows },
            behind: joined,
        })
    }

    async fn sort(
        &mut self,
        sortable: &mut Sortable,
        expressions: &[sqlparser::ast::OrderByExpr],
        outer: &Outer<'_>,
    ) -> Result<(), SqlError> {
        let names: Vec<String> = sortable
            .result
            .columns
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        let rows = std::mem::take(&mut sortable.result.rows);
        let mut keyed = Vec::with_capacity(rows.len());
        for (position, row) in rows.into_iter().enumerate() {
            let mut keys = Vec::with_capacity(expressions.len());
            for expression in expressions {
                let key = match output_position(&expression.expr, &names) {
                    Some(output) => row.get(output).cloned().unwrap_or(Value::Null),
                    None => {
                        let behind = sortable.behind.rows.get(position).cloned().unwrap_or_default();
                        let scope = Outer {
                            fields: &sortable.behind.fields,
                            row: &behind,
                            parent: Some(outer),
                        };
                        self.value(&expression.expr, &behind, &scope).await?
                    }
                };
                let descending = expression.options.asc == Some(false);
                let nulls_first = expression.options.nulls_first.unwrap_or(descending);
                keys.push((key, descending, nulls_first));
            }
            keyed.push((keys, row));
        }
        keyed.sort_by(|(left, _), (right, _)| compare_keys(left, right));
        sortable.result.rows = keyed.into_iter().map(|(_, row)| row).collect();
        Ok(())
    }

    /// The name of a table that exists, or NULL.
    pub(super) async fn table_named(&mut self, name: Option<String>) -> Result<Value, SqlError> {
        let Some(name) = name else {
            return Ok(Value::Null);
        };
        let (schema, table) = match name.split_once('.') {
            Some((schema, table)) => (schema.trim_matches('"').to_owned(), table),
            None => (self.context.schema.to_owned(), name.as_str()),
        };
        let Some(relation) = Relation::parse(table.trim_matches('"')) else {
            return Ok(Value::Null);
        };
        let found = match self.transaction.read(&schema).await? {
            Some(catalog) => Box::pin(moraine_tables::describe(catalog, relation))
                .await?
                .is_some(),
            None => false,
        };
        Ok(if found {
            Value::text(relation.name())
        } else {
            Value::Null
        })
    }
}

/// What one result column shows.
enum Item<'a> {
    Field(usize),
    Expr(&'a Expr),
}

impl Item<'_> {
    fn wire_type(&self, fields: &Fields) -> Type {
        let of_field = |position: usize| {
            fields
                .0
                .get(position)
                .map_or(Type::TEXT, |field| field.wire_type.clone())
        };
        match self {
            Item::Field(position) => of_field(*position),
            Item::Expr(expr) => match fields.column(expr) {
                Ok(Some(position)) => of_field(position),
                _ => static_type(expr),
            },
        }
    }
}

/// The type an expression has whatever its rows are.
fn static_type(expr: &Expr) -> Type {
    match expr {
        Expr::Function(function) => functions::result_type(&functions::name(function)),
        Expr::Nested(inner) => static_type(inner),
        Expr::Cast { data_type, .. } => types::from_sql(data_type).map_or(Type::TEXT, types::wire_type),
        Expr::Value(value) => match &value.value {
            SqlValue::Number(digits, _) => types::wire_type(Literal::Number(digits.clone()).natural_type()),
            SqlValue::Boolean(_) => Type::BOOL,
            _ => Type::TEXT,
        },
        Expr::UnaryOp { expr, .. } => static_type(expr),
        Expr::BinaryOp {
            op: BinaryOperator::StringConcat,
            ..
        } => Type::TEXT,
        Expr::BinaryOp { .. }
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::InList { .. }
        | Expr::Exists { .. } => Type::BOOL,
        Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => match select.projection.first() {
                Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) => {
                    static_type(expr)
                }
                _ => Type::TEXT,
            },
            _ => Type::TEXT,
        },
        _ => Type::TEXT,
    }
}

/// Types corrected by what the rows hold: an expression whose type was taken for text may have given something else.
fn refined(
    columns: Vec<(String, Type)>,
    items: &[(String, Item<'_>)],
    rows: &[Vec<Value>],
) -> Vec<(String, Type)> {
    let refine = |(position, (name, wire_type)): (usize, (String, Type))| {
        let computed = matches!(items.get(position), Some((_, Item::Expr(_))));
        let first = rows
            .iter()
            .filter_map(|row| row.get(position))
            .find(|value| !value.is_null());
        match first {
            Some(value) if computed && wire_type == Type::TEXT && !matches!(value, Value::Text(_)) => (
                name,
                types::wire_type(Literal::Typed(value.clone()).natural_type()),
            ),
            _ => (name, wire_type),
        }
    };
    columns.into_iter().enumerate().map(refine).collect()
}

fn projection<'a>(select: &'a Select, fields: &Fields) -> Result<Vec<(String, Item<'a>)>, SqlError> {
    let mut items = Vec::with_capacity(select.projection.len());
    for item in &select.projection {
        match item {
            SelectItem::UnnamedExpr(expr) => items.push((output_name(expr), Item::Expr(expr))),
            SelectItem::ExprWithAlias { expr, alias } => items.push((fold(alias), Item::Expr(expr))),
            SelectItem::Wildcard(_) => {
                let all = fields.0.iter().enumerate().filter(|(_, field)| !field.hidden);
                items.extend(all.map(|(position, field)| (field.name.clone(), Item::Field(position))));
            }
            other => return Err(SqlError::unsupported(format!("the result column {other}"))),
        }
    }
    Ok(items)
}

fn output_name(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(ident) => fold(ident),
        Expr::CompoundIdentifier(idents) => idents.last().map(fold).unwrap_or_default(),
        Expr::Function(function) => functions::name(function),
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => output_name(inner),
        Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => match select.projection.first() {
                Some(SelectItem::UnnamedExpr(expr)) => output_name(expr),
                Some(SelectItem::ExprWithAlias { alias, .. }) => fold(alias),
                _ => "?column?".to_owned(),
            },
            _ => "?column?".to_owned(),
        },
        Expr::Case { .. } => "case".to_owned(),
        Expr::Exists { .. } => "exists".to_owned(),
        _ => "?column?".to_owned(),
    }
}

fn is_count(item: &Item<'_>) -> bool {
    matches!(item, Item::Expr(Expr::Function(function)) if functions::name(function) == "count")
}

fn not_grouped(name: &str) -> SqlError {
    let message =
        format!("column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function");
    SqlError::new("42803", message)
}

/// A pair of columns, one of each side, that a condition says are equal.
fn equal_columns(
    condition: &Expr,
    left: &Fields,
    right: &Fields,
) -> Result<Option<(usize, usize)>, SqlError> {
    match condition {
        Expr::Nested(inner) => equal_columns(inner, left, right),
        Expr::BinaryOp {
            left: first,
            op: BinaryOperator::And,
            right: second,
        } => match equal_columns(first, left, right)? {
            Some(found) => Ok(Some(found)),
            None => equal_columns(second, left, right),
        },
        Expr::BinaryOp {
            left: first,
            op: BinaryOperator::Eq,
            right: second,
        } => {
            let pair = |a: &Expr, b: &Expr| -> Result<Option<(usize, usize)>, SqlError> {
                let found = (left.column(a)?, right.column(b)?);
                let elsewhere = (right.column(a)?, left.column(b)?);
                // Only values of one type are equal exactly when they are the same.
                let same_type = |a: usize, b: usize| {
                    let types = left.0.get(a).zip(right.0.get(b));
                    types.is_some_and(|(a, b)| a.wire_type == b.wire_type)
                };
                Ok(match (found, elsewhere) {
                    ((Some(a), Some(b)), (None, None)) if same_type(a, b) => Some((a, b)),
                    _ => None,
                })
            };
            match pair(first, second)? {
                Some(found) => Ok(Some(found)),
                None => pair(second, first),
            }
        }
        _ => Ok(None),
    }
}

/// The result column an ORDER BY expression names, by name or position.
fn output_position(expr: &Expr, names: &[String]) -> Option<usize> {
    match expr {
        Expr::Identifier(ident) => {
            let name = fold(ident);
            names.iter().position(|known| *known == name)
        }
        Expr::Value(value) => match &value.value {
            SqlValue::Number(digits, _) => digits.parse::<usize>().ok()?.checked_sub(1),
            _ => None,
        },
        _ => None,
    }
}

fn compare_keys(left: &[(Value, bool, bool)], right: &[(Value, bool, bool)]) -> Ordering {
    for ((left, descending, nulls_first), (right, _, _)) in left.iter().zip(right) {
        let null_side = if *nulls_first {
            Ordering::Less
        } else {
            Ordering::Greater
        };
        let ordering = match (left.is_null(), right.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) => null_side,
            (false, true) => null_side.reverse(),
            (false, false) => {
                let ordering = compare(left, right).ok().flatten().unwrap_or(Ordering::Equal);
                if *descending { ordering.reverse() } else { ordering }
            }
        };
        if ordering != Ordering::Equal {
            return ordering;
        }
    }
    Ordering::Equal
}

/// The row count of LIMIT or OFFSET; `None` for NULL and ALL.
fn count(expr: &Expr) -> Result<Option<usize>, SqlError> {
    match expr {
        Expr::Value(value) => match &value.value {
            SqlValue::Null => Ok(None),
            SqlValue::Number(digits, _) => digits
                .parse()
                .map(Some)
                .map_err(|_| SqlError::new(state::INVALID_PARAMETER, format!("{digits} is no row count"))),
            other => Err(SqlError::unsupported(format!("LIMIT {other}"))),
        },
        other => Err(SqlError::unsupported(format!("LIMIT {other}"))),
    }
}
