//! The listener `http`: sends requests to the hosts that the manifest lists, with any method but
//! `CONNECT` and `TRACE`.
//!
//! ```yaml
//! listeners:
//!   - use: http
//!     name: tracker
//!     settings: {hosts: [api.example.org], credentials: keys.txt}
//! ```
//!
//! With the setting `url`, the listener sends all requests to one service. The caller then gives
//! only the fields that `takes` declares:
//!
//! ```yaml
//!   - use: http
//!     name: weather
//!     settings:
//!       hosts: [api.example.org]
//!       url: https://api.example.org/weather
//!       takes: {type: object, properties: {city: {type: string}}, required: [city]}
//! ```
//!
//! A request has the headers that the caller gives, and the headers that the file of credentials
//! has for the host. The values from this file are hidden in answers. Redirects are not followed:
//! the caller gets the redirect itself as the answer.

mod credentials;
mod declared;

use std::collections::BTreeMap;
use std::sync::Arc;

use pumphouse::listener::{DeclaredPayload, Effects, ManifestPath};
use pumphouse::prelude::*;
use pumphouse::schema;
use pumphouse::secret::of_url;
use pumphouse::wire::Json;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;

use super::given_context::ContextFields;
use super::listener_files::ListenerFiles;
use super::text::{clean, cut};
use super::web::limits::WebLimits;
use super::web::{Answer, Read, Reason, Refusal, Web, is_json, kind_named, piece};
use credentials::Credentials;
use pumphouse::listeners::agent_context::CallingAgent;

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "http";
/// The headers of a server's response that an answer shows.
const SHOWN: [&str; 10] = [
    "allow",
    "content-language",
    "content-range",
    "etag",
    "last-modified",
    "link",
    "location",
    "retry-after",
    "www-authenticate",
    "x-request-id",
];
/// The headers that tell a caller where or when to go on.
const GUIDES: [&str; 4] = ["location", "retry-after", "link", "www-authenticate"];
/// Headers that a caller may not give, because the HTTP client sets them itself.
const OWN: [&str; 13] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// The header that has the calling agent's context.
const CONTEXT: &str = "x-agent-context";
/// The maximum number of bytes of the context: what servers take in a header.
const CONTEXT_BYTES_MAX: usize = 8 * 1024;
/// The maximum number of bytes of a header's value that an answer shows.
const HEADER_BYTES_MAX: usize = 1_000;

/// Sends a request to a web server.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/http/v1")]
pub struct Http {
    /// The URL.
    #[payload(example = "https://api.example.org/items")]
    pub url: String,
    /// The HTTP method; default `GET`.
    #[payload(example = "POST")]
    pub method: Option<String>,
    /// Request headers, by name.
    #[payload(no_example)]
    pub headers: Option<BTreeMap<String, String>>,
    /// A text body; instead of `json`.
    #[payload(no_example)]
    pub body: Option<String>,
    /// A JSON body.
    #[payload(example = "{\"name\": \"tea\"}")]
    pub json: Option<Json>,
}

/// What the server answered.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/http/v1")]
pub struct Answered {
    /// The HTTP status.
    #[payload(attribute, example = "201")]
    pub status: u16,
    /// The body's media type, as the server says.
    #[payload(attribute, example = "application/json")]
    pub kind: String,
    /// Bytes that are cut from the end of the text.
    #[payload(attribute, note)]
    pub left_out: Option<u64>,
    /// The status in words if it is no success, what the body is if it is no text, and where to go
    /// on, as in `302 Found; location: /items`.
    #[payload(attribute, note, no_example)]
    pub outcome: Option<String>,
    /// Selected headers, such as `location`.
    pub headers: BTreeMap<String, String>,
    /// The body, if it is JSON.
    #[payload(value, example = "{\"id\": 7}")]
    pub json: Option<Json>,
    /// The body, if it is another text.
    #[payload(value, no_example)]
    pub text: Option<String>,
}

/// The request failed, or no whole answer came.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/http/v1")]
pub struct Refused {
    /// Why, in a word.
    #[payload(attribute)]
    pub reason: Reason,
    /// The limit that was exceeded, if any.
    #[payload(attribute, no_example)]
    pub limit: Option<String>,
    /// Why, and how to correct it.
    #[payload(value, example = "a.org:80 is out of reach; there is api.example.org:443")]
    pub text: String,
}

/// The `settings` of `use: http` in a manifest.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// The hosts that the listener may reach.
    pub hosts: Vec<String>,
    /// A file with secret headers that are sent to these hosts. By default, there are no such
    /// headers.
    pub credentials: Option<ManifestPath>,
    /// The URL of all requests, for a listener that asks one service. Such a listener needs
    /// `takes`, too.
    pub url: Option<String>,
    /// The method of requests to `url`. The default is `GET`. Requests with `GET`, `HEAD` and
    /// `DELETE` have the fields in the query. All other requests have them as a JSON object in the
    /// body.
    pub method: Option<String>,
    /// The payload that the listener takes, for requests to `url`.
    pub takes: Option<DeclaredPayload>,
    /// The fields of the calling agent's context that each request has, as a JSON object in the
    /// header `X-Agent-Context`. By default, it has none.
    #[serde(default)]
    pub agent_context: ContextFields,
    /// The limits of one request.
    #[serde(default)]
    pub limits: WebLimits,
}

