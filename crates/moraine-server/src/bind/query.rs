//! SELECT from one source: a table, or a subquery over one, which is folded into the read of the table.

use futures::FutureExt;
use futures::future::BoxFuture;
use moraine_tables::ColumnType;
use postgres_types::Type;
use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, LimitClause, OrderBy,
    OrderByKind, Query, Select as SqlSelect, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    TableFactor, TableWithJoins,
};

use super::filter::{column_of, construct};
use super::names::{fold, parts};
use super::scope::{Reference, Scope};
use super::{Binder, Output, OutputKind, RowFilter, Select, SortKey, Source};
use crate::errors::{SqlError, state};
use crate::values::literal::Literal;
use crate::values::types;

/// What stands in FROM: the source, the columns it shows, and what a subquery has already decided.
struct From {
    source: Source,
    scope: Scope,
    inner: Option<Select>,
}

impl Binder<'_> {
    /// Binds a SELECT over one source, which may contain others.
    pub(super) fn query<'f>(&'f mut self, query: &'f Query) -> BoxFuture<'f, Result<Select, SqlError>> {
        self.whole_query(query).boxed()
    }

    async fn whole_query(&mut self, query: &Query) -> Result<Select, SqlError> {
        refuse_query_clauses(query)?;
        let select = match query.body.as_ref() {
            SetExpr::Select(select) => select,
            SetExpr::Query(inner) if query.order_by.is_none() && query.limit_clause.is_none() => {
                return self.query(inner).await;
            }
            SetExpr::Query(_) => {
                return Err(SqlError::unsupported(
                    "ORDER BY or LIMIT on a parenthesised SELECT",
                ));
            }
            SetExpr::SetOperation { op, .. } => return Err(SqlError::unsupported(op)),
            SetExpr::Values(_) => return Err(SqlError::unsupported("VALUES as a query")),
            SetExpr::Table(_) => return Err(SqlError::unsupported("the TABLE command")),
            _ => return Err(SqlError::unsupported("this query")),
        };
        refuse_select_clauses(select)?;
        let from = self.from(&select.from).await?;
        let outputs = self.projection(&select.projection, &from.scope)?;
        let filter = self.row_filter(select.selection.as_ref(), &from.scope).await?;
        let order = order_by(query.order_by.as_ref(), &from.scope, &outputs)?;
        let (limit, offset) = self.limits(query.limit_clause.as_ref())?;
        let bound = Select {
            source: from.source,
            outputs,
            filter,
            order,
            limit,
            offset,
        };
        check_aggregates(&bound)?;
        match from.inner {
            Some(inner) => merge(bound, inner),
            None => Ok(bound),
        }
    }

    async fn from(&mut self, from: &[TableWithJoins]) -> Result<From, SqlError> {
        let factor = match from {
            [] => return Err(SqlError::unsupported("SELECT without FROM here")),
            [TableWithJoins { relation, joins }] if joins.is_empty() => relation,
            _ => return Err(SqlError::unsupported("JOIN")),
        };
        match factor {
            TableFactor::Table { sample: Some(_), .. } => Err(SqlError::unsupported("TABLESAMPLE")),
            TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => {
                let source = self.table(&self.table_name(name)?).await?;
                let alias = self.alias(alias.as_ref())?;
                let scope = Scope::of_source(&source, alias);
                Ok(From {
                    source,
                    scope,
                    inner: None,
                })
            }
            TableFactor::Table { name, .. } => Err(SqlError::unsupported(format!("table function {name}"))),
            TableFactor::Derived {
                lateral: false,
                subquery,
                alias,
                ..
            } => {
                let inner = self.query(subquery).await?;
                let alias = self.alias(alias.as_ref())?;
                let shown = inner
                    .outputs
                    .iter()
                    .map(|output| (output.name.clone(), output.kind.clone()));
                let scope = Scope::of_outputs(shown, &inner.source, alias);
                Ok(From {
                    source: inner.source.clone(),
                    scope,
                    inner: Some(inner),
                })
            }
            TableFactor::Derived { .. } => Err(SqlError::unsupported("LATERAL")),
            TableFactor::NestedJoin { .. } => Err(SqlError::unsupported("JOIN")),
            other => Err(SqlError::unsupported(format!("FROM {other}"))),
        }
    }

    fn alias(&self, alias: Option<&sqlparser::ast::TableAlias>) -> Result<Option<String>, SqlError> {
        match alias {
            Some(alias) if !alias.columns.is_empty() => Err(SqlError::unsupported("a column alias list")),
            Some(alias) => Ok(Some(fold(&alias.name))),
            None => Ok(None),
        }
    }

    fn projection(&self, items: &[SelectItem], scope: &Scope) -> Result<Vec<Output>, SqlError> {
        let mut outputs = Vec::with_capacity(items.len());
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expr) => outputs.push(self.output(expr, None, scope)?),
                SelectItem::ExprWithAlias { expr, alias } => {
                    outputs.push(self.output(expr, Some(fold(alias)), scope)?);
                }
                SelectItem::Wildcard(_) => outputs.extend(all_columns(scope)),
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let parts = parts(name)?;
                    if parts.last().map(String::as_str) != scope.qualifier() {
                        return Err(SqlError::undefined_table(name));
                    }
                    outputs.extend(all_columns(scope));
                }
                other => return Err(SqlError::unsupported(format!("the result column {other}"))),
            }
        }
        Ok(outputs)
    }

    fn output(&self, expr: &Expr, alias: Option<String>, scope: &Scope) -> Result<Output, SqlError> {
        if let Some(reference) = Reference::of(expr) {
            let kind = scope.resolve(&reference)?.clone();
            return Ok(typed(alias.unwrap_or(reference.column), kind, scope));
        }
        if let Some(literal) = self.constant(expr)? {
            return self.constant_output(alias, &literal);
        }
        match expr {
            Expr::Nested(inner) => self.output(inner, alias, scope),
            Expr::Cast { expr, data_type, .. } => {
                let column_type = types::from_sql(data_type)?;
                let inner = self.output(expr, alias, scope)?;
                let kind = match inner.kind {
                    OutputKind::Column(column) => OutputKind::Cast(column, column_type),
                    _ => return Err(SqlError::unsupported(format!("a cast of {}", construct(expr)))),
                };
                Ok(typed(inner.name, kind, scope))
            }
            Expr::Function(function) => {
                let kind = aggregate(function, scope)?;
                let name = alias.unwrap_or_else(|| function.name.to_string().to_lowercase());
                Ok(typed(name, kind, scope))
            }
            other => Err(SqlError::unsupported(format!(
                "the result column {}",
                construct(other)
            ))),
        }
    }

    fn constant_output(&self, alias: Option<String>, literal: &Literal) -> Result<Output, SqlError> {
        let column_type = literal.natural_type();
        let name = alias.unwrap_or_else(|| "?column?".to_owned());
        let value = self.coerce(literal, &name, column_type)?;
        // A quoted literal that meets no column is text.
        let wire_type = match literal {
            Literal::Null | Literal::Quoted(_) => Type::TEXT,
            _ => types::wire_type(column_type),
        };
        let type_modifier = types::type_modifier(column_type);
        Ok(Output {
            name,
            kind: OutputKind::Constant(value),
            wire_type,
            type_modifier,
        })
    }

    fn limits(&self, clause: Option<&LimitClause>) -> Result<(Option<usize>, usize), SqlError> {
        match clause {
            None => Ok((None, 0)),
            Some(LimitClause::LimitOffset {
                limit,
                offset,
                limit_by,
            }) if limit_by.is_empty() => {
                let limit = match limit {
                    Some(limit) => self.row_count(limit, "LIMIT")?,
                    None => None,
                };
                let offset = match offset {
                    Some(offset) => self.row_count(&offset.value, "OFFSET")?.unwrap_or(0),
                    None => 0,
                };
                Ok((limit, offset))
            }
            Some(_) => Err(SqlError::unsupported("this form of LIMIT")),
        }
    }
}

