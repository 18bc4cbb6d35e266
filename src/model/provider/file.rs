//! The keys of a provider file, as serde reads them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::model::provider::path::Paths;

/// A provider file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProviderFile {
    pub(super) provider: Server,
    #[serde(default)]
    pub(super) request: Option<RequestFile>,
    #[serde(default)]
    pub(super) stream: StreamFile,
    #[serde(default)]
    pub(super) whole: WholeFile,
}

/// The server: its name, wire, URL and headers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Server {
    pub(super) name: String,
    #[serde(default)]
    pub(super) wire: Option<WireName>,
    pub(super) api_url: String,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
}

/// A wire by its name.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum WireName {
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
    pub(super) body: Value,
    #[serde(default)]
    pub(super) messages: Messages,
    #[serde(default)]
    pub(super) call: Option<Value>,
    #[serde(default)]
    pub(super) tool: Option<Value>,
    #[serde(default)]
    pub(super) attachment: Option<Value>,
}

/// The shapes of messages.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Messages {
    #[serde(default)]
    pub(super) system: Option<Value>,
    #[serde(default)]
    pub(super) user: Option<Value>,
    #[serde(default)]
    pub(super) assistant: Option<Value>,
    #[serde(default)]
    pub(super) result: Option<Value>,
}

/// How a reply is streamed.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamFile {
    #[serde(default)]
    pub(super) enabled: Option<bool>,
    #[serde(default)]
    pub(super) format: Option<Format>,
    #[serde(default)]
    pub(super) mode: Option<Mode>,
    #[serde(default)]
    pub(super) event_type: Paths,
    #[serde(default)]
    pub(super) extract: Extract,
    #[serde(default)]
    pub(super) events: BTreeMap<String, Extract>,
    #[serde(default)]
    pub(super) tool_call: CallPaths,
    #[serde(default)]
    pub(super) stops: BTreeMap<String, StopWord>,
    #[serde(default)]
    pub(super) end_mark: Option<String>,
    /// The manifest reads the sinks, since a model doesn't know them.
    #[serde(default)]
    #[expect(dead_code, reason = "the key is known here, and its value is read elsewhere")]
    pub(super) sinks: Option<IgnoredAny>,
}

/// How a reply that isn't streamed is read.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WholeFile {
    #[serde(default)]
    pub(super) api_url: Option<String>,
    #[serde(default)]
    pub(super) extract: Extract,
}

/// How the bytes of a stream are split into events.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    /// Server-sent events.
    #[default]
    Sse,
    /// One line of JSON for each event.
    Ndjson,
}

/// How the events of a stream make up a reply.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
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
pub(super) struct Extract {
    #[serde(default)]
    pub(super) text: Paths,
    #[serde(default)]
    pub(super) reasoning: Paths,
    #[serde(default)]
    pub(super) refusal: Paths,
    #[serde(default)]
    pub(super) tool_calls: Paths,
    #[serde(default)]
    pub(super) server_calls: Paths,
    /// The paths to further text for the arguments of the call at `index`.
    #[serde(default)]
    pub(super) arguments: Paths,
    #[serde(default)]
    pub(super) index: Paths,
    #[serde(default)]
    pub(super) usage: UsagePaths,
    #[serde(default)]
    pub(super) stop_reason: Paths,
    #[serde(default)]
    pub(super) error: Paths,
    #[serde(default)]
    pub(super) end: Paths,
}

/// The paths to the counts of tokens. If a count has several paths, the numbers that they find are
/// added.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct UsagePaths {
    #[serde(default)]
    pub(super) input: Paths,
    #[serde(default)]
    pub(super) output: Paths,
    #[serde(default)]
    pub(super) cached: Paths,
    #[serde(default)]
    pub(super) reasoning: Paths,
}

/// The paths to the parts of a call, in a value that `tool_calls` or `server_calls` finds.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct CallPaths {
    #[serde(default)]
    pub(super) id: Paths,
    #[serde(default)]
    pub(super) name: Paths,
    #[serde(default)]
    pub(super) arguments: Paths,
    #[serde(default)]
    pub(super) index: Paths,
}

/// The meaning of a provider's own stop reason.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StopWord {
    End,
    StopText,
    MaxTokens,
    Calls,
    Filtered,
}

impl Extract {
    /// Every path with its key.
    pub(super) fn paths(&self) -> [(&'static str, &Paths); 14] {
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

    pub(super) fn is_empty(&self) -> bool {
        self.paths().iter().all(|(_, it)| it.is_empty())
    }

    /// Removes the paths that `other` has under the same key.
    pub(super) fn without(&mut self, other: &Extract) {
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
