//! Values as JSON, with the spaces that Postgres puts into it.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, StringArray};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::common::cast::as_list_array;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use moraine_tables::Value;

use super::evaluation::Evaluation;
use crate::error::{InputError, QueryError};
use crate::text;
use crate::text::json::Json;
use crate::types::SqlType;
use crate::values;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// Keys and values in turn.
    Object,
    /// The same as a row of a table is written.
    Row,
    /// The same, and NULL where all values are.
    RowOrNull,
    /// Values one after the other.
    List,
    /// One value.
    Value,
    /// One value that is an element: NULL is `null`.
    Element,
    /// One key and its value, as they stand in an object.
    Pair,
    /// The elements that an aggregate has collected.
    Elements,
    /// The pairs that an aggregate has collected.
    Pairs,
    /// The value under a key or a position.
    Get,
    /// The same as text.
    GetText,
}

/// The metadata key of a field whose JSON is that of a row.
const ROW_KEY: &str = "moraine.row";
/// What stands before a row or an array among the elements of an aggregate. Source: PostgreSQL, `json_agg_transfn`.
const OWN_LINE: &str = "\n ";

const FUNCTIONS: &[(&str, Kind, bool)] = &[
    ("json_build_object", Kind::Object, false),
    ("jsonb_build_object", Kind::Object, true),
    ("json_row", Kind::Row, false),
    ("json_row_or_null", Kind::RowOrNull, false),
    ("json_build_array", Kind::List, false),
    ("jsonb_build_array", Kind::List, true),
    ("to_json", Kind::Value, false),
    ("to_jsonb", Kind::Value, true),
    ("array_to_json", Kind::Value, false),
    ("row_to_json", Kind::Value, false),
    ("json_element", Kind::Element, false),
    ("json_pair", Kind::Pair, false),
    ("json_agg_of", Kind::Elements, false),
    ("jsonb_agg_of", Kind::Elements, true),
    ("json_object_agg_of", Kind::Pairs, false),
    ("jsonb_object_agg_of", Kind::Pairs, true),
    ("json_get", Kind::Get, false),
    ("json_get_text", Kind::GetText, false),
];

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let function = |(name, kind, binary): &(&'static str, Kind, bool)| json_function(name, *kind, *binary);
    FUNCTIONS.iter().map(function).collect()
}

fn json_function(name: &'static str, kind: Kind, binary: bool) -> Arc<ScalarUDF> {
    let any = vec![TypeSignature::Nullary, TypeSignature::VariadicAny];
    Arc::new(ScalarUDF::new_from_impl(JsonFunction {
        name,
        kind,
        binary,
        signature: Signature::one_of(any, Volatility::Immutable),
    }))
}

/// The row of a table: names and values in turn. `may_lack` says that a join may give none.
pub(crate) fn json_row(may_lack: bool) -> Arc<ScalarUDF> {
    if may_lack {
        return json_function("json_row_or_null", Kind::RowOrNull, false);
    }
    json_function("json_row", Kind::Row, false)
}

