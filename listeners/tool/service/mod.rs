//! The listener `service`: reads from one HTTP service, for the feeds and the actions of agents.
//!
//! ```yaml
//! listeners:
//!   - use: service
//!     name: trading-api
//!     settings: {url: "http://127.0.0.1:8090", auth: service-auth/trading-api.json}
//! ```
//!
//! A request names a path below the `url`. The HTTP headers `X-Claw-ID` and `X-Pumphouse-Agent`
//! have the name of the agent for which the request is made. `X-Claw-Pod` has the setting `pod`,
//! and `X-Pumphouse-Organism` the setting `organism` (ADR-013, section 5). These headers only
//! inform the service. The token of a credential file authenticates the request. The settings may
//! give an agent a credential file and a pod of its own.
//!
//! The listener caches answers in memory for each agent and path, by the rules of a private cache
//! (RFC 9111). The threads of an agent share the answers. While a request is in flight, other
//! callers that want the same path for the same agent wait. Then they use its answer, if the answer
//! may be cached. Redirects are followed to public addresses and to listed hosts.

mod content;
mod credential;
mod cached_answers;

use std::collections::BTreeMap;
use std::sync::Arc;

use pumphouse::listener::{Effects, ManifestPath};
use pumphouse::prelude::*;
use pumphouse::secret::{Secret, Secrets};
use reqwest::Url;
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;

use super::listener_files::ListenerFiles;
use super::web::limits::WebLimits;
use super::web::{Reason, Refusal, Web, host_of, piece};
use cached_answers::Kept;
use credential::Token;
use pumphouse::listeners::caller::caller;
use pumphouse::listeners::feed::words::{FeedContent, NAME as FEED};
use pumphouse::listeners::feed_contents::source::UrlPath;

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "service";
/// The media types that a request accepts (ADR-013, section 6).
const ACCEPTED: HeaderValue =
    HeaderValue::from_static("text/plain, text/markdown, application/json, text/html;q=0.5");
/// The default `ttl` of a request, in seconds. cllama, the proxy of ADR-013, has the same default.
const TTL_SECONDS: f64 = 60.0;

/// Reads from the service.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/service/v1")]
pub struct Get {
    /// The path below the service's URL; it begins with `/`.
    #[payload(example = "/api/v1/portfolio")]
    pub path: String,
    /// For how many seconds an answer may be shown again; default 60.
    #[payload(no_example)]
    pub ttl: Option<f64>,
}

/// The service can't be read.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/service/v1")]
pub struct Refused {
    /// Why, in a word.
    #[payload(attribute)]
    pub reason: Reason,
    /// The service's HTTP status, if it is the reason.
    #[payload(attribute)]
    pub status: Option<u16>,
    /// The limit that was exceeded, if any.
    #[payload(attribute, no_example)]
    pub limit: Option<String>,
    /// Why, and how to correct it.
    #[payload(value, example = "127.0.0.1 answers 503 Service Unavailable")]
    pub text: String,
}

/// The `settings` of `use: service` in a manifest.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// The URL below which the service's paths are. The URL's host counts as listed in `hosts`.
    pub url: String,
    /// A file with the token for the service: `{"service", "auth_type": "bearer", "token",
    /// "principal"}`.
    pub auth: Option<ManifestPath>,
    /// The pod of the agents that ask. By default, requests name no pod.
    pub pod: Option<String>,
    /// The name of the organism. The default is the name of the pod.
    pub organism: Option<String>,
    /// The settings of requests for particular agents, by the agents' names.
    #[serde(default)]
    pub agents: BTreeMap<String, AgentSettings>,
    /// The hosts to which redirects may lead, besides public hosts.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// The limits of one request.
    #[serde(default = "limits")]
    pub limits: WebLimits,
}

impl Settings {
    /// Makes the settings of a service at a URL, without a token.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Settings {
        let (url, limits) = (url.into(), limits());
        let agents = BTreeMap::new();
        let (auth, pod, organism, hosts) = (None, None, None, Vec::new());
        Settings { url, auth, pod, organism, agents, hosts, limits }
    }
}

