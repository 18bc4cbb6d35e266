//! The services of a manifest, and the feeds that its agents get from them: `services`,
//! `feeds-defaults` and `feeds`, in the form of ADR-013.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Number, Value as Json, json};

use crate::listener::{Listener, ManifestPath};
use crate::listeners::feed::definition::{Inject, Transform};
use crate::listeners::feed::injection::{BlockForm, Injection};
use crate::listeners::feed::{Definition, Feeds, Source};
use crate::listeners::tool::service::{AgentSettings, Settings, service};
use crate::manifest::amount;
use crate::manifest::check;
use crate::manifest::check::joined;
use crate::manifest::contents::AgentFeed;
use crate::manifest::key_table::AGENT;
use crate::manifest::mistake::{Mistake, cut};
use crate::manifest::read::Reader;
use crate::manifest::yaml::Node;
use crate::xml;

/// The item of a list of feeds that stands for the feeds of `feeds-defaults`.
const SPREAD: &str = "...";
/// How old a feed's content may be, in seconds, unless the manifest sets a `ttl`.
const TTL_SECONDS: f64 = 60.0;

/// Maps the name of an agent to its feeds from services.
pub(super) type AgentFeeds = BTreeMap<String, Vec<AgentFeed>>;

/// The feeds that a manifest declares outside its agents.
#[derive(Default)]
pub(super) struct CommonFeeds {
    /// The feeds under `feeds-defaults`. None without the key.
    pub(super) defaults: Option<Vec<Definition>>,
    /// Maps a name to the feeds of this name that services advertise. Several services may
    /// advertise the same name.
    pub(super) advertised: BTreeMap<String, Vec<Definition>>,
}

