//! Scripted replies: replies that are written in advance.

use std::time::Duration;

use crate::model::error::{Error, Kind};
use crate::model::piece::{Call, Piece, Stop};
use crate::model::usage::Usage;

/// A reply that is written in advance: its pieces, its speed, and its end.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use std::time::Duration;
/// use pumphouse::model::{Kind, Script};
///
/// let slow = Script::text("<response>One moment.</response>")
///     .chunks(4)
///     .every(Duration::from_millis(20));
/// let cut = Script::text("<response>One mom").fails(10, Kind::Cut);
/// # let _ = (slow, cut);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub(super) pieces: Vec<Piece>,
    /// The most characters of a piece. 0 if texts aren't cut.
    pub(super) chunk: usize,
    pub(super) after: Duration,
    pub(super) every: Duration,
    pub(super) usage: Option<Usage>,
    pub(super) end: End,
}

/// How a reply ends.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum End {
    /// With a stop reason.
    Stop(Stop),
    /// With an error, after a number of characters.
    Error(usize, Error),
    /// Never: after a number of characters, nothing more comes.
    Never(usize),
}

impl Script {
    /// A reply of this text, in one piece.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Script {
        Script::new().then(Piece::Text(text.into()))
    }

    /// An empty reply.
    #[must_use]
    pub fn new() -> Script {
        Script {
            pieces: Vec::new(),
            chunk: 0,
            after: Duration::ZERO,
            every: Duration::ZERO,
            usage: None,
            end: End::Stop(Stop::End),
        }
    }

    /// Adds a piece. A `Usage` or a `Stop` replaces an earlier one, and always comes at the end of
    /// the reply.
    #[must_use]
    pub fn then(mut self, piece: Piece) -> Script {
        match piece {
            Piece::Usage(usage) => self.usage = Some(usage),
            Piece::Stop(stop) => self.end = End::Stop(stop),
            piece => self.pieces.push(piece),
        }
        self
    }

    /// Adds reasoning.
    #[must_use]
    pub fn reasoning(self, text: impl Into<String>) -> Script {
        self.then(Piece::Reasoning(text.into()))
    }

    /// Adds a call of a tool.
    #[must_use]
    pub fn call(self, call: Call) -> Script {
        self.then(Piece::Call(call))
    }

    /// Cuts texts into pieces of at most this number of characters. 0 leaves texts whole.
    #[must_use]
    pub fn chunks(mut self, characters: usize) -> Script {
        self.chunk = characters;
        self
    }

    /// Sets the pause before the first piece.
    #[must_use]
    pub fn after(mut self, time: Duration) -> Script {
        self.after = time;
        self
    }

    /// Sets the pause before each piece after the first. Usage and the reason for the stop follow
    /// without a pause.
    #[must_use]
    pub fn every(mut self, time: Duration) -> Script {
        self.every = time;
        self
    }

    /// Sets the usage.
    #[must_use]
    pub fn usage(self, usage: Usage) -> Script {
        self.then(Piece::Usage(usage))
    }

    /// Sets the stop reason.
    #[must_use]
    pub fn stop(self, stop: Stop) -> Script {
        self.then(Piece::Stop(stop))
    }

    /// Makes the reply fail after this number of characters, with an error of this kind.
    #[must_use]
    pub fn fails(self, at_characters: usize, kind: Kind) -> Script {
        let message = format!("the script fails here: {}", kind.as_str());
        self.fails_with(at_characters, Error::new(kind, message))
    }

    /// Makes the reply fail after this number of characters, with this error.
    #[must_use]
    pub fn fails_with(mut self, at_characters: usize, error: Error) -> Script {
        self.end = End::Error(at_characters, error);
        self
    }

    /// Makes the reply hang after this number of characters: nothing more comes, and the reply
    /// doesn't end.
    #[must_use]
    pub fn hangs(mut self, at_characters: usize) -> Script {
        self.end = End::Never(at_characters);
        self
    }
}

impl Script {
    /// Replaces a placeholder with words, in texts, reasoning and calls' arguments. In arguments,
    /// the words are escaped for JSON.
    pub(super) fn filled(mut self, placeholder: &str, words: &str) -> Script {
        for piece in &mut self.pieces {
            match piece {
                Piece::Text(it) | Piece::Reasoning(it) => *it = it.replace(placeholder, words),
                Piece::Call(it) => {
                    let quoted = serde_json::Value::from(words).to_string();
                    let within = quoted.get(1..quoted.len() - 1).unwrap_or_default();
                    it.arguments = it.arguments.replace(placeholder, within);
                }
                _ => {}
            }
        }
        self
    }
}

impl Default for Script {
    fn default() -> Script {
        Script::new()
    }
}

impl From<&str> for Script {
    fn from(text: &str) -> Script {
        Script::text(text)
    }
}

impl From<String> for Script {
    fn from(text: String) -> Script {
        Script::text(text)
    }
}
