//! Replaces `${VAR}` and `${VAR:-default}` in the values of a file by the values of variables, when
//! the file is read.
//!
//! A default may have variables itself. The value of a variable isn't scanned again. `$${` stands
//! for `${`.

use crate::listeners::action::variables::whole;
use crate::manifest::mistake::{Mistake, cut};
use crate::manifest::yaml::{Node, Pair, Scalar, Value, kind_of};

/// Looks up a variable of the environment. Returns None if the variable isn't set.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The number of defaults that may stand within one another, as in `${A:-${B:-c}}`. People write
/// fewer, and so few can be read by recursion.
const MANIFEST_DEFAULTS_MAX: usize = 16;

/// The keys of lists of feeds. In feeds, `${metadata.field}` refers to the metadata of an agent.
const FEEDS: [&str; 3] = ["context_feeds", "feeds", "feeds-defaults"];

/// Fills in the variables of every value. Adds a mistake to `wrong` for each value that can't be
/// filled in.
pub(super) fn expand(node: &mut Node, environment: Environment<'_>, wrong: &mut Vec<Mistake>) {
    expand_in(node, (environment, false), wrong);
}

/// Fills in the variables of the value under a key, and of every value within it.
pub(super) fn expand_under(
    pair: &mut Pair,
    environment: Environment<'_>,
    wrong: &mut Vec<Mistake>,
) {
    let is_feed = FEEDS.contains(&pair.key.as_str());
    expand_in(&mut pair.value, (environment, is_feed), wrong);
}

