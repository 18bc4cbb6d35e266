//! Reads YAML files other than manifests. Each mistake has a place, as in a manifest.

use std::io::{self, Read as _};
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::bounded_yaml;
use crate::manifest::check::joined;
use crate::manifest::expand_variables::{Environment, expand};
use crate::manifest::hide_variables::{KnownVariables, Variables};
use crate::manifest::mistake::{Mistake, Mistakes, Place, cut};
use crate::manifest::settings::{At, Findings};
use crate::manifest::yaml;
use crate::manifest::yaml::{Node, Value};
use crate::regular_file;

/// A YAML file that was read, with its variables filled in.
#[derive(Debug)]
pub struct Document {
    file: String,
    root: Node,
    variables: KnownVariables,
}

impl Document {
    /// Reads a file that isn't a manifest into a type that the caller chooses.
    ///
    /// # Errors
    /// If the file isn't YAML, only this mistake. Otherwise all unset variables and repeated keys,
    /// the unknown keys, and the first value that the type refuses. Reading into the type stops at
    /// this value, so unknown keys after it aren't reported.
    pub fn read<T: DeserializeOwned>(
        file: &Path,
        bytes: &[u8],
        environment: Environment<'_>,
    ) -> Result<(T, Document), Mistakes> {
        let name = file.display().to_string();
        let variables = Variables::of(environment);
        let environment: Environment<'_> = &|name| variables.look_up(name);
        let wrong = |all| variables.known().hide(Mistakes::new(&name, all));
        let mut root = yaml::read(bytes).map_err(|it| wrong(vec![it]))?;
        let mut mistakes = Vec::new();
        expand(&mut root, environment, &mut mistakes);
        twice(&root, "", &mut mistakes);
        let findings = Findings::of(file);
        let read = T::deserialize(At { node: &root, path: String::new(), findings: &findings });
        // An unset variable is one mistake. Serde's mistake about the same value is left out.
        let found = findings.all();
        let is_new = |it: &Mistake| mistakes.iter().all(|known| known.place != it.place);
        let found: Vec<Mistake> = found.into_iter().filter(is_new).collect();
        mistakes.extend(found);
        match read {
            Ok(value) if mistakes.is_empty() => {
                Ok((value, Document { file: name, root, variables: variables.known() }))
            }
            Err(error) if mistakes.is_empty() => {
                Err(wrong(vec![Mistake::new(root.place, error.to_string())]))
            }
            _ => Err(wrong(mistakes)),
        }
    }

    /// The value under keys such as `stream.sinks`, if there is one.
    pub(super) fn node(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(&self.root, Node::key)
    }

    /// A mistake at the value under a path such as `cases[0].expect[1]`. If the path leads to no
    /// value, the mistake has the place of the last value that the path leads through.
    pub fn mistake(&self, path: &str, message: &str) -> Mistake {
        Mistake::new(self.place(path), message).at(path)
    }

    /// These mistakes, with the name of the file.
    pub fn mistakes(&self, all: Vec<Mistake>) -> Mistakes {
        self.variables.hide(Mistakes::new(&self.file, all))
    }

    fn place(&self, path: &str) -> Place {
        let mut node = &self.root;
        for step in path.split(['.', '[']).filter(|it| !it.is_empty()) {
            let below = match step.strip_suffix(']').map(str::parse) {
                Some(Ok(number)) => node.items().get::<usize>(number),
                _ => node.key(step),
            };
            let Some(below) = below else { break };
            node = below;
        }
        node.place
    }
}

/// Finds keys that a map has more than once.
fn twice(node: &Node, path: &str, wrong: &mut Vec<Mistake>) {
    for (number, item) in node.items().iter().enumerate() {
        twice(item, &format!("{path}[{number}]"), wrong);
    }
    let Value::Map(pairs) = &node.value else { return };
    for (number, pair) in pairs.iter().enumerate() {
        let below = joined(path, &pair.key);
        if let Some(first) = pairs[..number].iter().find(|it| it.key == pair.key) {
            let line = first.place.line;
            let text = format!("`{}` stands here again, after line {line}", cut(&pair.key));
            wrong.push(Mistake::new(pair.place, text).at(&below).advice("keep one of the two"));
        }
        twice(&pair.value, &below, wrong);
    }
}

/// Reads a file up to one byte more than a manifest may have, so that the caller recognises a
/// larger file.
pub(super) fn bytes_of(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(bounded_yaml::BYTES_MAX).unwrap_or(u64::MAX);
    regular_file::open(file)?.take(most + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    struct Sample {
        name: String,
        items: Vec<String>,
    }

    fn read(text: &str) -> Result<(Sample, Document), String> {
        let environment = |name: &str| (name == "WHO").then(|| "ada".to_owned());
        let read = Document::read(Path::new("a.yaml"), text.as_bytes(), &environment);
        read.map_err(|it| it.to_string())
    }

    #[test]
    fn a_value_has_its_place_and_a_missing_one_that_of_what_is_around_it() {
        let (it, document) = read("name: ${WHO}\nitems:\n  - a\n  - b\n").unwrap();
        assert_eq!((it.name.as_str(), it.items.len()), ("ada", 2));
        let check = |path: &str, line, column| {
            let place = document.mistake(path, "").place;
            assert_eq!((place.line, place.column), (line, column), "{path}");
        };
        check("name", 1, 7);
        check("items[1]", 4, 5);
        check("items[7]", 3, 3);
        check("other", 1, 1);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let check = |text: &str, expected: &str| {
            let wrong = read(text).unwrap_err();
            assert!(wrong.starts_with(expected), "{wrong}");
        };
        check("name: a\nitems: [a]\nnaem: b", "a.yaml:3:1: here is no key `naem`; did you mean");
        check("name: [a]\nitems: [a]", "a.yaml:1:7: this is a list, and a text is expected");
        check("name: ${NONE}\nitems: [a]", "a.yaml:1:7: the variable NONE isn't set");
        check("name: a\nitems: [a]\nname: b", "a.yaml:3:1: `name` stands here again, after");
        check("name: a", "a.yaml:1:1: here the key `items` is missing");
    }
}
