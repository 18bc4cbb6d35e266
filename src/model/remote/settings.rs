//! Settings of a model behind a server.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url, redirect};
use serde_json::{Map, Value};

use crate::limits::ModelLimits;
use crate::model::estimate::Tokenizer;
use crate::model::model_identity::PriceSource;
use crate::model::price::Price;
use crate::model::prices::{PriceEntry, Prices};
use crate::model::provider;
use crate::model::provider::Provider;
use crate::model::provider_events::ProviderEvents;
use crate::model::remote::Remote;
use crate::model::wire::Effort;
use crate::model::wire_name::Wire;
use crate::secret::{Secret, Secrets, of_url};
use crate::tls_trust;

/// Settings of a model behind a server: its URL, key, limits, price and defaults. `Debug` shows no
/// key.
#[derive(Clone)]
pub struct Settings {
    pub(super) provider: Arc<Provider>,
    /// The URL of the API. For a provider file, the URL of requests.
    pub(super) url: String,
    /// Whether the URL comes from a provider file, so that no path is added.
    is_whole_url: bool,
    pub(super) model: String,
    pub(super) key: Option<Secret>,
    pub(super) headers: Vec<(String, Secret)>,
    /// Secrets beside the key and the headers: those in a provider file's headers, and the
    /// credential of each header without its scheme. None of them may be shown.
    credentials: Vec<Secret>,
    /// All secrets, once the settings are complete.
    pub(super) hidden: Secrets,
    pub(super) window: Option<u32>,
    pub(super) tokenizer: Option<Arc<Tokenizer>>,
    pub(super) max_tokens: Option<u32>,
    pub(super) temperature: Option<f64>,
    pub(super) effort: Option<Effort>,
    pub(super) is_streamed: bool,
    pub(super) is_structured: bool,
    pub(super) price: Option<(Price, PriceSource)>,
    pub(super) attachments: Vec<String>,
    pub(super) extra: Map<String, Value>,
    pub(super) limits: ModelLimits,
    /// The receivers of the provider's events, each with the model's name in its events.
    pub(super) events: Vec<(ProviderEvents, Arc<str>)>,
    authority: Option<PathBuf>,
    proxy: Proxy,
}

/// The proxy between the pump and the server.
#[derive(Clone)]
enum Proxy {
    /// The proxy that the environment names; none for servers on this machine.
    Environment,
    None,
    At(Secret),
}

impl Settings {
    pub(super) fn new(wire: Wire, url: String, model: String) -> Settings {
        let provider = provider::of_wire(wire).clone();
        Settings {
            provider,
            url,
            is_whole_url: false,
            model,
            key: None,
            headers: Vec::new(),
            credentials: Vec::new(),
            hidden: Secrets::default(),
            window: None,
            tokenizer: None,
            max_tokens: None,
            temperature: None,
            effort: None,
            is_streamed: true,
            is_structured: true,
            price: None,
            attachments: Vec::new(),
            extra: Map::new(),
            limits: ModelLimits::default(),
            events: Vec::new(),
            authority: None,
            proxy: Proxy::Environment,
        }
    }

    pub(super) fn of_provider(provider: Provider, model: String) -> Settings {
        let is_streamed = provider.is_streamed();
        let url = provider.address(&model, is_streamed);
        let credentials = provider.secret_headers();
        let usual = Settings::new(Wire::default(), url, model);
        let provider = Arc::new(provider);
        Settings { provider, is_whole_url: true, is_streamed, credentials, ..usual }
    }

    /// Sets the key. It is sent in the provider's header for keys, usually as `Authorization:
    /// Bearer KEY`.
    #[must_use]
    pub fn key(self, key: Secret) -> Settings {
        Settings { key: Some(key), ..self }
    }

