//! Postgres's SQL as DataFusion plans it: constructs that mean the same under another form are given that form, what has
//! no effect here is taken out, and what cannot be had is refused by name.

mod arrays;
mod expressions;
pub(crate) mod names;
mod relations;
mod rows;
mod scopes;
mod sets;
mod subqueries;
mod using;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use moraine_tables::ColumnType;
use sqlparser::ast::{
    Expr, Fetch, GroupByExpr, Ident, LimitClause, ObjectName, Query, Select, SelectItem, SetExpr,
    TableFactor, Visit, VisitMut, Visitor, VisitorMut,
};

use crate::error::QueryError;
use crate::relations::RelationName;
use crate::types::SqlType;

use scopes::Scope;

pub(crate) use relations::relation_name;

/// What a query says, before it is planned.
#[derive(Debug, Default)]
pub(crate) struct Mentioned {
    /// The relations it names; common table expressions among them.
    pub(crate) relations: BTreeSet<RelationName>,
    /// The databases it names.
    pub(crate) databases: BTreeSet<String>,
    /// Every identifier that may be a column.
    pub(crate) columns: BTreeSet<String>,
    /// The number of its parameters.
    pub(crate) parameters: usize,
    /// Parameters whose type the query says: by a cast, or as a number of rows.
    pub(crate) typed: Vec<(String, SqlType)>,
}

