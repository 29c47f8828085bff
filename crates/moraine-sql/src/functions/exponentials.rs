//! Roots, powers and logarithms of exact numbers, exact to more digits than Postgres shows of them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Decimal256Type};
use arrow_array::{Array, ArrayRef, Decimal256Array};
use arrow_buffer::i256;
use arrow_schema::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::evaluation::Evaluation;
use crate::error::{InputError, QueryError};
use crate::quotient::{rounded, ten_to, too_large};
use crate::significance::{Origin, decimal_exponent};
use crate::types::NUMERIC_PRECISION;

type Calculated<T> = std::result::Result<T, QueryError>;

/// Digits after the point while a result is found.
const PLACES: i8 = 36;
/// The natural logarithms of 2 and of 10, with so many digits.
const LN_2: i128 = 693_147_180_559_945_309_417_232_121_458_176_568;
const LN_10: i128 = 2_302_585_092_994_045_684_017_991_454_684_364_208;
/// Whole exponents up to this are multiplied out while the digits fit.
const MULTIPLIED_MAX: u32 = 256;

/// A function of one or two exact numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Exponential {
    SquareRoot,
    PowerOfE,
    NaturalLogarithm,
    /// To the base 10.
    DecimalLogarithm,
    /// Of the last number, to the base of the first.
    Logarithm,
    /// `whole` says that every exponent is.
    Power {
        whole: bool,
    },
}

impl Exponential {
    fn origin(self) -> Origin {
        match self {
            Self::SquareRoot => Origin::Root,
            Self::PowerOfE | Self::Power { whole: false } => Origin::Power,
            Self::Power { whole: true } | Self::Logarithm => Origin::WholePower,
            Self::NaturalLogarithm => Origin::Logarithm,
            Self::DecimalLogarithm => Origin::DecimalLogarithm,
        }
    }
}

/// The function over exact numbers.
pub(crate) fn exact(exponential: Exponential) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(ExactFunction {
        name: format!("{exponential:?}").to_lowercase(),
        exponential,
        signature: Signature::variadic_any(Volatility::Immutable),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ExactFunction {
    name: String,
    exponential: Exponential,
    signature: Signature,
}

impl ScalarUDFImpl for ExactFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Decimal256(
            NUMERIC_PRECISION,
            self.exponential.origin().scale(),
        ))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let evaluation = Evaluation::of(&args);
        let rows = evaluation.rows;
        let operands = args.args.iter().map(|argument| {
            let exact = match argument.data_type() {
                decimal @ (DataType::Decimal128(..) | DataType::Decimal256(..)) => decimal,
                _ => DataType::Decimal128(20, 0),
            };
            argument.cast_to(&exact, None)?.into_array(rows)
        });
        let operands: Vec<ArrayRef> = operands.collect::<Result<_>>()?;
        let mut results = Vec::with_capacity(rows);
        for row in 0..rows {
            let numbers: Option<Vec<Exact>> = operands.iter().map(|operand| number(operand, row)).collect();
            results.push(match numbers {
                Some(numbers) => Some(self.of(&numbers).map_err(QueryError::wrapped)?),
                None => None,
            });
        }
        let scale = self.exponential.origin().scale();
        let array = Decimal256Array::from(results).with_precision_and_scale(NUMERIC_PRECISION, scale)?;
        let array: ArrayRef = Arc::new(array);
        evaluation.result(array)
    }
}

impl ExactFunction {
    fn of(&self, numbers: &[Exact]) -> Calculated<i256> {
        let scale = self.exponential.origin().scale();
        match (self.exponential, numbers) {
            (Exponential::SquareRoot, [number]) => square_root(*number, scale),
            (Exponential::PowerOfE, [number]) => exponential(number.places(PLACES)?, scale),
            (Exponential::NaturalLogarithm, [number]) => at(logarithm(*number)?, PLACES, scale),
            (Exponential::DecimalLogarithm, [number]) => {
                at(over(logarithm(*number)?, i256::from_i128(LN_10))?, PLACES, scale)
            }
            (Exponential::Logarithm, [base, number]) => {
                let (number, base) = (logarithm(*number)?, logarithm(*base)?);
                at(over(number, base)?, PLACES, scale)
            }
            (Exponential::Power { .. }, [base, exponent]) => power(*base, *exponent, scale),
            _ => Err(QueryError::UndefinedFunction {
                name: format!("{} with {} arguments", self.name, numbers.len()),
            }),
        }
    }
}

