//! Writes a schema as JSON Schema 2020-12, which describes the JSON form of a payload.
//! `docs/schema.md` has the rules.

use serde_json::{Map, Value, json};

use super::facet::{Bound, Facets};
use super::json::{Member, Property, constant, is_written, members};
use super::xsd::unlike;
use super::{Content, Kind, Occurs, Scalar, Schema, Shape};

/// The name of the JSON property for an element's text, if the text's field has no name. For
/// example, the field of a tuple struct with one scalar has no name.
pub const TEXT: &str = "text";
/// The name of the JSON property that holds a whole element as XML, if the schema allows any
/// content.
pub const XML: &str = "xml";

/// Returns whether parameters with these names could be a payload's: the payload has a field of
/// each name, and each field that it needs is named.
///
/// ```
/// # extern crate pumphouse_ground as pumphouse;
/// use pumphouse::Name;
/// use pumphouse::schema::{self, Content, Field, Kind, Occurs, Scalar, Schema, Shape};
///
/// let text = |name: &'static str, it| Field::new(name, "", Kind::Scalar(Scalar::String), it);
/// let fields = vec![text("message", Occurs::One), text("path", Occurs::Many)];
/// let shape = Shape::new("commit", "Commits.", Vec::new(), Content::Sequence(fields));
/// let commit = Schema::new(Name::new("urn:x", "commit"), shape);
///
/// assert!(schema::fits(&commit, &["message"]));
/// assert!(!schema::fits(&commit, &["path"]));
/// assert!(!schema::fits(&commit, &["message", "sign"]));
/// ```
#[must_use]
pub fn fits(schema: &Schema, names: &[&str]) -> bool {
    let schema = json_schema(schema);
    let has = |name: &&str| schema["properties"].get(*name).is_some();
    let needed = schema["required"].as_array().into_iter().flatten();
    let is_named = |needed: &Value| needed.as_str().is_some_and(|it| names.contains(&it));
    schema["type"] == "object" && names.iter().all(has) && { needed }.all(is_named)
}

/// Returns the JSON Schema of a payload's JSON form. For a schema that was made from a JSON Schema,
/// this is the original.
#[must_use]
pub fn json_schema(schema: &Schema) -> Value {
    if let Some(original) = schema.original() {
        return original.clone();
    }
    let mut writer = Writer::default();
    let mut root = Map::new();
    root.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    root.insert("title".into(), schema.name.local().into());
    describe(&mut root, schema.doc());
    root.extend(writer.object(&schema.shape));
    let mut defined = Map::new();
    let mut place = 0;
    while let Some((shape, name)) = writer.shapes.get(place).cloned() {
        place += 1;
        let mut object = writer.object(shape);
        describe(&mut object, &shape.doc);
        defined.insert(name, object.into());
    }
    if !defined.is_empty() {
        root.insert("$defs".into(), defined.into());
    }
    root.into()
}

type Object = Map<String, Value>;

/// The shapes that need a definition, each with the definition's name.
#[derive(Default)]
struct Writer<'a> {
    shapes: Vec<(&'a Shape, String)>,
}

/// The properties of one object, so far.
#[derive(Default)]
struct Properties {
    all: Object,
    required: Vec<Value>,
    /// The rules for choices. Each rule requires exactly one of its properties, or at most one if
    /// the choice is optional.
    choices: Vec<Value>,
}

impl<'a> Writer<'a> {
    fn object(&mut self, shape: &'a Shape) -> Object {
        let mut to = Properties::default();
        if matches!(shape.content, Content::Any) {
            let xml = json!({ "type": "string", "contentMediaType": "application/xml",
                "description": "The whole element, as XML." });
            to.all.insert(XML.into(), xml);
            to.required.push(XML.into());
        } else {
            for member in members(shape) {
                match member {
                    Member::Field(it) => self.field(&it, &mut to),
                    Member::Choice { occurs, variants } => self.choice(&variants, occurs, &mut to),
                }
            }
        }
        to.finish()
    }

    fn field(&mut self, Property { name, field }: &Property<'a>, to: &mut Properties) {
        let mut value = self.kind(&field.kind);
        if field.occurs == Occurs::Many {
            value = Map::from_iter([
                ("type".to_owned(), "array".into()),
                ("items".to_owned(), value.into()),
            ]);
        } else if field.occurs == Occurs::One {
            to.required.push(name.as_ref().into());
        }
        describe(&mut value, &field.doc);
        to.all.insert(name.to_string(), value.into());
    }

