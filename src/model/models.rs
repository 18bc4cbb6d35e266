//! Models by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::model::interface::Model;
use crate::schema::nearest;

/// Maps names to models. The `model` keys of a manifest refer to these names.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use std::sync::Arc;
/// use pumphouse::model::{Models, Scripted};
///
/// let mut models = Models::default();
/// models.insert("fixed", Arc::new(Scripted::replies(["<response>42</response>"])));
/// assert!(models.get("fixed").is_ok());
/// let error = models.get("fxied").unwrap_err().to_string();
/// assert_eq!(error, "there is no model `fxied`; did you mean `fixed`?");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Models(BTreeMap<String, Arc<dyn Model>>);

impl Models {
    /// Adds a model. Returns the model that had this name before, if there was one.
    pub fn insert(
        &mut self,
        name: impl Into<String>,
        model: Arc<dyn Model>,
    ) -> Option<Arc<dyn Model>> {
        self.0.insert(name.into(), model)
    }

    /// The model of a name.
    ///
    /// # Errors
    /// If no model has this name. The error lists the names that exist.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Model>, UnknownModel> {
        let unknown = || UnknownModel { name: name.to_owned(), there: self.names().collect() };
        self.0.get(name).cloned().ok_or_else(unknown)
    }

    /// Every name.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.0.keys().cloned()
    }

    /// Every model with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<dyn Model>)> {
        self.0.iter().map(|(name, model)| (name.as_str(), model))
    }
}

/// The error of a name that no model has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownModel {
    /// The unknown name.
    pub name: String,
    /// The names that exist.
    pub there: Vec<String>,
}

impl UnknownModel {
    /// There is no model of this name, but those there.
    #[must_use]
    pub fn new(name: impl Into<String>, there: Vec<String>) -> UnknownModel {
        UnknownModel { name: name.into(), there }
    }
}

impl fmt::Display for UnknownModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownModel { name, there } = self;
        write!(f, "there is no model `{name}`; ")?;
        match nearest(name, there.iter().map(String::as_str)) {
            Some(near) => write!(f, "did you mean `{near}`?"),
            None if there.is_empty() => f.write_str("name one under `models:`"),
            None => write!(f, "there is {}", there.join(", ")),
        }
    }
}

impl std::error::Error for UnknownModel {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::scripted::Scripted;

    #[test]
    fn who_is_unknown_is_told_who_there_is() {
        let check = |there: &[&str], expected: &str| {
            let mut models = Models::default();
            for name in there {
                models.insert(*name, Arc::new(Scripted::replies([""])));
            }
            assert_eq!(models.get("locl").unwrap_err().to_string(), expected);
        };
        check(&[], "there is no model `locl`; name one under `models:`");
        check(&["large", "local"], "there is no model `locl`; did you mean `local`?");
        check(&["a", "b"], "there is no model `locl`; there is a, b");
    }
}