/// Fills in the variables of every value. The flag in `by` says whether the values belong to feeds.
fn expand_in(node: &mut Node, by: (Environment<'_>, bool), wrong: &mut Vec<Mistake>) {
    let (environment, is_feed) = by;
    match &mut node.value {
        Value::List(items) => items.iter_mut().for_each(|it| expand_in(it, by, wrong)),
        Value::Map(entries) => entries.iter_mut().for_each(|it| {
            let is_feed = is_feed || FEEDS.contains(&it.key.as_str());
            expand_in(&mut it.value, (environment, is_feed), wrong);
        }),
        Value::Scalar(scalar) if scalar.source.contains("${") => {
            match filled(&scalar.source, environment, is_feed) {
                Ok(text) => fill(scalar, text),
                Err(mistake) => wrong.push(Mistake { place: node.place, ..mistake }),
            }
        }
        Value::Scalar(_) => {}
    }
}

fn fill(scalar: &mut Scalar, text: String) {
    // An optional value that is empty counts as absent even in quotes, because YAML requires the
    // quotes in `{key: "${LLM_KEY:-}"}`.
    let is_left_out = text.is_empty() && is_optional(&scalar.source);
    if scalar.is_plain || is_left_out {
        scalar.kind = kind_of(&text);
    }
    scalar.text = text;
}

/// Whether a value is a variable with an empty default, and nothing else. The default may be such a
/// variable, too.
fn is_optional(source: &str) -> bool {
    fn is_empty_in_the_end(parts: &[Part<'_>]) -> bool {
        matches!(parts, [Part::Variable { default: Some(default), .. }]
            if default.is_empty() || is_empty_in_the_end(default))
    }
    parts(source, false).is_ok_and(|it| is_empty_in_the_end(&it))
}

/// A part of a text with variables.
enum Part<'a> {
    Text(&'a str),
    /// A reference in a feed.
    Reference(&'a str),
    Variable {
        name: &'a str,
        default: Option<Vec<Part<'a>>>,
    },
}

fn filled(source: &str, environment: Environment<'_>, is_feed: bool) -> Result<String, Mistake> {
    let mut text = String::new();
    fill_in(&parts(source, is_feed)?, (environment, is_feed), &mut text)?;
    Ok(text)
}

/// Appends the text of some parts. The default of a variable that is set counts for nothing.
fn fill_in(
    parts: &[Part<'_>],
    by: (Environment<'_>, bool),
    text: &mut String,
) -> Result<(), Mistake> {
    let (environment, is_feed) = by;
    for part in parts {
        let (name, default) = match part {
            Part::Text(it) => {
                *text += it;
                continue;
            }
            Part::Reference(it) => {
                *text += &format!("${{{it}}}");
                continue;
            }
            Part::Variable { name, default } => (*name, default),
        };
        match (environment(name), default) {
            (Some(value), None) => *text += &value,
            (Some(value), Some(_)) if !value.is_empty() => *text += &value,
            (_, Some(default)) => fill_in(default, by, text)?,
            (None, None) if is_feed && name == "metadata" => {
                return Err(mistake("${metadata} names no field".to_owned())
                    .advice("write ${metadata.FIELD}, with a field of the agent's metadata"));
            }
            (None, None) => {
                return Err(mistake(format!("the variable {name} isn't set, and has no default"))
                    .advice(format!("set it, or write a default: ${{{name}:-default}}")));
            }
        }
    }
    Ok(())
}

fn mistake(text: String) -> Mistake {
    Mistake::new(Default::default(), text)
}

/// Reads the parts of a text. In a feed, a reference that can't be a variable is text.
fn parts(source: &str, is_feed: bool) -> Result<Vec<Part<'_>>, Mistake> {
    Reader { rest: source, is_feed, depth: 0 }.parts()
}

/// Reads a text with variables.
struct Reader<'a> {
    /// The text that isn't read yet.
    rest: &'a str,
    is_feed: bool,
    /// The number of defaults around the text.
    depth: usize,
}

impl<'a> Reader<'a> {
    /// Reads the parts of the text or, in a default, up to the default's `}`. Within a default,
    /// other braces come in pairs.
    fn parts(&mut self) -> Result<Vec<Part<'a>>, Mistake> {
        let (mut parts, mut at, mut open) = (Vec::new(), 0, 0_usize);
        let is_default = self.depth > 0;
        while let Some(found) = self.rest[at..].find(['$', '{', '}']).map(|it| at + it) {
            let (before, here) = self.rest.split_at(found);
            at = found + 1;
            if let Some(after) = here.strip_prefix("$${") {
                parts.extend([Part::Text(before), Part::Text("${")]);
                (self.rest, at, open) = (after, 0, open + 1);
            } else if let Some(after) = here.strip_prefix("${") {
                self.rest = after;
                parts.extend([Part::Text(before), self.variable()?]);
                at = 0;
            } else if here.starts_with('{') {
                open += 1;
            } else if here.starts_with('}') && open > 0 {
                open -= 1;
            } else if here.starts_with('}') && is_default {
                parts.push(Part::Text(before));
                self.rest = here;
                return Ok(parts.into_iter().filter(Part::is_something).collect());
            }
        }
        parts.push(Part::Text(std::mem::take(&mut self.rest)));
        Ok(parts.into_iter().filter(Part::is_something).collect())
    }

    /// Reads a variable behind its `${`.
    fn variable(&mut self) -> Result<Part<'a>, Mistake> {
        let begin = self.rest;
        let no_end = || {
            mistake(format!("`${{{}` has no end", cut(begin)))
                .advice("close it, as in ${HOME}; for a ${ that means itself write $${")
        };
        let (inside, after) = begin.split_once('}').ok_or_else(no_end)?;
        if self.is_feed && is_reference(inside) {
            self.rest = after;
            return Ok(Part::Reference(inside));
        }
        let (name, has_default) = match inside.split_once(":-") {
            Some((name, _)) => (name, true),
            None => (inside, false),
        };
        if !is_name(name) {
            return Err(mistake(format!("`{}` is no name of a variable", cut(name)))
                .example("${NAME} or ${NAME:-default}")
                .advice("for a ${ that means itself write $${"));
        }
        if !has_default {
            self.rest = after;
            return Ok(Part::Variable { name, default: None });
        }
        if self.depth == MANIFEST_DEFAULTS_MAX {
            let max = MANIFEST_DEFAULTS_MAX;
            let text = format!("more than {max} defaults stand within one another");
            return Err(mistake(format!("{text}: manifest_defaults_max is {max}")));
        }
        self.rest = &begin[name.len() + 2..];
        self.depth += 1;
        let default = self.parts()?;
        self.depth -= 1;
        self.rest = self.rest.strip_prefix('}').ok_or_else(no_end)?;
        Ok(Part::Variable { name, default: Some(default) })
    }
}

impl Part<'_> {
    fn is_something(&self) -> bool {
        !matches!(self, Part::Text(""))
    }
}

/// Whether the text within the braces is a reference of a feed, and can't be a variable: it has a
/// path, as `metadata.mood`, or a name with `-`, as `market-summary`.
fn is_reference(inside: &str) -> bool {
    let text = format!("${{{inside}}}");
    !is_name(inside) && !inside.contains(":-") && whole(&text).is_some()
}

