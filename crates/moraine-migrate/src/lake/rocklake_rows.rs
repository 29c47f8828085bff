//! The records of a RockLake store as rows of DuckLake's tables: its tags, the fields of its protobuf messages, and what it
//! keeps of inlined rows. Where a record says less than a row, the column is NULL.

use bytes::Bytes;
use moraine_tables::text::render_timestamp_tz;
use moraine_tables::{ColumnType, Relation};
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::lake::Raw;

/// What every value begins with: the version of the encoding and a magic word.
const HEADER: &[u8] = b"\x01SDKV";

/// The tag of the records that stand for rows of a table: the tables are numbered from 1 in this order.
pub(crate) fn tag(relation: Relation) -> Option<u8> {
    const ORDER: [Relation; 28] = [
        Relation::Metadata,
        Relation::Snapshot,
        Relation::SnapshotChanges,
        Relation::Schema,
        Relation::Table,
        Relation::Column,
        Relation::View,
        Relation::Macro,
        Relation::MacroImpl,
        Relation::MacroParameters,
        Relation::DataFile,
        Relation::DeleteFile,
        Relation::FilesScheduledForDeletion,
        Relation::InlinedDataTables,
        Relation::ColumnMapping,
        Relation::NameMapping,
        Relation::TableStats,
        Relation::TableColumnStats,
        Relation::FileColumnStats,
        Relation::FileVariantStats,
        Relation::PartitionInfo,
        Relation::PartitionColumn,
        Relation::FilePartitionValue,
        Relation::SortInfo,
        Relation::SortExpression,
        Relation::Tag,
        Relation::ColumnTag,
        Relation::SchemaVersions,
    ];
    let position = ORDER.iter().position(|known| *known == relation)?;
    u8::try_from(position + 1).ok()
}

/// Where a column of a row is in a record.
#[derive(Debug, Clone, Copy)]
enum Form {
    Id,
    Text,
    Flag,
    /// A number of seconds, milliseconds or microseconds since 1970, told apart by its size.
    Instant,
    Nothing,
}

#[derive(Debug, Clone, Copy)]
struct Field {
    number: u32,
    /// Another field that takes its place where it is absent.
    or: u32,
    form: Form,
    /// Whether an absent field is its type's default rather than NULL.
    has_default: bool,
}

impl Field {
    const fn or_default(self) -> Field {
        Field {
            has_default: true,
            ..self
        }
    }
}

const fn field(number: u32, form: Form) -> Field {
    Field {
        number,
        or: 0,
        form,
        has_default: false,
    }
}

const fn id(number: u32) -> Field {
    field(number, Form::Id)
}

const fn text(number: u32) -> Field {
    field(number, Form::Text)
}

const fn flag(number: u32) -> Field {
    field(number, Form::Flag)
}

const fn instant(number: u32) -> Field {
    field(number, Form::Instant)
}

const fn either(number: u32, or: u32) -> Field {
    Field {
        or,
        ..field(number, Form::Id)
    }
}

const NOTHING: Field = field(0, Form::Nothing);

