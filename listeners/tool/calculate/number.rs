//! Numbers: fractions of 128-bit integers, or floating-point numbers if a fraction would be too
//! large.

use std::cmp::Ordering;
use std::fmt;

/// The maximum number of digits after the point with which a fraction is written exactly.
const EXACT_DIGITS_MAX: u32 = 30;

#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Exact(Fraction),
    Rounded(f64),
}

/// The fraction `over / under` in lowest terms. `under` is above zero. `over` is above `i128::MIN`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fraction {
    over: i128,
    under: i128,
}

impl Number {
    pub(super) const ZERO: Number = Number::whole(0);

    pub(super) const fn whole(number: i128) -> Number {
        Number::Exact(Fraction { over: number, under: 1 })
    }

    /// Reads a decimal number, such as `4.2e-3`. Returns `None` if the number is too large even for
    /// floating point.
    pub(super) fn read(text: &str) -> Option<Number> {
        let exact = Fraction::read(text).map(Number::Exact);
        let number = exact.or_else(|| text.parse().ok().map(Number::Rounded))?;
        number.is_finite().then_some(number)
    }

    pub(super) fn to_f64(self) -> f64 {
        match self {
            Number::Exact(it) => it.to_f64(),
            Number::Rounded(it) => it,
        }
    }

    /// Returns the number as an `i128`. Returns `None` for a floating-point number, and for a
    /// fraction that isn't an integer.
    pub(super) fn integer(self) -> Option<i128> {
        match self {
            Number::Exact(Fraction { over, under: 1 }) => Some(over),
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
        self.both(other, Fraction::add, |a, b| a + b)
    }

    pub(super) fn subtract(self, other: Number) -> Number {
        self.add(other.negate())
    }

    pub(super) fn multiply(self, other: Number) -> Number {
        self.both(other, Fraction::multiply, |a, b| a * b)
    }

    /// Returns the quotient of this number and `other`. `other` must not be zero.
    pub(super) fn divide(self, other: Number) -> Number {
        self.both(other, |a, b| a.multiply(b.inverse()?), |a, b| a / b)
    }

    /// Returns the remainder of this number divided by `other`. `other` must not be zero.
    pub(super) fn remain(self, other: Number) -> Number {
        self.both(other, Fraction::remain, |a, b| a % b)
    }

    /// Raises this number to a power. If this number is zero, the exponent must not be below zero.
    pub(super) fn power(self, exponent: Number) -> Number {
        let exact = |base: Fraction, it: Fraction| match it {
            Fraction { over, under: 1 } => base.power(over),
            _ => None,
        };
        self.both(exponent, exact, f64::powf)
    }

    pub(super) fn negate(self) -> Number {
        match self {
            Number::Exact(Fraction { over, under }) => {
                Number::Exact(Fraction { over: -over, under })
            }
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
            Number::Exact(fraction) => {
                Number::Exact(Fraction { over: exact(fraction.over, fraction.under), under: 1 })
            }
            Number::Rounded(it) => Number::Rounded(rounded(it)),
        }
    }

    pub(super) fn compare(self, other: Number) -> Ordering {
        if let (Number::Exact(a), Number::Exact(b)) = (self, other) {
            let sides = a.over.checked_mul(b.under).zip(b.over.checked_mul(a.under));
            if let Some((left, right)) = sides {
                return left.cmp(&right);
            }
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
            && let Some(sum) = exact(a, b)
        {
            return Number::Exact(sum);
        }
        Number::Rounded(rounded(self.to_f64(), other.to_f64()))
    }
}

impl Fraction {
    const ONE: Fraction = Fraction { over: 1, under: 1 };

    /// Makes the fraction `over / under` in lowest terms. Returns `None` if an argument is
    /// `i128::MIN`. `under` must not be zero.
    fn new(over: i128, under: i128) -> Option<Fraction> {
        if over == i128::MIN || under == i128::MIN {
            return None;
        }
        let common = gcd(over, under) * under.signum();
        Some(Fraction { over: over / common, under: under / common })
    }

    fn read(text: &str) -> Option<Fraction> {
        let (text, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let part = part.trim_end_matches('0');
        let digits = format!("0{whole}{part}").parse().ok()?;
        let exponent =
            exponent.parse::<i32>().ok()?.checked_sub(i32::try_from(part.len()).ok()?)?;
        let ten = 10_i128.checked_pow(exponent.unsigned_abs())?;
        if exponent < 0 {
            Fraction::new(digits, ten)
        } else {
            Fraction::new(digits.checked_mul(ten)?, 1)
        }
    }

    /// Converts the fraction to floating point. The result may be rounded.
    fn to_f64(self) -> f64 {
        self.over as f64 / self.under as f64
    }

    fn add(self, other: Fraction) -> Option<Fraction> {
        let common = gcd(self.under, other.under);
        let (left, right) = (other.under / common, self.under / common);
        let over = self.over.checked_mul(left)?.checked_add(other.over.checked_mul(right)?)?;
        Fraction::new(over, self.under.checked_mul(left)?)
    }

    fn multiply(self, other: Fraction) -> Option<Fraction> {
        let (left, right) = (gcd(self.over, other.under), gcd(other.over, self.under));
        let over = (self.over / left).checked_mul(other.over / right)?;
        Fraction::new(over, (self.under / right).checked_mul(other.under / left)?)
    }

    fn inverse(self) -> Option<Fraction> {
        Fraction::new(self.under, self.over)
    }

    fn remain(self, other: Fraction) -> Option<Fraction> {
        let left = self.over.checked_mul(other.under)?;
        let right = other.over.checked_mul(self.under)?;
        Fraction::new(left.checked_rem(right)?, self.under.checked_mul(other.under)?)
    }

    fn power(self, exponent: i128) -> Option<Fraction> {
        let mut base = if exponent < 0 { self.inverse()? } else { self };
        let (mut left, mut power) = (exponent.unsigned_abs(), Fraction::ONE);
        loop {
            if left & 1 == 1 {
                power = power.multiply(base)?;
            }
            left >>= 1;
            if left == 0 {
                return Some(power);
            }
            base = base.multiply(base)?;
        }
    }

    /// Returns the fraction as a decimal number. Returns `None` if the number would have too many
    /// digits.
    fn decimal(self) -> Option<String> {
        let (mut ten, mut digits) = (1_i128, 0);
        while ten % self.under != 0 {
            if digits == EXACT_DIGITS_MAX {
                return None;
            }
            (ten, digits) = (ten * 10, digits + 1);
        }
        let shifted = self.over.checked_mul(ten / self.under)?;
        let sign = if shifted < 0 { "-" } else { "" };
        let text = format!("{:0>1$}", shifted.unsigned_abs(), digits as usize + 1);
        let (whole, part) = text.split_at(text.len() - digits as usize);
        let point = if part.is_empty() { "" } else { "." };
        Some(format!("{sign}{whole}{point}{part}"))
    }
}

/// Returns the greatest common divisor, or 1 if both numbers are zero. Neither may be `i128::MIN`.
fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Number::Exact(value) = self
            && let Some(text) = value.decimal()
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
