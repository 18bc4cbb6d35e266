//! Conditions of actions that undo other actions. An undoing action runs only if the action that it
//! undoes succeeded, and if all earlier undoing actions for that action were skipped.

use serde_json::Value;

/// The path by which a condition refers to the status of an action.
const STATUS: &str = ".action_status";

/// The condition of an action that undoes the action `of`. `undone_by` has the ids of the actions
/// with which earlier `<rollback>`s undo `of`.
#[must_use]
pub fn condition(of: &str, undone_by: &[String]) -> String {
    let mut condition = format!("${{{of}{STATUS}}} == \"ok\"");
    for before in undone_by {
        condition += &format!(" and ${{{before}{STATUS}}} == \"skipped\"");
    }
    condition
}

/// Says in plain words why an action that undoes another one doesn't run. None if the id and the
/// condition aren't those of such an action. `written` is the text of the condition. `saw` has the
/// names in the condition, each with its value.
pub(super) fn why_not(id: &str, written: &str, saw: &[(String, Value)]) -> Option<String> {
    let (of, _) = id.rsplit_once("-undo")?;
    let own = condition(of, &[]);
    let begin = written.find(&own)?;
    let undoes = format!("{of}-undo");
    let of_block = |name: &str| {
        let id = name.strip_suffix(STATUS);
        id.is_none_or(|it| it != of && !it.starts_with(&undoes))
    };
    for (name, value) in saw.iter().filter(|(name, _)| !of_block(name)) {
        let (id, status) = (name.trim_end_matches(STATUS), value.as_str().unwrap_or("unknown"));
        if id == of && status != "ok" {
            return Some(format!("there is nothing to undo: the status of {of} is {status}"));
        }
        if id != of && status != "skipped" {
            return Some(format!("{of} is undone already, by {id}"));
        }
    }
    let block = written.get(..begin)?.trim_end_matches(" and (");
    let saw = saw.iter().filter(|(name, _)| of_block(name));
    let saw: Vec<String> = saw.map(|(name, value)| format!("{name} is {value}")).collect();
    let saw = if saw.is_empty() { String::new() } else { format!(", where {}", saw.join(", ")) };
    Some(format!("the block around <rollback> doesn't run: {block} doesn't hold{saw}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_action_that_undoes_nothing_says_why() {
        let written = condition("a", &["a-undo".to_owned()]);
        let check = |of: &str, before: &str, expected: Option<&str>| {
            let saw = [("a.action_status", of), ("a-undo.action_status", before)];
            let saw = saw.map(|(name, it)| (name.to_owned(), json!(it)));
            assert_eq!(why_not("a-undo-2", &written, &saw).as_deref(), expected);
        };
        check("ok", "ok", Some("a is undone already, by a-undo"));
        check("ok", "failed", Some("a is undone already, by a-undo"));
        check("failed", "skipped", Some("there is nothing to undo: the status of a is failed"));
        let around = format!("(b > 3) and ({written})");
        let saw = [("b", json!(2)), ("a.action_status", json!("ok"))];
        let saw = saw.map(|(name, it)| (name.to_owned(), it));
        let told = "the block around <rollback> doesn't run: (b > 3) doesn't hold, where b is 2";
        assert_eq!(why_not("a-undo", &around, &saw).as_deref(), Some(told));
        assert_eq!(why_not("a", "a > 3", &saw), None);
    }
}