/// Whether the values of a row, which stand behind their names, are NULL.
fn all_null(arrays: &[ArrayRef], row: usize) -> bool {
    let mut values = arrays.iter().skip(1).step_by(2);
    values.all(|array| array.data_type().is_null() || array.is_null(row))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonFunction {
    name: &'static str,
    kind: Kind,
    binary: bool,
    signature: Signature,
}

impl ScalarUDFImpl for JsonFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let count = args.arg_fields.len();
        let fits = match self.kind {
            Kind::Object | Kind::Row | Kind::RowOrNull => count.is_multiple_of(2),
            Kind::List => true,
            Kind::Pair | Kind::Get | Kind::GetText => count == 2,
            Kind::Value | Kind::Element | Kind::Elements | Kind::Pairs => count == 1,
        };
        if !fits {
            let name = format!("{} with {count} arguments", self.name);
            return Err(QueryError::UndefinedFunction { name }.wrapped());
        }
        let of_first = args
            .arg_fields
            .first()
            .is_some_and(|field| matches!(SqlType::of_field(field), Ok(SqlType::Jsonb)));
        if matches!(self.kind, Kind::Row | Kind::RowOrNull) {
            let field = SqlType::Json.field(self.name, true);
            let mut metadata = field.metadata().clone();
            metadata.insert(ROW_KEY.to_owned(), String::new());
            return Ok(Arc::new(field.with_metadata(metadata)));
        }
        let result = match self.kind {
            Kind::GetText => return Ok(Arc::new(Field::new(self.name, DataType::Utf8, true))),
            Kind::Get if of_first => SqlType::Jsonb,
            _ if self.binary => SqlType::Jsonb,
            _ => SqlType::Json,
        };
        Ok(Arc::new(result.field(self.name, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let evaluation = Evaluation::of(&args);
        let rows = evaluation.rows;
        let kinds: Vec<Option<SqlType>> = args
            .arg_fields
            .iter()
            .map(|field| SqlType::of_field(field).ok())
            .collect();
        let on_own_line = self.kind == Kind::Element
            && args.arg_fields.iter().any(|field| {
                field.metadata().contains_key(ROW_KEY) || matches!(field.data_type(), DataType::List(_))
            });
        let arrays = args
            .args
            .into_iter()
            .map(|argument| argument.into_array(rows))
            .collect::<Result<Vec<_>>>()?;
        let mut results = Vec::with_capacity(rows);
        for row in 0..rows {
            let mut result = self.row(&arrays, &kinds, row)?;
            if self.binary
                && let Some(written) = &result
            {
                result = Some(parsed(written)?.binary_text());
            }
            // A row that is not there stays on the line.
            if on_own_line && result.as_deref() != Some("null") {
                result = result.map(|written| format!("{OWN_LINE}{written}"));
            }
            results.push(result);
        }
        let results: ArrayRef = Arc::new(StringArray::from(results));
        evaluation.result(results)
    }
}

impl JsonFunction {
    fn row(&self, arrays: &[ArrayRef], kinds: &[Option<SqlType>], row: usize) -> Result<Option<String>> {
        let of = |index: usize| match arrays.get(index) {
            Some(array) => json(array, kinds.get(index).copied().flatten(), row),
            None => Ok("null".to_owned()),
        };
        let plain = |index: usize| match arrays.get(index) {
            Some(array) => values::at(array, row).map_err(QueryError::wrapped),
            None => Ok(Value::Null),
        };
        let key = |index: usize| {
            let key = plain(index)?;
            let key = text::format(&key).ok_or_else(|| {
                let detail = format!("argument {}: key must not be null", index + 1);
                QueryError::Invalid { detail }.wrapped()
            })?;
            Ok::<_, datafusion::error::DataFusionError>(text::json::quoted(&key))
        };
        Ok(match self.kind {
            Kind::Object => {
                let pairs = (0..arrays.len() / 2)
                    .map(|pair| Ok(format!("{} : {}", key(pair * 2)?, of(pair * 2 + 1)?)));
                Some(format!("{{{}}}", pairs.collect::<Result<Vec<_>>>()?.join(", ")))
            }
            Kind::RowOrNull if all_null(arrays, row) => None,
            Kind::Row | Kind::RowOrNull => {
                let pairs =
                    (0..arrays.len() / 2).map(|pair| Ok(format!("{}:{}", key(pair * 2)?, of(pair * 2 + 1)?)));
                Some(format!("{{{}}}", pairs.collect::<Result<Vec<_>>>()?.join(",")))
            }
            Kind::List => {
                let items = (0..arrays.len()).map(of).collect::<Result<Vec<_>>>()?;
                Some(format!("[{}]", items.join(", ")))
            }
            Kind::Value if plain(0)?.is_null() => None,
            Kind::Value | Kind::Element => Some(of(0)?),
            Kind::Pair => Some(format!("{} : {}", key(0)?, of(1)?)),
            Kind::Elements => joined(arrays, row)?
                .map(|items| format!("[{}]", items.join(", ").trim_start_matches(OWN_LINE))),
            Kind::Pairs => joined(arrays, row)?.map(|items| format!("{{ {} }}", items.join(", "))),
            Kind::Get | Kind::GetText => self.got(&plain(0)?, &plain(1)?)?,
        })
    }

    fn got(&self, document: &Value, key: &Value) -> Result<Option<String>> {
        let Value::Text(document) = document else {
            return Ok(None);
        };
        let document = parsed(document)?;
        let found = match key {
            Value::Text(key) => document.field(key),
            Value::Int16(at) => document.element(i64::from(*at)),
            Value::Int32(at) => document.element(i64::from(*at)),
            Value::Int64(at) => document.element(*at),
            _ => None,
        };
        Ok(match (found, self.kind) {
            (None, _) => None,
            (Some(found), Kind::GetText) => found.plain_text(),
            (Some(found), _) => Some(found.binary_text()),
        })
    }
}

/// A text as a document: `json` as it is, `jsonb` in its own form.
pub(super) fn read(written: &str, binary: bool) -> std::result::Result<Value, QueryError> {
    match Json::parse(written) {
        Some(document) if binary => Ok(Value::text(document.binary_text())),
        Some(_) => Ok(Value::text(written)),
        None => Err(InputError::Syntax {
            type_name: if binary { "jsonb" } else { "json" }.to_owned(),
            text: written.to_owned(),
        }
        .into()),
    }
}

/// `x::json` and `x::jsonb` of a text.
pub(crate) fn json_of_text(binary: bool) -> Arc<ScalarUDF> {
    let (name, result) = if binary {
        ("jsonb_in", SqlType::Jsonb)
    } else {
        ("json_in", SqlType::Json)
    };
    super::row::function(name, result, (1, 1), move |arguments| match arguments.first() {
        Some(Value::Text(written)) => read(written, binary),
        _ => Ok(Value::Null),
    })
}

fn parsed(written: &str) -> Result<Json> {
    Json::parse(written).ok_or_else(|| {
        let error = InputError::Syntax {
            type_name: "json".to_owned(),
            text: written.to_owned(),
        };
        QueryError::from(error).wrapped()
    })
}

fn joined(arrays: &[ArrayRef], row: usize) -> Result<Option<Vec<String>>> {
    let Some(array) = arrays.first().filter(|array| !array.data_type().is_null()) else {
        return Ok(None);
    };
    let list = as_list_array(array)?;
    if list.is_null(row) {
        return Ok(None);
    }
    let items = list.value(row);
    let texts = (0..items.len()).map(|index| {
        let item = values::at(&items, index).map_err(QueryError::wrapped)?;
        Ok(text::format(&item).unwrap_or_else(|| "null".to_owned()))
    });
    texts.collect::<Result<Vec<_>>>().map(Some)
}

/// One value as JSON.
fn json(array: &ArrayRef, kind: Option<SqlType>, row: usize) -> Result<String> {
    if array.data_type().is_null() || array.is_null(row) {
        return Ok("null".to_owned());
    }
    if let DataType::List(item) = array.data_type() {
        let items = as_list_array(array)?.value(row);
        let kind = SqlType::of_field(item).ok();
        let mut out = String::from("[");
        for index in 0..items.len() {
            let comma = if index > 0 { "," } else { "" };
            let item = json(&items, kind, index)?;
            // Writing to a string does not fail.
            let _ = write!(out, "{comma}{item}");
        }
        out.push(']');
        return Ok(out);
    }
    let value = values::at(array, row).map_err(QueryError::wrapped)?;
    Ok(of_value(&value, kind))
}

fn of_value(value: &Value, kind: Option<SqlType>) -> String {
    match (value, kind) {
        (Value::Text(written), Some(SqlType::Json | SqlType::Jsonb)) => written.to_string(),
        (Value::Bool(value), _) => value.to_string(),
        (Value::Float32(value), _) if !value.is_finite() => text::json::quoted(&value.to_string()),
        (Value::Float64(value), _) if !value.is_finite() => text::json::quoted(&value.to_string()),
        (
            Value::Int16(_)
            | Value::Int32(_)
            | Value::Int64(_)
            | Value::Float32(_)
            | Value::Float64(_)
            | Value::Numeric(_),
            _,
        ) => text::format(value).unwrap_or_default(),
        (Value::Timestamp(_) | Value::TimestampTz(_), _) => {
            let mut written = text::format(value).unwrap_or_default().replacen(' ', "T", 1);
            if matches!(value, Value::TimestampTz(_)) && written.ends_with("+00") {
                written.push_str(":00");
            }
            text::json::quoted(&written)
        }
        _ => text::json::quoted(&text::format(value).unwrap_or_default()),
    }
}
