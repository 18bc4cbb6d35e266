//! The built-in provider files of the wires, each with a sample stream.

use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::limits::ModelLimits;
use crate::model::Wire;
use crate::model::provider::file::Format;
use crate::model::provider::{Provider, ProviderFile};
use crate::model::wire::Framing;

/// The names of built-in providers and wires, each with its wire.
pub(super) const NAMES: [(&str, Wire); 8] = [
    ("anthropic", Wire::AnthropicMessages),
    ("openai", Wire::OpenAiChat),
    ("google", Wire::Gemini),
    ("anthropic-messages", Wire::AnthropicMessages),
    ("openai-chat", Wire::OpenAiChat),
    ("openai-responses", Wire::OpenAiResponses),
    ("gemini", Wire::Gemini),
    ("ollama", Wire::Ollama),
];

/// The wire that belongs to a name in `NAMES`.
pub(super) fn wire_of(name: &str) -> Option<Wire> {
    NAMES.iter().find(|(it, _)| *it == name).map(|(_, wire)| *wire)
}

/// The text of a wire's provider file.
pub(super) fn text(wire: Wire) -> &'static str {
    match wire {
        Wire::AnthropicMessages => include_str!("built_in/anthropic-messages.yaml"),
        Wire::OpenAiChat => include_str!("built_in/openai-chat.yaml"),
        Wire::OpenAiResponses => include_str!("built_in/openai-responses.yaml"),
        Wire::Gemini => include_str!("built_in/gemini.yaml"),
        Wire::Ollama => include_str!("built_in/ollama.yaml"),
    }
}

fn sample_text(wire: Wire) -> &'static str {
    match wire {
        Wire::AnthropicMessages => include_str!("built_in/anthropic-messages.sse"),
        Wire::OpenAiChat => include_str!("built_in/openai-chat.sse"),
        Wire::OpenAiResponses => include_str!("built_in/openai-responses.sse"),
        Wire::Gemini => include_str!("built_in/gemini.sse"),
        Wire::Ollama => include_str!("built_in/ollama.ndjson"),
    }
}

/// A wire's provider file, parsed.
pub(super) fn description(wire: Wire) -> &'static ProviderFile {
    static ALL: LazyLock<[ProviderFile; 5]> = LazyLock::new(|| {
        Wire::ALL.map(|wire| {
            let file = serde_yaml::from_str(text(wire));
            #[expect(clippy::expect_used, reason = "a test reads what is part of the crate")]
            file.expect("a description that is built in is a provider file")
        })
    });
    &ALL[at(wire)]
}

/// The provider that a wire's own file describes.
pub(crate) fn of_wire(wire: Wire) -> &'static Arc<Provider> {
    static ALL: LazyLock<[Arc<Provider>; 5]> = LazyLock::new(|| {
        Wire::ALL.map(|wire| {
            let provider = text(wire).parse();
            #[expect(clippy::expect_used, reason = "a test reads what is part of the crate")]
            Arc::new(provider.expect("a description that is built in is a provider file"))
        })
    });
    &ALL[at(wire)]
}

/// The URL of a wire's streamed requests. `{model}` in it stands for the model's name.
pub(crate) fn api_url(wire: Wire) -> &'static str {
    &description(wire).provider.api_url
}

fn at(wire: Wire) -> usize {
    Wire::ALL.iter().position(|it| *it == wire).unwrap_or_default()
}

/// The events of a sample reply with reasoning, text and a tool call, as the wire writes them.
pub(super) fn sample(wire: Wire) -> Vec<Value> {
    let bytes_max = ModelLimits::default().event_bytes_max;
    let mut framing = match description(wire).stream.format {
        Some(Format::Ndjson) => Framing::lines(bytes_max),
        _ => Framing::events(bytes_max),
    };
    let mut bytes = bytes::Bytes::from_static(sample_text(wire).as_bytes());
    let mut events = Vec::new();
    while !bytes.is_empty() {
        let data = framing.next(&mut bytes).ok().flatten();
        events.extend(data.and_then(|it| serde_json::from_str(&it).ok()));
    }
    events
}