impl Reader<'_> {
    /// The listeners of the services, each with its node and its path in the manifest.
    pub(super) fn services<'b>(&self, root: &'b Node) -> Vec<(&'b Node, String, Listener)> {
        let organism = root.key("name").and_then(Node::text);
        let agents = self.agent_names(root);
        let all = root.key("services").map(Node::entries).unwrap_or_default();
        let urls = all.iter().filter_map(|(_, node)| node.key("url")?.text());
        let hosts: Vec<String> = urls.filter_map(host_and_port).collect();
        let made = all.iter().filter_map(|(name, node)| {
            let path = format!("services.{name}");
            let mut settings = Settings::new(node.key("url")?.text()?);
            let pod = self.pods.service_pods.get(*name).map(String::as_str).or(organism);
            settings.pod = pod.map(str::to_owned);
            settings.organism = organism.map(str::to_owned);
            settings.hosts = hosts.clone();
            settings.auth = self.credential(name, node);
            settings.agents = self.of_agents(&agents, name, organism);
            let listener = self.service(node, &path, settings)?;
            Some((*node, path, listener.named(*name)))
        });
        made.collect()
    }

    /// The names of the agents of the manifest, its pods and its included files.
    fn agent_names(&self, root: &Node) -> Vec<String> {
        let items = self.items(root);
        let agents = items.iter().map(|(_, it)| it);
        let agents = agents.filter(|it| it.key("use").and_then(Node::text) == Some(AGENT));
        agents.filter_map(|it| it.key("name")?.text().map(str::to_owned)).collect()
    }

    /// The credential file of a service: `auth`, or else `service-auth/<service>.json`, if there is
    /// such a file.
    fn credential(&self, name: &str, node: &Node) -> Option<ManifestPath> {
        match node.key("auth") {
            Some(auth) => auth.text().map(|it| ManifestPath::in_folder(self.folder(), it)),
            None => existing(self.folder(), name),
        }
    }

    /// Maps each agent to its pod and to its own credential for a service. Agents with neither are
    /// left out, because the service's own settings apply to them.
    fn of_agents(
        &self,
        agents: &[String],
        service: &str,
        organism: Option<&str>,
    ) -> BTreeMap<String, AgentSettings> {
        // Other names are mistakes, and the name `..` would lead out of the folder.
        let is_sound = |it: &&String| check::is_name(it) && xml::is_name(it);
        let all = agents.iter().filter(is_sound).filter_map(|agent| {
            let auth = existing(&self.context.join(agent), service);
            let pod = self.pods.agent_pods.get(agent);
            let pod = pod.and_then(|it| it.clone().or_else(|| organism.map(str::to_owned)));
            let is_other = auth.is_some() || pod.is_some();
            is_other.then(|| (agent.clone(), AgentSettings { auth, pod }))
        });
        all.collect()
    }

    fn service(&self, node: &Node, path: &str, settings: Settings) -> Option<Listener> {
        let mut settings = settings;
        let more = node.key("hosts").map(Node::items).unwrap_or_default();
        settings.hosts.extend(more.iter().filter_map(Node::text).map(str::to_owned));
        if let Some(seconds) = node.key("timeout").and_then(Node::text).and_then(amount::time) {
            let whole = seconds.as_millis().div_ceil(1_000).max(1);
            settings.limits.seconds_max = u64::try_from(whole).unwrap_or(u64::MAX);
        }
        let made = service(&settings).map_err(|error| {
            // The text of the error begins with the wrong key, unless that is `url`.
            let key = ["auth", "hosts"].into_iter().find(|it| error.starts_with(*it));
            let key = key.unwrap_or("url");
            let at = node.key(key).unwrap_or(node);
            self.wrong(Mistake::new(at.place, error).at(&joined(path, key)));
        });
        made.ok()
    }

    /// Reads `feeds-defaults`, and the feeds that services advertise.
    pub(super) fn common_feeds(&self, root: &Node) -> CommonFeeds {
        let mut common = CommonFeeds::default();
        for (name, node) in root.key("services").map(Node::entries).unwrap_or_default() {
            let path = format!("services.{name}.feeds");
            let feeds = node.key("feeds").map(Node::items).unwrap_or_default();
            for (number, feed) in feeds.iter().enumerate() {
                let path = format!("{path}[{number}]");
                if let Some(it) = self.feed(feed, &path, (Some(name), number)) {
                    common.advertised.entry(it.id.clone()).or_default().push(it);
                }
            }
        }
        if let Some(node) = root.key("feeds-defaults") {
            common.defaults = Some(self.feed_list(node, "feeds-defaults", &common));
        }
        common
    }

    /// The feeds of an agent: those of `context_feeds`, then those of `feeds`. Without `feeds`, an
    /// agent has the defaults.
    pub(super) fn context_feeds(&self, item: &Node, path: &str) -> Option<Feeds> {
        let mut feeds: Feeds = self.surroundings(item, "context_feeds", path)?;
        let (node, list_path) = (item.key("feeds"), joined(path, "feeds"));
        let list = match node {
            Some(node) => self.feed_list(node, &list_path, &self.common_feeds),
            None => self.common_feeds.defaults.clone().unwrap_or_default(),
        };
        if let Some(name) = item.key("name").and_then(Node::text) {
            let feeds = list.iter().filter_map(agent_feed).collect();
            self.agent_feeds.borrow_mut().insert(name.to_owned(), feeds);
        }
        for definition in list {
            match feeds.clone().with(definition) {
                Ok(it) => feeds = it,
                Err(error) => {
                    let place = node.unwrap_or(item).place;
                    self.wrong(Mistake::new(place, error.to_string()).at(&list_path));
                    return None;
                }
            }
        }
        if let Some(name) = item.key("name").and_then(Node::text) {
            let settable = self.settable.take();
            self.settable.replace(settable.with(name, &feeds));
        }
        match item.key("feed_injection") {
            Some(node) => self.injected(feeds, node, &joined(path, "feed_injection")),
            None => Some(feeds),
        }
    }

    fn injected(&self, feeds: Feeds, node: &Node, path: &str) -> Option<Feeds> {
        let bytes = |key: &str| node.key(key).and_then(Node::text).and_then(amount::bytes);
        let injection = Injection {
            form: node.key("form").and_then(Node::text).map(|it| match it {
                "markers" => BlockForm::Markers,
                _ => BlockForm::Xml,
            }),
            refreshed: node.key("refreshed").and_then(Node::flag),
            feed_bytes_max: bytes("feed_bytes_max").map(|it| it as u64),
            feeds_bytes_max: bytes("feeds_bytes_max").map(|it| it as u64),
        };
        let feeds = feeds.injected(injection).map_err(|error| {
            self.wrong(Mistake::new(node.place, error.to_string()).at(path));
        });
        feeds.ok()
    }

    fn feed_list(&self, node: &Node, path: &str, common: &CommonFeeds) -> Vec<Definition> {
        let (mut all, mut is_spread) = (Vec::new(), false);
        for (number, item) in node.items().iter().enumerate() {
            let path = format!("{path}[{number}]");
            let wrong = |text: String, advice: &str| {
                self.wrong(Mistake::new(item.place, text).at(&path).advice(advice));
            };
            match item.text() {
                Some(SPREAD) if is_spread => {
                    wrong("`...` stands twice".to_owned(), "it may stand once in a list");
                }
                Some(SPREAD) => {
                    is_spread = true;
                    match &common.defaults {
                        Some(defaults) => all.extend(defaults.iter().cloned()),
                        None => wrong(
                            "`...` stands for the default feeds, and there are none".to_owned(),
                            "declare some under `feeds-defaults`",
                        ),
                    }
                }
                Some(name) => all.extend(self.advertised(name, item, &path, common)),
                None => all.extend(self.feed(item, &path, (None, number))),
            }
        }
        all
    }

    /// Returns the feed of this name that a service advertises. If no service advertises the name,
    /// or several services do, adds a mistake and returns None.
    fn advertised(
        &self,
        name: &str,
        item: &Node,
        path: &str,
        common: &CommonFeeds,
    ) -> Option<Definition> {
        let (text, advice) = match common.advertised.get(name).map_or(&[][..], Vec::as_slice) {
            [one] => return Some(one.clone()),
            [] if common.advertised.is_empty() => {
                let text = format!("no service has a feed `{}`: none has any", cut(name));
                (text, "declare it under `feeds` of a service, or give `source` and `path`".into())
            }
            [] => {
                let all: Vec<&str> = common.advertised.keys().map(String::as_str).collect();
                let text = format!("no service has a feed `{}`", cut(name));
                (text, format!("there is {}", all.join(", ")))
            }
            several => {
                let sources = several.iter().filter_map(|it| it.source.as_ref()?.name.as_deref());
                let sources = sources.collect::<Vec<_>>().join(", ");
                let text = format!("several services have a feed `{}`: {sources}", cut(name));
                (text, "give `source` and `path`".to_owned())
            }
        };
        let known = common.advertised.keys().map(String::as_str);
        let mistake = Mistake::new(item.place, text).at(path);
        self.wrong(mistake.or_nearest(name, known).advice(advice));
        None
    }

    /// A feed of a service: its `source`, `path` and `ttl`, and the keys that any feed may have.
    fn feed(
        &self,
        node: &Node,
        path: &str,
        (service, number): (Option<&str>, usize),
    ) -> Option<Definition> {
        let text = |key: &str| node.key(key).and_then(Node::text);
        let wrong = |key: &str, text: &str, advice: &str| {
            let place = node.key(key).unwrap_or(node).place;
            let mistake = Mistake::new(place, text).at(&joined(path, key));
            self.wrong(mistake.advice(advice));
        };
        let Some(source) = service.or_else(|| text("source")) else {
            wrong("source", "a feed needs a `source`", "name a service, as in `source: claw-api`");
            return None;
        };
        let at = text("path")?;
        if !at.starts_with('/') {
            let text = format!("the path `{}` doesn't begin with `/`", cut(at));
            wrong("path", &text, "write it as in `path: /fleet/alerts`");
            return None;
        }
        let ttl = text("ttl").map_or(Some(TTL_SECONDS), ttl);
        let Some(ttl) = ttl.filter(|it| *it > 0.0) else {
            wrong("ttl", "a ttl is more than 0", "give it in seconds, as in `ttl: 30`");
            return None;
        };
        let params = Json::Object(Map::from_iter([
            ("path".to_owned(), json!(at)),
            ("ttl".to_owned(), json!(ttl)),
        ]));
        let id = text("name").map_or_else(|| id_of(source, at, number), str::to_owned);
        let source = Source::service(source).params(params);
        let ttl = Duration::try_from_secs_f64(ttl).unwrap_or(Duration::MAX);
        let mut definition = Definition::on_demand(id, source).cache_ttl(ttl);
        definition.max_tokens = text("max_tokens").and_then(amount::count).map(|it| it as u64);
        definition.timeout = text("timeout").and_then(amount::number);
        definition.enabled = node.key("enabled").and_then(Node::flag);
        definition.inject = text("inject").map(|it| match it {
            "referenced" => Inject::Referenced,
            _ => Inject::Always,
        });
        definition.transform = node.key("transform").map(transform);
        Some(definition)
    }
}