struct Client {
    web: Web,
    credentials: Credentials,
    agent_context: ContextFields,
}

/// Makes the listener `http`.
///
/// # Errors
/// If a host is invalid, if the file of credentials can't be read or isn't safe from other users,
/// or if `url`, `method` and `takes` are wrong or don't fit together.
pub fn http(settings: &Settings) -> Result<Listener, String> {
    let web = Web::new(Some(&settings.hosts), settings.limits)?;
    let credentials = match &settings.credentials {
        Some(it) => Credentials::read(&it.path(), &web)?,
        None => Credentials::default(),
    };
    let of_url = of_url(settings.url.as_deref().unwrap_or_default());
    let of_url = of_url.map_err(|it| format!("url: {it}"))?;
    let credentials = credentials.with_secrets(of_url);
    let secrets = credentials.secrets();
    let agent_context = settings.agent_context.clone();
    let client = Client { web, credentials, agent_context };
    let (listener, text) = match (&settings.url, &settings.takes) {
        (Some(url), Some(takes)) => service(client, settings, url, takes)?,
        (None, None) if settings.method.is_none() => {
            let text = format!("Sends requests to {}.", settings.hosts.join(", "));
            let listener = Listener::with_state(NAME, Arc::new(client)).own_namespace();
            let is_safe = |it: &Element| Http::read(it.view()).is_ok_and(|it| it.is_safe());
            (listener.on(send).idempotent_for(is_safe).stateless(), text)
        }
        _ => return Err("`url` and `takes` stand together, `method` only with them".to_owned()),
    };
    let timeout = settings.limits.listener_time();
    let files = ListenerFiles::secret(settings.credentials.as_ref().map(ManifestPath::path));
    let listener = listener.timeout(timeout).describe(text).effects(Effects::Outside);
    Ok(listener.secrets(secrets).extension(files))
}

/// Makes the listener for one URL. Returns the listener and its description.
fn service(
    client: Client,
    settings: &Settings,
    url: &str,
    takes: &DeclaredPayload,
) -> Result<(Listener, String), String> {
    let wrong = |key: &str, it: &Refusal| format!("{key}: {}", it.text);
    let url = client.web.checked(url).map_err(|it| wrong("url", &it))?;
    let method = method(settings.method.as_deref().unwrap_or("GET"));
    let method = method.map_err(|it| wrong("method", &it))?;
    let takes = declared::takes(takes)?;
    let text = format!("Asks {}.", url.host_str().unwrap_or_default());
    let taken = takes.clone();
    let service = declared::Declared { client, url, method, takes };
    let is_safe = service.is_safe();
    let listener = Listener::with_state(NAME, Arc::new(service)).own_namespace();
    let listener = listener.on_named(taken, declared::send).stateless();
    Ok((if is_safe { listener.idempotent() } else { listener }, text))
}

async fn send(
    State(client): State<Arc<Client>>,
    agent: CallingAgent,
    request: Http,
) -> Result<Result<Answered, Refused>, Fault> {
    let is_safe = request.is_safe();
    let context = client.context(&agent).await?;
    let answer = match context {
        Ok(context) => client.answer(request, context).await,
        Err(refusal) => Err(refusal),
    };
    Ok(answer.map_err(|it| client.refused(it, is_safe)))
}

impl Client {
    /// Makes the answer to a request that failed. A request that isn't safe may have changed
    /// something.
    fn refused(&self, refusal: Refusal, is_safe: bool) -> Refused {
        let refusal = if is_safe { refusal } else { refusal.of_change() };
        let text = self.credentials.hide(refusal.text);
        Refused { reason: refusal.reason, limit: refusal.limit.map(str::to_owned), text }
    }

    /// The header with the context of the calling agent, if requests have it.
    async fn context(
        &self,
        agent: &CallingAgent,
    ) -> Result<Result<Option<HeaderValue>, Refusal>, Fault> {
        let context = self.agent_context.of(agent, CONTEXT_BYTES_MAX).await?;
        let value = |it: String| HeaderValue::from_str(&it).map_err(|it| bad(&it.to_string()));
        Ok(context.map_err(|it| bad(&it)).and_then(|it| it.map(value).transpose()))
    }

