//! The configuration of a reply's parser.

use crate::limits::ReplyLimits;
use crate::reply::Markup;
use crate::reply::streaming::{JsonFormat, Streaming};

/// How a reply is to be understood: start from the default and change what you must.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Which names are markup.
    pub markup: Markup,
    /// How the model writes its calls.
    pub dialect: Dialect,
    /// By which rules it is read.
    pub reading: Reading,
    /// Whether actions in the text of a response run. They don't, unless you say so.
    pub actions_in_response: bool,
    /// How large its parts may be.
    pub limits: ReplyLimits,
    /// The attributes that a `<tool_use>` must have; a missing `id` is made up.
    pub tool_use_attributes: Vec<String>,
    /// What a call looks like in JSON, for [`Dialect::ToolUse`].
    pub tool_use_json: JsonFormat,
}

/// How a model writes its calls. `<tool_use>` is markup in each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// As tags.
    #[default]
    Tags,
    /// As tags, or as JSON in the text: an object with `"type": "tool_use"`, or an array of such.
    ToolUse,
}

/// By which rules a reply is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reading {
    /// Those of before: for replies of turns that are in a log and go by rules older than 3.
    First,
    /// Code is what `CommonMark` calls so; payloads count where they begin a line.
    #[default]
    CommonMark,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            markup: Markup::default(),
            dialect: Dialect::Tags,
            reading: Reading::default(),
            actions_in_response: false,
            limits: ReplyLimits::default(),
            tool_use_attributes: vec!["id".to_owned(), "name".to_owned()],
            tool_use_json: JsonFormat::default(),
        }
    }
}

impl Config {
    /// With these names as markup.
    #[must_use]
    pub fn marked_up(self, markup: Markup) -> Config {
        Config { markup, ..self }
    }

    /// With calls written so.
    #[must_use]
    pub fn speaking(self, dialect: Dialect) -> Config {
        Config { dialect, ..self }
    }

    /// Takes what a `streaming_config` says of a parser: its limits, its tags, its JSON.
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

/// What a call looks like in JSON, at hand.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) mark: String,
    pub(super) required: Vec<String>,
    /// Names and their types in JSON Schema.
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
        Shape {
            mark: mark.unwrap_or_else(|| "tool_use".to_owned()),
            required: format.schema.required.clone(),
            properties: types.collect(),
        }
    }
}
