//! Patterns of fields, the form of the `conditions` of a trigger.

use serde_json::{Map, Value};

use super::expression::{Expression, Operator, PathStep, Reference};
use super::parse::{one_or, reference, too_deep};
use super::{CONDITION_DEPTH_MAX, Condition, WrongCondition};

/// The keys that combine patterns.
const ALL: &str = "all";
const ANY: &str = "any";
const NOT: &str = "not";

/// Makes an expression from a pattern whose keys are fields below `path`.
pub(super) fn expression(
    pattern: &Value,
    path: &str,
    is_all: bool,
) -> Result<Expression, WrongCondition> {
    let root = reference(path, 0)?;
    one(pattern, &root, is_all, 0)
}

/// Reads a pattern: a map of fields, or the text of a condition.
fn one(
    pattern: &Value,
    root: &Reference,
    is_all: bool,
    depth: usize,
) -> Result<Expression, WrongCondition> {
    match pattern {
        Value::String(text) => Condition::parse(text).map(|it| it.root),
        Value::Object(fields) => map(fields, root, is_all, depth, true),
        other => {
            let message =
                format!("a pattern is a map of fields or a condition's text, not {other}");
            Err(WrongCondition::new(0, message))
        }
    }
}

/// Reads a map of fields. With `is_top`, the keys `all`, `any` and `not` combine patterns.
fn map(
    fields: &Map<String, Value>,
    root: &Reference,
    is_all: bool,
    depth: usize,
    is_top: bool,
) -> Result<Expression, WrongCondition> {
    if depth == CONDITION_DEPTH_MAX {
        return Err(too_deep(0));
    }
    if fields.is_empty() {
        let message = format!("the pattern of `{root}` is empty, so it says nothing");
        return Err(WrongCondition::new(0, message));
    }
    let part = |(name, value): (&String, &Value)| match &**name {
        ALL if is_top => {
            let parts = several(name, value, root, depth)?;
            Ok(one_or(parts, Expression::All))
        }
        ANY if is_top => {
            let parts = several(name, value, root, depth)?;
            Ok(one_or(parts, Expression::Any))
        }
        NOT if is_top => {
            let part = one(value, root, true, depth + 1)?;
            Ok(Expression::Not(Box::new(part)))
        }
        _ => {
            let mut below = root.clone();
            below.path.push(PathStep::Field(name.clone()));
            field(value, below, depth)
        }
    };
    let parts: Result<Vec<Expression>, WrongCondition> = fields.iter().map(part).collect();
    Ok(one_or(parts?, if is_all { Expression::All } else { Expression::Any }))
}

/// Reads the patterns in the list under `all` or `any`.
fn several(
    key: &str,
    value: &Value,
    root: &Reference,
    depth: usize,
) -> Result<Vec<Expression>, WrongCondition> {
    match value.as_array().map(Vec::as_slice) {
        Some([]) | None => {
            let message =
                format!("`{key}` has a list of patterns, as in `{key}: [{{status: IDLE}}]`");
            Err(WrongCondition::new(0, message))
        }
        Some(patterns) => patterns.iter().map(|it| one(it, root, true, depth + 1)).collect(),
    }
}

/// Reads the pattern of one field.
fn field(value: &Value, at: Reference, depth: usize) -> Result<Expression, WrongCondition> {
    match value {
        Value::Object(fields) => map(fields, &at, true, depth + 1, false),
        Value::Array(alternatives) => alternative(alternatives, &at, depth),
        scalar => {
            let (at, value) = (Expression::Reference(at), Expression::Literal(scalar.clone()));
            Ok(Expression::compare(at, Operator::Equal, value))
        }
    }
}

/// Reads the alternatives of one field. The field may be equal to one of the scalars and lists, or
/// match one of the maps.
fn alternative(
    alternatives: &[Value],
    at: &Reference,
    depth: usize,
) -> Result<Expression, WrongCondition> {
    if alternatives.is_empty() {
        let message = format!("`{at}` has no alternatives, so it never matches");
        return Err(WrongCondition::new(0, message));
    }
    let (maps, plain): (Vec<&Value>, Vec<&Value>) =
        alternatives.iter().partition(|it| it.is_object());
    let mut parts = Vec::new();
    if !plain.is_empty() {
        let list = plain.into_iter().cloned().map(Expression::Literal).collect();
        let reference = Expression::Reference(at.clone());
        parts.push(Expression::compare(reference, Operator::In, Expression::List(list)));
    }
    for fields in maps.into_iter().filter_map(Value::as_object) {
        parts.push(map(fields, at, true, depth + 1, false)?);
    }
    Ok(one_or(parts, Expression::Any))
}
