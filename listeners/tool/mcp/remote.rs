//! A server over HTTP ("Streamable HTTP"): each message is sent as a request of its own. The server
//! responds with one JSON document or with a stream of events.
//!
//! Requests go only to the URL that the manifest names. No redirect is followed.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use pumphouse::model::sse::Decoder;
use pumphouse::schema::json;
use pumphouse::secret::{Secret, Secrets, of_url};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::super::time::pass_time;
use super::super::web::limits::WebLimits;
use super::super::web::{Web, content_type, host_of};
use super::exchange::{Failure, Shared, heard, message, within};
use super::limits::{LINE_BYTES_MAX, RECONNECTS_MAX, REQUESTS_MAX};
use super::queue::{Outgoing, WeakQueue};

/// The header for the id of a session, which the server chooses.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The header for the protocol's revision that the server chose.
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The header for the id of the last event before a stream broke off.
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EITHER: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
/// The maximum time of the request that ends a session.
const FAREWELL_TIME: Duration = Duration::from_secs(2);
/// The id of the request for a sign of life.
const PING: &str = "ping";
/// The delay before a stream that broke off is requested again, if the server names no delay.
const RETRY: Duration = Duration::from_secs(1);
/// The longest delay that a server may name.
const RETRY_MAX: Duration = Duration::from_secs(30);

/// A server at a URL.
pub(super) struct Remote {
    web: Web,
    url: Url,
    /// The header with the bearer token that is sent to the server.
    bearer: Option<HeaderValue>,
    /// The bearer token, and those in the URL.
    secrets: Vec<Secret>,
    hidden: Secrets,
}

/// Makes the header of a bearer token, and the token as a secret.
fn bearer_of(text: &str) -> Result<(HeaderValue, Secret), String> {
    let header = HeaderValue::from_str(&format!("Bearer {text}"));
    let mut header = header.map_err(|_| "`bearer` holds what no header may".to_owned())?;
    header.set_sensitive(true);
    Ok((header, Secret::checked(text).map_err(|it| format!("`bearer`: {it}"))?))
}

impl Remote {
    /// Checks the URL and the bearer token. Only the URL's host is ever reached. A token is only
    /// sent over `https://`, or to this machine.
    pub(super) fn new(url: &str, bearer: Option<&str>) -> Result<Remote, String> {
        let parsed: Url = url.parse().map_err(|_| format!("`{url}` is no URL"))?;
        let host = match parsed.port_or_known_default() {
            Some(port) => format!("{}:{port}", parsed.host_str().unwrap_or_default()),
            None => return Err(format!("`{url}` isn't http:// or https://")),
        };
        let web = Web::new(Some(&[host]), WebLimits::default())?;
        let url = web.checked(url).map_err(|it| it.text)?;
        let bearer = bearer.map(str::trim);
        if bearer.is_some_and(str::is_empty) {
            return Err("`bearer` is empty: is its variable set?".to_owned());
        }
        if bearer.is_some() && url.scheme() != "https" && !is_own(&url) {
            return Err("`bearer` is sent over https:// alone, or to this machine".to_owned());
        }
        let (bearer, token) = bearer.map(bearer_of).transpose()?.unzip();
        let of_url = of_url(url.as_str()).map_err(|it| format!("url: {it}"))?;
        let secrets: Vec<Secret> = token.into_iter().chain(of_url).collect();
        let hidden = Secrets::new(secrets.clone());
        Ok(Remote { web, url, bearer, secrets, hidden })
    }

    fn headers(&self, session: &Session) -> HeaderMap {
        let mut all = HeaderMap::new();
        let known = [
            (AUTHORIZATION, self.bearer.clone()),
            (SESSION, session.id.clone()),
            (VERSION, session.version.clone()),
        ];
        for (name, value) in known {
            all.extend(value.map(|it| (name, it)));
        }
        all
    }

    /// Returns the bearer token, and the secrets of the URL.
    pub(super) fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    /// Hides the secrets in a server's text.
    fn told(&self, text: &str) -> String {
        self.hidden.hide(text).into_owned()
    }
}

/// Returns whether a URL's host is `localhost` or a loopback address.
fn is_own(url: &Url) -> bool {
    let host = host_of(url);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
}

/// The id of a session and the revision of the protocol, as the server has chosen them.
#[derive(Clone, Debug, Default)]
struct Session {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

/// One connection to a server.
struct Line<'a> {
    remote: &'a Remote,
    shared: &'a Shared,
    queue: &'a WeakQueue,
    session: Mutex<Session>,
}

/// Sends the queued messages to the server and handles the server's responses. Returns `None` once
/// the connection is closed by `end`, or once every handle of it is dropped. Returns the reason if
/// the connection ends because of the server.
pub(super) async fn drive(
    remote: &Remote,
    shared: &Shared,
    queue: &WeakQueue,
    mut written: mpsc::Receiver<Outgoing>,
    end: &CancellationToken,
) -> Option<String> {
    let line = Line { remote, shared, queue, session: Mutex::default() };
    let why = tokio::select! {
        why = line.send_all(&mut written) => why,
        () = end.cancelled() => None,
    };
    if why.is_none() {
        line.farewell().await;
    }
    why
}

