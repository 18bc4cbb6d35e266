//! A model as a tool: one call, without a conversation and without tools of its own.
//!
//! ```yaml
//! listeners:
//!   - use: llm
//!     name: summarize
//!     settings: {model: small, prompt: Summarize the text.}
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pumphouse::listener::{Charge, Charges, Effects};
use pumphouse::model::{Model, Models, Piece, Prompt, Stop, UnknownModel, Usage};
use pumphouse::prelude::*;
use pumphouse::wire::budget;
use serde::Deserialize;

use super::text::{clean, cut};

/// The listener's name unless another is given, by which its namespace goes.
const NAME: &str = "llm";
/// What a model is told unless the settings or the call say it.
const PROMPT: &str = "Answer briefly and to the point.";
/// How many bytes a token has, about.
const TOKEN_BYTES: usize = 4;

/// Asks a model once.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/llm/v1")]
pub struct Llm {
    /// What is to be done.
    #[payload(example = "Summarize the text.")]
    pub prompt: Option<String>,
    /// What it is to be done with.
    #[payload(example = "A long text.")]
    pub text: Option<String>,
    /// What the model should know beside that.
    #[payload(no_example)]
    pub context: Option<String>,
    /// The model, where it is to be another than usual.
    #[payload(no_example)]
    pub model: Option<String>,
    /// How many words the answer may have, about.
    #[payload(min = 1, example = "200")]
    pub max_length: Option<u32>,
}

/// What the model answered.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/llm/v1")]
pub struct Completion {
    /// The model.
    #[payload(attribute, example = "small")]
    pub model: String,
    /// Why it is over.
    #[payload(attribute, example = "end")]
    pub stop: String,
    /// Its words.
    #[payload(value, example = "It is about tea.")]
    pub text: String,
}

/// There is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/llm/v1")]
pub struct Refused {
    /// Why, in a word.
    #[payload(attribute)]
    pub reason: Reason,
    /// Why, and what would do.
    #[payload(value, example = "there is no model `smal`; there is small, large")]
    pub text: String,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Reason {
    /// There is nothing to do, or too much.
    BadRequest,
    /// No model that may be asked has this name.
    UnknownModel,
    /// The model failed.
    Model,
}

/// What stands under `settings` of `use: llm`.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// The model that is asked unless a call says another.
    pub model: String,
    /// Those that a call may choose; every one of the manifest's unless said.
    pub models: Option<Vec<String>>,
    /// What a model is told unless a call says it.
    pub prompt: Option<String>,
    /// How much a call may come to.
    #[serde(default)]
    pub limits: LlmLimits,
}

/// How much a call may come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LlmLimits {
    /// How long it may take, in seconds.
    pub seconds_max: u64,
    /// Bytes of what is asked.
    pub input_bytes_max: usize,
    /// Bytes of the answer; then the model is told to stop.
    pub output_bytes_max: usize,
    /// Tokens of the answer.
    pub tokens_max: u32,
}

impl Default for LlmLimits {
    fn default() -> LlmLimits {
        LlmLimits {
            seconds_max: 120,
            input_bytes_max: 256 * 1024,
            output_bytes_max: 64 * 1024,
            tokens_max: 4_096,
        }
    }
}

struct Caller {
    usual: String,
    models: BTreeMap<String, Arc<dyn Model>>,
    prompt: String,
    limits: LlmLimits,
}

/// The listener `llm`.
///
/// # Errors
/// No model has a name that the settings say.
pub fn llm(settings: &Settings, models: &Models) -> Result<Listener, UnknownModel> {
    let mut chosen = BTreeMap::new();
    let names = settings.models.clone().unwrap_or_else(|| models.names().collect());
    for name in names.into_iter().chain([settings.model.clone()]) {
        let model = models.get(&name)?;
        chosen.insert(name, model);
    }
    let names: Vec<&str> = chosen.keys().map(String::as_str).collect();
    let text = format!("Asks a model once: {} unless told; there is {}.", settings.model, {
        names.join(", ")
    });
    let prompt = settings.prompt.clone().unwrap_or_else(|| PROMPT.to_owned());
    let (usual, limits) = (settings.model.clone(), settings.limits);
    let timeout = Duration::from_secs(limits.seconds_max);
    Ok(Listener::with_state(NAME, Arc::new(Caller { usual, models: chosen, prompt, limits }))
        .own_namespace()
        .on(ask)
        .grant::<Charges>()
        .kind("llm")
        .timeout(timeout)
        .describe(text)
        .effects(Effects::Outside)
        .stateless())
}