fn all_columns(scope: &Scope) -> impl Iterator<Item = Output> + '_ {
    scope
        .visible()
        .map(|(name, kind)| typed(name.clone(), kind.clone(), scope))
}

/// A result column with the wire type of what it shows.
fn typed(name: String, kind: OutputKind, scope: &Scope) -> Output {
    let of_column = |column: usize| scope.type_of(column).unwrap_or(ColumnType::Text);
    let column_type = match &kind {
        OutputKind::Column(column) | OutputKind::Min(column) | OutputKind::Max(column) => of_column(*column),
        OutputKind::Cast(_, column_type) => *column_type,
        OutputKind::Count(_) => ColumnType::Int64,
        OutputKind::Constant(value) => Literal::Typed(value.clone()).natural_type(),
        OutputKind::Ctid => {
            return Output {
                name,
                kind,
                wire_type: Type::TID,
                type_modifier: -1,
            };
        }
    };
    let wire_type = types::wire_type(column_type);
    Output {
        name,
        kind,
        wire_type,
        type_modifier: types::type_modifier(column_type),
    }
}

/// `count(*)`, `count(c)`, `min(c)`, `max(c)`.
fn aggregate(function: &Function, scope: &Scope) -> Result<OutputKind, SqlError> {
    let name = function.name.to_string().to_lowercase();
    if function.over.is_some() {
        return Err(SqlError::unsupported(format!("window function {name}")));
    }
    if !matches!(name.as_str(), "count" | "min" | "max") || function.filter.is_some() {
        return Err(SqlError::unsupported(format!("function {name}")));
    }
    let arguments = match &function.args {
        FunctionArguments::List(list) if list.duplicate_treatment.is_none() && list.clauses.is_empty() => {
            &list.args
        }
        _ => return Err(SqlError::unsupported(format!("{name} with these arguments"))),
    };
    match (name.as_str(), arguments.as_slice()) {
        ("count", [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]) => Ok(OutputKind::Count(None)),
        ("count", [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))])
            if !matches!(value.value, sqlparser::ast::Value::Null) =>
        {
            Ok(OutputKind::Count(None))
        }
        (name, [FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))]) => {
            let column = column_of(expr, scope)?;
            Ok(match name {
                "count" => OutputKind::Count(Some(column)),
                "min" => OutputKind::Min(column),
                _ => OutputKind::Max(column),
            })
        }
        _ => Err(SqlError::unsupported(format!("{name} with these arguments"))),
    }
}

