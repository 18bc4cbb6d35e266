//! Reads the models of a manifest.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::limits::{ModelLimits, RouterLimits};
use crate::manifest::amount;
use crate::manifest::check::joined;
use crate::manifest::contents::UsedProvider;
use crate::manifest::mistake::{Mistake, Place, cut};
use crate::manifest::provider;
use crate::manifest::read::{Reader, beside, set};
use crate::manifest::settings::{At, Findings};
use crate::manifest::yaml::{Node, Pair, Value};
use crate::model::estimate::Tokenizer;
use crate::model::remote::{NoModel, Settings};
use crate::model::{
    Bounded, Model, Models, NoPrices, NoScript, Price, Prices, Remote, Router, Scripted, Wire,
    is_media_range,
};
use crate::secret::{Secret, TooShort, is_secret_name, of_url};

/// Whether a header is a secret: its name suggests one, or it comes from the environment.
pub(super) fn is_secret_header(entry: &Pair) -> bool {
    let is_filled = matches!(&entry.value.value, Value::Scalar(it) if it.source.contains("${"));
    is_filled || is_secret_name(&entry.key)
}

impl Reader<'_> {
    /// Reads the models. Returns the models that could be built, and adds them to the models that
    /// listeners may name. A model that could be built may still have mistakes, which are reported.
    pub(super) fn models(&mut self, root: &Node) -> Models {
        self.prices = root.key("prices").and_then(|it| self.table(it));
        let mut own = Models::default();
        let Some(Value::Map(entries)) = root.key("models").map(|it| &it.value) else { return own };
        let mut routers = Vec::new();
        for entry in entries {
            let (name, item) = (entry.key.as_str(), &entry.value);
            let path = joined("models", name);
            if self.models.get(name).is_ok() {
                let text = format!("the program has a model `{}` already", cut(name));
                let mistake = Mistake::new(entry.place, text).at(&path);
                self.wrong(mistake.advice("give this one another name"));
                continue;
            }
            let model: Option<Arc<dyn Model>> = match item.key("use").and_then(Node::text) {
                Some("scripted") => self.scripted(item, &path).map(|it| Arc::new(it) as _),
                Some("router") => {
                    routers.push((name, item));
                    continue;
                }
                Some(file) if provider::is_file(file) => {
                    let settings = self.of_provider(name, file, item, &path);
                    settings.and_then(|it| self.remote(it, item, &path)).map(|it| Arc::new(it) as _)
                }
                Some(kind) => {
                    // `manifest::check` has reported any other word.
                    let wire = match kind {
                        "openai" => Some(Wire::OpenAiChat),
                        name => name.parse().ok(),
                    };
                    let settings = wire.and_then(|it| at(it, item));
                    let settings = settings.map(|it| it.events(&self.events, name));
                    settings.and_then(|it| self.remote(it, item, &path)).map(|it| Arc::new(it) as _)
                }
                None => None,
            };
            if let Some(model) = model {
                own.insert(name, bounded(name, model, item));
            }
        }
        self.routers(routers, &mut own);
        own.iter().for_each(|(name, it)| drop(self.models.insert(name, it.clone())));
        own
    }

    /// Adds the routers, each after the routers that it names.
    fn routers(&self, mut routers: Vec<(&str, &Node)>, own: &mut Models) {
        loop {
            let names: Vec<&str> = routers.iter().map(|(name, _)| *name).collect();
            let waits = |it: &Node| named(it).any(|(_, other)| names.contains(&other));
            let (later, now): (Vec<_>, Vec<_>) =
                routers.into_iter().partition(|(_, item)| waits(item));
            if now.is_empty() {
                // Only routers in a circle are wrong; a router that only names one of them isn't.
                let wrong = later.iter().filter(|(name, item)| leads_to(item, name, &later));
                return wrong.for_each(|(name, item)| self.circular(name, item));
            }
            for (name, item) in now {
                if let Some(router) = self.router(name, item, own) {
                    own.insert(name, bounded(name, Arc::new(router), item));
                }
            }
            routers = later;
        }
    }

    /// Reports a router that asks itself, directly or through other routers.
    fn circular(&self, name: &str, item: &Node) {
        let path = joined(&joined("models", name), "of");
        let text = format!("the router `{}` would ask itself", cut(name));
        let place = item.key("of").unwrap_or(item).place;
        self.wrong(Mistake::new(place, text).at(&path).advice("name other models here"));
    }

    fn router(&self, name: &str, item: &Node, own: &Models) -> Option<Router> {
        let path = joined(&joined("models", name), "of");
        // `manifest::check` has reported any other word.
        let policy = item.key("policy").and_then(Node::text).and_then(|it| it.parse().ok());
        let mut limits = RouterLimits::default();
        if let Some(node) = item.key("limits") {
            limits.bounds().into_iter().for_each(|it| set(it, node));
        }
        let mut router = Router::new(name, policy.unwrap_or_default()).limits(limits);
        let mut seen = BTreeSet::new();
        for (place, other) in named(item) {
            if !seen.insert(other) {
                let text = format!("`{}` stands here twice", cut(other));
                self.wrong(Mistake::new(place, text).at(&path));
            }
            match own.get(other).or_else(|_| self.models.get(other)) {
                Ok(model) => router = router.model(other, model),
                // A declared model with mistakes is reported where it is declared.
                Err(_) if self.is_named(other) => {}
                Err(unknown) => {
                    self.wrong(Mistake::new(place, unknown.to_string()).at(&path));
                }
            }
        }
        if seen.is_empty() {
            let place = item.key("of").unwrap_or(item).place;
            let mistake = Mistake::new(place, "a router needs a model at least").at(&path);
            self.wrong(mistake.example("of: [large, small]"));
        }
        Some(router)
    }

    fn scripted(&self, item: &Node, path: &str) -> Option<Scripted> {
        let at = item.key("file")?;
        let read = Scripted::read(beside(self.file, at.text()?));
        let wrong = |it: NoScript| {
            self.wrong(Mistake::new(at.place, it.to_string()).at(&joined(path, "file")));
        };
        let model = read.map_err(wrong).ok()?;
        let model = tokens(item, "window").into_iter().fold(model, Scripted::with_window);
        let model = model.with_attachments(self.attachments(item, path));
        Some(self.price(item, path).into_iter().fold(model, Scripted::with_price))
    }

    /// The settings of a model whose `use` names a provider file.
    fn of_provider(&self, name: &str, file: &str, item: &Node, path: &str) -> Option<Settings> {
        let file = beside(self.file, file);
        match provider::read(&file, self.environment) {
            Ok(it) => {
                let mut all = self.providers.borrow_mut();
                let first = all.iter().find(|used| is_same_file(&used.file, &file));
                let (sinks, returns, events) = match first {
                    Some(used) => (Vec::new(), Vec::new(), used.events.clone()),
                    None => {
                        self.warnings.borrow_mut().extend(it.warnings);
                        (it.sinks, it.returns, it.events)
                    }
                };
                let settings = Remote::of_provider(it.provider, item.key("model")?.text()?);
                let settings = settings.events(&self.events, name).events(&events, name);
                let model = name.to_owned();
                all.push(UsedProvider { model, file, sinks, returns, events });
                Some(settings)
            }
            Err(all) => {
                let place = item.key("use").unwrap_or(item).place;
                let each = all.all().iter().map(|it| {
                    let Place { line, column, .. } = it.place;
                    format!("{}:{line}:{column}: {}", all.file(), it.message)
                });
                let text = each.collect::<Vec<_>>().join("; ");
                let mistake = Mistake::new(place, text).at(&joined(path, "use"));
                let help = all.all().iter().find_map(Mistake::help);
                self.wrong(help.into_iter().fold(mistake, Mistake::advice));
                None
            }
        }
    }

    fn remote(&self, mut settings: Settings, item: &Node, path: &str) -> Option<Remote> {
        let text = |key: &str| item.key(key).and_then(Node::text);
        settings = self.credentials(settings, item, path)?;
        settings = tokens(item, "window").into_iter().fold(settings, |it, n| it.window(n));
        if let Some(at) = item.key("tokenizer") {
            match Tokenizer::read(beside(self.file, at.text()?)) {
                Ok(it) => settings = settings.tokenizer(it),
                Err(it) => {
                    let mistake = Mistake::new(at.place, it.to_string());
                    self.wrong(mistake.at(&joined(path, "tokenizer")));
                }
            }
        }
        settings = tokens(item, "max_tokens").into_iter().fold(settings, |it, n| it.max_tokens(n));
        settings = settings.attachments(self.attachments(item, path));
        settings = self.priced(settings, text("model")?, item, path)?;
        if let Some(it) = text("temperature").and_then(amount::number) {
            settings = settings.temperature(it);
        }
        if let Some(Ok(effort)) = text("effort").map(str::parse) {
            settings = settings.effort(effort);
        }
        let stream = item.key("stream").and_then(|it| it.key("enabled")).and_then(Node::flag);
        match stream {
            Some(false) => settings = settings.whole(),
            Some(true) => settings = settings.streamed(),
            None => {}
        }
        if item.key("structured").and_then(Node::flag) == Some(false) {
            settings = settings.unstructured();
        }
        if let Some(Json::Object(extra)) = item.key("extra").and_then(json) {
            settings = settings.extra(extra);
        }
        if let Some(file) = text("authority") {
            settings = settings.authority(beside(self.file, file));
        }
        settings = match text("proxy") {
            None => settings,
            Some("none") => settings.no_proxy(),
            Some(url) => {
                let at = item.key("proxy").unwrap_or(item);
                let path = joined(path, "proxy");
                self.checked(of_url(url), at, &path)?;
                settings.proxy(Secret::new(url))
            }
        };
        if let Some(node) = item.key("limits") {
            let mut limits = ModelLimits::default();
            limits.bounds().into_iter().for_each(|it| set(it, node));
            settings = settings.limits(limits);
        }
        let wrong = |it: NoModel| {
            let place = item.key(it.setting).unwrap_or(item).place;
            self.wrong(Mistake::new(place, it.to_string()).at(&joined(path, it.setting)));
        };
        let model = settings.build().map_err(wrong).ok()?;
        for (setting, why) in model.unsent() {
            self.unsent(item.key(setting), &joined(path, setting), why);
        }
        Some(model)
    }

    /// Warns of a setting that isn't sent, since the model refuses it.
    pub(super) fn unsent(&self, at: Option<&Node>, path: &str, why: &str) {
        if let Some(at) = at {
            let warning = Mistake::new(at.place, format!("it is not sent: {why}")).at(path);
            self.doubt(warning.advice("leave it out; `extra` sends it all the same"));
        }
    }

    /// The table of prices that a manifest names.
    fn table(&self, at: &Node) -> Option<Prices> {
        let read = Prices::read(beside(self.file, at.text()?));
        let wrong = |it: NoPrices| {
            let mistake = Mistake::new(at.place, it.to_string()).at("prices");
            self.wrong(mistake.advice("docs/models.md says what such a table holds"));
        };
        read.map_err(wrong).ok()
    }

    /// Gives a model its price: the price in the manifest, or else that of the table. Returns
    /// `None` if `price` names a provider that the table lacks, or a provider without a price for
    /// this model. Both mistakes are reported. `price: none` removes the price.
    fn priced(&self, settings: Settings, model: &str, item: &Node, path: &str) -> Option<Settings> {
        let table = self.prices.as_ref().unwrap_or(Prices::shipped());
        let said = item.key("price");
        let Some((at, word)) = said.and_then(|it| Some((it, it.text()?))) else {
            let own = self.price(item, path);
            return Some(own.into_iter().fold(settings, Settings::price).prices(table));
        };
        if word == "none" {
            return Some(settings.prices(table).no_price());
        }
        if let Some(entry) = table.of_provider(word, model) {
            return Some(settings.listed(entry));
        }
        let mistake = match table.providers().any(|it| it == word) {
            true => {
                let text = format!("the table of prices has no model `{}`", cut(model));
                let text = format!("{text} of `{}`", cut(word));
                let advice = "say what its tokens cost: `price: {input: 0.15, output: 0.60}`";
                Mistake::new(at.place, text).advice(advice)
            }
            false => {
                let text = format!("the table of prices has no provider `{}`", cut(word));
                Mistake::new(at.place, text).or_nearest(word, table.providers().chain(["none"]))
            }
        };
        self.wrong(mistake.at(&joined(path, "price")));
        None
    }

    /// The media types of attachments that the model takes.
    fn attachments(&self, item: &Node, path: &str) -> Vec<String> {
        let items = item.key("attachments").map(Node::items).unwrap_or_default();
        let mut all = Vec::new();
        for (place, it) in items.iter().filter_map(|it| Some((it.place, it.text()?))) {
            if !is_media_range(it) {
                let text = format!("`{}` is no media type", cut(it));
                let mistake = Mistake::new(place, text).at(&joined(path, "attachments"));
                let advice = "write one such as image/png, or all of a kind, such as image/*";
                self.wrong(mistake.advice(advice));
            }
            all.push(it.to_owned());
        }
        all
    }

    /// The price of the model's tokens, if the manifest states amounts.
    fn price(&self, item: &Node, path: &str) -> Option<Price> {
        let node = item.key("price")?;
        let of = |key: &str| {
            let at = node.key(key)?;
            let amount = at.text().and_then(amount::number)?;
            if amount < 0.0 {
                let path = joined(&joined(path, "price"), key);
                self.wrong(Mistake::new(at.place, "a price is 0 or more").at(&path));
            }
            Some(amount)
        };
        let (input, output) = (of("input"), of("output"));
        let (cached, written) = (of("cached"), of("cache_write"));
        let price = Price::new(input?, output?);
        let price = cached.into_iter().fold(price, Price::with_cached);
        Some(written.into_iter().fold(price, Price::with_cache_write))
    }

    /// Adds the key and the headers. A URL may have secrets, too.
    fn credentials(&self, mut settings: Settings, item: &Node, path: &str) -> Option<Settings> {
        // A URL with a password is refused as such.
        if let Some(at) = item.key("url").filter(|it| it.text().is_some_and(|it| !it.contains('@')))
        {
            self.checked(of_url(at.text().unwrap_or_default()), at, &joined(path, "url"))?;
        }
        if let Some(at) = item.key("key") {
            settings = settings.key(self.secret(at, &joined(path, "key"))?);
        }
        for (key, is_public) in [("headers", false), ("public_headers", true)] {
            let path = joined(path, key);
            let Some(Value::Map(entries)) = item.key(key).map(|it| &it.value) else { continue };
            for entry in entries {
                let Some(value) = entry.value.text() else {
                    let mistake = Mistake::new(entry.value.place, "a header is a text");
                    self.wrong(mistake.at(&joined(&path, &entry.key)));
                    continue;
                };
                settings = match is_public {
                    true => settings.public_header(&entry.key, value),
                    false => self.header(settings, entry, value, &path)?,
                };
            }
        }
        Some(settings)
    }

    /// Adds a header, which may be a secret.
    fn header(
        &self,
        settings: Settings,
        entry: &Pair,
        value: &str,
        path: &str,
    ) -> Option<Settings> {
        let secret = Secret::new(value);
        match is_secret_name(&entry.key) {
            true => {
                let path = joined(path, &entry.key);
                let parts = secret.parts();
                let mut checked = parts.iter().filter(|_| !value.trim().is_empty());
                let checked = checked.try_for_each(Secret::long_enough);
                self.checked(checked, &entry.value, &path)?;
                Some(settings.header(&entry.key, secret))
            }
            false if is_secret_header(entry) => Some(settings.header(&entry.key, secret)),
            false => Some(settings.public_header(&entry.key, value)),
        }
    }

    /// What has secrets, unless one of them is too short to be hidden in texts, which is a mistake.
    fn checked<T>(&self, checked: Result<T, TooShort>, at: &Node, path: &str) -> Option<T> {
        let wrong = |it: TooShort| self.wrong(Mistake::new(at.place, it.to_string()).at(path));
        checked.map_err(wrong).ok()
    }

    /// A secret from the environment. A secret that stands in the manifest itself is a mistake,
    /// because other people can often read a manifest.
    fn secret(&self, at: &Node, path: &str) -> Option<Secret> {
        let Value::Scalar(scalar) = &at.value else { return None };
        if scalar.source.contains("${") {
            let secret = Secret::new(scalar.text.as_str());
            // An empty key is none.
            let is_fine = |it: TooShort| if it.bytes == 0 { Ok(()) } else { Err(it) };
            self.checked(secret.long_enough().or_else(is_fine), at, path)?;
            return Some(secret);
        }
        let mistake = Mistake::new(at.place, "a key doesn't stand in a manifest itself").at(path);
        self.wrong(mistake.advice("put it into a variable, and write its name: `key: ${LLM_KEY}`"));
        None
    }
}

