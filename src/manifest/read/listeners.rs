//! Reads the listeners of a manifest. Finds names that several have, and peers that nothing has.

use std::collections::{BTreeMap, BTreeSet};

use crate::door::Tokens;
use crate::engine::{Factory, Unmade};
use crate::listener::{DoorAccess, Listener};
use crate::listeners::feed_values;
use crate::manifest::amount;
use crate::manifest::check;
use crate::manifest::check::joined;
use crate::manifest::key_table::AGENT;
use crate::manifest::mistake::{Mistake, Place, cut};
use crate::manifest::read::known::Known;
use crate::manifest::read::workflows::Workflows;
use crate::manifest::read::{Reader, agent};
use crate::manifest::settings::{At, Findings};
use crate::manifest::yaml::{Node, Value};
use crate::name::{CORE_NAME, Name};
use crate::schema::nearest;
use crate::trigger_source::TriggerSource;

impl Reader<'_> {
    /// Reads the listeners of the manifest, and compares them with each other, with the workflows
    /// and with the tokens.
    pub(super) fn listeners(
        &self,
        items: &[(String, &Node)],
        services: Vec<(&Node, String, Listener)>,
        (workflows, source): (&Workflows<'_>, &TriggerSource),
        tokens: Option<&Tokens>,
    ) -> Vec<Listener> {
        self.prepare(items);
        let listed = items.iter().filter_map(|(path, item)| {
            Some((*item, path.clone(), self.listener(item, path, workflows)?))
        });
        let listed: Vec<_> = listed.collect();
        // A listener with mistakes may have any payload, so the payloads are known only if no
        // listener has mistakes.
        let are_known = listed.len() == items.len();
        let made: Vec<(&Node, String, Listener)> = services.into_iter().chain(listed).collect();
        let mut names = self.check_names(&made, tokens);
        let values = self.feed_values();
        names.extend(values.as_ref().map(|_| (feed_values::NAME, None)));
        let known = Known {
            names: self.known_names(items, &mut names),
            kinds: items.iter().filter_map(|(_, it)| self.named_otherwise(it)).collect(),
        };
        let included = &self.includes.workflows;
        names.extend(included.iter().filter_map(|it| Some((it.key("name")?.text()?, None))));
        self.targets(included, &names, &known);
        let own = made.iter().flat_map(|(.., it)| it.payloads());
        let payloads: BTreeSet<&Name> = own.chain(self.builder.payloads()).collect();
        for (path, item) in items {
            self.peers(item, path, &names, &known);
            self.door_names(item, path, tokens);
            self.sources(item, path, (&names, &known), &made);
            self.metadata_of_feeds(item, path, items);
            if are_known {
                self.finals(item, path, &payloads);
            }
        }
        let in_part = workflows.wrong_listeners();
        let made_here = made.iter().map(|(.., it)| it).chain(&values).chain(&in_part);
        let all = self.builder.capabilities_with(made_here);
        self.calls(items, &names, &all);
        // A trigger may watch, and a template call, a payload of a part that has mistakes.
        let is_whole = are_known && workflows.are_all(included) && !self.lacks_payloads();
        if is_whole {
            self.templates(items, &names, &known, &all);
        }
        self.wrong_triggers(source, &all, is_whole);
        self.complaints(&made);
        made.into_iter().map(|(.., it)| it).chain(values).collect()
    }

    /// Whether a mistake outside of `listeners` makes payloads unknown: one in a file or a service
    /// that has them, or in the name of such a key.
    fn lacks_payloads(&self) -> bool {
        let sources = ["schemas", "services", "pods", "include", "listeners"];
        let is_source = |it: &Mistake| {
            let key = it.path.split(['.', '[']).next().unwrap_or_default();
            let is_meant = it.nearest.as_deref().is_some_and(|it| sources.contains(&it));
            it.place.file == 0 && (sources[..4].contains(&key) || *it.path == *key && is_meant)
        };
        self.mistakes.borrow().iter().any(is_source)
    }

    /// Returns the kind of a listener that has another name than its kind, and this name.
    fn named_otherwise<'b>(&self, item: &'b Node) -> Option<(&'b str, &'b str)> {
        let kind = item.key("use")?.text().filter(|it| *it != AGENT)?;
        let name = item.key("name")?.text().filter(|it| *it != kind && may_be_called(it))?;
        Some((kind, name))
    }

    /// Checks the names of listeners: adds a mistake for each name that two listeners have, and for
    /// each that something else has. Returns the names, with the places in the manifest that give
    /// them.
    fn check_names<'b>(
        &'b self,
        made: &'b [(&'b Node, String, Listener)],
        tokens: Option<&Tokens>,
    ) -> BTreeMap<&'b str, Option<Place>> {
        let mut names = BTreeMap::new();
        names.extend(self.builder.listeners().map(|it| (it, None)));
        for (number, (item, path, listener)) in made.iter().enumerate() {
            let (name, at) = (listener.name(), item.key("name").unwrap_or(item));
            let wrong = |text: String, advice: &str| {
                self.wrong(Mistake::new(at.place, text).at(path).advice(advice));
            };
            if let Some(first) = names.insert(name, Some(at.place)) {
                let first = first.map_or("the program".to_owned(), |it| self.line(it, at.place));
                let text = format!("{first} has a listener `{name}` already");
                let other = made[..number].iter().map(|it| &it.2).find(|it| it.name() == name);
                // Payloads that depend on the listener's name no longer conflict once the names
                // differ.
                let is_agent = item.key("use").and_then(Node::text) == Some(AGENT);
                let by_name = is_agent || listener.has_own_namespace();
                match other.filter(|_| !by_name).and_then(|it| it.disputes(listener)) {
                    Some(it) => {
                        wrong(text, &format!("keep one: only one can take {it}, by any `name:`"));
                    }
                    None => wrong(text, "give this one a `name:` of its own"),
                }
            }
            if name == CORE_NAME {
                wrong("`core` is the pump's own name".to_owned(), "give it another `name:`");
            }
            if tokens.is_some_and(|it| it.names().any(|it| it == name)) {
                let text = format!("`{name}` has a token: an identity and a listener of one name");
                wrong(text, "give the listener another `name:`");
            }
        }
        names
    }

    /// Adds the names of all `items` to `names`, because a listener with mistakes counts as known,
    /// too. Returns the names that advice may suggest. These don't include forbidden names,
    /// and the names of listeners whose kind is neither known nor similar to a known kind.
    fn known_names<'b>(
        &'b self,
        items: &'b [(String, &'b Node)],
        names: &mut BTreeMap<&'b str, Option<Place>>,
    ) -> Vec<&'b str> {
        let mut known: Vec<&str> = names.keys().copied().filter(|it| may_be_called(it)).collect();
        names.extend(items.iter().filter_map(|(_, it)| Some((self.meant(it)?, None))));
        known.extend(items.iter().filter_map(|(_, it)| {
            let kind = it.key("use").and_then(Node::text)?;
            let mut kinds = self.kinds();
            let is_known =
                kinds.clone().any(|it| it == kind) || nearest(kind, &mut kinds).is_some();
            self.meant(it).filter(|it| is_known && may_be_called(it))
        }));
        known.sort_unstable();
        known.dedup();
        known
    }

    /// Has each factory do its work beforehand, for all its listeners.
    fn prepare(&self, items: &[(String, &Node)]) {
        for (_, item) in items {
            let kind = item.key("use").and_then(Node::text);
            let mut factories = self.builder.factories().iter();
            let factory = factories.find(|it| Some(it.name()) == kind);
            let Some(factory) = factory.filter(|it| it.prepares()) else { continue };
            let Some(node) = item.key("settings") else { continue };
            // Mistakes are told when the listener is made.
            let findings = Findings::of(self.file).with(&self.schemas);
            let at = At { node, path: String::new(), findings: &findings };
            factory.prepare(&mut <dyn erased_serde::Deserializer<'_>>::erase(at));
        }
    }

    /// The listener that keeps the contents of set feeds. None if no agent has such a feed.
    fn feed_values(&self) -> Option<Listener> {
        let settable = self.settable.take();
        (!settable.is_empty()).then(|| feed_values::feed_values(settable))
    }

    /// Returns the name that a listener has, or would have without its mistakes: `name`, or else
    /// its kind. A misspelt kind is taken for the nearest one.
    pub(super) fn meant<'b>(&'b self, item: &'b Node) -> Option<&'b str> {
        let kind = item.key("use").and_then(Node::text)?;
        let kinds = || self.kinds();
        let near = || if kinds().any(|it| it == kind) { None } else { nearest(kind, kinds()) };
        item.key("name").and_then(Node::text).or_else(near).or(Some(kind))
    }

    fn peers(
        &self,
        item: &Node,
        path: &str,
        names: &BTreeMap<&str, Option<Place>>,
        known: &Known<'_>,
    ) {
        let peers = item.key("peers").map(Node::items).unwrap_or_default();
        for (number, peer) in peers.iter().enumerate() {
            let Some(name) = peer.text().filter(|it| !names.contains_key(it)) else { continue };
            let text = format!("there is no listener `{}`", cut(name));
            let path = joined(path, &format!("peers[{number}]"));
            let mistake = Mistake::new(peer.place, text).at(&path);
            self.wrong(self.to_add(mistake, name, known));
        }
    }

    /// Adds a mistake for each name in a listener's `door` that no token has.
    fn door_names(&self, item: &Node, path: &str, tokens: Option<&Tokens>) {
        let Some(tokens) = tokens else { return };
        let identities: Vec<String> = tokens.names().collect();
        let known = || identities.iter().map(String::as_str).chain([DoorAccess::OPERATORS]);
        let names = item.key("door").map(Node::items).unwrap_or_default();
        for (number, at) in names.iter().enumerate() {
            let Some(name) = at.text().filter(|name| !known().any(|it| it == *name)) else {
                continue;
            };
            let text = format!("no token is of `{}`", cut(name));
            let path = joined(path, &format!("door[{number}]"));
            let mistake = Mistake::new(at.place, text).at(&path).or_nearest(name, known());
            let all = known().collect::<Vec<_>>().join(", ");
            self.wrong(mistake.advice(format!("there is {all}")));
        }
    }

    fn listener(&self, item: &Node, path: &str, workflows: &Workflows<'_>) -> Option<Listener> {
        let at = item.key("use")?;
        let kind = at.text().filter(|it| check::is_name(it))?;
        let factory = self.builder.factories().iter().find(|it| it.name() == kind);
        let made = match (kind, factory) {
            (AGENT, _) => self.agent(item, path, workflows.watch(item)),
            (_, Some(factory)) => self.made(factory, item, path),
            (_, None) => {
                let text = format!("no listener is of the kind `{}`", cut(kind));
                let mistake = Mistake::new(at.place, text).at(&joined(path, "use"));
                let there = format!("there is {}", self.kinds().collect::<Vec<_>>().join(", "));
                self.wrong(mistake.or_nearest(kind, self.kinds()).advice(there));
                None
            }
        };
        let mut listener = made?;
        if let Some((at, name)) = item.key("name").and_then(|it| Some((it, it.text()?))) {
            if listener.has_own_namespace() && agent::TAKEN.contains(&name) {
                let text = format!("`{name}` is a word of the pump's own");
                let mistake = Mistake::new(at.place, text).at(&joined(path, "name"));
                self.wrong(mistake.advice("give it another `name:`"));
            }
            listener = listener.named(name);
        }
        if let Some(text) = item.key("describe").and_then(Node::text) {
            listener = listener.describe(text);
        }
        if item.key("idempotent").and_then(Node::text) == Some("true") {
            listener = listener.idempotent();
        }
        if let Some(limit) = item.key("timeout").and_then(Node::text).and_then(amount::time) {
            listener = listener.timeout(limit);
        }
        if let Some(peers) = item.key("peers") {
            listener = listener.peers(peers.items().iter().filter_map(Node::text));
        }
        if let Some(door) = item.key("door").and_then(door_access) {
            listener = listener.door(door);
        }
        for (number, at) in item.key("grants").map(Node::items).into_iter().flatten().enumerate() {
            let Some(grant) = at.text() else { continue };
            let grantable = listener.grantable();
            if !grantable.iter().any(|it| it == grant) {
                let text = format!("`{kind}` has no use for the grant `{}`", cut(grant));
                let path = joined(path, &format!("grants[{number}]"));
                let mistake = Mistake::new(at.place, text).at(&path);
                let mistake = mistake.or_nearest(grant, grantable.iter().map(String::as_str));
                self.wrong(mistake.advice(format!("it may have {}", grantable.join(", "))));
            }
            listener = listener.grant_named(grant);
        }
        Some(listener)
    }

    /// Makes a listener from its settings.
    fn made(&self, factory: &Factory, item: &Node, path: &str) -> Option<Listener> {
        let none = Node { place: item.place, value: Value::Map(Vec::new()) };
        let node = item.key("settings").unwrap_or(&none);
        let (findings, path) =
            (Findings::of(self.file).with(&self.schemas), joined(path, "settings"));
        let at = At { node, path: path.clone(), findings: &findings };
        let settings = &mut <dyn erased_serde::Deserializer<'_>>::erase(at);
        let mut values = self.builder.values().clone();
        values.put(self.models.clone());
        let made = factory.make(settings, &values);
        let all = findings.all();
        let is_told = !all.is_empty();
        all.into_iter().for_each(|it| self.wrong(it));
        match made {
            Ok(listener) => {
                self.wrong_prices(item, node, &path);
                Some(listener)
            }
            Err(Unmade::Settings(_)) if is_told => None,
            Err(error) => {
                let is_unknown =
                    |it: &&Node| it.text().is_some_and(|it| self.models.get(it).is_err());
                let model = node.key("model").filter(is_unknown);
                // A model with mistakes is reported where it is declared.
                if model.and_then(Node::text).is_some_and(|it| self.is_named(it)) {
                    return None;
                }
                let model = model.map(|it| (it, joined(&path, "model")));
                let (node, path) = model.unwrap_or((node, path));
                self.wrong(Mistake::new(node.place, error.to_string()).at(&path));
                None
            }
        }
    }
}

