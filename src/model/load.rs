//! How busy a model is, and how often the models of a router were asked.

/// The load of a model with limits.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use std::sync::Arc;
/// use pumphouse::model::{Bounded, Model, Scripted};
///
/// let model = Bounded::new("fixed", Arc::new(Scripted::replies(["42"]))).at_once(8);
/// let load = model.load().unwrap();
/// assert_eq!((load.at_once, load.under_way, load.waiting, load.held_up), (Some(8), 0, 0, 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load {
    /// The most replies that may be under way at once, if there is such a limit.
    pub at_once: Option<u64>,
    /// Replies under way.
    pub under_way: u64,
    /// Turns that wait until they may ask the model.
    pub waiting: u64,
    /// Turns that have had to wait since the model was made.
    pub held_up: u64,
}

/// How often a router asked one of its models.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Asking {
    /// The model's name in the router.
    pub name: String,
    /// Requests whose reply began.
    pub answered: u64,
    /// Requests that failed before their reply began, and replies that failed halfway.
    pub failed: u64,
    /// Turns that another model answered after this one had failed.
    pub failed_over: u64,
}
