//! The columns of rows around a subquery that the subquery refers to. Each reference means the innermost row that has such
//! a column: a query inside of the subquery may have one of the same name.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Subquery};

use super::current::CurrentRow;

/// What stands in the place of a reference.
#[derive(Clone, Debug)]
pub(super) enum Replacement {
    /// A value, for good.
    Value(ScalarValue),
    /// The value that the row has for which the plan is run.
    Current {
        row: Arc<CurrentRow>,
        index: usize,
        in_scans: bool,
    },
}

/// What stands in the place of references.
pub(super) type Replacements = HashMap<Column, Replacement>;

/// The subquery an expression is.
pub(super) fn subquery(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery)
        | Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. }) => Some(subquery),
        _ => None,
    }
}

fn subquery_mut(expr: &mut Expr) -> Option<&mut Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery)
        | Expr::Exists(Exists { subquery, .. })
        | Expr::InSubquery(InSubquery { subquery, .. })
        | Expr::SetComparison(SetComparison { subquery, .. }) => Some(subquery),
        _ => None,
    }
}

/// The references of a plan that mean rows around all of it.
pub(super) fn of(plan: &LogicalPlan) -> Result<BTreeSet<Column>> {
    let around = merge_schema(&plan.inputs());
    let mut found = BTreeSet::new();
    plan.apply_expressions(|expr| {
        found.extend(of_expression(expr, &around)?);
        Ok(TreeNodeRecursion::Continue)
    })?;
    if let LogicalPlan::Join(join) = plan {
        found.extend(of(&join.left)?);
        let right = of(&join.right)?.into_iter();
        found.extend(right.filter(|column| !join.left.schema().has_column(column)));
        return Ok(found);
    }
    for input in plan.inputs() {
        found.extend(of(input)?);
    }
    Ok(found)
}

/// The references of an expression that mean rows around the one it is evaluated for.
pub(super) fn of_expression(expr: &Expr, around: &DFSchema) -> Result<BTreeSet<Column>> {
    let mut found = BTreeSet::new();
    expr.apply(|part| {
        if let Expr::OuterReferenceColumn(_, column) = part {
            found.insert(column.clone());
        }
        if let Some(subquery) = subquery(part) {
            let inner = of(&subquery.subquery)?.into_iter();
            found.extend(inner.filter(|column| !around.has_column(column)));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// The plan with something else in the place of its references.
pub(super) fn bound(plan: LogicalPlan, values: &Replacements) -> Result<LogicalPlan> {
    if values.is_empty() {
        return Ok(plan);
    }
    let inner = hidden_by(values, &merge_schema(&plan.inputs()));
    let plan = match plan {
        LogicalPlan::Join(join) => of_join(join, values)?,
        plan => {
            plan.map_children(|input| bound(input, values).map(Transformed::yes))?
                .data
        }
    };
    let preserver = NamePreserver::new(&plan);
    let plan = plan.map_expressions(|expr| {
        let name = preserver.save(&expr);
        let expr = expr.transform_up(|part| replaced(part, values, &inner))?;
        Ok(if expr.transformed {
            Transformed::yes(name.restore(expr.data))
        } else {
            expr
        })
    })?;
    plan.data.recompute_schema()
}

/// A reference on the right of a join means a row on the left, if there is such a column.
fn of_join(join: Join, values: &Replacements) -> Result<LogicalPlan> {
    let right = hidden_by(values, join.left.schema());
    Ok(LogicalPlan::Join(Join {
        left: Arc::new(bound(Arc::unwrap_or_clone(join.left), values)?),
        right: Arc::new(bound(Arc::unwrap_or_clone(join.right), &right)?),
        ..join
    }))
}

/// What stands for the references that do not mean a row of this schema.
fn hidden_by(values: &Replacements, schema: &DFSchema) -> Replacements {
    let outer = values.iter().filter(|(column, _)| !schema.has_column(column));
    outer
        .map(|(column, value)| (column.clone(), value.clone()))
        .collect()
}

fn replaced(mut part: Expr, values: &Replacements, inner: &Replacements) -> Result<Transformed<Expr>> {
    if let Expr::OuterReferenceColumn(field, column) = &part
        && let Some(value) = values.get(column)
    {
        return Ok(Transformed::yes(match value {
            Replacement::Value(value) => {
                let metadata = FieldMetadata::new_from_field(field);
                Expr::Literal(value.clone(), (!metadata.is_empty()).then_some(metadata))
            }
            Replacement::Current { row, index, in_scans } => row.expression(*index, field, *in_scans),
        }));
    }
    let Some(subquery) = subquery_mut(&mut part) else {
        return Ok(Transformed::no(part));
    };
    let plan = bound(subquery.subquery.as_ref().clone(), inner)?;
    subquery.outer_ref_columns = plan.all_out_ref_exprs();
    subquery.subquery = Arc::new(plan);
    Ok(Transformed::yes(part))
}