/// A number: digits, and how many of them stand after the point.
#[derive(Clone, Copy)]
struct Exact {
    unscaled: i256,
    scale: i8,
}

impl Exact {
    fn places(self, scale: i8) -> Calculated<i256> {
        at(self.unscaled, self.scale, scale)
    }

    fn is_zero(self) -> bool {
        self.unscaled == i256::ZERO
    }

    /// The whole number this is.
    fn whole(self) -> Option<i256> {
        let one = ten_to(u32::try_from(self.scale).ok()?)?;
        (self.unscaled.wrapping_rem(one) == i256::ZERO).then(|| self.unscaled.wrapping_div(one))
    }
}

fn number(array: &ArrayRef, row: usize) -> Option<Exact> {
    if array.is_null(row) {
        return None;
    }
    match array.data_type() {
        DataType::Decimal128(_, scale) => Some(Exact {
            unscaled: i256::from_i128(array.as_primitive::<Decimal128Type>().value(row)),
            scale: *scale,
        }),
        DataType::Decimal256(_, scale) => Some(Exact {
            unscaled: array.as_primitive::<Decimal256Type>().value(row),
            scale: *scale,
        }),
        _ => None,
    }
}

/// Digits with another number of them after the point.
fn at(unscaled: i256, from: i8, into: i8) -> Calculated<i256> {
    let shift = i32::from(into) - i32::from(from);
    let power = ten_to(shift.unsigned_abs()).ok_or_else(too_large)?;
    let moved = if shift >= 0 {
        unscaled.checked_mul(power)
    } else {
        rounded(unscaled, power)
    };
    moved.ok_or_else(too_large)
}

fn one() -> Calculated<i256> {
    ten_to(PLACES.unsigned_abs().into()).ok_or_else(too_large)
}

fn times(left: i256, right: i256) -> Calculated<i256> {
    let product = left.checked_mul(right).ok_or_else(too_large)?;
    rounded(product, one()?).ok_or_else(too_large)
}

fn over(dividend: i256, divisor: i256) -> Calculated<i256> {
    if divisor == i256::ZERO {
        return Err(QueryError::DivisionByZero);
    }
    let dividend = dividend.checked_mul(one()?).ok_or_else(too_large)?;
    rounded(dividend, divisor).ok_or_else(too_large)
}

fn whole_root(square: i256) -> i256 {
    let two = i256::from_i128(2);
    let digits = u32::try_from(square.to_string().len()).unwrap_or(u32::MAX);
    let mut root = ten_to(digits.div_ceil(2)).unwrap_or(square);
    loop {
        let better = root.wrapping_add(square.wrapping_div(root)).wrapping_div(two);
        if better >= root {
            return root;
        }
        root = better;
    }
}

fn square_root(number: Exact, scale: i8) -> Calculated<i256> {
    if number.unscaled.is_negative() {
        return Err(InputError::Power {
            detail: "cannot take square root of a negative number".to_owned(),
        }
        .into());
    }
    if number.is_zero() {
        return Ok(i256::ZERO);
    }
    // As many digits as leave the square one that can be held.
    let digits = i32::try_from(number.unscaled.to_string().len()).unwrap_or(i32::MAX);
    let spare = i32::from(NUMERIC_PRECISION) - 1 - digits;
    let places = ((spare + i32::from(number.scale)) / 2).clamp(0, i32::from(scale));
    let places = i8::try_from(places).unwrap_or(scale);
    let square = at(number.unscaled, number.scale, places.saturating_mul(2))?;
    at(whole_root(square), places, scale)
}

