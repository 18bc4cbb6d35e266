//! Which model one is, part by part.

use std::borrow::Cow;
use std::sync::Arc;

/// Which model one is, part by part: what `pumphouse models` lists of it.
///
/// ```
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
    /// How it is spoken to: the name of a [wire](super::Wire) or of a
    /// [provider](super::Provider) that has none, `scripted`, or `program` where only the program
    /// knows.
    pub wire: Cow<'static, str>,
    /// What its server calls it, or which script it is.
    pub model: String,
    /// The host of its server, with the port where that isn't the usual one.
    pub host: Option<String>,
    /// Where its price is from; none where it has no price.
    pub price_source: Option<PriceSource>,
}

impl Details {
    /// A model without a server and a price.
    #[must_use]
    pub fn new(wire: impl Into<Cow<'static, str>>, model: impl Into<String>) -> Details {
        Details { wire: wire.into(), model: model.into(), host: None, price_source: None }
    }
}

/// Where a price is from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PriceSource {
    /// It is a setting of the model.
    Setting,
    /// It is from a [table](super::Prices), which is described in a few words.
    Table(Arc<str>),
}
