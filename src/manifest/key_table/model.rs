//! The keys of a model in a manifest.

use crate::limits::{ModelLimits, RouterLimits};
use crate::manifest::key_table::{Key, Kind, Map, key, limit};
use crate::model::Wire;

pub(super) const MODELS: &str = "Models by the names that listeners know them by.";
pub(super) const PRICES: &str =
    "A table of what models cost, in place of the one that ships with the program.";
pub(super) const EXAMPLE: &str =
    "models: {local: {use: openai, url: \"http://127.0.0.1:8080/v1\", model: small}}";

const URL: &str = "Where the API is: what stands before the wire's path, such as \
                   /chat/completions. The provider's own unless said.";
const URL_NEEDED: &str = "Where the API is: what stands before /chat/completions.";
const URL_EXAMPLE: &str = "url: https://llm.example.org/v1";

const USE: &[(&str, &str)] = &[
    ("openai", "A server that streams chat completions as OpenAI's does."),
    ("anthropic-messages", "Anthropic's messages."),
    ("openai-chat", "OpenAI's chat completions, which most other providers speak, too."),
    ("openai-responses", "OpenAI's responses."),
    ("gemini", "Google's generateContent."),
    ("ollama", "Ollama's own chat."),
    ("scripted", "Replies that stand in a file."),
    ("router", "Several of the other models: where one fails, the next is asked."),
];

const EFFORTS: &[(&str, &str)] =
    &[("low", "Little."), ("medium", "As much as most questions need."), ("high", "Much.")];

const POLICIES: &[(&str, &str)] = &[
    ("failover", "The first in order that can answer."),
    ("round_robin", "Each in turn."),
    ("least_loaded", "The one with the fewest replies under way."),
];

/// A model, of any kind.
pub(super) fn model() -> Kind {
    let mut kinds = vec![(OPENAI, remote(Wire::OpenAiChat, OPENAI))];
    kinds.extend(Wire::ALL.into_iter().map(|it| (it.name(), remote(it, it.name()))));
    kinds.extend([("scripted", scripted()), ("router", router())]);
    kinds.extend(PROVIDER_FILES.map(|it| (it, of_provider())));
    Kind::Use { by: "use", maps: kinds, other: None }
}

/// The words under `use` that stand for provider files.
const PROVIDER_FILES: [&str; 2] = ["*.yaml", "*.yml"];

/// A model whose provider a file describes. There is no key `url`, because the file has the URL.
fn of_provider() -> Map {
    let file = "A provider file, which says where and how the model is asked.";
    let mut all = remote(Wire::OpenAiChat, Wire::OpenAiChat.name());
    all.what = "a model of a provider file";
    all.keys.retain(|it| !matches!(it.name, "use" | "url"));
    all.keys.insert(0, needed(key("use", Kind::Path, file, "use: acme.yaml")));
    all
}

/// The older name of `openai-chat`. A model of this kind needs a `url`.
pub(super) const OPENAI: &str = "openai";

fn remote(wire: Wire, name: &'static str) -> Map {
    let (what, example, url) = match name {
        OPENAI => ("a model of the kind openai", "use: openai", URL_NEEDED),
        _ => match wire {
            Wire::AnthropicMessages => {
                ("a model of the kind anthropic-messages", "use: anthropic-messages", URL)
            }
            Wire::OpenAiResponses => {
                ("a model of the kind openai-responses", "use: openai-responses", URL)
            }
            Wire::Gemini => ("a model of the kind gemini", "use: gemini", URL),
            Wire::Ollama => ("a model of the kind ollama", "use: ollama", URL),
            Wire::OpenAiChat => ("a model of the kind openai-chat", "use: openai-chat", URL),
        },
    };
    let url = Key { needed: name == OPENAI, ..key("url", Kind::Text, url, URL_EXAMPLE) };
    let model = "What the server calls the model.";
    let secret = "What is shown to the server, from the environment: the file itself holds no key.";
    let headers = "Further headers; secret if filled in by a variable, or by their names.";
    let public = "Further headers that are no secrets, though a variable may fill them in.";
    let max_tokens = "The tokens of a reply, where a prompt doesn't say.";
    let tokenizer = "The model's tokenizer.json, which counts the tokens of prompts.";
    let temperature = "How freely the model chooses, where a prompt doesn't say.";
    let effort = "How much it is to reason before it answers; its own choice unless said.";
    let extra = "What else each request holds; null takes a key out.";
    let authority = "A file with the certificate of who is trusted, instead of the system's.";
    let proxy = "A proxy's URL, or none; those of the environment unless said.";
    let limits = "How long is waited for the server, how much it may say, how often it is asked.";
    let bounds = ModelLimits::default().bounds().into_iter().map(limit).collect();
    let bounds = Map { what: "limits", keys: bounds, one_of: &[] };
    let tokens = Kind::Count { min: 1, max: u32::MAX as usize };
    let mut all = Map {
        what,
        keys: vec![
            kind(example),
            url,
            needed(key("model", Kind::Text, model, "model: large")),
            key("key", Kind::Text, secret, "key: ${LLM_KEY}"),
            key("headers", Kind::Settings, headers, "headers: {X-Title: pump}"),
            key("public_headers", Kind::Settings, public, "public_headers: {X-Api: \"${API}\"}"),
            window(),
            key("tokenizer", Kind::Path, tokenizer, "tokenizer: tokenizer.json"),
            key("max_tokens", tokens, max_tokens, "max_tokens: 2048"),
            key("temperature", Kind::Number, temperature, "temperature: 0.2"),
            key("effort", Kind::Word(EFFORTS), effort, "effort: low"),
            stream(),
            structured(),
            price_or_table(),
            attachments(),
            key("extra", Kind::Settings, extra, "extra: {top_k: 40}"),
            key("authority", Kind::Path, authority, "authority: issuer.pem"),
            key("proxy", Kind::Text, proxy, "proxy: http://127.0.0.1:3128"),
            key("limits", Kind::Map(bounds), limits, "limits: {retries_max: 5}"),
        ],
        one_of: &[],
    };
    all.keys.extend(most());
    all
}

