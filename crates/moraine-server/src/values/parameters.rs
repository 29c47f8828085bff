//! The parameters of a prepared statement. While it is described nobody knows their values, and their types are learned
//! from what they meet; when it is run, each has a type, and its bytes are read as that.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use moraine_tables::{ColumnType, Value};
use postgres_types::Type;

use super::literal::{self, Literal, Target};
use super::{arrays, decode, types};
use crate::errors::{SqlError, state};

/// The parameters of one statement.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    values: Option<Vec<Parameter>>,
    /// What the client said of types that are to be learned.
    declared: Vec<Option<Type>>,
    /// The parameters seen, with the type of what each met first.
    learned: Mutex<BTreeMap<usize, Option<Type>>>,
}

/// One parameter with a value.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    value: Sent,
    of_type: Type,
}

#[derive(Debug, Clone)]
enum Sent {
    Null,
    /// Bytes of `Bind`, in the binary form or not.
    Bytes(Bytes, bool),
    /// A value that `EXECUTE` gave.
    Value(Value),
}

impl Parameter {
    /// A parameter as `Bind` sent it; no bytes are NULL.
    pub(crate) fn sent(bytes: Option<Bytes>, binary: bool, of_type: Type) -> Parameter {
        let value = bytes.map_or(Sent::Null, |bytes| Sent::Bytes(bytes, binary));
        Parameter { value, of_type }
    }

    /// A parameter with a value of its type.
    pub(crate) fn valued(value: Value, of_type: Type) -> Parameter {
        Parameter {
            value: Sent::Value(value),
            of_type,
        }
    }

    /// The value as its own type reads it; an array is its text.
    fn value(&self, index: usize) -> Result<Value, SqlError> {
        let (bytes, binary) = match &self.value {
            Sent::Null => return Ok(Value::Null),
            Sent::Value(value) => return Ok(value.clone()),
            Sent::Bytes(bytes, binary) => (bytes, *binary),
        };
        if let Some(element) = arrays::element(&self.of_type) {
            let mut texts = Vec::new();
            for item in self.elements(bytes, binary, element)? {
                texts.push(super::encode::text(&item.value(index)?));
            }
            return Ok(Value::text(arrays::format(&texts)));
        }
        let unsupported = || SqlError::unsupported(format!("a parameter of type {}", self.of_type.name()));
        if binary {
            let value = decode::typed(bytes, &self.of_type).ok_or_else(unsupported)?;
            return value.ok_or_else(|| {
                let of_type = self.of_type.name();
                invalid(index, &format!("{} bytes are no {of_type}", bytes.len()))
            });
        }
        let text = std::str::from_utf8(bytes).map_err(|_| {
            let message = format!("bind parameter {} is not valid UTF-8", index + 1);
            SqlError::new(state::INVALID_ENCODING, message)
        })?;
        if types::is_object_id(&self.of_type) {
            let number = text.trim().parse::<u32>().map(i64::from);
            return number.map(Value::Int64).map_err(|_| {
                let message = format!(
                    "invalid input syntax for type {}: \"{text}\"",
                    self.of_type.name()
                );
                SqlError::new(state::INVALID_TEXT, message)
            });
        }
        let name = format!("${}", index + 1);
        let target = Target {
            column: &name,
            column_type: match types::of_wire_type(&self.of_type).ok_or_else(unsupported)? {
                ColumnType::Numeric { .. } => decode::natural_numeric(text),
                column_type => column_type,
            },
            now: 0,
        };
        literal::read(text, target)
    }

    fn elements(&self, bytes: &Bytes, binary: bool, element: &Type) -> Result<Vec<Parameter>, SqlError> {
        if binary {
            return arrays::parameters(bytes, element);
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|_| SqlError::new(state::INVALID_ENCODING, "an array's text is not valid UTF-8"))?;
        arrays::text_parameters(text, element)
    }

    /// The literal that says the same in the statement. What a client sends as text is as untyped as a quoted literal.
    fn literal(&self, index: usize) -> Result<Literal, SqlError> {
        let column_type = types::of_wire_type(&self.of_type);
        Ok(match self.value(index)? {
            Value::Null => Literal::Cast(Box::new(Literal::Null), column_type.unwrap_or(ColumnType::Text)),
            Value::Text(text) => Literal::Quoted(text.to_string()),
            value => Literal::Typed(value),
        })
    }
}

