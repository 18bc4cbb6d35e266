//! Writes a prompt as a request, sends requests, and explains why a request got no answer.

use std::error::Error as StdError;
use std::io;

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Response, Url};
use serde_json::{Map, Value};

use crate::model::error::{Error, Kind, Wait};
use crate::model::prompt::Prompt;
use crate::model::remote::Settings;
use crate::model::wire::{RequestContent, SentTools};
use crate::tls_trust;

/// Returns the body of a request as the provider writes it, changed by the settings' `extra` keys.
/// `host` is that of the server.
pub(super) fn body(settings: &Settings, host: &str, prompt: &Prompt, tools: &SentTools) -> Value {
    let prompt = &*tools.prompt(prompt);
    let content = RequestContent {
        model: &settings.model,
        max_tokens: prompt.max_tokens.or(settings.max_tokens),
        temperature: prompt.temperature.or(settings.temperature),
        effort: settings.effort,
        is_structured: settings.is_structured,
        is_streamed: settings.is_streamed,
        tools: &tools.all,
        window: settings.window,
        host,
        extra: &settings.extra,
        prompt,
    };
    let mut body = settings.provider.body(&content);
    // A server refuses both keys together, so the author's own one stands alone.
    if LIMIT_KEYS.iter().any(|it| settings.extra.contains_key(*it)) {
        LIMIT_KEYS.iter().for_each(|it| drop(body.remove(*it)));
    }
    merge(&mut body, &settings.extra);
    body.into()
}

/// The keys of chat completions for the most tokens of a reply.
const LIMIT_KEYS: [&str; 2] = ["max_tokens", "max_completion_tokens"];

/// Puts keys into a JSON object. Objects are merged key by key, `null` removes a key, and any other
/// value replaces what stands there.
fn merge(body: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (key, value) in extra {
        match (body.get_mut(key), value) {
            (_, Value::Null) => drop(body.remove(key)),
            (Some(Value::Object(own)), Value::Object(more)) => merge(own, more),
            (_, Value::Object(more)) => {
                let mut own = Map::new();
                merge(&mut own, more);
                body.insert(key.clone(), own.into());
            }
            (_, value) => drop(body.insert(key.clone(), value.clone())),
        }
    }
}

/// Sends a request, and waits for the head of the answer.
pub(super) async fn send(
    client: &Client,
    url: &Url,
    body: Bytes,
) -> Result<Response, reqwest::Error> {
    let request = client.post(url.clone()).header(ACCEPT, "text/event-stream");
    request.header(CONTENT_TYPE, "application/json").body(body).send().await
}

/// The error of a request that got no answer.
pub(super) fn unsent(error: &reqwest::Error, url: &Url, settings: &Settings) -> Error {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    if error.is_connect() && error.is_timeout() {
        let limit = settings.limits.connect_time_max;
        let text = format!("no connection to {host}:{port} in time: connect_time_max is {limit:?}");
        return Error::new(Kind::TimedOut(Wait::Connection), text);
    }
    if !error.is_connect() {
        let text = format!("{host}:{port} hung up before it answered: {}", root(error));
        return Error::new(Kind::Cut, text);
    }
    if let Some(why) = causes(error).find_map(tls) {
        let text = format!("no connection to {host}:{port}: {why}");
        return Error { retry: false, ..Error::new(Kind::Unreachable, text) };
    }
    let text = format!("no connection to {host}:{port}: {}", root(error));
    Error::new(Kind::Unreachable, text)
}

/// An error and its causes.
fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |it: &&'a (dyn StdError + 'static)| (*it).source())
}

/// The text of the last cause. The errors before it may show a URL.
pub(super) fn root(error: &reqwest::Error) -> String {
    causes(error).skip(1).last().map_or_else(|| "nobody knows why".to_owned(), ToString::to_string)
}

