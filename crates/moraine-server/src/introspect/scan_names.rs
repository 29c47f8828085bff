//! Which relations a query names, to tell a question about the system from a read of a lake, and which tables and
//! schemas its conditions confine it to.

use sqlparser::ast::{
    BinaryOperator, Expr, ObjectName, Query, SelectItem, SetExpr, TableFactor, TableWithJoins, Value,
};

use crate::bind::fold;

/// Whether a query reads system catalogs only, or nothing at all.
pub(crate) fn is_about_the_system(query: &Query) -> bool {
    let mut names = Names { all_system: true };
    names.query(query);
    names.all_system
}

/// The schema and name of a system relation; `None` for any other name.
pub(super) fn system_relation(name: &ObjectName) -> Option<(&'static str, String)> {
    let parts: Vec<String> = name
        .0
        .iter()
        .filter_map(|part| part.as_ident())
        .map(fold)
        .collect();
    match parts.as_slice() {
        [table] if table.starts_with("pg_") => Some(("pg_catalog", table.clone())),
        [schema, table] if schema == "pg_catalog" => Some(("pg_catalog", table.clone())),
        [schema, table] if schema == "information_schema" => Some(("information_schema", table.clone())),
        _ => None,
    }
}

struct Names {
    all_system: bool,
}

impl Names {
    fn query(&mut self, query: &Query) {
        let own: Vec<String> = query
            .with
            .iter()
            .flat_map(|with| &with.cte_tables)
            .map(|cte| fold(&cte.alias.name))
            .collect();
        if !own.is_empty() {
            // Common table expressions are refused by whoever gets the query; the lake's binder says so best.
            self.all_system = false;
        }
        self.body(&query.body);
    }

    fn body(&mut self, body: &SetExpr) {
        match body {
            SetExpr::Select(select) => {
                select.from.iter().for_each(|table| self.table(table));
                for item in &select.projection {
                    if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                        self.expr(expr);
                    }
                }
                if let Some(selection) = &select.selection {
                    self.expr(selection);
                }
            }
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left);
                self.body(right);
            }
            SetExpr::Values(_) => {}
            _ => self.all_system = false,
        }
    }

    fn table(&mut self, table: &TableWithJoins) {
        self.factor(&table.relation);
        table.joins.iter().for_each(|join| self.factor(&join.relation));
    }

    fn factor(&mut self, factor: &TableFactor) {
        match factor {
            TableFactor::Table { name, .. } => self.all_system &= system_relation(name).is_some(),
            TableFactor::Derived { subquery, .. } => self.query(subquery),
            TableFactor::NestedJoin { table_with_joins, .. } => self.table(table_with_joins),
            _ => self.all_system = false,
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Subquery(query) => self.query(query),
            Expr::InSubquery { subquery, .. } | Expr::Exists { subquery, .. } => self.query(subquery),
            Expr::BinaryOp { left, right, .. } => {
                self.expr(left);
                self.expr(right);
            }
            Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } | Expr::Cast { expr: inner, .. } => {
                self.expr(inner);
            }
            _ => {}
        }
    }
}

/// What a SELECT's conditions say about the tables it asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hint {
    /// The table's name must be one of these.
    pub(super) tables: Option<Vec<String>>,
    /// The schema's name must be one of these.
    pub(super) schemas: Option<Vec<String>>,
}

impl Hint {
    /// Reads the conjuncts of a WHERE.
    pub(super) fn of(selection: Option<&Expr>) -> Hint {
        let mut hint = Hint::default();
        if let Some(selection) = selection {
            hint.conjunct(selection);
        }
        hint
    }

    fn conjunct(&mut self, expr: &Expr) {
        match expr {
            Expr::Nested(inner) => self.conjunct(inner),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::And,
                right,
            } => {
                self.conjunct(left);
                self.conjunct(right);
            }
            Expr::BinaryOp {
                left,
                op: BinaryOperator::Eq,
                right,
            } => {
                if let Some(text) = quoted(right) {
                    self.confine(left, vec![text]);
                } else if let Some(text) = quoted(left) {
                    self.confine(right, vec![text]);
                }
            }
            Expr::InList {
                expr,
                list,
                negated: false,
            } => {
                if let Some(texts) = list.iter().map(quoted).collect::<Option<Vec<String>>>() {
                    self.confine(expr, texts);
                }
            }
            _ => {}
        }
    }

    fn confine(&mut self, column: &Expr, texts: Vec<String>) {
        let name = match column {
            Expr::Identifier(ident) => fold(ident),
            Expr::CompoundIdentifier(idents) => match idents.as_slice() {
                // Another alias of pg_namespace may be the schema of a type.
                [qualifier, ident] if fold(ident) != "nspname" || fold(qualifier) == "pg_namespace" => {
                    fold(ident)
                }
                _ => return,
            },
            _ => return,
        };
        match name.as_str() {
            "relname" | "table_name" | "tablename" => self.tables = Some(texts),
            "nspname" | "table_schema" | "schemaname" => self.schemas = Some(texts),
            _ => {}
        }
    }
}

fn quoted(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        Expr::Cast { expr, .. } => quoted(expr),
        _ => None,
    }
}
