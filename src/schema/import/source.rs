//! The JSON Schema from which a schema was made, called the original. A [`Source`] checks values
//! against the original. It also converts them to the JSON form of the schema's shape and back.

use std::fmt;

use serde_json::{Map, Value};

use super::effort::within_limits;
use super::plan::{Described, Object, Plan};
use super::shape::ITEM;
use super::validator::{Validator, Wrong};
use super::{Error, Loose};
use crate::schema::TEXT;

/// Whole numbers of at least this size may have lost digits when they became floating-point
/// numbers.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// The original JSON Schema of a schema, and the plan of the conversion.
pub(in crate::schema) struct Source {
    original: Value,
    validator: Validator,
    plan: Plan,
    loose: Vec<Loose>,
}

impl Source {
    pub(super) fn new(original: Value, plan: Plan, loose: Vec<Loose>) -> Result<Source, Error> {
        let validator = Validator::new(&original)?;
        Ok(Source { original, validator, plan, loose })
    }

    pub(super) fn original(&self) -> &Value {
        &self.original
    }

    pub(super) fn loose(&self) -> &[Loose] {
        &self.loose
    }

    /// Returns whether both sources have the same JSON Schema.
    pub(in crate::schema) fn is_same(&self, other: &Source) -> bool {
        self.original == other.original
    }

    /// Checks a value against the original, and returns up to `most` violations. If the check would
    /// cross a limit, the only violation says so.
    pub(in crate::schema) fn judge(&self, value: &Value, most: usize) -> Vec<Wrong> {
        if let Err(message) = within_limits(&self.original, value) {
            return vec![Wrong { path: Vec::new(), message }];
        }
        self.validator.judge(value, most)
    }

    /// Converts a value that is valid against the original to the JSON form of the schema's shape.
    pub(in crate::schema) fn inward(&self, value: Value) -> Value {
        match (&self.plan, value) {
            (Plan::Scalar(_), value) => Value::Object(Map::from_iter([(TEXT.to_owned(), value)])),
            (plan, value) => inward(plan, value),
        }
    }

