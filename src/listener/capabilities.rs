//! Capabilities: the listeners of an organism, and every payload that they take and emit. Handlers,
//! plans, pumps and the command line use them to describe an organism, and to find the payload that
//! a word means.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::limits::XmlLimits;
use crate::listener::{
    Context, DoorAccess, Effects, Extensions, FromContext, HandlerKey, Spec, may_emit,
};
use crate::name::{AGENT, CORE, META, Name};
use crate::schema::{self, Content, Schema, nearest};
use crate::wire::{Catalog, Fault, quoted};
use crate::xml::{Element, Writer};

/// The organism's listeners and their payloads. A handler takes `Capabilities` as an argument. A
/// [`Plan`](crate::engine::Plan) and a [`Pump`](crate::Pump) return them. Cloning them only raises
/// a reference count.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
/// # use pumphouse::prelude::*;
/// # #[derive(Payload)]
/// # #[payload(ns = "https://example.org/ns/echo/v1")]
/// /// Comes back as it is.
/// # struct Echo {
/// #     text: String,
/// # }
/// # async fn echo(it: Echo) -> Echo {
/// #     it
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let plan = pumphouse::builder().with(Listener::new("echo").on(echo)).build()?;
/// let echo = plan.capabilities().find("echo")?;
/// assert_eq!(echo.doc(), "Comes back as it is.");
/// let unknown = plan.capabilities().find("ehco").unwrap_err();
/// assert_eq!(unknown.nearest.as_deref(), Some("echo"));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Capabilities(Arc<Inner>);

struct Inner {
    listeners: Vec<Described>,
    /// Maps a listener's name to its place in `listeners`.
    places: FxHashMap<String, usize>,
    catalog: Catalog,
}

/// The description of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Described {
    /// The listener's name.
    pub name: String,
    /// Its author's description.
    pub text: Option<String>,
    /// Its kind: `tool`, `agent` or another.
    pub kind: String,
    /// The model that it asks, if its author names one.
    pub model: Option<String>,
    /// The media types of attachments that its model takes.
    pub attachments: Vec<String>,
    /// The payloads that are routed to it.
    pub takes: Vec<Name>,
    /// For each payload in `takes`: the payloads that its handler may emit, by the handler's
    /// signature.
    pub emits: Arc<BTreeMap<Name, Vec<Name>>>,
    /// The payloads that its handlers of replies may emit, by their signatures.
    pub emits_then: Arc<BTreeSet<Name>>,
    /// Its grants.
    pub grants: Vec<String>,
    /// The listeners that it may address; `None` means every listener.
    pub peers: Option<Arc<[String]>>,
    /// The listeners without which it can't work. It may always address them.
    pub relies_on: Arc<[String]>,
    /// How many turns it has in a thread, if it limits them.
    pub turns_max: Option<u64>,
    /// What a call may do besides answering, if its author declares it.
    pub effects: Option<Effects>,
    /// Who may send it messages at a door.
    pub door: DoorAccess,
    /// Whether it may handle any message twice with the effect of once.
    pub idempotent: bool,
    pub(crate) extensions: Extensions,
}

/// The error for a word that names no payload, or several.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unfound {
    /// The word as messages show it. A long one is cut off.
    pub word: String,
    /// The payloads that the word may mean, each as a word that names only this payload. Empty if
    /// the word names none.
    pub choices: Vec<String>,
    /// The word most similar to `word` that names a payload or a listener. None if there is no
    /// similar word, or if there are `choices`.
    pub nearest: Option<String>,
}

impl Capabilities {
    pub(crate) fn new(listeners: Vec<Described>, catalog: Catalog) -> Capabilities {
        let places = listeners.iter().enumerate().rev().map(|(at, it)| (it.name.clone(), at));
        let places = places.collect();
        Capabilities(Arc::new(Inner { listeners, places, catalog }))
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.0.catalog
    }

    /// Every listener, in the order of registration.
    #[must_use]
    pub fn listeners(&self) -> &[Described] {
        &self.0.listeners
    }

    /// The listener with this name.
    #[must_use]
    pub fn listener(&self, name: &str) -> Option<&Described> {
        self.0.places.get(name).map(|it| &self.listeners()[*it])
    }

    /// Every schema, including those of the pump's own payloads, in the order of their names.
    #[must_use]
    pub fn schemas(&self) -> Vec<&Schema> {
        self.0.catalog.all()
    }

    /// The schema of a payload name.
    #[must_use]
    pub fn schema(&self, name: &Name) -> Option<&Schema> {
        self.0.catalog.get(name)
    }

    /// The payload names with this local part.
    #[must_use]
    pub fn named(&self, local: &str) -> &[Name] {
        self.0.catalog.named(local)
    }

