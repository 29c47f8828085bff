//! `x op ANY (array)` and `x op ALL (array)` with SQL's three truth values.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::{Array, BooleanArray};
use arrow_schema::DataType;
use datafusion::common::cast::as_list_array;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use moraine_tables::Value;
use sqlparser::ast::BinaryOperator;

use crate::error::QueryError;
use crate::values;

/// What is asked of each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Test {
    Eq,
    NotEq,
    Less,
    LessEq,
    Greater,
    GreaterEq,
    Like,
    NotLike,
}

const NAMES: &[(Test, &str, &str)] = &[
    (Test::Eq, "any_eq", "all_eq"),
    (Test::NotEq, "any_ne", "all_ne"),
    (Test::Less, "any_lt", "all_lt"),
    (Test::LessEq, "any_le", "all_le"),
    (Test::Greater, "any_gt", "all_gt"),
    (Test::GreaterEq, "any_ge", "all_ge"),
    (Test::Like, "any_like", "all_like"),
    (Test::NotLike, "any_not_like", "all_not_like"),
];

/// The name of the function that is this operator over a whole array; `None` for an operator that has none.
pub(crate) fn quantified_name(op: &BinaryOperator, any: bool) -> Option<&'static str> {
    let test = match op {
        BinaryOperator::Eq => Test::Eq,
        BinaryOperator::NotEq => Test::NotEq,
        BinaryOperator::Lt => Test::Less,
        BinaryOperator::LtEq => Test::LessEq,
        BinaryOperator::Gt => Test::Greater,
        BinaryOperator::GtEq => Test::GreaterEq,
        BinaryOperator::PGLikeMatch => Test::Like,
        BinaryOperator::PGNotLikeMatch => Test::NotLike,
        _ => return None,
    };
    let (_, of_any, of_all) = NAMES.iter().find(|(known, ..)| *known == test)?;
    Some(if any { of_any } else { of_all })
}

/// The function of this name; `None` for any other name.
pub(crate) fn quantified(name: &str) -> Option<Arc<ScalarUDF>> {
    let (test, of_any, _) = NAMES
        .iter()
        .find(|(_, of_any, of_all)| *of_any == name || *of_all == name)?;
    Some(Arc::new(ScalarUDF::new_from_impl(Quantified {
        name: name.to_owned(),
        test: *test,
        any: *of_any == name,
        signature: Signature::any(2, Volatility::Immutable),
    })))
}

/// Whether this is the function of `= ANY`, which a list of values spells out.
pub(crate) fn is_any_equal(function: &ScalarUDF) -> bool {
    function.name() == "any_eq"
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Quantified {
    name: String,
    test: Test,
    any: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Quantified {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments.get(1) {
            Some(DataType::List(_) | DataType::Null) => Ok(DataType::Boolean),
            _ => Err(QueryError::Invalid {
                detail: "op ANY/ALL (array) requires array on right side".to_owned(),
            }
            .wrapped()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [needle, array] = args.args.as_slice() else {
            return Err(QueryError::Internal {
                detail: "ANY without two sides".to_owned(),
            }
            .wrapped());
        };
        let constant = match array {
            ColumnarValue::Scalar(scalar) => Some(of_list(scalar)?),
            ColumnarValue::Array(_) => None,
        };
        let mut verdicts = Vec::with_capacity(args.number_rows);
        let rows = match needle {
            ColumnarValue::Scalar(_) if constant.is_some() => 1,
            _ => args.number_rows,
        };
        for row in 0..rows {
            let value = match needle {
                ColumnarValue::Scalar(scalar) => values::of_scalar(scalar),
                ColumnarValue::Array(array) => values::at(array, row),
            };
            let value = value.map_err(QueryError::wrapped)?;
            let own;
            let elements = match (&constant, array) {
                (Some(elements), _) => elements,
                (None, ColumnarValue::Array(array)) => {
                    own = of_row(array, row)?;
                    &own
                }
                (None, ColumnarValue::Scalar(scalar)) => {
                    own = of_list(scalar)?;
                    &own
                }
            };
            verdicts.push(match elements {
                Some(elements) => self.verdict(&value, elements)?,
                None => None,
            });
        }
        if rows == 1 && args.number_rows != 1 {
            let verdict = verdicts.first().copied().flatten();
            return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(verdict)));
        }
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(verdicts))))
    }
}

impl Quantified {
    fn verdict(&self, value: &Value, elements: &[Value]) -> Result<Option<bool>> {
        let mut unknown = false;
        for element in elements {
            match self.holds(value, element)? {
                Some(holds) if holds == self.any => return Ok(Some(self.any)),
                Some(_) => {}
                None => unknown = true,
            }
        }
        Ok((!unknown).then_some(!self.any))
    }