fn is_name(text: &str) -> bool {
    let begins = text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
    begins && text.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(source: &str) -> Result<String, String> {
        let environment = |name: &str| match name {
            "A" => Some("a".to_owned()),
            "EMPTY" => Some(String::new()),
            "DOLLAR" => Some("${A}".to_owned()),
            _ => None,
        };
        filled(source, &environment, false).map_err(|it| it.message.into())
    }

    #[test]
    fn a_reference_to_metadata_stays_in_feeds_and_only_there() {
        let source = "/${A}/${metadata.context.project}";
        let none = |name: &str| (name == "A").then(|| "a".to_owned());
        let of = |is_feed| filled(source, &none, is_feed).ok();
        assert_eq!(of(true).as_deref(), Some("/a/${metadata.context.project}"));
        let feeds = "${market-summary} of ${prices.dax[0]}, ${market-summary.dax}";
        assert_eq!(filled(feeds, &none, true).ok().as_deref(), Some(feeds));
        for source in ["${market-summary}", "${prices.dax}"] {
            let told = format!("{:?}", filled(source, &none, false).unwrap_err());
            assert!(told.contains("is no name of a variable") && told.contains("$${"), "{told}");
        }
        assert_eq!(of(false), None);
        let told = filled("${metadata}", &none, true).map_err(|it| it.message.to_string());
        assert_eq!(told, Err("${metadata} names no field".to_owned()));
    }

    #[test]
    fn a_variable_is_filled_in() {
        let check = |source: &str, expected: &str| assert_eq!(of(source).as_deref(), Ok(expected));
        check("${A}", "a");
        check("<${A}${A}>", "<aa>");
        check("${B:-b}", "b");
        check("${A:-b}", "a");
        check("${B:-}", "");
        check("${EMPTY}", "");
        check("${EMPTY:-x}", "x");
        check("${B:-:-}", ":-");
        check("${DOLLAR}", "${A}");
        check("$A $ {A} $$ }", "$A $ {A} $$ }");
        check("$${A}", "${A}");
        check("$$${A}", "$${A}");
    }

    #[test]
    fn a_default_may_have_variables() {
        let check = |source: &str, expected: &str| assert_eq!(of(source).as_deref(), Ok(expected));
        check("${B:-${A}}", "a");
        check("<${B:-1${C:-2${A}3}4}>", "<12a34>");
        check("${EMPTY:-${B:-${C:-${A}}}}", "a");
        check("${A:-${B}}", "a");
        check("${B:-${EMPTY}}", "");
        check("${B:-${DOLLAR}}", "${A}");
        check("${B:-${EMPTY:-${A}}:${A}}${A}", "a:aa");
        check("${B:-$${A}}", "${A}");
        check("${B:-$A}", "$A");
    }

    #[test]
    fn braces_of_a_default_come_in_pairs() {
        let check = |source: &str, expected: &str| assert_eq!(of(source).as_deref(), Ok(expected));
        check("${B:-{\"a\": {}}}", "{\"a\": {}}");
        check("${A:-{\"a\": {}}}", "a");
        check("{${B:-{${A}}}}", "{{a}}");
        check("${B:-}}", "}");
        check("}{", "}{");
    }

    #[test]
    fn a_variable_with_an_empty_default_is_left_out_in_quotes_too() {
        let kind = |value: &str| {
            let text = format!("key: {value}");
            let mut node = crate::manifest::yaml::read(text.as_bytes()).unwrap();
            expand(&mut node, &|name| (name == "A").then(|| "a".to_owned()), &mut Vec::new());
            node.key("key").and_then(|it| it.text().map(str::to_owned))
        };
        for value in ["${B:-}", "\"${B:-}\"", "'${B:-}'", "\"${B:-${C:-}}\""] {
            assert_eq!(kind(value), None, "{value}");
        }
        assert_eq!(kind("\"${A:-}\"").as_deref(), Some("a"));
        assert_eq!(kind("\"${B:-}${B:-}\"").as_deref(), Some(""));
        assert_eq!(kind("\"\"").as_deref(), Some(""));
    }

    #[test]
    fn what_can_not_be_filled_in_is_told() {
        let check = |source: &str, expected: &str| assert_eq!(of(source), Err(expected.to_owned()));
        check("${B}", "the variable B isn't set, and has no default");
        check("a${A", "`${A` has no end");
        check("${}", "`` is no name of a variable");
        check("${A-b}", "`A-b` is no name of a variable");
        check("${1}", "`1` is no name of a variable");
        check("${A${A}}", "`A${A` is no name of a variable");
        check("${A:?none}", "`A:?none` is no name of a variable");
        check("${B:-${C}}", "the variable C isn't set, and has no default");
        check("${A:-${C-}}", "`C-` is no name of a variable");
        check("${A:-${B}", "`${A:-${B}` has no end");
        check("${B:-{}", "`${B:-{}` has no end");
        let deep = |depth: usize| "${B:-".repeat(depth) + &"}".repeat(depth);
        check(
            &deep(17),
            "more than 16 defaults stand within one another: \
                          manifest_defaults_max is 16",
        );
        assert_eq!(of(&deep(16)), Ok(String::new()));
    }
}
