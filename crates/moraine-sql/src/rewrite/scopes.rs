//! The tables whose columns a SELECT sees, for the names that mean a whole row of one of them.

use std::collections::BTreeMap;

use sqlparser::ast::{
    Expr, Ident, JoinOperator, Select, SelectItem, TableAlias, TableFactor, TableWithJoins,
};

use super::names;

/// The tables by their names, and whether a join may give no row of one.
#[derive(Debug, Default)]
pub(super) struct Scope(BTreeMap<String, bool>);

impl Scope {
    /// What a SELECT sees. A name that its result has too is the result's.
    pub(super) fn of(select: &Select) -> Self {
        let mut tables = BTreeMap::new();
        for from in &select.from {
            tables.extend(joined(from));
        }
        for item in &select.projection {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                tables.remove(&names::fold(alias));
            }
        }
        Self(tables)
    }

    /// Whether a join may give no row of the table of this name; `None` when there is no such table.
    pub(super) fn table(&self, name: &str) -> Option<bool> {
        self.0.get(name).copied()
    }

    /// Gives items that are whole rows the names of their tables.
    pub(super) fn name_rows(&self, items: &mut [SelectItem]) {
        for item in items {
            if let SelectItem::UnnamedExpr(Expr::Identifier(ident)) = item {
                let name = names::fold(ident);
                if self.table(&name).is_some() {
                    *item = SelectItem::ExprWithAlias {
                        expr: Expr::Identifier(ident.clone()),
                        alias: Ident::with_quote('"', name),
                    };
                }
            }
        }
    }
}

fn joined(from: &TableWithJoins) -> BTreeMap<String, bool> {
    let mut tables = of_factor(&from.relation);
    for join in &from.joins {
        let mut more = of_factor(&join.relation);
        let (left_lacks, right_lacks) = match &join.join_operator {
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => (false, true),
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => (true, false),
            JoinOperator::FullOuter(_) => (true, true),
            _ => (false, false),
        };
        tables.values_mut().for_each(|lacks| *lacks |= left_lacks);
        more.values_mut().for_each(|lacks| *lacks |= right_lacks);
        tables.extend(more);
    }
    tables
}

fn of_factor(factor: &TableFactor) -> BTreeMap<String, bool> {
    let named = |alias: &Option<TableAlias>| alias.as_ref().map(|alias| names::fold(&alias.name));
    let name = match factor {
        TableFactor::Table {
            name,
            alias,
            args: None,
            ..
        } => Some(named(alias).unwrap_or_else(|| names::last(name))),
        TableFactor::Derived { alias, .. } => named(alias),
        TableFactor::NestedJoin { table_with_joins, .. } => return joined(table_with_joins),
        _ => None,
    };
    name.into_iter().map(|name| (name, false)).collect()
}
