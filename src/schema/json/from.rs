//! Converts a JSON value into a payload's element, by the payload's schema. All mistakes are
//! reported at once, up to a limit.

use serde_json::{Map, Value};

use super::error::{self, ERRORS_MAX, Error, Errors, Step};
use super::member::{Member, Property, members};
use super::scalar::{self, Sort, Wide, sort};
use crate::limits::XmlLimits;
use crate::schema::walk::{At, DEPTH_MAX, is_called, walk};
use crate::schema::{Content, ENTRY, Field, KEY, Kind, List, Occurs, Scalar, Schema, Shape, XML};
use crate::xml::{self, Element, Profile, Writer, is_character};

/// Converts the JSON form of a payload into the payload's element. The element is valid against the
/// schema. It has the same XML that the payload's Rust type would write.
///
/// # Errors
///
/// Returns the mistakes in the value. After sixteen mistakes, the rest of the value isn't checked.
pub fn from_json(schema: &Schema, value: &Value) -> Result<Element, Errors> {
    let Some(source) = &schema.source else { return by_shape(schema, value, Wide::Refused) };
    let mut wrong = source.judge(value, ERRORS_MAX + 1);
    let is_cut = wrong.len() > ERRORS_MAX;
    wrong.truncate(ERRORS_MAX);
    match wrong.is_empty() {
        true => by_shape(schema, &source.inward(value.clone()), Wide::Carried),
        false => Err(Errors { all: wrong.iter().map(error::judged).collect(), is_cut }),
    }
}

fn by_shape(schema: &Schema, value: &Value, wide: Wide) -> Result<Element, Errors> {
    let mut converter = Converter {
        namespace: schema.name.namespace(),
        wide,
        to: Writer::new(XmlLimits::INSIDE),
        path: Vec::new(),
        depth: 0,
        errors: Vec::new(),
    };
    converter.shaped(schema.name.local(), &schema.shape, value, None);
    if !converter.errors.is_empty() {
        let is_cut = converter.errors.len() >= ERRORS_MAX;
        return Err(Errors { all: converter.errors, is_cut });
    }
    let one = |error| Errors { all: vec![error], is_cut: false };
    let element = converter.to.finish().map_err(|error| one(error::size(&error)))?;
    // The conversion has checked all values, except elements that were given as XML.
    schema.check(element.view()).map_err(|error| one(error::schema(&[], &error)))?;
    Ok(element)
}

struct Converter<'a> {
    namespace: &'a str,
    wide: Wide,
    to: Writer,
    /// The path of the current value.
    path: Vec<Step<'a>>,
    /// How many elements are open.
    depth: usize,
    errors: Vec<Error>,
}

/// The requirement on the element in a string of XML.
#[derive(Clone, Copy)]
enum Must<'a> {
    /// An element with this name and, if it is an entry of a map, with this key.
    Be(&'a str, Option<&'a str>),
    /// An element whose name differs from the names of these fields.
    Differ(&'a [Field]),
}

impl<'a> Converter<'a> {
    /// Records a mistake, unless [`ERRORS_MAX`] mistakes are recorded already.
    fn wrong(&mut self, error: impl FnOnce(&[Step<'a>]) -> Error) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(error(&self.path));
        }
    }

    fn within(&mut self, step: Step<'a>, then: impl FnOnce(&mut Self)) {
        if self.errors.len() < ERRORS_MAX {
            self.path.push(step);
            then(self);
            self.path.pop();
        }
    }

    /// Writes an element with this name and shape.
    fn shaped(&mut self, local: &'a str, shape: &'a Shape, value: &'a Value, key: Option<&'a str>) {
        let Value::Object(object) = value else {
            return self.wrong(|path| error::no_object(path, value));
        };
        if matches!(shape.content, Content::Any) {
            return self.any(local, shape, object, key);
        }
        if self.open(local, key) {
            self.object(shape, object);
            self.close();
        }
    }

    fn open(&mut self, local: &str, key: Option<&str>) -> bool {
        if self.depth >= DEPTH_MAX {
            self.wrong(|path| error::depth(path, DEPTH_MAX));
            return false;
        }
        self.depth += 1;
        self.to.start(self.namespace, local);
        if let Some(key) = key {
            self.to.attribute(KEY, key);
        }
        true
    }

    fn close(&mut self) {
        self.depth -= 1;
        self.to.end();
    }

    fn object(&mut self, shape: &'a Shape, object: &'a Map<String, Value>) {
        let members = members(shape);
        let guessed = self.strangers(&members, object);
        let fields: &'a [Field] = match &shape.content {
            Content::Sequence(fields) => fields,
            _ => &[],
        };
        for (number, member) in members.into_iter().enumerate() {
            match member {
                Member::Field(field) => {
                    let is_attribute = number < shape.attributes.len();
                    match object.get_key_value(&*field.name) {
                        Some((name, value)) => self.within(Step::Name(name), |to| match () {
                            () if value.is_null() && field.field.occurs == Occurs::Optional => {
                                to.wrong(error::null);
                            }
                            () if is_attribute => to.attribute(field.field, value),
                            () if matches!(shape.content, Content::Text(_)) => {
                                to.text(field.field, value);
                            }
                            () => to.field(field.field, fields, value),
                        }),
                        None if field.field.occurs != Occurs::One => {}
                        None if guessed.iter().any(|guess| *guess == field.name) => {}
                        None => self.wrong(|path| error::missing(path, &field)),
                    }
                }
                Member::Choice { occurs, variants } => {
                    self.choice(occurs, &variants, &guessed, object);
                }
            }
        }
    }