    async fn answer(
        &self,
        request: Http,
        context: Option<HeaderValue>,
    ) -> Result<Answered, Refusal> {
        let url = self.web.checked(&request.url)?;
        let method = method(request.method.as_deref().unwrap_or("GET"))?;
        let given = request.headers.unwrap_or_default();
        let mut headers = self.headers(&given, &url)?;
        if self.agent_context != ContextFields::default() {
            // What a caller says here doesn't count.
            headers.remove(CONTEXT);
        }
        headers.extend(context.map(|it| (HeaderName::from_static(CONTEXT), it)));
        let body = match (request.body, request.json) {
            (Some(_), Some(_)) => return Err(bad("there is a `body` and a `json`: give one")),
            (Some(body), None) => body,
            (None, Some(json)) => {
                let kind = HeaderValue::from_static("application/json");
                headers.entry(CONTENT_TYPE).or_insert(kind);
                json.0.to_string()
            }
            (None, None) => String::new(),
        };
        let named: usize = given.iter().map(|(name, value)| name.len() + value.len()).sum();
        let most = self.web.limits.sent_bytes_max;
        if body.len() + named > most {
            return Err(Refusal::too_large("the request", "sent_bytes_max", most));
        }
        let answer = self.web.send(method, url, headers, body).await?;
        Ok(self.shown(&answer))
    }

    /// Returns the headers of a request: the caller's headers, and those of the credentials.
    /// Returns an error if the caller gives a header that the credentials or the HTTP client sets,
    /// or a header with an invalid name or value.
    fn headers(&self, given: &BTreeMap<String, String>, url: &Url) -> Result<HeaderMap, Refusal> {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            let name: HeaderName = name
                .parse()
                .map_err(|_| bad(&format!("`{}` is no name of a header", cut(name))))?;
            if OWN.contains(&name.as_str()) {
                return Err(bad(&format!("the header {name} is the client's own")));
            }
            let value = HeaderValue::from_str(value)
                .map_err(|_| bad(&format!("the value of {name} holds what no header may")))?;
            headers.append(name, value);
        }
        for (name, value) in self.credentials.for_url(url) {
            if headers.contains_key(name) {
                return Err(bad(&format!("the header {name} is sent anyway; leave it out")));
            }
            headers.insert(name, value.clone());
        }
        Ok(headers)
    }

    fn shown(&self, answer: &Answer) -> Answered {
        let mut headers = BTreeMap::new();
        for name in SHOWN {
            if let Some(header) = answer.headers.get(name) {
                let value = String::from_utf8_lossy(header.as_bytes());
                // A cut within a secret would leave a part of it, so the secret is hidden before.
                let mut value = self.credentials.hide(clean(&value));
                value.truncate(value.floor_char_boundary(HEADER_BYTES_MAX));
                headers.insert(name.to_owned(), value);
            }
        }
        let status = answer.status.as_u16();
        let (kind, left_out, json, text) = match Read::of(answer, false) {
            Err(_) => (kind_named(answer), None, None, None),
            Ok(Read { kind, text, .. }) => {
                let text = self.credentials.hide(text);
                let (shown, next) = piece(&text, 0, self.web.limits.text_bytes_max);
                let left_out = next.map(|_| (text.len() - shown.len()) as u64);
                match schema::json::read(shown).ok().filter(|_| is_json(answer)) {
                    Some(json) => (kind, left_out, Some(Json(json)), None),
                    None => (kind, left_out, None, Some(shown.to_owned())),
                }
            }
        };
        let kind = self.credentials.hide(kind);
        let unread = json.is_none() && text.is_none();
        let unread = unread.then(|| format!("the body is {kind}, and no text"));
        let outcome = outcome(answer.status, unread, &headers);
        Answered { status, kind, left_out, outcome, headers, json, text }
    }
}

/// What a caller should know of an answer besides its body.
fn outcome(
    status: StatusCode,
    unread: Option<String>,
    headers: &BTreeMap<String, String>,
) -> Option<String> {
    let status = Some(status).filter(|it| !it.is_success()).map(|it| it.to_string());
    let told = GUIDES.iter().filter_map(|name| Some(format!("{name}: {}", headers.get(*name)?)));
    let all: Vec<String> = status.into_iter().chain(unread).chain(told).collect();
    Some(all.join("; ")).filter(|it| !it.is_empty())
}

impl Http {
    /// Whether the request only reads.
    fn is_safe(&self) -> bool {
        method(self.method.as_deref().unwrap_or("GET")).is_ok_and(|it| it.is_safe())
    }
}

fn method(text: &str) -> Result<Method, Refusal> {
    let method = Method::from_bytes(text.to_ascii_uppercase().as_bytes());
    let method = method.map_err(|_| bad(&format!("`{}` is no method", cut(text))))?;
    match method {
        Method::CONNECT | Method::TRACE => Err(bad(&format!("{method} is not sent"))),
        it => Ok(it),
    }
}

fn bad(text: &str) -> Refusal {
    Refusal::new(Reason::BadRequest, text)
}
