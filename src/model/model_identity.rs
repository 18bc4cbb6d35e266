//! The identity of a model, part by part.

use std::borrow::Cow;
use std::sync::Arc;

/// The identity of a model, part by part, as `pumphouse models` lists it.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use pumphouse::model::{Model, Price, PriceSource, Remote, Wire};
///
/// let settings = Remote::at(Wire::Ollama, Wire::Ollama.home(), "gemma");
/// let model = settings.price(Price::new(0.0, 0.0)).build()?;
/// let it = model.details();
/// assert_eq!((&*it.wire, &*it.model), ("ollama", "gemma"));
/// assert_eq!(it.host.as_deref(), Some("127.0.0.1:11434"));
/// assert_eq!(it.price_source, Some(PriceSource::Setting));
/// # Ok::<(), pumphouse::model::remote::NoModel>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Details {
    /// The name of the [wire](super::Wire), or of a [provider](super::Provider) without a wire.
    /// It is `scripted` for scripts, `router` for routers, and `program` for all other models.
    pub wire: Cow<'static, str>,
    /// The model's name at its server, the name of its script, or else its description.
    pub model: String,
    /// The server's host, with its port unless that is the scheme's default port.
    pub host: Option<String>,
    /// The source of the price. None if the model has no price.
    pub price_source: Option<PriceSource>,
}

impl Details {
    /// A model without a server and a price.
    #[must_use]
    pub fn new(wire: impl Into<Cow<'static, str>>, model: impl Into<String>) -> Details {
        Details { wire: wire.into(), model: model.into(), host: None, price_source: None }
    }
}

/// The source of a price.
#[derive(Clone, Debug, PartialEq, Eq)]
// Exhaustive, since who shows a price must tell its source.
pub enum PriceSource {
    /// A setting of the model.
    Setting,
    /// A [table](super::Prices), by its description in a few words.
    Table(Arc<str>),
}