    /// Checks a payload against its schema, and returns it in the form that the schema prescribes.
    /// A payload without a namespace gets the namespace of `name`, so that its author needn't know
    /// namespaces.
    ///
    /// # Errors
    /// If the payload doesn't match its schema. The fault has the reason, the path to the wrong
    /// element, and the element's position in the text.
    pub fn understand(&self, element: &Element, name: &Name) -> Result<Element, Fault> {
        let to = Writer::new(XmlLimits::INSIDE);
        let checked = match element.namespace() {
            "" => self.0.catalog.check_as(element, name.namespace(), to),
            _ => self.0.catalog.check(element.clone()),
        };
        Ok(checked?.element().clone())
    }

    /// The listeners to which a payload is routed. Listeners that only take it as a reply don't
    /// count.
    pub fn takers(&self, name: &Name) -> impl Iterator<Item = &Described> {
        self.listeners().iter().filter(move |it| it.takes.contains(name))
    }

    /// The listeners that may emit a payload, by the signatures of their handlers.
    pub fn emitters(&self, name: &Name) -> impl Iterator<Item = &Described> {
        self.listeners().iter().filter(move |it| it.may_say(name))
    }

    /// The schema of the payload that a word means. The word is `{namespace}local`, a local name,
    /// `listener.payload`, or the name of a listener that takes only one payload.
    ///
    /// # Errors
    /// If the word means no payload, or several.
    pub fn find(&self, word: &str) -> Result<&Schema, Unfound> {
        let mut found: Vec<&Name> = self.named(word).iter().collect();
        for meaning in [Capabilities::whole, Capabilities::dotted, Capabilities::taken] {
            if found.is_empty() {
                found = meaning(self, word);
            }
        }
        if let [one] = found[..]
            && let Some(schema) = self.schema(one)
        {
            return Ok(schema);
        }
        let choices: Vec<String> = found.into_iter().map(|it| self.word(it)).collect();
        let nearest = if choices.is_empty() { self.nearest(word) } else { None };
        Err(Unfound { word: quoted(word).into_owned(), choices, nearest })
    }

    /// A word that means this payload and no other: the local name, or the whole name if several
    /// payloads have that local name.
    #[must_use]
    pub fn word(&self, name: &Name) -> String {
        match self.named(name.local()) {
            [_] => name.local().to_owned(),
            _ => name.to_string(),
        }
    }

    /// A filled example of a payload, which can be sent as it is. Where the schema allows any
    /// element, the example has a payload that a listener of this organism takes, if there is one.
    #[must_use]
    pub fn example(&self, schema: &Schema) -> String {
        schema::example_with(schema, self.any())
    }

    /// The description of a payload for a model, with the same example as
    /// [`example`](Capabilities::example).
    #[must_use]
    pub fn prompt(&self, schema: &Schema) -> String {
        schema::prompt_with(schema, self.any())
    }

    /// The schema of the payload that examples contain where any element is allowed. It is the
    /// first payload, by name, that a listener takes and that is neither reserved nor in the
    /// namespaces [`CORE`], [`META`] and [`AGENT`]. Payloads whose own content may be any element
    /// come last.
    fn any(&self) -> Option<&Schema> {
        let taken = self.listeners().iter().flat_map(|it| &it.takes);
        let own = taken.filter(|it| ![CORE, META, AGENT].contains(&it.namespace()));
        let own = own.filter_map(|it| self.schema(it)).filter(|it| !it.reserved);
        own.min_by_key(|it| (matches!(it.shape.content, Content::Any), &it.name))
    }

    /// The capabilities that a listener may know: the listener itself, its peers, the listeners
    /// that it relies on, their payloads, and the payloads in the namespace [`CORE`]. If the
    /// listener is unknown, or may address every listener, these are all capabilities.
    #[must_use]
    pub fn seen_by(&self, listener: &str) -> Capabilities {
        let own = self.listener(listener).filter(|it| it.peers.is_some());
        let Some(own) = own else { return self.clone() };
        let peers = own.peers.iter().flat_map(|it| it.iter());
        let names = peers.chain(own.relies_on.iter()).chain([&own.name]);
        let places = names.filter_map(|it| self.0.places.get(it).copied());
        // An organism may have thousands of listeners, so the known ones are looked up by name.
        let places: BTreeSet<usize> = places.collect();
        let known = places.into_iter().map(|it| &self.listeners()[it]);
        let known: Vec<Described> = known.cloned().collect();
        let catalog =
            self.catalog().only(known.iter().flat_map(|it| it.takes.iter().chain(it.said())));
        Capabilities::new(known, catalog)
    }

    fn whole(&self, word: &str) -> Vec<&Name> {
        let is_it = |it: &&Schema| it.name.to_string() == word;
        self.schemas().into_iter().filter(is_it).map(|it| &it.name).collect()
    }

    fn dotted(&self, word: &str) -> Vec<&Name> {
        let taken = |described: &Described, name: &Name| {
            word.strip_prefix(&*described.name).and_then(|it| it.strip_prefix('.'))
                == Some(name.local())
        };
        let all = self.listeners().iter();
        all.flat_map(|it| it.takes.iter().filter(|name| taken(it, name))).collect()
    }

