//! The row that a subquery is being run for, as its plan knows it: values that are the same for a whole run and others in
//! the next one. A plan that is made once serves all rows this way.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::{DataType, FieldRef};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::references::{Replacement, Replacements};
use crate::error::QueryError;

/// What no query can call a function.
const NAME: &str = "\u{1}current";

/// The values of the row that a subquery is run for. There are none while its plan is made, so that the plan
/// takes nothing for granted.
#[derive(Debug)]
pub(super) struct CurrentRow {
    number: u64,
    values: Mutex<Option<Arc<[ScalarValue]>>>,
}

impl CurrentRow {
    pub(super) fn new() -> Arc<Self> {
        static ROWS: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self {
            number: ROWS.fetch_add(1, Ordering::Relaxed),
            values: Mutex::new(None),
        })
    }

    /// The next run is for a row of these values.
    pub(super) fn set(&self, values: Arc<[ScalarValue]>) {
        *self.values.lock().unwrap_or_else(PoisonError::into_inner) = Some(values);
    }

    fn value(&self, index: usize) -> Option<ScalarValue> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.as_ref()?.get(index).cloned()
    }

    /// What stands for a subquery's references in its plan. `in_scans` lets the tables look for the values.
    pub(super) fn replacements(self: &Arc<Self>, references: &[Column], in_scans: bool) -> Replacements {
        let replacement = |(index, column): (usize, &Column)| {
            let current = Replacement::Current {
                row: Arc::clone(self),
                index,
                in_scans,
            };
            (column.clone(), current)
        };
        references.iter().enumerate().map(replacement).collect()
    }

    /// The value at a position as an expression.
    pub(super) fn expression(self: &Arc<Self>, index: usize, field: &FieldRef, in_scans: bool) -> Expr {
        let function = ScalarUDF::new_from_impl(CurrentValue {
            name: format!("{NAME}{}_{index}", self.number),
            row: Arc::clone(self),
            index,
            field: Arc::clone(field),
            in_scans,
            signature: Signature::nullary(Volatility::Immutable),
        });
        function.call(Vec::new())
    }
}

/// Whether an expression is one value for each run of a plan that the tables are to look for.
pub(crate) fn is_of_run(expr: &Expr) -> bool {
    let wanted = expr.exists(|part| {
        Ok(matches!(part, Expr::ScalarFunction(function)
            if function.func.inner().downcast_ref::<CurrentValue>().is_some_and(|current| current.in_scans)))
    });
    wanted.unwrap_or(false) && !expr.is_volatile() && expr.column_refs().is_empty()
}

struct CurrentValue {
    name: String,
    row: Arc<CurrentRow>,
    index: usize,
    field: FieldRef,
    in_scans: bool,
    signature: Signature,
}

impl fmt::Debug for CurrentValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name)
    }
}

impl PartialEq for CurrentValue {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.in_scans == other.in_scans
    }
}

impl Eq for CurrentValue {}

impl Hash for CurrentValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for CurrentValue {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.field.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = self.field.as_ref().clone();
        Ok(Arc::new(field.with_name(&self.name).with_nullable(true)))
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let value = self.row.value(self.index).ok_or_else(|| {
            let detail = "a subquery was evaluated without a row around it".to_owned();
            QueryError::Internal { detail }.wrapped()
        })?;
        let wanted = self.field.data_type();
        if value.data_type() == *wanted {
            return Ok(ColumnarValue::Scalar(value));
        }
        Ok(ColumnarValue::Scalar(value.cast_to(wanted)?))
    }
}
