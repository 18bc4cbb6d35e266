//! The listener `llm`: asks a model once. The model sees no earlier messages and has no tools.
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
use pumphouse::model::estimate::tokens_of_bytes;
use pumphouse::model::{Model, Models, Piece, Prompt, Stop, UnknownModel, Usage};
use pumphouse::prelude::*;
use pumphouse::wire::budget;
use serde::Deserialize;

use super::text::{clean, cut};
use super::time::pass_time;

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "llm";
/// The default of the setting `prompt`.
const PROMPT: &str = "Answer briefly and to the point.";
/// The time that the pump waits for the handler once `seconds_max` has passed.
const GRACE: Duration = Duration::from_secs(5);

/// Asks a model once.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/llm/v1")]
pub struct Llm {
    /// The instruction.
    #[payload(example = "Summarize the text.")]
    pub prompt: Option<String>,
    /// The text that the instruction is about; without a `text`, the `prompt` alone is asked.
    #[payload(example = "A long text.")]
    pub text: Option<String>,
    /// Background that the model should know.
    #[payload(no_example)]
    pub context: Option<String>,
    /// The model, if not the default.
    #[payload(no_example)]
    pub model: Option<String>,
    /// The most words that the answer should have.
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
    /// Why the model stopped.
    #[payload(attribute, example = "end")]
    pub stop: String,
    /// Whether the reply reached its limit of tokens, so that its end is missing.
    #[payload(attribute, note)]
    pub cut: bool,
    /// The answer.
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
    /// Why, and how to correct it.
    #[payload(value, example = "there is no model `smal`; there is small, large")]
    pub text: String,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Reason {
    /// The request is empty, or too large.
    BadRequest,
    /// There is no model of this name, or it may not be asked.
    UnknownModel,
    /// The budget of the caller's tree has no room for the call.
    Budget,
    /// The model failed, or didn't answer in time.
    Model,
}

/// The `settings` of `use: llm` in a manifest.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// The model that is asked if a call names no model.
    pub model: String,
    /// The models that a call may choose besides `model`. The default is all models that listeners
    /// may use.
    pub models: Option<Vec<String>>,
    /// The instruction of a call that has only a `text`, or only a `prompt`. In the second case,
    /// the call's `prompt` is the question. The default is a general instruction.
    pub prompt: Option<String>,
    /// The limits of one call.
    #[serde(default)]
    pub limits: LlmLimits,
}

impl Settings {
    /// The settings of a listener that asks this model, with the defaults for everything else.
    pub fn new(model: impl Into<String>) -> Settings {
        Settings { model: model.into(), models: None, prompt: None, limits: LlmLimits::default() }
    }
}

/// The limits of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LlmLimits {
    /// The maximum time of a call, in seconds.
    pub seconds_max: u64,
    /// The maximum number of bytes of the instruction, the context and the text together.
    pub input_bytes_max: usize,
    /// The maximum number of bytes of the answer. A longer answer is cut.
    pub output_bytes_max: usize,
    /// The maximum number of tokens of the answer.
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

/// Makes the listener `llm`.
///
/// # Errors
/// If the settings name a model that doesn't exist.
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
    let timeout = Duration::from_secs(limits.seconds_max).saturating_add(GRACE);
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

/// The charge that settles the call's reservation, and the answer. There is no charge if nothing
/// was reserved.
type Answer = (Option<Charge>, Result<Completion, Refused>);

async fn ask(
    State(caller): State<Arc<Caller>>,
    budget: Outbox<Charge>,
    cancel: Cancel,
    request: Llm,
) -> Answer {
    let (name, model, prompt) = match caller.asked(request) {
        Ok(it) => it,
        Err(refused) => return (None, Err(refused)),
    };
    let reserved = reservation(&*model, &prompt);
    if let Err(fault) = budget.send(reserved.clone().into()).await {
        let text = format!("there is no room for the call: {}", fault.message);
        return (None, Err(Refused { reason: Reason::Budget, text }));
    }
    let mut answer = ModelAnswer::default();
    let ended = caller.ask(&*model, prompt, &mut answer, &cancel).await;
    let settled = answer.settlement(&*model, &reserved);
    let refused = |text: String| Refused { reason: Reason::Model, text: clean(&text) };
    let completion = ended.map_err(refused).map(|stop| Completion {
        model: name,
        cut: stop == Stop::MaxTokens,
        stop: clean(stop.as_str()),
        text: clean(&answer.text),
    });
    (Some(settled.into()), completion)
}

