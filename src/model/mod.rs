//! Minds: what is asked of a model, what it answers while it writes, and who answers.
//!
//! It knows no threads, no listeners and no engine: a prompt goes in, pieces come out.
//!
//! ```
//! use pumphouse::model::{Model, Piece, Prompt, Scripted};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Scripted::replies(["<response>Hello.</response>"]);
//! let prompt = Prompt::new("You greet people.").user("Good morning!");
//! let mut reply = model.turn(prompt).await?;
//! let mut text = String::new();
//! while let Some(piece) = reply.next().await? {
//!     if let Piece::Text(more) = piece {
//!         text += &more;
//!     }
//! }
//! assert_eq!(text, "<response>Hello.</response>");
//! # Ok(()) }
//! ```
//!
//! `docs/models.md` is the manual.

mod attached;
mod bounded;
mod details;
mod error;
pub mod estimate;
mod models;
mod piece;
mod play;
mod price;
mod prices;
mod prompt;
pub(crate) mod provider;
mod provider_events;
mod recorded;
pub mod remote;
mod retry;
mod router;
mod script;
mod scripted;
mod secret;
pub mod sse;
mod under_way;
mod veil;
pub(crate) mod wire;

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

pub use attached::{Attached, is_media_range, media_type_of, takes};
pub use bounded::{Bounded, Load};
pub use details::{Details, PriceSource};
pub use error::{Error, Kind, Wait};
pub use models::{Models, UnknownModel};
pub use piece::{Answering, Call, Piece, Signed, Stop, Usage};
pub use price::Price;
pub use prices::{NoPrices, PriceEntry, Prices};
pub use prompt::{Digest, Format, NoDigest, Prompt, Role, Said, Tool};
pub use provider::{NoProvider, Provider, Unmatched};
pub(crate) use provider::{ProviderFile, of_wire};
pub(crate) use provider_events::{DroppedEvents, EventQueue};
pub use provider_events::{ProviderEvent, ProviderEvents};
pub use recorded::{Recorded, Take};
pub use remote::Remote;
pub use router::{Asking, Policy, Router};
pub use script::Script;
pub use scripted::{NoScript, Repeat, Scripted};
pub use secret::Secret;
pub use wire::{Effort, NoEffort, NoWire, Wire};

/// What a model answers: later, or why not.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Asks a language model: starts one turn. Every implementation passes the suite of
/// `tests/it/model/conformance.rs`.
pub trait Model: Debug + Send + Sync {
    /// Asks, and is done when the first piece of the reply is there. Until then nothing was heard,
    /// so that a model may try again by itself; what it tried are the reply's first pieces.
    /// Dropping the future ends the request.
    fn turn(&self, prompt: Prompt) -> Boxed<'_, Box<dyn Reply>>;

    /// Asks once, also where [`turn`](Model::turn) tries again by itself: for whoever has another
    /// model to ask.
    fn turn_once(&self, prompt: Prompt) -> Boxed<'_, Box<dyn Reply>> {
        self.turn(prompt)
    }

    /// How many tokens prompt and reply may have together, where that is known.
    fn window(&self) -> Option<u32> {
        None
    }

    /// How many tokens a text is, where the model's tokenizer is at hand; see
    /// [`prompt_tokens`](estimate) for an estimate where it isn't.
    fn tokens(&self, text: &str) -> Option<u64> {
        let _ = text;
        None
    }

    /// How many tokens a reply has at the most where its prompt doesn't say, where that is known.
    fn max_tokens(&self) -> Option<u32> {
        None
    }

    /// Which media types of attachments it takes, such as `image/*` and `application/pdf`; see
    /// [`takes`].
    fn attachments(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether it is held to the [form of an answer](Prompt::format) that its prompt asks for. One
    /// that isn't is asked for its answer in words.
    fn is_structured(&self) -> bool {
        false
    }

    /// What its tokens cost, where that is known.
    fn price(&self) -> Option<Price> {
        None
    }

    /// Whether a turn could begin now; one without limits always has room.
    fn has_room(&self) -> bool {
        true
    }

    /// How much it is asked, where it has limits for that.
    fn load(&self) -> Option<Load> {
        None
    }

    /// How often each of its models was asked, where it is a [`Router`].
    fn asking(&self) -> Vec<Asking> {
        Vec::new()
    }

    /// Whether it answers the same prompt with the same words, always. A turn that a stop cut off
    /// is taken up again only then; else the next turn is told what there was.
    fn is_repeatable(&self) -> bool {
        false
    }

    /// Which model it is, in a few words, for people and for the log. It holds no secret.
    fn describe(&self) -> String;

    /// Which model it is, part by part. It holds no secret either.
    fn details(&self) -> Details {
        Details::new("program", self.describe())
    }
}

/// A turn's reply while it is written. Whoever reads slowly slows it down; dropping it ends the
/// request.
pub trait Reply: Debug + Send {
    /// The next piece; none after the last one, which is a [`Piece::Stop`], and after an error.
    ///
    /// The future may be dropped and asked for again: no piece is lost.
    fn next(&mut self) -> Boxed<'_, Option<Piece>>;
}
