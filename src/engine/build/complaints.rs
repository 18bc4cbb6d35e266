//! The checks of a builder. Each check returns complaints about mistakes in the pump that is to be
//! built.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use crate::engine::build::door::Door;
use crate::limits::XmlLimits;
use crate::listener::{EmitCore, Grant, HandlerKey, Need, Spec, grant_type, may_emit};
use crate::name::{CORE_NAME, Name};
use crate::schema::Schema;
use crate::wire::budget::{BudgetRaised, BudgetWarning, Charge, LoopWarning, OverBudget};
use crate::wire::core::{
    Accepted, Attachment, Authenticate, Authenticated, Boot, ClockSet, ContextCleared,
    ContextRestored, Done, DoorRefusals, Heartbeat, Huh, ListenerJoined, ListenerLeft,
    ListenerStopped, ListenersRetried, LogBackedUp, NothingUnderWay, ProgramOutput, Progress,
    RetryListeners, RulesInForce, ShutdownSignal, SystemThreadError, ThreadCancelled,
    ThreadFollowed, ThreadNote, ThreadResult, ThreadSpawned,
};
use crate::wire::meta::{Follow, Following, Unfollow, Unfollowed};
use crate::wire::{Catalog, Payload};
use crate::xml::Profile;
use crate::{schema, xml};

/// Returns the schemas of all payloads that listeners take or emit, that are declared, or that the
/// pump itself uses. Also returns complaints about different schemas of the same name.
pub(super) fn catalog(specs: &[&Spec], declared: &[Schema]) -> (Catalog, Vec<Complaint>) {
    let mut catalog = Catalog::default();
    for schema in own_schemas() {
        catalog.add(Cow::Borrowed(schema));
    }
    let mut complaints = Vec::new();
    let mut first: BTreeMap<Name, &str> = BTreeMap::new();
    for spec in specs {
        let schemas = spec.needs.iter().filter_map(|it| match it {
            Need::Accept(it) | Need::Emit(it) => Some(it),
            _ => None,
        });
        for schema in schemas {
            if let Some(name) = catalog.add(schema.clone()) {
                let who = first.get(&name).map_or("the pump", |it| it);
                let how = catalog.get(&name).and_then(|it| difference(it, schema));
                let how = how.unwrap_or_default();
                let text = format!("its {name} isn't that of {who}{how}");
                let text = format!("{text}; share the type, or rename one");
                complaints.push(about(&spec.name, &text));
            } else {
                first.entry(schema.name.clone()).or_insert(&spec.name);
            }
        }
    }
    for schema in declared {
        if let Some(name) = catalog.add(Cow::Owned(schema.clone())) {
            let who = first.get(&name).map_or("the pump, or of another file", |it| it);
            let text = format!("the payload {name} isn't that of {who}; rename one");
            complaints.push((None, text));
        }
    }
    (catalog, complaints)
}

/// Returns the schemas of the payloads that the pump itself uses.
fn own_schemas() -> [&'static Schema; 38] {
    [
        Accepted::schema(),
        Attachment::schema(),
        Authenticate::schema(),
        Authenticated::schema(),
        BudgetRaised::schema(),
        BudgetWarning::schema(),
        Charge::schema(),
        ContextCleared::schema(),
        ContextRestored::schema(),
        ClockSet::schema(),
        LogBackedUp::schema(),
        RulesInForce::schema(),
        ThreadFollowed::schema(),
        DoorRefusals::schema(),
        Done::schema(),
        Huh::schema(),
        LoopWarning::schema(),
        OverBudget::schema(),
        SystemThreadError::schema(),
        Boot::schema(),
        Heartbeat::schema(),
        ListenerJoined::schema(),
        ListenerLeft::schema(),
        ListenerStopped::schema(),
        ListenersRetried::schema(),
        RetryListeners::schema(),
        ShutdownSignal::schema(),
        ThreadCancelled::schema(),
        ThreadResult::schema(),
        ThreadNote::schema(),
        ThreadSpawned::schema(),
        NothingUnderWay::schema(),
        ProgramOutput::schema(),
        Progress::schema(),
        Follow::schema(),
        Following::schema(),
        Unfollow::schema(),
        Unfollowed::schema(),
    ]
}

/// Returns a difference between two schemas: a rule of one schema that an example of the other
/// breaks.
fn difference(there: &Schema, here: &Schema) -> Option<String> {
    let said = |place: &str, by: &Schema, of: &Schema| {
        let example = xml::read(schema::example(of), Profile::Wire, &XmlLimits::INSIDE).ok()?;
        let error = by.check(example.view()).err()?;
        Some(format!(": {place} {}", error.message))
    };
    said("there", there, here).or_else(|| said("here", here, there))
}