    fn taken(&self, word: &str) -> Vec<&Name> {
        self.listener(word).map_or_else(Vec::new, |it| it.takes.iter().collect())
    }

    fn nearest(&self, word: &str) -> Option<String> {
        if let Some((namespace, local)) = word.strip_prefix('{').and_then(|it| it.split_once('}')) {
            return self.nearest_name(namespace, local).map(ToString::to_string);
        }
        let mut words: Vec<String> = Vec::new();
        words.extend(self.schemas().into_iter().map(|it| it.name.local().to_owned()));
        for listener in self.listeners() {
            words.push(listener.name.clone());
            let locals = listener.takes.iter().map(Name::local);
            words.extend(locals.map(|it| format!("{}.{it}", listener.name)));
        }
        nearest(word, words.iter().map(String::as_str)).map(str::to_owned)
    }

    /// The name with the most similar local part: in this namespace or, if no name there is
    /// similar, in any namespace.
    fn nearest_name(&self, namespace: &str, local: &str) -> Option<&Name> {
        let all: Vec<&Name> = self.schemas().into_iter().map(|it| &it.name).collect();
        let beside: Vec<&Name> =
            all.iter().filter(|it| it.namespace() == namespace).copied().collect();
        [beside, all].into_iter().find_map(|names| {
            let right = nearest(local, names.iter().map(|it| it.local()))?;
            names.into_iter().find(|it| it.local() == right)
        })
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.listeners()).finish()
    }
}

#[diagnostic::do_not_recommend]
impl<S> FromContext<S> for Capabilities {
    fn from_context(context: &Context<S>) -> Result<Capabilities, Fault> {
        Ok(context.call.host.capabilities().clone())
    }
}

impl Described {
    /// Whether the listener may know `other`: itself, a peer, or a listener that it relies on. A
    /// listener without a list of peers may know every listener.
    #[must_use]
    pub fn knows(&self, other: &Described) -> bool {
        let Some(peers) = &self.peers else { return true };
        other.name == self.name
            || peers.contains(&other.name)
            || self.relies_on.contains(&other.name)
    }

    /// Whether the listener has a grant to emit this reserved payload, or all reserved payloads.
    #[must_use]
    pub fn may_emit(&self, reserved: &Name) -> bool {
        may_emit(&self.grants, reserved)
    }

    /// Whether the listener may emit this payload, by its signatures.
    fn may_say(&self, name: &Name) -> bool {
        self.said().any(|it| it == name)
    }

    /// The value of this type that the listener declares about itself with
    /// [`Listener::extension`](crate::Listener::extension). None if there is no such value.
    #[must_use]
    pub fn extension<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.extensions.get()
    }

    /// The payloads that the listener may emit, by its signatures. Some may be listed more than
    /// once.
    fn said(&self) -> impl Iterator<Item = &Name> {
        self.emits.values().flatten().chain(&*self.emits_then)
    }

    /// The payloads that the listener may emit because it gets the payload `name`. These are the
    /// payloads that the handler of `name` may emit. If there are any, those that the handlers of
    /// replies may emit are added.
    #[must_use]
    pub fn causes(&self, name: &Name) -> Vec<&Name> {
        let mut all: Vec<&Name> = self.emits.get(name).into_iter().flatten().collect();
        if !all.is_empty() {
            all.extend(&*self.emits_then);
        }
        let mut seen = BTreeSet::new();
        all.retain(|it| seen.insert(*it));
        all
    }

    /// The description of a listener.
    pub(crate) fn of(spec: &Spec) -> Described {
        let routes = spec.handlers.iter().filter_map(|(key, _)| match key {
            HandlerKey::Route(name) => Some(name.clone()),
            HandlerKey::Reply(_) | HandlerKey::AnyReply => None,
        });
        let mut takes: Vec<Name> = routes.collect();
        takes.sort();
        Described {
            name: spec.name.clone(),
            text: spec.text.clone(),
            kind: spec.kind.clone().unwrap_or_else(|| {
                if spec.traits.own_thread { "agent" } else { "tool" }.to_owned()
            }),
            model: spec.model.clone(),
            attachments: spec.attachments.clone(),
            takes,
            emits: spec.emits.clone(),
            emits_then: spec.emits_then.clone(),
            grants: spec.grants.iter().cloned().collect(),
            peers: spec.peers.clone(),
            relies_on: spec.relies_on.clone(),
            turns_max: spec.turns_max,
            effects: spec.effects,
            door: spec.door_access(),
            idempotent: spec.traits.idempotent,
            extensions: spec.extensions.clone(),
        }
    }
}

impl fmt::Display for Unfound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unfound { word, choices, nearest } = self;
        if !choices.is_empty() {
            return write!(f, "{word} may be any of {}; say which", choices.join(", "));
        }
        write!(f, "no payload and no listener is called {word}")?;
        nearest.as_ref().map_or(Ok(()), |it| write!(f, "; did you mean {it}?"))
    }
}

impl Error for Unfound {}