    /// Adds a header to each request. Its value is kept secret.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: Secret) -> Settings {
        self.credentials.push(value.clone());
        self.headers.push((name.into(), value));
        self
    }

    /// Adds a header to each request. Its value is no secret.
    #[must_use]
    pub fn public_header(mut self, name: impl Into<String>, value: &str) -> Settings {
        self.headers.push((name.into(), Secret::new(value)));
        self
    }

    /// Sets the window: the most tokens that prompt and reply may have together.
    #[must_use]
    pub fn window(self, tokens: u32) -> Settings {
        Settings { window: Some(tokens), ..self }
    }

    /// Sets the tokenizer that counts a prompt's tokens before the prompt is sent. Without a
    /// tokenizer, the tokens are estimated as a quarter of the bytes.
    #[must_use]
    pub fn tokenizer(self, it: Tokenizer) -> Settings {
        Settings { tokenizer: Some(Arc::new(it)), ..self }
    }

    /// Sets the most tokens of a reply whose prompt sets no maximum.
    #[must_use]
    pub fn max_tokens(self, tokens: u32) -> Settings {
        Settings { max_tokens: Some(tokens), ..self }
    }

    /// Sets the sampling temperature for prompts that don't set one.
    #[must_use]
    pub fn temperature(self, temperature: f64) -> Settings {
        Settings { temperature: Some(temperature), ..self }
    }

    /// Sets how much the model is to reason before it answers. By default, the model decides.
    #[must_use]
    pub fn effort(self, effort: Effort) -> Settings {
        Settings { effort: Some(effort), ..self }
    }

    /// Asks for whole replies: no piece of a reply comes before the reply's end.
    #[must_use]
    pub fn whole(self) -> Settings {
        Settings { is_streamed: false, ..self }
    }

    /// Never sends a prompt's [format](crate::model::Prompt::format), for servers that don't
    /// support formats.
    #[must_use]
    pub fn unstructured(self) -> Settings {
        Settings { is_structured: false, ..self }
    }

    /// Asks for streamed replies. This is the default, unless a provider file says otherwise.
    #[must_use]
    pub fn streamed(self) -> Settings {
        Settings { is_streamed: true, ..self }
    }

    /// Sets the price of the model's tokens.
    #[must_use]
    pub fn price(self, price: Price) -> Settings {
        Settings { price: Some((price, PriceSource::Setting)), ..self }
    }

    /// Removes the price, which then counts as unknown.
    #[must_use]
    pub fn no_price(self) -> Settings {
        Settings { price: None, ..self }
    }

    /// Takes the price and the window from a table, if the table has this model at this host.
    /// Values that are set already stay.
    ///
    /// ```
    /// # extern crate pumphouse_model as pumphouse;
    /// use pumphouse::model::{Model, Prices, Remote, Wire};
    ///
    /// let wire = Wire::OpenAiChat;
    /// let model = Remote::at(wire, wire.home(), "gpt-4o-mini").prices(Prices::shipped()).build()?;
    /// assert!(model.price().is_some());
    /// # Ok::<(), pumphouse::model::remote::NoModel>(())
    /// ```
    #[must_use]
    pub fn prices(self, table: &Prices) -> Settings {
        let host = self.url.parse().ok().and_then(|it| host(&it));
        match host.and_then(|it| table.of_host(&it, &self.model)) {
            Some(entry) => self.listed(entry),
            None => self,
        }
    }

    /// Takes the price and the window from an entry of a table. Values that are set already stay.
    #[must_use]
    pub fn listed(self, entry: PriceEntry) -> Settings {
        let window = self.window.or(entry.window);
        let price = self.price.or(Some((entry.price, PriceSource::Table(entry.table))));
        Settings { window, price, ..self }
    }

    /// Sets the media types of attachments that the model takes, such as `image/*` and
    /// `application/pdf`. There are none by default.
    #[must_use]
    pub fn attachments<T: Into<String>>(self, types: impl IntoIterator<Item = T>) -> Settings {
        Settings { attachments: types.into_iter().map(Into::into).collect(), ..self }
    }

    /// Puts these keys into the body of each request. A key replaces the body's key of the same
    /// name, and `null` removes it.
    #[must_use]
    pub fn extra(self, extra: Map<String, Value>) -> Settings {
        Settings { extra, ..self }
    }

    /// Sets the limits of time, memory and retries.
    #[must_use]
    pub fn limits(self, limits: ModelLimits) -> Settings {
        Settings { limits, ..self }
    }

    /// Puts each event of the provider into `events`, with this name of the model.
    #[must_use]
    pub fn events(mut self, events: &ProviderEvents, name: &str) -> Settings {
        self.events.push((events.clone(), name.into()));
        self
    }

    /// Trusts the certificate authorities in a file, instead of those that this system trusts.
    #[must_use]
    pub fn authority(self, file: impl AsRef<Path>) -> Settings {
        Settings { authority: Some(file.as_ref().to_owned()), ..self }
    }

    /// Sends requests through this proxy, instead of those that the environment names.
    #[must_use]
    pub fn proxy(self, url: Secret) -> Settings {
        Settings { proxy: Proxy::At(url), ..self }
    }

    /// Sends requests through no proxy, whatever the environment names.
    #[must_use]
    pub fn no_proxy(self) -> Settings {
        Settings { proxy: Proxy::None, ..self }
    }

    /// Makes the model. Nothing is sent yet.
    ///
    /// # Errors
    /// The first setting that is wrong.
    pub fn build(self) -> Result<Remote, NoModel> {
        let url = self.address()?;
        if !self.attachments.is_empty() && !self.provider.takes_attachments() {
            let text = "the provider file has no shape for attachments; give it \
                        `request.attachment`, and `{attachments}` in `request.messages.user`";
            return Err(NoModel::of("attachments", text));
        }
        let builder = Client::builder()
            .user_agent(concat!("pumphouse/", env!("CARGO_PKG_VERSION")))
            .default_headers(self.header_map()?)
            .redirect(redirect::Policy::none())
            .connect_timeout(self.limits.connect_time_max)
            .tcp_nodelay(true);
        let plain =
            url.scheme() == "http" && matches!(self.proxy, Proxy::None | Proxy::Environment);
        let trusted =
            if plain { tls_trust::nobody() } else { tls_trust::config(self.authority.as_deref()) };
        let trusted = trusted.map_err(|it| NoModel::of("authority", it.to_string()))?;
        let builder = builder.tls_backend_preconfigured(trusted);
        let builder = match &self.proxy {
            Proxy::Environment if !is_loopback(&url) => builder,
            Proxy::Environment | Proxy::None => builder.no_proxy(),
            Proxy::At(proxy) => {
                let proxy = reqwest::Proxy::all(proxy.reveal()).map_err(|_| {
                    NoModel::of("proxy", "the proxy is no URL, as in http://127.0.0.1:3128")
                })?;
                builder.no_proxy().proxy(proxy)
            }
        };
        let client =
            builder.build().map_err(|it| NoModel::of("url", it.without_url().to_string()))?;
        let hidden = Secrets::new(self.secrets());
        Ok(Remote { client, url, settings: Settings { hidden, ..self } })
    }

    /// The name of the wire, or of the provider if it has no wire.
    pub(super) fn spoken(&self) -> String {
        match self.provider.wire() {
            Some(wire) => wire.name().to_owned(),
            None => self.provider.name().to_owned(),
        }
    }

    /// The wire whose rules for tools hold. For a server with requests of its own, those of most
    /// servers hold.
    pub(super) fn wire(&self) -> Wire {
        self.provider.wire().unwrap_or_default()
    }

    /// Whether replies are read as lines even if their `Content-Type` is JSON.
    pub(super) fn has_lines(&self) -> bool {
        self.provider.wire().is_none() && self.provider.has_lines() && self.is_streamed
    }

    /// All secrets: the key, the values of secret headers, with and without their schemes, and
    /// those that the URL and the proxy's URL have.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        let url = match self.is_whole_url {
            true => Cow::Owned(self.provider.address(&self.model, self.is_streamed)),
            false => Cow::Borrowed(&*self.url),
        };
        let proxy = match &self.proxy {
            Proxy::At(url) => url.reveal(),
            Proxy::Environment | Proxy::None => "",
        };
        let of_headers = self.credentials.iter().flat_map(Secret::parts);
        // Those that are too short can't be hidden.
        let of_urls = [&*url, proxy].into_iter().flat_map(of_url).flatten();
        self.key.iter().cloned().chain(of_headers).chain(of_urls).collect()
    }

    /// The URL of requests.
    fn address(&self) -> Result<Url, NoModel> {
        let wrong = |text: &str| NoModel::of("url", text);
        let whole = self.is_whole_url.then(|| self.provider.address(&self.model, self.is_streamed));
        let mut url: Url = whole.as_ref().unwrap_or(&self.url).parse().map_err(|_| {
            wrong("this is no URL, as in https://llm.example.org/v1 or http://127.0.0.1:8080/v1")
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("a URL of a model begins with https:// or http://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("a URL is no place for a password; give it as the key"));
        }
        if self.model.trim().is_empty() {
            return Err(NoModel::of("model", "the model has no name"));
        }
        let Some(wire) = self.provider.wire().filter(|_| !self.is_whole_url) else {
            return Ok(url);
        };
        let path = wire.path(&self.model, self.is_streamed);
        if !url.path().trim_end_matches('/').ends_with(&path) {
            let path = format!("{}{path}", url.path().trim_end_matches('/'));
            url.set_path(&path);
        }
        if let Some(query) = wire.query().filter(|_| self.is_streamed) {
            let key = query.split_once('=').map_or(query, |(key, _)| key);
            let is_said = url.query_pairs().any(|(own, _)| own == key);
            let own = url.query().filter(|it| !it.is_empty());
            let both = own.map_or_else(|| query.to_owned(), |own| format!("{own}&{query}"));
            if !is_said {
                url.set_query(Some(&both));
            }
        }
        Ok(url)
    }

    fn header_map(&self) -> Result<HeaderMap, NoModel> {
        let mut map = HeaderMap::new();
        let mut add = |what, name: HeaderName, value: &str| {
            let mut value = HeaderValue::from_str(value.trim()).map_err(|_| {
                NoModel::of(
                    what,
                    format!("the value of {name} holds what no header may: a control character"),
                )
            })?;
            value.set_sensitive(true);
            map.insert(name, value);
            Ok(())
        };
        if self.key.is_some() && !self.provider.takes_key() {
            let text = "the provider file has no header for a key; give it one under \
                        `provider.headers`, as in `Authorization: \"Bearer {key}\"`";
            return Err(NoModel::of("key", text));
        }
        let of_provider = self.provider.headers(&self.model, self.key.as_ref());
        let of_provider = of_provider.iter().map(|it| ("key", it));
        for (what, (name, value)) in
            of_provider.chain(self.headers.iter().map(|it| ("headers", it)))
        {
            let header = name.parse::<HeaderName>();
            let header = header
                .map_err(|_| NoModel::of("headers", format!("{name:?} is no name of a header")))?;
            add(what, header, value.reveal())?;
        }
        Ok(map)
    }
}

/// A URL of requests for people and for the log: without its query, which may hold a secret, and
/// without the wire's path.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let text = url.as_str();
    let ends = ["/chat/completions", "/messages", "/responses", "/chat"];
    let shown = ends.into_iter().find_map(|it| text.strip_suffix(it)).unwrap_or(text);
    shown.split("/models/").next().unwrap_or_default().to_owned()
}

