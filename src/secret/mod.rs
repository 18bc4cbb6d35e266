//! Secrets, and how they are hidden in texts.
//!
//! ```
//! # extern crate pumphouse_ground as pumphouse;
//! use pumphouse::secret::{Secret, Secrets};
//!
//! let secrets = Secrets::new([Secret::new("sk-0123456789abcd")]);
//! assert_eq!(secrets.hide("it was sk-0123456789abcd"), "it was …");
//! assert_eq!(secrets.hide("half of it was sk-01234, and"), "half of it was …, and");
//! assert_eq!(secrets.hide("in base64: c2stMDEyMzQ1Njc4OWFiY2Q="), "in base64: …Q=");
//! assert_eq!(secrets.hide("sk-012 is no half"), "sk-012 is no half");
//! ```

mod pattern;
mod spelling;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use percent_encoding::percent_decode_str;

use crate::schema::base64;
use pattern::{Pattern, patterns};
use spelling::{LEVELS, decoded, is_escape};

/// The least bytes of a secret that is hidden in texts. A shorter one would be found in ordinary
/// words.
pub const BYTES_MIN: usize = 8;

/// The least bytes of a secret of which each half is hidden, too.
const HALVES_BYTES_MIN: usize = 16;

/// What stands in a text in place of a secret.
const HIDDEN: &str = "…";

fn plain(_: &str) -> String {
    HIDDEN.to_owned()
}

/// A key, or another text that must not be shown. `Debug` shows none of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Makes a secret of a text. White space around it isn't a part of the secret.
    pub fn new(text: impl AsRef<str>) -> Secret {
        Secret(text.as_ref().trim().into())
    }

    /// As [`new`](Secret::new), but refuses a text that is too short to be hidden.
    ///
    /// # Errors
    /// If the text has fewer than [`BYTES_MIN`] bytes. The error shows none of it.
    pub fn checked(text: impl AsRef<str>) -> Result<Secret, TooShort> {
        let secret = Secret::new(text);
        secret.long_enough()?;
        Ok(secret)
    }

    /// Checks that the secret can be hidden in texts.
    ///
    /// # Errors
    /// If it has fewer than [`BYTES_MIN`] bytes.
    pub fn long_enough(&self) -> Result<(), TooShort> {
        match self.0.len() {
            bytes if bytes < BYTES_MIN => Err(TooShort { bytes }),
            _ => Ok(()),
        }
    }

    /// The secrets in a header's value: the value itself, what stands behind a scheme such as
    /// `Bearer`, and the password in a credential of `Basic`. A server may quote each of them
    /// alone.
    #[must_use]
    pub fn parts(&self) -> Vec<Secret> {
        let is_word = |it: &str| it.bytes().all(|it| it.is_ascii_alphabetic() || it == b'-');
        let split = self.0.split_once(' ').filter(|(scheme, _)| is_word(scheme));
        let Some((scheme, credential)) = split else { return vec![self.clone()] };
        let basic = scheme.eq_ignore_ascii_case("basic").then(|| base64(credential.trim()));
        let pair = basic.flatten().and_then(|it| String::from_utf8(it.to_vec()).ok());
        let password = pair.as_deref().and_then(|it| it.split_once(':')).map(|(_, it)| it);
        let all = [Some(credential), password].into_iter().flatten().map(Secret::new);
        [self.clone()].into_iter().chain(all).collect()
    }

    /// Whether the secret is an ordinary short word, such as `postgres` or `us-east`, or a date. To
    /// hide it is to hide this word in all texts.
    #[must_use]
    pub fn is_ordinary(&self) -> bool {
        if !(BYTES_MIN..HALVES_BYTES_MIN).contains(&self.0.len()) {
            return false;
        }
        let (first, rest) = self.0.split_at(self.0.ceil_char_boundary(1));
        let is_all = |text: &str, is_one: fn(&char) -> bool| {
            text.chars().all(|it| is_one(&it) || matches!(it, '-' | '_' | '.' | ' '))
        };
        let is_word = is_all(first, char::is_ascii_alphabetic)
            && is_all(rest, char::is_ascii_lowercase)
            || is_all(&self.0, char::is_ascii_uppercase);
        let mut digits = self.0.split(['-', '/', '.']);
        let is_number = |it: &str, lengths: &[usize]| {
            lengths.contains(&it.len()) && it.bytes().all(|it| it.is_ascii_digit())
        };
        let is_date = digits.clone().count() == 3 && digits.all(|it| is_number(it, &[1, 2, 4]));
        is_word || is_date || is_number(&self.0, &[BYTES_MIN])
    }

    /// The text, for the places that send it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The error for a secret that is too short to be hidden in texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TooShort {
    /// How many bytes it has.
    pub bytes: usize,
}

