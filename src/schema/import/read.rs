//! Reads a JSON Schema and makes a plan from it.

use serde_json::{Map, Value};

use super::super::Scalar;
use super::bounds::{DEPTH_MAX, PLACES_MAX, REFERENCES_MAX, target};
use super::names::Names;
use super::plan::{Described, Object, Plan, Property};
use super::scalar::{self, Made};
use super::{Error, Loose};

/// Returns the plan of a whole JSON Schema, its description, and the places where the plan allows
/// more than the JSON Schema.
pub(super) fn read(original: &Value) -> Result<(Plan, String, Vec<Loose>), Error> {
    let mut reader = Reader {
        root: original,
        open: Vec::new(),
        path: vec!["$".to_owned()],
        places: 0,
        loose: Vec::new(),
    };
    let Described { plan, doc, or_null } = reader.place(original)?;
    let plan = match plan {
        // A payload can't be null, so a root that may be null is planned as any JSON value.
        _ if or_null => reader.json(original, "null"),
        // A root that is a map gets an element of its own around its entries.
        Plan::Map(each) => {
            let rest = Some((REST.to_owned(), each));
            Plan::Object(Object { rest, ..Object::default() })
        }
        plan => plan,
    };
    Ok((plan, doc, reader.loose))
}

/// The name of the element for properties that the original doesn't name.
const REST: &str = "more";

/// The keywords that this reader handles, and the keywords that don't restrict values.
const KNOWN: [&str; 28] = [
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "$anchor",
    "$vocabulary",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "contentEncoding",
    "contentMediaType",
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "items",
    "additionalProperties",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
];

struct Reader<'a> {
    root: &'a Value,
    /// The references that are being followed, the outermost first.
    open: Vec<&'a str>,
    /// The path of the current place in the JSON form.
    path: Vec<String>,
    places: usize,
    loose: Vec<Loose>,
}

impl<'a> Reader<'a> {
    fn place(&mut self, schema: &'a Value) -> Result<Described, Error> {
        self.places += 1;
        if self.places > PLACES_MAX {
            let text = "once its references are followed it has more than";
            return Err(Error::new("#", format!("{text} {PLACES_MAX} places")));
        }
        let Value::Object(said) = schema else {
            return Ok(bare(self.json(schema, &schema.to_string())));
        };
        if self.path.len() > DEPTH_MAX {
            return Ok(bare(self.json(schema, "it stands deep")));
        }
        let mut described = self.described(schema, said)?;
        if let Some(doc) = said.get("description").and_then(Value::as_str) {
            described.doc = one_line(doc);
        }
        Ok(described)
    }

