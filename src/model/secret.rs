//! What must not be shown.

use std::fmt;
use std::sync::Arc;

/// A key, or another text that must not be shown. `Debug` shows none of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// What is shorter isn't looked for in what others write.
    const BYTES_MIN: usize = 6;

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
        match self.telling() {
            None => text.to_owned(),
            Some(secret) => text.replace(secret, "…"),
        }
    }

    /// How many bytes at a text's end this may begin with.
    pub(super) fn begun_in(&self, text: &str) -> usize {
        let Some(secret) = self.telling() else { return 0 };
        let begun = secret.char_indices().map(|(at, _)| at).rev();
        begun.into_iter().find(|end| text.ends_with(&secret[..*end])).unwrap_or(0)
    }

    /// The text, where finding it tells something: a header's `1` or `true` stands everywhere.
    fn telling(&self) -> Option<&str> {
        Some(self.0.trim()).filter(|it| it.len() >= Secret::BYTES_MIN)
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
        assert_eq!(Secret::new("true").hidden_in("it is true"), "it is true");
        assert_eq!(secret.begun_in("it is sk-12"), 5);
        assert_eq!(secret.begun_in("it is sk-1234"), 0);
    }
}
