//! Replaces `${VAR}` and `${VAR:-default}` in the values of a file by the values of variables, when
//! the file is read.
//!
//! The value of a variable isn't scanned again. `$${` stands for `${`.

use crate::manifest::mistake::{Mistake, cut};
use crate::manifest::yaml::{Node, Pair, Scalar, Value, kind_of};

/// Looks up a variable of the environment. Returns None if the variable isn't set.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

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

/// Whether a value is a variable with an empty default, and nothing else.
fn is_optional(source: &str) -> bool {
    let name = source.strip_prefix("${").and_then(|it| it.strip_suffix(":-}"));
    name.is_some_and(is_name)
}

fn filled(source: &str, environment: Environment<'_>, is_feed: bool) -> Result<String, Mistake> {
    let mistake = |text: String| Mistake::new(Default::default(), text);
    let (mut text, mut rest) = (String::new(), source);
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            text += before;
            text += "${";
            rest = after;
            continue;
        }
        text += before;
        let Some((inside, after)) = after.split_once('}') else {
            return Err(mistake(format!("`${{{}` has no end", cut(after)))
                .advice("close it, as in ${HOME}; for a ${ that means itself write $${"));
        };
        if is_feed && (inside.starts_with("metadata.") || inside.starts_with("metadata[")) {
            text += &format!("${{{inside}}}");
            rest = after;
            continue;
        }
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if !is_name(name) {
            return Err(mistake(format!("`{}` is no name of a variable", cut(name)))
                .example("${NAME} or ${NAME:-default}"));
        }
        let set = environment(name).filter(|it| default.is_none() || !it.is_empty());
        let Some(value) = set.or_else(|| default.map(str::to_owned)) else {
            if is_feed && name == "metadata" {
                return Err(mistake("${metadata} names no field".to_owned())
                    .advice("write ${metadata.FIELD}, with a field of the agent's metadata"));
            }
            return Err(mistake(format!("the variable {name} isn't set, and has no default"))
                .advice(format!("set it, or write a default: ${{{name}:-default}}")));
        };
        text += &value;
        rest = after;
    }
    Ok(text + rest)
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
    fn a_variable_with_an_empty_default_is_left_out_in_quotes_too() {
        let kind = |value: &str| {
            let text = format!("key: {value}");
            let mut node = crate::manifest::yaml::read(text.as_bytes()).unwrap();
            expand(&mut node, &|name| (name == "A").then(|| "a".to_owned()), &mut Vec::new());
            node.key("key").and_then(|it| it.text().map(str::to_owned))
        };
        for value in ["${B:-}", "\"${B:-}\"", "'${B:-}'"] {
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
    }
}
