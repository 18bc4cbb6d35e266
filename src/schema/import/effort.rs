//! Counts what checking a value against a JSON Schema costs, before the check begins. The count is
//! of this value and this schema: a schema that could cost much isn't refused for it.

use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::bounds::at_once;

/// How many times parts of one value may be held against parts of its JSON Schema. Such a check
/// takes well below a microsecond, and a handler that checks shares its thread with others. The
/// checks of each value are counted before they begin.
const SCHEMA_CHECKS_MAX: u64 = 5_000_000;

/// How many schemas may stand in one another while a value is held against its JSON Schema: each
/// takes a part of the thread's stack.
const SCHEMA_NESTED_MAX: usize = 2_000;

/// Counts the checks of a value. The error says which limit they cross.
pub(super) fn within_limits(root: &Value, value: &Value) -> Result<(), String> {
    let mut count = Count { root, known: FxHashMap::default(), nested: 0 };
    match count.of(value, root) {
        Some(checks) if checks <= SCHEMA_CHECKS_MAX => Ok(()),
        Some(_) => Err(format!(
            "takes more checks against its JSON Schema than the limit schema_checks_max, \
             {SCHEMA_CHECKS_MAX}"
        )),
        None => Err(format!(
            "is held against more schemas within schemas than the limit schema_nested_max, \
             {SCHEMA_NESTED_MAX}"
        )),
    }
}

struct Count<'a> {
    root: &'a Value,
    /// The checks of each value against each schema that were counted already.
    known: FxHashMap<(*const Value, *const Value), u64>,
    /// How many schemas the current one stands within.
    nested: usize,
}

impl<'a> Count<'a> {
    /// The checks of a value against a schema. None if too many schemas stand in one another.
    fn of(&mut self, value: &'a Value, schema: &'a Value) -> Option<u64> {
        let Value::Object(said) = schema else { return Some(1) };
        let key = (std::ptr::from_ref(value), std::ptr::from_ref(schema));
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        if self.nested >= SCHEMA_NESTED_MAX {
            return None;
        }
        self.nested += 1;
        let own = self.inside(value, said)?;
        // The keywords `unevaluated…` check the value once more, to learn what was evaluated.
        let is_twice = said.keys().any(|it| it.starts_with("unevaluated"));
        let times = 1 + u64::from(is_twice);
        let mut checks = own.saturating_add(1);
        for rule in at_once(self.root, schema) {
            let more = self.of(value, rule)?;
            checks = checks.saturating_add(more.saturating_mul(times));
        }
        self.nested -= 1;
        self.known.insert(key, checks);
        Some(checks)
    }

    fn inside(&mut self, value: &'a Value, said: &'a Map<String, Value>) -> Option<u64> {
        let mut checks = 0_u64;
        match value {
            Value::Object(all) => {
                let object = |word: &str| said.get(word).and_then(Value::as_object);
                let (named, patterns) = (object("properties"), object("patternProperties"));
                for (name, inner) in all {
                    let own = named.and_then(|it| it.get(name));
                    let more = said.get("additionalProperties").filter(|_| own.is_none());
                    let rest = said.get("unevaluatedProperties");
                    let by_pattern = patterns.into_iter().flat_map(Map::values);
                    for schema in own.into_iter().chain(more).chain(rest).chain(by_pattern) {
                        checks = checks.saturating_add(self.of(inner, schema)?);
                    }
                }
            }
            Value::Array(all) => {
                for (place, inner) in all.iter().enumerate() {
                    let words = ["items", "additionalItems", "contains", "unevaluatedItems"];
                    let lists = [said.get("prefixItems"), said.get("items")];
                    let own = lists.into_iter().flatten().filter_map(|it| it.get(place));
                    let each = words.into_iter().filter_map(|word| said.get(word));
                    for schema in own.chain(each.filter(|it| it.is_object())) {
                        checks = checks.saturating_add(self.of(inner, schema)?);
                    }
                }
            }
            _ => {}
        }
        Some(checks)
    }
}
