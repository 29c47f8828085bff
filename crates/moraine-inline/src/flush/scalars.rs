//! Scalar columns: from the Arrow types in which chunks may hold them, and from DuckDB's text, to the type that is written.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, FixedSizeBinaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, StringArray};
use arrow_schema::{DataType, IntervalUnit, TimeUnit as ArrowUnit};

use crate::flush::column::{Kind, TimeUnit};
use crate::flush::convert::{Refusal, UNREADABLE};
use crate::text;

/// The greatest integer of 38 digits, and the least's negation.
const WIDE_MAX: i128 = 10_i128.pow(38) - 1;
const DAY_MICROS: i64 = 86_400_000_000;
const OUT_OF_WIDE: &str = "has more than the 38 digits that Parquet holds";
const OUT_OF_MICROSECONDS: &str = "is out of the range of microseconds";
const INEXACT_INTERVAL: &str =
    "has a negative part or a fraction of a millisecond, which Parquet's intervals do not have";
/// DuckDB packs a time with zone as microseconds in the upper 40 bits, and this less the offset in seconds in the lower 24.
const TIME_TZ_OFFSET_MAX: i64 = 16 * 3600 - 1;

/// The column's values as text, if chunks hold them so.
pub(super) fn texts(array: &ArrayRef) -> Option<Box<dyn Iterator<Item = Option<&str>> + '_>> {
    Some(match array.data_type() {
        DataType::Utf8 => Box::new(array.as_string::<i32>().iter()),
        DataType::LargeUtf8 => Box::new(array.as_string::<i64>().iter()),
        DataType::Utf8View => Box::new(array.as_string_view().iter()),
        _ => return None,
    })
}

fn blobs(array: &ArrayRef) -> Option<Box<dyn Iterator<Item = Option<&[u8]>> + '_>> {
    Some(match array.data_type() {
        DataType::Binary => Box::new(array.as_binary::<i32>().iter()),
        DataType::LargeBinary => Box::new(array.as_binary::<i64>().iter()),
        DataType::BinaryView => Box::new(array.as_binary_view().iter()),
        _ => return None,
    })
}

/// The column as it is written.
pub(super) fn convert(kind: Kind, array: &ArrayRef) -> Result<ArrayRef, Refusal> {
    let stored = array.data_type();
    if *stored == kind.data_type() && kind != Kind::Interval && kind != Kind::Wide {
        return match kind {
            Kind::TimestampSeconds => Err(Refusal::Type),
            _ => Ok(Arc::clone(array)),
        };
    }
    if let Some(texts) = texts(array) {
        return parse(kind, texts);
    }
    match (kind, stored) {
        (Kind::Blob | Kind::Geometry, _) => {
            let blobs = blobs(array).ok_or(Refusal::Type)?;
            let mut built = BinaryBuilder::new();
            blobs.for_each(|blob| built.append_option(blob));
            Ok(Arc::new(built.finish()))
        }
        (Kind::Timestamp { unit, utc: true }, DataType::Timestamp(stored, Some(_)))
            if *stored == unit.arrow() =>
        {
            let micros = array.as_primitive::<TimestampMicrosecondType>().clone();
            Ok(Arc::new(micros.with_timezone("UTC")))
        }
        (Kind::TimestampSeconds, DataType::Timestamp(ArrowUnit::Second, None)) => seconds(array),
        (Kind::Decimal { scale, .. }, DataType::Decimal32(_, stored))
            if i16::from(*stored) == i16::from(scale) =>
        {
            decimals(
                kind,
                array
                    .as_primitive::<Decimal32Type>()
                    .iter()
                    .map(|value| value.map(i128::from)),
            )
        }
        (Kind::Decimal { scale, .. }, DataType::Decimal64(_, stored))
            if i16::from(*stored) == i16::from(scale) =>
        {
            decimals(
                kind,
                array
                    .as_primitive::<Decimal64Type>()
                    .iter()
                    .map(|value| value.map(i128::from)),
            )
        }
        (Kind::Wide, _) => wide(array),
        (Kind::Interval, DataType::Interval(IntervalUnit::MonthDayNano)) => {
            let values = array.as_primitive::<IntervalMonthDayNanoType>();
            intervals(values.iter().map(|value| {
                let Some(value) = value else {
                    return Ok(None);
                };
                let micros = value.nanoseconds / 1_000;
                if micros * 1_000 != value.nanoseconds {
                    return Err(Refusal::value(&format!("{value:?}"), INEXACT_INTERVAL));
                }
                Ok(Some((value.months, value.days, micros)))
            }))
        }
        (Kind::TimeTz, DataType::UInt64) => {
            let packed = array.as_primitive::<UInt64Type>().iter();
            let times = packed.map(|packed| packed.map(unpack_time_tz));
            Ok(Arc::new(times.collect::<PrimitiveArray<Time64MicrosecondType>>()))
        }
        _ => Err(Refusal::Type),
    }
}

