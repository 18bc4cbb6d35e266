//! What must not be shown.

use std::fmt;
use std::sync::Arc;

/// A key, or another text that must not be shown. `Debug` shows none of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Keeps a text to itself.
    pub fn new(text: impl Into<Arc<str>>) -> Secret {
        Secret(text.into())
    }

    /// The text, for the one place that sends it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// A text that somebody else wrote, without this in it.
    pub(super) fn hidden_in(&self, text: &str) -> String {
        match self.0.trim() {
            "" => text.to_owned(),
            secret => text.replace(secret, "…"),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_isnt_shown() {
        let secret = Secret::new("sk-1234");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(secret.hidden_in("no sk-1234, nor (sk-1234)"), "no …, nor (…)");
        assert_eq!(Secret::new(" ").hidden_in("a b"), "a b");
    }
}
