//! Tokens, by which clients prove their identities. A list of tokens has a line `NAME:TOKEN` or
//! `NAME:TOKEN:operator` for each identity.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use subtle::{ConditionallySelectable, ConstantTimeEq};
use tokio::sync::watch;

use crate::clock;
use crate::engine::{CONSOLE, Identity};
use crate::listener::DoorAccess;
use crate::name::CORE_NAME;
use crate::regular_file;

/// The most bytes of a token file. That is enough for some thousands of tokens.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The error if a list has become empty.
const NONE_LEFT: &str = "it lists nobody any more; stop the pump to keep everybody out";
/// The error if a list was empty and isn't any more.
const NONE_BEFORE: &str = "it listed nobody when the pump started; start the pump again";

/// The tokens that a door accepts. The memory holds no tokens, only their digests. Each digest is
/// computed with a random key.
///
/// Clones share the same list, so several doors may use it. When the list is read again, it changes
/// for all these doors. A connection ends if its token is no longer in the list.
///
/// ```
/// # extern crate pumphouse_door as pumphouse;
/// use pumphouse::door::Tokens;
///
/// let tokens = Tokens::parse("# who may come in\nfeeder:s3cret\nops:t0psecret:operator\n")?;
/// assert_eq!(tokens.names().collect::<Vec<_>>(), ["feeder", "ops"]);
/// # Ok::<(), pumphouse::door::Wrong>(())
/// ```
#[derive(Clone)]
pub struct Tokens {
    key: [u8; 32],
    /// The file that the tokens were read from, if they can be read again.
    file: Option<Arc<Path>>,
    known: watch::Sender<Arc<Known>>,
}

/// The digests of tokens, each with its identity.
type Known = Vec<([u8; 32], Identity)>;

/// The proof of a connection that has authenticated: the digest of its token, and its identity.
#[derive(Debug)]
pub(super) struct Proof {
    digest: [u8; 32],
    pub(super) identity: Identity,
}

impl Default for Tokens {
    fn default() -> Tokens {
        Tokens::of(clock::random_bytes(), Known::new())
    }
}

impl Tokens {
    /// Reads a token file, which must be a regular file. On Unix, only its owner may write it, and
    /// only its owner and its group may read it.
    ///
    /// # Errors
    /// If the file can't be used, or if it has wrong lines. The error lists every wrong line.
    pub fn read(path: impl AsRef<Path>) -> Result<Tokens, Wrong> {
        let (key, path) = (clock::random_bytes(), path.as_ref());
        let tokens = Tokens::of(key, known_in(path, &key)?);
        Ok(Tokens { file: Some(path.into()), ..tokens })
    }

    /// Parses lines `NAME:TOKEN` or `NAME:TOKEN:operator`. Empty lines and lines that begin with
    /// `#` are skipped.
    ///
    /// # Errors
    /// If the text has wrong lines. The error lists every wrong line, and never quotes a token.
    pub fn parse(text: &str) -> Result<Tokens, Wrong> {
        let key = clock::random_bytes();
        Ok(Tokens::of(key, parsed(text, &key)?))
    }

    fn of(key: [u8; 32], known: Known) -> Tokens {
        Tokens { key, file: None, known: watch::Sender::new(Arc::new(known)) }
    }

    /// Reads the file again, if the tokens came from one. Returns how many tokens there are now, or
    /// `None` without a file.
    ///
    /// # Errors
    /// If the file can't be used, or if `check` refuses one of its identities. Also if the list has
    /// become empty, or was empty and isn't any more. After an error the old tokens stay in use.
    pub fn reload(
        &self,
        check: impl Fn(&Identity) -> Result<(), String>,
    ) -> Result<Option<usize>, Wrong> {
        let Some(path) = self.file.as_deref() else { return Ok(None) };
        let known = known_in(path, &self.key)?;
        for (_, identity) in &known {
            check(identity).map_err(|why| Wrong::of(path, why))?;
        }
        // A door without tokens trusts its clients. So while the door is open, an empty list must
        // stay empty, and a list with tokens must not become empty.
        match (self.is_empty(), known.is_empty()) {
            (false, true) => return Err(Wrong::of(path, NONE_LEFT.to_owned())),
            (true, false) => return Err(Wrong::of(path, NONE_BEFORE.to_owned())),
            _ => {}
        }
        let count = known.len();
        self.known.send_replace(Arc::new(known));
        Ok(Some(count))
    }

