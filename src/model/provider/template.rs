//! Writes a prompt as the request that a provider file describes.

use serde_json::{Map, Value, json};

use crate::model::attachments::Attached;
use crate::model::piece::Call;
use crate::model::prompt::{Prompt, PromptMessage, Role, Tool};
use crate::model::provider_file::keys::RequestFile;
use crate::model::wire::{RequestContent, arguments, called, with_ids};

/// Placeholders of the body.
const BODY: [&str; 11] = [
    "model",
    "messages",
    "system",
    "max_tokens",
    "temperature",
    "top_p",
    "seed",
    "stop",
    "effort",
    "stream",
    "tools",
];
const SYSTEM: [&str; 1] = ["text"];
const USER: [&str; 2] = ["text", "attachments"];
const ASSISTANT: [&str; 2] = ["text", "calls"];
const RESULT: [&str; 3] = ["text", "call_id", "name"];
const CALL: [&str; 4] = ["id", "name", "arguments", "input"];
const TOOL: [&str; 3] = ["name", "description", "parameters"];
const ATTACHMENT: [&str; 3] = ["media_type", "base64", "data_url"];

/// A request's body, and the shapes of its messages, calls, tools and attachments.
#[derive(Clone, Debug)]
pub(super) struct Template {
    body: Value,
    /// None if the body itself has a place for the system text.
    system: Option<Value>,
    user: Value,
    assistant: Value,
    result: Value,
    call: Value,
    tool: Value,
    attachment: Option<Value>,
}

impl Template {
    /// Makes a template from the file's shapes. The default shapes are those of chat completions.
    /// Mistakes are added to `wrong`, each with its key.
    pub(super) fn new(file: RequestFile, wrong: &mut Vec<(String, String)>) -> Template {
        let RequestFile { body, messages, call, tool, attachment } = file;
        if !body.is_object() {
            let text = "a request's body is keys with values, such as `model: \"{model}\"`";
            wrong.push(("request.body".to_owned(), text.to_owned()));
        }
        check(&body, "request.body", &BODY, wrong);
        let attachments = attachment.as_ref();
        attachments.into_iter().for_each(|it| check(it, "request.attachment", &ATTACHMENT, wrong));
        let mut shape = |key: &str, given: Option<Value>, known: &[&str], usual: Value| {
            let it = given.unwrap_or(usual);
            check(&it, &format!("request.{key}"), known, wrong);
            it
        };
        let text = |role: &str| json!({ "role": role, "content": "{text}" });
        let has_system = messages.system.is_some() || !holds(&body, "system");
        let system = shape("messages.system", messages.system, &SYSTEM, text("system"));
        let user = shape("messages.user", messages.user, &USER, text("user"));
        let said = json!({ "role": "assistant", "content": "{text}", "tool_calls": "{calls}" });
        let assistant = shape("messages.assistant", messages.assistant, &ASSISTANT, said);
        let said = json!({ "role": "tool", "tool_call_id": "{call_id}", "content": "{text}" });
        let result = shape("messages.result", messages.result, &RESULT, said);
        let function = json!({ "name": "{name}", "arguments": "{arguments}" });
        let usual = json!({ "id": "{id}", "type": "function", "function": function });
        let call = shape("call", call, &CALL, usual);
        let of_tool = ["name", "description", "parameters"];
        let function: Map<String, Value> =
            of_tool.iter().map(|it| ((*it).to_owned(), format!("{{{it}}}").into())).collect();
        let usual = json!({ "type": "function", "function": function });
        let tool = shape("tool", tool, &TOOL, usual);
        let system = has_system.then_some(system);
        Template { body, system, user, assistant, result, call, tool, attachment }
    }

    /// Whether messages can hold images and documents.
    pub(super) fn takes_attachments(&self) -> bool {
        self.attachment.is_some() && holds(&self.user, "attachments")
    }

    /// Writes a prompt as the JSON object of a request.
    pub(super) fn body(&self, content: &RequestContent<'_>) -> Map<String, Value> {
        let prompt = content.prompt;
        let value = |name: &str| match name {
            "model" => content.model.into(),
            "messages" => self.messages(prompt).into(),
            "system" => prompt.system.as_str().into(),
            "max_tokens" => content.max_tokens.into(),
            "temperature" => content.temperature.into(),
            "top_p" => prompt.top_p.into(),
            "seed" => prompt.seed.into(),
            "stop" => prompt.stop.as_slice().into(),
            "effort" => content.effort.map(|it| it.as_str()).into(),
            "stream" => content.is_streamed.into(),
            // A file can't express that tools are offered but must not be called.
            "tools" if prompt.without_calls => Value::Null,
            "tools" => content.tools.iter().filter_map(|it| self.tool(it)).collect(),
            _ => Value::Null,
        };
        match fill(&self.body, &value) {
            Some(Value::Object(body)) => body,
            _ => Map::new(),
        }
    }

    fn messages(&self, prompt: &Prompt) -> Vec<Value> {
        let text = |name: &str| match name {
            "text" => prompt.system.as_str().into(),
            _ => Value::Null,
        };
        let system = self.system.iter().filter(|_| !prompt.system.is_empty());
        let system = system.filter_map(|it| fill(it, &text));
        let prompt = with_ids(prompt);
        let said = prompt.messages.iter().zip(called(prompt.messages.iter()));
        system.chain(said.filter_map(|(it, of)| self.said(it, of))).collect()
    }

