//! Parameters of requests that families of models refuse, at all or together.
//!
//! A family is known by the provider's name of the model, and a provider by its host. Of a model
//! that isn't known here, nothing is left out. `docs/models.md` has these rules as a table, with
//! their sources.

use serde_json::{Map, Value};

use crate::model::wire::Effort;
use crate::model::wire_name::Wire;

/// A parameter of a request that a manifest or a prompt may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    Temperature,
    TopP,
    Stop,
    Effort,
}

/// A model at a server, as far as it decides which parameters a request may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served<'a> {
    pub(crate) wire: Wire,
    /// The server's host, without a port. Empty if it isn't known.
    pub(crate) host: &'a str,
    /// The provider's name of the model.
    pub(crate) model: &'a str,
    /// How much the model is to reason, if the settings say so.
    pub(crate) effort: Option<Effort>,
    /// The author's own keys of each request.
    pub(crate) extra: &'a Map<String, Value>,
}

/// How many tools a request to a server may have. OpenAI refuses a request with more, also where it
/// serves from Azure.
pub(crate) fn tools_max(host: &str) -> usize {
    let is_openai = host == "api.openai.com" || host.ends_with(".openai.azure.com");
    if is_openai { 128 } else { usize::MAX }
}

/// The form in which a model is told how much to reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reasoning {
    /// By a word.
    Level,
    /// By a number of tokens.
    Budget,
    /// By a switch, without a measure.
    Switch,
}