/// Makes the requests fail that wait to be sent. No more are taken.
fn refuse_all(written: &mut mpsc::Receiver<Outgoing>, why: &str, shared: &Shared) {
    written.close();
    while let Ok(message) = written.try_recv() {
        if let Some(id) = message.request() {
            shared.fail(id, Failure::Unreachable(why.to_owned()));
        }
    }
}

impl Line<'_> {
    fn session(&self) -> std::sync::MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the messages, several at a time. Returns `None` once every handle of the connection is
    /// dropped. Returns the reason if the connection takes no more requests.
    async fn send_all(&self, written: &mut mpsc::Receiver<Outgoing>) -> Option<String> {
        let mut under_way = FuturesUnordered::new();
        loop {
            if let Some(why) = self.shared.over() {
                // Requests that were sent may still be answered. The others go over the next
                // connection.
                refuse_all(written, &why, self.shared);
                while under_way.next().await.is_some() {}
                return Some(why);
            }
            tokio::select! {
                message = written.recv(), if under_way.len() < REQUESTS_MAX => {
                    let message = message?;
                    // This message tells the server that the client is ready. Nothing else is sent
                    // until the server has accepted it, because a server may refuse earlier
                    // requests.
                    match message.method.as_deref() {
                        Some("notifications/initialized") => self.post(message).await,
                        _ => under_way.push(self.post(message)),
                    }
                }
                Some(()) = under_way.next(), if !under_way.is_empty() => {}
            }
        }
    }

    /// Sends a message. An error affects only the call to which the message belongs.
    async fn post(&self, message: Outgoing) {
        let id = message.request();
        if let Err(failure) = self.exchange(message, id).await
            && let Some(id) = id
        {
            self.shared.fail(id, failure);
        }
    }

    async fn exchange(&self, message: Outgoing, id: Option<u64>) -> Result<(), Failure> {
        let Outgoing { method, id: asked, text, room } = message;
        let asks = method.as_deref() == Some("initialize");
        let asked = Some(&asked).filter(|it| !it.is_null());
        let mut headers = self.remote.headers(&self.session());
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, EITHER);
        let answer = self.send(Method::POST, headers, text).await?;
        drop(room);
        if asks {
            self.session().id = answer.headers().get(SESSION).cloned();
        }
        let status = answer.status();
        if !status.is_success() {
            let (refused, is_about_session) = self.refused(answer, asked).await;
            if !asks && is_about_session && self.has_forgotten(status).await {
                let why = format!("the server has ended the session: {refused}");
                self.shared.leave(&why);
                return Err(Failure::Forgotten(why));
            }
            return Err(refused);
        }
        match content_type(answer.headers()).split(';').next().unwrap_or_default().trim() {
            // A notification and an answer of ours aren't answered, whatever the body is.
            _ if id.is_none() => Ok(()),
            "text/event-stream" => self.stream(answer, id).await,
            "application/json" => {
                let body = body(answer).await?;
                self.hear(&body, id);
                match id.filter(|it| self.shared.waits(*it)) {
                    Some(_) => {
                        let text = "the server answers another request than this".to_owned();
                        Err(Failure::Nonsense(text))
                    }
                    None => Ok(()),
                }
            }
            other => {
                let other = self.remote.told(other);
                Err(Failure::Nonsense(format!("the server answers {other:?}, and no JSON")))
            }
        }
    }

    async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: String,
    ) -> Result<Response, Failure> {
        let sent = self.remote.web.open(method, &self.remote.url, headers, body).await;
        sent.map_err(|it| {
            let text = self.remote.told(&it.text);
            match it.is_sent {
                true => Failure::Lost(text),
                false => {
                    // The server may be one that was just begun anew and knows no session.
                    self.shared.leave(&text);
                    Failure::Unreachable(text)
                }
            }
        })
    }

    /// Returns whether the server no longer knows the session. It says so by 404. Many servers say
    /// 400 in place of it, but also for other mistakes, so these are asked for a sign of life. An
    /// error of JSON-RPC that answers the question is one, unless it is about the session.
    async fn has_forgotten(&self, status: StatusCode) -> bool {
        if self.session().id.is_none() {
            return false;
        }
        match status {
            StatusCode::NOT_FOUND => true,
            StatusCode::BAD_REQUEST => {
                let mut headers = self.remote.headers(&self.session());
                headers.insert(CONTENT_TYPE, JSON);
                headers.insert(ACCEPT, EITHER);
                let ping = json!({ "jsonrpc": "2.0", "id": PING, "method": "ping" });
                let sent = self.send(Method::POST, headers, ping.to_string());
                match within(FAREWELL_TIME, sent).await {
                    Ok(it) if it.status() == StatusCode::NOT_FOUND => true,
                    Ok(it) if it.status() == status => self.refused(it, Some(&PING.into())).await.1,
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// Makes the failure for a response with a failure status. Returns also whether the response
    /// may be about the session: it is none if its body answers the request with the id `asked`,
    /// and doesn't name the session.
    async fn refused(&self, answer: Response, asked: Option<&Value>) -> (Failure, bool) {
        let (status, host) = (answer.status(), host_of(answer.url()));
        let said = format!("{host} answers {status}");
        // Some servers give details in an error of JSON-RPC.
        let body = body(answer).await.unwrap_or_default();
        let body = self.remote.told(&String::from_utf8_lossy(&body));
        let body = json::read(&body).unwrap_or_default();
        let more = body["error"]["message"].as_str();
        let is_answer = body["error"].is_object() && body.get("id") == asked;
        let names_session = more.is_some_and(|it| it.to_lowercase().contains("session"));
        let hint = match status {
            StatusCode::UNAUTHORIZED => ": it wants another `bearer`".to_owned(),
            _ => more.map(|it| format!(": {it}")).unwrap_or_default(),
        };
        let failure = match status.is_server_error() {
            true => Failure::Lost(said + &hint),
            false => Failure::Error(said + &hint),
        };
        (failure, !is_answer || names_session)
    }

    /// Reads a stream until the request is answered. If the stream breaks off and one of its events
    /// had an id, the server is asked to continue after the last such event. The id and the delay
    /// that the server named also apply to the streams that continue the first one.
    async fn stream(&self, mut from: Response, id: Option<u64>) -> Result<(), Failure> {
        let (mut last, mut retry) = (String::new(), RETRY);
        for _ in 0..=RECONNECTS_MAX {
            let mut decoder = Decoder::new(LINE_BYTES_MAX);
            loop {
                let piece = match from.chunk().await {
                    Ok(Some(it)) => it,
                    Ok(None) | Err(_) => break,
                };
                let mut rest = &piece[..];
                let too_large = |it| Failure::Nonsense(format!("the server's stream: {it}"));
                while let Some(event) = decoder.next(&mut rest).map_err(too_large)? {
                    if !event.id.is_empty() {
                        last.clone_from(&event.id);
                    }
                    if let Some(data) = event.data.filter(|it| !it.trim().is_empty()) {
                        self.hear(data.as_bytes(), id);
                    }
                }
                if id.is_some_and(|it| !self.shared.waits(it)) {
                    return Ok(());
                }
            }
            let Some(value) = HeaderValue::from_str(&last).ok().filter(|it| !it.is_empty()) else {
                break;
            };
            if id.is_none() {
                return Ok(());
            }
            retry = decoder.retry().unwrap_or(retry).min(RETRY_MAX);
            pass_time(retry).await;
            if id.is_some_and(|it| !self.shared.waits(it)) {
                return Ok(());
            }
            let mut headers = self.remote.headers(&self.session());
            headers.insert(ACCEPT, EVENTS);
            headers.insert(LAST_EVENT, value);
            // The request itself was sent, whatever becomes of the stream.
            let lost = |it: Failure| Failure::Lost(it.to_string());
            from = self.send(Method::GET, headers, String::new()).await.map_err(lost)?;
            if !from.status().is_success() {
                return Err(lost(self.refused(from, None).await.0));
            }
        }
        match id {
            Some(_) => Err(Failure::Lost("the server's stream ended without an answer".to_owned())),
            None => Ok(()),
        }
    }

    /// Handles a message of the server, or an array of messages. `id` is the request that is being
    /// answered.
    fn hear(&self, text: &[u8], id: Option<u64>) {
        let text = String::from_utf8_lossy(text);
        let all = match message(&text, self.shared, id) {
            Some(Value::Array(all)) => all,
            one => one.into_iter().collect(),
        };
        for header in all {
            let version = header.get("result").and_then(|it| it.get("protocolVersion"));
            if let Some(version) = version.and_then(Value::as_str) {
                self.session().version = HeaderValue::from_str(version).ok();
            }
            heard(header, self.shared, self.queue);
        }
    }

    /// Tells the server that the session ends. Does nothing if there is no session.
    async fn farewell(&self) {
        let session = self.session().clone();
        if session.id.is_none() {
            return;
        }
        let headers = self.remote.headers(&session);
        // Errors are ignored, because a server needn't support this request.
        let _ = within(FAREWELL_TIME, self.send(Method::DELETE, headers, String::new())).await;
    }
}

/// Reads a response's body, of at most `LINE_BYTES_MAX` bytes.
async fn body(mut from: Response) -> Result<Vec<u8>, Failure> {
    let mut all = Vec::new();
    let broken = |_| Failure::Lost("the server's answer breaks off".to_owned());
    while let Some(piece) = from.chunk().await.map_err(broken)? {
        if all.len() + piece.len() > LINE_BYTES_MAX {
            let text = format!("the server's answer has more than {LINE_BYTES_MAX} bytes");
            return Err(Failure::Nonsense(text));
        }
        all.extend_from_slice(&piece);
    }
    Ok(all)
}