    /// Adds a choice: a property for each variant, and a rule about how many variants must be
    /// there.
    fn choice(&mut self, variants: &[Property<'a>], occurs: Occurs, to: &mut Properties) {
        let mut each = Vec::new();
        for Property { name, field } in variants {
            let mut value = self.kind(&field.kind);
            describe(&mut value, &field.doc);
            to.all.insert(name.to_string(), value.into());
            each.push(json!({ "required": [name] }));
        }
        if occurs == Occurs::Optional {
            each.push(json!({ "not": { "anyOf": each } }));
        }
        to.choices.push(json!({ "oneOf": each }));
    }

    fn kind(&mut self, kind: &'a Kind) -> Object {
        let value = match kind {
            Kind::Scalar(it) => return scalar(it),
            Kind::Shape(link) | Kind::Choice(link) if link.shape().name.is_empty() => {
                return self.object(link.shape());
            }
            Kind::Shape(link) | Kind::Choice(link) => {
                json!({ "$ref": format!("#/$defs/{}", self.name(link.shape())) })
            }
            Kind::Element => json!({ "type": "string", "contentMediaType": "application/xml" }),
            Kind::Map(entry) => {
                let each = self.kind(&entry.kind);
                json!({ "type": "object", "additionalProperties": each })
            }
        };
        object(value)
    }

    fn name(&mut self, shape: &'a Shape) -> String {
        if let Some((_, name)) = self.shapes.iter().find(|(it, _)| std::ptr::eq(*it, shape)) {
            return name.clone();
        }
        let taken: Vec<String> = self.shapes.iter().map(|(_, it)| it.clone()).collect();
        let name = unlike(&shape.name, &taken);
        self.shapes.push((shape, name.clone()));
        name
    }
}

impl Properties {
    fn finish(mut self) -> Object {
        let mut value = Map::new();
        value.insert("type".into(), "object".into());
        value.insert("properties".into(), self.all.into());
        if !self.required.is_empty() {
            value.insert("required".into(), self.required.into());
        }
        value.insert("additionalProperties".into(), false.into());
        match (self.choices.len(), self.choices.pop()) {
            (_, None) => {}
            (1, Some(one)) => value.extend(object(one)),
            (_, Some(last)) => {
                self.choices.push(last);
                value.insert("allOf".into(), self.choices.into());
            }
        }
        value
    }
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(it) => it,
        other => Map::from_iter([("const".to_owned(), other)]),
    }
}

/// Adds a description to `value`, before the description that `value` has already.
fn describe(value: &mut Object, doc: &str) {
    if doc.is_empty() {
        return;
    }
    let text = match value.get("description").and_then(Value::as_str) {
        Some(more) => format!("{doc} {more}"),
        None => doc.to_owned(),
    };
    value.insert("description".into(), text.into());
}

