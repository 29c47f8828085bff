//! Which relations a query names, to tell a question about the system from a read of a lake, and which tables and
//! schemas its conditions confine it to.

use sqlparser::ast::{
    BinaryOperator, Expr, JoinConstraint, JoinOperator, ObjectName, Query, Select, SelectItem, SetExpr,
    TableFactor, TableWithJoins, Value,
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
        [table] => system_name(None, table),
        [schema, table] => system_name(Some(schema), table),
        _ => None,
    }
}

/// The schema and name of a system relation; `None` for any other name.
pub(crate) fn system_name(schema: Option<&str>, table: &str) -> Option<(&'static str, String)> {
    match schema {
        None if table.starts_with("pg_") => Some(("pg_catalog", table.to_owned())),
        Some("pg_catalog") => Some(("pg_catalog", table.to_owned())),
        Some("information_schema") => Some(("information_schema", table.to_owned())),
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

/// What a SELECT's conditions say about the tables it asks for, so that no others need be described. A hint never leaves
/// out a row that could be in the answer; where a condition is not surely about the tables themselves, there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Hint {
    /// The table's name must be one of these.
    pub(super) tables: Option<Vec<String>>,
    /// The schema's name must be one of these.
    pub(super) schemas: Option<Vec<String>>,
}

/// Relations with one row for each table, by its name, or more.
const BY_TABLE: [&str; 4] = ["pg_class", "pg_tables", "tables", "columns"];
/// Relations whose rows belong to a row of `pg_class`, and the column that says to which.
const OF_CLASS: [(&str, &str); 2] = [("pg_attribute", "attrelid"), ("pg_constraint", "conrelid")];

impl Hint {
    /// Reads the conditions of a SELECT.
    pub(super) fn of(select: &Select) -> Hint {
        let mut scope = HintScope::default();
        select.from.iter().for_each(|table| scope.table(table));
        if let Some(selection) = &select.selection {
            scope.conjuncts.extend(conjuncts(selection));
        }
        scope.hint()
    }
}

/// The relations of a FROM and all conditions that must hold.
#[derive(Default)]
struct HintScope<'q> {
    relations: Vec<String>,
    conjuncts: Vec<&'q Expr>,
    /// Something that is no plain table.
    other: bool,
}

impl<'q> HintScope<'q> {
    fn table(&mut self, table: &'q TableWithJoins) {
        self.factor(&table.relation);
        for join in &table.joins {
            self.factor(&join.relation);
            // What a LEFT JOIN asks for need not hold, but it decides which of the right rows are seen.
            if let JoinOperator::Join(JoinConstraint::On(condition))
            | JoinOperator::Inner(JoinConstraint::On(condition))
            | JoinOperator::Left(JoinConstraint::On(condition))
            | JoinOperator::LeftOuter(JoinConstraint::On(condition)) = &join.join_operator
            {
                let links = conjuncts(condition)
                    .into_iter()
                    .filter(|part| link(part).is_some());
                self.conjuncts.extend(links);
            }
        }
    }

    fn factor(&mut self, factor: &TableFactor) {
        match factor {
            TableFactor::Table { name, .. } => match system_relation(name) {
                Some((_, relation)) => self.relations.push(relation),
                None => self.other = true,
            },
            _ => self.other = true,
        }
    }

    fn hint(&self) -> Hint {
        let by_table = self
            .relations
            .iter()
            .filter(|relation| BY_TABLE.contains(&relation.as_str()));
        if self.other || by_table.count() != 1 || !self.is_linked() {
            return Hint::default();
        }
        let mut hint = Hint::default();
        for conjunct in &self.conjuncts {
            let Some((column, texts)) = confinement(conjunct) else {
                continue;
            };
            let Some((qualifier, name)) = column_name(column) else {
                continue;
            };
            match name.as_str() {
                "relname" | "table_name" | "tablename" => hint.tables = Some(texts),
                "table_schema" | "schemaname" => hint.schemas = Some(texts),
                "nspname" if self.is_schema_of_tables(qualifier.as_deref()) => hint.schemas = Some(texts),
                _ => {}
            }
        }
        hint
    }

    /// Whether every relation that belongs to rows of `pg_class` is joined with it.
    fn is_linked(&self) -> bool {
        OF_CLASS.iter().all(|(relation, column)| {
            let present = self.relations.iter().any(|found| found == relation);
            !present
                || self
                    .conjuncts
                    .iter()
                    .filter_map(|part| link(part))
                    .any(|link| link.from == *column)
        })
    }

