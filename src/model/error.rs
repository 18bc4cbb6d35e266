//! The error of a model that didn't answer, or that stopped before the end of its answer.

use std::fmt;
use std::time::Duration;

/// The error of a model that didn't answer, or that stopped before the end of its answer. The error
/// shows no key, even if the server quoted one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// The kind of failure, to match on.
    pub kind: Kind,
    /// What happened, in a sentence.
    pub message: Box<str>,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// The server's own message, cut after 500 characters.
    pub said: Option<Box<str>>,
    /// How long the server asked to wait before a retry.
    pub retry_after: Option<Duration>,
    /// Whether the same request may succeed later.
    pub retry: bool,
    /// The tokens of a prompt that is too long, if the server says how many there are.
    pub prompt_tokens: Option<u64>,
    /// The tokens that the model takes, if the server says so of a prompt that is too long.
    pub window: Option<u32>,
    /// The name of the model that failed, if a [router](crate::model::Router) asked it.
    pub model: Option<Box<str>>,
    /// The turn's other failed attempts, the oldest first.
    pub tried: Vec<Error>,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// No connection: the host is unknown, nothing listens there, or TLS failed.
    Unreachable,
    /// The server rejected the request, for example its key, its model or its form.
    Refused,
    /// The prompt is longer than the model's window.
    PromptTooLong,
    /// Too many requests, or the account's quota is used up.
    RateLimited,
    /// The server failed, before its reply or in the middle of it.
    Failed,
    /// A wait took too long.
    TimedOut(Wait),
    /// The connection ended before the reply was whole.
    Cut,
    /// The server's answer isn't a reply.
    Garbled,
    /// The server's answer is larger than a limit, which the message names.
    TooLarge,
    /// A script or a record has no further reply.
    Spent,
    /// A record has no reply to this prompt.
    OffRecord,
}

/// The event that a request waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// A connection.
    Connection,
    /// The first byte of the reply.
    FirstByte,
    /// A further byte of the reply.
    NextByte,
    /// The end of the reply.
    End,
}

impl Kind {
    /// The kind as one word, as the log and scripts write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Unreachable => "unreachable",
            Kind::Refused => "refused",
            Kind::PromptTooLong => "prompt-too-long",
            Kind::RateLimited => "rate-limited",
            Kind::Failed => "failed",
            Kind::TimedOut(_) => "timed-out",
            Kind::Cut => "cut",
            Kind::Garbled => "garbled",
            Kind::TooLarge => "too-large",
            Kind::Spent => "spent",
            Kind::OffRecord => "off-record",
        }
    }

    /// Whether a request that failed in this way can usually succeed later. [`Error::retry`]
    /// answers this for a particular failure.
    #[must_use]
    pub fn may_pass(self) -> bool {
        use Kind::{Cut, Failed, RateLimited, TimedOut, Unreachable};
        matches!(self, Unreachable | RateLimited | Failed | TimedOut(_) | Cut)
    }
}

impl Error {
    /// An error of this kind, with a sentence on what happened.
    #[must_use]
    pub fn new(kind: Kind, message: impl Into<Box<str>>) -> Error {
        let (message, retry) = (message.into(), kind.may_pass());
        Error {
            kind,
            message,
            status: None,
            said: None,
            retry_after: None,
            retry,
            prompt_tokens: None,
            window: None,
            model: None,
            tried: Vec::new(),
        }
    }

    /// The number of attempts, this one included.
    #[must_use]
    pub fn attempts(&self) -> usize {
        self.tried.len() + 1
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(model) = &self.model {
            write!(f, "{model}: ")?;
        }
        f.write_str(&self.message)?;
        if self.attempts() > 1 {
            write!(f, ", tried {} times", self.attempts())?;
        }
        match &self.said {
            Some(said) => write!(f, "; it said: {said}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
