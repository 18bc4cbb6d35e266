//! The settings document `streaming_config`: how a model writes its calls, how many calls start at
//! once, and how large they may be.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use crate::bounded_yaml;

/// The settings of a `streaming_config`.
///
/// ```
/// # extern crate pumphouse_reply as pumphouse;
/// let it = pumphouse::reply::Streaming::from_yaml("streaming_config: {tool_batch_size: 8}")?;
/// assert_eq!((it.tool_batch_size, it.tool_batch_delay), (8, 0.1));
/// # Ok::<(), pumphouse::reply::StreamingError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Streaming {
    /// The number of complete calls that start together, as a batch.
    pub tool_batch_size: usize,
    /// The seconds after which a batch with fewer calls starts anyway.
    pub tool_batch_delay: f64,
    /// The most bytes that one call may have.
    pub tool_parse_buffer_max: usize,
    /// The maximum number of bytes of one text outside of calls.
    pub text_buffer_max: usize,
    /// The forms of calls.
    pub formats: Formats,
}

impl Default for Streaming {
    fn default() -> Streaming {
        Streaming {
            tool_batch_size: 5,
            tool_batch_delay: 0.1,
            tool_parse_buffer_max: 1 << 20,
            text_buffer_max: 10 << 20,
            formats: Formats::default(),
        }
    }
}

/// The forms of calls, as tags and as JSON.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Formats {
    /// The form of a call as tags. None leaves the default.
    pub xml: Option<Tags>,
    /// The form of a call as JSON. None leaves the default.
    pub json: Option<JsonFormat>,
}

/// A call's tags.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Tags {
    /// The open tag, such as `<tool_use>`.
    pub tag_open: String,
    /// The close tag, such as `</tool_use>`.
    pub tag_close: String,
    /// The names of the attributes that the open tag of each call must have.
    #[serde(default)]
    pub attributes: Vec<String>,
}

impl Tags {
    /// The tag's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.tag_open.trim_start_matches('<').trim_end_matches('>')
    }
}

/// The form of a call in JSON.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct JsonFormat {
    /// The schema of a call.
    pub schema: JsonSchema,
}

impl Default for JsonFormat {
    fn default() -> JsonFormat {
        let property = |kind: Option<&str>, constant: Option<&str>| Property {
            kind: kind.map(str::to_owned),
            constant: constant.map(str::to_owned),
        };
        let properties = [
            ("type", property(None, Some("tool_use"))),
            ("id", property(Some("string"), None)),
            ("name", property(Some("string"), None)),
            ("input", property(Some("object"), None)),
        ];
        let schema = JsonSchema {
            kind: "object".to_owned(),
            required: ["type", "name", "input"].map(str::to_owned).to_vec(),
            properties: properties.map(|(name, it)| (name.to_owned(), it)).into(),
        };
        JsonFormat { schema }
    }
}

/// The part of JSON Schema that describes a call.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct JsonSchema {
    /// The type of a call, which is `object`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The names of the properties that a call must have.
    #[serde(default)]
    pub required: Vec<String>,
    /// The properties that are read from a call: their names, each with its schema.
    #[serde(default)]
    pub properties: BTreeMap<String, Property>,
}

/// The schema of a property.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Property {
    /// The property's type. None means `string`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The only value that the property may have. Only the `const` of the property `type` is read.
    #[serde(rename = "const")]
    pub constant: Option<String>,
}

/// The error of a `streaming_config` that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamingError {
    /// The mistake in words, with its key where the key is known.
    pub message: String,
}

impl fmt::Display for StreamingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StreamingError {}

impl Streaming {
    /// Reads a document with the key `streaming_config`, and optionally a `schema_version`.
    ///
    /// # Errors
    /// Returns an error if the text isn't YAML, has an unknown key or version, or has a value that
    /// isn't allowed.
    pub fn from_yaml(text: &str) -> Result<Streaming, StreamingError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Document {
            #[serde(default)]
            schema_version: Option<String>,
            streaming_config: Streaming,
        }
        let document: Document = bounded_yaml::from_str(text).map_err(error)?;
        match document.schema_version.as_deref() {
            None => {}
            Some(version) if version.starts_with("1.") => {}
            Some(version) => {
                return Err(error(format!("schema_version is {version}; 1.0.0 is understood")));
            }
        }
        document.streaming_config.sound()
    }

    /// Checks rules that the types of the values can't express.
    pub fn sound(self) -> Result<Streaming, StreamingError> {
        if self.tool_batch_size == 0 {
            return Err(error("tool_batch_size is 0: nothing would ever start; 1 is no batching"));
        }
        if !(0.0..=60.0).contains(&self.tool_batch_delay) {
            return Err(error("tool_batch_delay is in seconds, from 0 to 60"));
        }
        for (name, value) in [
            ("tool_parse_buffer_max", self.tool_parse_buffer_max),
            ("text_buffer_max", self.text_buffer_max),
        ] {
            if value < 1_024 {
                return Err(error(format!("{name} is {value} bytes: 1024 are the fewest")));
            }
        }
        if let Some(tags) = &self.formats.xml {
            let name = tags.name();
            let pair =
                tags.tag_open == format!("<{name}>") && tags.tag_close == format!("</{name}>");
            if !pair || !crate::xml::is_name(name) {
                return Err(error(format!(
                    "tag_open {} and tag_close {} are no pair such as <tool_use> and </tool_use>",
                    tags.tag_open, tags.tag_close
                )));
            }
        }
        Ok(self)
    }
}

fn error(message: impl Into<String>) -> StreamingError {
    StreamingError { message: message.into() }
}