/// The host of a URL, with its port unless that is the scheme's default port.
pub(super) fn host(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// Whether a URL's host is this machine itself. The environment's proxy isn't used for it.
fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        let url = self.url.split(['?', '#']).next().unwrap_or_default();
        f.debug_struct("Settings")
            .field("url", &url.rsplit('@').next().unwrap_or_default())
            .field("model", &self.model)
            .field("key", &self.key)
            .field("headers", &headers)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The error of settings that make no model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoModel {
    /// The wrong setting: `url`, `model`, `key`, `headers`, `attachments`, `authority` or `proxy`.
    pub setting: &'static str,
    /// The mistake, in a sentence.
    pub message: Box<str>,
}

impl NoModel {
    fn of(setting: &'static str, message: impl Into<Box<str>>) -> NoModel {
        NoModel { setting, message: message.into() }
    }
}

impl fmt::Display for NoModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for NoModel {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_of_its_own_stands_before_what_asks_for_a_stream() {
        let check = |url: &str, query: Option<&str>| {
            let settings = Settings::new(Wire::Gemini, url.into(), "m".into());
            assert_eq!(settings.address().unwrap().query(), query, "{url}");
            let settings = Settings::new(Wire::Ollama, url.into(), "m".into());
            let own = url.split_once('?').map(|(_, own)| own);
            assert_eq!(settings.address().unwrap().query(), own, "{url}");
        };
        check("http://127.0.0.1/v1", Some("alt=sse"));
        check("http://127.0.0.1/v1?key=a%20b", Some("key=a%20b&alt=sse"));
        check("http://127.0.0.1/v1?alt=sse&key=a", Some("alt=sse&key=a"));
        check("http://127.0.0.1/v1?", Some("alt=sse"));
    }

    #[test]
    fn a_servers_words_hold_no_credential_with_or_without_its_scheme() {
        let settings = Settings::new(Wire::default(), "http://127.0.0.1".into(), "m".into())
            .header("Authorization", Secret::new("Bearer sk-live-1"));
        let secrets = Secrets::new(settings.secrets());
        assert_eq!(secrets.hide("wrong: Bearer sk-live-1"), "wrong: …");
        assert_eq!(secrets.hide("Incorrect API key sk-live-1"), "Incorrect API key …");
    }

    #[test]
    fn a_secret_of_a_url_is_one_and_another_header_is_none() {
        let url = "http://127.0.0.1/v1?key=a%20b-12345&alt=sse-events".to_owned();
        let settings = Settings::new(Wire::default(), url, "m".into())
            .public_header("x-region", "europe-west")
            .proxy(Secret::new("http://me:pass%20word@127.0.0.1:1"));
        let secrets = Secrets::new(settings.secrets());
        let check = |text: &str, expected: &str| assert_eq!(secrets.hide(text), expected);
        check("a b-12345 a%20b-12345 pass word", "… … …");
        check("sse-events in europe-west", "sse-events in europe-west");
    }
}
