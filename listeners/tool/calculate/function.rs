//! The operators, functions and constants that an expression may name.

use std::cmp::Ordering;
use std::f64::consts;

use super::number::Number;

/// An operation on the topmost numbers of the stack.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    One(fn(Number) -> Answer),
    Two(fn(Number, Number) -> Answer),
    Many(fn(&[Number]) -> Answer),
}

/// A problem without its column in the expression.
#[derive(Debug)]
pub(super) enum Trouble {
    DivisionByZero,
    Overflow,
    Outside { found: Number, expected: &'static str },
}

type Answer = Result<Number, Trouble>;

/// A function: its name, the minimum and the maximum number of its arguments, and its operation.
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) least: usize,
    pub(super) most: usize,
    pub(super) operation: Operation,
}

impl Function {
    const fn one(name: &'static str, of: fn(Number) -> Answer) -> Function {
        Function { name, least: 1, most: 1, operation: Operation::One(of) }
    }

    const fn two(name: &'static str, of: fn(Number, Number) -> Answer) -> Function {
        Function { name, least: 2, most: 2, operation: Operation::Two(of) }
    }

    const fn many(name: &'static str, most: usize, of: fn(&[Number]) -> Answer) -> Function {
        Function { name, least: 1, most, operation: Operation::Many(of) }
    }

    pub(super) fn takes(&self) -> String {
        let Function { name, least, most, .. } = self;
        match (least, most) {
            (1, 1) => format!("{name} takes one number"),
            (1, 2) => format!("{name} takes one number or two"),
            _ => format!("{name} takes {least} numbers"),
        }
    }
}

pub(super) const ADD: Operation = Operation::Two(|a, b| Ok(a.add(b)));
pub(super) const SUBTRACT: Operation = Operation::Two(|a, b| Ok(a.subtract(b)));
pub(super) const MULTIPLY: Operation = Operation::Two(|a, b| Ok(a.multiply(b)));
pub(super) const DIVIDE: Operation = Operation::Two(|a, b| Ok(a.divide(divisor(b)?)));
pub(super) const REMAIN: Operation = Operation::Two(|a, b| Ok(a.remain(divisor(b)?)));
pub(super) const POWER: Operation = Operation::Two(power);
pub(super) const NEGATE: Operation = Operation::One(|a| Ok(a.negate()));

/// All functions, in the order in which an error lists them.
static FUNCTIONS: [Function; 23] = [
    Function::one("abs", |a| Ok(if is_below_zero(a) { a.negate() } else { a })),
    Function::one("acos", |a| within_one(a).map(rounded(f64::acos))),
    Function::one("asin", |a| within_one(a).map(rounded(f64::asin))),
    Function::one("atan", |a| Ok(rounded(f64::atan)(a))),
    Function::two("atan2", |a, b| Ok(Number::Rounded(a.to_f64().atan2(b.to_f64())))),
    Function::one("cbrt", |a| Ok(rounded(f64::cbrt)(a))),
    Function::one("ceil", |a| Ok(a.to_integer(|n, d| -(-n).div_euclid(d), f64::ceil))),
    Function::one("cos", |a| Ok(rounded(f64::cos)(a))),
    Function::one("exp", |a| Ok(rounded(f64::exp)(a))),
    Function::one("floor", |a| Ok(a.to_integer(i128::div_euclid, f64::floor))),
    Function::one("ln", |a| positive(a).map(rounded(f64::ln))),
    Function::many("log", 2, |all| logarithm(all[0], *all.get(1).unwrap_or(&Number::whole(10)))),
    Function::one("log10", |a| logarithm(a, Number::whole(10))),
    Function::one("log2", |a| logarithm(a, Number::whole(2))),
    Function::many("max", usize::MAX, |all| Ok(most(all, Number::compare))),
    Function::many("min", usize::MAX, |all| Ok(most(all, |a, b| b.compare(a)))),
    Function::two("pow", power),
    Function::many("round", 2, |all| round(all[0], *all.get(1).unwrap_or(&Number::ZERO))),
    Function::one("sign", |a| Ok(sign(a))),
    Function::one("sin", |a| Ok(rounded(f64::sin)(a))),
    Function::one("sqrt", square_root),
    Function::one("tan", |a| Ok(rounded(f64::tan)(a))),
    Function::one("trunc", |a| Ok(a.to_integer(|n, d| n / d, f64::trunc))),
];

/// Returns the function of this name. Case is ignored.
pub(super) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|it| it.name.eq_ignore_ascii_case(name))
}