/// What a call is answered with, and what it cost.
type Answer = (Option<Charge>, Result<Completion, Refused>);

async fn ask(State(caller): State<Arc<Caller>>, it: Llm) -> Answer {
    match caller.asked(it) {
        Ok((name, model, prompt)) => caller.ask(&name, &*model, prompt).await,
        Err(refused) => (None, Err(refused)),
    }
}

impl Caller {
    /// Which model is asked what.
    fn asked(&self, it: Llm) -> Result<(String, Arc<dyn Model>, Prompt), Refused> {
        let refused = |reason, text: String| Refused { reason, text };
        let name = it.model.unwrap_or_else(|| self.usual.clone());
        let Some(model) = self.models.get(&name) else {
            let there: Vec<&str> = self.models.keys().map(String::as_str).collect();
            let text = format!("there is no model `{}`; there is {}", cut(&name), there.join(", "));
            return Err(refused(Reason::UnknownModel, text));
        };
        let (task, text) = match (it.prompt, it.text) {
            (task, Some(text)) => (task.unwrap_or_else(|| self.prompt.clone()), text),
            (Some(task), None) => (self.prompt.clone(), task),
            (None, None) => {
                let text = "there is nothing to ask: give a `text` or a `prompt`";
                return Err(refused(Reason::BadRequest, text.to_owned()));
            }
        };
        let mut asked = text;
        if let Some(context) = it.context {
            asked = format!("{context}\n\n{asked}");
        }
        let mut task = task;
        if let Some(words) = it.max_length {
            task = format!("{task} Use at most {words} words.");
        }
        let (bytes, most) = (asked.len() + task.len(), self.limits.input_bytes_max);
        if bytes > most {
            let text = format!("it has {bytes} bytes; the limit input_bytes_max is {most}");
            return Err(refused(Reason::BadRequest, text));
        }
        let mut prompt = Prompt::new(task).user(asked);
        prompt.max_tokens = Some(self.limits.tokens_max);
        Ok((name, model.clone(), prompt))
    }

    async fn ask(&self, name: &str, model: &dyn Model, prompt: Prompt) -> Answer {
        let asked = prompt.system.len() + prompt.messages[0].text.len();
        let refused = |text: &str| Err(Refused { reason: Reason::Model, text: clean(text) });
        let mut reply = match model.turn(prompt).await {
            Ok(it) => it,
            Err(error) => return (None, refused(&error.to_string())),
        };
        let (mut text, mut usage, mut ended) = (String::new(), None, Ok(Stop::End));
        loop {
            match reply.next().await {
                Ok(Some(Piece::Text(it))) => text.push_str(&it),
                Ok(Some(Piece::Usage(it))) => usage = Some(it),
                Ok(Some(Piece::Stop(it))) => ended = Ok(it),
                Ok(Some(Piece::Refusal(it))) => ended = Err(it),
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => {
                    ended = Err(error.to_string());
                    break;
                }
            }
            if text.len() > self.limits.output_bytes_max {
                text.truncate(text.floor_char_boundary(self.limits.output_bytes_max));
                ended = Ok(Stop::MaxTokens);
                break;
            }
        }
        let charge = Some(settled(model, usage, asked, text.len()).into());
        let answer = match ended {
            Ok(stop) => Ok(Completion {
                model: name.to_owned(),
                stop: clean(stop.as_str()),
                text: clean(&text),
            }),
            Err(text) => refused(&text),
        };
        (charge, answer)
    }
}

/// What a call cost; an estimate where the provider doesn't say.
fn settled(
    model: &dyn Model,
    usage: Option<Usage>,
    asked: usize,
    answered: usize,
) -> budget::Charge {
    let tokens = |bytes: usize| bytes.div_ceil(TOKEN_BYTES) as u64;
    let estimated = usage.is_none().then_some(true);
    let usage = usage.unwrap_or_else(|| Usage::new(tokens(asked), tokens(answered)));
    let cost = model.price().map(|it| it.cost(usage.input, usage.output)).or(usage.cost_micros);
    let whole = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
    budget::Charge {
        tokens: whole(usage.input.saturating_add(usage.output)),
        cost_micros: whole(cost.unwrap_or(0)),
        settled: true,
        model: Some(model.describe()),
        tokens_in: Some(usage.input),
        tokens_out: Some(usage.output),
        spent_micros: cost,
        estimated,
        ..budget::Charge::default()
    }
}