impl Reader<'_> {
    /// Adds a mistake for each model without a price that a listener's settings name, if the
    /// manifest limits what a tree may cost. A listener `llm` without the key `models` may ask all
    /// models.
    fn wrong_prices(&self, item: &Node, settings: &Node, path: &str) {
        if !self.limits_cost {
            return;
        }
        let is_unpriced = |name: &str| self.models.get(name).is_ok_and(|it| it.price().is_none());
        let model = settings.key("model").map(|it| (it, joined(path, "model")));
        let listed = settings.key("models").map(Node::items).unwrap_or_default();
        let listed = listed.iter().enumerate();
        let listed = listed.map(|(number, it)| (it, joined(path, &format!("models[{number}]"))));
        let mut told = Vec::new();
        for (at, path) in model.into_iter().chain(listed) {
            if let Some(name) = at.text().filter(|it| is_unpriced(it)) {
                told.push(name);
                self.wrong(agent::unpriced(at).at(&path));
            }
        }
        let Some(at) = item.key("use").filter(|it| it.text() == Some("llm")) else { return };
        let is_other = |it: &String| is_unpriced(it) && !told.contains(&it.as_str());
        let others: Vec<String> = self.models.names().filter(is_other).collect();
        if settings.key("models").is_none() && !others.is_empty() {
            let text = format!(
                "`tree_cost_micros_max` can't hold `llm`, which may ask models without a price: {}",
                others.join(", ")
            );
            let advice = "list those that it may ask, as in `settings: {model: m, models: [m]}`";
            self.wrong(Mistake::new(at.place, text).at(path).advice(advice));
        }
    }
}

/// Whether a listener may have this name.
fn may_be_called(name: &str) -> bool {
    check::is_name(name) && name != CORE_NAME
}

/// Who may send a listener messages at a door, as the key `door` says.
fn door_access(node: &Node) -> Option<DoorAccess> {
    match (node.text(), node.items()) {
        (Some("true"), _) => Some(DoorAccess::Everybody),
        (Some("false"), _) => Some(DoorAccess::Nobody),
        (Some(_), _) => None,
        (None, names) => Some(DoorAccess::listed(names.iter().filter_map(Node::text))),
    }
}
