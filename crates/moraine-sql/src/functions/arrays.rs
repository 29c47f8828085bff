//! Functions of arrays, with Postgres's types and its view of NULL.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int32Array, ListArray, PrimitiveArray, new_empty_array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use datafusion::common::Result;
use datafusion::common::cast::as_list_array;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::evaluation::Evaluation;
use crate::error::QueryError;

/// Elements of one series at most: what a query may hold in memory in one value.
const SERIES_ELEMENTS_MAX: i64 = 10_000_000;

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    [
        ("array_or_empty", Kind::OrEmpty),
        ("generate_series_array", Kind::Series),
        ("generate_subscripts_array", Kind::Subscripts),
        ("ordinals_array", Kind::Ordinals),
        ("array_upper", Kind::Length),
        ("array_length", Kind::Length),
        ("array_lower", Kind::Lower),
        ("cardinality", Kind::Cardinality),
        ("only_element", Kind::Only),
        ("first_element", Kind::First),
    ]
    .map(|(name, kind)| {
        Arc::new(ScalarUDF::new_from_impl(ArrayFunction {
            name,
            kind,
            signature: Signature::variadic_any(Volatility::Immutable),
            temporal: datafusion::functions_nested::range::gen_series_udf(),
        }))
    })
    .into()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    OrEmpty,
    Series,
    Subscripts,
    /// From 1 to the length of the longest.
    Ordinals,
    Length,
    Lower,
    Cardinality,
    Only,
    First,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ArrayFunction {
    name: &'static str,
    kind: Kind,
    signature: Signature,
    /// The series of instants.
    temporal: Arc<ScalarUDF>,
}

fn whole_numbers(types: &[DataType]) -> bool {
    types
        .iter()
        .all(|data_type| data_type.is_integer() || data_type.is_null())
}

/// The type of a series' elements.
fn series_type(types: &[DataType]) -> DataType {
    let wide =
        |data_type: &DataType| matches!(data_type, DataType::Int64 | DataType::UInt64 | DataType::UInt32);
    if types.iter().any(wide) {
        DataType::Int64
    } else {
        DataType::Int32
    }
}

fn undefined(name: &str, types: &[DataType]) -> datafusion::error::DataFusionError {
    let types: Vec<String> = types.iter().map(DataType::to_string).collect();
    QueryError::UndefinedFunction {
        name: format!("{name}({})", types.join(", ")),
    }
    .wrapped()
}