/// Without GROUP BY, a SELECT shows aggregates or rows, not both.
fn check_aggregates(select: &Select) -> Result<(), SqlError> {
    if !select.is_aggregate() {
        return Ok(());
    }
    let stray = select
        .outputs
        .iter()
        .find(|output| !output.kind.is_aggregate() && !matches!(output.kind, OutputKind::Constant(_)));
    if let Some(stray) = stray {
        return Err(SqlError::new(
            "42803",
            format!(
                "column \"{}\" must appear in the GROUP BY clause or be used in an aggregate function",
                stray.name
            ),
        ));
    }
    if select.order.is_empty() {
        Ok(())
    } else {
        Err(SqlError::unsupported("ORDER BY of an aggregate"))
    }
}

/// Folds a subquery into the SELECT around it.
fn merge(outer: Select, inner: Select) -> Result<Select, SqlError> {
    let plain_outer = is_empty(&outer.filter) && outer.order.is_empty() && !outer.is_aggregate();
    let plain_inner = inner.limit.is_none() && inner.offset == 0 && !inner.is_aggregate();
    if !plain_inner && !plain_outer {
        return Err(SqlError::unsupported(
            "this clause on a subquery with LIMIT or an aggregate",
        ));
    }
    let mut filter = inner.filter;
    filter.pushed.extend(outer.filter.pushed);
    filter.residual.extend(outer.filter.residual);
    filter.scalars.extend(outer.filter.scalars);
    filter.ctids = match (filter.ctids, outer.filter.ctids) {
        (Some(left), Some(right)) => Some(left.into_iter().filter(|tid| right.contains(tid)).collect()),
        (left, right) => left.or(right),
    };
    let left = inner.limit.map(|limit| limit.saturating_sub(outer.offset));
    let limit = match (left, outer.limit) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (left, right) => left.or(right),
    };
    let order = if outer.order.is_empty() {
        inner.order
    } else {
        outer.order
    };
    let offset = inner.offset + outer.offset;
    Ok(Select {
        source: outer.source,
        outputs: outer.outputs,
        filter,
        order,
        limit,
        offset,
    })
}

