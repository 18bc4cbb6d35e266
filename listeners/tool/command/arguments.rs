//! The arguments of a program: those that the manifest lists, with fields of the message in them.
//!
//! Each value is one whole argument. A value that stands alone never begins with `-`, unless the
//! argument `--` comes before it, so that the program doesn't take it for an option.

use serde_json::Value;

use super::super::text::cut;

/// The argument after which programs take no options.
const DASHES: &str = "--";

/// An argument of a program.
#[derive(Debug, PartialEq)]
pub(super) enum Argument {
    /// An argument that stands in the manifest.
    Text(String),
    /// The value of a field of the message.
    Field {
        /// The text before the value, such as `--n=`. Empty if the value stands alone.
        before: String,
        name: String,
        /// Whether the argument `--` comes before this one.
        is_behind_dashes: bool,
    },
}

/// Reads the arguments of a manifest. `fields` are the fields of the message.
///
/// # Errors
/// If an argument names an unknown field, or has a field within a longer text.
pub(super) fn read(arguments: &[String], fields: &[String]) -> Result<Vec<Argument>, String> {
    let mut is_behind_dashes = false;
    let mut all = Vec::new();
    for argument in arguments {
        all.push(match split(argument) {
            Some((before, name)) if fields.iter().any(|it| it == name) => {
                let (before, name) = (before.to_owned(), name.to_owned());
                Argument::Field { before, name, is_behind_dashes }
            }
            Some(_) => {
                let there: Vec<String> = fields.iter().map(|it| format!("{{{it}}}")).collect();
                let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
                return Err(format!("`{argument}` is no field of what comes in; there is {there}"));
            }
            None => {
                let within = |it: &&String| argument.contains(&format!("{{{it}}}"));
                if let Some(name) = fields.iter().find(within) {
                    return Err(format!(
                        "`{argument}`: a field is an argument of its own, `{{{name}}}`, or stands \
                         behind a name and `=`, as in `--{name}={{{name}}}`"
                    ));
                }
                is_behind_dashes |= argument == DASHES;
                Argument::Text(argument.clone())
            }
        });
    }
    Ok(all)
}

/// Returns the text before the field in an argument such as `{n}` or `--n={n}`, and the field. None
/// for any other argument.
fn split(argument: &str) -> Option<(&str, &str)> {
    let rest = argument.strip_suffix('}')?;
    let (before, name) = rest.split_once('{')?;
    let is_option = before.strip_suffix('=').is_some_and(is_name);
    ((before.is_empty() || is_option) && is_name(name)).then_some((before, name))
}

/// Whether a text is the name of an option or of a field: letters, digits, `-`, `_` and `.`.
fn is_name(text: &str) -> bool {
    let is_part = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    text.contains(|it: char| it.is_ascii_alphanumeric()) && text.chars().all(is_part)
}

/// Returns the arguments of a program for a message. A field without a value yields no argument,
/// and a list yields one argument for each item.
///
/// # Errors
/// If a value that stands alone begins with `-`.
pub(super) fn filled(arguments: &[Argument], message: &Value) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for argument in arguments {
        let (before, name, is_free) = match argument {
            Argument::Text(it) => {
                all.push(it.clone());
                continue;
            }
            Argument::Field { before, name, is_behind_dashes } => {
                (before, name, *is_behind_dashes || !before.is_empty())
            }
        };
        let values: Vec<String> = match message.get(name) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) => items.iter().map(word).collect(),
            Some(it) => vec![word(it)],
        };
        if let Some(it) = values.iter().find(|it| !is_free && it.starts_with('-')) {
            return Err(format!(
                "{name} begins with `-`, and the program could take it for an option: `{}`",
                cut(it)
            ));
        }
        all.extend(values.into_iter().map(|it| format!("{before}{it}")));
    }
    Ok(all)
}

fn word(value: &Value) -> String {
    match value {
        Value::String(it) => it.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(all: &[&str]) -> Result<Vec<Argument>, String> {
        let all: Vec<String> = all.iter().map(|it| (*it).to_owned()).collect();
        read(&all, &["n".to_owned(), "all".to_owned()])
    }

    #[track_caller]
    fn check(all: &[&str], message: &Value, expected: Result<&[&str], &str>) {
        let filled = filled(&arguments(all).unwrap(), message);
        let expected = expected.map(|it| it.iter().map(|it| (*it).to_owned()).collect());
        assert_eq!(filled, expected.map_err(str::to_owned), "{all:?}");
    }

    #[test]
    fn a_value_is_one_whole_argument() {
        let text = json!({"n": "$(touch x); 'a' * b", "all": [1, "u v"]});
        let value = "$(touch x); 'a' * b";
        check(&["a", "{n}", "{all}"], &text, Ok(&["a", value, "1", "u v"]));
        check(
            &["--n={n}", "if={n}"],
            &text,
            Ok(&[&format!("--n={value}"), &format!("if={value}")]),
        );
        check(&["--all={all}", "{n}"], &json!({"all": ["x", "y"]}), Ok(&["--all=x", "--all=y"]));
        check(&["{ print $1 }", "{}", "a{2}"], &text, Ok(&["{ print $1 }", "{}", "a{2}"]));
    }

    #[test]
    fn a_value_that_stands_alone_never_is_an_option() {
        let option = json!({"n": "--exec=sh", "all": ["a", "-x"]});
        let why = "n begins with `-`, and the program could take it for an option: `--exec=sh`";
        check(&["{n}"], &option, Err(why));
        let why = "all begins with `-`, and the program could take it for an option: `-x`";
        check(&["{all}"], &option, Err(why));
        check(&["--", "{n}"], &option, Ok(&["--", "--exec=sh"]));
        check(&["--n={n}"], &option, Ok(&["--n=--exec=sh"]));
        check(
            &["{n}"],
            &json!({"n": -5}),
            Err("n begins with `-`, and the program could take it for an option: `-5`"),
        );
    }

    #[test]
    fn a_field_never_stands_within_a_longer_text() {
        let check = |argument: &str, expected: &str| {
            let why = arguments(&[argument]).unwrap_err();
            assert!(why.contains(expected), "{why}");
        };
        for argument in ["echo {n}", "{n}.txt", "--n={n}{n}", "a b={n}", "{n}{all}", "--n='{n}'"] {
            check(argument, "a field is an argument of its own");
        }
        check("{no}", "`{no}` is no field of what comes in; there is {n}, {all}");
        check("--n={no}", "`--n={no}` is no field of what comes in; there is {n}, {all}");
    }
}