/// The settings of requests for one agent. Write `..AgentSettings::default()` for the others: a
/// later version may have more.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct AgentSettings {
    /// A file with the agent's own token. The default is the service's `auth`.
    pub auth: Option<ManifestPath>,
    /// The pod of the agent. The default is the service's `pod`.
    pub pod: Option<String>,
}

/// Returns the default limits of a request. cllama, the proxy of ADR-013, has the same time limit.
fn limits() -> WebLimits {
    WebLimits { seconds_max: 3, connect_seconds_max: 3, ..WebLimits::default() }
}

/// A service, and its cached answers.
struct Service {
    web: Web,
    url: Url,
    organism: Option<HeaderValue>,
    /// The pod and the token of requests, for agents without their own.
    common: Caller,
    /// Maps agents to their own pods and tokens.
    agents: BTreeMap<String, Caller>,
    kept: Kept,
    /// All tokens of the settings, because the service knows all of them.
    secrets: Secrets,
}

/// The pod and the token that a request sends, besides the agent's name.
#[derive(Default)]
struct Caller {
    pod: Option<HeaderValue>,
    token: Option<Token>,
}

impl Caller {
    fn read(pod: Option<&str>, auth: Option<&ManifestPath>) -> Result<Caller, String> {
        let pod = header("pod", pod)?;
        let token = auth.map(|it| Token::read(&it.path())).transpose()?;
        Ok(Caller { pod, token })
    }
}

/// Converts the setting `key` to the value of a header. An error if the text has characters that no
/// header may have.
fn header(key: &str, text: Option<&str>) -> Result<Option<HeaderValue>, String> {
    let value = text.map(HeaderValue::from_str).transpose();
    value.map_err(|_| format!("{key}: it has characters that no header may have"))
}

/// Makes the listener `service`.
///
/// # Errors
/// If `url`, `hosts`, `pod` or `organism` is invalid. Also if a credential file can't be read, is
/// invalid, or has permissions for other users.
pub fn service(settings: &Settings) -> Result<Listener, String> {
    let url: Url = settings
        .url
        .parse()
        .map_err(|_| format!("url: `{}` is no URL, as in http://127.0.0.1:8090", settings.url))?;
    let port = url.port_or_known_default().unwrap_or_default();
    let host = match host_of(&url) {
        it if it.contains(':') => format!("[{it}]:{port}"),
        it => format!("{it}:{port}"),
    };
    let hosts: Vec<String> = [host].into_iter().chain(settings.hosts.iter().cloned()).collect();
    let web = Web::with_public(&hosts, settings.limits).map_err(|it| format!("hosts: {it}"))?;
    let url = web.checked(&settings.url).map_err(|it| format!("url: {}", it.text))?;
    if url.query().is_some() {
        return Err("url: a query has its place in the path of a request".to_owned());
    }
    let common = Caller::read(settings.pod.as_deref(), settings.auth.as_ref())?;
    let agents = settings
        .agents
        .iter()
        .map(|(name, it)| Ok((name.clone(), Caller::read(it.pod.as_deref(), it.auth.as_ref())?)));
    let agents: BTreeMap<String, Caller> = agents.collect::<Result<_, String>>()?;
    let text = format!("Reads from the service at {url}.");
    let organism = header("organism", settings.organism.as_deref())?;
    let callers = agents.values().chain([&common]);
    let tokens: Vec<Secret> =
        callers.filter_map(|it| it.token.as_ref().map(Token::secret)).cloned().collect();
    let (secrets, kept) = (Secrets::new(tokens.clone()), Kept::default());
    let files = settings.agents.values().map(|it| &it.auth).chain([&settings.auth]).flatten();
    let files = ListenerFiles::secret(files.map(ManifestPath::path));
    let service = Service { web, url, organism, common, agents, kept, secrets };
    Ok(Listener::with_state(NAME, Arc::new(service))
        .own_namespace()
        .extension(UrlPath)
        .extension(files)
        .on(get)
        .timeout(settings.limits.listener_time())
        .describe(text)
        .effects(Effects::Outside)
        .secrets(tokens)
        .idempotent()
        .stateless())
}

async fn get(
    State(service): State<Arc<Service>>,
    message: Message,
    history: History,
    request: Get,
) -> Result<Result<FeedContent, Refused>, Fault> {
    let agent = asking(&message, &history).await?;
    Ok(service.get(&agent, &request).await.map_err(|it| service.refused(it)))
}

