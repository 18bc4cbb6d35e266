//! The listener `calculate`: works out arithmetic, exactly where possible.
//!
//! `<expression>6*7</expression>` gives `<value>42</value>`.
//!
//! | | |
//! | --- | --- |
//! | numbers | `42`, `4.2`, `.5`, `4.2e-3` |
//! | operators, loosest first | `+ -`, then `* / %`, then a sign, then `^` |
//! | also understood | `**` for `^`, `×` and `÷`, `−` for `-`, `π` for `pi` |
//! | constants | `pi`, `e` |
//! | of one number | `abs sign sqrt cbrt exp ln log2 log10 floor ceil trunc` |
//! | in radians | `sin cos tan asin acos atan` and `atan2(y, x)` |
//! | of several | `min(…)`, `max(…)`, `pow(x, y)` |
//! | of one or two | `round(x)`, `round(x, digits)`, `log(x)`, `log(x, base)` |
//!
//! `^` groups from the right and binds tighter than a sign: `2^3^2` is 512, and `-2^2` is -4. `%`
//! is the remainder, which has the sign of the left side: `-7 % 3` is -1. `log(x)` is the logarithm
//! to the base 10. `round` rounds halves away from zero.
//!
//! A number is a fraction of two 128-bit integers as long as the fraction fits. With such numbers,
//! `+ - * / %`, `^` with a whole exponent, `abs`, `sign`, `min`, `max` and the roundings are exact:
//! `0.1 + 0.2` is 0.3, and `1/3*3` is 1. A square root or a logarithm of such numbers is exact if
//! the result is an integer. All other results are 64-bit floating-point numbers.
//!
//! A value is written exactly if 30 digits after the point, and 38 digits in all, suffice.
//! Otherwise it has just enough digits to tell the floating-point number from its neighbours. A
//! number that is too small for floating point becomes zero. A number that is too large is an
//! overflow.
//!
//! An expression has at most 4,096 bytes and 64 levels of nesting.

mod number;
mod function;
mod parse;
mod evaluate;
#[cfg(test)]
mod tests;

use pumphouse::listener::Effects;
use pumphouse::prelude::*;

/// Works out an arithmetic expression, such as 6*7 or sqrt(2)^2.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/calculate/v1")]
pub struct Calculate {
    /// Numbers, + - * / % ^, parentheses, functions such as sqrt(2), and the constants pi and e.
    #[payload(example = "6*7")]
    pub expression: String,
}

/// The value of an expression.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/calculate/v1")]
pub struct Calculated {
    /// A decimal number, such as 42, -0.5 or 1.6e300.
    #[payload(example = "42")]
    pub value: String,
}

/// Why an expression has no value, and where.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/calculate/v1")]
pub enum Problem {
    /// Something is divided by zero.
    DivisionByZero {
        /// The character of the expression, counted from 1.
        column: u32,
    },
    /// A value is too large.
    Overflow {
        /// The character of the expression, counted from 1.
        column: u32,
    },
    /// The expression is malformed.
    Nonsense {
        /// The character of the expression, counted from 1.
        column: u32,
        /// What stands there.
        found: String,
        /// What is expected there.
        expected: String,
    },
}

/// Makes the listener `calculate`.
#[must_use]
pub fn calculate() -> Listener {
    Listener::new("calculate")
        .on(answer)
        .inline()
        .pure()
        .idempotent()
        .effects(Effects::None)
        .describe("Works out arithmetic, exactly where it can.")
}

async fn answer(Calculate { expression }: Calculate) -> Result<Calculated, Problem> {
    evaluate(&expression).map(|value| Calculated { value })
}

/// Works out an expression.
///
/// ```
/// use pumphouse::listeners::tool::calculate::{Problem, evaluate};
/// assert_eq!(evaluate("6 * 7"), Ok("42".to_owned()));
/// assert_eq!(evaluate("1 / 0"), Err(Problem::DivisionByZero { column: 3 }));
/// ```
///
/// # Errors
/// Returns the first syntax error of the expression. If the syntax is right, returns the first
/// problem in the calculation.
pub fn evaluate(expression: &str) -> Result<String, Problem> {
    let program = parse::parse(expression)?;
    Ok(evaluate::run(&program)?.to_string())
}
