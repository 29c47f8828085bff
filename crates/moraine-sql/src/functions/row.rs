//! Functions that are written over one row's values.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use moraine_tables::Value;

use super::evaluation::Evaluation;
use crate::error::QueryError;
use crate::types::SqlType;
use crate::values;

/// A whole number of any width.
pub(crate) fn whole(value: Option<&Value>) -> Option<i64> {
    match value {
        Some(Value::Int16(value)) => Some(i64::from(*value)),
        Some(Value::Int32(value)) => Some(i64::from(*value)),
        Some(Value::Int64(value)) => Some(*value),
        _ => None,
    }
}

/// What a function does with the arguments of one row.
type Call = Arc<dyn Fn(&[Value]) -> std::result::Result<Value, QueryError> + Send + Sync>;

/// A function of one row.
pub(super) struct RowFunction {
    name: String,
    result: SqlType,
    least: usize,
    most: usize,
    signature: Signature,
    call: Call,
}

/// A function with `least` to `most` arguments of any type.
pub(crate) fn function(
    name: impl Into<String>,
    result: impl Into<SqlType>,
    (least, most): (usize, usize),
    call: impl Fn(&[Value]) -> std::result::Result<Value, QueryError> + Send + Sync + 'static,
) -> Arc<ScalarUDF> {
    let kinds = vec![TypeSignature::Nullary, TypeSignature::VariadicAny];
    Arc::new(ScalarUDF::new_from_impl(RowFunction {
        name: name.into(),
        result: result.into(),
        least,
        most,
        signature: Signature::one_of(kinds, Volatility::Immutable),
        call: Arc::new(call),
    }))
}

/// A function without arguments that has the same value for the whole query.
pub(crate) fn constant(name: &str, result: impl Into<SqlType>, value: Value) -> Arc<ScalarUDF> {
    function(name, result, (0, 0), move |_| Ok(value.clone()))
}

impl fmt::Debug for RowFunction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RowFunction")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

// Within one query a name stands for one function.
impl PartialEq for RowFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.result == other.result
    }
}

impl Eq for RowFunction {}

impl Hash for RowFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        self.result.hash(state);
    }
}

impl ScalarUDFImpl for RowFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.result.arrow())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let count = args.arg_fields.len();
        if count < self.least || count > self.most {
            let error = QueryError::UndefinedFunction {
                name: format!("{} with {count} arguments", self.name),
            };
            return Err(error.wrapped());
        }
        Ok(Arc::new(self.result.field(&self.name, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let evaluation = Evaluation::of(&args);
        let rows = evaluation.rows;
        let mut results = Vec::with_capacity(rows);
        for row in 0..rows {
            let mut arguments = Vec::with_capacity(args.args.len());
            for arg in &args.args {
                let value = match arg {
                    ColumnarValue::Scalar(scalar) => values::of_scalar(scalar),
                    ColumnarValue::Array(array) => values::at(array, row),
                };
                arguments.push(value.map_err(QueryError::wrapped)?);
            }
            results.push((self.call)(&arguments).map_err(QueryError::wrapped)?);
        }
        let array = values::array(&results, self.result).map_err(QueryError::wrapped)?;
        evaluation.result(array)
    }
}