    /// The file that the tokens were read from.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// A receiver that is notified when the tokens were read again.
    pub(super) fn changes(&self) -> watch::Receiver<impl Sized + use<>> {
        self.known.subscribe()
    }

    /// Whether there are no tokens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.borrow().is_empty()
    }

    /// The names of the identities that have a token.
    pub fn names(&self) -> impl Iterator<Item = String> + use<> {
        let names: Vec<String> = self.known().iter().map(|(_, it)| it.name.to_string()).collect();
        names.into_iter()
    }

    /// The names of the identities that have a token, each with its rank: `user` or `operator`.
    pub fn ranks(&self) -> impl Iterator<Item = (String, &'static str)> + use<> {
        let rank = |it: &Identity| if it.operator { "operator" } else { "user" };
        let all = self.known();
        let ranks: Vec<_> = all.iter().map(|(_, it)| (it.name.to_string(), rank(it))).collect();
        ranks.into_iter()
    }

    /// Finds the identity of a token. The time that this takes reveals nothing about the tokens:
    /// every known digest is compared, each to its last byte.
    pub(super) fn find(&self, token: &str) -> Option<Proof> {
        let (digest, known) = (digest(&self.key, token), self.known());
        let mut found = u64::MAX;
        for (at, (known, _)) in (0..).zip(&*known) {
            found.conditional_assign(&at, known.ct_eq(&digest));
        }
        let (_, identity) = known.get(usize::try_from(found).ok()?)?;
        Some(Proof { digest, identity: identity.clone() })
    }

    /// Whether the token of a proof is still in the list, with the same identity.
    pub(super) fn has(&self, proof: &Proof) -> bool {
        let is_it = |(digest, identity): &([u8; 32], Identity)| {
            *digest == proof.digest && *identity == proof.identity
        };
        self.known().iter().any(is_it)
    }

    pub(super) fn identities(&self) -> Vec<Arc<str>> {
        self.known().iter().map(|(_, it)| it.name.clone()).collect()
    }

    fn known(&self) -> Arc<Known> {
        self.known.borrow().clone()
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// Reads the tokens of a file.
fn known_in(path: &Path, key: &[u8; 32]) -> Result<Known, Wrong> {
    let text = text_of(path).map_err(|why| Wrong::of(path, why))?;
    parsed(&text, key).map_err(|wrong| Wrong { path: Some(path.to_owned()), ..wrong })
}

fn parsed(text: &str, key: &[u8; 32]) -> Result<Known, Wrong> {
    let mut known = Known::new();
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match taken(text, line, key, &known, &mut names) {
            Ok(one) => known.push(one),
            Err(why) => wrong.push((line, why)),
        }
    }
    let mut wrong = wrong.into_iter();
    match wrong.next() {
        None => Ok(known),
        Some((line, why)) => {
            Err(Wrong { path: None, line: Some(line), why, more: wrong.collect() })
        }
    }
}

/// Parses a line into a token's digest and the token's identity. `names` maps each name of an
/// earlier line to that line's number.
fn taken<'a>(
    text: &'a str,
    line: usize,
    key: &[u8; 32],
    known: &Known,
    names: &mut BTreeMap<&'a str, usize>,
) -> Result<([u8; 32], Identity), String> {
    let (name, token, operator) = parts(text)?;
    if let Some(first) = names.get(name) {
        return Err(format!("{name} stands in line {first} already"));
    }
    names.insert(name, line);
    let digest = digest(key, token);
    if let Some((_, other)) = known.iter().find(|(it, _)| *it == digest) {
        return Err(format!("{name} has the token of {}", other.name));
    }
    Ok((digest, Identity { name: name.into(), operator }))
}

