//! Models behind servers, over any wire: requests, retries, and replies as they come.

mod ask;
mod settings;
mod timeouts;
mod read_error;
mod reply;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::{Client, Url};

use crate::limits::ModelLimits;
use crate::model::error::Error;
use crate::model::interface::{Boxed, Model, Reply};
use crate::model::model_identity::Details;
use crate::model::piece::Piece;
use crate::model::price::Price;
use crate::model::prompt::{Prompt, Tool};
use crate::model::provider::Provider;
use crate::model::remote::reply::RemoteReply;
use crate::model::remote::timeouts::Timers;
use crate::model::retry_pause;
use crate::model::wire::parameters;
use crate::model::wire::parameters::{Parameter, Served};
use crate::model::wire::{SentTools, left_out, without_foreign};
use crate::model::wire_name::Wire;
use crate::secret::{Secret, Secrets};

pub use settings::{NoModel, Settings};

/// A model behind a server. The server speaks one of the [wires](Wire), or the form that a provider
/// file describes. The server may be a provider's, or llama.cpp, vLLM or Ollama on one's own
/// machine.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use pumphouse::model::{Remote, Wire};
/// use pumphouse::secret::Secret;
///
/// # fn key() -> String { "sk-example".to_owned() }
/// let url = "http://127.0.0.1:8080/v1";
/// let local = Remote::at(Wire::OpenAiChat, url, "gemma").window(8_192).build()?;
/// let wire = Wire::AnthropicMessages;
/// let hosted = Remote::at(wire, wire.home(), "claude").key(Secret::new(key())).build()?;
/// # let _ = (local, hosted);
/// # Ok::<(), pumphouse::model::remote::NoModel>(())
/// ```
///
/// A request that fails before any piece of its reply has come is retried if that may help.
/// [`ModelLimits`] sets how often, and after which pauses.
pub struct Remote {
    client: Client,
    /// The URL of requests.
    url: Url,
    settings: Settings,
}

/// The conversation of a prompt, if the prompt names one.
type Conversation = Option<Arc<str>>;

impl Remote {
    /// Returns settings for a model at a server. The URL usually ends in `/v1`. The wire's path is
    /// added, unless the URL ends with this path already.
    pub fn at(wire: Wire, url: impl Into<String>, model: impl Into<String>) -> Settings {
        Settings::new(wire, url.into(), model.into())
    }

    /// Returns settings for a model of a [`Provider`].
    pub fn of_provider(provider: Provider, model: impl Into<String>) -> Settings {
        Settings::of_provider(provider, model.into())
    }

    /// The settings that aren't sent, each with the reason: the model refuses them.
    pub fn unsent(&self) -> Vec<(&'static str, &'static str)> {
        let settings = &self.settings;
        let said = [
            ("temperature", settings.temperature.is_some(), Parameter::Temperature),
            ("effort", settings.effort.is_some(), Parameter::Effort),
        ];
        let said = said.into_iter().filter(|(_, is_said, _)| *is_said);
        said.filter_map(|(name, _, it)| Some((name, self.refusal(it)?))).collect()
    }

