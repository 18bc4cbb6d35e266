//! Providers as data: the URL of requests, the template of a request, and the paths to the parts of
//! a reply. The built-in wires have such descriptions, too. But their readers and the bodies of
//! their requests are written in Rust: Rust is faster, and can express more than paths.

mod rules;
mod reader;
mod template;
mod built_in;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

use crate::bounded_yaml;
use crate::model::provider_file::built_in::{NAMES, description, text, wire_of};
use crate::model::provider_file::keys;
use crate::model::provider_file::keys::{
    CallPaths, Format, Mode, ProviderFile, StreamFile, WireName,
};
use crate::model::provider_file::path::Paths;
use crate::model::wire::{Framing, Reader, RequestContent};
use crate::model::wire_name::Wire;
use crate::schema::nearest;
use crate::secret::{Secret, is_secret_name};

use reader::{ByPaths, WithPaths};
use rules::Rules;
use template::Template;

pub use built_in::of_wire;

/// A provider: the URL, headers and bodies of requests to its models, and how their replies are
/// read. `docs/models.md` describes provider files.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use pumphouse::model::{Provider, Remote, Wire};
///
/// let provider: Provider = "
/// provider:
///   name: acme
///   wire: openai-chat
///   api_url: https://llm.acme.example/chat
///   headers: {X-Acme-Key: \"{key}\"}
/// "
/// .parse()?;
/// assert_eq!((provider.name(), provider.wire()), ("acme", Some(Wire::OpenAiChat)));
/// let model = Remote::of_provider(provider, "large").build()?;
/// # let _ = model;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Provider {
    name: String,
    wire: Option<Wire>,
    api_url: String,
    /// The URL for replies that aren't streamed, if it is a different one.
    whole_url: Option<String>,
    headers: Vec<(String, String)>,
    /// The template of requests. None if the wire writes the requests.
    template: Option<Template>,
    is_streamed: bool,
    format: Format,
    /// The rules for reading a stream. With a wire, they have only the paths that the wire's own
    /// file lacks.
    rules: Rules,
    /// The rules for reading a reply that isn't streamed. With a wire, they have only the paths
    /// that the wire's own file lacks.
    whole: Rules,
}

/// A path that finds nothing in the sample stream of its wire.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unmatched {
    /// The path's key in the file, such as `stream.extract.text`.
    pub key: String,
    /// The path in the form that is evaluated, with `@.` in its filters.
    pub path: String,
}