fn scripted() -> Map {
    let file = "The file of replies.";
    let mut keys = vec![
        kind("use: scripted"),
        needed(key("file", Kind::Path, file, "file: replies.txt")),
        window(),
        price(),
        attachments(),
    ];
    keys.extend(most());
    Map { what: "a model of the kind scripted", keys, one_of: &[] }
}

fn router() -> Map {
    let of = "The models that it asks, by their names, in order.";
    let policy = "Which of them it asks first; failover unless said.";
    let limits = "How often it asks again, and when.";
    let bounds = RouterLimits::default().bounds().into_iter().map(limit).collect();
    let bounds = Map { what: "limits", keys: bounds, one_of: &[] };
    let mut keys = vec![
        kind("use: router"),
        needed(key("of", Kind::List(Box::new(Kind::Text)), of, "of: [large, small]")),
        key("policy", Kind::Word(POLICIES), policy, "policy: round_robin"),
        key("limits", Kind::Map(bounds), limits, "limits: {retries_max: 5}"),
    ];
    keys.extend(most());
    Map { what: "a model of the kind router", keys, one_of: &[] }
}

fn kind(example: &str) -> Key {
    needed(key("use", Kind::Word(USE), "Which kind of model it is.", example))
}

fn structured() -> Key {
    let text =
        "Whether the server is told the JSON Schema of an agent's answer; it is unless said.";
    key("structured", Kind::Flag, text, "structured: false")
}

fn window() -> Key {
    let text = "How many tokens prompt and reply may have together.";
    key("window", Kind::Count { min: 1, max: u32::MAX as usize }, text, "window: 8192")
}

/// The keys that limit a model's concurrent replies, and its requests and tokens per minute.
fn most() -> [Key; 3] {
    let at_once = "How many of its replies may be under way at once; a further turn waits.";
    let requests = "How many requests may begin in a minute; a further turn waits.";
    let tokens = "How many tokens may be used in a minute; a further turn waits.";
    let count = || Kind::Count { min: 1, max: u32::MAX as usize };
    [
        key("at_once", count(), at_once, "at_once: 8"),
        key("requests_per_minute", count(), requests, "requests_per_minute: 60"),
        key("tokens_per_minute", count(), tokens, "tokens_per_minute: 100000"),
    ]
}

fn stream() -> Key {
    let enabled = "Whether a reply comes while it is written, or whole.";
    let keys = vec![needed(key("enabled", Kind::Flag, enabled, "enabled: false"))];
    let text = "How replies come.";
    let both = Map { what: "stream", keys, one_of: &[] };
    key("stream", Kind::Map(both), text, "stream: {enabled: false}")
}

const PRICE_EXAMPLE: &str = "price: {input: 0.15, output: 0.60}";
/// The key for the images and documents that prompts may hold.
fn attachments() -> Key {
    let text = "Which media types of images and documents its prompts may hold; none unless said.";
    let example = "attachments: [image/*, application/pdf]";
    key("attachments", Kind::List(Box::new(Kind::Text)), text, example)
}

fn price() -> Key {
    let text = "What a million tokens cost, in whatever money you count in.";
    key("price", Kind::Map(amounts()), text, PRICE_EXAMPLE)
}

fn price_or_table() -> Key {
    let text = "What a million tokens cost, in whatever money you count in; none, or the provider \
                of the table of prices whose model it is. As the table says, unless said.";
    key("price", Kind::Words(amounts()), text, PRICE_EXAMPLE)
}

fn amounts() -> Map {
    let input = "Of prompts.";
    let output = "Of replies.";
    let cached = "Of prompts that the provider had kept; as input unless said.";
    let written = "Of prompts that the provider keeps for later; as input unless said.";
    let keys = vec![
        needed(key("input", Kind::Number, input, "input: 0.15")),
        needed(key("output", Kind::Number, output, "output: 0.60")),
        key("cached", Kind::Number, cached, "cached: 0.015"),
        key("cache_write", Kind::Number, written, "cache_write: 0.1875"),
    ];
    Map { what: "a price", keys, one_of: &[] }
}

fn needed(key: Key) -> Key {
    Key { needed: true, ..key }
}
