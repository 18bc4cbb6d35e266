//! A model that repeats recorded replies.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::model::error::{Error, Kind};
use crate::model::interface::{Boxed, Model, Reply};
use crate::model::play::{Sleeper, play};
use crate::model::prompt::{Digest, Prompt};
use crate::model::script::Script;

/// A model that repeats the replies of a record, each to the prompt that it was recorded for.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use pumphouse::model::{Kind, Model, Prompt, Recorded, Script, Take};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let prompt = || Prompt::new("Be brief.").user("6*7?");
/// let model = Recorded::new([Take::new(prompt().digest(), Script::text("42"))]);
/// let error = model.turn(Prompt::new("Be brief.").user("6*8?")).await.unwrap_err();
/// assert_eq!(error.kind, Kind::OffRecord);
/// assert!(model.turn(prompt()).await.is_ok());
/// # }
/// ```
///
/// Each reply is given once. Replies to the same prompt are given in their order. Different prompts
/// may come in any order, since concurrent threads don't repeat the order of the record.
pub struct Recorded {
    takes: Vec<Take>,
    /// For each reply, whether it was given.
    given: Mutex<Vec<bool>>,
    sleeper: Sleeper,
    window: Option<u32>,
}

/// A recorded reply, with the digest of its prompt.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Take {
    /// The digest of the prompt.
    pub prompt: Digest,
    /// The reply and its end. A reply without pauses is given at once.
    pub reply: Arc<Script>,
}

impl Take {
    /// A recorded reply to the prompt of this digest.
    pub fn new(prompt: Digest, reply: impl Into<Script>) -> Take {
        Take { prompt, reply: Arc::new(reply.into()) }
    }
}

impl Recorded {
    /// A model with these replies, in the order of the record.
    pub fn new(takes: impl IntoIterator<Item = Take>) -> Recorded {
        let takes: Vec<Take> = takes.into_iter().collect();
        let given = Mutex::new(vec![false; takes.len()]);
        Recorded { takes, given, sleeper: Sleeper::default(), window: None }
    }

    /// Sets the window in tokens, as the recorded model had it.
    #[must_use]
    pub fn with_window(self, tokens: u32) -> Recorded {
        Recorded { window: Some(tokens), ..self }
    }

    /// The number of replies that haven't been given yet.
    #[must_use]
    pub fn left(&self) -> usize {
        self.given().iter().filter(|it| !**it).count()
    }

    fn given(&self) -> std::sync::MutexGuard<'_, Vec<bool>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, prompt: &Prompt) -> Result<Script, Error> {
        let digest = prompt.digest();
        let mut given = self.given();
        let mut fitting = self.takes.iter().zip(given.iter_mut());
        if let Some((take, given)) = fitting.find(|(it, given)| it.prompt == digest && !**given) {
            *given = true;
            return Ok(Script::clone(&take.reply));
        }
        drop(fitting);
        let turn = prompt.turn();
        let next = self.takes.iter().zip(given.iter()).find(|(_, given)| !**given);
        let all = self.takes.len();
        Err(match next {
            None => {
                let text = format!("all {all} replies were given, and this is turn {turn}");
                Error::new(Kind::Spent, text)
            }
            Some((next, _)) => {
                let text = format!(
                    "the record has no reply to this prompt, of turn {turn}: its digest is \
                     {digest}, and the next reply was to {}",
                    next.prompt
                );
                Error::new(Kind::OffRecord, text)
            }
        })
    }
}

impl Model for Recorded {
    fn is_repeatable(&self) -> bool {
        true
    }

    fn turn(&self, prompt: Prompt) -> Boxed<'_, Box<dyn Reply>> {
        Box::pin(async move { play(self.take(&prompt)?, self.sleeper.clone()).await })
    }

    fn window(&self) -> Option<u32> {
        self.window
    }

    fn describe(&self) -> String {
        format!("recorded, {} replies", self.takes.len())
    }
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded")
            .field("replies", &self.takes.len())
            .field("left", &self.left())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::piece::{Piece, Stop};

    fn prompt(text: &str) -> Prompt {
        Prompt::new("").user(text)
    }

    fn take(prompt_text: &str, reply: &str) -> Take {
        Take::new(prompt(prompt_text).digest(), reply)
    }

    async fn said(model: &Recorded, text: &str) -> Result<String, Kind> {
        let mut reply = model.turn(prompt(text)).await.map_err(|it| it.kind)?;
        let mut said = String::new();
        while let Some(piece) = reply.next().await.map_err(|it| it.kind)? {
            match piece {
                Piece::Text(text) => said += &text,
                piece => said += &format!("{piece:?}"),
            }
        }
        Ok(said)
    }

    #[tokio::test]
    async fn each_prompt_gets_its_own_reply_once() {
        let model = Recorded::new([take("a", "1"), take("b", "2"), take("a", "3")]);
        assert_eq!(said(&model, "b").await.as_deref(), Ok("2Stop(End)"));
        assert_eq!(said(&model, "a").await.as_deref(), Ok("1Stop(End)"));
        assert_eq!(model.left(), 1);
        assert_eq!(said(&model, "b").await, Err(Kind::OffRecord));
        assert_eq!(said(&model, "a").await.as_deref(), Ok("3Stop(End)"));
        assert_eq!(said(&model, "a").await, Err(Kind::Spent));
        assert_eq!(model.left(), 0);
    }

    #[tokio::test]
    async fn a_reply_ends_as_it_did() {
        let digest = prompt("a").digest();
        let model = Recorded::new([
            Take::new(digest, Script::text("ab").stop(Stop::MaxTokens)),
            Take::new(digest, Script::text("ab").fails(usize::MAX, Kind::Cut)),
        ]);
        assert_eq!(said(&model, "a").await.as_deref(), Ok("abStop(MaxTokens)"));
        assert_eq!(said(&model, "a").await, Err(Kind::Cut));
    }

    #[tokio::test]
    async fn what_isnt_on_record_says_what_was_expected() {
        let model = Recorded::new([take("a", "1")]);
        let error = model.turn(prompt("b")).await.unwrap_err();
        let (asked, next) = (prompt("b").digest(), prompt("a").digest());
        let expected = format!(
            "the record has no reply to this prompt, of turn 1: its digest is {asked}, and the \
             next reply was to {next}"
        );
        assert_eq!(error.to_string(), expected);
        assert!(!error.retry);
    }
}