    /// Converts the JSON form of the schema's shape to a value of the original.
    ///
    /// # Errors
    ///
    /// Returns the name of a property that has two values. For example, the payload has an element
    /// for the property, and also lists the property as null.
    pub(in crate::schema) fn outward(&self, value: Value) -> Result<Value, String> {
        match (&self.plan, value) {
            (Plan::Scalar(scalar), Value::Object(mut all)) => {
                Ok(scalar_outward(scalar, all.remove(TEXT).unwrap_or_default()))
            }
            (plan, value) => outward(plan, value),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("original", &self.original).finish_non_exhaustive()
    }
}

/// Converts a value. An array becomes an object with the property [`ITEM`], since XML has an
/// element around its items. [`object_inward`] converts the arrays in properties, which have no
/// such element.
fn inward(plan: &Plan, value: Value) -> Value {
    match (plan, value) {
        (Plan::Array(item), Value::Array(all)) => {
            Value::Object(Map::from_iter([(ITEM.to_owned(), items_inward(item, all))]))
        }
        (Plan::Map(each), Value::Object(all)) => {
            all.into_iter().map(|(key, it)| (key, inward(&each.plan, it))).collect()
        }
        (Plan::Object(object), Value::Object(all)) => object_inward(object, all),
        (_, value) => value,
    }
}

fn items_inward(item: &Described, all: Vec<Value>) -> Value {
    all.into_iter().map(|it| inward(&item.plan, it)).collect()
}

fn object_inward(object: &Object, mut from: Map<String, Value>) -> Value {
    let (mut to, mut nulls, mut empty) = (Map::new(), Vec::new(), Vec::new());
    for property in &object.properties {
        let Some(value) = from.shift_remove(&property.theirs) else { continue };
        let inside = match (&property.holds.plan, value) {
            (_, Value::Null) if property.lists_null() => {
                nulls.push(Value::from(property.ours.clone()));
                continue;
            }
            (_, Value::Null) if property.is_null_where_missing() => continue,
            (Plan::Array(_), Value::Array(all)) if all.is_empty() && property.lists_empty() => {
                empty.push(Value::from(property.ours.clone()));
                continue;
            }
            (Plan::Array(item), Value::Array(all)) => items_inward(item, all),
            (plan, value) => inward(plan, value),
        };
        to.insert(property.ours.clone(), inside);
    }
    for (name, list) in [(&object.nulls, nulls), (&object.empty, empty)] {
        if let (Some(name), false) = (name, list.is_empty()) {
            to.insert(name.clone(), list.into());
        }
    }
    match &object.rest {
        Some((name, each)) if !from.is_empty() => {
            let all = from.into_iter().map(|(key, it)| (key, inward(&each.plan, it)));
            to.insert(name.clone(), all.collect());
        }
        // Unknown properties are kept, so that the conversion to XML reports them.
        _ => to.extend(from),
    }
    to.into()
}

fn outward(plan: &Plan, value: Value) -> Result<Value, String> {
    match (plan, value) {
        (Plan::Scalar(it), value) => Ok(scalar_outward(it, value)),
        (Plan::Array(item), Value::Object(mut all)) => {
            items_outward(item, all.remove(ITEM).unwrap_or_default())
        }
        (Plan::Map(each), Value::Object(all)) => {
            all.into_iter().map(|(key, it)| Ok((key, outward(&each.plan, it)?))).collect()
        }
        (Plan::Object(object), Value::Object(all)) => object_outward(object, all),
        (_, value) => Ok(value),
    }
}

fn items_outward(item: &Described, value: Value) -> Result<Value, String> {
    let Value::Array(all) = value else { return Ok(value) };
    all.into_iter().map(|it| outward(&item.plan, it)).collect()
}

fn object_outward(object: &Object, mut from: Map<String, Value>) -> Result<Value, String> {
    let mut listed = |name: &Option<String>| -> Vec<Value> {
        let list = name.as_ref().and_then(|it| from.remove(it));
        list.and_then(|it| it.as_array().cloned()).unwrap_or_default()
    };
    let (nulls, empty) = (listed(&object.nulls), listed(&object.empty));
    let mut to = Map::new();
    for property in &object.properties {
        let is_in = |list: &[Value]| list.iter().any(|name| *name == *property.ours);
        let (is_null, is_empty) = (is_in(&nulls), is_in(&empty));
        let value = from.remove(&property.ours);
        let is_nothing = |it: &Value| it.as_array().is_some_and(Vec::is_empty);
        let value = value.filter(|value| !property.holds.plan.is_array() || !is_nothing(value));
        if u8::from(is_null) + u8::from(is_empty) + u8::from(value.is_some()) > 1 {
            return Err(property.ours.clone());
        }
        let value = match (&property.holds.plan, value) {
            _ if is_null => Value::Null,
            (Plan::Array(item), Some(value)) => items_outward(item, value)?,
            (plan, Some(value)) => outward(plan, value)?,
            (Plan::Array(_), None) if is_empty || property.is_required => Value::Array(Vec::new()),
            (_, None) if property.is_null_where_missing() => Value::Null,
            (_, None) => continue,
        };
        to.insert(property.theirs.clone(), value);
    }
    if let Some((name, each)) = &object.rest
        && let Some(Value::Object(all)) = from.remove(name)
    {
        for (key, value) in all {
            if object.properties.iter().any(|it| it.theirs == key) {
                return Err(key);
            }
            to.insert(key, outward(&each.plan, value)?);
        }
    }
    Ok(to.into())
}

/// Converts a double without a fraction into a JSON integer, such as `1.0` into `1`.
fn scalar_outward(scalar: &crate::schema::Scalar, value: Value) -> Value {
    use crate::schema::Scalar;
    let whole = |it: &f64| it.fract() == 0.0 && it.abs() < WHOLE_MAX;
    match (scalar.base(), value.as_f64().filter(whole)) {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
        (Scalar::F64, Some(it)) => Value::from(it as i64),
        _ => value,
    }
}