impl Provider {
    /// The provider file of a built-in provider or wire. None if the name isn't one of
    /// [`built_in_names`](Provider::built_in_names).
    ///
    /// ```
    /// # extern crate pumphouse_model as pumphouse;
    /// use pumphouse::model::Provider;
    ///
    /// let text = Provider::built_in("anthropic").unwrap();
    /// assert!(text.parse::<Provider>().is_ok());
    /// ```
    #[must_use]
    pub fn built_in(name: &str) -> Option<&'static str> {
        wire_of(name).map(text)
    }

    /// The names of the built-in providers and wires.
    pub fn built_in_names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// The provider's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The wire of the provider's requests and replies. None if the provider file describes both
    /// itself.
    #[must_use]
    pub fn wire(&self) -> Option<Wire> {
        self.wire
    }

    /// The paths of the file that find nothing in the sample stream of its wire. Such paths are
    /// probably wrong, or meant for something that the sample lacks. There are none without a
    /// wire.
    #[must_use]
    pub fn unmatched(&self) -> Vec<Unmatched> {
        let Some(wire) = self.wire else { return Vec::new() };
        let all = self.rules.unmatched(&built_in::sample(wire));
        all.into_iter().map(|(key, path)| Unmatched { key, path }).collect()
    }

    /// The URL of a request.
    pub(super) fn address(&self, model: &str, is_streamed: bool) -> String {
        let url = self.whole_url.as_ref().filter(|_| !is_streamed).unwrap_or(&self.api_url);
        template::filled_text(url, &|_| model.into())
    }

    pub(super) fn is_streamed(&self) -> bool {
        self.is_streamed
    }

    /// The headers of a request, with the model and the key filled in. Their values are secrets.
    /// Without a key, headers that need one are left out.
    pub(super) fn headers(&self, model: &str, key: Option<&Secret>) -> Vec<(String, Secret)> {
        let known = |name: &str| match (name, key) {
            ("model", _) => model.into(),
            ("key", Some(key)) => key.reveal().trim().into(),
            _ => Value::Null,
        };
        let is_sent = |(_, value): &&(String, String)| key.is_some() || !has_key(value);
        let each = self.headers.iter().filter(is_sent);
        each.map(|(name, it)| (name.clone(), Secret::new(template::filled_text(it, &known))))
            .collect()
    }

    /// The values of headers whose names suggest a secret, such as `X-Token`. Values with
    /// placeholders are left out.
    pub(super) fn secret_headers(&self) -> Vec<Secret> {
        let is_secret = |(name, value): &&(String, String)| {
            is_secret_name(name) && template::names(value).next().is_none()
        };
        self.headers.iter().filter(is_secret).map(|(_, it)| Secret::new(it.as_str())).collect()
    }

    /// Whether one of the provider's headers takes the key.
    pub(super) fn takes_key(&self) -> bool {
        self.headers.iter().any(|(_, value)| has_key(value))
    }

    /// Whether the provider's requests can hold images and documents.
    pub(super) fn takes_attachments(&self) -> bool {
        self.template.as_ref().is_none_or(Template::takes_attachments)
    }

    /// The wire that writes the requests. None if a template of the provider file does.
    pub(super) fn writes(&self) -> Option<Wire> {
        self.template.is_none().then(|| self.wire.unwrap_or_default())
    }

    /// A prompt as the JSON object of a request.
    pub(super) fn body(&self, content: &RequestContent<'_>) -> Map<String, Value> {
        match &self.template {
            Some(template) => template.body(content),
            None => self.wire.unwrap_or_default().body(content),
        }
    }

    /// Returns a reader for a reply. `is_whole` is true if the reply isn't streamed.
    pub fn reader(&self, is_whole: bool) -> Box<dyn Reader> {
        let rules = if is_whole { &self.whole } else { &self.rules };
        match self.wire {
            Some(wire) if rules.is_empty() => wire.reader(),
            Some(wire) => Box::new(WithPaths::new(wire.reader(), rules.clone())),
            None => Box::new(ByPaths::new(rules.clone(), is_whole)),
        }
    }

    /// Whether each event is a line.
    pub fn has_lines(&self) -> bool {
        self.format == Format::Ndjson
    }

    /// Returns the framing that splits the bytes of a stream into events.
    pub fn framing(&self, event_bytes_max: usize) -> Framing {
        match self.format {
            Format::Sse => Framing::events(event_bytes_max),
            Format::Ndjson => Framing::lines(event_bytes_max),
        }
    }

    /// Whether a reply has no end mark: a stop reason is the only sign that it is whole.
    pub fn ends_with_its_reason(&self) -> bool {
        let has_end = |it: &Rules| {
            it.end_mark.is_some() || it.sets().any(|(_, extract)| !extract.end.is_empty())
        };
        match self.wire {
            Some(wire) => wire == Wire::Gemini,
            None => !has_end(&self.rules),
        }
    }
}

fn has_key(header: &str) -> bool {
    template::names(header).any(|it| it == "key")
}

/// The mistakes of a provider file, each with its key.
type Complaints = Vec<(String, String)>;