impl Caller {
    /// Chooses the model for a request and builds the prompt. Returns the model's name, the model
    /// and the prompt.
    fn asked(&self, request: Llm) -> Result<(String, Arc<dyn Model>, Prompt), Refused> {
        let refused = |reason, text: String| Refused { reason, text };
        let name = request.model.unwrap_or_else(|| self.usual.clone());
        let Some(model) = self.models.get(&name) else {
            let there: Vec<&str> = self.models.keys().map(String::as_str).collect();
            let text = format!("there is no model `{}`; there is {}", cut(&name), there.join(", "));
            return Err(refused(Reason::UnknownModel, text));
        };
        let (task, text) = match (request.prompt, request.text) {
            (task, Some(text)) => (task.unwrap_or_else(|| self.prompt.clone()), text),
            (Some(task), None) => (self.prompt.clone(), task),
            (None, None) => {
                let text = "there is nothing to ask: give a `text` or a `prompt`";
                return Err(refused(Reason::BadRequest, text.to_owned()));
            }
        };
        let mut asked = text;
        if let Some(context) = request.context {
            asked = format!("{context}\n\n{asked}");
        }
        let mut task = task;
        if let Some(words) = request.max_length {
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

    /// Asks the model and collects its reply in `answer`. Returns the reason why the model stopped.
    /// The error says why there is no answer.
    async fn ask(
        &self,
        model: &dyn Model,
        prompt: Prompt,
        answer: &mut ModelAnswer,
        cancel: &Cancel,
    ) -> Result<Stop, String> {
        let seconds = self.limits.seconds_max;
        let time = Duration::from_secs(seconds);
        tokio::select! {
            it = answer.take(model, prompt, self.limits.output_bytes_max) => it,
            () = pass_time(time) => {
                Err(format!("no answer within {seconds} s; the limit seconds_max is {seconds}"))
            }
            () = cancel.cancelled() => Err("the call was cancelled".to_owned()),
        }
    }
}

/// The part of a model's answer that has been received so far.
#[derive(Default)]
struct ModelAnswer {
    text: String,
    usage: Option<Usage>,
    /// Whether the model may have received the prompt. False if the call failed before a reply
    /// began.
    is_asked: bool,
}

impl ModelAnswer {
    /// Sends the prompt and collects the reply's text. A reply of more than `bytes_max` bytes is
    /// cut, and counts as stopped by [`Stop::MaxTokens`]. Returns the reason why the model stopped.
    async fn take(
        &mut self,
        model: &dyn Model,
        prompt: Prompt,
        bytes_max: usize,
    ) -> Result<Stop, String> {
        self.is_asked = true;
        let mut reply = match model.turn(prompt).await {
            Ok(it) => it,
            Err(error) => {
                self.is_asked = false;
                return Err(error.to_string());
            }
        };
        let mut ended = Ok(Stop::End);
        while let Some(piece) = reply.next().await.map_err(|error| error.to_string())? {
            match piece {
                Piece::Text(it) => self.text.push_str(&it),
                Piece::Usage(it) => self.usage = Some(it),
                Piece::Stop(it) => ended = Ok(it),
                Piece::Refusal(it) => ended = Err(it),
                _ => {}
            }
            if self.text.len() > bytes_max {
                self.text.truncate(self.text.floor_char_boundary(bytes_max));
                return Ok(Stop::MaxTokens);
            }
        }
        ended
    }

    /// Returns the charge that replaces the call's reservation. The charge is the usage that the
    /// provider reported, or an estimate if it reported none. The charge is zero if the model
    /// wasn't asked.
    fn settlement(&self, model: &dyn Model, reserved: &budget::Charge) -> budget::Charge {
        let is_estimate = self.usage.is_none() && self.is_asked;
        let usage = match self.usage {
            Some(usage) => usage,
            None if self.is_asked => {
                Usage::new(reserved.tokens_in.unwrap_or(0), tokens_of_bytes(self.text.len() as u64))
            }
            None => Usage::default(),
        };
        let cost = model.price().map(|it| it.cost_of(&usage)).or(usage.cost_micros);
        let settled = reserved.settlement((usage.input, usage.output), cost, is_estimate);
        settled.with_cache(usage.cached, usage.cache_written)
    }
}

/// Returns the charge that a call reserves. It contains the tokens of the prompt and of the longest
/// possible answer, and their highest cost if the model has a price.
fn reservation(model: &dyn Model, prompt: &Prompt) -> budget::Charge {
    let tokens = (model.prompt_tokens(prompt), prompt.max_tokens.map_or(0, u64::from));
    let cost = model.price().map_or(0, |it| it.cost_max(tokens.0, tokens.1));
    budget::Charge::of_request(model.describe(), tokens, cost)
}