    /// Fills in the shape of a message. `of` is the call whose result it is.
    fn said(&self, said: &PromptMessage, of: Option<&Call>) -> Option<Value> {
        let id = said.of.as_deref().unwrap_or_default();
        let value = |name: &str| match name {
            "text" => said.text.as_str().into(),
            "calls" => said.calls.iter().filter_map(|it| self.call(it)).collect(),
            "call_id" => id.into(),
            "name" => of.map(|it| it.name.as_str()).into(),
            "attachments" => said.attached.iter().filter_map(|it| self.attachment(it)).collect(),
            _ => Value::Null,
        };
        let shape = match said.role {
            Role::Assistant => &self.assistant,
            Role::Tool => &self.result,
            Role::User => &self.user,
        };
        fill(shape, &value)
    }

    fn call(&self, Call { id, name, arguments: text }: &Call) -> Option<Value> {
        fill(&self.call, &|key: &str| match key {
            "id" => id.as_str().into(),
            "name" => name.as_str().into(),
            "arguments" => text.as_str().into(),
            "input" => arguments(text),
            _ => Value::Null,
        })
    }

    fn tool(&self, tool: &Tool) -> Option<Value> {
        fill(&self.tool, &|name: &str| match name {
            "name" => tool.name.as_str().into(),
            "description" => tool.description.as_str().into(),
            "parameters" => tool.parameters.clone(),
            _ => Value::Null,
        })
    }

    fn attachment(&self, it: &Attached) -> Option<Value> {
        fill(self.attachment.as_ref()?, &|name: &str| match name {
            "media_type" => it.media_type.as_str().into(),
            "base64" => (&*it.base64).into(),
            "data_url" => it.data_url().into(),
            _ => Value::Null,
        })
    }
}

/// Fills in placeholders. A value that is a single placeholder is left out if its filling is empty,
/// unless the placeholder is `{text}`, `{arguments}` or `{input}`. An object whose values are all
/// left out is left out, too. A list stays even if it is empty.
fn fill(template: &Value, value: &dyn Fn(&str) -> Value) -> Option<Value> {
    match template {
        Value::String(text) => match only(text) {
            Some(name) => {
                let it = value(name);
                let stays = matches!(name, "text" | "arguments" | "input");
                (stays || !is_empty(&it)).then_some(it)
            }
            None => Some(filled_text(text, value).into()),
        },
        Value::Array(items) => {
            let each = items.iter().flat_map(|it| match (it, fill(it, value)) {
                // A placeholder for a list is replaced by the items of the list.
                (Value::String(_), Some(Value::Array(all))) => all,
                (_, it) => it.into_iter().collect(),
            });
            Some(each.collect())
        }
        Value::Object(entries) => {
            let each = entries.iter().filter_map(|(key, it)| Some((key.clone(), fill(it, value)?)));
            let filled: Map<String, Value> = each.collect();
            (entries.is_empty() || !filled.is_empty()).then_some(filled.into())
        }
        it => Some(it.clone()),
    }
}

/// Replaces the placeholders in a text.
pub(super) fn filled_text(text: &str, value: &dyn Fn(&str) -> Value) -> String {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, name, after)) = next(rest) {
        filled += before;
        match value(name) {
            Value::Null => {}
            Value::String(it) => filled += &it,
            it => filled += &it.to_string(),
        }
        rest = after;
    }
    filled + rest
}

/// Returns the placeholder's name, if the whole text is a single placeholder.
fn only(text: &str) -> Option<&str> {
    match next(text)? {
        ("", name, "") => Some(name),
        _ => None,
    }
}

/// The name of the first placeholder in a text, between the texts before and after it.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find('{').map(|it| from + it) {
        let inside = &text[open + 1..];
        let end =
            inside.find(|it: char| !(it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_'));
        match end {
            Some(end) if end > 0 && inside[end..].starts_with('}') => {
                return Some((&text[..open], &inside[..end], &inside[end + 1..]));
            }
            _ => from = open + 1,
        }
    }
    None
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(it) => it.is_empty(),
        Value::Array(it) => it.is_empty(),
        Value::Object(it) => it.is_empty(),
        _ => false,
    }
}

/// Whether a template has a placeholder of this name somewhere.
fn holds(template: &Value, name: &str) -> bool {
    match template {
        Value::String(text) => names(text).any(|it| it == name),
        Value::Array(items) => items.iter().any(|it| holds(it, name)),
        Value::Object(entries) => entries.values().any(|it| holds(it, name)),
        _ => false,
    }
}

/// The names of all placeholders in a text.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, name, after) = next(rest)?;
        rest = after;
        Some(name)
    })
}

/// Adds a mistake to `wrong` for each unknown placeholder in a template.
fn check(template: &Value, key: &str, known: &[&str], wrong: &mut Vec<(String, String)>) {
    match template {
        Value::String(text) => check_text(text, key, known, wrong),
        Value::Array(items) => {
            let each = (0..).zip(items);
            each.for_each(|(at, it): (usize, _)| check(it, &format!("{key}[{at}]"), known, wrong));
        }
        Value::Object(entries) => {
            entries.iter().for_each(|(name, it)| check(it, &format!("{key}.{name}"), known, wrong));
        }
        _ => {}
    }
}

/// Adds a mistake to `wrong` for each unknown placeholder in a text.
pub(super) fn check_text(text: &str, key: &str, known: &[&str], wrong: &mut Vec<(String, String)>) {
    for name in names(text).filter(|it| !known.contains(it)) {
        let near = crate::schema::nearest(name, known.iter().copied());
        let there: Vec<String> = known.iter().map(|it| format!("{{{it}}}")).collect();
        let way = match near {
            Some(near) => format!("did you mean {{{near}}}?"),
            None => format!("there is {}", there.join(", ")),
        };
        wrong.push((key.to_owned(), format!("nothing is filled in for {{{name}}} here; {way}")));
    }
}