/// Returns complaints about listeners, whichever others there are.
pub(super) fn of_each(specs: &[&Spec]) -> Vec<Complaint> {
    let mut complaints: Vec<Complaint> = specs.iter().flat_map(|it| unmet(it)).collect();
    complaints.extend(owners(specs));
    complaints
}

/// Returns complaints about names of listeners: an empty name, a name that is taken, or a name with
/// characters that aren't allowed.
pub(super) fn names(specs: &[&Spec]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for spec in specs {
        let name = spec.name.as_str();
        let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(fits) {
            let text = "a listener's name is letters, digits, '-', '_' and '.'";
            complaints.push((Some(name.to_owned()), format!("{name:?}: {text}")));
        }
        if name == CORE_NAME {
            complaints.push(about(name, "the pump itself has this name; take another"));
        }
        *seen.entry(name).or_default() += 1;
    }
    let twice = seen.into_iter().filter(|(_, times)| *times > 1);
    complaints.extend(twice.map(|(name, times)| {
        about(name, &format!("{times} listeners of this name; each needs its own"))
    }));
    complaints
}

/// Returns complaints about identities of a door that have the name of a listener. Such an identity
/// and listener couldn't be told apart as senders.
pub(super) fn identities(door: &dyn Door, specs: &[&Spec]) -> Vec<Complaint> {
    let mut names = door.identities();
    names.retain(|name| specs.iter().any(|it| it.name == **name));
    let text = "a listener and an identity have this name; give one of them another";
    names.into_iter().map(|it| about(&it, text)).collect()
}

/// Returns complaints about one listener: unmet needs of its handlers, and settings that are wrong
/// or don't fit together.
fn unmet(spec: &Spec) -> Vec<Complaint> {
    let no_doc = |schema: &Schema| schema.doc().trim().is_empty();
    let mut wrong: Vec<String> = Vec::new();
    if spec.text.as_ref().is_some_and(String::is_empty) {
        wrong.push(
            "its description is empty: say what it is for, or leave .describe(…) out".to_owned(),
        );
    }
    if spec.handlers.is_empty() {
        wrong.push("it has no handler: add .on(…)".to_owned());
    }
    if spec.timeout.is_some_and(|it| it.is_zero()) {
        wrong.push("its time limit is 0: give .timeout(…) at least 1ms".to_owned());
    }
    if spec.traits.inline && spec.traits.blocking {
        wrong.push("it can't be both inline and blocking: keep one of the two".to_owned());
    }
    wrong.extend(spec.no_replies.iter().map(|name| {
        format!(
            "it takes Asked with {name}, which it owns: take Option<Asked>, or use .on_reply(…)"
        )
    }));
    wrong.extend(uneven(spec));
    for need in &spec.needs {
        let text = match need {
            Need::Accept(need) if no_doc(need) => {
                format!("{} has no description: give its schema a doc", need.name)
            }
            Need::Accept(need) if !xml::is_name(need.name.local()) => {
                format!("no element can be called {}: give the payload another name", need.name)
            }
            Need::Emit(need) if need.reserved && !may_emit(&spec.grants, &need.name) => {
                let (name, grant) = (&need.name, EmitCore::GRANT);
                format!("it may emit {name}, but has no grant {grant}: add .grant::<EmitCore>()")
            }
            Need::Fold(need) if !spec.folds.contains_key(&need.0) => {
                format!("it takes Fold<{0}>: add .fold::<{0}>()", need.0.1)
            }
            Need::Grant(need) if !spec.grants.contains(*need) => {
                let of = grant_type(need)
                    .map_or_else(|| format!("_named({need:?})"), |of| format!("::<{of}>()"));
                format!("it has no grant {need}: add .grant{of}")
            }
            Need::Queue if !spec.traits.serial => {
                "it takes a Queue, but isn't serial: add .serial()".to_owned()
            }
            Need::Park if !spec.needs.iter().any(|it| matches!(it, Need::Queue)) => {
                "it parks messages, but takes no Queue: only what is in one can be parked"
                    .to_owned()
            }
            Need::Arrivals if spec.traits.inline => {
                "it takes Arrivals, but is inline: nothing comes while it is at work".to_owned()
            }
            _ => continue,
        };
        if !wrong.contains(&text) {
            wrong.push(text);
        }
    }
    wrong.into_iter().map(|it| about(&spec.name, &it)).collect()
}

