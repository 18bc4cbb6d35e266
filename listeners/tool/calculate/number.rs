//! Numbers: fractions of 128-bit integers, or floating-point numbers if a fraction would be too
//! large.

use std::cmp::Ordering;
use std::fmt;

use num_rational::Ratio;
use num_traits::{CheckedAdd, CheckedDiv, CheckedMul, CheckedSub, checked_pow};

/// The maximum number of digits after the point with which a fraction is written exactly.
const EXACT_DIGITS_MAX: u32 = 30;

/// A fraction in lowest terms. Neither of its parts is `i128::MIN`, so both can be negated.
type Fraction = Ratio<i128>;

#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Exact(Fraction),
    Rounded(f64),
}

impl Number {
    pub(super) const ZERO: Number = Number::whole(0);

    pub(super) const fn whole(number: i128) -> Number {
        Number::Exact(Fraction::new_raw(number, 1))
    }

    /// Reads a decimal number, such as `4.2e-3`. Returns `None` if the number is too large even for
    /// floating point.
    pub(super) fn read(text: &str) -> Option<Number> {
        let exact = read(text).and_then(negatable).map(Number::Exact);
        let number = exact.or_else(|| text.parse().ok().map(Number::Rounded))?;
        number.is_finite().then_some(number)
    }

    pub(super) fn to_f64(self) -> f64 {
        match self {
            Number::Exact(it) => *it.numer() as f64 / *it.denom() as f64,
            Number::Rounded(it) => it,
        }
    }

    /// Returns the number as an `i128`. Returns `None` for a floating-point number, and for a
    /// fraction that isn't an integer.
    pub(super) fn integer(self) -> Option<i128> {
        match self {
            Number::Exact(it) if it.is_integer() => Some(*it.numer()),
            _ => None,
        }
    }

    pub(super) fn is_finite(self) -> bool {
        matches!(self, Number::Exact(_)) || self.to_f64().is_finite()
    }

    pub(super) fn is_zero(self) -> bool {
        self.compare(Number::ZERO).is_eq()
    }

    pub(super) fn add(self, other: Number) -> Number {
        self.both(other, |a, b| a.checked_add(&b), |a, b| a + b)
    }

    pub(super) fn subtract(self, other: Number) -> Number {
        self.add(other.negate())
    }

    pub(super) fn multiply(self, other: Number) -> Number {
        self.both(other, |a, b| a.checked_mul(&b), |a, b| a * b)
    }

    /// Returns the quotient of this number and `other`. `other` must not be zero.
    pub(super) fn divide(self, other: Number) -> Number {
        self.both(other, |a, b| a.checked_div(&b), |a, b| a / b)
    }

    /// Returns the remainder of this number divided by `other`. `other` must not be zero.
    pub(super) fn remain(self, other: Number) -> Number {
        let exact = |a: Fraction, b: Fraction| {
            let whole = a.checked_div(&b)?.trunc();
            a.checked_sub(&whole.checked_mul(&b)?)
        };
        self.both(other, exact, |a, b| a % b)
    }

    /// Raises this number to a power. If this number is zero, the exponent must not be below zero.
    pub(super) fn power(self, exponent: Number) -> Number {
        let exact = |base: Fraction, exponent: Fraction| {
            let times = exponent.is_integer().then(|| exponent.numer().unsigned_abs())?;
            // Beyond `usize`, only powers of 0, 1 and -1 fit, and for -1 it matters whether the
            // exponent is even.
            let times = usize::try_from(times).unwrap_or(if times % 2 == 0 {
                usize::MAX - 1
            } else {
                usize::MAX
            });
            let power = checked_pow(base, times)?;
            if *exponent.numer() < 0 { Fraction::ONE.checked_div(&power) } else { Some(power) }
        };
        self.both(exponent, exact, f64::powf)
    }

    pub(super) fn negate(self) -> Number {
        match self {
            Number::Exact(it) => Number::Exact(-it),
            Number::Rounded(it) => Number::Rounded(-it),
        }
    }