/// What is wrong with TLS, if the error comes from TLS.
fn tls(error: &(dyn StdError + 'static)) -> Option<String> {
    if let Some(error) = error.downcast_ref::<rustls::Error>() {
        return Some(tls_trust::explained(error).map_or_else(|| error.to_string(), str::to_owned));
    }
    // The `source` of an IO error isn't the error inside it, but that error's source.
    error.downcast_ref::<io::Error>()?.get_ref().and_then(|it| tls(it))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::piece::Call;
    use crate::model::prompt::{Role, Tool};
    use crate::model::remote::Remote;
    use crate::model::wire_name::Wire;

    fn whole_body(settings: &Settings, prompt: &Prompt) -> Value {
        body(settings, "127.0.0.1", prompt, &SentTools::new(Wire::OpenAiChat, 9, &prompt.tools))
    }

    fn settings() -> Settings {
        Remote::at(Wire::OpenAiChat, "http://127.0.0.1:1/v1", "m").max_tokens(64).temperature(0.5)
    }

    #[test]
    fn a_prompt_is_a_request() {
        let prompt = Prompt::new("Be brief.").user("2+2?").assistant("4").user("Sure?");
        let expected = json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "2+2?" },
                { "role": "assistant", "content": "4" },
                { "role": "user", "content": "Sure?" },
            ],
            "stream": true,
            "stream_options": { "include_usage": true },
            "max_tokens": 64,
            "temperature": 0.5,
        });
        assert_eq!(whole_body(&settings(), &prompt), expected);
    }

    #[test]
    fn calls_and_their_results_have_their_ids() {
        let mut prompt = Prompt::new("").user("6*7?").assistant("").said(Role::Tool, "42");
        prompt.messages[1].calls = vec![Call::new("c1", "calculate", r#"{"expression":"6*7"}"#)];
        prompt.messages[2].of = Some("c1".to_owned());
        let call = json!({ "name": "calculate", "arguments": r#"{"expression":"6*7"}"# });
        let expected = json!([
            { "role": "user", "content": "6*7?" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c1", "type": "function", "function": call },
            ] },
            { "role": "tool", "tool_call_id": "c1", "content": "42" },
        ]);
        assert_eq!(whole_body(&settings(), &prompt)["messages"], expected);
    }

    #[test]
    fn a_model_that_is_to_call_nothing_is_told_so_beside_its_tools() {
        let mut prompt = Prompt::new("").user("Hi");
        prompt.without_calls = true;
        assert_eq!(whole_body(&settings(), &prompt).get("tool_choice"), None);
        prompt.tools = vec![Tool::new("add", "Adds.", json!({ "type": "object" }))];
        let body = whole_body(&settings(), &prompt);
        assert_eq!(
            (&body["tool_choice"], &body["tools"][0]["type"]),
            (&json!("none"), &json!("function"))
        );
    }

    #[test]
    fn what_a_prompt_says_counts_more() {
        let mut prompt = Prompt::new("").user("Hi");
        prompt.max_tokens = Some(8);
        prompt.temperature = Some(0.0);
        prompt.top_p = Some(0.25);
        prompt.seed = Some(7);
        prompt.stop = vec!["END".to_owned()];
        prompt.tools = vec![Tool::new("add", "Adds.", json!({ "type": "object" }))];
        let Value::Object(extra) = json!({ "stream_options": null, "top_k": 40, "seed": 8 }) else {
            unreachable!()
        };
        let expected = json!({
            "model": "m",
            "messages": [{ "role": "user", "content": "Hi" }],
            "stream": true,
            "max_tokens": 8,
            "temperature": 0.0,
            "top_p": 0.25,
            "seed": 8,
            "stop": ["END"],
            "top_k": 40,
            "tools": [{
                "type": "function",
                "function": {
                    "name": "add",
                    "description": "Adds.",
                    "parameters": { "type": "object", "properties": {} },
                },
            }],
        });
        assert_eq!(whole_body(&settings().extra(extra), &prompt), expected);
    }

    #[test]
    fn extra_keys_are_merged_deeply() {
        let check = |wire: Wire, extra: Value, key: &str, expected: Value| {
            let Value::Object(extra) = extra else { unreachable!() };
            let settings = Remote::at(wire, "http://127.0.0.1:1/v1", "m").max_tokens(64);
            let settings = settings.window(4_096).temperature(0.5).extra(extra);
            let (prompt, tools) = (Prompt::new("").user("Hi"), SentTools::new(wire, 9, &[]));
            let body = body(&settings, "127.0.0.1", &prompt, &tools);
            assert_eq!(body.get(key).cloned().unwrap_or_default(), expected, "{key}");
        };
        let options = json!({ "options": { "top_k": 40, "num_ctx": 8_192, "temperature": null } });
        let expected = json!({ "num_ctx": 8_192, "num_predict": 64, "top_k": 40 });
        check(Wire::Ollama, options, "options", expected);
        let deep = json!({ "generationConfig": { "thinkingConfig": { "x": 1, "y": null } } });
        let expected = json!({
            "maxOutputTokens": 64, "temperature": 0.5, "thinkingConfig": { "x": 1 },
        });
        check(Wire::Gemini, deep, "generationConfig", expected);
        let chat = Wire::OpenAiChat;
        check(chat, json!({ "stream_options": null }), "stream_options", Value::Null);
        check(chat, json!({ "stop": ["A"] }), "stop", json!(["A"]));
        // Two keys for the limit of a reply are refused together.
        let long = || json!({ "max_completion_tokens": 9 });
        check(chat, long(), "max_tokens", Value::Null);
        check(chat, long(), "max_completion_tokens", json!(9));
    }
}
