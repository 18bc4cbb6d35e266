//! Why a model didn't answer, or not to the end.

use std::fmt;
use std::time::Duration;

/// Why a model didn't answer, or not to the end. It holds no key, whatever a server repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// What kind of failure it is: match on this.
    pub kind: Kind,
    /// What happened, in a sentence.
    pub message: Box<str>,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// What the server said about it: the beginning.
    pub said: Option<Box<str>>,
    /// How long to wait first, where the server said so.
    pub retry_after: Option<Duration>,
    /// Whether the same request may do better later.
    pub retry: bool,
    /// Which of several models failed, where a [router](crate::model::Router) asks several.
    pub model: Option<Box<str>>,
    /// The attempts that failed before this one, the first one first.
    pub tried: Vec<Error>,
}

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// There is no connection: no such host, nobody listens, no TLS.
    Unreachable,
    /// The server doesn't want the request: its key, its model, its form.
    Refused,
    /// The prompt is longer than the model's window.
    PromptTooLong,
    /// Too many requests, or more than was paid for.
    RateLimited,
    /// The server failed, before its reply or in the middle of it.
    Failed,
    /// It took too long.
    TimedOut(Wait),
    /// The reply ended before its end.
    Cut,
    /// What came is no reply.
    Garbled,
    /// What came is larger than a limit, which the message names.
    TooLarge,
    /// A script or a record has no further reply.
    Spent,
    /// A record has no reply to this prompt.
    OffRecord,
}

/// What was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wait {
    /// A connection.
    Connection,
    /// The first byte of the reply.
    FirstByte,
    /// A byte in the middle of it.
    NextByte,
    /// Its end.
    End,
}

impl Kind {
    /// In a word, as the log and scripts have it.
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

    /// Whether the same request may do better later, as a rule.
    #[must_use]
    pub fn may_pass(self) -> bool {
        use Kind::{Cut, Failed, RateLimited, TimedOut, Unreachable};
        matches!(self, Unreachable | RateLimited | Failed | TimedOut(_) | Cut)
    }
}

impl Error {
    /// A failure and what happened.
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
            model: None,
            tried: Vec::new(),
        }
    }

    /// How often it was tried.
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
