//! `JOIN … USING (c)`: in WHERE, where DataFusion does not know it, `c` means the column that both sides share.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, ObjectName, Query, Select, TableFactor, TableWithJoins,
    VisitMut, VisitorMut,
};

use super::names;

/// Says which column a shared one is in the WHERE of a SELECT.
pub(super) fn qualify(select: &mut Select) {
    let [from] = select.from.as_slice() else {
        return;
    };
    let shared = shared(from);
    if shared.is_empty() {
        return;
    }
    if let Some(selection) = &mut select.selection {
        let mut qualifier = Qualifier { shared, depth: 0 };
        let _ = selection.visit(&mut qualifier);
    }
}

/// The shared columns and the table whose column is never NULL where one of them is not.
fn shared(from: &TableWithJoins) -> Vec<(String, Ident)> {
    let Some(first) = alias(&from.relation) else {
        return Vec::new();
    };
    let mut shared: Vec<(String, Ident)> = Vec::new();
    for join in &from.joins {
        let (constraint, right) = match &join.join_operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint) => (constraint, false),
            JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => (constraint, true),
            _ => continue,
        };
        let JoinConstraint::Using(columns) = constraint else {
            continue;
        };
        for column in columns {
            let name = names::last(column);
            let table = if right {
                alias(&join.relation)
            } else {
                Some(first.clone())
            };
            shared.retain(|(known, _)| !right || *known != name);
            if let Some(table) = table
                && !shared.iter().any(|(known, _)| *known == name)
            {
                shared.push((name, table));
            }
        }
    }
    shared
}

fn alias(factor: &TableFactor) -> Option<Ident> {
    match factor {
        TableFactor::Table {
            alias: Some(alias), ..
        }
        | TableFactor::Derived {
            alias: Some(alias), ..
        } => Some(alias.name.clone()),
        TableFactor::Table {
            name: ObjectName(parts),
            ..
        } => parts.last()?.as_ident().cloned(),
        _ => None,
    }
}

struct Qualifier {
    shared: Vec<(String, Ident)>,
    depth: usize,
}

impl VisitorMut for Qualifier {
    type Break = ();

    // A subquery has columns of its own.
    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth = self.depth.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(ident) = expr
            && self.depth == 0
        {
            let name = names::fold(ident);
            if let Some((_, table)) = self.shared.iter().find(|(known, _)| *known == name) {
                *expr = Expr::CompoundIdentifier(vec![table.clone(), ident.clone()]);
            }
        }
        ControlFlow::Continue(())
    }
}