/// The settings of a model of one of the built-in wires. The URL is `url`, or else that of the
/// wire's provider.
fn at(wire: Wire, item: &Node) -> Option<Settings> {
    let text = |key: &str| item.key(key).and_then(Node::text);
    Some(Remote::at(wire, text("url").unwrap_or(wire.home()), text("model")?))
}

/// Whether the router `item` asks the model `other`, directly or through other routers.
fn leads_to(item: &Node, other: &str, routers: &[(&str, &Node)]) -> bool {
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    let mut next: Vec<&Node> = vec![item];
    while let Some(item) = next.pop() {
        let new: Vec<&str> = named(item).map(|it| it.1).filter(|it| reached.insert(it)).collect();
        next.extend(routers.iter().filter(|(name, _)| new.contains(name)).map(|(_, item)| *item));
    }
    reached.contains(other)
}

/// Whether two paths lead to the same file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let whole = |it: &Path| it.canonicalize().unwrap_or_else(|_| it.to_owned());
    one == other || whole(one) == whole(other)
}

/// The models that a router names, each with its place.
fn named(item: &Node) -> impl Iterator<Item = (Place, &str)> {
    let items = item.key("of").map(Node::items).unwrap_or_default();
    items.iter().filter_map(|it| Some((it.place, it.text()?)))
}

/// Returns the model with the limits that the manifest sets for it. Without limits, returns the
/// model itself.
fn bounded(name: &str, model: Arc<dyn Model>, item: &Node) -> Arc<dyn Model> {
    let most = |key| tokens(item, key);
    let all = [most("at_once"), most("requests_per_minute"), most("tokens_per_minute")];
    let [at_once, requests, tokens] = all;
    if all.iter().all(Option::is_none) {
        return model;
    }
    let mut model = Bounded::new(name, model);
    if let Some(most) = at_once {
        model = model.at_once(most as usize);
    }
    if let Some(most) = requests {
        model = model.requests_per_minute(u64::from(most));
    }
    if let Some(most) = tokens {
        model = model.tokens_per_minute(u64::from(most));
    }
    Arc::new(model)
}

fn tokens(item: &Node, key: &str) -> Option<u32> {
    item.key(key).and_then(Node::text)?.replace('_', "").parse().ok()
}

/// A value as JSON.
fn json(node: &Node) -> Option<Json> {
    let findings = Findings::of(Path::new(""));
    Json::deserialize(At { node, path: String::new(), findings: &findings }).ok()
}