/// Returns the constant of this name. Case is ignored.
pub(super) fn constant(name: &str) -> Option<Number> {
    let constants = [("pi", consts::PI), ("π", consts::PI), ("e", consts::E)];
    let found = constants.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
    found.map(|(_, value)| Number::Rounded(*value))
}

/// Returns all names of functions and constants, for the error about an unknown name.
pub(super) fn names() -> String {
    let names: Vec<&str> = FUNCTIONS.iter().map(|it| it.name).collect();
    format!("{}, pi, e", names.join(", "))
}

/// Makes a function on numbers from a function on floating-point numbers.
fn rounded(of: fn(f64) -> f64) -> impl Fn(Number) -> Number {
    move |it| Number::Rounded(of(it.to_f64()))
}

fn divisor(number: Number) -> Answer {
    if number.is_zero() { Err(Trouble::DivisionByZero) } else { Ok(number) }
}

fn is_below_zero(number: Number) -> bool {
    number.compare(Number::ZERO).is_lt()
}

fn positive(number: Number) -> Answer {
    let expected = "a number above zero";
    if number.compare(Number::ZERO).is_gt() {
        Ok(number)
    } else {
        Err(Trouble::Outside { found: number, expected })
    }
}

fn within_one(number: Number) -> Answer {
    let expected = "a number from -1 to 1";
    if number.to_f64().abs() <= 1.0 {
        Ok(number)
    } else {
        Err(Trouble::Outside { found: number, expected })
    }
}

fn power(base: Number, exponent: Number) -> Answer {
    if base.is_zero() && is_below_zero(exponent) {
        return Err(Trouble::DivisionByZero);
    }
    let power = base.power(exponent);
    if power.to_f64().is_nan() {
        let expected = "a whole exponent, or a base that is not below zero";
        return Err(Trouble::Outside { found: exponent, expected });
    }
    Ok(power)
}

fn square_root(number: Number) -> Answer {
    if is_below_zero(number) {
        return Err(Trouble::Outside {
            found: number,
            expected: "a number that is not below zero",
        });
    }
    let root = number.to_f64().sqrt();
    Ok(exactly(root, |root| root.multiply(root), number))
}

/// Returns the logarithm of `number` to `base`. If both are exact and the logarithm is an integer,
/// the result is exact, too.
fn logarithm(number: Number, base: Number) -> Answer {
    let (number, base) = (positive(number)?, positive(base)?);
    if base.compare(Number::whole(1)).is_eq() {
        return Err(Trouble::Outside { found: base, expected: "a base other than 1" });
    }
    let logarithm = match base.integer() {
        Some(2) => number.to_f64().log2(),
        Some(10) => number.to_f64().log10(),
        _ => number.to_f64().ln() / base.to_f64().ln(),
    };
    Ok(exactly(logarithm, |exponent| base.power(exponent), number))
}

/// Returns the integer nearest to `guess` if `back` maps this integer exactly to `to`. Otherwise
/// returns `guess` itself.
fn exactly(guess: f64, back: impl Fn(Number) -> Number, to: Number) -> Number {
    let whole = Number::read(&format!("{:.0}", guess.abs()));
    let whole = whole.map(|it| if guess < 0.0 { it.negate() } else { it });
    let same = |it: &Number| match (back(*it), to) {
        (back @ Number::Exact(_), Number::Exact(_)) => back.compare(to).is_eq(),
        _ => false,
    };
    whole.filter(same).unwrap_or(Number::Rounded(guess))
}

/// Rounds a number to `digits` digits after the point. Halves are rounded away from zero.
fn round(number: Number, digits: Number) -> Answer {
    let shift = match digits.integer() {
        Some(digits @ -30..=30) => Number::whole(10).power(Number::whole(digits)),
        _ => {
            return Err(Trouble::Outside {
                found: digits,
                expected: "whole digits, from -30 to 30",
            });
        }
    };
    let half = |n: i128, d: i128| {
        let up = (n % d).unsigned_abs() * 2 >= d.unsigned_abs();
        n / d + if up { n.signum() } else { 0 }
    };
    let shifted = number.multiply(shift);
    if !shifted.is_finite() {
        return Ok(number);
    }
    Ok(shifted.to_integer(half, f64::round).divide(shift))
}

fn sign(number: Number) -> Number {
    match number.compare(Number::ZERO) {
        Ordering::Less => Number::whole(-1),
        Ordering::Equal => Number::ZERO,
        Ordering::Greater => Number::whole(1),
    }
}

/// Returns the greatest number by `order`.
fn most(all: &[Number], order: fn(Number, Number) -> Ordering) -> Number {
    all.iter()
        .copied()
        .reduce(|a, b| if order(b, a).is_gt() { b } else { a })
        .unwrap_or(Number::ZERO)
}