/// The column of values given as DuckDB's text, or as DuckLake's clients send it.
pub(super) fn parse<'t>(
    kind: Kind,
    texts: impl Iterator<Item = Option<&'t str>>,
) -> Result<ArrayRef, Refusal> {
    match kind {
        Kind::Boolean => {
            let values = texts.map(|text| text.map(|text| read(text, text.parse::<bool>().ok())).transpose());
            Ok(Arc::new(values.collect::<Result<BooleanArray, _>>()?))
        }
        Kind::Text | Kind::Json => Ok(Arc::new(texts.collect::<StringArray>())),
        Kind::Signed(8) => primitive::<Int8Type>(kind, texts, canonical),
        Kind::Signed(16) => primitive::<Int16Type>(kind, texts, canonical),
        Kind::Signed(32) => primitive::<Int32Type>(kind, texts, canonical),
        Kind::Signed(_) => primitive::<Int64Type>(kind, texts, canonical),
        Kind::Unsigned(8) => primitive::<UInt8Type>(kind, texts, canonical),
        Kind::Unsigned(16) => primitive::<UInt16Type>(kind, texts, canonical),
        Kind::Unsigned(32) => primitive::<UInt32Type>(kind, texts, canonical),
        Kind::Unsigned(_) => primitive::<UInt64Type>(kind, texts, canonical),
        Kind::Float => primitive::<Float32Type>(kind, texts, |text| text.parse().ok()),
        Kind::Double => primitive::<Float64Type>(kind, texts, |text| text.parse().ok()),
        Kind::Decimal { precision, scale } => primitive::<Decimal128Type>(kind, texts, |text| {
            let limit = 10_i128.checked_pow(precision.into())?;
            text::parse_decimal(text, scale).filter(|value| (-limit..limit).contains(value))
        }),
        Kind::Wide => {
            let values = texts.map(|text| {
                let value = text.map(|text| read(text, text::parse_wide(text))).transpose()?;
                value.map(narrow).transpose()
            });
            decimals(kind, values.collect::<Result<Vec<_>, _>>()?.into_iter())
        }
        Kind::Blob => {
            let mut built = BinaryBuilder::new();
            for text in texts {
                built.append_option(text.map(|text| read(text, text::parse_blob(text))).transpose()?);
            }
            Ok(Arc::new(built.finish()))
        }
        Kind::Geometry => Err(Refusal::Type),
        Kind::Uuid => fixed(
            16,
            texts.map(|text| text.map(|text| read(text, text::parse_uuid(text))).transpose()),
        ),
        Kind::Interval => intervals(texts.map(|text| {
            let either =
                |text: &str| text::parse_interval(text).or_else(|| text::parse_displayed_interval(text));
            text.map(|text| read(text, either(text))).transpose()
        })),
        temporal => parse_temporal(temporal, texts),
    }
}

fn parse_temporal<'t>(kind: Kind, texts: impl Iterator<Item = Option<&'t str>>) -> Result<ArrayRef, Refusal> {
    match kind {
        Kind::Date => primitive::<Date32Type>(kind, texts, text::parse_date),
        Kind::Time => primitive::<Time64MicrosecondType>(kind, texts, text::parse_time),
        Kind::TimeTz => primitive::<Time64MicrosecondType>(kind, texts, |text| {
            let (micros, offset_seconds) = text::parse_time_tz(text)?;
            Some(in_utc(micros, offset_seconds.into()))
        }),
        Kind::TimestampSeconds => primitive::<TimestampMicrosecondType>(kind, texts, |text| {
            text::parse_timestamp(text, text::TimeUnit::Second)?.checked_mul(1_000_000)
        }),
        Kind::Timestamp { utc: true, .. } => {
            primitive::<TimestampMicrosecondType>(kind, texts, text::parse_timestamp_at_offset)
        }
        Kind::Timestamp { unit, .. } => {
            let parse = |text: &str| text::parse_timestamp(text, unit.text());
            match unit {
                TimeUnit::Millisecond => primitive::<TimestampMillisecondType>(kind, texts, parse),
                TimeUnit::Microsecond => primitive::<TimestampMicrosecondType>(kind, texts, parse),
                TimeUnit::Nanosecond => primitive::<TimestampNanosecondType>(kind, texts, parse),
            }
        }
        Kind::TimeNs => primitive::<Time64NanosecondType>(kind, texts, |_| None),
        _ => Err(Refusal::Type),
    }
}

/// Whether a column of floating point numbers holds a NaN.
pub(super) fn has_nan(array: &ArrayRef) -> bool {
    if let Some(floats) = array.as_primitive_opt::<Float32Type>() {
        return floats.iter().flatten().any(f32::is_nan);
    }
    let doubles = array.as_primitive_opt::<Float64Type>();
    doubles.is_some_and(|doubles| doubles.iter().flatten().any(f64::is_nan))
}

