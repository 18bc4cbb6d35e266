//! The expression tree of a condition, and its evaluation.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Literal(Value),
    Reference(Reference),
    /// A list of expressions, as on the right of `in`.
    List(Vec<Expression>),
    Not(Box<Expression>),
    /// Whether every part holds.
    All(Vec<Expression>),
    /// Whether at least one part holds.
    Any(Vec<Expression>),
    Compare(Box<Comparison>),
}

/// A comparison of two expressions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparison {
    pub(super) left: Expression,
    pub(super) operator: Operator,
    pub(super) right: Expression,
    /// The place of the operator in the condition's text.
    pub(super) at: usize,
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
}

/// A reference to a value: a name, and a path from there.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    pub(super) name: String,
    pub(super) path: Vec<PathStep>,
    /// The place in the condition's text.
    pub(super) at: usize,
}

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathStep {
    Field(String),
    Item(usize),
}

impl Operator {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Operator::Equal => "==",
            Operator::Unequal => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::In => "in",
            Operator::NotIn => "not in",
        }
    }

    /// Whether the comparison holds. `is_written` says whether the condition itself has the text of
    /// a side.
    fn holds(self, left: &Value, right: &Value, is_written: bool) -> bool {
        let is_order = |wanted: fn(Ordering) -> bool| {
            let numbers = Number::of(left).zip(Number::of(right)).filter(|_| !is_written);
            let found = match numbers {
                Some((left, right)) => left.order(right),
                None => order(left, right),
            };
            found.is_some_and(wanted)
        };
        match self {
            Operator::Equal => is_equal(left, right),
            Operator::Unequal => !is_equal(left, right),
            Operator::Less => is_order(Ordering::is_lt),
            Operator::LessOrEqual => is_order(Ordering::is_le),
            Operator::Greater => is_order(Ordering::is_gt),
            Operator::GreaterOrEqual => is_order(Ordering::is_ge),
            Operator::In => is_in(left, right),
            Operator::NotIn => !is_in(left, right),
        }
    }
}

impl Expression {
    pub(super) fn compare(left: Expression, operator: Operator, right: Expression) -> Expression {
        Expression::Compare(Box::new(Comparison { left, operator, right, at: 0 }))
    }

    /// Evaluates the expression. `seen` returns the value of a reference.
    pub(super) fn value(&self, seen: &dyn Fn(&Reference) -> Value) -> Value {
        let is_true = |it: &Expression| it.value(seen) == Value::Bool(true);
        match self {
            Expression::Literal(value) => value.clone(),
            Expression::Reference(reference) => seen(reference),
            Expression::List(items) => items.iter().map(|it| it.value(seen)).collect(),
            Expression::Not(part) => Value::Bool(!is_true(part)),
            Expression::All(parts) => Value::Bool(parts.iter().all(is_true)),
            Expression::Any(parts) => Value::Bool(parts.iter().any(is_true)),
            Expression::Compare(it) => {
                let is_written = it.left.is_written_text() || it.right.is_written_text();
                let (left, right) = (it.left.value(seen), it.right.value(seen));
                Value::Bool(it.operator.holds(&left, &right, is_written))
            }
        }
    }

    /// Whether the expression is a text in quotes.
    fn is_written_text(&self) -> bool {
        matches!(self, Expression::Literal(Value::String(_)))
    }

    pub(super) fn references<'a>(&'a self, found: &mut Vec<&'a Reference>) {
        match self {
            Expression::Literal(_) => {}
            Expression::Reference(reference) => found.push(reference),
            Expression::Not(part) => part.references(found),
            Expression::List(parts) | Expression::All(parts) | Expression::Any(parts) => {
                parts.iter().for_each(|it| it.references(found));
            }
            Expression::Compare(it) => {
                it.left.references(found);
                it.right.references(found);
            }
        }
    }
}

impl Reference {
    /// The first name: `steps` in `steps.fetch.title`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The steps of the path after the name: `fetch` and `title` in `steps.fetch.title`.
    pub fn path(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.path.iter().map(|step| match step {
            PathStep::Field(name) => Cow::Borrowed(&**name),
            PathStep::Item(number) => Cow::Owned(number.to_string()),
        })
    }

