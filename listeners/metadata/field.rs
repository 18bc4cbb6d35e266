//! The metadata fields that are declared for an agent, and their allowed values.

use std::collections::BTreeSet;
use std::fmt;

use pumphouse::limits::FeedLimits;
use serde::de::{DeserializeSeed, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::update::cut;

/// The fields that an agent may set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    #[serde(deserialize_with = "declared", default)]
    fields: Vec<Field>,
    /// Where a prompt says what they are.
    #[serde(default)]
    pub injection: Injection,
    /// Whether nothing of an update is kept where any of it doesn't fit.
    #[serde(default)]
    pub atomic: bool,
}

/// A field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    name: String,
    kind: Kind,
    default: Option<Value>,
    description: String,
}

/// What a field may hold.
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

/// How a prompt says what the fields are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Injection {
    /// Whether it does.
    pub method: Method,
    /// A text for the end of each prompt instead of ours: `{values}` and `{current_value}` are
    /// those of the field whose name the line begins with.
    pub template: Option<String>,
}

/// Whether a prompt says what the fields are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Method {
    /// What they are stands before all else, what they hold at the end.
    #[default]
    Auto,
    /// It doesn't.
    None,
}

/// Fields that can't be declared so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongField(String);

impl fmt::Display for WrongField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongField {}

impl Fields {
    /// These fields.
    ///
    /// # Errors
    /// Where one has no name that JSON and XML share, or a default that it can't hold, where two
    /// have one name, or there are too many.
    pub fn new(fields: impl IntoIterator<Item = Field>) -> Result<Fields, WrongField> {
        let fields: Vec<Field> = fields.into_iter().collect();
        fields.iter().try_for_each(Field::check)?;
        several(&fields)?;
        Ok(Fields { fields, ..Fields::default() })
    }

    /// Says otherwise where a prompt says what they are.
    #[must_use]
    pub fn injection(self, injection: Injection) -> Fields {
        Fields { injection, ..self }
    }

    /// Keeps nothing of an update where any of it doesn't fit.
    #[must_use]
    pub fn atomic(self) -> Fields {
        Fields { atomic: true, ..self }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Each of them.
    pub fn all(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter()
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Field> {
        self.all().find(|it| it.name == name)
    }
}

impl Field {
    /// A field of this name that holds such.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: Kind) -> Field {
        Field { name: name.into(), kind, default: None, description: String::new() }
    }

    /// A field that holds one of these texts.
    #[must_use]
    pub fn choice<N: Into<String>>(
        name: impl Into<String>,
        values: impl IntoIterator<Item = N>,
    ) -> Field {
        Field::new(name, Kind::Enum(values.into_iter().map(Into::into).collect()))
    }

    /// What it holds before it is set.
    #[must_use]
    pub fn default(self, value: impl Into<Value>) -> Field {
        Field { default: Some(value.into()), ..self }
    }

    /// What it is for.
    #[must_use]
    pub fn describe(self, text: impl Into<String>) -> Field {
        Field { description: text.into(), ..self }
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it may hold.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// What it holds before it is set.
    #[must_use]
    pub fn initial(&self) -> Option<&Value> {
        self.default.as_ref()
    }

    /// What it is for; nothing where nobody said.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Whether it may hold a value.
    ///
    /// # Errors
    /// Why not, in the words that a model is told.
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
            let text = format!("{name:?} is no name of a field: it has letters, digits, _ and -");
            return Err(WrongField(text));
        }
        self.sound().map_err(|text| WrongField(format!("{name}: {text}")))
    }

    /// What is wrong with it apart from its name.
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

/// All that is wrong with fields together.
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

/// What a manifest says of a field.
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
            // Values alone say that it is an enum.
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

/// Fields by their names, in the order in which they are written.
fn declared<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Field>, D::Error> {
    struct Map;

    impl<'de> Visitor<'de> for Map {
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

    from.deserialize_map(Map)
}

/// A field whose name was read; what is wrong with it is wrong at its own place.
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