/// The columns of a table, in the order of the specification.
#[rustfmt::skip]
fn fields(relation: Relation) -> &'static [Field] {
    match relation {
        Relation::Metadata => const { &[text(1), text(2).or_default(), text(3), id(4)] },
        Relation::Snapshot => const { &[id(1).or_default(), text(3), id(2).or_default(), id(6), id(7)] },
        Relation::SnapshotChanges => const { &[id(1).or_default(), text(9), text(6), text(7), text(8)] },
        Relation::Schema => const { &[id(1).or_default(), text(5), id(3).or_default(), id(4), text(2), text(6), flag(7)] },
        Relation::Table => const { &[id(1).or_default(), text(7), id(4).or_default(), id(5), id(2).or_default(), text(3), text(6), flag(8)] },
        Relation::Column => const { &[id(1).or_default(), id(6).or_default(), id(7), id(2).or_default(), id(5).or_default(), text(3), text(4), text(10), text(8), flag(9).or_default(), id(13), text(11), text(12)] },
        Relation::View => const { &[id(1).or_default(), text(7), id(5).or_default(), id(6), id(2).or_default(), text(3), text(8), text(4), text(9)] },
        Relation::Macro => const { &[id(2).or_default(), id(1).or_default(), text(3), id(5).or_default(), id(6)] },
        Relation::MacroImpl => const { &[id(2).or_default(), id(1).or_default(), text(4), text(3), text(5)] },
        Relation::MacroParameters => const { &[id(1).or_default(), id(2).or_default(), id(3).or_default(), text(4), text(5), text(6), text(7)] },
        Relation::DataFile => const { &[id(1).or_default(), id(2).or_default(), id(10), id(11), id(12), text(3), flag(13), text(4), id(5).or_default(), id(6).or_default(), id(8), id(14), id(15), text(9), id(16), text(17)] },
        Relation::DeleteFile => const { &[id(1).or_default(), id(7), either(8, 6), id(9), id(2).or_default(), text(3), flag(10), text(11), id(4).or_default(), id(5).or_default(), id(12), NOTHING, id(13)] },
        Relation::FilesScheduledForDeletion => const { &[id(1).or_default(), text(3), flag(5), instant(2)] },
        Relation::InlinedDataTables => const { &[id(1).or_default(), text(3), id(2).or_default()] },
        Relation::ColumnMapping => const { &[id(1).or_default(), id(2).or_default(), text(5)] },
        Relation::NameMapping => const { &[id(1).or_default(), id(2).or_default(), text(3), id(5), id(6), flag(7)] },
        Relation::TableStats => const { &[id(1).or_default(), id(2).or_default(), id(5), id(4).or_default()] },
        Relation::TableColumnStats => const { &[id(1).or_default(), id(2).or_default(), flag(3).or_default(), flag(6), text(4), text(5), text(7)] },
        Relation::FileColumnStats => const { &[id(3).or_default(), id(1).or_default(), id(2).or_default(), id(8), id(9), id(10), text(5), text(6), flag(7).or_default(), text(11)] },
        Relation::FileVariantStats => const { &[id(4).or_default(), id(1).or_default(), id(2).or_default(), text(5), text(8), id(9), id(10), id(11), text(6), text(7), flag(12), text(13)] },
        Relation::PartitionInfo => const { &[id(1).or_default(), id(2).or_default(), id(3).or_default(), id(4)] },
        Relation::PartitionColumn => const { &[id(1).or_default(), id(5), id(2).or_default(), id(3).or_default(), text(4)] },
        Relation::FilePartitionValue => const { &[id(3).or_default(), id(1).or_default(), id(2).or_default(), text(4)] },
        Relation::SortInfo => const { &[id(1).or_default(), id(2).or_default(), id(3).or_default(), id(4)] },
        Relation::SortExpression => const { &[id(1).or_default(), id(6), id(2).or_default(), text(7), text(8), text(4), text(5)] },
        Relation::Tag => const { &[id(1).or_default(), id(4).or_default(), id(5), text(2), text(3).or_default()] },
        Relation::ColumnTag => const { &[id(1).or_default(), id(2).or_default(), id(5).or_default(), id(6), text(3), text(4).or_default()] },
        Relation::SchemaVersions => const { &[id(2).or_default(), id(3).or_default(), id(1).or_default()] },

        Relation::InlinedData { .. } | Relation::InlinedDelete { .. } => &[],
    }
}

/// The row that a record stands for.
pub(crate) fn row(relation: Relation, value: &Bytes) -> Result<Vec<Raw>, String> {
    let found = message(value)?;
    let cell = |field: &Field| {
        let value = found.get(field.number).or_else(|| found.get(field.or));
        match (value, field.form) {
            (_, Form::Nothing) => Ok(Raw::Null),
            (None, _) if !field.has_default => Ok(Raw::Null),
            (None, Form::Text) => Ok(Raw::Text(String::new())),
            (None, _) => Ok(Raw::Int(0)),
            (Some(Part::Number(number)), Form::Instant) => Ok(Raw::Text(instant_text(*number))),
            (Some(Part::Number(number)), _) => signed(*number).map(Raw::Int),
            (Some(Part::Bytes(bytes)), _) => {
                let text = String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string())?;
                Ok(Raw::Text(text))
            }
        }
    };
    fields(relation).iter().map(cell).collect()
}

fn signed(number: u64) -> Result<i64, String> {
    i64::try_from(number).map_err(|_| format!("{number} is larger than any BIGINT"))
}

fn instant_text(number: u64) -> String {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let micros = match number {
        ..100_000_000_000 => number.saturating_mul(1_000_000),
        100_000_000_000..100_000_000_000_000 => number.saturating_mul(1_000),
        micros => micros,
    };
    render_timestamp_tz(micros)
}

/// One field of a message.
#[derive(Debug)]
enum Part {
    Number(u64),
    Bytes(Bytes),
}

/// The fields of a message, the last one of each number.
#[derive(Debug, Default)]
struct Parts(Vec<(u32, Part)>);

impl Parts {
    fn get(&self, number: u32) -> Option<&Part> {
        let found = self.0.iter().rev().find(|(found, _)| *found == number);
        found.map(|(_, part)| part)
    }

    fn number(&self, number: u32) -> u64 {
        match self.get(number) {
            Some(Part::Number(number)) => *number,
            _ => 0,
        }
    }
}

fn message(value: &Bytes) -> Result<Parts, String> {
    if !value.starts_with(HEADER) {
        return Err("its value does not begin as RockLake's do".to_owned());
    }
    let mut rest = value.slice(HEADER.len()..);
    let mut parts = Parts::default();
    let damaged = |error: prost::DecodeError| error.to_string();
    while !rest.is_empty() {
        let (number, wire_type) = decode_key(&mut rest).map_err(damaged)?;
        let part = match wire_type {
            WireType::Varint => Part::Number(decode_varint(&mut rest).map_err(damaged)?),
            WireType::LengthDelimited => {
                let length = decode_varint(&mut rest).map_err(damaged)?;
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                if length > rest.len() {
                    return Err("a field is longer than its record".to_owned());
                }
                Part::Bytes(rest.split_to(length))
            }
            other => {
                skip_field(other, number, &mut rest, DecodeContext::default()).map_err(damaged)?;
                continue;
            }
        };
        parts.0.push((number, part));
    }
    Ok(parts)
}