    /// The value that the reference leads to. `values` is an object whose properties are the names
    /// that references begin with. A number in the path is the place of a list's item, or the name
    /// of a map's field.
    #[must_use]
    pub fn within<'a>(&self, values: &'a Value) -> Option<&'a Value> {
        let root = values.get(&self.name)?;
        self.path.iter().try_fold(root, |value, step| match step {
            PathStep::Field(name) => value.get(name),
            PathStep::Item(number) => value.get(number).or_else(|| value.get(number.to_string())),
        })
    }

    /// Whether this reference and `other` have the same name and path. References with the same
    /// written form may differ, since a pattern may name a field such as `a.b`.
    pub(super) fn leads_where(&self, other: &Reference) -> bool {
        self.name == other.name && self.path == other.path
    }
}

/// Whether two values are equal. Numbers are compared by value, so 1 and 1.0 are equal. A text that
/// reads as a number is equal to this number. Two texts are equal only if they are the same.
fn is_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(_), Value::Number(_) | Value::String(_))
        | (Value::String(_), Value::Number(_)) => order(left, right) == Some(Ordering::Equal),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(a, b)| is_equal(a, b))
        }
        (Value::Object(left), Value::Object(right)) => {
            let is_same = |(name, value): (&String, &Value)| {
                right.get(name).is_some_and(|it| is_equal(value, it))
            };
            left.len() == right.len() && left.iter().all(is_same)
        }
        _ => left == right,
    }
}

/// The order of two texts, or of two values of which at least one is a number and the other reads
/// as a number. None for anything else.
fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => Number::of(left)?.order(Number::of(right)?),
    }
}

/// A number, exact if it is whole.
#[derive(Clone, Copy)]
enum Number {
    Whole(i128),
    Float(f64),
}

impl Number {
    /// The number of a value. A text counts if it reads as a number of JSON, since many tools
    /// answer a number as a text.
    fn of(value: &Value) -> Option<Number> {
        let (text, number) = match value {
            Value::Number(number) => (number.to_string(), number.clone()),
            Value::String(text) => (text.trim().to_owned(), text.trim().parse().ok()?),
            _ => return None,
        };
        Some(text.parse().map_or(Number::Float(number.as_f64()?), Number::Whole))
    }

    #[expect(clippy::cast_precision_loss, reason = "the other number is no more precise")]
    fn as_float(self) -> f64 {
        match self {
            Number::Whole(it) => it as f64,
            Number::Float(it) => it,
        }
    }

    fn order(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Whole(one), Number::Whole(two)) => Some(one.cmp(&two)),
            (one, two) => one.as_float().partial_cmp(&two.as_float()),
        }
    }
}

/// Whether a list has an item that is equal to `item`. False if `list` isn't a list.
fn is_in(item: &Value, list: &Value) -> bool {
    list.as_array().is_some_and(|list| list.iter().any(|it| is_equal(item, it)))
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for step in &self.path {
            match step {
                PathStep::Field(name) => write!(f, ".{name}")?,
                PathStep::Item(number) => write!(f, "[{number}]")?,
            }
        }
        Ok(())
    }
}

/// Writes the expression as the text of a condition. The text can't be parsed if it comes from a
/// pattern with a field such as `my key`, since a text can't name such a field.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, parts: &[Expression], word: &str| {
            for (number, part) in parts.iter().enumerate() {
                if number > 0 {
                    write!(f, " {word} ")?;
                }
                part.write_operand(f)?;
            }
            Ok(())
        };
        match self {
            Expression::Literal(value) => write!(f, "{value}"),
            Expression::Reference(reference) => reference.fmt(f),
            Expression::List(items) => {
                f.write_str("[")?;
                for (number, item) in items.iter().enumerate() {
                    let comma = if number > 0 { ", " } else { "" };
                    write!(f, "{comma}{item}")?;
                }
                f.write_str("]")
            }
            Expression::Not(part) => {
                f.write_str("not ")?;
                part.write_operand(f)
            }
            Expression::All(parts) => joined(f, parts, "and"),
            Expression::Any(parts) => joined(f, parts, "or"),
            Expression::Compare(it) => {
                it.left.write_operand(f)?;
                write!(f, " {} ", it.operator.as_str())?;
                it.right.write_operand(f)
            }
        }
    }
}

impl Expression {
    /// Writes the expression as a part of another one, in parentheses if it has operators.
    fn write_operand(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expression::Literal(_) | Expression::Reference(_) | Expression::List(_) => {
                write!(f, "{self}")
            }
            _ => write!(f, "({self})"),
        }
    }
}