fn scalar(form: &Scalar) -> Object {
    let facets = form.narrowest();
    if !facets.one_of.is_empty() {
        let each: Vec<Value> = facets.one_of.iter().map(|text| constant(form, text)).collect();
        return object(json!({ "enum": each }));
    }
    let mut value = object(match form.base() {
        Scalar::String => json!({ "type": "string" }),
        Scalar::Character => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
        Scalar::Boolean => json!({ "type": "boolean" }),
        _ if is_written(form) => json!({ "type": "string" }),
        Scalar::I128 => json!({ "type": "string", "pattern": "^-?[0-9]+$" }),
        Scalar::U128 => json!({ "type": "string", "pattern": "^[0-9]+$" }),
        Scalar::I64 => json!({ "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX }),
        Scalar::U64 => json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX }),
        Scalar::F32 | Scalar::F64 => return number(form, &facets),
        Scalar::Bytes => return bytes(&facets),
        Scalar::Timestamp => json!({ "type": "string", "format": "date-time" }),
        Scalar::Duration => json!({ "type": "string", "format": "duration" }),
        Scalar::Uuid => json!({ "type": "string", "format": "uuid" }),
        Scalar::Json => json!({}),
        Scalar::Words(words) => {
            let each: Vec<&str> = words.list.iter().map(|it| it.text.as_ref()).collect();
            json!({ "enum": each })
        }
        Scalar::List(list) => return array(&scalar(&list.item), list.length_min, list.length_max),
        base => {
            let (least, most) = base.bounds();
            let (least, most) = (least.map(bound), most.map(bound));
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
    });
    let is_string = value.get("type").is_some_and(|it| it == "string");
    let mut say = |key: &str, said: Option<Value>| {
        value.extend(said.map(|it| (key.to_owned(), it)));
    };
    if is_string {
        say("minLength", facets.length_min.map(Into::into));
        say("maxLength", facets.length_max.map(Into::into));
        if let Some(pattern) = &facets.pattern {
            say("pattern", plain(pattern).map(Into::into));
        }
    } else {
        say("minimum", facets.min.map(bound));
        say("maximum", facets.max.map(bound));
    }
    let pattern_is_lost = facets.pattern.is_some() && !value.contains_key("pattern");
    let bounds_are_lost = is_string && (facets.min.is_some() || facets.max.is_some());
    if facets.digits.is_some() || pattern_is_lost || bounds_are_lost {
        describe(&mut value, &sentence(form));
    }
    value
}

/// Returns the schema of a floating-point number. Its value is a JSON number, or one of the strings
/// `INF`, `-INF` and `NaN` that the facets allow.
fn number(scalar: &Scalar, facets: &Facets) -> Object {
    let mut value = Map::from_iter([("type".to_owned(), Value::from("number"))]);
    let mut say = |key: &str, said: Option<Value>| {
        value.extend(said.map(|it| (key.to_owned(), it)));
    };
    say("minimum", facets.min.map(bound));
    say("maximum", facets.max.map(bound));
    if facets.digits.is_some() || facets.fraction_digits.is_some() {
        // `multipleOf` isn't used for digits, since validators disagree about it for fractions.
        describe(&mut value, &sentence(scalar));
        return value;
    }
    let others: &[&str] = match (facets.min, facets.max) {
        (None, None) => &["INF", "-INF", "NaN"],
        (Some(_), None) => &["INF"],
        (None, Some(_)) => &["-INF"],
        (Some(_), Some(_)) => return value,
    };
    object(json!({ "anyOf": [value, { "enum": others }] }))
}

fn bytes(facets: &Facets) -> Object {
    let mut value = object(json!({ "type": "string", "contentEncoding": "base64" }));
    let letters = |count: usize| count.div_ceil(3) * 4;
    let least = facets.length_min.map(|it| ("minLength".to_owned(), letters(it).into()));
    let most = facets.length_max.map(|it| ("maxLength".to_owned(), letters(it).into()));
    value.extend(least.into_iter().chain(most));
    value
}

fn array(items: &Object, least: Option<usize>, most: Option<usize>) -> Object {
    let mut value = object(json!({ "type": "array", "items": items }));
    let least = least.map(|it| ("minItems".to_owned(), it.into()));
    let most = most.map(|it| ("maxItems".to_owned(), it.into()));
    value.extend(least.into_iter().chain(most));
    value
}

fn bound(bound: Bound) -> Value {
    match bound {
        Bound::Float(it) => it.into(),
        Bound::Whole(it) => match (i64::try_from(it), u64::try_from(it)) {
            (Ok(it), _) => it.into(),
            (_, Ok(it)) => it.into(),
            _ => Value::Null,
        },
    }
}

/// Describes a scalar in a sentence. The sentence expresses facets that JSON Schema can't.
fn sentence(scalar: &Scalar) -> String {
    let text = scalar.describe();
    let mut letters = text.chars();
    let first = letters.next().map(|it| it.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// Converts a pattern of XSD into a pattern of JSON Schema. Returns `None` if the pattern might
/// have another meaning in JSON Schema.
fn plain(pattern: &str) -> Option<String> {
    let mut letters = pattern.chars();
    let mut in_brackets = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if !letters.next().is_some_and(|it| r"\|.?*+(){}-[]^nrt".contains(it)) => {
                return None;
            }
            '[' if in_brackets => return None,
            '[' => in_brackets = true,
            ']' => in_brackets = false,
            _ => {}
        }
    }
    Some(format!("^(?:{pattern})$"))
}
