//! Language models: prompts, replies in pieces while they are written, and the models that reply.
//!
//! This module knows no threads, no listeners and no engine: a prompt goes in, pieces come out.
//!
//! ```
//! # extern crate pumphouse_model as pumphouse;
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

extern crate self as pumphouse;

// The modules name each other, and those of the crates below, by their paths in `pumphouse`.
#[doc(hidden)]
pub use crate as model;
#[doc(hidden)]
pub use pumphouse_ground::secret;
use pumphouse_ground::{bounded_yaml, clock, limits, regular_file, schema, xml};
use pumphouse_tls as tls_trust;

mod error;
mod attachments;
mod retry_pause;
mod usage;
mod price;
mod wire_name;
mod prices;
mod piece;
mod prompt;
mod model_identity;
mod load;
mod interface;
mod script;
mod play;
mod scripted;
mod recorded;
pub mod estimate;
mod models;
mod hide_secrets;
mod reply_memory;
mod provider_events;
mod rate_limit;
mod router;
pub mod sse;
mod too_long;
mod error_answer;
pub(crate) mod provider_file;
pub mod wire;
pub(crate) mod provider;
pub mod remote;

pub use attachments::{Attached, is_media_range, media_type_of, takes};
pub use error::{Error, Kind, Wait};
pub use interface::{Boxed, Model, Reply};
pub use load::{Asking, Load};
pub use model_identity::{Details, PriceSource};
pub use models::{Models, UnknownModel};
pub use piece::{Answering, Call, Piece, Signed, Stop};
pub use price::Price;
pub use prices::{NoPrices, PriceEntry, Prices};
pub use prompt::{Digest, Format, NoDigest, Prompt, PromptMessage, Role, Tool};
#[doc(hidden)]
pub use provider::of_wire;
pub use provider::{NoProvider, Provider, Unmatched};
#[doc(hidden)]
pub use provider_events::{DroppedEvents, EventQueue};
pub use provider_events::{ProviderEvent, ProviderEvents};
#[doc(hidden)]
pub use provider_file::keys::ProviderFile;
pub use rate_limit::Bounded;
pub use recorded::{Recorded, Take};
pub use remote::Remote;
pub use router::{Policy, Router};
pub use script::Script;
pub use scripted::{NoScript, Repeat, Scripted};
pub use usage::Usage;
pub use wire::{Effort, NoEffort};
pub use wire_name::{NoWire, Wire};