/// Returns what is wrong with a listener that is up to date.
fn uneven(spec: &Spec) -> Vec<String> {
    let traits = &spec.traits;
    let (mut wrong, is_wide) = (Vec::new(), traits.up_to_date);
    if is_wide && !traits.serial {
        wrong.push(
            "it is up to date, but isn't serial, so that several handlers would see the same \
             state: add .serial()"
                .to_owned(),
        );
    }
    if is_wide && traits.pure {
        wrong.push(
            "it can't be both pure and up to date, since what it sees then depends on when it \
             starts: keep one of the two"
                .to_owned(),
        );
    }
    if is_wide && traits.at_message {
        wrong.push(
            "its folds can't both end at the message and be up to date: keep one of \
             .as_of_message() and .up_to_date()"
                .to_owned(),
        );
    }
    wrong
}

/// Returns complaints about payloads with several owners that aren't all `.shared()`, and about
/// listeners with several handlers for the same messages.
fn owners(specs: &[&Spec]) -> Vec<Complaint> {
    let mut owners: BTreeMap<&Name, Vec<&Spec>> = BTreeMap::new();
    let mut complaints = Vec::new();
    for spec in specs.iter().copied() {
        let mut keys: BTreeMap<&HandlerKey, usize> = BTreeMap::new();
        for (key, _) in &spec.handlers {
            *keys.entry(key).or_default() += 1;
            if let HandlerKey::Route(name) = key {
                owners.entry(name).or_default().push(spec);
            }
        }
        for (key, times) in keys.into_iter().filter(|(_, times)| *times > 1) {
            let what = match key {
                HandlerKey::Route(name) => format!("{name}"),
                HandlerKey::Reply(name) => format!("the reply {name}"),
                HandlerKey::AnyReply => "any reply".to_owned(),
            };
            let text = format!("{times} handlers of {what}; keep one");
            complaints.push(about(&spec.name, &text));
        }
    }
    for (name, mut owners) in owners {
        owners.dedup_by(|a, b| std::ptr::eq(*a, *b));
        if owners.len() > 1 && !owners.iter().all(|it| it.traits.shared) {
            let names: Vec<&str> = owners.iter().map(|it| it.name.as_str()).collect();
            let last = names.last().map(|it| (*it).to_owned());
            let names = names.join(" and ");
            let way = "keep one, or make each so in Rust";
            let text = format!("{name} is owned by {names}, and not all are .shared(): {way}");
            complaints.push((last, text));
        }
    }
    complaints
}

/// Returns complaints about missing listeners that other listeners need or name as peers. `kinds`
/// are the kinds of listeners that a manifest may name.
pub(super) fn absent(specs: &[&Spec], kinds: &[&str]) -> Vec<Complaint> {
    let to_add = |name: &str| match kinds.contains(&name) {
        true => format!("add `- use: {name}`"),
        false => "add that too".to_owned(),
    };
    let is_there = |name: &String| specs.iter().any(|it| it.name == *name);
    let lacks = specs.iter().flat_map(|spec| {
        let names = spec.relies_on.iter().filter(|it| !is_there(it));
        names.map(|it| about(&spec.name, &format!("it can't do without `{it}`: {}", to_add(it))))
    });
    let unknown = specs.iter().flat_map(|spec| {
        let names = spec.peers.iter().flat_map(|it| it.iter()).filter(|it| !is_there(it));
        names.map(|missing| {
            let there = specs.iter().map(|it| it.name.as_str()).filter(|it| *it != spec.name);
            let way = schema::nearest(missing, there);
            let way = match way.filter(|_| !kinds.contains(&&**missing)) {
                Some(way) => format!("did you mean `{way}`?"),
                None => to_add(missing),
            };
            about(
                &spec.name,
                &format!("no listener is called `{missing}`, one of its peers: {way}"),
            )
        })
    });
    lacks.chain(unknown).collect()
}

/// A complaint: the listener that it is about, if there is one, and its text.
pub(crate) type Complaint = (Option<String>, String);

fn about(listener: &str, text: &str) -> Complaint {
    (Some(listener.to_owned()), format!("{listener}: {text}"))
}

/// All complaints about the pump that was to be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaints {
    pub(super) all: Vec<String>,
    /// For each complaint in `all`: the listener that it is about, if there is one.
    pub(super) listeners: Vec<Option<String>>,
}

impl Complaints {
    /// Returns all complaints, each as one text.
    #[must_use]
    pub fn all(&self) -> &[String] {
        &self.all
    }

    /// Returns each complaint, with the listener that it is about, if there is one.
    pub fn by_listener(&self) -> impl Iterator<Item = (Option<&str>, &str)> {
        let listeners = self.listeners.iter().map(Option::as_deref);
        listeners.zip(self.all.iter().map(String::as_str))
    }
}

impl fmt::Display for Complaints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.all.join("\n"))
    }
}

impl std::error::Error for Complaints {}
