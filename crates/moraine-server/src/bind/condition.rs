//! Conditions on one row, evaluated with SQL's three truth values. What the tables can evaluate themselves is handed to
//! them as comparisons; the rest (OR, NOT, column against column) is evaluated here.

use std::cmp::Ordering;

use moraine_tables::{CompareOp, Comparison, Value};

/// A condition whose columns are positions and whose literals are typed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Not(Box<Condition>),
    /// TRUE, FALSE, or NULL.
    Constant(Option<bool>),
    Compare {
        column: usize,
        op: CompareOp,
        value: Value,
    },
    /// `column IN (values)`; the list may hold NULL.
    In {
        column: usize,
        values: Vec<Value>,
    },
    IsNull(usize),
    IsNotNull(usize),
    /// Two columns of the same row.
    Columns {
        left: usize,
        op: CompareOp,
        right: usize,
    },
}

impl Condition {
    /// The truth of the condition on a row whose columns `get` reads; `None` is SQL's unknown.
    pub(crate) fn evaluate<'v>(&self, get: &dyn Fn(usize) -> &'v Value) -> Option<bool> {
        match self {
            Condition::All(parts) => combined(parts, false, get),
            Condition::Any(parts) => combined(parts, true, get),
            Condition::Not(inner) => inner.evaluate(get).map(|truth| !truth),
            Condition::Constant(truth) => *truth,
            Condition::Compare { column, op, value } => compare(get(*column), *op, value),
            Condition::In { column, values } => contains(get(*column), values),
            Condition::IsNull(column) => Some(get(*column).is_null()),
            Condition::IsNotNull(column) => Some(!get(*column).is_null()),
            Condition::Columns { left, op, right } => compare(get(*left), *op, get(*right)),
        }
    }

    /// Adds the columns the condition reads.
    pub(crate) fn collect_columns(&self, columns: &mut Vec<usize>) {
        match self {
            Condition::All(parts) | Condition::Any(parts) => {
                parts.iter().for_each(|part| part.collect_columns(columns));
            }
            Condition::Not(inner) => inner.collect_columns(columns),
            Condition::Constant(_) => {}
            Condition::Compare { column, .. }
            | Condition::In { column, .. }
            | Condition::IsNull(column)
            | Condition::IsNotNull(column) => columns.push(*column),
            Condition::Columns { left, right, .. } => columns.extend([*left, *right]),
        }
    }

    /// The condition a comparison of the tables is. An address names no column and is never met by a row in memory.
    pub(crate) fn of(comparison: &Comparison) -> Condition {
        match comparison.clone() {
            Comparison::Compare { column, op, value } => Condition::Compare { column, op, value },
            Comparison::In { column, values } => Condition::In { column, values },
            Comparison::IsNull { column } => Condition::IsNull(column),
            Comparison::IsNotNull { column } => Condition::IsNotNull(column),
            Comparison::Address(_) => Condition::Constant(Some(false)),
        }
    }

    /// The comparison the tables evaluate for this, if they have one.
    pub(crate) fn into_comparison(self) -> Result<Comparison, Condition> {
        Ok(match self {
            Condition::Compare { column, op, value } => Comparison::Compare { column, op, value },
            Condition::In { column, values } => Comparison::In { column, values },
            Condition::IsNull(column) => Comparison::IsNull { column },
            Condition::IsNotNull(column) => Comparison::IsNotNull { column },
            other => return Err(other),
        })
    }
}

/// AND and OR: one part that is `decisive` decides, else one that is unknown makes the whole unknown.
fn combined<'v>(parts: &[Condition], decisive: bool, get: &dyn Fn(usize) -> &'v Value) -> Option<bool> {
    let mut unknown = false;
    for part in parts {
        match part.evaluate(get) {
            Some(truth) if truth == decisive => return Some(decisive),
            Some(_) => {}
            None => unknown = true,
        }
    }
    if unknown { None } else { Some(!decisive) }
}

/// `left op right`; unknown when either side is NULL.
pub(crate) fn compare(left: &Value, op: CompareOp, right: &Value) -> Option<bool> {
    left.compare(right).map(|ordering| match op {
        CompareOp::Eq => ordering == Ordering::Equal,
        CompareOp::Ne => ordering != Ordering::Equal,
        CompareOp::Lt => ordering == Ordering::Less,
        CompareOp::Le => ordering != Ordering::Greater,
        CompareOp::Gt => ordering == Ordering::Greater,
        CompareOp::Ge => ordering != Ordering::Less,
    })
}

fn contains(value: &Value, list: &[Value]) -> Option<bool> {
    if value.is_null() {
        return None;
    }
    let mut unknown = false;
    for item in list {
        match compare(value, CompareOp::Eq, item) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => unknown = true,
        }
    }
    if unknown { None } else { Some(false) }
}

/// The same comparison with its sides exchanged.
pub(crate) fn flipped(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Le,
        same => same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_neither_true_nor_false() {
        let row = [Value::Null, Value::Int64(1)];
        let get = |column: usize| &row[column];
        let null = Condition::Compare {
            column: 0,
            op: CompareOp::Eq,
            value: Value::Int64(1),
        };
        let one = Condition::Compare {
            column: 1,
            op: CompareOp::Eq,
            value: Value::Int64(1),
        };
        assert_eq!(null.evaluate(&get), None);
        assert_eq!(Condition::Not(Box::new(null.clone())).evaluate(&get), None);
        assert_eq!(
            Condition::Any(vec![null.clone(), one.clone()]).evaluate(&get),
            Some(true)
        );
        assert_eq!(Condition::All(vec![null, one]).evaluate(&get), None);
        let list = |column| Condition::In {
            column,
            values: vec![Value::Int64(2), Value::Null],
        };
        assert_eq!(list(1).evaluate(&get), None);
        assert_eq!(list(0).evaluate(&get), None);
    }
}