/// An inlined row: row id, begin, end, and the SQL literal of each user column.
pub(crate) fn inlined_row(value: &Bytes) -> Result<(Vec<Raw>, Vec<Option<String>>), String> {
    let parts = message(value)?;
    let end = match parts.get(6) {
        Some(Part::Number(end)) => Raw::Int(signed(*end)?),
        _ => Raw::Null,
    };
    let system = vec![
        Raw::Int(signed(parts.number(3))?),
        Raw::Int(signed(parts.number(5))?),
        end,
    ];
    let payload = match parts.get(4) {
        Some(Part::Bytes(bytes)) => bytes.clone(),
        _ => Bytes::from_static(b"[]"),
    };
    let literals = serde_json::from_slice(&payload).map_err(|error| error.to_string())?;
    Ok((system, literals))
}

/// A deletion of a row of a data file: file id, row id, begin.
pub(crate) fn inlined_delete(value: &Bytes) -> Result<Vec<Raw>, String> {
    let parts = message(value)?;
    [2, 3, 4]
        .into_iter()
        .map(|number| signed(parts.number(number)).map(Raw::Int))
        .collect()
}

/// The value of a SQL literal, as DuckLake writes them into inlined tables of a Postgres catalog.
pub(crate) fn literal_value(literal: &str, column_type: ColumnType) -> Raw {
    let mut text = literal.trim();
    if text.eq_ignore_ascii_case("null") {
        return Raw::Null;
    }
    if let Some(inner) = strip_cast(text) {
        text = inner;
    }
    let unquoted = text
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
        .map(|inner| inner.replace("''", "'"));
    let plain = unquoted.unwrap_or_else(|| text.to_owned());
    if column_type == ColumnType::Bytes
        && let Some(bytes) = plain.strip_prefix("\\x").and_then(from_hex)
    {
        return Raw::Bytes(bytes);
    }
    Raw::Text(plain)
}

/// The value within `CAST(… AS …)` or before `::`.
fn strip_cast(text: &str) -> Option<&str> {
    let upper = text.to_ascii_uppercase();
    if upper.starts_with("CAST(") && text.ends_with(')') {
        let end = upper.rfind(" AS ")?;
        return text.get("CAST(".len()..end).map(str::trim);
    }
    if text.starts_with('\'') {
        let end = text.rfind('\'')?;
        let after = text.get(end + 1..)?;
        return after
            .trim_start()
            .starts_with("::")
            .then(|| text.get(..=end))
            .flatten();
    }
    None
}

fn from_hex(text: &str) -> Option<Bytes> {
    crate::lake::postgres_text::from_hex(text)
}

#[cfg(test)]
mod tests {
    use super::{Raw, literal_value, row};
    use bytes::Bytes;
    use moraine_tables::{ColumnType, Relation};

    #[test]
    fn literals_are_read_as_ducklake_writes_them() {
        let text = |literal| literal_value(literal, ColumnType::Text);
        assert_eq!(text("NULL"), Raw::Null);
        assert_eq!(text("42"), Raw::Text("42".into()));
        assert_eq!(text("'it''s'"), Raw::Text("it's".into()));
        assert_eq!(
            text("CAST('2024-01-02' AS VARCHAR)"),
            Raw::Text("2024-01-02".into())
        );
        assert_eq!(text("'nan'::DOUBLE"), Raw::Text("nan".into()));
        assert_eq!(
            literal_value("'\\x6869'", ColumnType::Bytes),
            Raw::Bytes(Bytes::from_static(b"hi"))
        );
    }

    #[test]
    fn a_record_is_read_by_its_fields() {
        // SchemaRow: schema_id 7, name "s", begin 3, no end, relative path.
        let mut value = b"\x01SDKV".to_vec();
        value.extend([0x08, 7, 0x12, 1, b's', 0x18, 3, 0x32, 2, b's', b'/', 0x38, 1]);
        let found = row(Relation::Schema, &Bytes::from(value.clone())).unwrap();
        let text = |text: &str| Raw::Text(text.into());
        assert_eq!(
            found,
            [
                Raw::Int(7),
                Raw::Null,
                Raw::Int(3),
                Raw::Null,
                text("s"),
                text("s/"),
                Raw::Int(1)
            ]
        );
        for end in 0..value.len() {
            let _ = row(
                Relation::Schema,
                &Bytes::copy_from_slice(value.get(..end).unwrap()),
            );
        }
        assert!(row(Relation::Schema, &Bytes::from_static(b"SDKV")).is_err());
    }
}