fn digest(key: &[u8; 32], token: &str) -> [u8; 32] {
    *blake3::keyed_hash(key, token.as_bytes()).as_bytes()
}

/// Splits a line into the name, the token, and whether it is an operator's.
fn parts(line: &str) -> Result<(&str, &str, bool), String> {
    let mut parts = line.split(':');
    let name = parts.next().unwrap_or_default().trim_end();
    let token = parts.next().ok_or("a line is NAME:TOKEN or NAME:TOKEN:operator")?.trim();
    let operator = match parts.next().map(str::trim) {
        None => false,
        Some("operator") => true,
        Some(_) => {
            return Err("after the token stands `operator` or nothing; a token holds no ':'".into());
        }
    };
    is_name(name)?;
    if token.is_empty() || !token.chars().all(|it| it.is_ascii_graphic()) {
        return Err(format!("the token of {name} is not of printable ASCII characters"));
    }
    if parts.next().is_some() {
        return Err("nothing stands after `operator`".into());
    }
    Ok((name, token, operator))
}

/// Checks that an identity may have this name.
pub(super) fn is_name(name: &str) -> Result<(), String> {
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    if name.is_empty() || !name.chars().all(fits) {
        return Err(format!("{name:?}: a name is letters, digits, '-', '_' and '.'"));
    }
    if name == CORE_NAME {
        return Err("core: the pump itself has this name".into());
    }
    if name == DoorAccess::OPERATORS {
        return Err(format!("{name}: this word stands for all operators in a listener's `door`"));
    }
    if name == CONSOLE {
        return Err(format!("{CONSOLE}: whoever comes without a token has this name"));
    }
    Ok(())
}

/// Reads a file of secrets. The path must lead to a regular file with safe permissions; mounted
/// secrets are links.
fn text_of(path: &Path) -> Result<String, String> {
    let file = regular_file::open(path).map_err(|error| error.to_string())?;
    check_access(&file.metadata().map_err(|error| error.to_string())?)?;
    let bytes = regular_file::rest(file, FILE_BYTES_MAX).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|_| "it is no text in UTF-8".to_owned())
}

/// Checks the permissions of a file of secrets. Its group may read it, but not write it. Other
/// users may do nothing with it.
#[cfg(unix)]
pub(super) fn check_access(opened: &fs::Metadata) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    let mode = opened.mode() & 0o777;
    if mode & 0o027 != 0 {
        return Err(format!("its mode is {mode:04o}, so others may read or change it: chmod 600"));
    }
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn check_access(_: &fs::Metadata) -> Result<(), String> {
    Ok(())
}

/// The error of a list of tokens that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wrong {
    /// The file, if the tokens came from one.
    pub path: Option<PathBuf>,
    /// The number of the line, from 1, if the error is about a line.
    pub line: Option<usize>,
    /// What is wrong. The text doesn't quote a token.
    pub why: String,
    /// The numbers of further lines, and what is wrong with each.
    pub more: Vec<(usize, String)>,
}

impl Wrong {
    fn of(path: &Path, why: String) -> Wrong {
        Wrong { path: Some(path.to_owned()), line: None, why, more: Vec::new() }
    }

    /// All errors, a text for each wrong line, with the file and the line's number.
    pub fn all(&self) -> impl Iterator<Item = String> {
        let more = self.more.iter().map(|(line, why)| (Some(*line), why));
        [(self.line, &self.why)].into_iter().chain(more).map(|(line, why)| {
            let file = self.path.as_ref().map_or("tokens".into(), |it| it.to_string_lossy());
            match line {
                Some(line) => format!("{file}: line {line}: {why}"),
                None => format!("{file}: {why}"),
            }
        })
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.all().collect::<Vec<_>>().join("\n"))
    }
}

