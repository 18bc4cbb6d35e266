//! The arguments of a program that an author lists with references in them. What a reference stands
//! for may come from a model or a stranger, so it is always one whole argument, and never an option
//! that the author didn't write.

use serde_json::Value;

use super::variables::{Reference, pieces, references, whole};

/// Fails if the arguments that an author lists don't keep the value of a reference in one argument:
/// if a reference stands within a longer text, other than behind a name and `=`, or for the whole
/// list. Such a text may be a shell's command. `is_reference` says which references have values.
///
/// # Errors
/// Describes the argument.
pub fn check_places(
    listed: &Value,
    is_reference: impl Fn(&Reference<'_>) -> bool,
) -> Result<(), String> {
    let wrong = |text: &str| {
        Err(format!(
            "a value is an argument of its own, or stands behind a name and `=`, and not within \
             `{text}`"
        ))
    };
    let has = |text: &str| references(&pieces(text)).any(|it| is_reference(&it));
    match listed {
        Value::String(text) if has(text) => {
            Err(format!("a value is one argument, and `{text}` would be all of them"))
        }
        Value::Array(listed) => {
            let texts = listed.iter().filter_map(Value::as_str).filter(|it| has(it));
            let mut misplaced = texts.filter(|it| whole(it).is_none() && !is_option(it));
            misplaced.next().map_or(Ok(()), wrong)
        }
        _ => Ok(()),
    }
}

/// Fails if the value of a reference that is an argument of its own begins with `-`, since the
/// program could take it for an option. Behind the argument `--` it may begin so. `listed` has the
/// arguments as the author lists them, and `filled` has their values.
///
/// # Errors
/// Describes the argument.
pub fn check_options(listed: &Value, filled: &Value) -> Result<(), String> {
    let (Some(listed), Some(filled)) = (listed.as_array(), filled.as_array()) else {
        return Ok(());
    };
    for (number, (said, value)) in listed.iter().zip(filled).enumerate() {
        let is_alone = said != value && said.as_str().is_some_and(|it| whole(it).is_some());
        let is_behind_dashes = listed[..number].iter().any(|it| it == "--");
        let begins = value.as_str().is_some_and(|it| it.starts_with('-'));
        if is_alone && begins && !is_behind_dashes {
            let text = "begins with `-`, and the program could take it for an option";
            return Err(format!("[{number}] {text}"));
        }
    }
    Ok(())
}

/// Whether a text is a name, `=` and a reference.
fn is_option(text: &str) -> bool {
    let (name, value) = text.split_once('=').unwrap_or_default();
    let is_word = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    !name.is_empty() && name.chars().all(is_word) && whole(value).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_one_whole_argument() {
        let check = |listed: Value| check_places(&listed, |it| it.name == "trigger");
        for right in [
            json!(["ls", "${trigger.dir}", "--at=${trigger.dir}", "$HOME/x"]),
            json!(["sh", "-c", "echo $HOME ${other}"]),
            json!("ls"),
        ] {
            assert_eq!(check(right.clone()), Ok(()), "{right}");
        }
        let within = "a value is an argument of its own, or stands behind a name and `=`, and not \
                      within `echo ${trigger.text}`";
        let wrong = json!(["sh", "-c", "echo ${trigger.text}"]);
        assert_eq!(check(wrong), Err(within.to_owned()));
        assert!(check(json!("$trigger")).is_err());
        assert!(check(json!(["x", "a b=${trigger.text}"])).is_err());
    }

    #[test]
    fn a_value_is_no_option() {
        let listed = json!(["ls", "${trigger.dir}", "--", "${trigger.file}", "-l"]);
        let check = |filled: Value| check_options(&listed, &filled);
        assert_eq!(check(json!(["ls", "work", "--", "-x", "-l"])), Ok(()));
        let told = "[1] begins with `-`, and the program could take it for an option";
        assert_eq!(check(json!(["ls", "-la", "--", "x", "-l"])), Err(told.to_owned()));
    }
}