impl Served<'_> {
    /// Why the server would refuse a request with this parameter. None if the parameter is sent.
    pub(crate) fn refusal(&self, parameter: Parameter) -> Option<&'static str> {
        match self.wire {
            Wire::OpenAiChat | Wire::OpenAiResponses => self.openai(parameter),
            Wire::AnthropicMessages => self.anthropic(parameter),
            Wire::Gemini => {
                let is_old = parameter == Parameter::Effort && self.gemini() < (2, 5);
                is_old.then_some("Gemini models before 2.5 don't reason")
            }
            Wire::Ollama => None,
        }
    }

    /// The key of chat completions for the most tokens of a reply.
    pub(super) fn max_tokens_key(&self) -> &'static str {
        match self.host == "api.openai.com" || is_openai_reasoning(self.name()) {
            true => "max_completion_tokens",
            false => "max_tokens",
        }
    }

    /// The key of chat completions for the seed.
    pub(super) fn seed_key(&self) -> &'static str {
        if self.is_mistral() { "random_seed" } else { "seed" }
    }

    /// Whether a streamed request may ask for the usage. Mistral's server refuses to be asked, and
    /// sends the usage anyway.
    pub(super) fn takes_stream_options(&self) -> bool {
        !self.is_mistral()
    }

    /// How the model is told how much to reason.
    pub(super) fn reasoning(&self) -> Reasoning {
        match self.wire {
            Wire::AnthropicMessages if self.claude().is_some_and(|it| it < (4, 6)) => {
                Reasoning::Budget
            }
            Wire::Gemini if self.gemini() < (3, 0) => Reasoning::Budget,
            // Other models of Ollama's server refuse the words.
            Wire::Ollama if !self.name().starts_with("gpt-oss") => Reasoning::Switch,
            _ => Reasoning::Level,
        }
    }

    /// Whether the model is a Gemini 3 Pro, which knows no medium effort.
    pub(super) fn has_no_medium(&self) -> bool {
        self.wire == Wire::Gemini && self.name().starts_with("gemini-3-pro")
    }

    fn openai(&self, parameter: Parameter) -> Option<&'static str> {
        use Parameter::{Effort, Stop, Temperature, TopP};
        let name = self.name();
        let is_xai = name == "grok-4" || name.starts_with("grok-4-");
        if is_xai && !name.contains("non-reasoning") && matches!(parameter, Stop | Effort) {
            return Some("Grok 4 refuses stop texts and `reasoning_effort`");
        }
        if parameter == Effort {
            let is_plain = ["gpt-3", "gpt-4", "chatgpt-", "gpt-5-chat"];
            let is_plain = is_plain.iter().any(|it| name.starts_with(it));
            return is_plain.then_some("this model doesn't reason");
        }
        if !is_openai_reasoning(name) || self.is_told_not_to_reason() && parameter != Stop {
            return None;
        }
        match parameter {
            Temperature | TopP => Some("OpenAI's reasoning models take the default alone"),
            Stop => Some("OpenAI's reasoning models take no stop texts"),
            Effort => None,
        }
    }

    fn anthropic(&self, parameter: Parameter) -> Option<&'static str> {
        let version = self.claude();
        match parameter {
            Parameter::Effort if version.is_some_and(|it| it < (3, 7)) => {
                Some("Claude models before 3.7 don't reason")
            }
            Parameter::Temperature | Parameter::TopP => {
                if version.is_some_and(|it| it >= (4, 7)) {
                    return Some("Claude models from 4.7 on take no sampling parameters");
                }
                let thinks = self.thinks();
                thinks.then_some("a Claude model that reasons takes the default alone")
            }
            _ => None,
        }
    }

    /// Whether a request asks a Claude model to reason.
    fn thinks(&self) -> bool {
        let own = self.extra.get("thinking").map(|it| it["type"] != "disabled" && !it.is_null());
        let is_told = self.effort.is_some() && self.refusal(Parameter::Effort).is_none();
        own.unwrap_or(is_told)
    }

    /// Whether the author's own keys ask one of OpenAI's newer models not to reason. It then takes
    /// the parameters of other models.
    fn is_told_not_to_reason(&self) -> bool {
        let is_none = |it: Option<&Value>| it.and_then(Value::as_str) == Some("none");
        let effort = self.extra.get("reasoning_effort");
        is_none(effort) || is_none(self.extra.get("reasoning").map(|it| &it["effort"]))
    }

    fn is_mistral(&self) -> bool {
        self.host == "api.mistral.ai"
    }

    /// The model's name without what gateways and providers put around it: `openai/` before it,
    /// `us.anthropic.` of Bedrock, `ft:` of a model that was tuned, and what follows a colon.
    fn name(&self) -> &str {
        let name = self.model.rsplit('/').next().unwrap_or_default();
        let name = name.strip_prefix("ft:").unwrap_or(name);
        let name = name.split_once("anthropic.").map_or(name, |(_, name)| name);
        name.split(':').next().unwrap_or_default()
    }

    /// The version of a Claude model. None for a name without one.
    fn claude(&self) -> Option<(u32, u32)> {
        self.name().starts_with("claude").then(|| version(self.name())).flatten()
    }

    /// The version of a Gemini model. A name without one means the newest.
    fn gemini(&self) -> (u32, u32) {
        let is_gemini = self.name().starts_with("gemini");
        is_gemini.then(|| version(self.name())).flatten().unwrap_or((u32::MAX, 0))
    }
}

/// Whether a model takes either a temperature or a `top_p`, but not both.
pub(super) fn takes_one_of_both(served: &Served<'_>) -> bool {
    served.claude().is_some_and(|it| it >= (4, 1))
}

/// Whether a name is that of one of OpenAI's reasoning models.
fn is_openai_reasoning(name: &str) -> bool {
    let is_o = ["o1", "o3", "o4"].iter().any(|it| {
        name.strip_prefix(it).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    });
    let number = name.strip_prefix("gpt-").and_then(|it| {
        let end = it.find(|it: char| !it.is_ascii_digit()).unwrap_or(it.len());
        it[..end].parse::<u32>().ok()
    });
    let is_gpt = number.is_some_and(|it| it >= 5) && !name.contains("-chat");
    is_o || is_gpt || name.starts_with("codex-mini")
}