impl fmt::Display for TooShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooShort { bytes } = self;
        write!(
            f,
            "a secret of {bytes} bytes is too short to be hidden in what others say; take one of \
             {BYTES_MIN} bytes or more, better of 16"
        )
    }
}

impl std::error::Error for TooShort {}

/// Whether the name of a variable or of a header suggests that its value is a secret, such as
/// `API_KEY` or `X-Token`.
///
/// ```
/// # extern crate pumphouse_ground as pumphouse;
/// use pumphouse::secret::is_secret_name;
///
/// assert!(["API_KEY", "X-Token", "apikey", "Authorization"].into_iter().all(is_secret_name));
/// assert!(!["PATH", "PWD", "GIT_AUTHOR_NAME", "Accept"].into_iter().any(is_secret_name));
/// ```
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let ends = ["key", "token", "secret", "password", "passwd", "credential", "credentials"];
    let whole = ["auth", "authorization", "bearer", "cookie", "pat", "pwd"];
    let name = name.to_ascii_lowercase();
    let words = name.split(|it: char| !it.is_ascii_alphanumeric());
    let mut words = words.filter(|it| !it.is_empty());
    let is_one = |word: &str| ends.iter().any(|it| word.ends_with(it)) || whole.contains(&word);
    // A shell keeps its folder in `PWD`.
    name != "pwd" && words.any(|word| is_one(word) && (word != "auth" || name.ends_with("auth")))
}

/// The secrets among the variables that a program is given: those whose names
/// [suggest](is_secret_name) one. An empty value is no secret.
///
/// # Errors
/// If one is too short to be hidden. The error names its variable.
pub fn of_variables(all: &BTreeMap<String, String>) -> Result<Vec<Secret>, String> {
    let all = all.iter().filter(|(name, value)| is_secret_name(name) && !value.trim().is_empty());
    let checked =
        all.map(|(name, value)| Secret::checked(value).map_err(|it| format!("env: {name}: {it}")));
    checked.collect()
}

/// The secrets among a program's arguments: the values of options whose names
/// [suggest](is_secret_name) one, as in `--token 1234` and `--api-key=1234`.
#[must_use]
pub fn of_arguments(all: &[String]) -> Vec<Secret> {
    let mut found = Vec::new();
    let mut is_next = false;
    for argument in all {
        let option = argument.starts_with('-').then(|| argument.split_once('='));
        match option {
            Some(Some((name, value))) if is_secret_name(name) => found.push(Secret::new(value)),
            None if is_next => found.push(Secret::new(argument)),
            _ => {}
        }
        is_next = option == Some(None) && is_secret_name(argument);
    }
    found
}

/// The secrets of a URL: its password, and the parameters whose names [suggest](is_secret_name)
/// one. There are none in a text without `://`.
///
/// # Errors
/// If one of them is too short to be hidden.
pub fn of_url(url: &str) -> Result<Vec<Secret>, TooShort> {
    let Some((_, rest)) = url.split_once("://") else { return Ok(Vec::new()) };
    let rest = rest.split('#').next().unwrap_or(rest);
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let host = place.split(['/', '\\']).next().unwrap_or(place);
    let password = host.rsplit_once('@').and_then(|(user, _)| user.split_once(':'));
    let password = password.map(|(_, it)| percent_decode_str(it).decode_utf8_lossy().into_owned());
    let named = form_urlencoded::parse(query.as_bytes());
    let named = named.filter(|(name, _)| is_secret_name(name)).map(|(_, it)| it.into_owned());
    let all = password.into_iter().chain(named).filter(|it| !it.trim().is_empty());
    all.map(Secret::checked).collect()
}

/// Several secrets, which are hidden in texts together. Cloning only raises a reference count.
///
/// A secret of 8 bytes or more is hidden whole, and one of 16 bytes or more also if only its first
/// or its second half is there, with as much of the rest as stands behind the half. All of it is
/// found as it is, in letters of either case, escaped for JSON, XML or HTML, percent-encoded, and
/// in base64, whatever stands before it in the encoded bytes and wherever its lines are broken.
/// Escapes may be escaped again, as in JSON within JSON. Nothing else of a text is changed, and a
/// text without a secret isn't copied.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Patterns>);

#[derive(Default)]
struct Patterns {
    all: Vec<Pattern>,
    /// For each byte, the patterns that a text with this byte may begin with, by their places in
    /// `all`. Empty if there are no patterns.
    by_first: Vec<Vec<usize>>,
    /// For each byte, whether a secret may begin with it, as it is or in an escape.
    begins: Vec<bool>,
}

/// What is at the beginning of a text.
enum Found {
    /// A secret, in this number of bytes.
    Secret(usize),
    /// The text ends before it shows whether it is a secret.
    Open,
    Nothing,
}

