//! The listener `other_organism`: asks another pump over one of its doors. As the source of a feed,
//! it shows what a listener of the other organism says.
//!
//! ```yaml
//! listeners:
//!   - use: other_organism
//!     name: fleet
//!     settings: {connect: "tls:fleet.example:8765", token: fleet.token}
//!   - use: agent
//!     name: octopus
//!     model: local
//!     context_feeds:
//!       - id: load
//!         source:
//!           type: tool
//!           name: fleet
//!           params: {payload: '<measure xmlns="https://xml-pipeline.org/ns/system_monitor/v1"/>'}
//! ```
//!
//! For each question, the listener opens a connection and a session in the other organism, under
//! the identity of the token. The other organism decides what this identity may ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pumphouse::client::{self, Address, Client, Incoming, Message as Answer, Push, Shown};
use pumphouse::limits::XmlLimits;
use pumphouse::listener::{Effects, ManifestPath};
use pumphouse::prelude::*;
use pumphouse::secret::{Secret, Secrets};
use pumphouse::wire::Code;
use pumphouse::xml::{Child, writable};
use serde::Deserialize;

use super::listener_files::ListenerFiles;
use super::secret_file;
use super::time::pass_time;
use pumphouse::listeners::todo::words::StepsOpen;
use pumphouse::listeners::words::action::UNKNOWN;
use pumphouse::listeners::words::agent::{RateLimited, Response};

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "other_organism";
/// The permission bits that the token's file must not have: all bits of the group and of others.
const REFUSED_MODES: u32 = 0o077;
/// The default time limit of a question, in seconds.
const SECONDS: u64 = 10;
/// The maximum time limit of a question, in seconds.
const SECONDS_MAX: u64 = 600;
/// The maximum number of bytes of an answer.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

/// Asks another organism. The answer is `told`.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/other_organism/v1")]
pub struct AskOrganism {
    /// The payload, as XML.
    #[payload(example = "<measure xmlns=\"https://xml-pipeline.org/ns/system_monitor/v1\"/>")]
    pub payload: String,
    /// The listener to ask; by default the one that takes the payload.
    #[payload(no_example)]
    pub to: Option<String>,
}

/// What the other organism said.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/other_organism/v1")]
pub struct Told {
    /// The listener that answered.
    #[payload(attribute, example = "system_monitor")]
    pub by: String,
    /// The local name of the answer.
    #[payload(attribute, example = "measured")]
    pub name: String,
    /// The answer's text, or the whole answer as XML if it has elements, or only attributes.
    #[payload(text, value, example = "Fleet nominal. 7 agents healthy. No alerts.")]
    pub text: String,
}

/// The question failed, or its answer is an error or too large.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/other_organism/v1")]
pub struct NotTold {
    /// Why, in a word.
    #[payload(attribute)]
    pub reason: Reason,
    /// Why, and how to correct it.
    #[payload(value, example = "fleet.example:8765 can't be reached: connection refused")]
    pub text: String,
}

/// Why a question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Payload)]
pub enum Reason {
    /// The other organism refuses the question, or answers with an error.
    Refused,
    /// The other organism isn't there, or doesn't let this one in: it got no question.
    Unreachable,
    /// The question was sent, and no whole answer came: whether anything was done is unknown.
    Unknown,
}

/// The `settings` of `use: other_organism` in a manifest.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Settings {
    /// The address of the other organism's door: `HOST:PORT`, `tls:HOST:PORT` or `unix:PATH`.
    pub connect: String,
    /// A file with the token. Only the file's owner may have access to it. A Unix door needs no
    /// token.
    pub token: Option<ManifestPath>,
    /// A file with the certificates to trust for TLS. The default is the system's certificates.
    pub ca: Option<ManifestPath>,
    /// The time limit of a question, in seconds.
    #[serde(default = "seconds")]
    pub seconds_max: u64,
}

fn seconds() -> u64 {
    SECONDS
}

/// The door of the other organism, and the token for it.
struct RemoteDoor {
    address: Address,
    token: Option<String>,
    secrets: Secrets,
    /// The time limit of a question, in seconds.
    seconds_max: u64,
}

/// Makes the listener `other_organism`. The token is read here, once.
///
/// # Errors
/// If the address is wrong, or the token can't be read. No error contains the token.
pub fn other_organism(settings: &Settings) -> Result<Listener, String> {
    let address: Address = settings.connect.parse().map_err(|it| format!("connect: {it}"))?;
    let address = match (&settings.ca, address) {
        (Some(ca), tls @ Address::Tls { .. }) => tls.trusting(ca.path()),
        (Some(_), _) => return Err("ca: it is for tls:HOST:PORT".to_owned()),
        (None, address) => address,
    };
    let (token, secret) = settings.token.as_ref().map(token).transpose()?.unzip();
    let secrets = Secrets::new(secret.clone());
    let most = settings.seconds_max;
    if !(1..=SECONDS_MAX).contains(&most) {
        return Err(format!("seconds_max: it is from 1 to {SECONDS_MAX}, not {most}"));
    }
    let door = RemoteDoor { address, token, secrets, seconds_max: most };
    Ok(Listener::with_state(NAME, Arc::new(door))
        .own_namespace()
        .secrets(secret)
        .extension(ListenerFiles::secret(settings.token.as_ref().map(ManifestPath::path)))
        .on(ask)
        .describe("Asks another organism.")
        .effects(Effects::Outside)
        .timeout(Duration::from_secs(most + 5))
        .stateless())
}

fn token(file: &ManifestPath) -> Result<(String, Secret), String> {
    let path = file.path();
    let text = secret_file::read(&path, REFUSED_MODES)
        .map_err(|why| format!("token: {}: {why}", path.display()))?;
    let token = text.trim().to_owned();
    if token.is_empty() {
        return Err(format!("token: {} is empty", path.display()));
    }
    let secret =
        Secret::checked(&token).map_err(|it| format!("token: {}: {it}", path.display()))?;
    Ok((token, secret))
}