fn transform(node: &Node) -> Transform {
    let text = |key: &str| node.key(key).and_then(Node::text).map(str::to_owned);
    let mut transform = Transform::default();
    (transform.jsonpath, transform.template) = (text("jsonpath"), text("template"));
    transform
}

/// The file `service-auth/<service>.json` in a folder, if there is one.
fn existing(folder: &Path, service: &str) -> Option<ManifestPath> {
    let file = format!("service-auth/{service}.json");
    // A symbolic link that leads nowhere counts as a file here, and so does a file whose folder
    // can't be searched: each is reported as a mistake.
    let found = folder.join(&file).symlink_metadata();
    let is_missing = found.is_err_and(|it| it.kind() == ErrorKind::NotFound);
    (!is_missing).then(|| ManifestPath::in_folder(folder, &file))
}

/// A feed of a service in the form of `feeds.json`. None if the feed is switched off.
fn agent_feed(feed: &Definition) -> Option<AgentFeed> {
    let source = feed.source.as_ref().filter(|_| feed.enabled != Some(false))?;
    let params = source.params.as_ref()?;
    let ttl = params.0["ttl"].as_f64()?;
    Some(AgentFeed {
        name: feed.id.clone(),
        source: source.name.clone()?,
        path: params.0["path"].as_str()?.to_owned(),
        ttl: amount_of(ttl)?,
    })
}