    /// Why the model refuses a parameter. None if it takes it, or if a provider file writes the
    /// requests.
    fn refusal(&self, parameter: Parameter) -> Option<&'static str> {
        let Settings { provider, model, effort, extra, .. } = &self.settings;
        let host = self.url.host_str().unwrap_or_default();
        let served = Served { wire: provider.writes()?, host, model, effort: *effort, extra };
        served.refusal(parameter)
    }

    fn limits(&self) -> &ModelLimits {
        &self.settings.limits
    }

    async fn begin(&self, prompt: Prompt) -> Result<Box<dyn Reply>, Error> {
        let tools = self.tools(&prompt);
        let (body, conversation) = (self.body(&prompt, &tools), prompt.conversation);
        let mut tried = Vec::new();
        loop {
            let error = match self.attempt(body.clone(), conversation.clone(), tools.clone()).await
            {
                Ok(mut reply) => {
                    reply.precede(tried.into_iter().map(Piece::Tried));
                    return Ok(Box::new(reply));
                }
                Err(error) => error,
            };
            let Some(wait) = self.wait(&error, tried.len()) else {
                return Err(Error { tried, ..error });
            };
            let (model, kind) = (&self.settings.model, error.kind.as_str());
            tracing::warn!(model, kind, status = error.status, ?wait, "a model is asked again");
            tried.push(error);
            retry_pause::sleep(wait).await;
        }
    }

    async fn begin_once(&self, prompt: Prompt) -> Result<Box<dyn Reply>, Error> {
        let tools = self.tools(&prompt);
        let body = self.body(&prompt, &tools);
        Ok(Box::new(self.attempt(body, prompt.conversation, tools).await?))
    }

    /// The tools of a request. A server with requests of its own takes what most servers take.
    fn tools(&self, prompt: &Prompt) -> Arc<SentTools> {
        Arc::new(SentTools::new(self.settings.wire(), self.tools_max(), &prompt.tools))
    }

    /// How many tools a request to the server may have.
    fn tools_max(&self) -> usize {
        parameters::tools_max(self.url.host_str().unwrap_or_default())
    }

    fn body(&self, prompt: &Prompt, tools: &SentTools) -> Bytes {
        let host = self.url.host_str().unwrap_or_default();
        let prompt = without_foreign(prompt, &self.describe());
        ask::body(&self.settings, host, &prompt, tools).to_string().into()
    }

    /// Sends the request once, and waits for the first piece. Errors show no secret, even if the
    /// server quoted one.
    async fn attempt(
        &self,
        body: Bytes,
        conversation: Conversation,
        tools: Arc<SentTools>,
    ) -> Result<RemoteReply, Error> {
        let reply = self.request(body, conversation, tools).await;
        reply.map_err(|error| without(error, &self.settings.hidden))
    }

    async fn request(
        &self,
        body: Bytes,
        conversation: Conversation,
        tools: Arc<SentTools>,
    ) -> Result<RemoteReply, Error> {
        let mut timers = Timers::new(self.limits());
        let sent = timers.watch(ask::send(&self.client, &self.url, body)).await?;
        let response = sent.map_err(|it| ask::unsent(&it, &self.url, &self.settings))?;
        if !response.status().is_success() {
            return Err(read_error::read(response, &self.settings).await);
        }
        let mut reply =
            RemoteReply::new(response, timers, self.settings.clone(), conversation, tools);
        reply.first().await?;
        Ok(reply)
    }

    /// Returns the pause before the next attempt. None if there is to be no further attempt.
    fn wait(&self, error: &Error, tried: usize) -> Option<Duration> {
        let ModelLimits { retries_max, retry_time_min, retry_time_max, .. } = *self.limits();
        if !error.retry || tried >= retries_max {
            return None;
        }
        if let Some(asked) = error.retry_after {
            return (asked <= retry_time_max).then_some(asked);
        }
        Some(retry_pause::pause(tried, retry_time_min, retry_time_max))
    }
}

/// Hides secrets in an error.
fn without(mut error: Error, secrets: &Secrets) -> Error {
    error.message = secrets.hide(&error.message).into();
    error.said = error.said.map(|it| secrets.hide(&it).into());
    error
}

impl Model for Remote {
    fn turn(&self, prompt: Prompt) -> Boxed<'_, Box<dyn Reply>> {
        Box::pin(self.begin(prompt))
    }

    fn turn_once(&self, prompt: Prompt) -> Boxed<'_, Box<dyn Reply>> {
        Box::pin(self.begin_once(prompt))
    }

    fn window(&self) -> Option<u32> {
        self.settings.window
    }

    fn tokens(&self, text: &str) -> Option<u64> {
        self.settings.tokenizer.as_ref()?.count(text)
    }

    fn max_tokens(&self) -> Option<u32> {
        self.settings.max_tokens
    }

    fn attachments(&self) -> Vec<String> {
        self.settings.attachments.clone()
    }

    fn is_structured(&self) -> bool {
        self.settings.is_structured
    }

    fn left_out(&self, tools: &[Tool]) -> Vec<(String, String)> {
        left_out(self.settings.wire(), self.tools_max(), tools)
    }

    fn price(&self) -> Option<Price> {
        self.settings.price.as_ref().map(|(price, _)| *price)
    }

    fn refuses_temperature(&self) -> Option<&'static str> {
        self.refusal(Parameter::Temperature)
    }

    fn secrets(&self) -> Vec<Secret> {
        self.settings.secrets()
    }

    fn describe(&self) -> String {
        format!("{} at {}", self.settings.model, settings::shown(&self.url))
    }

    fn details(&self) -> Details {
        Details {
            host: settings::host(&self.url),
            price_source: self.settings.price.as_ref().map(|(_, source)| source.clone()),
            ..Details::new(self.settings.spoken(), &*self.settings.model)
        }
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.describe()).finish()
    }
}