    fn described(
        &mut self,
        schema: &'a Value,
        said: &'a Map<String, Value>,
    ) -> Result<Described, Error> {
        if let Some(reference) = said.get("$ref").and_then(Value::as_str) {
            return self.referred(schema, reference);
        }
        if let Some(found) = self.alone(said)? {
            return Ok(found);
        }
        let types = match said.get("type") {
            Some(Value::String(it)) => vec![it.as_str()],
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let or_null = types.len() > 1 && types.contains(&"null");
        let others: Vec<&str> = match or_null {
            true => types.into_iter().filter(|it| *it != "null").collect(),
            false => types,
        };
        let plan = match (constants(said), &*others) {
            (Some(texts), _) => return Ok(self.constant(schema, said, &texts)),
            (None, ["object"]) => self.object(said)?,
            (None, ["array"]) => self.array(said)?,
            (None, ["string"]) => self.made(scalar::text(said)),
            (None, ["integer"]) => self.made(scalar::whole(said)),
            (None, ["number"]) => self.made(scalar::number(said)),
            (None, ["boolean"]) => Plan::Scalar(Scalar::Boolean),
            (None, []) => return Ok(bare(self.json(schema, &untyped(said)))),
            (None, several) => return Ok(bare(self.json(schema, &several.join(" or ")))),
        };
        self.note(said);
        Ok(Described { plan, doc: String::new(), or_null })
    }

    fn referred(&mut self, schema: &'a Value, reference: &'a str) -> Result<Described, Error> {
        if self.open.contains(&reference) {
            return Ok(bare(self.json(schema, "it holds itself")));
        }
        let is_deep = self.open.len() >= REFERENCES_MAX;
        let Some(to) = target(self.root, reference).filter(|_| !is_deep) else {
            return Ok(bare(self.json(schema, "$ref")));
        };
        self.open.push(reference);
        let found = self.place(to);
        self.open.pop();
        found
    }

    /// Returns the plan of the inner schema, if this schema wraps one: as an `anyOf` or `oneOf` of
    /// the inner schema and null, or as an `allOf` with only the inner schema.
    fn alone(&mut self, said: &'a Map<String, Value>) -> Result<Option<Described>, Error> {
        if said.contains_key("type") || said.contains_key("enum") || said.contains_key("const") {
            return Ok(None);
        }
        let list = |key: &str| said.get(key).and_then(Value::as_array);
        let is_null = |it: &&Value| it.get("type").is_some_and(|it| it == "null");
        if let Some(any) = list("anyOf").or_else(|| list("oneOf")) {
            let others: Vec<&Value> = any.iter().filter(|it| !is_null(it)).collect();
            if let ([one], true) = (&*others, others.len() < any.len()) {
                let mut found = self.place(one)?;
                found.or_null |= !found.plan.is_json();
                return Ok(Some(found));
            }
        }
        match list("allOf").map(Vec::as_slice) {
            Some([one]) => self.place(one).map(Some),
            _ => Ok(None),
        }
    }

    fn constant(
        &mut self,
        schema: &'a Value,
        said: &'a Map<String, Value>,
        all: &[&Value],
    ) -> Described {
        let texts: Vec<&str> = all.iter().filter_map(|it| it.as_str()).collect();
        let nulls = all.iter().filter(|it| it.is_null()).count();
        let is_text = texts.len() + nulls == all.len();
        match scalar::words(&texts).filter(|_| is_text) {
            Some(words) => {
                self.note(said);
                Described { plan: Plan::Scalar(words), doc: String::new(), or_null: nulls > 0 }
            }
            None => bare(self.json(schema, "enum")),
        }
    }

    fn object(&mut self, said: &'a Map<String, Value>) -> Result<Plan, Error> {
        let empty = Map::new();
        let all = said.get("properties").and_then(Value::as_object);
        let required: Vec<&str> = match said.get("required").and_then(Value::as_array) {
            Some(all) => all.iter().filter_map(Value::as_str).collect(),
            None => Vec::new(),
        };
        let rest = match said.get("additionalProperties") {
            _ if said.contains_key("patternProperties") => Some(None),
            Some(Value::Bool(false)) => None,
            None | Some(Value::Bool(_)) => Some(None),
            Some(each) => Some(Some(each)),
        };
        let rest = match rest {
            Some(Some(each)) => Some(self.within("*", |it| it.nested(each))?),
            Some(None) => Some(bare(Plan::Scalar(scalar::json(&empty)))),
            None => None,
        };
        let Some(all) = all.filter(|it| !it.is_empty()) else {
            return Ok(match rest {
                Some(each) => Plan::Map(Box::new(each)),
                None => Plan::Object(Object::default()),
            });
        };
        let mut names = Names::default();
        let ours = names.assign(all.keys().map(String::as_str));
        let mut properties = Vec::new();
        for ((theirs, schema), ours) in all.iter().zip(ours) {
            let holds = self.within(theirs, |it| it.place(schema))?;
            let is_required = required.contains(&theirs.as_str());
            properties.push(Property { theirs: theirs.clone(), ours, holds, is_required });
        }
        let mut name = |word: &str, is_there: bool| is_there.then(|| names.free(word));
        let nulls = name("null", properties.iter().any(Property::lists_null));
        let empty = name("empty", properties.iter().any(Property::lists_empty));
        let rest = rest.map(|each| (names.free(REST), Box::new(each)));
        Ok(Plan::Object(Object { properties, rest, nulls, empty }))
    }

    fn array(&mut self, said: &'a Map<String, Value>) -> Result<Plan, Error> {
        let item = match said.get("items") {
            Some(items) if !items.is_array() && !said.contains_key("prefixItems") => {
                self.within("[*]", |to| to.nested(items))?
            }
            _ => bare(self.json(&Value::Null, "an array of anything")),
        };
        Ok(Plan::Array(Box::new(item)))
    }

    /// Returns the plan for an item of an array or a value of a map. Each item or value has an
    /// element, so a missing element can't stand for null. An item or value that may be null is
    /// therefore planned as any JSON value.
    fn nested(&mut self, schema: &'a Value) -> Result<Described, Error> {
        let found = self.place(schema)?;
        match found.or_null {
            true => Ok(Described { doc: found.doc, ..bare(self.json(schema, "or null")) }),
            false => Ok(found),
        }
    }

    fn made(&mut self, made: Made) -> Plan {
        if !made.lost.is_empty() {
            self.loosen(&made.lost.join(", "), false);
        }
        Plan::Scalar(made.scalar)
    }

    /// Returns the plan for any JSON value. Records the reason why the plan isn't narrower.
    fn json(&mut self, schema: &Value, why: &str) -> Plan {
        self.loosen(why, true);
        let empty = Map::new();
        Plan::Scalar(scalar::json(schema.as_object().unwrap_or(&empty)))
    }

    /// Records the keywords that the plan doesn't express, except those that `made` records.
    fn note(&mut self, said: &Map<String, Value>) {
        let told = ["pattern", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"];
        let is_lost =
            |it: &&str| !KNOWN.contains(it) && !told.contains(it) && !it.starts_with("x-");
        let lost: Vec<&str> = said.keys().map(String::as_str).filter(is_lost).collect();
        if !lost.is_empty() {
            self.loosen(&lost.join(", "), false);
        }
    }

    fn loosen(&mut self, why: &str, is_open: bool) {
        let path = self.path.concat();
        self.loose.push(Loose { path, why: why.to_owned(), is_open });
    }

    fn within<T>(&mut self, step: &str, then: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(match step {
            "[*]" => step.to_owned(),
            _ => format!(".{}", one_line(step)),
        });
        let found = then(self);
        self.path.pop();
        found
    }
}

fn bare(plan: Plan) -> Described {
    Described { plan, doc: String::new(), or_null: false }
}

fn constants(said: &Map<String, Value>) -> Option<Vec<&Value>> {
    let all = said.get("enum").and_then(Value::as_array).map(|it| it.iter().collect());
    all.or_else(|| said.get("const").map(|it| vec![it]))
}

fn untyped(said: &Map<String, Value>) -> String {
    let found =
        ["anyOf", "oneOf", "allOf", "not", "if"].into_iter().find(|it| said.contains_key(*it));
    found.unwrap_or("no type").to_owned()
}

/// Returns a text of the original on one line. Control characters and invisible characters are
/// replaced, since they might affect a terminal.
fn one_line(text: &str) -> String {
    let words = text.split_whitespace().map(|word| {
        let shown = word.chars().map(|it| if is_plain(it) { it } else { '\u{FFFD}' });
        shown.collect::<String>()
    });
    words.collect::<Vec<_>>().join(" ")
}

fn is_plain(letter: char) -> bool {
    let turns = matches!(letter, '\u{200B}'..='\u{200F}')
        || matches!(letter, '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}');
    !letter.is_control() && !turns && crate::xml::is_character(letter)
}