/// A number as JSON. A whole number is written without a fraction.
fn amount_of(number: f64) -> Option<Number> {
    let whole = format!("{number:.0}").parse::<u64>().ok();
    let whole = whole.filter(|_| number.fract() == 0.0).map(Number::from);
    whole.or_else(|| Number::from_f64(number))
}

/// Reads a time in seconds, with or without a unit: `30` or `30s`.
fn ttl(text: &str) -> Option<f64> {
    amount::number(text).or_else(|| amount::time(text).map(|it| it.as_secs_f64()))
}

/// The id of a feed that has no name: the last part of its path, as ADR-013 derives it. If the path
/// has no such part, the id is made of the source's name and the feed's number.
fn id_of(source: &str, path: &str, number: usize) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let last = path.trim_matches(['/', '.']).rsplit('/').next().unwrap_or_default();
    // A reference such as `${metadata.field}` contributes the text in its braces.
    let last = last.replace(['$', '{', '}'], "");
    let word = |it: char| if it.is_ascii_alphanumeric() || it == '_' { it } else { '-' };
    match last.is_empty() {
        true => format!("{source}-feed-{}", number + 1),
        false => last.chars().map(word).collect(),
    }
}

/// The host and port of a URL, in the form of an item of `hosts`.
fn host_and_port(url: &str) -> Option<String> {
    let url: reqwest::Url = url.parse().ok()?;
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_without_a_name_is_called_by_its_path() {
        for (path, id) in [
            ("/api/v1/market-summary", "market-summary"),
            ("/fleet/alerts", "alerts"),
            ("/fleet/alerts/", "alerts"),
            ("/data.json", "data-json"),
            ("/news/${metadata.status}", "metadata-status"),
            ("/news?of=today", "news"),
            ("/", "api-feed-3"),
            ("/..", "api-feed-3"),
        ] {
            assert_eq!(id_of("api", path, 2), id, "{path}");
        }
    }
}