impl ScalarUDFImpl for ArrayFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let is_array = matches!(types.first(), Some(DataType::List(_) | DataType::Null));
        match (self.kind, types.len()) {
            (Kind::Series, 2 | 3) if whole_numbers(types) => Ok(DataType::new_list(series_type(types), true)),
            (Kind::Series, 3) => self.temporal.return_type(types),
            (Kind::OrEmpty, 1) if is_array => Ok(types.first().cloned().unwrap_or(DataType::Null)),
            (Kind::Only | Kind::First, 1) => match types.first() {
                Some(DataType::List(item)) => Ok(item.data_type().clone()),
                _ => Err(undefined(self.name, types)),
            },
            (Kind::Ordinals, 1..) => Ok(DataType::new_list(DataType::Int64, true)),
            (Kind::Subscripts, 2 | 3) if is_array => Ok(DataType::new_list(DataType::Int32, true)),
            (Kind::Length | Kind::Lower, 2) | (Kind::Cardinality, 1) if is_array => Ok(DataType::Int32),
            _ => Err(undefined(self.name, types)),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<arrow_schema::FieldRef> {
        let types: Vec<DataType> = args
            .arg_fields
            .iter()
            .map(|field| field.data_type().clone())
            .collect();
        Ok(Arc::new(Field::new(self.name, self.return_type(&types)?, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let types: Vec<DataType> = args.args.iter().map(ColumnarValue::data_type).collect();
        if self.kind == Kind::Series && !whole_numbers(&types) {
            return self.temporal.invoke_with_args(args);
        }
        let evaluation = Evaluation::of(&args);
        let rows = evaluation.rows;
        let arrays = args
            .args
            .into_iter()
            .map(|argument| argument.into_array(rows))
            .collect::<Result<Vec<_>>>()?;
        let result = match self.kind {
            Kind::Series => series(&arrays, &series_type(&types))?,
            Kind::OrEmpty => or_empty(arrays.first().ok_or_else(|| undefined(self.name, &types))?)?,
            Kind::Only | Kind::First => {
                let array = arrays.first().ok_or_else(|| undefined(self.name, &types))?;
                element(array, self.kind == Kind::Only)?
            }
            Kind::Ordinals => ordinals(&arrays, rows)?,
            Kind::Subscripts | Kind::Length | Kind::Lower | Kind::Cardinality => {
                measured(self.kind, &arrays)?
            }
        };
        evaluation.result(result)
    }
}

fn or_empty(array: &ArrayRef) -> Result<ArrayRef> {
    let DataType::List(item) = array.data_type() else {
        return Ok(Arc::clone(array));
    };
    let list = as_list_array(array)?;
    if list.null_count() == 0 {
        return Ok(Arc::clone(array));
    }
    let lengths: Vec<usize> = (0..list.len())
        .map(|row| {
            if list.is_null(row) {
                0
            } else {
                list.value(row).len()
            }
        })
        .collect();
    let parts: Vec<ArrayRef> = (0..list.len())
        .filter(|row| !list.is_null(*row))
        .map(|row| list.value(row))
        .collect();
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    let values = if parts.is_empty() {
        new_empty_array(item.data_type())
    } else {
        datafusion::arrow::compute::concat(&parts)?
    };
    let whole = ListArray::try_new(
        Arc::clone(item),
        OffsetBuffer::from_lengths(lengths),
        values,
        None,
    )?;
    Ok(Arc::new(whole))
}

/// The first element of each array, or NULL; an array of more than one may be refused.
fn element(array: &ArrayRef, only: bool) -> Result<ArrayRef> {
    let list = as_list_array(array)?;
    let mut taken = Vec::with_capacity(list.len());
    for row in 0..list.len() {
        let length = if list.is_null(row) {
            0
        } else {
            list.value_length(row)
        };
        if only && length > 1 {
            return Err(QueryError::Cardinality.wrapped());
        }
        let first = list.value_offsets().get(row).copied().filter(|_| length > 0);
        taken.push(first.and_then(|first| u32::try_from(first).ok()));
    }
    let taken = arrow_array::UInt32Array::from(taken);
    Ok(datafusion::arrow::compute::take(list.values(), &taken, None)?)
}

fn series(arrays: &[ArrayRef], element: &DataType) -> Result<ArrayRef> {
    let wide = arrays
        .iter()
        .map(|array| Ok(datafusion::arrow::compute::cast(array, &DataType::Int64)?))
        .collect::<Result<Vec<_>>>()?;
    let at = |index: usize, row: usize| {
        let numbers: Option<&PrimitiveArray<Int64Type>> = wide.get(index).map(|array| array.as_primitive());
        numbers.and_then(|numbers| numbers.is_valid(row).then(|| numbers.value(row)))
    };
    let rows = wide.first().map_or(0, |array| array.len());
    let mut values = Vec::new();
    let mut lengths = Vec::with_capacity(rows);
    for row in 0..rows {
        let before = values.len();
        let step = if wide.len() > 2 { at(2, row) } else { Some(1) };
        if let (Some(start), Some(stop), Some(step)) = (at(0, row), at(1, row), step) {
            steps(start, stop, step, &mut values)?;
        }
        lengths.push(values.len() - before);
    }
    let values: ArrayRef = Arc::new(PrimitiveArray::<Int64Type>::from(values));
    let values = datafusion::arrow::compute::cast(&values, element)?;
    let field = Arc::new(Field::new_list_field(element.clone(), true));
    Ok(Arc::new(ListArray::try_new(
        field,
        OffsetBuffer::from_lengths(lengths),
        values,
        None,
    )?))
}

fn steps(start: i64, stop: i64, step: i64, values: &mut Vec<i64>) -> Result<()> {
    if step == 0 {
        let detail = "step size cannot equal zero".to_owned();
        return Err(QueryError::Invalid { detail }.wrapped());
    }
    let between = i128::from(stop) - i128::from(start);
    if between != 0 && (between > 0) != (step > 0) {
        return Ok(());
    }
    let count = between / i128::from(step) + 1;
    if count > i128::from(SERIES_ELEMENTS_MAX) {
        let detail = format!("a series of {count} elements; {SERIES_ELEMENTS_MAX} are the most");
        return Err(QueryError::Memory { detail }.wrapped());
    }
    let mut next = Some(start);
    for _ in 0..count {
        if let Some(value) = next {
            values.push(value);
            next = value.checked_add(step);
        }
    }
    Ok(())
}

fn ordinals(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut values = Vec::new();
    let mut lengths = Vec::with_capacity(rows);
    for row in 0..rows {
        let mut longest = 0;
        for array in arrays.iter().filter(|array| array.is_valid(row)) {
            longest = longest.max(match array.data_type() {
                DataType::List(_) => as_list_array(array)?.value(row).len(),
                _ => 0,
            });
        }
        values.extend((1_i64..).take(longest));
        lengths.push(longest);
    }
    let field = Arc::new(Field::new_list_field(DataType::Int64, true));
    let values: ArrayRef = Arc::new(PrimitiveArray::<Int64Type>::from(values));
    Ok(Arc::new(ListArray::try_new(
        field,
        OffsetBuffer::from_lengths(lengths),
        values,
        None,
    )?))
}

fn measured(kind: Kind, arrays: &[ArrayRef]) -> Result<ArrayRef> {
    let Some(array) = arrays.first() else {
        return Ok(Arc::new(Int32Array::from(Vec::<Option<i32>>::new())));
    };
    let list = match array.data_type() {
        DataType::List(_) => Some(as_list_array(array)?),
        _ => None,
    };
    let length = |row: usize| {
        let list = list.filter(|list| list.is_valid(row))?;
        i32::try_from(list.value(row).len()).ok()
    };
    // Arrays here have one dimension.
    let dimension = arrays.get(1).filter(|_| kind != Kind::Cardinality);
    let dimension = dimension
        .map(|dimension| datafusion::arrow::compute::cast(dimension, &DataType::Int32))
        .transpose()?;
    let first = |row: usize| match &dimension {
        Some(dimension) => {
            let numbers = dimension.as_primitive::<Int32Type>();
            numbers.is_valid(row) && numbers.value(row) == 1
        }
        None => true,
    };
    let counted = (0..array.len()).map(|row| match (kind, length(row).filter(|_| first(row))) {
        (Kind::Cardinality, length) => length,
        (_, Some(0)) | (_, None) => None,
        (Kind::Lower, Some(_)) => Some(1),
        (_, length) => length,
    });
    if kind != Kind::Subscripts {
        return Ok(Arc::new(counted.collect::<Int32Array>()));
    }
    let mut values = Vec::new();
    let mut lengths = Vec::with_capacity(array.len());
    for last in counted {
        let last = last.unwrap_or_default();
        values.extend(1..=last);
        lengths.push(usize::try_from(last).unwrap_or_default());
    }
    let field = Arc::new(Field::new_list_field(DataType::Int32, true));
    let values: ArrayRef = Arc::new(Int32Array::from(values));
    Ok(Arc::new(ListArray::try_new(
        field,
        OffsetBuffer::from_lengths(lengths),
        values,
        None,
    )?))
}
