//! The keys of a provider file, as serde reads them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::model::provider_file::path::Paths;

/// A provider file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderFile {
    pub(crate) provider: Server,
    #[serde(default)]
    pub(crate) request: Option<RequestFile>,
    #[serde(default)]
    pub(crate) stream: StreamFile,
    #[serde(default)]
    pub(crate) whole: WholeFile,
}

/// The server: its name, wire, URL and headers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Server {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) wire: Option<WireName>,
    pub(crate) api_url: String,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
}

/// A wire by its name.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WireName {
    AnthropicMessages,
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    Gemini,
    Ollama,
}

/// The template of a request's body, and the shapes of its messages, calls, tools and attachments.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestFile {
    pub(crate) body: Value,
    #[serde(default)]
    pub(crate) messages: Messages,
    #[serde(default)]
    pub(crate) call: Option<Value>,
    #[serde(default)]
    pub(crate) tool: Option<Value>,
    #[serde(default)]
    pub(crate) attachment: Option<Value>,
}

/// The shapes of messages.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Messages {
    #[serde(default)]
    pub(crate) system: Option<Value>,
    #[serde(default)]
    pub(crate) user: Option<Value>,
    #[serde(default)]
    pub(crate) assistant: Option<Value>,
    #[serde(default)]
    pub(crate) result: Option<Value>,
}

/// How a reply is streamed.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StreamFile {
    #[serde(default)]
    pub(crate) enabled: Option<bool>,
    #[serde(default)]
    pub(crate) format: Option<Format>,
    #[serde(default)]
    pub(crate) mode: Option<Mode>,
    #[serde(default)]
    pub(crate) event_type: Paths,
    #[serde(default)]
    pub(crate) extract: Extract,
    #[serde(default)]
    pub(crate) events: BTreeMap<String, Extract>,
    #[serde(default)]
    pub(crate) tool_call: CallPaths,
    #[serde(default)]
    pub(crate) stops: BTreeMap<String, StopWord>,
    #[serde(default)]
    pub(crate) end_mark: Option<String>,
    /// The manifest reads the sinks, since a model doesn't know them.
    #[serde(default)]
    #[expect(dead_code, reason = "the key is known here, and its value is read elsewhere")]
    pub(crate) sinks: Option<IgnoredAny>,
}

/// How a reply that isn't streamed is read.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WholeFile {
    #[serde(default)]
    pub(crate) api_url: Option<String>,
    #[serde(default)]
    pub(crate) extract: Extract,
}

/// How the bytes of a stream are split into events.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// Server-sent events.
    #[default]
    Sse,
    /// One line of JSON for each event.
    Ndjson,
}

/// How the events of a stream make up a reply.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// Each event has a type. Blocks begin, grow and end by events of different types.
    EventTyped,
    /// Events are parts of one message. The parts of a call are merged by their index.
    DeltaMerge,
    /// Each event holds whole parts: a call is in a single event.
    #[default]
    CompleteChunks,
}

/// The paths to the parts of a reply in an event.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Extract {
    #[serde(default)]
    pub(crate) text: Paths,
    #[serde(default)]
    pub(crate) reasoning: Paths,
    #[serde(default)]
    pub(crate) refusal: Paths,
    #[serde(default)]
    pub(crate) tool_calls: Paths,
    #[serde(default)]
    pub(crate) server_calls: Paths,
    /// The paths to further text for the arguments of the call at `index`.
    #[serde(default)]
    pub(crate) arguments: Paths,
    #[serde(default)]
    pub(crate) index: Paths,
    #[serde(default)]
    pub(crate) usage: UsagePaths,
    #[serde(default)]
    pub(crate) stop_reason: Paths,
    #[serde(default)]
    pub(crate) error: Paths,
    #[serde(default)]
    pub(crate) end: Paths,
}

/// The paths to the counts of tokens. If a count has several paths, the numbers that they find are
/// added.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsagePaths {
    #[serde(default)]
    pub(crate) input: Paths,
    #[serde(default)]
    pub(crate) output: Paths,
    #[serde(default)]
    pub(crate) cached: Paths,
    #[serde(default)]
    pub(crate) reasoning: Paths,
}

/// The paths to the parts of a call, in a value that `tool_calls` or `server_calls` finds.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallPaths {
    #[serde(default)]
    pub(crate) id: Paths,
    #[serde(default)]
    pub(crate) name: Paths,
    #[serde(default)]
    pub(crate) arguments: Paths,
    #[serde(default)]
    pub(crate) index: Paths,
}

/// The meaning of a provider's own stop reason.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StopWord {
    End,
    StopText,
    MaxTokens,
    Calls,
    Filtered,
}

impl Extract {
    /// Every path with its key.
    pub(crate) fn paths(&self) -> [(&'static str, &Paths); 14] {
        [
            ("text", &self.text),
            ("reasoning", &self.reasoning),
            ("refusal", &self.refusal),
            ("tool_calls", &self.tool_calls),
            ("server_calls", &self.server_calls),
            ("arguments", &self.arguments),
            ("index", &self.index),
            ("usage.input", &self.usage.input),
            ("usage.output", &self.usage.output),
            ("usage.cached", &self.usage.cached),
            ("usage.reasoning", &self.usage.reasoning),
            ("stop_reason", &self.stop_reason),
            ("error", &self.error),
            ("end", &self.end),
        ]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.paths().iter().all(|(_, it)| it.is_empty())
    }

    /// Removes the paths that `other` has under the same key.
    pub(crate) fn without(&mut self, other: &Extract) {
        let mine = [
            &mut self.text,
            &mut self.reasoning,
            &mut self.refusal,
            &mut self.tool_calls,
            &mut self.server_calls,
            &mut self.arguments,
            &mut self.index,
            &mut self.usage.input,
            &mut self.usage.output,
            &mut self.usage.cached,
            &mut self.usage.reasoning,
            &mut self.stop_reason,
            &mut self.error,
            &mut self.end,
        ];
        mine.into_iter().zip(other.paths()).for_each(|(it, (_, other))| it.without(other));
    }
}
