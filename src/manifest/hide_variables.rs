//! Hides the values of variables in mistakes, since they may be secrets. A value is shown as the
//! name of its variable, such as `${TOKEN}`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::manifest::expand_variables::Environment;
use crate::manifest::mistake::Mistakes;
use crate::secret::{Secret, is_secret_name};

/// How many bytes a value has at least that is hidden wherever it stands. A shorter one is hidden
/// where it stands in quotes, since it may be a part of any word.
const ANYWHERE_BYTES_MIN: usize = 6;

/// An environment that remembers which variables were looked up.
pub(super) struct Variables<'e> {
    environment: Environment<'e>,
    known: RefCell<KnownVariables>,
}

/// The variables that a file uses, with their values.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownVariables(BTreeMap<String, String>);

impl<'e> Variables<'e> {
    pub(super) fn of(environment: Environment<'e>) -> Variables<'e> {
        Variables { environment, known: RefCell::default() }
    }

    /// Looks up a variable, as the environment does.
    pub(super) fn look_up(&self, name: &str) -> Option<String> {
        let value = (self.environment)(name)?;
        self.known.borrow_mut().0.insert(name.to_owned(), value.clone());
        Some(value)
    }

    /// The variables that were looked up so far.
    pub(super) fn known(&self) -> KnownVariables {
        self.known.borrow().clone()
    }
}

impl KnownVariables {
    /// The values that are secrets, as the names of their variables suggest. Each has its variable,
    /// such as `${TOKEN}`.
    pub(super) fn secrets(&self) -> impl Iterator<Item = (String, Secret)> {
        let secrets = self.0.iter().filter(|(name, _)| is_secret_name(name));
        secrets.map(|(name, value)| (format!("${{{name}}}"), Secret::new(value)))
    }

    /// Hides the values in all texts of some mistakes.
    pub(super) fn hide(&self, mistakes: Mistakes) -> Mistakes {
        mistakes.with_texts(|text| self.hidden_in(text))
    }

    /// Hides the values in a text. A value may have been cut before: its beginning and `…`.
    fn hidden_in(&self, text: &str) -> String {
        let mut text = text.to_owned();
        // A value may be a part of another one.
        let mut all: Vec<_> = self.0.iter().filter(|(_, value)| !value.is_empty()).collect();
        all.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        for (name, value) in all {
            let shown = format!("${{{name}}}");
            if value.len() < ANYWHERE_BYTES_MIN {
                for quote in ['`', '"', '\''] {
                    let quoted = format!("{quote}{value}{quote}");
                    text = text.replace(&quoted, &format!("{quote}{shown}{quote}"));
                }
                continue;
            }
            text = text.replace(value, &shown);
            // A value may be shown as a path: with one `/` for two of them, and without a last one.
            let path: PathBuf = Path::new(value.trim()).components().collect();
            let path = path.to_string_lossy();
            if path.len() >= ANYWHERE_BYTES_MIN {
                text = text.replace(&*path, &shown);
            }
            // A value may stand between quotes, with escapes.
            let escaped = format!("{value:?}");
            text = text.replace(&escaped[1..escaped.len() - 1], &shown);
            text = without_beginning(&text, value, &shown);
        }
        text
    }
}

/// Replaces the beginning of a value that a text shows before `…`.
fn without_beginning(text: &str, value: &str, shown: &str) -> String {
    let mut parts = text.split('…');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let ends = value.char_indices().map(|(at, _)| at).filter(|at| *at >= ANYWHERE_BYTES_MIN);
        if let Some(end) = ends.rev().find(|end| out.ends_with(&value[..*end])) {
            out.truncate(out.len() - end);
            out += shown;
        }
        out.push('…');
        out += part;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_shown_as_its_variable() {
        let values = [
            ("TOKEN", "s3cr3t-VALUE-77"),
            ("N", "8"),
            ("ALL", "other/s3cr3t-VALUE-77"),
            ("QUOTED", "s3\"cr\\3t"),
            ("FOLDER", " s3cr3t/folder/ "),
            ("URL", "http://s3cr3t/api"),
        ];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let known = KnownVariables(BTreeMap::from(values));
        let check = |text: &str, expected: &str| assert_eq!(known.hidden_in(text), expected);
        check("s3cr3t-VALUE-77: No such file", "${TOKEN}: No such file");
        check("this is `8`, from 1 to 8", "this is `${N}`, from 1 to 8");
        check("at other/s3cr3t-VALUE-77", "at ${ALL}");
        check("\"s3\\\"cr\\\\3t\": no address", "\"${QUOTED}\": no address");
        check("s3cr3t/folder: No such file", "${FOLDER}: No such file");
        check("/here/http:/s3cr3t/api is no program", "/here/${URL} is no program");
        check("`s3cr3t-VA…` is none, s3…", "`${TOKEN}…` is none, s3…");
    }
}