async fn ask(
    State(door): State<Arc<RemoteDoor>>,
    AskOrganism { payload, to }: AskOrganism,
) -> Result<Told, NotTold> {
    let push = Push::text(&payload).map_err(|error| NotTold {
        reason: Reason::Refused,
        text: writable(&format!("the payload is no XML element: {error}")),
    })?;
    let push = match &to {
        Some(to) => push.to(to),
        None => push,
    };
    let late = pass_time(Duration::from_secs(door.seconds_max));
    let is_sent = AtomicBool::new(false);
    let answer = tokio::select! {
        answer = exchange(&door, &push, &is_sent) => answer,
        () = late => {
            let reason =
                if is_sent.load(Ordering::Relaxed) { Reason::Unknown } else { Reason::Unreachable };
            Err((reason, format!("no answer in {} s, the limit seconds_max", door.seconds_max)))
        }
    };
    let answer = answer.map_err(|(reason, why)| {
        let more =
            if reason == Reason::Unknown { "; whether anything was done is unknown" } else { "" };
        let text = writable(&format!("{}: {}{more}", door.address, door.hide(&why)));
        NotTold { reason, text }
    })?;
    let text = door.hide(&content(&answer));
    if answer.failed || answer.payload.is(pumphouse::name::CORE, "huh") {
        let (by, name) = (&answer.from, answer.payload.name());
        let who = door.hide(&format!("{by} answered an error, {}", name.local()));
        let mut text = writable(&format!("{who}: {text}"));
        text.truncate(text.floor_char_boundary(ANSWER_BYTES_MAX));
        let reason = if is_unknown(&answer) { Reason::Unknown } else { Reason::Refused };
        return Err(NotTold { reason, text });
    }
    if text.len() > ANSWER_BYTES_MAX {
        let text = format!(
            "the answer has {} bytes, more than {ANSWER_BYTES_MAX}; what it answers was done",
            text.len()
        );
        return Err(NotTold { reason: Reason::Unknown, text });
    }
    let name = door.hide(answer.payload.name().local());
    Ok(Told { by: door.hide(&answer.from), name, text })
}

/// Whether nobody knows what became of a question that was answered with an error.
fn is_unknown(answer: &Answer) -> bool {
    let unknown = Code::OutcomeUnknown.to_string();
    let is_cut_off = answer.decode::<Huh>().is_ok_and(|it| it.code == unknown);
    is_cut_off || answer.payload.attribute("reason") == Some(UNKNOWN)
}

/// Asks the question. `is_sent` becomes true before the question is sent.
async fn exchange(
    door: &RemoteDoor,
    push: &Push,
    is_sent: &AtomicBool,
) -> Result<Answer, (Reason, String)> {
    let client = Client::connect_to(&door.address).await;
    let client =
        client.map_err(|error| (Reason::Unreachable, format!("it can't be reached: {error}")))?;
    let mut client = client.with_limits(XmlLimits::DOOR);
    if let Some(token) = &door.token {
        let let_in = client.authenticate(token).await;
        let_in.map_err(|error| (Reason::Unreachable, error.to_string()))?;
    }
    is_sent.store(true, Ordering::Relaxed);
    let lost = |error: client::Error| (Reason::Unknown, error.to_string());
    let number = client.push(push);
    // Messages of other sessions of this identity are passed over. `tell` would keep them.
    let accepted = loop {
        let refused = match client.recv().await.map_err(lost)? {
            Some(Incoming::Accepted { push, accepted }) if push == number => break accepted,
            Some(Incoming::Refused { huh, .. }) => client::Error::Refused(Box::new(huh)),
            Some(Incoming::UnknownThread { error, .. }) => client::Error::UnknownThread(error),
            Some(_) => continue,
            None => return Err(lost(client::Error::Closed)),
        };
        return Err((Reason::Refused, refused.to_string()));
    };
    // The session has no other push, so every message sent to this session answers this push.
    loop {
        match client.recv().await.map_err(lost)? {
            Some(Incoming::Message(message)) => {
                let is_of_session =
                    message.thread.as_ref().is_some_and(|it| it.as_str() == accepted.thread);
                if is_of_session && message.shown == Shown::Sent && !is_partial(&message) {
                    return Ok(message);
                }
            }
            Some(_) => {}
            None => {
                let text = "it closed the connection before an answer came";
                return Err((Reason::Unknown, text.to_owned()));
            }
        }
    }
}

/// Returns whether a further answer follows this answer.
fn is_partial(message: &Answer) -> bool {
    let is_partial = |it: Response| !it.is_final;
    let decoded = message.is::<Response>().then(|| message.decode::<Response>());
    decoded.is_some_and(|it| it.is_ok_and(is_partial))
        || message.is::<StepsOpen>()
        || message.is::<RateLimited>()
}

/// Returns the text of an answer. If the answer contains elements, or attributes and no text,
/// returns the whole answer as XML.
fn content(answer: &Answer) -> String {
    let has_elements = answer.payload.children().any(|it| matches!(it, Child::Element(_)));
    let has_text = !answer.payload.text().is_empty();
    let has_attributes = answer.payload.attributes().next().is_some();
    match has_elements || !has_text && has_attributes {
        true => String::from_utf8_lossy(&answer.payload.canonical()).into_owned(),
        false => answer.payload.text().into_owned(),
    }
}

impl RemoteDoor {
    /// Hides the token in a text.
    fn hide(&self, text: &str) -> String {
        self.secrets.hide(text).into_owned()
    }
}
