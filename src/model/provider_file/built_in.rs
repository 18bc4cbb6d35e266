//! The built-in provider files of the wires, each with a sample stream.

use std::sync::LazyLock;

use crate::model::provider_file::keys::ProviderFile;
use crate::model::wire_name::Wire;

/// The names of built-in providers and wires, each with its wire.
pub(crate) const NAMES: [(&str, Wire); 8] = [
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
pub(crate) fn wire_of(name: &str) -> Option<Wire> {
    NAMES.iter().find(|(it, _)| *it == name).map(|(_, wire)| *wire)
}

/// The text of a wire's provider file.
pub(crate) fn text(wire: Wire) -> &'static str {
    match wire {
        Wire::AnthropicMessages => include_str!("built_in/anthropic-messages.yaml"),
        Wire::OpenAiChat => include_str!("built_in/openai-chat.yaml"),
        Wire::OpenAiResponses => include_str!("built_in/openai-responses.yaml"),
        Wire::Gemini => include_str!("built_in/gemini.yaml"),
        Wire::Ollama => include_str!("built_in/ollama.yaml"),
    }
}

/// The text of a sample stream of a wire.
pub(crate) fn sample_text(wire: Wire) -> &'static str {
    match wire {
        Wire::AnthropicMessages => include_str!("built_in/anthropic-messages.sse"),
        Wire::OpenAiChat => include_str!("built_in/openai-chat.sse"),
        Wire::OpenAiResponses => include_str!("built_in/openai-responses.sse"),
        Wire::Gemini => include_str!("built_in/gemini.sse"),
        Wire::Ollama => include_str!("built_in/ollama.ndjson"),
    }
}

/// A wire's provider file, parsed.
pub(crate) fn description(wire: Wire) -> &'static ProviderFile {
    static ALL: LazyLock<[ProviderFile; 5]> = LazyLock::new(|| {
        Wire::ALL.map(|wire| {
            let file = serde_yaml::from_str(text(wire));
            #[expect(clippy::expect_used, reason = "a test reads what is part of the crate")]
            file.expect("a description that is built in is a provider file")
        })
    });
    &ALL[at(wire)]
}

/// The URL of a wire's streamed requests. `{model}` in it stands for the model's name.
pub(crate) fn api_url(wire: Wire) -> &'static str {
    &description(wire).provider.api_url
}

/// The position of a wire in [`Wire::ALL`].
pub(crate) fn at(wire: Wire) -> usize {
    Wire::ALL.iter().position(|it| *it == wire).unwrap_or_default()
}