/// The first two numbers of a model's name. Dates don't count, and a second number that is missing
/// is 0.
fn version(name: &str) -> Option<(u32, u32)> {
    let parts = name.split(|it: char| !it.is_ascii_alphanumeric());
    let mut numbers = parts.skip_while(|it| it.parse::<u32>().is_err());
    let small = |it: &str| it.parse::<u32>().ok().filter(|_| it.len() <= 2);
    let major = small(numbers.next()?)?;
    Some((major, numbers.next().and_then(small).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(wire: Wire, model: &str, extra: Value, expected: &[Parameter]) {
        use Parameter::{Effort as HowMuch, Stop, Temperature, TopP};
        let Value::Object(extra) = extra else { unreachable!() };
        let effort = extra.contains_key("effort").then_some(Effort::Low);
        let served = Served { wire, host: "127.0.0.1", model, effort, extra: &extra };
        let all = [Temperature, TopP, Stop, HowMuch].into_iter();
        let refused: Vec<Parameter> = all.filter(|it| served.refusal(*it).is_some()).collect();
        assert_eq!(refused, expected, "{model} {extra:?}");
    }

    #[test]
    fn a_family_refuses_its_parameters_and_an_unknown_model_none() {
        use Parameter::{Effort, Stop, Temperature, TopP};
        let sampling = [Temperature, TopP];
        let chat = |model, expected: &[Parameter]| {
            check(Wire::OpenAiChat, model, json!({}), expected);
            check(Wire::OpenAiResponses, model, json!({}), expected);
        };
        for it in ["ft:o4-mini-2025-04-16:acme::B1", "openai/o3:online"] {
            chat(it, &[Temperature, TopP, Stop]);
        }
        for it in ["o3", "o4-mini", "o1-2024-12-17", "gpt-5-mini", "gpt-5.1", "openai/gpt-6"] {
            chat(it, &[Temperature, TopP, Stop]);
        }
        for it in ["gpt-4o", "gpt-4.1-mini", "gpt-5-chat-latest", "gpt-3.5-turbo"] {
            chat(it, &[Effort]);
        }
        for it in ["gemma", "gpt-oss-20b", "o1x", "mistral-large", "gpt-x", "qwen3:8b"] {
            chat(it, &[]);
        }
        chat("grok-4-fast", &[Stop, Effort]);
        chat("grok-4-fast-non-reasoning", &[]);
        check(Wire::OpenAiChat, "gpt-5.1", json!({"reasoning_effort": "none"}), &[Stop]);
        let claude = |model, extra, expected: &[Parameter]| {
            check(Wire::AnthropicMessages, model, extra, expected);
        };
        claude("claude-sonnet-4-5-20250929", json!({}), &[]);
        claude("claude-sonnet-4-5-20250929", json!({"effort": 1}), &sampling);
        claude("claude-sonnet-4-20250514", json!({"thinking": {"type": "enabled"}}), &sampling);
        claude("claude-opus-4-6", json!({"effort": 1, "thinking": null}), &[]);
        claude("claude-3-5-haiku-20241022", json!({"effort": 1}), &[Effort]);
        claude("anthropic/claude-opus-4.7", json!({}), &sampling);
        claude("claude-fable-5", json!({}), &sampling);
        claude("anthropic.claude-opus-4-7", json!({}), &sampling);
        claude("us.anthropic.claude-3-5-haiku-20241022-v1:0", json!({"effort": 1}), &[Effort]);
        claude("x", json!({"effort": 1}), &sampling);
        check(Wire::Gemini, "models/gemini-2.0-flash", json!({}), &[Effort]);
        check(Wire::Gemini, "gemini-flash-latest", json!({}), &[]);
        check(Wire::Ollama, "o3", json!({}), &[]);
    }

    #[test]
    fn a_version_is_the_first_two_numbers_of_a_name() {
        let check = |name: &str, expected| assert_eq!(version(name), expected, "{name}");
        check("claude-3-5-sonnet-20241022", Some((3, 5)));
        check("claude-sonnet-4-20250514", Some((4, 0)));
        check("claude-opus-4.6", Some((4, 6)));
        check("gemini-2.5-flash-lite", Some((2, 5)));
        check("gemini-3-pro-preview", Some((3, 0)));
        check("claude-latest", None);
        check("claude-20250514", None);
    }
}