    fn holds(&self, value: &Value, element: &Value) -> Result<Option<bool>> {
        if value.is_null() || element.is_null() {
            return Ok(None);
        }
        if let (Test::Like | Test::NotLike, Value::Text(text), Value::Text(pattern)) =
            (self.test, value, element)
        {
            return Ok(Some(like(text, pattern) == (self.test == Test::Like)));
        }
        let ordering = compared(value, element).ok_or_else(|| {
            QueryError::UndefinedFunction {
                name: format!("\"{} = {}\"", value.type_name(), element.type_name()),
            }
            .wrapped()
        })?;
        Ok(Some(match self.test {
            Test::Eq => ordering == Ordering::Equal,
            Test::NotEq => ordering != Ordering::Equal,
            Test::Less => ordering == Ordering::Less,
            Test::LessEq => ordering != Ordering::Greater,
            Test::Greater => ordering == Ordering::Greater,
            Test::GreaterEq => ordering != Ordering::Less,
            Test::Like | Test::NotLike => return Ok(None),
        }))
    }
}

fn of_list(scalar: &ScalarValue) -> Result<Option<Vec<Value>>> {
    match scalar {
        ScalarValue::List(list) => of_row(list.as_ref(), 0),
        _ => Ok(None),
    }
}

fn of_row(array: &dyn Array, row: usize) -> Result<Option<Vec<Value>>> {
    if array.data_type().is_null() || array.is_null(row) {
        return Ok(None);
    }
    let items = as_list_array(array)?.value(row);
    let elements = (0..items.len()).map(|index| values::at(&items, index));
    let elements = elements.collect::<std::result::Result<Vec<_>, _>>();
    elements.map(Some).map_err(QueryError::wrapped)
}

/// The order of two values, numbers of different types among them; `None` for values that are not comparable.
fn compared(left: &Value, right: &Value) -> Option<Ordering> {
    if let (Some(left), Some(right)) = (whole(left), whole(right)) {
        return Some(left.cmp(&right));
    }
    if let (Some(left), Some(right)) = (approximate(left), approximate(right)) {
        return Some(left.total_cmp(&right));
    }
    match (left, right) {
        (Value::Text(left), Value::Text(right)) => Some(left.as_bytes().cmp(right.as_bytes())),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Bytes(left), Value::Bytes(right)) => Some(left.cmp(right)),
        (Value::Uuid(left), Value::Uuid(right)) => Some(left.cmp(right)),
        (Value::Date(left), Value::Date(right)) => Some(left.cmp(right)),
        (
            Value::Timestamp(left) | Value::TimestampTz(left),
            Value::Timestamp(right) | Value::TimestampTz(right),
        )
        | (Value::Time(left), Value::Time(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

fn whole(value: &Value) -> Option<i64> {
    match value {
        Value::Int16(value) => Some(i64::from(*value)),
        Value::Int32(value) => Some(i64::from(*value)),
        Value::Int64(value) => Some(*value),
        _ => None,
    }
}

fn approximate(value: &Value) -> Option<f64> {
    match value {
        Value::Float32(value) => Some(f64::from(*value)),
        Value::Float64(value) => Some(*value),
        value @ (Value::Int16(_) | Value::Int32(_) | Value::Int64(_) | Value::Numeric(_)) => {
            crate::text::format(value)?.parse().ok()
        }
        _ => None,
    }
}

/// `LIKE` with the backslash as its escape.
fn like(text: &str, pattern: &str) -> bool {
    like_with(text, pattern, Some('\\'))
}

/// `LIKE` with this escape, or with none.
pub(super) fn like_with(text: &str, pattern: &str, escape: Option<char>) -> bool {
    let text: Vec<char> = text.chars().collect();
    let pattern: Vec<char> = pattern.chars().collect();
    let (mut at, mut of) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < text.len() {
        let (sign, width, wild) = match pattern.get(of) {
            Some(sign) if Some(*sign) == escape => (pattern.get(of + 1), 2, false),
            other => (other, 1, true),
        };
        match sign {
            Some('%') if wild => {
                star = Some((at, of + 1));
                of += 1;
            }
            Some(sign) if (wild && *sign == '_') || Some(sign) == text.get(at) => {
                at += 1;
                of += width;
            }
            _ => match star {
                Some((from, after)) => {
                    at = from + 1;
                    star = Some((at, after));
                    of = after;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(of).all(|sign| *sign == '%')
}

#[cfg(test)]
mod tests {
    use super::like;

    #[test]
    fn patterns_match_as_in_sql() {
        for (text, pattern, expected) in [
            ("abc", "a%", true),
            ("abc", "_b_", true),
            ("abc", "a_", false),
            ("a%c", "a\\%c", true),
            ("abc", "a\\%c", false),
            ("aXbXc", "%X%c", true),
            ("", "%", true),
            ("", "_", false),
        ] {
            assert_eq!(like(text, pattern), expected, "{text} LIKE {pattern}");
        }
    }
}
