//! What is known of the types of values before a condition is evaluated, and the check of a
//! condition against these types.

use std::collections::BTreeMap;
use std::fmt;

use pumphouse::schema::nearest;
use serde_json::Value;

use super::super::metadata::{Fields, Kind};
use super::WrongCondition;
use super::expression::{Comparison, Expression, Operator, PathStep, Reference};

/// The maximum number of texts that a message lists in full.
const LISTED_MAX: usize = 12;
/// The number of texts that a message shows if there are more than `LISTED_MAX`.
const SHOWN: usize = 3;

/// The type of a value.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Type {
    /// Nothing is known of the value.
    #[default]
    Any,
    /// The literal `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A number.
    Number,
    /// A text.
    Text,
    /// One of these texts.
    OneOf(Vec<String>),
    /// A list. Nothing is known of its items.
    List,
    /// A map whose fields aren't known.
    Map,
    /// A map with exactly these fields, some of which may have no value.
    Record(BTreeMap<String, Type>),
}

impl Type {
    /// Makes the type of values that are one of these texts.
    #[must_use]
    pub fn one_of<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Type {
        Type::OneOf(texts.into_iter().map(Into::into).collect())
    }

    /// Makes the type of maps with exactly these fields.
    #[must_use]
    pub fn record<N: Into<String>>(fields: impl IntoIterator<Item = (N, Type)>) -> Type {
        Type::Record(fields.into_iter().map(|(name, it)| (name.into(), it)).collect())
    }

    /// The type of the values that a JSON Schema allows. Only its `type`, `enum` and `properties`
    /// are read.
    #[must_use]
    pub fn of_json_schema(schema: &Value) -> Type {
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let texts: Option<Vec<&str>> = values.iter().map(Value::as_str).collect();
            return texts.map_or(Type::Any, Type::one_of);
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("string") => Type::Text,
            Some("number" | "integer") => Type::Number,
            Some("boolean") => Type::Boolean,
            Some("array") => Type::List,
            Some("object") => match schema.get("properties").and_then(Value::as_object) {
                Some(fields) => Type::record(
                    fields.iter().map(|(name, it)| (&**name, Type::of_json_schema(it))),
                ),
                None => Type::Map,
            },
            _ => Type::Any,
        }
    }

    fn of(value: &Value) -> Type {
        match value {
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Boolean,
            Value::Number(_) => Type::Number,
            Value::String(text) => Type::OneOf(vec![text.clone()]),
            Value::Array(_) => Type::List,
            Value::Object(_) => Type::Map,
        }
    }

    fn is_text(&self) -> bool {
        matches!(self, Type::Text | Type::OneOf(_))
    }

    fn is_map(&self) -> bool {
        matches!(self, Type::Map | Type::Record(_))
    }

    /// The type of an agent's metadata with these fields.
    #[must_use]
    pub fn of_metadata(fields: &Fields) -> Type {
        let each = fields.all().map(|it| {
            let kind = match it.kind() {
                Kind::Enum(values) => Type::one_of(values.iter().cloned()),
                Kind::String => Type::Text,
                Kind::Number => Type::Number,
                Kind::Boolean => Type::Boolean,
                Kind::Object => Type::Map,
                Kind::Array => Type::List,
            };
            (it.name().to_owned(), kind)
        });
        Type::record(each)
    }

    /// Whether a value of this type can be equal to a value of the other type. A field without a
    /// value is null, so null can be equal to a value of any type.
    fn overlaps(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::Any | Type::Null, _) | (_, Type::Any | Type::Null) => true,
            (Type::OneOf(these), Type::OneOf(those)) => these.iter().any(|it| those.contains(it)),
            (one, two) if one.is_text() => two.is_text(),
            (one, two) if one.is_map() => two.is_map(),
            (one, two) => one == two,
        }
    }

    /// Whether values of the two types have an order.
    fn has_order_with(&self, other: &Type) -> bool {
        let is_any = |it: &Type| matches!(it, Type::Any);
        let both = |is_kind: fn(&Type) -> bool| {
            (is_any(self) || is_kind(self)) && (is_any(other) || is_kind(other))
        };
        both(|it| matches!(it, Type::Number)) || both(Type::is_text)
    }

    /// The type of a reference's value, if `self` is the type of the name in the reference.
    fn along(&self, reference: &Reference) -> Result<Type, WrongCondition> {
        let mut known = self;
        let mut before = reference.name.clone();
        for step in &reference.path {
            known = match (known, step) {
                (Type::Record(fields), PathStep::Field(name)) => {
                    field(fields, name, &format!("`{before}`"), reference.at)?
                }
                (Type::Record(fields), PathStep::Item(number)) => {
                    field(fields, &number.to_string(), &format!("`{before}`"), reference.at)?
                }
                (Type::Any | Type::Map, _) | (Type::List, PathStep::Item(_)) => &Type::Any,
                _ => {
                    let message = format!("`{before}` is {known}, and has no parts of this name");
                    return Err(WrongCondition::new(reference.at, message));
                }
            };
            before = match step {
                PathStep::Field(name) => format!("{before}.{name}"),
                PathStep::Item(number) => format!("{before}[{number}]"),
            };
        }
        Ok(known.clone())
    }
}