impl Visitor for Mentioned {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        for table in sets::tables(&query.body) {
            let _ = self.pre_visit_relation(&table);
        }
        if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &query.limit_clause {
            let fetched = query.fetch.as_ref().and_then(|fetch| fetch.quantity.as_ref());
            let counts = limit
                .iter()
                .chain(offset.as_ref().map(|offset| &offset.value))
                .chain(fetched);
            for count in counts {
                if let Expr::Value(value) = count
                    && let sqlparser::ast::Value::Placeholder(id) = &value.value
                {
                    self.typed.push((id.clone(), SqlType::Column(ColumnType::Int64)));
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        self.relations.extend(relation_name(relation));
        if let [database, _, _] = relation.0.as_slice() {
            self.databases.extend(database.as_ident().map(names::fold));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) => {
                self.columns.insert(names::fold(ident));
            }
            Expr::CompoundIdentifier(idents) => self.columns.extend(idents.last().map(names::fold)),
            Expr::Value(value) => {
                if let sqlparser::ast::Value::Placeholder(id) = &value.value
                    && let Some(index) = crate::dialect::parameter_index(id)
                {
                    self.parameters = self.parameters.max(index + 1);
                }
            }
            Expr::Cast { expr, data_type, .. } => {
                if let Expr::Value(value) = expr.as_ref()
                    && let sqlparser::ast::Value::Placeholder(id) = &value.value
                {
                    let said = crate::dialect::sql_type(data_type);
                    self.typed.extend(said.map(|said| (id.clone(), said)));
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Looks for what can only be answered with the list of all relations at hand.
struct Objects(bool);

impl Visitor for Objects {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let names_one = match expr {
            Expr::Cast { data_type, .. } => {
                let named = crate::dialect::sql_type(data_type);
                named == Some(SqlType::RegClass)
            }
            Expr::Function(function) => {
                matches!(
                    names::last(&function.name).as_str(),
                    "to_regclass" | "pg_table_is_visible" | "pg_get_constraintdef" | "pg_get_indexdef"
                )
            }
            _ => false,
        };
        self.0 |= names_one;
        ControlFlow::Continue(())
    }
}

/// Whether the answer to a query depends on [`crate::SessionFacts::relations`].
#[must_use]
pub fn names_objects(query: &Query) -> bool {
    let mut objects = Objects(false);
    let _ = query.visit(&mut objects);
    objects.0
}

/// What a query says.
pub(crate) fn mentioned(query: &Query) -> Mentioned {
    let mut found = Mentioned::default();
    let _ = query.visit(&mut found);
    found
}

/// The relations a query names, folded; common table expressions are among them.
#[must_use]
pub fn relation_names(query: &Query) -> BTreeSet<RelationName> {
    mentioned(query).relations
}

/// Gives a query the form DataFusion plans. `hidden` are the columns that `*` must leave out.
///
/// # Errors
/// [`QueryError::Unsupported`].
pub(crate) fn rewrite(query: &mut Query, hidden: &[String]) -> Result<(), QueryError> {
    let mut rewriter = Rewriter {
        hidden,
        scopes: Vec::new(),
    };
    match query.visit(&mut rewriter) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Rewriter<'a> {
    hidden: &'a [String],
    /// What the queries and SELECTs around an expression see, the innermost last.
    scopes: Vec<Scope>,
}

fn flow(result: Result<(), QueryError>) -> ControlFlow<QueryError> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

impl VisitorMut for Rewriter<'_> {
    type Break = QueryError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<QueryError> {
        // The ORDER BY of a query sees its columns only.
        self.scopes.push(Scope::default());
        flow(clauses(query))
    }

    // Before its expressions are rewritten: Postgres names a column after what the query wrote.
    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<QueryError> {
        let checked = select_clauses(select).and_then(|()| match &mut select.selection {
            Some(condition) => rows::in_where(condition),
            None => Ok(()),
        });
        self.scopes.push(Scope::of(select));
        let scope = self.scopes.last();
        flow(checked.map(|()| {
            if let Some(scope) = scope {
                scope.name_rows(&mut select.projection);
            }
            rows::in_groups(select);
            names::name_items(&mut select.projection);
            using::qualify(select);
            select
                .projection
                .iter_mut()
                .for_each(|item| exclude(item, self.hidden));
        }))
    }

    // Before the subquery in it is taken for one that has a single value.
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<QueryError> {
        subqueries::any_or_all(expr);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<QueryError> {
        let nothing = Scope::default();
        let scope = self.scopes.last().unwrap_or(&nothing);
        flow(expressions::rewrite(expr, scope))
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<QueryError> {
        self.scopes.pop();
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                rows::as_values(expr);
            }
        }
        flow(subqueries::outside_of_where(select))
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<QueryError> {
        self.scopes.pop();
        flow(subqueries::of_order(query).and_then(|()| sets::counted(&mut query.body)))
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<QueryError> {
        flow(relations::rewrite(factor))
    }
}

fn clauses(query: &mut Query) -> Result<(), QueryError> {
    let refused = [
        (query.for_clause.is_some(), "FOR XML or JSON"),
        (query.settings.is_some(), "SETTINGS"),
        (query.format_clause.is_some(), "FORMAT"),
        (!query.pipe_operators.is_empty(), "the pipe operator"),
        (
            matches!(query.body.as_ref(), SetExpr::Insert(_)),
            "INSERT inside of a query",
        ),
        (
            matches!(query.body.as_ref(), SetExpr::Update(_)),
            "UPDATE inside of a query",
        ),
        (
            matches!(query.body.as_ref(), SetExpr::Delete(_)),
            "DELETE inside of a query",
        ),
        (matches!(query.body.as_ref(), SetExpr::Merge(_)), "MERGE"),
    ];
    refuse(&refused)?;
    // A lock on rows would be held against writers of the same rows. Transactions here read at a pinned view and never
    // wait for each other; who commits second over the same snapshot is refused then, so the lock adds nothing.
    query.locks.clear();
    sets::spelled_out(&mut query.body)?;
    fetch(query)
}

/// `FETCH FIRST n ROWS ONLY` is `LIMIT n`. That ties belong to the rows, the planner is told by a mark on the number.
fn fetch(query: &mut Query) -> Result<(), QueryError> {
    let Some(Fetch {
        with_ties,
        percent,
        quantity,
    }) = query.fetch.take()
    else {
        return Ok(());
    };
    refuse(&[(percent, "FETCH … PERCENT")])?;
    let mut quantity =
        quantity.unwrap_or_else(|| Expr::value(sqlparser::ast::Value::Number("1".to_owned(), false)));
    if with_ties {
        if query.order_by.is_none() {
            return Err(QueryError::Invalid {
                detail: "WITH TIES cannot be specified without ORDER BY clause".to_owned(),
            });
        }
        quantity = expressions::call(crate::ties::WITH_TIES, vec![quantity]);
    }
    match &mut query.limit_clause {
        None => {
            query.limit_clause = Some(LimitClause::LimitOffset {
                limit: Some(quantity),
                offset: None,
                limit_by: Vec::new(),
            });
            Ok(())
        }
        Some(LimitClause::LimitOffset {
            limit: limit @ None, ..
        }) => {
            *limit = Some(quantity);
            Ok(())
        }
        Some(_) => Err(QueryError::Invalid {
            detail: "multiple LIMIT clauses not allowed".to_owned(),
        }),
    }
}

fn select_clauses(select: &Select) -> Result<(), QueryError> {
    refuse(&[
        (select.into.is_some(), "SELECT INTO"),
        (select.top.is_some(), "TOP"),
        (select.prewhere.is_some(), "PREWHERE"),
        (select.qualify.is_some(), "QUALIFY"),
        (!select.lateral_views.is_empty(), "LATERAL VIEW"),
        (!select.cluster_by.is_empty(), "CLUSTER BY"),
        (!select.distribute_by.is_empty(), "DISTRIBUTE BY"),
        (!select.sort_by.is_empty(), "SORT BY"),
        (!select.connect_by.is_empty(), "CONNECT BY"),
        (matches!(select.group_by, GroupByExpr::All(_)), "GROUP BY ALL"),
    ])
}

fn refuse(constructs: &[(bool, &str)]) -> Result<(), QueryError> {
    match constructs.iter().find(|(present, _)| *present) {
        Some((_, name)) => Err(QueryError::unsupported(*name)),
        None => Ok(()),
    }
}

/// Leaves hidden columns out of `*`.
fn exclude(item: &mut SelectItem, hidden: &[String]) {
    use sqlparser::ast::ExcludeSelectItem;
    let options = match item {
        SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => options,
        _ => return,
    };
    if hidden.is_empty() || options.opt_exclude.is_some() {
        return;
    }
    let names = hidden
        .iter()
        .map(|name| ObjectName::from(Ident::with_quote('"', name.clone())));
    options.opt_exclude = Some(ExcludeSelectItem::Multiple(names.collect()));
}