impl std::error::Error for Wrong {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_finds_its_identity() {
        let tokens = Tokens::parse("\u{23} comment\n\n  a.b : x \nops:y:operator\r\n").unwrap();
        let found = |token: &str| {
            let found = tokens.find(token).map(|it| it.identity);
            found.map(|it| (it.name.to_string(), it.operator))
        };
        assert_eq!(found("x"), Some(("a.b".into(), false)));
        assert_eq!(found("y"), Some(("ops".into(), true)));
        for wrong in ["", "X", "xy", "x ", "operator"] {
            assert_eq!(found(wrong), None, "{wrong}");
        }
        assert!(Tokens::default().find("").is_none());
        assert_eq!(format!("{tokens:?}"), r#"["a.b", "ops"]"#);
    }

    #[test]
    fn a_wrong_line_is_named_without_its_token() {
        let check = |text: &str, expected: &str| {
            let wrong = Tokens::parse(text).unwrap_err().to_string();
            assert_eq!(wrong, format!("tokens: {expected}"), "{text}");
            assert!(!wrong.contains("s3cret"));
        };
        check("a:x\ns3cret", "line 2: a line is NAME:TOKEN or NAME:TOKEN:operator");
        check("a:s3cret\n\na:y", "line 3: a stands in line 1 already");
        check("a:s3cret\nb:s3cret", "line 2: b has the token of a");
        check("core:x", "line 1: core: the pump itself has this name");
        check("console:x", "line 1: console: whoever comes without a token has this name");
        check(":x", "line 1: \"\": a name is letters, digits, '-', '_' and '.'");
        check("a b:x", "line 1: \"a b\": a name is letters, digits, '-', '_' and '.'");
        check("a:", "line 1: the token of a is not of printable ASCII characters");
        check("a:s3cret two", "line 1: the token of a is not of printable ASCII characters");
        let after = "after the token stands `operator` or nothing; a token holds no ':'";
        check("a:s3cret:root", &format!("line 1: {after}"));
        check("a:x:operator:", "line 1: nothing stands after `operator`");
    }

    #[test]
    fn every_wrong_line_is_told_at_once() {
        let text = "a\nb:s3cret\nb:x\nc d:x\ne:s3cret\nf:y\n";
        let wrong = Tokens::parse(text).unwrap_err();
        assert_eq!(
            wrong.to_string(),
            "tokens: line 1: a line is NAME:TOKEN or NAME:TOKEN:operator\n\
             tokens: line 3: b stands in line 2 already\n\
             tokens: line 4: \"c d\": a name is letters, digits, '-', '_' and '.'\n\
             tokens: line 5: e has the token of b"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_file_of_secrets_is_a_file_that_others_cant_read() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        fs::write(&path, "a:x\n").unwrap();
        let read = |mode: u32| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Tokens::read(&path).map_err(|it| it.why)
        };
        assert_eq!(read(0o600).unwrap().names().count(), 1);
        assert_eq!(read(0o640).unwrap().names().count(), 1);
        for mode in [0o644, 0o604, 0o660] {
            let why = read(mode).unwrap_err();
            assert!(why.contains("chmod 600"), "{mode:o}: {why}");
        }
        read(0o600).unwrap();
        let link = folder.path().join("link");
        symlink(&path, &link).unwrap();
        assert_eq!(Tokens::read(&link).unwrap().names().count(), 1, "mounted secrets are links");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(Tokens::read(&link).unwrap_err().why.contains("chmod 600"));
        assert!(Tokens::read(folder.path()).unwrap_err().why.contains("no regular file"));
        let missing = Tokens::read(folder.path().join("none")).unwrap_err();
        assert!(missing.path.is_some() && missing.line.is_none());
    }
}