/// The type of a field. `of` names the owner of the fields in an error.
fn field<'a>(
    fields: &'a BTreeMap<String, Type>,
    name: &str,
    of: &str,
    at: usize,
) -> Result<&'a Type, WrongCondition> {
    fields.get(name).ok_or_else(|| {
        let known: Vec<&str> = fields.keys().map(String::as_str).collect();
        let near = nearest(name, known.iter().copied());
        let near = near.map(|it| format!("; did you mean `{it}`?")).unwrap_or_default();
        let there = match known.is_empty() {
            true => "it has none".to_owned(),
            false => format!("it has {}", known.join(", ")),
        };
        WrongCondition::new(at, format!("{of} has no `{name}`{near} ({there})"))
    })
}

/// Checks an expression against the types of the values that it will see. `known` is a record whose
/// fields are the names that references begin with.
pub(super) fn check(root: &Expression, known: &Type) -> Result<(), WrongCondition> {
    truth(root, known)
}

/// Checks an expression that must be true or false.
fn truth(part: &Expression, known: &Type) -> Result<(), WrongCondition> {
    match type_of(part, known)? {
        Type::Any | Type::Boolean => Ok(()),
        other => {
            let message = format!("`{part}` is {other}; a condition is true or false");
            Err(WrongCondition::new(place(part), message))
        }
    }
}

/// Checks the parts of an expression, and returns the expression's type.
fn type_of(part: &Expression, known: &Type) -> Result<Type, WrongCondition> {
    match part {
        Expression::Literal(value) => Ok(Type::of(value)),
        Expression::Reference(reference) => match known {
            Type::Record(fields) => {
                field(fields, &reference.name, "this place", reference.at)?.along(reference)
            }
            _ => Ok(Type::Any),
        },
        Expression::List(items) => {
            items.iter().try_for_each(|it| type_of(it, known).map(drop))?;
            Ok(Type::List)
        }
        Expression::Not(part) => truth(part, known).map(|()| Type::Boolean),
        Expression::All(parts) | Expression::Any(parts) => {
            parts.iter().try_for_each(|it| truth(it, known))?;
            Ok(Type::Boolean)
        }
        Expression::Compare(it) => comparison(it, known).map(|()| Type::Boolean),
    }
}

fn comparison(comparison: &Comparison, known: &Type) -> Result<(), WrongCondition> {
    let Comparison { left, operator, right, at } = comparison;
    let (one, two) = (type_of(left, known)?, type_of(right, known)?);
    let wrong = |message: String| {
        // A comparison that comes from a pattern has no place in a text.
        let at = if *at == 0 { place(left) } else { *at };
        Err(WrongCondition::new(at, message))
    };
    match operator {
        Operator::Equal | Operator::Unequal if !one.overlaps(&two) => {
            wrong(never(left, &one, right, &two))
        }
        Operator::Equal | Operator::Unequal => Ok(()),
        Operator::In | Operator::NotIn => match right {
            Expression::List(items) => {
                for item in items {
                    let two = type_of(item, known)?;
                    if !one.overlaps(&two) {
                        return wrong(never(left, &one, item, &two));
                    }
                }
                Ok(())
            }
            _ if matches!(two, Type::Any | Type::List) => Ok(()),
            _ => wrong(format!("`{right}` is {two}; after `in` a list is expected")),
        },
        _ if one.has_order_with(&two) => Ok(()),
        _ => wrong(format!(
            "`{left}` is {one} and `{right}` is {two}: {} compares two numbers or two texts",
            operator.as_str()
        )),
    }
}

/// The error message for a comparison whose two sides are never equal.
fn never(left: &Expression, one: &Type, right: &Expression, two: &Type) -> String {
    let near = match (one, two) {
        (Type::OneOf(these), Type::OneOf(those)) => match &those[..] {
            [wrong] => nearest(wrong, these.iter().map(String::as_str)),
            _ => None,
        },
        _ => None,
    };
    let near = near.map(|it| format!("; did you mean \"{it}\"?")).unwrap_or_default();
    let right = match right {
        Expression::Literal(value) => format!("never {value}"),
        other => format!("`{other}` is {two}, so they are never equal"),
    };
    format!("`{left}` is {one}, {right}{near}")
}

/// The place of an expression: the place of its first reference, or 0 if it has none.
fn place(part: &Expression) -> usize {
    let mut references = Vec::new();
    part.references(&mut references);
    references.first().map_or(0, |it| it.at)
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Any => f.write_str("any value"),
            Type::Null => f.write_str("null"),
            Type::Boolean => f.write_str("true or false"),
            Type::Number => f.write_str("a number"),
            Type::Text => f.write_str("a text"),
            Type::OneOf(texts) => match &texts[..] {
                [only] => write!(f, "{only:?}"),
                many if many.len() > LISTED_MAX => {
                    let shown = many.iter().take(SHOWN).map(String::as_str);
                    let shown = shown.collect::<Vec<_>>().join(", ");
                    write!(f, "one of {shown}, … ({} in all)", many.len())
                }
                several => write!(f, "one of {}", several.join(", ")),
            },
            Type::List => f.write_str("a list"),
            Type::Map | Type::Record(_) => f.write_str("a map"),
        }
    }
}