impl ProviderFile {
    /// Checks the values together, and makes a provider of them.
    ///
    /// # Errors
    /// All mistakes of the file.
    pub fn provider(self) -> Result<Provider, Complaints> {
        let ProviderFile { provider: server, request, stream, whole } = self;
        let mut wrong = Vec::new();
        let wire = server.wire.map(Wire::from).or_else(|| wire_of(&server.name));
        // The wire's own file has the defaults of the mode, the format, the headers, and the paths
        // of the event type and of the parts of a call.
        let of_wire = wire.map(description);
        let of_stream = of_wire.map(|it| &it.stream);
        check_server(&server, &whole, &mut wrong);
        if let (Some(wire), Some(_)) = (wire, &request) {
            let text = format!("the wire {wire} has its own requests; leave `request` out");
            wrong.push(("request".to_owned(), text));
        }
        let template = request.map(|it| Template::new(it, &mut wrong));
        let mode = stream.mode.or(of_stream.and_then(|it| it.mode));
        let format = stream.format.or(of_stream.and_then(|it| it.format)).unwrap_or_default();
        let is_streamed = stream.enabled.unwrap_or(true);
        let mut rules = rules(stream, mode, of_stream);
        let (mode_of_whole, end_mark) = (Mode::CompleteChunks, None);
        let usual = Rules { extract: whole.extract, events: BTreeMap::new(), ..rules.clone() };
        let mut of_whole = Rules { mode: mode_of_whole, end_mark, ..usual };
        match of_wire {
            Some(own) => {
                rules.without(&own.stream);
                of_whole.extract.without(&own.whole.extract);
            }
            None => check_alone(mode, is_streamed, &rules, &mut of_whole, &mut wrong),
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        Ok(Provider {
            name: server.name,
            wire,
            api_url: server.api_url,
            whole_url: whole.api_url,
            headers: headers(server.headers, of_wire.map(|it| &it.provider.headers)),
            template,
            is_streamed,
            format,
            rules,
            whole: of_whole,
        })
    }
}

/// Returns the rules for reading a stream. `usual` is the wire's own file. The path of the event
/// type and the paths of calls default to those in `usual`.
fn rules(stream: StreamFile, mode: Option<Mode>, usual: Option<&StreamFile>) -> Rules {
    let or = |it: Paths, usual: Option<&Paths>| match usual {
        Some(usual) if it.is_empty() => usual.clone(),
        _ => it,
    };
    let (call, of_call) = (stream.tool_call, usual.map(|it| &it.tool_call));
    let tool_call = CallPaths {
        id: or(call.id, of_call.map(|it| &it.id)),
        name: or(call.name, of_call.map(|it| &it.name)),
        arguments: or(call.arguments, of_call.map(|it| &it.arguments)),
        index: or(call.index, of_call.map(|it| &it.index)),
    };
    Rules {
        mode: mode.unwrap_or_default(),
        event_type: or(stream.event_type, usual.map(|it| &it.event_type)),
        extract: stream.extract,
        events: stream.events,
        tool_call,
        stops: stream.stops,
        end_mark: stream.end_mark,
    }
}

/// Returns the headers of a file, and those headers of its wire that the file doesn't replace. A
/// header that holds the key replaces the wire's header that holds the key, even if the names
/// differ.
fn headers(
    own: BTreeMap<String, String>,
    of_wire: Option<&BTreeMap<String, String>>,
) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = own.into_iter().collect();
    for (name, value) in of_wire.into_iter().flatten() {
        let is_same = |(it, other): &(String, String)| {
            it.eq_ignore_ascii_case(name) || has_key(value) && has_key(other)
        };
        if !all.iter().any(is_same) {
            all.push((name.clone(), value.clone()));
        }
    }
    all
}

/// Checks the URLs and the headers.
fn check_server(server: &keys::Server, whole: &keys::WholeFile, wrong: &mut Complaints) {
    let urls =
        [("provider.api_url", Some(&server.api_url)), ("whole.api_url", whole.api_url.as_ref())];
    for (key, url) in urls.into_iter().filter_map(|(key, it)| Some((key, it?))) {
        template::check_text(url, key, &["model"], wrong);
    }
    for (name, value) in &server.headers {
        let key = format!("provider.headers.{name}");
        template::check_text(value, &key, &["key", "model"], wrong);
        let is_name = HeaderName::from_str(name).is_ok();
        if !is_name || HeaderValue::from_str(value).is_err() {
            let text = "this is no header: a name has letters, digits and `-`, and a value is \
                        one line";
            wrong.push((key, text.to_owned()));
        }
    }
}