    /// Records a mistake for each property that the shape doesn't have. Returns the names of the
    /// properties that were probably meant. The caller doesn't report these names as missing.
    fn strangers(&mut self, members: &[Member<'a>], object: &Map<String, Value>) -> Vec<String> {
        let known: Vec<&Property<'_>> = members
            .iter()
            .flat_map(|it| match it {
                Member::Field(it) => std::slice::from_ref(it),
                Member::Choice { variants, .. } => variants,
            })
            .collect();
        let mut meant = Vec::new();
        for name in object.keys().filter(|name| known.iter().all(|it| it.name != **name)) {
            self.wrong(|path| {
                let error = error::unknown(path, name, &known);
                let nearest = error.nearest.as_deref();
                meant.extend(nearest.and_then(|it| serde_json::from_str::<String>(it).ok()));
                error
            });
        }
        meant
    }

    fn choice(
        &mut self,
        occurs: Occurs,
        variants: &[Property<'a>],
        guessed: &[String],
        object: &'a Map<String, Value>,
    ) {
        let find = |property: &Property<'a>| {
            let (name, value) = object.get_key_value(&*property.name)?;
            Some((name.as_str(), property.field, value))
        };
        let there: Vec<_> = variants.iter().filter_map(find).collect();
        match &*there {
            [] if occurs == Occurs::Optional => {}
            [] if variants.iter().any(|it| guessed.iter().any(|guess| *guess == it.name)) => {}
            [] => self.wrong(|path| error::none(path, variants)),
            [(name, field, value)] => {
                self.within(Step::Name(name), |to| to.element(&field.name, field, value, None));
            }
            several => {
                let names: Vec<&str> = several.iter().map(|it| it.0).collect();
                self.wrong(|path| error::several(path, &names, variants));
            }
        }
    }

    fn attribute(&mut self, field: &'a Field, value: &'a Value) {
        if let Kind::Scalar(scalar) = &field.kind
            && let Some(text) = self.scalar(scalar, value)
        {
            self.to.attribute(&field.name, &text);
        }
    }

    fn text(&mut self, field: &'a Field, value: &'a Value) {
        if let Kind::Scalar(scalar) = &field.kind
            && let Some(text) = self.scalar(scalar, value)
        {
            self.to.text(&text);
        }
    }

    /// Writes the elements of a field in a sequence: a single element, or one for each item of an
    /// array.
    fn field(&mut self, field: &'a Field, fields: &'a [Field], value: &'a Value) {
        let one = |to: &mut Self, value| match field.kind {
            Kind::Element => to.xml(Must::Differ(fields), value, field),
            _ => to.element(&field.name, field, value, None),
        };
        match (field.occurs, value) {
            (Occurs::One | Occurs::Optional, _) => one(self, value),
            (Occurs::Many, Value::Array(items)) => {
                for (place, item) in items.iter().enumerate() {
                    self.within(Step::Item(place), |to| one(to, item));
                }
            }
            (Occurs::Many, _) => self.wrong(|path| error::kind(path, value, "an array", field)),
        }
    }

    /// Writes a field's value as an element named `local`. For a choice, the element has the name
    /// of its variant.
    fn element(
        &mut self,
        local: &'a str,
        field: &'a Field,
        value: &'a Value,
        key: Option<&'a str>,
    ) {
        match (&field.kind, value) {
            (Kind::Scalar(scalar), _) => {
                if self.open(local, key) {
                    if let Some(text) = self.scalar(scalar, value) {
                        self.to.text(&text);
                    }
                    self.close();
                }
            }
            (Kind::Element, _) => self.xml(Must::Be(local, key), value, field),
            (Kind::Shape(link), Value::Object(_)) => self.shaped(local, link.shape(), value, key),
            (Kind::Choice(link), Value::Object(object)) => {
                let variants = match &link.shape().content {
                    Content::Choice(variants) => &**variants,
                    _ => &[],
                };
                let property = |field: &'a Field| Property { name: (&*field.name).into(), field };
                let variants: Vec<_> = variants.iter().map(property).collect();
                let all = Member::Choice { occurs: Occurs::One, variants };
                let guessed = self.strangers(std::slice::from_ref(&all), object);
                if let Member::Choice { occurs, variants } = all {
                    self.choice(occurs, &variants, &guessed, object);
                }
            }
            (Kind::Map(entry), Value::Object(object)) => {
                if self.open(local, key) {
                    for (key, value) in object {
                        self.within(Step::Name(key), |to| to.entry(entry, key, value));
                    }
                    self.close();
                }
            }
            _ => self.wrong(|path| error::kind(path, value, "an object", field)),
        }
    }

    fn entry(&mut self, entry: &'a Field, key: &'a str, value: &'a Value) {
        match key.chars().find(|it| !is_character(*it)) {
            Some(it) => self.wrong(|path| error::character(path, it)),
            None => self.element(ENTRY, entry, value, Some(key)),
        }
    }

    /// Returns the text of a scalar's value. Records a mistake if the value is wrong.
    fn scalar(&mut self, scalar: &'a Scalar, value: &'a Value) -> Option<String> {
        if let Sort::List(list) = sort(scalar) {
            return self.list(scalar, list, value);
        }
        if let Some(letter) = value.as_str().and_then(|it| it.chars().find(|it| !is_character(*it)))
        {
            self.wrong(|path| error::character(path, letter));
            return None;
        }
        let text = scalar::from_json(scalar, value, self.wide);
        if text.is_none() {
            self.wrong(|path| error::value(path, value, scalar));
        }
        text
    }

    fn list(&mut self, scalar: &'a Scalar, list: &'a List, value: &'a Value) -> Option<String> {
        let Value::Array(items) = value else {
            self.wrong(|path| error::value(path, value, scalar));
            return None;
        };
        let before = self.errors.len();
        let mut all = Vec::new();
        for (place, item) in items.iter().enumerate() {
            self.within(Step::Item(place), |to| {
                let Some(text) = to.scalar(&list.item, item) else { return };
                match text.is_empty() || text.contains([' ', '\t', '\n', '\r']) {
                    true => to.wrong(|path| error::item(path, &text)),
                    false => all.push(text),
                }
            });
        }
        let text = all.join(" ");
        if self.errors.len() > before {
            return None;
        }
        if !scalar.accepts(&text) {
            self.wrong(|path| error::value(path, value, scalar));
            return None;
        }
        Some(text)
    }

    /// Writes an element from an object that contains the whole element as XML.
    fn any(
        &mut self,
        local: &'a str,
        shape: &'a Shape,
        object: &'a Map<String, Value>,
        key: Option<&'a str>,
    ) {
        let field = Field::new(XML, "", Kind::Element, Occurs::One);
        let property = Property { name: XML.into(), field: &field };
        for name in object.keys().filter(|it| *it != XML) {
            self.wrong(|path| error::unknown(path, name, &[&property]));
        }
        let Some((name, value)) = object.get_key_value(XML) else {
            return self.wrong(|path| error::missing(path, &property));
        };
        self.within(Step::Name(name), |to| {
            let Some(element) = to.read(Must::Be(local, key), value, &field) else { return };
            match walk(shape, At::alone(element.view()), &mut |_| Ok(())) {
                Ok(()) => to.to.element(element.view()),
                Err(error) => to.wrong(|path| error::schema(path, &error)),
            }
        });
    }

    fn xml(&mut self, must: Must<'_>, value: &Value, field: &Field) {
        if let Some(element) = self.read(must, value, field) {
            self.to.element(element.view());
        }
    }

    /// Parses the element in a string of XML, and checks its name and key.
    fn read(&mut self, must: Must<'_>, value: &Value, field: &Field) -> Option<Element> {
        let Value::String(text) = value else {
            self.wrong(|path| error::kind(path, value, "a string of XML", field));
            return None;
        };
        let element = match xml::read(text.clone(), Profile::Wire, &XmlLimits::INSIDE) {
            Ok(it) => it,
            Err(error) => {
                self.wrong(|path| error::xml(path, &error));
                return None;
            }
        };
        let ours = element.namespace() == self.namespace;
        let expected = match must {
            Must::Be(local, _) if !ours || element.local() != local => {
                Some(format!("<{local} xmlns={:?}>", self.namespace))
            }
            Must::Be(_, Some(key)) if element.attribute(KEY) != Some(key) => {
                Some(format!("the key {key:?}"))
            }
            Must::Differ(fields)
                if ours && fields.iter().any(|it| is_called(it, element.local())) =>
            {
                Some("an element that no field beside it is called".to_owned())
            }
            _ => None,
        };
        match expected {
            Some(expected) => {
                self.wrong(|path| error::not_this(path, element.local(), &expected));
                None
            }
            None => Some(element),
        }
    }
}
