//! What a manifest may say of a model.

use crate::limits::ModelLimits;
use crate::manifest::shape::{Key, Kind, Map, key, limit};

pub(super) const MODELS: &str = "Models by the names that listeners know them by.";
pub(super) const EXAMPLE: &str =
    "models: {local: {use: openai, url: \"http://127.0.0.1:8080/v1\", model: small}}";

const USE: &[(&str, &str)] = &[
    ("openai", "A server that streams chat completions as OpenAI's does."),
    ("scripted", "Replies that stand in a file."),
];

/// A model, of either kind.
pub(super) fn model() -> Kind {
    Kind::Use(vec![("openai", openai()), ("scripted", scripted())], None)
}

fn openai() -> Map {
    let url = "Where the API is: what stands before /chat/completions.";
    let model = "What the server calls the model.";
    let secret = "What is shown to the server, from the environment: the file itself holds no key.";
    let headers = "Further headers.";
    let max_tokens = "The tokens of a reply, where a prompt doesn't say.";
    let tokenizer = "The model's tokenizer.json, which counts the tokens of prompts.";
    let temperature = "How freely the model chooses, where a prompt doesn't say.";
    let extra = "What else each request holds; null takes a key out.";
    let authority = "A file with the certificate of who is trusted, instead of the system's.";
    let proxy = "A proxy's URL, or none; those of the environment unless said.";
    let limits = "How long is waited for the server, how much it may say, how often it is asked.";
    let bounds = ModelLimits::default().bounds().into_iter().map(limit).collect();
    let bounds = Map { what: "limits", keys: bounds, one_of: &[] };
    let tokens = Kind::Count { min: 1, max: u32::MAX as usize };
    Map {
        what: "a model of the kind openai",
        keys: vec![
            kind("use: openai"),
            needed(key("url", Kind::Text, url, "url: https://llm.example.org/v1")),
            needed(key("model", Kind::Text, model, "model: large")),
            key("key", Kind::Text, secret, "key: ${LLM_KEY}"),
            key("headers", Kind::Settings, headers, "headers: {X-Title: pump}"),
            window(),
            key("tokenizer", Kind::Path, tokenizer, "tokenizer: tokenizer.json"),
            key("max_tokens", tokens, max_tokens, "max_tokens: 2048"),
            key("temperature", Kind::Number, temperature, "temperature: 0.2"),
            price(),
            at_once(),
            key("extra", Kind::Settings, extra, "extra: {top_k: 40}"),
            key("authority", Kind::Path, authority, "authority: issuer.pem"),
            key("proxy", Kind::Text, proxy, "proxy: http://127.0.0.1:3128"),
            key("limits", Kind::Map(bounds), limits, "limits: {retries_max: 5}"),
        ],
        one_of: &[],
    }
}

fn scripted() -> Map {
    let file = "The file of replies.";
    let keys = vec![
        kind("use: scripted"),
        needed(key("file", Kind::Path, file, "file: replies.txt")),
        window(),
        price(),
        at_once(),
    ];
    Map { what: "a model of the kind scripted", keys, one_of: &[] }
}

fn kind(example: &str) -> Key {
    needed(key("use", Kind::Word(USE), "Which kind of model it is.", example))
}

fn window() -> Key {
    let text = "How many tokens prompt and reply may have together.";
    key("window", Kind::Count { min: 1, max: u32::MAX as usize }, text, "window: 8192")
}

fn at_once() -> Key {
    let text = "How many of its replies may be under way at once; who asks then waits.";
    let most = tokio::sync::Semaphore::MAX_PERMITS;
    key("at_once", Kind::Count { min: 1, max: most }, text, "at_once: 8")
}

fn price() -> Key {
    let text = "What a million tokens cost, in whatever money you count in.";
    let input = "Of prompts.";
    let output = "Of replies.";
    let keys = vec![
        needed(key("input", Kind::Number, input, "input: 0.15")),
        needed(key("output", Kind::Number, output, "output: 0.60")),
    ];
    let both = Map { what: "a price", keys, one_of: &[] };
    key("price", Kind::Map(both), text, "price: {input: 0.15, output: 0.60}")
}

fn needed(key: Key) -> Key {
    Key { needed: true, ..key }
}
