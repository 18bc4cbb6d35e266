//! The refusals of requests to web servers.

use std::error::Error;

use reqwest::{StatusCode, Url};

use super::Reason;
use super::reach::{NotPublic, host_of};

/// The reason why a request isn't sent, or why an answer isn't shown.
#[derive(Clone, Debug)]
pub(in super::super) struct Refusal {
    pub(in super::super) reason: Reason,
    /// The server's status. `None` if the status isn't the reason.
    pub(in super::super) status: Option<u16>,
    /// The name of the limit that is exceeded. `None` if no limit is exceeded.
    pub(in super::super) limit: Option<&'static str>,
    /// The reason in words and, where possible, how to correct the request.
    pub(in super::super) text: String,
    /// Whether the server may have got the request.
    pub(in super::super) is_sent: bool,
}

impl Refusal {
    pub(in super::super) fn new(reason: Reason, text: impl Into<String>) -> Refusal {
        Refusal { reason, status: None, limit: None, text: text.into(), is_sent: false }
    }

    pub(in super::super) fn too_large(what: &str, limit: &'static str, most: usize) -> Refusal {
        let text = format!("{what} is too large; the limit {limit} is {most} bytes");
        Refusal { limit: Some(limit), ..Refusal::new(Reason::TooLarge, text) }
    }

    /// Makes the refusal for a server that answers with a failure status.
    pub(super) fn status(status: StatusCode, url: &Url) -> Refusal {
        let (host, said) = (host_of(url), status.canonical_reason().unwrap_or_default());
        let text = format!("{host} answers {} {said}", status.as_u16());
        let text = text.trim_end().to_owned();
        Refusal { status: Some(status.as_u16()), ..Refusal::new(Reason::Status, text) }
    }

    /// Adds the note that a server redirected to the refused URL.
    pub(super) fn redirected(self) -> Refusal {
        Refusal { text: format!("the server redirects: {}", self.text), ..self }
    }

    /// Notes that the server may have got the request.
    pub(super) fn sent(self) -> Refusal {
        Refusal { is_sent: true, ..self }
    }

    /// Makes the refusal for a request that changes something at the server. If the server may have
    /// got the request, nobody knows what it did.
    pub(in super::super) fn of_change(self) -> Refusal {
        if !self.is_sent {
            return self;
        }
        let text = format!("{}; whether anything was done is unknown", self.text);
        Refusal { reason: Reason::Unknown, text, ..self }
    }

    /// Makes the refusal for a request that got no answer.
    pub(super) fn unsent(error: &reqwest::Error, url: &Url) -> Refusal {
        let host = host_of(url);
        if let Some(refusal) = causes(error).find_map(|it| it.downcast_ref::<NotPublic>()) {
            return Refusal::new(Reason::OutOfReach, refusal.to_string());
        }
        if error.is_connect() && error.is_timeout() {
            let text = format!(
                "there was no connection to {host} in time; the limit is connect_seconds_max"
            );
            let refusal = Refusal::new(Reason::Timeout, text);
            return Refusal { limit: Some("connect_seconds_max"), ..refusal };
        }
        if !error.is_connect() {
            let text = format!("{host} hung up before it answered: {}", root(error));
            return Refusal::new(Reason::Broken, text).sent();
        }
        let tls = causes(error).find_map(tls);
        let why = tls.unwrap_or_else(|| root(error));
        Refusal::new(Reason::Unreachable, format!("no connection to {host}: {why}"))
    }

    /// Makes the refusal for an answer that breaks off.
    pub(super) fn cut(error: &reqwest::Error) -> Refusal {
        Refusal::new(Reason::Broken, format!("the answer breaks off: {}", root(error))).sent()
    }
}

/// Returns an error and its sources, from the outside in.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |it: &&'a (dyn Error + 'static)| (*it).source())
}

/// Returns the text of an error's innermost source. The outer errors may contain a URL.
fn root(error: &reqwest::Error) -> String {
    causes(error).skip(1).last().map_or_else(|| "nobody knows why".to_owned(), ToString::to_string)
}

/// Returns the text of a TLS error. `None` if the error isn't a TLS error.
fn tls(error: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return Some(error.to_string());
    }
    // For an I/O error, `source` skips the wrapped error and returns the wrapped error's source.
    // Therefore `get_ref` is used here.
    error.downcast_ref::<std::io::Error>()?.get_ref().and_then(|it| tls(it))
}