/// Checks a file without a wire, which has to describe everything by itself.
fn check_alone(
    mode: Option<Mode>,
    is_streamed: bool,
    rules: &Rules,
    whole: &mut Rules,
    wrong: &mut Complaints,
) {
    let mut complain = |key: &str, text: &str| wrong.push((key.to_owned(), text.to_owned()));
    // If the file has no paths for replies that aren't streamed, `stream.extract` is used for them.
    if whole.extract.is_empty() {
        whole.extract = rules.extract.clone();
    }
    let says = |rules: &Rules, of: fn(&keys::Extract) -> bool| rules.sets().any(|(_, it)| of(it));
    if !is_streamed {
        if whole.extract.text.is_empty() {
            complain("whole", "say where the text stands, as in `extract: {text: $.text}`");
        }
        return;
    }
    if mode.is_none() {
        let text = "a provider that isn't built in needs `mode`: event_typed, delta_merge or \
                    complete_chunks; or name its `wire` under `provider`";
        return complain("stream", text);
    }
    if !says(rules, |it| !it.text.is_empty()) {
        complain("stream", "say where the text stands, as in `extract: {text: $.delta.text}`");
    }
    match mode {
        Some(Mode::EventTyped) if rules.event_type.is_empty() || rules.events.is_empty() => {
            let text = "with `mode: event_typed` say where an event's type stands, and what \
                        events of each type hold: `event_type: $.type`, `events: {…}`";
            complain("stream", text);
        }
        Some(Mode::DeltaMerge | Mode::CompleteChunks) if !rules.events.is_empty() => {
            complain("stream.events", "only events with `mode: event_typed` have types");
        }
        _ => {}
    }
    let has_end = rules.end_mark.is_some()
        || says(rules, |it| !it.end.is_empty() || !it.stop_reason.is_empty());
    if !has_end {
        let text = "say how a reply ends: by `stop_reason` or `end` under `extract`, or by \
                    `end_mark`; else one that was cut off would count as whole";
        complain("stream", text);
    }
}

impl From<WireName> for Wire {
    fn from(name: WireName) -> Wire {
        match name {
            WireName::AnthropicMessages => Wire::AnthropicMessages,
            WireName::OpenAiChat => Wire::OpenAiChat,
            WireName::OpenAiResponses => Wire::OpenAiResponses,
            WireName::Gemini => Wire::Gemini,
            WireName::Ollama => Wire::Ollama,
        }
    }
}

impl FromStr for Provider {
    type Err = NoProvider;

    /// Parses a provider file. Variables such as `${NAME}` in it aren't replaced.
    fn from_str(text: &str) -> Result<Provider, NoProvider> {
        let file: ProviderFile = bounded_yaml::from_str(text).map_err(NoProvider)?;
        file.provider().map_err(|all| {
            let each = all.iter().map(|(key, text)| format!("{key}: {text}"));
            NoProvider(each.collect::<Vec<_>>().join("; "))
        })
    }
}

/// The error of a text that is no provider file, or of a name that no built-in provider has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoProvider(String);

impl NoProvider {
    /// Returns the error that no provider of this name is built in. The error suggests the most
    /// similar name, or else lists all names.
    #[must_use]
    pub fn not_built_in(name: &str) -> NoProvider {
        let way = match nearest(name, Provider::built_in_names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let names: Vec<&str> = Provider::built_in_names().collect();
                format!("there is {}", names.join(", "))
            }
        };
        NoProvider(format!("no provider `{name}` is built in; {way}"))
    }
}

impl fmt::Display for NoProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoProvider {}
