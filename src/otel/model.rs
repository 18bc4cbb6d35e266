//! Translates what the log says of a model into OpenTelemetry's words: its provider, its name, its
//! server, and why a reply ended.

use crate::otel::names;
use crate::otel::span::Attribute;
use pumphouse_listeners::agent::words::{CognitionOut, Interrupt};
use pumphouse_model::Stop;

/// Maps a provider's host to the provider's `gen_ai.provider.name` in OpenTelemetry's semantic
/// conventions. A host in this table also stands for its subdomains.
const PROVIDERS: &[(&str, &str)] = &[
    ("api.openai.com", "openai"),
    ("openai.azure.com", "azure.ai.openai"),
    ("services.ai.azure.com", "azure.ai.inference"),
    ("api.anthropic.com", "anthropic"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("amazonaws.com", "aws.bedrock"),
    ("api.mistral.ai", "mistral_ai"),
    ("api.groq.com", "groq"),
    ("api.deepseek.com", "deepseek"),
    ("api.x.ai", "x_ai"),
    ("api.cohere.com", "cohere"),
    ("api.perplexity.ai", "perplexity"),
    ("ml.cloud.ibm.com", "ibm.watsonx.ai"),
];

/// The name of a model in the record of a turn (`cognition_in`). For a model on a server, the text
/// looks like `small at http://127.0.0.1:8080/v1`. For any other model, the text has no fixed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModelName {
    /// The name by which the server knows the model. Without a URL, the whole text.
    pub(super) name: String,
    /// The convention's name of the provider, or else the host. Without a URL, the first word of
    /// the text.
    pub(super) provider: String,
    host: Option<String>,
    port: Option<u64>,
}

impl ModelName {
    pub(super) fn parse(text: &str) -> ModelName {
        let (name, url) = match text.rsplit_once(" at ") {
            Some((name, url)) => (name, url.parse::<reqwest::Url>().ok()),
            None => (text, None),
        };
        let Some(url) = url else {
            // `scripted by replies.yaml` and `recorded, 3 replies` begin with their kind.
            let kind = text.split([' ', ',']).next().unwrap_or_default();
            let provider = if kind.is_empty() { "unknown" } else { kind };
            let (name, provider) = (text.to_owned(), provider.to_owned());
            return ModelName { name, provider, host: None, port: None };
        };
        let host = url.host_str().unwrap_or_default().to_owned();
        let is_of = |of: &str| {
            host.strip_suffix(of).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let known = PROVIDERS.iter().find(|(of, _)| is_of(of));
        ModelName {
            name: name.to_owned(),
            provider: known.map_or(host.clone(), |it| it.1.to_owned()),
            port: url.port_or_known_default().map(u64::from),
            host: Some(host),
        }
    }

    /// Returns the attributes of the model in the span of a request to it.
    pub(super) fn attributes(&self) -> Vec<Attribute> {
        let mut all = vec![
            (names::PROVIDER_NAME, self.provider.as_str().into()),
            (names::REQUEST_MODEL, self.name.as_str().into()),
        ];
        all.extend(self.host.as_deref().map(|it| (names::SERVER_ADDRESS, it.into())));
        all.extend(self.port.map(|it| (names::SERVER_PORT, it.into())));
        all
    }

    /// Returns the attributes of a router in the span of a request. If the router chose the model
    /// `answered`, the provider and the server are those of that model. If `answered` is None,
    /// these are the attributes of `self`.
    pub(super) fn attributes_answered_by(&self, answered: Option<&ModelName>) -> Vec<Attribute> {
        let Some(answered) = answered else { return self.attributes() };
        let mut all = ModelName { name: self.name.clone(), ..answered.clone() }.attributes();
        all.push((names::RESPONSE_MODEL, answered.name.as_str().into()));
        all
    }
}

/// Translates the reason why a reply ended into OpenTelemetry's word. Returns None if the reply was
/// interrupted, stopped or failed, or if the log has no reason.
pub(super) fn finish_reason(stop: &str) -> Option<&str> {
    Some(match Stop::from(stop) {
        Stop::End | Stop::StopText => "stop",
        Stop::MaxTokens => "length",
        Stop::Calls => "tool_call",
        Stop::Filtered => "content_filter",
        Stop::Other(_) => match stop {
            Interrupt::WORD | CognitionOut::STOPPED | "error" | "" => return None,
            word => word,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_known_by_its_host() {
        let azure = "https://west.openai.azure.com/openai/v1";
        for (text, name, provider) in [
            ("gpt-5 at https://api.openai.com/v1", "gpt-5", "openai"),
            (&format!("large at {azure}"), "large", "azure.ai.openai"),
            ("opus at https://api.anthropic.com/v1", "opus", "anthropic"),
            ("small at http://127.0.0.1:8080/v1", "small", "127.0.0.1"),
            ("m at https://notapi.openai.com.example/v1", "m", "notapi.openai.com.example"),
            ("scripted by replies.yaml", "scripted by replies.yaml", "scripted"),
            ("recorded, 3 replies", "recorded, 3 replies", "recorded"),
            ("look at me", "look at me", "look"),
            ("", "", "unknown"),
        ] {
            let it = ModelName::parse(text);
            assert_eq!((&*it.name, &*it.provider), (name, provider), "{text}");
        }
    }

    #[test]
    fn a_server_has_an_address_and_a_port() {
        let it = ModelName::parse("m at https://api.openai.com/v1").attributes();
        assert!(it.contains(&(names::SERVER_ADDRESS, "api.openai.com".into())), "{it:?}");
        assert!(it.contains(&(names::SERVER_PORT, 443.into())), "{it:?}");
        assert_eq!(ModelName::parse("scripted by a").attributes().len(), 2);
    }

    #[test]
    fn a_model_that_a_router_chose_is_the_one_that_answered() {
        let router = ModelName::parse("failover of large, small");
        let answered = ModelName::parse("opus at https://api.anthropic.com/v1");
        let all = router.attributes_answered_by(Some(&answered));
        assert!(all.contains(&(names::PROVIDER_NAME, "anthropic".into())), "{all:?}");
        assert!(all.contains(&(names::REQUEST_MODEL, "failover of large, small".into())));
        assert!(all.contains(&(names::RESPONSE_MODEL, "opus".into())));
        assert!(all.contains(&(names::SERVER_ADDRESS, "api.anthropic.com".into())));
        assert_eq!(router.attributes_answered_by(None), router.attributes());
    }

    #[test]
    fn a_reply_ends_in_the_words_of_the_convention() {
        for (stop, reason) in [
            ("end", Some("stop")),
            ("stop-text", Some("stop")),
            ("max-tokens", Some("length")),
            ("calls", Some("tool_call")),
            ("filtered", Some("content_filter")),
            ("pause_turn", Some("pause_turn")),
            ("interrupted", None),
            ("stopped", None),
            ("error", None),
        ] {
            assert_eq!(finish_reason(stop), reason, "{stop}");
        }
    }
}
