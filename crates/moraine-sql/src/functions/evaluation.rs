//! For how many rows a call of a function is evaluated, and what its result is then. What the function does is its own affair.

use arrow_array::ArrayRef;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

/// One evaluation of a function: of constants it is done for one row, and its result is a constant too.
#[derive(Clone, Copy)]
pub(super) struct Evaluation {
    is_constant: bool,
    /// The rows of the result that is to be made.
    pub(super) rows: usize,
}

impl Evaluation {
    pub(super) fn of(args: &ScalarFunctionArgs) -> Self {
        let is_constant = args
            .args
            .iter()
            .all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        Evaluation {
            is_constant,
            rows: if is_constant { 1 } else { args.number_rows },
        }
    }

    /// The result, of as many rows as [`Evaluation::rows`].
    pub(super) fn result(self, array: ArrayRef) -> Result<ColumnarValue> {
        if self.is_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}
