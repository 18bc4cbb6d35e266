//! The ids of calls in a prompt, which are the provider's, and the call that each result belongs
//! to. A reply may have two calls with one id, and calls without an id. An id goes back to the
//! server that gave it, and to no other: each server refuses other ids. Mistral takes nine letters
//! and digits, Anthropic letters, digits, `_` and `-`, OpenAI at most 40 or 64 characters.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::mem;

use crate::model::piece::Call;
use crate::model::prompt::{Prompt, PromptMessage};

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

/// Takes away the ids and the signed data that other servers than that of this model gave. A
/// message whose model isn't known keeps what it has.
pub(crate) fn without_foreign<'a>(prompt: &'a Prompt, model: &str) -> Cow<'a, Prompt> {
    let is_other = |it: &PromptMessage| it.written_by.as_deref().is_some_and(|it| it != model);
    if !prompt.messages.iter().any(|it| is_other(it) && !it.calls.is_empty()) {
        return Cow::Borrowed(prompt);
    }
    let mut prompt = prompt.clone();
    let mut foreign: Vec<String> = Vec::new();
    for message in &mut prompt.messages {
        if !message.calls.is_empty() {
            foreign.clear();
        }
        if is_other(message) {
            let is_there = url(message.written_by.as_deref().unwrap_or_default()) == url(model);
            if !is_there {
                message.signed.clear();
            }
            // One server may pass requests on to several providers.
            let lost = message.calls.iter_mut().filter(|it| !(is_there && is_for_all(&it.id)));
            foreign.extend(lost.map(|it| mem::take(&mut it.id)));
        }
        let of = message.of.as_ref();
        if let Some(place) = of.and_then(|of| foreign.iter().position(|it| it == of)) {
            foreign.remove(place);
            message.of = Some(String::new());
        }
    }
    Cow::Owned(prompt)
}

/// The URL in the description of a model.
fn url(model: &str) -> Option<&str> {
    model.rsplit_once(" at ").map(|(_, url)| url)
}

/// Whether an id is one that every provider but Mistral takes.
fn is_for_all(id: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '-');
    id.len() <= 40 && id.chars().all(is_plain)
}

/// Gives each call without an id an id of its own, for wires that need one. Every server takes
/// these ids: they are nine letters and digits.
pub(crate) fn with_ids(prompt: &Prompt) -> Cow<'_, Prompt> {
    let calls = || prompt.messages.iter().flat_map(|it| &it.calls);
    if calls().all(|it| !it.id.is_empty()) {
        return Cow::Borrowed(prompt);
    }
    let taken: BTreeSet<String> = calls().map(|it| it.id.clone()).collect();
    let mut free = (1..).map(|it| format!("call{it:05}")).filter(|it| !taken.contains(it));
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
    use crate::model::piece::Signed;
    use crate::model::prompt::Role;
    use crate::model::wire_name::Wire;

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
        let prompt = prompt(&[("call00001", "add"), ("", "say"), ("", "end")]);
        let filled = with_ids(&prompt);
        let ids: Vec<&str> = filled.messages[1].calls.iter().map(|it| &*it.id).collect();
        assert_eq!(ids, ["call00001", "call00002", "call00003"]);
        let of: Vec<_> = filled.messages[2..].iter().filter_map(|it| it.of.as_deref()).collect();
        assert_eq!(of, ids);
    }
    #[test]
    fn ids_and_signed_data_go_to_no_other_server() {
        let mut prompt = prompt(&[("functions.add:0", "add"), ("same", "say"), ("same", "end")]);
        prompt.messages[1].signed = vec![Signed::new(Wire::Gemini, 0, "{}")];
        prompt.messages[1].written_by = Some("kimi at https://one/v1".to_owned());
        let at = |model: &str| {
            let sent = without_foreign(&prompt, model).into_owned();
            let sent = with_ids(&sent).into_owned();
            let calls: Vec<_> = sent.messages[1].calls.iter().map(|it| it.id.clone()).collect();
            let of: Vec<_> = sent.messages.iter().filter_map(|it| it.of.clone()).collect();
            assert_eq!(calls, of);
            (calls, sent.messages[1].signed.len())
        };
        let check = |model: &str, ids: [&str; 3], signed: usize| {
            assert_eq!(at(model), (ids.map(str::to_owned).to_vec(), signed), "{model}");
        };
        check("kimi at https://one/v1", ["functions.add:0", "same", "same"], 1);
        check("claude at https://one/v1", ["call00001", "same", "same"], 1);
        check("kimi at https://two/v1", ["call00001", "call00002", "call00003"], 0);
    }
}
