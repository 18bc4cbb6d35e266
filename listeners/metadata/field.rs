//! The declarations of an agent's metadata fields, and the values that each field allows.

use std::collections::BTreeSet;
use std::fmt;

use pumphouse::limits::FeedLimits;
use pumphouse::schema::{json, nearest};
use pumphouse::xml::writable;
use serde::de::{DeserializeSeed, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::update::cut;
use super::words::{Handed, Metadata, MetadataError};

/// The fields that an agent may set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    #[serde(deserialize_with = "declared", default)]
    fields: Vec<Field>,
    /// How prompts describe the fields.
    #[serde(default)]
    pub injection: Injection,
    /// Whether one error in an update rejects the whole update.
    #[serde(default)]
    pub atomic: bool,
    /// The values that called agents get, unless the call says otherwise.
    #[serde(default)]
    pub children: Handed,
    /// The workflows whose outputs set the fields of the same names.
    #[serde(default)]
    pub from_workflows: Vec<String>,
}

/// A field of metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    name: String,
    kind: Kind,
    default: Option<Value>,
    description: String,
}

/// The type of a field's values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// One of these texts.
    Enum(Vec<String>),
    /// A text.
    String,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A JSON object.
    Object,
    /// A JSON array.
    Array,
}

/// How prompts describe the fields and show their values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Injection {
    /// Whether prompts describe the fields.
    pub method: Method,
    /// A text for the end of each prompt, in place of the usual description and list of values. In
    /// a line that begins with a field's name, `{values}` stands for the values that the field
    /// allows, and `{current_value}` for the field's value.
    pub template: Option<String>,
}

/// Whether prompts describe the fields and show their values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Method {
    /// Prompts describe the fields and show their values. Without a template, the description is at
    /// the beginning of a prompt and the values are at its end.
    #[default]
    Auto,
    /// Prompts don't mention the fields.
    None,
}

/// The reason why a declaration of fields is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongField(String);

impl fmt::Display for WrongField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongField {}

impl Fields {
    /// Checks fields and collects them.
    ///
    /// # Errors
    /// Fails if
    ///
    /// - a name has characters other than letters, digits, `_` and `-`, or begins with a digit or
    ///   `-`,
    /// - an enum has no values, or the same value twice,
    /// - a field doesn't allow its default,
    /// - two fields have the same name, or
    /// - there are more than `fields_max` fields.
    pub fn new(fields: impl IntoIterator<Item = Field>) -> Result<Fields, WrongField> {
        let fields: Vec<Field> = fields.into_iter().collect();
        fields.iter().try_for_each(Field::check)?;
        several(&fields)?;
        Ok(Fields { fields, ..Fields::default() })
    }

    /// Sets how a prompt describes the fields.
    #[must_use]
    pub fn injection(self, injection: Injection) -> Fields {
        Fields { injection, ..self }
    }

    /// Makes updates all or nothing: if one value is wrong, no field is changed.
    #[must_use]
    pub fn atomic(self) -> Fields {
        Fields { atomic: true, ..self }
    }

    /// Sets which values called agents get, unless the call says otherwise. By default they get
    /// none.
    #[must_use]
    pub fn children(self, handed: Handed) -> Fields {
        Fields { children: handed, ..self }
    }

    /// Lets the outputs of these workflows set the fields of the same names.
    #[must_use]
    pub fn set_by_workflows<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Fields {
        Fields { from_workflows: names.into_iter().map(Into::into).collect(), ..self }
    }

    /// Checks values against the fields. The result has the allowed values, and an error for each
    /// unknown field and each wrong value. If the fields are atomic, any error means that no value
    /// is set.
    #[must_use]
    pub fn checked(&self, values: impl IntoIterator<Item = (String, Value)>) -> Metadata {
        let (mut kept, mut error) = (Map::new(), Vec::new());
        for (name, value) in values {
            let accepts = match self.get(&name) {
                Some(field) => field.accepts(&value).map_err(|why| format!("{name}: {why}")),
                None => Err(format!("Unknown field: {}", cut(&name))),
            };
            match accepts {
                Ok(()) => drop(kept.insert(name, value)),
                Err(why) => {
                    let field = writable(&cut(&name));
                    error.push(MetadataError { field, message: writable(&why) });
                }
            }
        }
        if self.atomic && !error.is_empty() {
            kept.clear();
        }
        let fields = (!kept.is_empty()).then(|| json::text(&Value::Object(kept)));
        Metadata { fields, error, ..Metadata::default() }
    }

    /// Whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// All fields, in the order of their declaration.
    pub fn all(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter()
    }

    /// The field of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Field> {
        self.all().find(|it| it.name == name)
    }

    /// Returns the error text for a reference to an undeclared field, such as `no stats; did you
    /// mean status?`. None if the field is declared.
    pub(in super::super) fn lacks(&self, name: &str) -> Option<String> {
        if self.get(name).is_some() {
            return None;
        }
        let right = nearest(name, self.all().map(Field::name));
        let right = right.map(|it| format!("; did you mean {it}?")).unwrap_or_default();
        Some(format!("no {name}{right}"))
    }
}

