//! Secrets, and how they are hidden in texts.

use std::fmt;
use std::sync::Arc;

/// A key, or another text that must not be shown. `Debug` shows none of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// The least bytes of a secret that is searched for in texts. A shorter one would be found in
    /// ordinary words.
    const BYTES_MIN: usize = 6;

    /// Makes a secret of a text.
    pub fn new(text: impl Into<Arc<str>>) -> Secret {
        Secret(text.into())
    }

    /// The credential in a header's value, without the scheme before it, such as `Bearer`. None if
    /// the value has no scheme. A server may quote the credential alone.
    pub(super) fn behind_scheme(&self) -> Option<Secret> {
        let (_, credential) = self.0.trim().split_once(' ')?;
        Some(Secret::new(credential.trim()))
    }

    /// The text, for the places that send it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns a text in which each occurrence of the secret is replaced by `…`, even if some of
    /// its characters are escaped for JSON or XML. A secret of less than 6 bytes isn't replaced.
    #[must_use]
    pub fn hidden_in(&self, text: &str) -> String {
        let Some(secret) = self.telling() else { return text.to_owned() };
        let mut shown = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            if let SecretMatch::Whole(bytes) = match_secret(secret, rest) {
                shown.push('…');
                rest = &rest[bytes..];
            } else {
                shown.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
        shown
    }

    /// How many bytes at a text's end may be the beginning of the secret.
    pub(super) fn begun_in(&self, text: &str) -> usize {
        let Some(secret) = self.telling() else { return 0 };
        let longest = secret.chars().count() * SPELLING_BYTES_MAX;
        let near = text.char_indices().map(|(at, _)| &text[at..]);
        let mut near = near.filter(|it| it.len() <= longest);
        near.find(|it| match_secret(secret, it) == SecretMatch::Begun).map_or(0, str::len)
    }

    /// The text to search for. None if it is too short: a header's `1` or `true` is in many texts.
    fn telling(&self) -> Option<&str> {
        Some(self.0.trim()).filter(|it| it.len() >= Secret::BYTES_MIN)
    }
}

/// Bytes of the longest spelling of a character that is searched for: `&#x10ffff;`.
const SPELLING_BYTES_MAX: usize = 10;

/// How much of a secret is at the beginning of a text.
#[derive(Debug, PartialEq, Eq)]
enum SecretMatch {
    /// The whole secret, in this number of bytes.
    Whole(usize),
    /// The text ends within the secret.
    Begun,
    Nothing,
}

fn match_secret(secret: &str, text: &str) -> SecretMatch {
    if text.starts_with(secret) {
        return SecretMatch::Whole(secret.len());
    }
    let mut rest = text;
    for it in secret.chars() {
        match spelled(it, rest) {
            SecretMatch::Whole(bytes) => rest = &rest[bytes..],
            other => return other,
        }
    }
    SecretMatch::Whole(text.len() - rest.len())
}

/// Looks for a character at the beginning of a text: as it is, or escaped by JSON or XML.
fn spelled(it: char, text: &str) -> SecretMatch {
    if text.starts_with(it) && !matches!(it, '\\' | '&') {
        return SecretMatch::Whole(it.len_utf8());
    }
    let Some(first) = text.chars().next() else { return SecretMatch::Begun };
    let escaped = match first {
        '\\' => of_json(&text[1..]),
        '&' => of_xml(&text[1..]),
        _ => return SecretMatch::Nothing,
    };
    match escaped {
        Some((said, bytes)) if said == it => SecretMatch::Whole(1 + bytes),
        None if text.len() < SPELLING_BYTES_MAX && !text[1..].contains(ends_an_escape) => {
            SecretMatch::Begun
        }
        _ if first == it => SecretMatch::Whole(1),
        _ => SecretMatch::Nothing,
    }
}

/// Whether an escape can't continue with this character.
fn ends_an_escape(it: char) -> bool {
    !it.is_ascii_alphanumeric() && it != '#'
}

/// The character that an escape of JSON stands for, and the number of the escape's bytes after the
/// backslash. A letter other than `u` counts as itself, even in `\n`.
fn of_json(text: &str) -> Option<(char, usize)> {
    let first = text.chars().next()?;
    if first != 'u' {
        return Some((first, first.len_utf8()));
    }
    let code = u32::from_str_radix(text.get(1..5)?, 16).ok()?;
    Some((char::from_u32(code)?, 5))
}

/// The character that an escape of XML stands for, and the number of the escape's bytes after the
/// `&`.
fn of_xml(text: &str) -> Option<(char, usize)> {
    let (name, _) = text.split_at_checked(text.find(';')?)?;
    let said = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => char::from_u32(match name.strip_prefix('#')?.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => name[1..].parse().ok()?,
        })?,
    };
    Some((said, name.len() + 1))
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

    #[test]
    fn the_credential_of_a_header_is_a_secret_without_its_scheme() {
        let bare = |header: &str| Secret::new(header).behind_scheme();
        assert_eq!(bare("Bearer sk-1234"), Some(Secret::new("sk-1234")));
        assert_eq!(bare("sk-1234"), None);
    }

    #[test]
    fn a_secret_isnt_shown_where_json_or_xml_escapes_it() {
        let secret = Secret::new("sk/12&\\\"4");
        for spelled in [
            r#"sk/12&\"4"#,
            r#"sk\/12&\\\"4"#,
            r#"\u0073\u006B\u002f12\u0026\u005C\u00224"#,
            "&#115;k/&#x31;2&amp;\\&quot;4",
        ] {
            assert_eq!(secret.hidden_in(&format!("({spelled})")), "(…)");
            for (end, _) in spelled.char_indices().skip(1) {
                let begun = &spelled[..end];
                assert_eq!(secret.begun_in(&format!("it: {begun}")), end, "{begun}");
            }
        }
        for other in ["sk/12&", r"\u007", "a & b", "&#;", "\\", "\\u00é", "&é;"] {
            assert_eq!(secret.hidden_in(other), other);
        }
        assert_eq!(secret.begun_in("a & b"), 0);
    }
}
