//! The listener `calculate`: works out arithmetic, exactly where possible.
//!
//! `<expression>6*7</expression>` gives `<value>42</value>`. `values` gives numbers names, by which
//! the expression uses them: `{"expression": "2*a", "values": {"a": 21}}`.
//!
//! | | |
//! | --- | --- |
//! | numbers | `42`, `4.2`, `.5`, `4.2e-3` |
//! | operators, loosest first | `+ -`, then `* / %`, then a sign, then `^` |
//! | also understood | `**` for `^`, `×` and `÷`, `−` for `-`, `π` for `pi` |
//! | constants | `pi`, `e` |
//! | functions of one number | `abs sign sqrt cbrt exp ln log2 log10 floor ceil trunc` |
//! | trigonometry, in radians | `sin cos tan asin acos atan` and `atan2(y, x)` |
//! | functions of several numbers | `min(…)`, `max(…)`, `pow(x, y)` |
//! | functions of one number or two | `round(x)`, `round(x, digits)`, `log(x)`, `log(x, base)` |
//!
//! `^` groups from the right and binds tighter than a sign: `2^3^2` is 512, and `-2^2` is -4. `%`
//! is the remainder, which has the sign of the left side: `-7 % 3` is -1. `log(x)` is the logarithm
//! to the base 10. `round` rounds halves away from zero.
//!
//! A number is a fraction of two integers, as long as both fit into 128 bits. With such fractions,
//! `+ - * / %`, `^` with a whole exponent, `abs`, `sign`, `min`, `max` and the roundings are exact
//! if the result fits, too: `0.1 + 0.2` is 0.3, and `1/3*3` is 1. `sqrt`, `log`, `log2` and `log10`
//! of fractions are exact if the result is an integer below 2^53. All other results are 64-bit
//! floating-point numbers.
//!
//! A fraction is written exactly if it has at most 30 digits after the point, and if all its digits
//! fit into a 128-bit integer. Any other value is written as a floating-point number, with just
//! enough digits to tell it from its neighbours. A number that is too small for floating point
//! becomes zero. A number that is too large is an overflow.
//!
//! An expression has at most 4,096 bytes and 64 levels of nesting.

mod number;
mod function;
mod values;
mod parse;
mod evaluate;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use pumphouse::listener::Effects;
use pumphouse::prelude::*;
use pumphouse::wire::Json;

use values::Values;

/// Works out an arithmetic expression, such as 6*7 or sqrt(2)^2.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/calculate/v1")]
pub struct Calculate {
    /// Numbers, + - * / % ^, parentheses, functions such as sqrt(2), and the constants pi and e.
    #[payload(example = "6*7")]
    pub expression: String,
    /// Numbers by the names that stand for them in the expression, such as {"a": 21} for 2*a.
    #[payload(no_example)]
    pub values: Option<BTreeMap<String, Json>>,
}

impl Calculate {
    /// Returns the request for an expression without named values.
    #[must_use]
    pub fn new(expression: impl Into<String>) -> Calculate {
        Calculate { expression: expression.into(), values: None }
    }
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
        /// The position of the operator or function, in characters, counted from 1.
        column: u32,
    },
    /// A value is too large.
    Overflow {
        /// The position of the number, operator or function, in characters, counted from 1.
        column: u32,
    },
    /// The expression is malformed, or a function doesn't take this number.
    Nonsense {
        /// The position of the problem, in characters, counted from 1.
        column: u32,
        /// The wrong text or number.
        found: String,
        /// What is expected instead.
        expected: String,
    },
    /// One of the named values is no number, or has a name that it can't have.
    Value {
        /// The name.
        name: String,
        /// The wrong value or name.
        found: String,
        /// What is expected instead.
        expected: String,
    },
}

/// Makes the listener `calculate`.
#[must_use]
pub fn calculate() -> Listener {
    Listener::new("calculate")
        .on(answer)
        .reaction()
        .effects(Effects::None)
        .describe("Works out arithmetic, exactly where it can.")
}

async fn answer(Calculate { expression, values }: Calculate) -> Result<Calculated, Problem> {
    let values = values::read(&values.unwrap_or_default())?;
    let program = parse::parse(&expression, &values)?;
    Ok(Calculated { value: evaluate::run(&program)?.to_string() })
}

/// Works out an expression.
///
/// ```
/// # extern crate pumphouse_tools as pumphouse;
/// use pumphouse::listeners::tool::calculate::{Problem, evaluate};
/// assert_eq!(evaluate("6 * 7"), Ok("42".to_owned()));
/// assert_eq!(evaluate("1 / 0"), Err(Problem::DivisionByZero { column: 3 }));
/// ```
///
/// # Errors
/// Returns the first syntax error of the expression. If the syntax is right, returns the first
/// problem in the calculation.
pub fn evaluate(expression: &str) -> Result<String, Problem> {
    let program = parse::parse(expression, &Values::new())?;
    Ok(evaluate::run(&program)?.to_string())
}