    /// Whether `qualifier.nspname` is the schema of the tables, and not of their types, say.
    fn is_schema_of_tables(&self, qualifier: Option<&str>) -> bool {
        let links = self.conjuncts.iter().filter_map(|part| link(part));
        let mut of_tables = links
            .filter(|link| link.from == "relnamespace")
            .map(|link| link.to);
        match qualifier {
            Some(qualifier) => of_tables.any(|to| to.as_deref() == Some(qualifier)),
            None => {
                let schemas = self
                    .relations
                    .iter()
                    .filter(|relation| *relation == "pg_namespace");
                schemas.count() == 1 && of_tables.next().is_some()
            }
        }
    }
}

/// `from = to.oid`: a row of one relation belongs to a row of another.
struct Link {
    from: String,
    to: Option<String>,
}

fn link(expr: &Expr) -> Option<Link> {
    let Expr::BinaryOp {
        left,
        op: BinaryOperator::Eq,
        right,
    } = expr
    else {
        return None;
    };
    let (left, right) = (column_name(left)?, column_name(right)?);
    match (left, right) {
        ((_, from), (to, oid)) if oid == "oid" => Some(Link { from, to }),
        ((to, oid), (_, from)) if oid == "oid" => Some(Link { from, to }),
        _ => None,
    }
}

fn conjuncts(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Nested(inner) => conjuncts(inner),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => {
            let mut found = conjuncts(left);
            found.extend(conjuncts(right));
            found
        }
        other => vec![other],
    }
}

/// `column = 'text'` and `column IN ('text', …)`.
fn confinement(expr: &Expr) -> Option<(&Expr, Vec<String>)> {
    match expr {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        } => match (quoted(left), quoted(right)) {
            (None, Some(text)) => Some((left, vec![text])),
            (Some(text), None) => Some((right, vec![text])),
            _ => None,
        },
        Expr::InList {
            expr,
            list,
            negated: false,
        } => {
            let texts = list.iter().map(quoted).collect::<Option<Vec<String>>>()?;
            Some((expr, texts))
        }
        _ => None,
    }
}

/// The qualifier and name of a column.
fn column_name(expr: &Expr) -> Option<(Option<String>, String)> {
    match expr {
        Expr::Identifier(ident) => Some((None, fold(ident))),
        Expr::CompoundIdentifier(idents) => match idents.as_slice() {
            [.., qualifier, name] => Some((Some(fold(qualifier)), fold(name))),
            _ => None,
        },
        _ => None,
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

#[cfg(test)]
mod tests {
    use sqlparser::ast::Statement;
    use sqlparser::dialect::PostgreSqlDialect;
    use sqlparser::parser::Parser;

    use super::*;

    fn hint(sql: &str) -> Hint {
        let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap();
        let Some(Statement::Query(query)) = statements.pop() else {
            panic!("{sql}")
        };
        let SetExpr::Select(select) = *query.body else {
            panic!("{sql}")
        };
        Hint::of(&select)
    }

    fn named(tables: &[&str], schemas: &[&str]) -> Hint {
        let list = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            (!names.is_empty()).then_some(names)
        };
        Hint {
            tables: list(tables),
            schemas: list(schemas),
        }
    }

    #[test]
    fn conditions_on_the_tables_themselves_are_hints() {
        let scanner = "SELECT 1 FROM pg_class JOIN pg_namespace ON relnamespace = pg_namespace.oid \
            JOIN pg_attribute ON pg_class.oid=pg_attribute.attrelid JOIN pg_type ON atttypid=pg_type.oid \
            JOIN pg_namespace type_ns ON pg_type.typnamespace = type_ns.oid \
            WHERE attnum > 0 AND pg_namespace.nspname IN ('public') AND relname='x'";
        assert_eq!(hint(scanner), named(&["x"], &["public"]));
        let columns =
            "SELECT 1 FROM information_schema.columns WHERE table_schema = 's' AND ('x' = table_name)";
        assert_eq!(hint(columns), named(&["x"], &["s"]));
    }

    #[test]
    fn other_conditions_are_none() {
        for sql in [
            "SELECT 1 FROM pg_class a, pg_class b WHERE a.relname = 'x' AND b.relname = 'y'",
            "SELECT 1 FROM pg_class, pg_attribute WHERE relname = 'x'",
            "SELECT 1 FROM pg_class WHERE relname = 'x' OR relkind = 'r'",
            "SELECT 1 FROM pg_class WHERE relname <> 'x'",
            "SELECT 1 FROM pg_class JOIN pg_type ON reltype = pg_type.oid JOIN pg_namespace n ON typnamespace = n.oid \
             WHERE n.nspname = 'pg_catalog'",
            "SELECT 1 FROM pg_class LEFT JOIN pg_namespace ON relnamespace = pg_namespace.oid AND nspname = 'x'",
        ] {
            assert_eq!(hint(sql), Hint::default(), "{sql}");
        }
    }
}