fn is_empty(filter: &RowFilter) -> bool {
    filter.pushed.is_empty()
        && filter.residual.is_empty()
        && filter.scalars.is_empty()
        && filter.ctids.is_none()
}

fn order_by(order: Option<&OrderBy>, scope: &Scope, outputs: &[Output]) -> Result<Vec<SortKey>, SqlError> {
    let Some(order) = order else {
        return Ok(Vec::new());
    };
    let OrderByKind::Expressions(expressions) = &order.kind else {
        return Err(SqlError::unsupported("ORDER BY ALL"));
    };
    let mut keys = Vec::with_capacity(expressions.len());
    for item in expressions {
        let descending = item.options.asc == Some(false);
        let nulls_first = item.options.nulls_first.unwrap_or(descending);
        if let Some(column) = sort_column(&item.expr, scope, outputs)? {
            keys.push(SortKey {
                column,
                descending,
                nulls_first,
            });
        }
    }
    Ok(keys)
}

/// The source column to sort by: a result column by name or position, or a source column; `None` for a constant.
fn sort_column(expr: &Expr, scope: &Scope, outputs: &[Output]) -> Result<Option<usize>, SqlError> {
    let output = match expr {
        Expr::Value(value) => {
            let sqlparser::ast::Value::Number(digits, _) = &value.value else {
                return Err(SqlError::unsupported("ORDER BY of a constant"));
            };
            let position = digits
                .parse::<usize>()
                .ok()
                .and_then(|position| position.checked_sub(1));
            let found = position.and_then(|position| outputs.get(position));
            Some(found.ok_or_else(|| {
                SqlError::new(
                    state::INVALID_COLUMN_REFERENCE,
                    format!("ORDER BY position {digits} is not in select list"),
                )
            })?)
        }
        Expr::Identifier(ident) => outputs.iter().find(|output| output.name == fold(ident)),
        _ => None,
    };
    match output.map(|output| &output.kind) {
        Some(OutputKind::Column(column)) => Ok(Some(*column)),
        Some(OutputKind::Constant(_)) => Ok(None),
        Some(_) => Err(SqlError::unsupported("ORDER BY of a computed column")),
        None => column_of(expr, scope).map(Some),
    }
}

fn refuse_query_clauses(query: &Query) -> Result<(), SqlError> {
    let refused = [
        (query.with.is_some(), "WITH"),
        (query.fetch.is_some(), "FETCH"),
        (!query.locks.is_empty(), "FOR UPDATE"),
        (query.for_clause.is_some(), "FOR"),
        (query.settings.is_some(), "SETTINGS"),
        (query.format_clause.is_some(), "FORMAT"),
        (!query.pipe_operators.is_empty(), "the pipe operator"),
    ];
    refuse(&refused)
}

fn refuse_select_clauses(select: &SqlSelect) -> Result<(), SqlError> {
    let grouped = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(expressions, modifiers) => !expressions.is_empty() || !modifiers.is_empty(),
    };
    let refused = [
        (grouped, "GROUP BY"),
        (select.distinct.is_some(), "DISTINCT"),
        (select.having.is_some(), "HAVING"),
        (select.into.is_some(), "SELECT INTO"),
        (!select.named_window.is_empty(), "WINDOW"),
        (select.qualify.is_some(), "QUALIFY"),
        (select.top.is_some(), "TOP"),
        (select.prewhere.is_some(), "PREWHERE"),
        (!select.lateral_views.is_empty(), "LATERAL VIEW"),
        (!select.cluster_by.is_empty(), "CLUSTER BY"),
        (!select.distribute_by.is_empty(), "DISTRIBUTE BY"),
        (!select.sort_by.is_empty(), "SORT BY"),
        (!select.connect_by.is_empty(), "CONNECT BY"),
    ];
    refuse(&refused)
}

fn refuse(clauses: &[(bool, &str)]) -> Result<(), SqlError> {
    match clauses.iter().find(|(present, _)| *present) {
        Some((_, name)) => Err(SqlError::unsupported(name)),
        None => Ok(()),
    }
}
