//! The JSONPath of provider files: RFC 9535, and a short form of filters.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde_json::Value;
use serde_json_path::JsonPath;

/// One path.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// The text in the form that is evaluated, with `@.` in its filters.
    text: String,
    path: JsonPath,
}

impl Path {
    /// Parses a path. In filters, `@.` may be left out before a member's name.
    ///
    /// # Errors
    /// A sentence that says what is wrong, and at which character.
    pub(crate) fn parse(text: &str) -> Result<Path, String> {
        let text = with_current_node(text);
        match JsonPath::parse(&text) {
            Ok(path) => Ok(Path { text, path }),
            Err(error) => {
                let (at, why) = (error.position() + 1, error.message().to_owned());
                let way = "a path is one of RFC 9535, such as $.choices[0].delta.content";
                Err(format!("`{text}` is no JSONPath: {why}, at its character {at}; {way}"))
            }
        }
    }

    /// The text in the form that is evaluated, with `@.` in its filters.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// All values that the path finds.
    pub(crate) fn all<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        self.path.query(value).all()
    }
}

impl PartialEq for Path {
    fn eq(&self, other: &Path) -> bool {
        self.text == other.text
    }
}

impl<'de> Deserialize<'de> for Path {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Path, D::Error> {
        struct Written;
        impl Visitor<'_> for Written {
            type Value = Path;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSONPath")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Path, E> {
                Path::parse(text).map_err(E::custom)
            }
        }
        from.deserialize_str(Written)
    }
}

/// A path, or several alternatives in their order. Most methods use the first path that finds
/// something; `sum` adds up all.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Paths(Vec<Path>);

impl Paths {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.0.iter()
    }

    /// Removes the paths that `others` has as well.
    pub(crate) fn without(&mut self, others: &Paths) {
        self.0.retain(|it| !others.0.contains(it));
    }

    /// The values of the first path that finds a value other than null, without nulls.
    pub(crate) fn first<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        let found = self.0.iter().map(|path| {
            let mut all = path.all(value);
            all.retain(|it| !it.is_null());
            all
        });
        found.into_iter().find(|it| !it.is_empty()).unwrap_or_default()
    }

    /// The joined texts of the first path that finds a text that isn't empty.
    pub(crate) fn joined_text(&self, value: &Value) -> String {
        let texts = |path: &Path| -> String {
            path.all(value).into_iter().filter_map(Value::as_str).collect()
        };
        self.0.iter().map(texts).find(|it| !it.is_empty()).unwrap_or_default()
    }

    /// The last text that isn't empty, of the first path that finds such a text.
    pub(crate) fn last_text<'v>(&self, value: &'v Value) -> Option<&'v str> {
        let last = |path: &Path| {
            let mut texts = path.all(value).into_iter().filter_map(Value::as_str);
            texts.rfind(|it| !it.is_empty())
        };
        self.0.iter().find_map(last)
    }

    /// The sum of the last numbers that the paths find, one for each path. None if no path finds a
    /// number.
    pub(crate) fn sum(&self, value: &Value) -> Option<u64> {
        let number =
            |path: &Path| path.all(value).into_iter().filter_map(Value::as_u64).next_back();
        self.0.iter().filter_map(number).reduce(u64::saturating_add)
    }
}

impl<'de> Deserialize<'de> for Paths {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Paths, D::Error> {
        struct Written;
        impl<'de> Visitor<'de> for Written {
            type Value = Paths;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSONPath, or a list of such,")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Paths, E> {
                Path::parse(text).map(|it| Paths(vec![it])).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Paths, A::Error> {
                let mut all = Vec::new();
                while let Some(path) = from.next_element()? {
                    all.push(path);
                }
                Ok(Paths(all))
            }
        }
        from.deserialize_any(Written)
    }
}

/// Puts `@.` before the bare name of a member at the beginning of a filter, and after `&`, `|`, `!`
/// or `(` in it. For example, `[?type=='x']` becomes `[?@.type=='x']`.
fn with_current_node(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    // For each open bracket, `brackets` holds whether it is a filter's. `is_operand` is true where
    // an operand comes next.
    let (mut brackets, mut is_operand) = (Vec::new(), false);
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let in_filter = brackets.last() == Some(&true);
        let length = match next {
            '\'' | '"' => quoted(rest),
            _ if in_filter && (next.is_alphabetic() || next == '_') => {
                let is_of_name = |it: char| it.is_alphanumeric() || it == '_';
                let length = rest.find(|it| !is_of_name(it)).unwrap_or(rest.len());
                let (word, after) = rest.split_at(length);
                let is_other = matches!(word, "true" | "false" | "null") || after.starts_with('(');
                if is_operand && !is_other {
                    out.push_str("@.");
                }
                length
            }
            _ => next.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        match token {
            "[" => brackets.push(after.trim_start().starts_with('?')),
            "]" => drop(brackets.pop()),
            _ => {}
        }
        is_operand = match token {
            "?" | "&" | "|" | "!" | "(" => brackets.last() == Some(&true),
            _ if token.trim().is_empty() => is_operand,
            _ => false,
        };
        out.push_str(token);
        rest = after;
    }
    out
}

/// The length in bytes of the quoted text at the beginning of a text, quotes included.
fn quoted(text: &str) -> usize {
    let mut chars = text.char_indices();
    let quote = chars.next().map(|(_, it)| it);
    while let Some((at, next)) = chars.next() {
        match next {
            '\\' => drop(chars.next()),
            _ if Some(next) == quote => return at + next.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_filter_may_name_a_member_without_the_current_node() {
        let check = |text: &str, expected: &str| assert_eq!(with_current_node(text), expected);
        check("$.blocks[?type=='tool_use']", "$.blocks[?@.type=='tool_use']");
        check("$.blocks[?(type == 'a' || kind!='b')]", "$.blocks[?(@.type == 'a' || @.kind!='b')]");
        check("$.blocks[?!thought]", "$.blocks[?!@.thought]");
        check("$.a[? b.c == true].d", "$.a[? @.b.c == true].d");
        check("$[?@.type=='it[?s type']", "$[?@.type=='it[?s type']");
        check("$[?length(@.a) > 1 && b]", "$[?length(@.a) > 1 && @.b]");
        check("$.type['a b'][0]", "$.type['a b'][0]");
    }

    #[test]
    fn what_is_no_path_says_where_and_shows_one() {
        let wrong = Path::parse("$.a[").unwrap_err();
        assert!(wrong.starts_with("`$.a[` is no JSONPath: "), "{wrong}");
        assert!(wrong.ends_with("such as $.choices[0].delta.content"), "{wrong}");
    }

    #[test]
    fn the_first_of_several_paths_counts_that_finds_something() {
        let paths: Paths = serde_json::from_value(json!(["$.a", "$.b", "$.c"])).unwrap();
        let value = json!({ "a": null, "b": "x", "c": "y" });
        assert_eq!(paths.first(&value), [&json!("x")]);
        assert_eq!(paths.joined_text(&value), "x");
        let counts = json!({ "a": 1, "c": 2 });
        assert_eq!(paths.sum(&counts), Some(3));
    }
}