impl Secrets {
    /// Collects secrets. Those of fewer than [`BYTES_MIN`] bytes are left out.
    pub fn new(all: impl IntoIterator<Item = Secret>) -> Secrets {
        let mut all: Vec<Pattern> = all.into_iter().flat_map(|it| patterns(&it.0)).collect();
        all.sort();
        all.dedup();
        let mut by_first = vec![Vec::new(); 256];
        for (at, pattern) in all.iter().enumerate() {
            for first in pattern.first_bytes() {
                by_first[usize::from(first)].push(at);
            }
        }
        let begins = |byte: u8| is_escape(byte) || !by_first[usize::from(byte)].is_empty();
        let begins = (0..=u8::MAX).map(begins).collect();
        Secrets(Arc::new(Patterns { all, by_first, begins }))
    }

    /// Whether there is none that could be hidden.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.all.is_empty()
    }

    /// Replaces each secret in a text by `…`.
    #[must_use]
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.replaced(text, true, plain).0
    }

    /// As [`hide`](Secrets::hide), for a text that needn't be copied.
    #[must_use]
    pub fn hide_in(&self, text: String) -> String {
        match self.hide(&text) {
            Cow::Owned(shown) => shown,
            Cow::Borrowed(_) => text,
        }
    }

    /// As [`hide`](Secrets::hide), with another text in place of each secret.
    pub fn hide_by<'t>(&self, text: &'t str, by: fn(&str) -> String) -> Cow<'t, str> {
        self.replaced(text, true, by).0
    }

    /// As [`hide`](Secrets::hide), for a text whose end was cut off: what may be the beginning of a
    /// secret at its end is left out.
    #[must_use]
    pub fn hide_cut<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.replaced(text, false, plain).0
    }

    /// As [`hide`](Secrets::hide), for a text that goes on. Returns what can be shown already, and
    /// the end of the text that may be the beginning of a secret.
    pub fn hide_begun<'t>(&self, text: &'t str) -> (Cow<'t, str>, &'t str) {
        let (shown, open) = self.replaced(text, false, plain);
        let bytes_max = self.0.all.iter().map(Pattern::bytes_max).max().unwrap_or_default();
        debug_assert!(open.len() <= bytes_max, "a secret may begin so long before the end");
        (shown, open)
    }

    /// Whether a text has a secret.
    #[must_use]
    pub fn are_in(&self, text: &str) -> bool {
        matches!(self.hide(text), Cow::Owned(_))
    }

    fn replaced<'t>(
        &self,
        text: &'t str,
        is_whole: bool,
        by: fn(&str) -> String,
    ) -> (Cow<'t, str>, &'t str) {
        if self.is_empty() {
            return (Cow::Borrowed(text), "");
        }
        let begins = |it: &u8| self.0.begins[usize::from(*it)];
        let (mut shown, mut done, mut at) = (String::new(), 0, 0);
        while let Some(near) = text.as_bytes()[at..].iter().position(begins) {
            at += near;
            match self.found(&text[at..], is_whole) {
                Found::Secret(bytes) => {
                    shown += &text[done..at];
                    shown += &by(&text[at..at + bytes]);
                    at += bytes;
                    done = at;
                }
                Found::Open => {
                    let last = &text[done..at];
                    return (joined(shown, last, done > 0), &text[at..]);
                }
                Found::Nothing => at += 1,
            }
        }
        (joined(shown, &text[done..], done > 0), "")
    }

    /// Looks for a secret at the beginning of a text. Its longest spelling counts.
    fn found(&self, text: &str, is_whole: bool) -> Found {
        let first = text.as_bytes()[0];
        let mut longest = 0;
        let mut looked_for = [Some(first), None, None, None];
        for level in 1..=LEVELS {
            let Some(it) = decoded(text, level).filter(|_| is_escape(first)) else { break };
            if it.is_open && !is_whole {
                return Found::Open;
            }
            let byte = it.char.encode_utf8(&mut [0; 4]).as_bytes()[0];
            looked_for[level] = Some(byte).filter(|it| !looked_for.contains(&Some(*it)));
            if !is_escape(byte) {
                break;
            }
        }
        for byte in looked_for.into_iter().flatten() {
            for at in &self.0.by_first[usize::from(byte)] {
                match self.0.all[*at].found(text, is_whole) {
                    Found::Secret(bytes) => longest = longest.max(bytes),
                    Found::Open => return Found::Open,
                    Found::Nothing => {}
                }
            }
        }
        if longest > 0 { Found::Secret(longest) } else { Found::Nothing }
    }
}

/// What was shown of a text, and the rest of it. Nothing is copied if nothing was hidden.
fn joined(shown: String, rest: &str, has_hidden: bool) -> Cow<'_, str> {
    match has_hidden {
        true => Cow::Owned(shown + rest),
        false => Cow::Borrowed(rest),
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(…)")
    }
}

#[cfg(test)]
mod tests;