    /// Rounds to an integer. `exact` rounds a fraction, and `rounded` a floating-point number.
    pub(super) fn to_integer(
        self,
        exact: fn(i128, i128) -> i128,
        rounded: fn(f64) -> f64,
    ) -> Number {
        match self {
            Number::Exact(it) => Number::whole(exact(*it.numer(), *it.denom())),
            Number::Rounded(it) => Number::Rounded(rounded(it)),
        }
    }

    pub(super) fn compare(self, other: Number) -> Ordering {
        if let (Number::Exact(a), Number::Exact(b)) = (self, other) {
            return a.cmp(&b);
        }
        // Adding zero turns -0 into 0.
        (self.to_f64() + 0.0).total_cmp(&(other.to_f64() + 0.0))
    }

    /// Calculates exactly if both numbers are exact and the result fits into a fraction. Otherwise
    /// calculates in floating point.
    fn both(
        self,
        other: Number,
        exact: impl Fn(Fraction, Fraction) -> Option<Fraction>,
        rounded: impl Fn(f64, f64) -> f64,
    ) -> Number {
        if let (Number::Exact(a), Number::Exact(b)) = (self, other)
            && let Some(result) = exact(a, b).and_then(negatable)
        {
            return Number::Exact(result);
        }
        Number::Rounded(rounded(self.to_f64(), other.to_f64()))
    }
}

/// The fraction, unless one of its parts is `i128::MIN`.
fn negatable(it: Fraction) -> Option<Fraction> {
    (*it.numer() != i128::MIN && *it.denom() != i128::MIN).then_some(it)
}

/// Reads a decimal number. Returns `None` if a part of the fraction would be too large.
fn read(text: &str) -> Option<Fraction> {
    let (text, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part = part.trim_end_matches('0');
    let digits = format!("0{whole}{part}").parse().ok()?;
    let exponent = exponent.parse::<i32>().ok()?.checked_sub(i32::try_from(part.len()).ok()?)?;
    let ten = 10_i128.checked_pow(exponent.unsigned_abs())?;
    if exponent < 0 {
        Some(Fraction::new(digits, ten))
    } else {
        Some(Fraction::from_integer(digits.checked_mul(ten)?))
    }
}

/// Returns the fraction as a decimal number. Returns `None` if the number would have too many
/// digits.
fn decimal(number: Fraction) -> Option<String> {
    let (over, under) = number.into_raw();
    let (mut ten, mut digits) = (1_i128, 0);
    while ten % under != 0 {
        if digits == EXACT_DIGITS_MAX {
            return None;
        }
        (ten, digits) = (ten * 10, digits + 1);
    }
    let shifted = over.checked_mul(ten / under)?;
    let sign = if shifted < 0 { "-" } else { "" };
    let text = format!("{:0>1$}", shifted.unsigned_abs(), digits as usize + 1);
    let (whole, part) = text.split_at(text.len() - digits as usize);
    let point = if part.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{point}{part}"))
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Number::Exact(value) = self
            && let Some(text) = decimal(*value)
        {
            return f.write_str(&text);
        }
        let number = self.to_f64() + 0.0;
        if number != 0.0 && !(1e-7..1e21).contains(&number.abs()) {
            return write!(f, "{number:e}");
        }
        write!(f, "{number}")
    }
}

/// Returns the length in bytes of the number with which `text` begins. An exponent counts only if
/// it has digits.
pub(super) fn number_length(text: &str) -> usize {
    let digits =
        |from: usize| text.as_bytes()[from..].iter().take_while(|it| it.is_ascii_digit()).count();
    let mut length = digits(0);
    if text[length..].starts_with('.') {
        length += 1 + digits(length + 1);
    }
    let is_number = length > 1 || !text.starts_with('.');
    if is_number && let Some(exponent) = text[length..].strip_prefix(['e', 'E']) {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let digits = digits(length + 1 + sign);
        length += if digits > 0 { 1 + sign + digits } else { 0 };
    }
    length
}
