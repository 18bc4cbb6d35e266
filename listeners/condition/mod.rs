//! The conditions of triggers, workflow steps and actions, such as `metadata.status == "CODING"`.
//!
//! ```
//! # extern crate pumphouse_listeners as pumphouse;
//! use pumphouse::listeners::condition::{Condition, Type};
//! use serde_json::json;
//!
//! let condition = Condition::parse("metadata.status in ['CODING', 'TESTING']")?;
//! // What is known of the values before there are any.
//! let status = Type::one_of(["IDLE", "CODING", "TESTING"]);
//! let known = Type::record([("metadata", Type::record([("status", status)]))]);
//! condition.check(&known)?;
//!
//! let values = json!({"metadata": {"status": "CODING"}});
//! let verdict = condition.evaluate(&|reference| reference.within(&values).cloned());
//! assert!(verdict.holds);
//! assert_eq!(verdict.saw, [("metadata.status".to_owned(), json!("CODING"))]);
//!
//! let wrong = Condition::parse("metadata.status == 'COMPILING'")?.check(&known);
//! assert!(wrong.unwrap_err().to_string().contains("one of IDLE, CODING, TESTING"));
//! # Ok::<(), pumphouse::listeners::condition::WrongCondition>(())
//! ```
//!
//! A condition is a text ([`Condition::parse`]) or a pattern of fields ([`Condition::matching`]).
//! Both are read into the same kind of expression. [`Condition::check`] compares a condition with
//! the types of its values, before the values are known. [`Condition::evaluate`] depends on the
//! given values only, not on a clock or the log. `docs/conditions.md` is the manual.

mod expression;
mod types;
mod token;
mod parse;
mod pattern;
#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::Value;

use self::expression::Expression;
pub use self::expression::Reference;
pub use self::types::Type;

/// The maximum length of a condition's text, in bytes.
pub const CONDITION_BYTES_MAX: usize = 4096;

/// The maximum nesting depth of parentheses, lists, patterns and `not`s.
pub const CONDITION_DEPTH_MAX: usize = 32;

/// A condition whose syntax is valid. Only [`Condition::check`] compares its references with types.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    root: Expression,
}

/// Whether a condition holds, and why.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Verdict {
    /// Whether the condition holds.
    pub holds: bool,
    /// The condition's references without `${` and `}`, each once, with the values that they had. A
    /// reference that leads to nothing has the value null.
    pub saw: Vec<(String, Value)>,
}

impl Verdict {
    /// The verdict if there is no condition: it holds, and `saw` has this value under this name.
    #[must_use]
    pub fn without_condition(name: &str, value: &Value) -> Verdict {
        Verdict { holds: true, saw: vec![(name.to_owned(), value.clone())] }
    }
}

/// The reason why a condition can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrongCondition {
    /// The byte offset in the condition's text. 0 for a mistake in a pattern.
    pub at: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl WrongCondition {
    fn new(at: usize, message: impl Into<String>) -> WrongCondition {
        WrongCondition { at, message: message.into() }
    }
}

impl fmt::Display for WrongCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            0 => f.write_str(&self.message),
            at => write!(f, "byte {}: {}", at + 1, self.message),
        }
    }
}

impl std::error::Error for WrongCondition {}

impl Condition {
    /// Reads a condition from its text.
    ///
    /// # Errors
    /// Fails, with the place of the mistake, if the text isn't a condition, has more than
    /// [`CONDITION_BYTES_MAX`] bytes, or nests deeper than [`CONDITION_DEPTH_MAX`].
    pub fn parse(text: &str) -> Result<Condition, WrongCondition> {
        parse::expression(text).map(|root| Condition { root })
    }

    /// Makes a condition from a pattern, the form of the `conditions` of a trigger. Each key is a
    /// field below `path`, and its value says what the field must be.
    ///
    /// ```
    /// # extern crate pumphouse_listeners as pumphouse;
    /// use pumphouse::listeners::condition::Condition;
    /// use serde_json::json;
    ///
    /// let pattern = json!({"context": {"phase": "testing"}, "status": ["CODING", "TESTING"]});
    /// let condition = Condition::matching(&pattern, "metadata", true)?;
    /// let status = "metadata.status in ['CODING', 'TESTING']";
    /// let text = format!("metadata.context.phase == 'testing' and {status}");
    /// assert_eq!(condition.to_string(), Condition::parse(&text)?.to_string());
    /// # Ok::<(), pumphouse::listeners::condition::WrongCondition>(())
    /// ```
    ///
    /// A scalar must be equal to the field's value. A list has alternatives. A map is a pattern of
    /// the field's own fields; fields that the map doesn't name may have any value. The keys `all`,
    /// `any` and `not` combine patterns, but within the map of a field they are names of fields.
    /// Each of the combined patterns may be the text of a condition instead of a map, and so may
    /// `pattern` itself. With `is_all` every key of `pattern` must match, otherwise one is enough.
    ///
    /// # Errors
    /// Fails if the pattern is empty, can't be read, has a part that can't match, or nests too
    /// deeply.
    pub fn matching(
        pattern: &Value,
        path: &str,
        is_all: bool,
    ) -> Result<Condition, WrongCondition> {
        pattern::expression(pattern, path, is_all).map(|root| Condition { root })
    }

    /// Compares the condition with the types of the values that it will see.
    ///
    /// # Errors
    /// Fails, with the place, if a reference leads to nothing, if two values can't be compared or
    /// can never be equal, or if the condition is neither true nor false.
    pub fn check(&self, known: &Type) -> Result<(), WrongCondition> {
        types::check(&self.root, known)
    }

    /// Evaluates the condition. `value` returns the value of a reference.
    pub fn evaluate(&self, value: &dyn Fn(&Reference) -> Option<Value>) -> Verdict {
        let mut values: Vec<(&Reference, Value)> = Vec::new();
        for reference in self.references() {
            if !values.iter().any(|(it, _)| it.leads_where(reference)) {
                values.push((reference, value(reference).unwrap_or_default()));
            }
        }
        let seen = |reference: &Reference| {
            let found = values.iter().find(|(it, _)| it.leads_where(reference));
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let holds = self.root.value(&seen) == Value::Bool(true);
        let saw = values.into_iter().map(|(it, value)| (it.to_string(), value)).collect();
        Verdict { holds, saw }
    }

    /// The references in the condition, in their order.
    #[must_use]
    pub fn references(&self) -> Vec<&Reference> {
        let mut found = Vec::new();
        self.root.references(&mut found);
        found
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.fmt(f)
    }
}
