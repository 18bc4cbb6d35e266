//! A reply that is known before it is asked for.

use std::time::Duration;

use crate::model::{Call, Error, Kind, Piece, Stop, Usage};

/// A reply that is known before it is asked for: what it says, how fast, and how it ends.
///
/// ```
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
    /// Characters of a piece; 0 is all at once.
    pub(super) chunk: usize,
    pub(super) after: Duration,
    pub(super) every: Duration,
    pub(super) usage: Option<Usage>,
    pub(super) end: End,
}

/// How a reply ends.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum End {
    /// As it should.
    Stop(Stop),
    /// With an error, after so many characters.
    Error(usize, Error),
    /// Not at all: after so many characters nothing more comes.
    Never(usize),
}

impl Script {
    /// A reply of this text, all at once.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Script {
        Script::new().then(Piece::Text(text.into()))
    }

    /// A reply that says nothing.
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

    /// Says this next. A `Usage` or a `Stop` takes its place at the end.
    #[must_use]
    pub fn then(mut self, piece: Piece) -> Script {
        match piece {
            Piece::Usage(usage) => self.usage = Some(usage),
            Piece::Stop(stop) => self.end = End::Stop(stop),
            piece => self.pieces.push(piece),
        }
        self
    }

    /// Reasons next.
    #[must_use]
    pub fn reasoning(self, text: impl Into<String>) -> Script {
        self.then(Piece::Reasoning(text.into()))
    }

    /// Calls a tool next.
    #[must_use]
    pub fn call(self, call: Call) -> Script {
        self.then(Piece::Call(call))
    }

    /// Comes in pieces of so many characters; 0 is all at once.
    #[must_use]
    pub fn chunks(mut self, characters: usize) -> Script {
        self.chunk = characters;
        self
    }

    /// Lets so much time pass before it begins.
    #[must_use]
    pub fn after(mut self, time: Duration) -> Script {
        self.after = time;
        self
    }

    /// Lets so much time pass before each piece but the first.
    #[must_use]
    pub fn every(mut self, time: Duration) -> Script {
        self.every = time;
        self
    }

    /// Says what it has used.
    #[must_use]
    pub fn usage(self, usage: Usage) -> Script {
        self.then(Piece::Usage(usage))
    }

    /// Stops for this reason.
    #[must_use]
    pub fn stop(self, stop: Stop) -> Script {
        self.then(Piece::Stop(stop))
    }

    /// Fails after so many characters.
    #[must_use]
    pub fn fails(self, at_characters: usize, kind: Kind) -> Script {
        let message = format!("the script fails here: {}", kind.as_str());
        self.fails_with(at_characters, Error::new(kind, message))
    }

    /// Fails after so many characters, with this error.
    #[must_use]
    pub fn fails_with(mut self, at_characters: usize, error: Error) -> Script {
        self.end = End::Error(at_characters, error);
        self
    }

    /// Says nothing more after so many characters, and doesn't end either.
    #[must_use]
    pub fn hangs(mut self, at_characters: usize) -> Script {
        self.end = End::Never(at_characters);
        self
    }
}

impl Script {
    /// The same, with words in a placeholder's stead; in a call they stand within JSON.
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
