//! The traits that every model and every reply implements.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use crate::model::error::Error;
use crate::model::load::{Asking, Load};
use crate::model::model_identity::Details;
use crate::model::piece::Piece;
use crate::model::price::Price;
use crate::model::prompt::{Prompt, Tool};
use crate::secret::Secret;

/// A future of a model's answer, or of its error.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// A language model. The tests in `tests/it/model/conformance.rs` check what implementations share.
pub trait Model: Debug + Send + Sync {
    /// Starts a turn. The future completes when the first piece of the reply has come. Until then,
    /// a model may retry by itself. If it did, the reply begins with a [`Piece::Tried`] for each
    /// failed attempt. Dropping the future ends the request.
    ///
    /// # Errors
    /// The error of one attempt, usually the last. [`Error::tried`] has the errors of the others.
    fn turn(&self, prompt: Prompt) -> Boxed<'_, Box<dyn Reply>>;

    /// Starts a turn with a single attempt, even if [`turn`](Model::turn) would retry. Routers use
    /// this method, as they have other models to ask.
    ///
    /// # Errors
    /// The error of the attempt.
    fn turn_once(&self, prompt: Prompt) -> Boxed<'_, Box<dyn Reply>> {
        self.turn(prompt)
    }

    /// The most tokens that prompt and reply may have together, if known.
    fn window(&self) -> Option<u32> {
        None
    }

    /// How many tokens a text has, if the model has a tokenizer. See
    /// [`prompt_tokens`](crate::model::estimate) for an estimate without a tokenizer.
    fn tokens(&self, text: &str) -> Option<u64> {
        let _ = text;
        None
    }

    /// The most tokens of a reply if its prompt sets no maximum. None if unknown.
    fn max_tokens(&self) -> Option<u32> {
        None
    }

    /// The media types of attachments that the model takes, such as `image/*` and
    /// `application/pdf`. See [`takes`](crate::model::takes).
    fn attachments(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether the model is held to the [format](Prompt::format) of its prompt. For other models,
    /// agents describe the format in the prompt's text.
    fn is_structured(&self) -> bool {
        false
    }

    /// The tools that the model's provider can't take, each with the reason, which completes a
    /// sentence about the tool. Requests leave them out.
    fn left_out(&self, tools: &[Tool]) -> Vec<(String, String)> {
        let _ = tools;
        Vec::new()
    }

    /// The price of the model's tokens, if known.
    fn price(&self) -> Option<Price> {
        None
    }

    /// Why a temperature isn't sent to the model. None if it is sent.
    fn refuses_temperature(&self) -> Option<&'static str> {
        None
    }

    /// Whether a turn could begin now. A model without limits always has room.
    fn has_room(&self) -> bool {
        true
    }

    /// The load of a model with limits on requests or tokens. None for other models.
    fn load(&self) -> Option<Load> {
        None
    }

    /// How often each model of a [`Router`](crate::model::Router) was asked. Empty for other
    /// models.
    fn asking(&self) -> Vec<Asking> {
        Vec::new()
    }

    /// Whether the model always answers the same prompt with the same words. This decides how an
    /// agent ends a turn in which the pump stopped. If true, the agent asks the model again. If
    /// false, the turn ends with the recorded part of the reply.
    fn is_repeatable(&self) -> bool {
        false
    }

    /// The secrets that the model sends: its keys, and headers that are secret. They are hidden in
    /// all that the organism says.
    fn secrets(&self) -> Vec<Secret> {
        Vec::new()
    }

    /// Describes the model in a few words, for people and for the log, without secrets.
    fn describe(&self) -> String;

    /// Describes the model part by part, without secrets.
    fn details(&self) -> Details {
        Details::new("program", self.describe())
    }
}

/// A turn's reply while it is written. A slow reader slows the server down. Dropping the reply ends
/// the request.
pub trait Reply: Debug + Send {
    /// Returns the next piece. The last piece is a [`Piece::Stop`]. After the last piece, and after
    /// an error, returns None.
    ///
    /// Dropping the future before it completes loses no piece.
    ///
    /// # Errors
    /// The error that ended the reply early.
    fn next(&mut self) -> Boxed<'_, Option<Piece>>;
}
