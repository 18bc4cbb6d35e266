//! References that lead to nothing, and the messages about them.

use std::fmt;

use pumphouse::schema::nearest;

use super::super::metadata::METADATA;

/// The most bytes of the values that references are replaced by, within one response or the
/// parameters of one call: half of the largest message.
pub const FILLED_BYTES_MAX: usize = 8 << 20;

/// A reference that was not replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unresolved {
    /// The reference as it is written: `${fetch.title}`.
    pub reference: String,
    /// The name in the reference.
    pub name: String,
    /// The first step of the reference's path that doesn't exist. None if nothing has the name.
    pub missing: Option<String>,
    /// The steps that exist in place of the missing one. Empty if there are none, or if nothing has
    /// the name.
    pub steps: Vec<String>,
    /// Whether there is a value that would make the text too large.
    pub is_too_large: bool,
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} stays as it is: {}", self.reference, self.why())
    }
}

impl Unresolved {
    /// Why the reference has no value.
    fn why(&self) -> String {
        let Unresolved { name, missing, .. } = self;
        match missing {
            None if self.is_too_large => {
                format!("the values are more than {FILLED_BYTES_MAX} bytes together with it")
            }
            Some(it) if name == METADATA => format!("your metadata has no {it}"),
            Some(it) => format!("the result of {name} has no {it}"),
            None => format!("nothing is called {name}"),
        }
    }

    /// Returns the message. If nothing has the name, the message also suggests the most similar one
    /// of `names`.
    #[must_use]
    pub fn advised<'a>(&self, names: impl Iterator<Item = &'a str>) -> String {
        let is_unknown = self.missing.is_none() && !self.is_too_large;
        let near = is_unknown.then(|| nearest(&self.name, names)).flatten();
        near.map_or_else(|| self.to_string(), |it| format!("{self}; did you mean {it}?"))
    }

    /// The message for a reference whose name is known and whose path leads to nothing: it lists
    /// the steps that exist.
    #[must_use]
    pub fn lost(&self) -> String {
        let Unresolved { reference, name, missing, steps, .. } = self;
        let why = self.why();
        if self.is_too_large {
            return format!("{reference} isn't filled in: {why}");
        }
        let near = missing.as_deref().and_then(|it| nearest(it, steps.iter().map(String::as_str)));
        let near = near.map(|it| format!("; did you mean {it}?")).unwrap_or_default();
        match steps.len() {
            0 if name == METADATA => format!("{reference} leads to nothing: {why}"),
            0 => format!("{reference} leads to nothing: {why}, nor any other part"),
            count if count <= STEPS_MAX => {
                format!("{reference} leads to nothing: {why}; it has {}{near}", steps.join(", "))
            }
            count => {
                let (steps, more) = (steps[..STEPS_MAX].join(", "), count - STEPS_MAX);
                format!("{reference} leads to nothing: {why}; it has {steps} and {more} more{near}")
            }
        }
    }
}

/// The maximum number of steps that a message about a missing one lists.
const STEPS_MAX: usize = 20;