impl Field {
    /// A field with this name and type.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: Kind) -> Field {
        Field { name: name.into(), kind, default: None, description: String::new() }
    }

    /// A field whose value is one of these texts.
    #[must_use]
    pub fn choice<N: Into<String>>(
        name: impl Into<String>,
        values: impl IntoIterator<Item = N>,
    ) -> Field {
        Field::new(name, Kind::Enum(values.into_iter().map(Into::into).collect()))
    }

    /// Sets the default: the value until the agent sets one.
    #[must_use]
    pub fn default(self, value: impl Into<Value>) -> Field {
        Field { default: Some(value.into()), ..self }
    }

    /// Sets the description, which prompts show.
    #[must_use]
    pub fn describe(self, text: impl Into<String>) -> Field {
        Field { description: text.into(), ..self }
    }

    /// The field's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of the field's values.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The default, if there is one.
    #[must_use]
    pub fn initial(&self) -> Option<&Value> {
        self.default.as_ref()
    }

    /// The description. Empty if none was set.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Checks that the field allows a value.
    ///
    /// # Errors
    /// Returns the reason, worded for the model, if the value has the wrong type, isn't one of the
    /// choices, or has more than `field_bytes_max` bytes.
    pub fn accepts(&self, value: &Value) -> Result<(), String> {
        self.kind.accepts(value)?;
        let (bytes, max) = (value.to_string().len(), FeedLimits::default().field_bytes_max);
        if bytes > max {
            return Err(format!("{bytes} bytes are too many: at the most {max} are kept"));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), WrongField> {
        let name = &self.name;
        let word = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
        if !name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
            || !name.chars().all(word)
        {
            let text = format!(
                "{name:?} is no name of a field: it has letters, digits, _ and -, and begins with \
                 a letter or _"
            );
            return Err(WrongField(text));
        }
        self.sound().map_err(|text| WrongField(format!("{name}: {text}")))
    }

    /// Checks the values of an enum, and the default.
    fn sound(&self) -> Result<(), String> {
        if let Kind::Enum(values) = &self.kind {
            let mut seen = BTreeSet::new();
            if values.is_empty() {
                return Err("an enum needs values, as in `values: [LOW, HIGH]`".to_owned());
            }
            if let Some(twice) = values.iter().find(|it| !seen.insert(*it)) {
                return Err(format!("the value {twice} stands twice"));
            }
        }
        match &self.default {
            Some(value) => self.accepts(value).map_err(|it| format!("the default won't do: {it}")),
            None => Ok(()),
        }
    }
}

impl Kind {
    fn accepts(&self, value: &Value) -> Result<(), String> {
        let what = match (self, value) {
            (Kind::Enum(values), Value::String(it)) if values.contains(it) => return Ok(()),
            (Kind::String, Value::String(_))
            | (Kind::Number, Value::Number(_))
            | (Kind::Boolean, Value::Bool(_))
            | (Kind::Object, Value::Object(_))
            | (Kind::Array, Value::Array(_)) => return Ok(()),
            (Kind::Enum(values), _) => format!("not in [{}]", values.join(", ")),
            (Kind::String, _) => "is not a string".to_owned(),
            (Kind::Number, _) => "is not a number".to_owned(),
            (Kind::Boolean, _) => "is not a boolean".to_owned(),
            (Kind::Object, _) => "is not an object".to_owned(),
            (Kind::Array, _) => "is not an array".to_owned(),
        };
        Err(format!("{} {what}", cut(&value.to_string())))
    }
}

/// Checks that no two fields have the same name, and that there are at most `fields_max` fields.
fn several(fields: &[Field]) -> Result<(), WrongField> {
    let mut seen = BTreeSet::new();
    if let Some(twice) = fields.iter().find(|it| !seen.insert(&it.name)) {
        return Err(WrongField(format!("the field {} stands twice", twice.name)));
    }
    let max = FeedLimits::default().fields_max;
    match fields.len() > max {
        true => {
            let text = format!("{} fields are too many: fields_max is {max}", fields.len());
            Err(WrongField(text))
        }
        false => Ok(()),
    }
}

/// A field as a manifest declares it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    r#type: Option<Type>,
    values: Option<Vec<String>>,
    default: Option<Value>,
    description: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Type {
    Enum,
    String,
    Number,
    Boolean,
    Object,
    Array,
}

impl Written {
    fn field(self, name: String) -> Result<Field, String> {
        let Written { r#type, values, default, description } = self;
        let kind = match (r#type, values) {
            // A field with values and no type is an enum.
            (Some(Type::Enum) | None, Some(values)) => Kind::Enum(values),
            (Some(Type::Enum), None) => Kind::Enum(Vec::new()),
            (Some(_), Some(_)) => return Err("values are for the type enum only".to_owned()),
            (Some(Type::String), None) => Kind::String,
            (Some(Type::Number), None) => Kind::Number,
            (Some(Type::Boolean), None) => Kind::Boolean,
            (Some(Type::Object), None) => Kind::Object,
            (Some(Type::Array), None) => Kind::Array,
            (None, None) => {
                let all = "enum, string, number, boolean, object or array";
                return Err(format!("a field needs a type: {all}"));
            }
        };
        let field = Field { name, kind, default, description: description.unwrap_or_default() };
        field.check().map(|()| field).map_err(|it| it.0)
    }
}

/// Reads a map from names to fields, in the order of the manifest.
fn declared<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Field>, D::Error> {
    struct FieldsByName;

    impl<'de> Visitor<'de> for FieldsByName {
        type Value = Vec<Field>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("fields by their names, as in `status: {type: string}`")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Field>, A::Error> {
            let mut fields = Vec::new();
            while let Some(name) = map.next_key()? {
                fields.push(map.next_value_seed(Named(name))?);
            }
            several(&fields).map_err(A::Error::custom)?;
            Ok(fields)
        }
    }

    from.deserialize_map(FieldsByName)
}

/// Reads the declaration of the field with this name. An error is reported at this field's place in
/// the manifest.
struct Named(String);

impl<'de> DeserializeSeed<'de> for Named {
    type Value = Field;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Field, D::Error> {
        from.deserialize_newtype_struct("Field", self)
    }
}

impl<'de> Visitor<'de> for Named {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field, as in `{type: string}`")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, from: D) -> Result<Field, D::Error> {
        Written::deserialize(from)?.field(self.0).map_err(D::Error::custom)
    }
}
