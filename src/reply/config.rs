//! The configuration of a reply's parser.

use crate::limits::ReplyLimits;
use crate::reply::Markup;
use crate::reply::streaming::{JsonFormat, Streaming};

/// How a reply is parsed. Start from the default and change what you need.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The names whose tags are markup.
    pub markup: Markup,
    /// How the model writes its calls.
    pub dialect: Dialect,
    /// Whether calls in a response are emitted as calls. By default they are text.
    pub actions_in_response: bool,
    /// How large the parts of a reply may be.
    pub limits: ReplyLimits,
    /// The attributes that a `<tool_use>` must have. The parser generates a missing `id`, even if
    /// `id` is listed here.
    pub tool_use_attributes: Vec<String>,
    /// The form of a call in JSON, for [`Dialect::ToolUse`].
    pub tool_use_json: JsonFormat,
}

/// How a model writes its calls. The tag `<tool_use>` is markup in every dialect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// As tags.
    #[default]
    Tags,
    /// As tags, or as JSON in the text: an object with `"type": "tool_use"`, or an array of such
    /// objects. [`Config::tool_use_json`] may set another type.
    ToolUse,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            markup: Markup::default(),
            dialect: Dialect::Tags,
            actions_in_response: false,
            limits: ReplyLimits::default(),
            tool_use_attributes: vec!["id".to_owned(), "name".to_owned()],
            tool_use_json: JsonFormat::default(),
        }
    }
}

impl Config {
    /// Sets the names whose tags are markup.
    #[must_use]
    pub fn marked_up(self, markup: Markup) -> Config {
        Config { markup, ..self }
    }

    /// Sets how the model writes its calls.
    #[must_use]
    pub fn speaking(self, dialect: Dialect) -> Config {
        Config { dialect, ..self }
    }

    /// Takes from a `streaming_config`: the limits of calls and texts, a further tag for calls, and
    /// the form of JSON calls.
    #[must_use]
    pub fn streaming(mut self, streaming: &Streaming) -> Config {
        self.limits.action_bytes_max = streaming.tool_parse_buffer_max;
        self.limits.text_bytes_max = streaming.text_buffer_max;
        if let Some(tags) = &streaming.formats.xml {
            self.markup = self.markup.tool_use(tags.name());
            self.tool_use_attributes.clone_from(&tags.attributes);
        }
        if let Some(json) = &streaming.formats.json {
            self.tool_use_json = json.clone();
        }
        self
    }
}

/// The form of a call in JSON, prepared for parsing.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) mark: String,
    pub(super) required: Vec<String>,
    /// The names of properties, and their types in JSON Schema.
    pub(super) properties: Vec<(String, String)>,
}

impl Shape {
    pub(super) fn new(format: &JsonFormat) -> Shape {
        let properties = &format.schema.properties;
        let mark = properties.get("type").and_then(|it| it.constant.clone());
        let types = properties.iter().map(|(name, property)| {
            let kind = property.kind.clone().unwrap_or_else(|| "string".to_owned());
            (name.clone(), kind)
        });
        // Each call has a `type`, whether the schema names this property or not.
        let has_type = properties.contains_key("type");
        let own_type = (!has_type).then(|| ("type".to_owned(), "string".to_owned()));
        Shape {
            mark: mark.unwrap_or_else(|| "tool_use".to_owned()),
            required: format.schema.required.clone(),
            properties: own_type.into_iter().chain(types).collect(),
        }
    }
}