/// Returns the agent for which a message asks. For the call of an action, this is the action's
/// sender. For the request of a feed, this is the agent that has the feed. Otherwise, this is the
/// message's sender.
async fn asking(message: &Message, history: &History) -> Result<String, Fault> {
    let key = message.key().unwrap_or_default();
    if message.from() == FEED
        && let Some(agent) = key.rsplit('/').nth(1)
    {
        return Ok(agent.to_owned());
    }
    caller(message, history).await
}

impl Service {
    /// Reads a path for an agent, from the cached answers or from the service.
    async fn get(&self, agent: &str, request: &Get) -> Result<FeedContent, Refusal> {
        let url = self.url_of(&request.path)?;
        let ttl = request.ttl.unwrap_or(TTL_SECONDS);
        if !(ttl >= 0.0 && ttl.is_finite()) {
            let text = format!("ttl is in seconds, from 0 on, not {ttl}");
            return Err(Refusal::new(Reason::BadRequest, text));
        }
        let (headers, private) = (self.headers(agent)?, self.private_headers(agent));
        let request = cached_answers::Request {
            web: &self.web,
            url: &url,
            headers: &headers,
            private: &private,
        };
        let content = self.kept.get(agent, &request, ttl).await?;
        let text = self.secrets.hide_in(content.text);
        let text = match piece(&text, 0, self.web.limits.text_bytes_max) {
            (_, None) => text,
            (shown, Some(_)) => format!("{shown}\n[Content truncated]"),
        };
        Ok(FeedContent { text, ..content })
    }

    /// Returns the URL of a path. Refuses a path that isn't below the service's own URL.
    fn url_of(&self, path: &str) -> Result<Url, Refusal> {
        let wrong = |text: String| Refusal::new(Reason::BadUrl, text);
        if !path.starts_with('/') {
            let shown: String = path.chars().take(100).collect();
            return Err(wrong(format!("a path begins with /, as in /api/v1/portfolio: `{shown}`")));
        }
        let base = self.url.path().trim_end_matches('/');
        let origin = self.url.origin().ascii_serialization();
        let url = self.web.checked(&format!("{origin}{base}{path}"))?;
        let is_below = url.origin() == self.url.origin()
            && url.path().strip_prefix(base).is_some_and(|it| it.starts_with('/'));
        match is_below {
            true => Ok(url),
            false => Err(wrong(format!("the path leads out of {}", self.url))),
        }
    }

    fn headers(&self, agent: &str) -> Result<HeaderMap, Refusal> {
        let id = HeaderValue::from_str(agent).map_err(|_| {
            Refusal::new(Reason::BadRequest, "the agent's name can't stand in a header")
        })?;
        let pod = self.pod(agent);
        let mut headers = HeaderMap::from_iter([(ACCEPT, ACCEPTED)]);
        for (name, value) in [
            ("x-claw-id", Some(&id)),
            ("x-pumphouse-agent", Some(&id)),
            ("x-claw-pod", pod),
            ("x-pumphouse-organism", self.organism.as_ref().or(pod)),
        ] {
            headers.extend(value.map(|it| (HeaderName::from_static(name), it.clone())));
        }
        Ok(headers)
    }

    /// Returns the headers that are sent only to the service itself, and not to other hosts after a
    /// redirect.
    fn private_headers(&self, agent: &str) -> HeaderMap {
        self.token(agent).map(Token::header).into_iter().collect()
    }

    fn token(&self, agent: &str) -> Option<&Token> {
        let own = self.agents.get(agent).and_then(|it| it.token.as_ref());
        own.or(self.common.token.as_ref())
    }

    fn pod(&self, agent: &str) -> Option<&HeaderValue> {
        let own = self.agents.get(agent).and_then(|it| it.pod.as_ref());
        own.or(self.common.pod.as_ref())
    }

    fn refused(&self, refusal: Refusal) -> Refused {
        let Refusal { reason, status, limit, text, .. } = refusal;
        let text = self.secrets.hide_in(text);
        Refused { reason, status, limit: limit.map(str::to_owned), text }
    }
}