impl PartialEq for Parameters {
    fn eq(&self, other: &Parameters) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Parameters {
    /// No parameters at all: a simple query.
    pub(crate) fn none() -> Parameters {
        Parameters::bound(Vec::new())
    }

    /// Parameters whose types are to be learned, where the client has not said them.
    pub(crate) fn to_learn(declared: &[Option<Type>]) -> Parameters {
        let known = |given: &Option<Type>| given.clone().filter(|given| *given != Type::UNKNOWN);
        Parameters {
            declared: declared.iter().map(known).collect(),
            ..Parameters::default()
        }
    }

    pub(crate) fn bound(values: Vec<Parameter>) -> Parameters {
        Parameters {
            declared: values.iter().map(|value| Some(value.of_type.clone())).collect(),
            values: Some(values),
            learned: Mutex::default(),
        }
    }

    /// Whether the types are still to be learned.
    fn is_learning(&self) -> bool {
        self.values.is_none()
    }

    /// The types known beforehand, by position.
    pub(crate) fn declared(&self) -> &[Option<Type>] {
        &self.declared
    }

    /// The types of all parameters seen: as declared, else as learned, else text.
    pub(crate) fn learned(&self) -> Vec<Type> {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = learned.keys().next_back().map_or(0, |last| last + 1);
        let count = seen.max(self.declared.len());
        let known = |index: usize| {
            let declared = self.declared.get(index).cloned().flatten();
            declared.or_else(|| learned.get(&index).cloned().flatten())
        };
        (0..count)
            .map(|index| known(index).unwrap_or(Type::TEXT))
            .collect()
    }

    /// Remembers that a parameter stands where a value of this type is wanted.
    pub(crate) fn learn(&self, index: usize, wanted: Type) {
        if self.is_learning() {
            let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
            learned.entry(index).or_insert(None).get_or_insert(wanted);
        }
    }

    /// What stands in the place of a parameter; 42P02 when there is none of this position.
    pub(crate) fn literal(self: &Arc<Self>, index: usize) -> Result<Literal, SqlError> {
        let Some(values) = &self.values else {
            let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
            learned.entry(index).or_insert(None);
            let declared = self.declared.get(index).cloned().flatten();
            return Ok(match declared.as_ref().and_then(types::of_wire_type) {
                Some(declared) => Literal::Cast(Box::new(Literal::Null), declared),
                None => Literal::Parameter(index, Arc::clone(self)),
            });
        };
        let value = values.get(index).ok_or_else(|| missing(index))?;
        value.literal(index)
    }

    /// The values of an array parameter, each as a value of the column it is compared with; `None` when the array is NULL.
    /// While types are learned there are none.
    pub(crate) fn array(&self, index: usize, target: Target<'_>) -> Result<Option<Vec<Value>>, SqlError> {
        let Some(values) = &self.values else {
            self.learn(index, arrays::of(&types::wire_type(target.column_type)));
            return Ok(Some(Vec::new()));
        };
        let parameter = values.get(index).ok_or_else(|| missing(index))?;
        let element = arrays::element(&parameter.of_type).cloned();
        let element = element.unwrap_or_else(|| types::wire_type(target.column_type));
        let items = match &parameter.value {
            Sent::Null | Sent::Value(Value::Null) => return Ok(None),
            Sent::Bytes(bytes, binary) => parameter.elements(bytes, *binary, &element)?,
            Sent::Value(Value::Text(text)) => arrays::text_parameters(text, &element)?,
            Sent::Value(_) => return Err(invalid(index, "it is no array")),
        };
        let value = |item: Parameter| item.literal(index)?.coerce(target);
        items
            .into_iter()
            .map(value)
            .collect::<Result<Vec<_>, _>>()
            .map(Some)
    }

    /// The value of a parameter as a type wants it; NULL while types are learned.
    pub(crate) fn value(&self, index: usize, target: Target<'_>) -> Result<Value, SqlError> {
        let Some(values) = &self.values else {
            self.learn(index, types::wire_type(target.column_type));
            return Ok(Value::Null);
        };
        match values.get(index).ok_or_else(|| missing(index))?.literal(index)? {
            Literal::Cast(..) => Ok(Value::Null),
            literal => literal.coerce(target),
        }
    }
}

fn missing(index: usize) -> SqlError {
    SqlError::new(
        state::UNDEFINED_PARAMETER,
        format!("there is no parameter ${}", index + 1),
    )
}

fn invalid(index: usize, detail: &str) -> SqlError {
    SqlError::new(
        state::INVALID_BINARY,
        format!(
            "incorrect binary data format in bind parameter {}: {detail}",
            index + 1
        ),
    )
}
