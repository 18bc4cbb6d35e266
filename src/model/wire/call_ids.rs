//! The ids of calls in a prompt, which are the provider's, and the call that each result belongs
//! to. A reply may have two calls with one id, and calls without an id.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::model::{Call, Prompt, PromptMessage};

/// Returns the call whose result each message is. Of calls with one id, the first without a result
/// comes first.
pub(crate) fn called<'a>(
    messages: impl Iterator<Item = &'a PromptMessage>,
) -> Vec<Option<&'a Call>> {
    let (mut open, mut all): (Vec<&Call>, Vec<&Call>) = (Vec::new(), Vec::new());
    messages
        .map(|it| {
            if !it.calls.is_empty() {
                open = it.calls.iter().collect();
                all.extend(&it.calls);
            }
            let id = it.of.as_deref()?;
            match open.iter().position(|it| it.id == id) {
                Some(place) => Some(open.remove(place)),
                None => all.iter().rfind(|it| it.id == id).copied(),
            }
        })
        .collect()
}

/// Gives each call without an id an id of its own, for wires that need one.
pub(crate) fn with_ids(prompt: &Prompt) -> Cow<'_, Prompt> {
    let calls = || prompt.messages.iter().flat_map(|it| &it.calls);
    if calls().all(|it| !it.id.is_empty()) {
        return Cow::Borrowed(prompt);
    }
    let taken: BTreeSet<String> = calls().map(|it| it.id.clone()).collect();
    let mut free = (1..).map(|it| format!("call_{it}")).filter(|it| !taken.contains(it));
    let mut prompt = prompt.clone();
    let mut given: Vec<String> = Vec::new();
    for message in &mut prompt.messages {
        if !message.calls.is_empty() {
            given.clear();
        }
        for call in message.calls.iter_mut().filter(|it| it.id.is_empty()) {
            call.id = free.next().unwrap_or_default();
            given.push(call.id.clone());
        }
        if message.of.as_deref() == Some("") && !given.is_empty() {
            message.of = Some(given.remove(0));
        }
    }
    Cow::Owned(prompt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Role;

    fn prompt(calls: &[(&str, &str)]) -> Prompt {
        let mut prompt = Prompt::new("").user("Go.").assistant("");
        prompt.messages[1].calls =
            calls.iter().map(|(id, name)| Call::new(*id, *name, "{}")).collect();
        for (id, name) in calls {
            let mut result = PromptMessage::new(Role::Tool, *name);
            result.of = Some((*id).to_owned());
            prompt.messages.push(result);
        }
        prompt
    }

    #[test]
    fn two_calls_with_one_id_have_a_result_each() {
        let prompt = prompt(&[("x", "add"), ("", "say"), ("x", "sum"), ("", "end")]);
        let called = called(prompt.messages.iter());
        let names: Vec<_> = called.iter().map(|it| it.map(|it| &*it.name)).collect();
        assert_eq!(names, [None, None, Some("add"), Some("say"), Some("sum"), Some("end")]);
    }

    #[test]
    fn a_call_without_an_id_gets_one_that_no_other_has() {
        let prompt = prompt(&[("call_1", "add"), ("", "say"), ("", "end")]);
        let filled = with_ids(&prompt);
        let ids: Vec<&str> = filled.messages[1].calls.iter().map(|it| &*it.id).collect();
        assert_eq!(ids, ["call_1", "call_2", "call_3"]);
        let of: Vec<_> = filled.messages[2..].iter().filter_map(|it| it.of.as_deref()).collect();
        assert_eq!(of, ids);
    }
}
