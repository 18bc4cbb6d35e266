//! Makes XML names from the names of JSON properties.

use std::collections::BTreeSet;

/// How many bytes an element's name may have.
const LENGTH_MAX: usize = 100;

/// The names that are taken in a shape.
#[derive(Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// Assigns an XML name to each property, in order. A property whose name is a suitable XML name
    /// keeps its name.
    pub(super) fn assign<'a>(&mut self, all: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
        self.0.extend(all.clone().filter(|it| is_name(it)).map(str::to_owned));
        let each = |it: &str| if is_name(it) { it.to_owned() } else { self.free(&made_of(it)) };
        all.map(each).collect()
    }

    /// Returns the name `name`, with a number appended if the name is taken. The returned name
    /// counts as taken from then on.
    pub(super) fn free(&mut self, name: &str) -> String {
        let numbered = (2..).map(|it| format!("{name}-{it}"));
        let mut all = std::iter::once(name.to_owned()).chain(numbered);
        let free = all.find(|it| !self.0.contains(it)).unwrap_or_default();
        self.0.insert(free.clone());
        free
    }
}

/// Returns whether a text is a suitable XML name, so that it can be an element's name unchanged.
pub(super) fn is_name(text: &str) -> bool {
    let is_first = |it: char| it == '_' || it.is_ascii_alphabetic();
    text.len() <= LENGTH_MAX
        && text.starts_with(is_first)
        && text.chars().all(is_inside)
        && !text.get(..3).is_some_and(|it| it.eq_ignore_ascii_case("xml"))
}

fn is_inside(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.')
}

/// Returns an XML name that is similar to this text. A text that is a suitable XML name is returned
/// unchanged.
pub(super) fn like(text: &str) -> String {
    if is_name(text) { text.to_owned() } else { made_of(text) }
}

fn made_of(text: &str) -> String {
    let fitting = text.chars().map(|it| if is_inside(it) { it } else { '_' });
    let name: String = fitting.take(LENGTH_MAX - 10).collect();
    if is_name(&name) { name } else { format!("_{name}") }
}