/// The natural logarithm, with [`PLACES`] digits after the point.
fn logarithm(number: Exact) -> Calculated<i256> {
    let undefined = |what: &str| InputError::Logarithm {
        detail: format!("cannot take logarithm of {what}"),
    };
    if number.is_zero() {
        return Err(undefined("zero").into());
    }
    if number.unscaled.is_negative() {
        return Err(undefined("a negative number").into());
    }
    let tens = decimal_exponent(number.unscaled, number.scale).unwrap_or(0);
    let digits = i32::from(number.scale) + tens;
    let mut mantissa = at(
        number.unscaled,
        i8::try_from(digits).map_err(|_| too_large())?,
        PLACES,
    )?;
    let one = one()?;
    let two = i256::from_i128(2);
    let limit = at(i256::from_i128(14), 1, PLACES)?;
    let mut halved = 0_i128;
    while mantissa > limit {
        mantissa = mantissa.wrapping_div(two);
        halved += 1;
    }
    // ln(m) = 2 artanh((m - 1) / (m + 1))
    let small = over(mantissa.wrapping_sub(one), mantissa.wrapping_add(one))?;
    let square = times(small, small)?;
    let (mut term, mut sum, mut odd) = (small, small, 1_i128);
    while term != i256::ZERO {
        term = times(term, square)?;
        odd += 2;
        sum = sum.wrapping_add(term.wrapping_div(i256::from_i128(odd)));
    }
    let of = |times: i128, constant: i128| i256::from_i128(constant).checked_mul(i256::from_i128(times));
    let twos = of(halved, LN_2).ok_or_else(too_large)?;
    let tens = of(i128::from(tens), LN_10).ok_or_else(too_large)?;
    Ok(sum.wrapping_mul(two).wrapping_add(twos).wrapping_add(tens))
}

/// e to a power of [`PLACES`] digits after the point.
fn exponential(power: i256, scale: i8) -> Calculated<i256> {
    let ln_10 = i256::from_i128(LN_10);
    let tens = rounded(power, ln_10).ok_or_else(too_large)?;
    let rest = power.wrapping_sub(tens.wrapping_mul(ln_10));
    let tens = tens
        .to_i128()
        .and_then(|tens| i8::try_from(tens).ok())
        .filter(|tens| *tens < PLACES + 3);
    let Some(tens) = tens else {
        return if power.is_negative() {
            Ok(i256::ZERO)
        } else {
            Err(too_large())
        };
    };
    let one = one()?;
    let (mut term, mut sum, mut count) = (one, one, 1_i128);
    while term != i256::ZERO {
        term = times(term, rest)?.wrapping_div(i256::from_i128(count));
        sum = sum.wrapping_add(term);
        count += 1;
    }
    // Below any digit that is shown there is nothing.
    let places = i16::from(PLACES) - i16::from(tens);
    match i8::try_from(places) {
        Ok(places) if places < PLACES * 2 => at(sum, places, scale),
        _ => Ok(i256::ZERO),
    }
}

fn power(base: Exact, exponent: Exact, scale: i8) -> Calculated<i256> {
    let undefined = |detail: &str| InputError::Power {
        detail: detail.to_owned(),
    };
    if exponent.is_zero() {
        return at(i256::ONE, 0, scale);
    }
    if base.is_zero() {
        return if exponent.unscaled.is_negative() {
            Err(undefined("zero raised to a negative power is undefined").into())
        } else {
            Ok(i256::ZERO)
        };
    }
    let whole = exponent.whole();
    if let Some(times) = whole.and_then(i256::to_i128)
        && let Ok(count) = u32::try_from(times.unsigned_abs())
        && count <= MULTIPLIED_MAX
        && let Some(product) = multiplied(base, count)
    {
        if times > 0 {
            return product.places(scale);
        }
        let reciprocal =
            ten_to(u32::try_from(i32::from(scale) + i32::from(product.scale)).unwrap_or(u32::MAX));
        if let Some(result) = reciprocal.and_then(|one| rounded(one, product.unscaled)) {
            return Ok(result);
        }
    }
    let negative = base.unscaled.is_negative();
    let Some(odd) = whole.map(|whole| whole.wrapping_rem(i256::from_i128(2)) != i256::ZERO) else {
        if negative {
            let detail = "a negative number raised to a non-integer power yields a complex result";
            return Err(undefined(detail).into());
        }
        return exponential(times(logarithm(base)?, exponent.places(PLACES)?)?, scale);
    };
    let magnitude = Exact {
        unscaled: base.unscaled.wrapping_abs(),
        ..base
    };
    let result = exponential(times(logarithm(magnitude)?, exponent.places(PLACES)?)?, scale)?;
    Ok(if negative && odd {
        result.wrapping_neg()
    } else {
        result
    })
}

/// A number multiplied with itself; `None` when the digits do not fit.
fn multiplied(base: Exact, count: u32) -> Option<Exact> {
    let mut product = Exact {
        unscaled: i256::ONE,
        scale: 0,
    };
    for _ in 0..count {
        product = Exact {
            unscaled: product.unscaled.checked_mul(base.unscaled)?,
            scale: product.scale.checked_add(base.scale)?,
        };
    }
    Some(product)
}
