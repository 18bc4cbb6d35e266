//! Reads YAML whose size, depth and number of values are bounded, whatever wrote it: files of
//! prices and providers, and the heads of skills. The time of a YAML parser grows with the square
//! of the depth, and an alias stands for as much as the text behind its anchor.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser};
use serde::de::DeserializeOwned;

/// The most bytes of a text: enough for a manifest with some thousands of listeners.
pub const BYTES_MAX: usize = 256 << 10;
/// How deep lists and maps may be nested, settings of listeners included.
pub const DEPTH_MAX: usize = 32;
/// The most values of a text. An alias counts as many values as it expands to.
pub const NODES_MAX: usize = 32 << 10;

/// Reads a value from a YAML text with the limits that manifests have, too.
///
/// ```
/// # extern crate pumphouse_ground as pumphouse;
/// use pumphouse::bounded_yaml::from_str;
///
/// let days: Vec<u8> = from_str("[1, 15]")?;
/// assert_eq!(days, [1, 15]);
/// let deep = from_str::<Vec<u8>>(&"[".repeat(1_000)).unwrap_err();
/// assert_eq!(deep, "it has lists or keys within one another to more than 32 levels");
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// Returns a sentence if the text is no YAML, is over one of [`BYTES_MAX`],
/// [`DEPTH_MAX`] and [`NODES_MAX`], or has another value than is expected.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    check(text)?;
    serde_yaml::from_str(text).map_err(|it| it.to_string())
}

/// The state of a look through a text.
#[derive(Default)]
struct Count {
    nodes: usize,
    /// For each open list or map, the number of its anchor, and of the nodes before it.
    open: Vec<(usize, usize)>,
    /// Maps the number of an anchor to the number of nodes that it stands for.
    anchors: BTreeMap<usize, usize>,
}

fn check(text: &str) -> Result<(), String> {
    if text.len() > BYTES_MAX {
        return Err(format!("it has more than {BYTES_MAX} bytes"));
    }
    let mut count = Count::default();
    let too_deep =
        || format!("it has lists or keys within one another to more than {DEPTH_MAX} levels");
    for event in Parser::new_from_str(text) {
        let event = event.map_err(|error| {
            let before = text.chars().take(error.marker().index());
            match before.filter(|it| matches!(it, '[' | '{')).count() > DEPTH_MAX {
                true => too_deep(),
                false => error.to_string(),
            }
        })?;
        count.take(&event.0);
        if count.nodes > NODES_MAX {
            return Err(format!(
                "it has more than {NODES_MAX} values; an alias counts as all that it \
                 stands for"
            ));
        }
        if count.open.len() > DEPTH_MAX {
            return Err(too_deep());
        }
    }
    Ok(())
}

impl Count {
    fn take(&mut self, event: &Event<'_>) {
        match event {
            Event::Alias(id) => self.nodes += self.anchors.get(id).copied().unwrap_or(1),
            Event::Scalar(_, _, anchor, _) => {
                self.nodes += 1;
                self.anchors.insert(*anchor, 1);
            }
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                self.open.push((*anchor, self.nodes));
                self.nodes += 1;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some((anchor, before)) = self.open.pop() {
                    self.anchors.insert(anchor, self.nodes - before);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        from_str::<serde_json::Value>(text).unwrap_err()
    }

    #[test]
    fn a_text_that_nests_is_refused_before_it_is_read() {
        let deep = "it has lists or keys within one another to more than 32 levels";
        assert_eq!(wrong(&"[".repeat(60_000)), deep);
        assert_eq!(wrong(&"{a: ".repeat(20_000)), deep);
        assert_eq!(wrong(&"- ".repeat(30_000)), deep);
        let keys: String = (0..300).map(|it| " ".repeat(it) + "a:\n").collect();
        assert_eq!(wrong(&keys), deep);
    }

    #[test]
    fn an_alias_counts_as_all_that_it_stands_for() {
        let ten = |name: char, of: &str| format!("{name}: &{name} [{}]\n", [of; 10].join(","));
        let bomb = ten('a', "x") + &ten('b', "*a") + &ten('c', "*b") + &ten('d', "*c");
        let bomb = bomb + &ten('e', "*d") + &ten('f', "*e") + &ten('g', "*f");
        assert!(wrong(&bomb).contains("more than"), "{}", wrong(&bomb));
        let few: serde_json::Value = from_str("a: &a [1, 2]\nb: [*a, *a]\n").unwrap();
        assert_eq!(few["b"][1][1], 2);
    }

    #[test]
    fn what_is_no_yaml_is_told_with_its_place() {
        assert!(wrong("a: [1,\nb: }").contains("line 2"), "{}", wrong("a: [1,\nb: }"));
        assert!(wrong(&"x".repeat(BYTES_MAX + 1)).starts_with("it has more than"));
    }
}