fn read<T>(text: &str, value: Option<T>) -> Result<T, Refusal> {
    value.ok_or_else(|| Refusal::value(text, UNREADABLE))
}

/// An integer that is written the way it was read.
fn canonical<T: std::str::FromStr + ToString>(text: &str) -> Option<T> {
    let value: T = text.parse().ok()?;
    (value.to_string() == text).then_some(value)
}

fn primitive<'t, T: ArrowPrimitiveType>(
    kind: Kind,
    texts: impl Iterator<Item = Option<&'t str>>,
    parse: impl Fn(&str) -> Option<T::Native>,
) -> Result<ArrayRef, Refusal> {
    let values = texts.map(|text| text.map(|text| read(text, parse(text))).transpose());
    let array = values.collect::<Result<PrimitiveArray<T>, _>>()?;
    Ok(Arc::new(array.with_data_type(kind.data_type())))
}

fn decimals(kind: Kind, values: impl Iterator<Item = Option<i128>>) -> Result<ArrayRef, Refusal> {
    let array: PrimitiveArray<Decimal128Type> = values.collect();
    Ok(Arc::new(array.with_data_type(kind.data_type())))
}

fn narrow(value: arrow_buffer::i256) -> Result<i128, Refusal> {
    let narrow = value
        .to_i128()
        .filter(|value| (-WIDE_MAX..=WIDE_MAX).contains(value));
    narrow.ok_or_else(|| Refusal::value(&value.to_string(), OUT_OF_WIDE))
}

fn wide(array: &ArrayRef) -> Result<ArrayRef, Refusal> {
    match array.data_type() {
        DataType::Decimal128(_, 0) => decimals(Kind::Wide, array.as_primitive::<Decimal128Type>().iter()),
        DataType::Decimal256(_, 0) => {
            let values = array.as_primitive::<Decimal256Type>().iter();
            let values = values.map(|value| value.map(narrow).transpose());
            decimals(Kind::Wide, values.collect::<Result<Vec<_>, _>>()?.into_iter())
        }
        _ => Err(Refusal::Type),
    }
}

fn seconds(array: &ArrayRef) -> Result<ArrayRef, Refusal> {
    let micros = |second: i64| {
        let micros = second.checked_mul(1_000_000);
        micros.ok_or_else(|| {
            let shown = text::render_timestamp(second, text::TimeUnit::Second);
            Refusal::value(&shown, OUT_OF_MICROSECONDS)
        })
    };
    let seconds = array.as_primitive::<TimestampSecondType>().iter();
    let micros = seconds.map(|second| second.map(micros).transpose());
    Ok(Arc::new(
        micros.collect::<Result<PrimitiveArray<TimestampMicrosecondType>, _>>()?,
    ))
}

fn in_utc(micros: i64, offset_seconds: i64) -> i64 {
    (micros - offset_seconds * 1_000_000).rem_euclid(DAY_MICROS)
}

fn unpack_time_tz(packed: u64) -> i64 {
    let micros = (packed >> 24).cast_signed();
    let offset = TIME_TZ_OFFSET_MAX - (packed & 0xff_ffff).cast_signed();
    in_utc(micros, offset)
}

/// Parquet's intervals: months, days and milliseconds, each unsigned and little-endian.
fn intervals(
    values: impl Iterator<Item = Result<Option<(i32, i32, i64)>, Refusal>>,
) -> Result<ArrayRef, Refusal> {
    let encoded = values.map(|value| {
        let Some((months, days, micros)) = value? else {
            return Ok(None);
        };
        let parts = || {
            let millis = u32::try_from(micros / 1_000)
                .ok()
                .filter(|_| micros % 1_000 == 0)?;
            Some([u32::try_from(months).ok()?, u32::try_from(days).ok()?, millis])
        };
        let Some([months, days, millis]) = parts() else {
            let shown = text::render_interval(months, days, micros);
            return Err(Refusal::value(&shown, INEXACT_INTERVAL));
        };
        let mut bytes = [0; 12];
        for (place, part) in bytes.chunks_exact_mut(4).zip([months, days, millis]) {
            place.copy_from_slice(&part.to_le_bytes());
        }
        Ok(Some(bytes))
    });
    fixed(12, encoded)
}

fn fixed<const N: usize>(
    width: i32,
    values: impl Iterator<Item = Result<Option<[u8; N]>, Refusal>>,
) -> Result<ArrayRef, Refusal> {
    let mut built = FixedSizeBinaryBuilder::new(width);
    for value in values {
        match value? {
            Some(bytes) => built.append_value(bytes).map_err(|_| Refusal::Type)?,
            None => built.append_null(),
        }
    }
    Ok(Arc::new(built.finish()))
}
