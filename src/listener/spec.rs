//! The builder of a listener: its handlers, and everything that the pump must know before it runs
//! them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::listener::asked::once_read;
use crate::listener::grant::emit_of;
use crate::listener::namespace::Move;
use crate::listener::{
    Announcement, Apply, Arguments, AtStop, Boxed, Context, Emit, EmitCore, Entry, FoldId, FoldOf,
    Function, Grant, Handler, HandlerCall, IntoEmit, Kept, Need,
};
use crate::name::Name;
use crate::schema::Schema;
use crate::wire::{Fault, Payload};
use crate::xml::Element;

/// A named capability: its handlers, and everything that the pump must know before it runs them.
///
/// ```
/// use pumphouse::prelude::*;
///
/// /// Wants to be greeted.
/// #[derive(Payload)]
/// #[payload(ns = "https://xml-pipeline.org/ns/greeter/v1")]
/// struct Greet {
///     name: String,
/// }
///
/// /// A greeting.
/// #[derive(Payload)]
/// #[payload(ns = "https://xml-pipeline.org/ns/greeter/v1")]
/// struct Greeting {
///     text: String,
/// }
///
/// async fn greet(Greet { name }: Greet) -> Greeting {
///     Greeting { text: format!("Hello, {name}!") }
/// }
///
/// let plan = pumphouse::builder().with(Listener::new("greeter").on(greet)).build();
/// assert!(plan.is_ok());
/// ```
pub struct Listener<S = ()> {
    state: S,
    pub(crate) spec: Spec,
}

/// A listener without its Rust types, as the engine uses it.
#[derive(Default)]
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) text: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) attachments: Vec<String>,
    pub(crate) traits: Traits,
    pub(crate) timeout: Option<Duration>,
    pub(crate) turns_max: Option<u64>,
    pub(crate) effects: Option<Effects>,
    pub(crate) peers: Option<Arc<[String]>>,
    pub(crate) relies_on: Arc<[String]>,
    pub(crate) grants: BTreeSet<String>,
    pub(crate) folds: BTreeMap<FoldId, FoldOf>,
    pub(crate) needs: Vec<Need>,
    /// The names that it owns whose handlers take an argument that only a reply has.
    pub(crate) no_replies: Vec<Name>,
    /// What may be emitted while a name that it owns is handled, for descriptions.
    pub(crate) emits: BTreeMap<Name, Vec<Name>>,
    /// What may be emitted while a reply is handled.
    pub(crate) emits_then: BTreeSet<Name>,
    pub(crate) handlers: Vec<(Way, Bound)>,
    pub(crate) wakes: Option<Wakes>,
    pub(crate) announcements: Vec<Announcement>,
    pub(crate) at_stop: Vec<AtStop>,
}

/// What a call of a listener may do besides answering, as its author declares it. Nothing enforces
/// it; it is for descriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Effects {
    /// Nothing. The answer depends on the call alone.
    None,
    /// It reads what is on this machine.
    Reads,
    /// It changes what is on this machine.
    Writes,
    /// It reaches other machines.
    Outside,
}

impl Effects {
    /// In a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Effects::None => "none",
            Effects::Reads => "reads",
            Effects::Writes => "writes",
            Effects::Outside => "outside",
        }
    }
}

/// Whether a waiting message starts because of an entry that came.
pub(crate) type Wakes = fn(&Entry, &Entry) -> bool;

/// A handler, bound to its listener.
#[derive(Clone)]
pub(crate) struct Bound {
    pub(crate) run: Run,
    /// Whether it takes a fold. For other handlers no fold is loaded.
    pub(crate) takes_folds: bool,
    /// Whether it reads the log.
    pub(crate) reads_log: bool,
}

/// How a listener is run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits {
    pub(crate) agent: bool,
    pub(crate) blocking: bool,
    pub(crate) idempotent: bool,
    pub(crate) inline: bool,
    /// The group before its name in its own namespace, if it has one.
    pub(crate) own_namespace: Option<&'static str>,
    pub(crate) own_thread: bool,
    pub(crate) pure: bool,
    pub(crate) recorded: bool,
    pub(crate) serial: bool,
    pub(crate) settles: bool,
    pub(crate) shared: bool,
}

/// How a message finds a handler.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    Reply(Name),
    AnyReply,
    Route(Name),
}

/// A handler. Its arguments are taken when it is called; the future does the rest.
pub(crate) type Run = Arc<dyn Fn(Arc<HandlerCall>) -> Boxed<'static, Emit> + Send + Sync>;

impl Spec {
    /// What it takes or may emit, without payloads that only the pump may send.
    pub(crate) fn payloads(&self) -> impl Iterator<Item = &Name> {
        self.needs.iter().filter_map(|it| match it {
            Need::Accept(it) | Need::Emit(it) if !it.reserved => Some(&it.name),
            _ => None,
        })
    }
}

impl Listener {
    /// A listener without state.
    pub fn new(name: impl Into<String>) -> Listener {
        Listener::with_state(name, ())
    }
}

impl<S> Listener<S> {
    /// Drops the type of its state, which its handlers keep.
    #[must_use]
    pub fn stateless(self) -> Listener {
        Listener { state: (), spec: self.spec }
    }
}

impl<S: Clone + Send + Sync + 'static> Listener<S> {
    /// A listener whose handlers may take `State<S>`: pools, clients, settings. What messages
    /// change is a fold.
    pub fn with_state(name: impl Into<String>, state: S) -> Listener<S> {
        Listener { state, spec: Spec { name: name.into(), ..Spec::default() } }
    }

    /// Routes the payload's name to this listener.
    #[must_use]
    pub fn on<F: Handler<A>, A: Arguments<S, Last: Payload>>(self, f: F) -> Listener<S> {
        self.typed(Way::Route(A::Last::NAME), f)
    }

    /// Takes the payload as a reply to a message of this listener. That is no route.
    #[must_use]
    pub fn on_reply<F: Handler<A>, A: Arguments<S, Last: Payload>>(self, f: F) -> Listener<S> {
        self.typed(Way::Reply(A::Last::NAME), f)
    }

    /// Takes every reply that no `on_reply` takes.
    #[must_use]
    pub fn on_any_reply<F: Handler<A>, A: Arguments<S, Last = Element>>(self, f: F) -> Listener<S> {
        self.bind(Way::AnyReply, f, |it| Ok(it.clone()))
    }

    /// Routes a name that is known at run time only.
    #[must_use]
    pub fn on_named<F: Handler<A>, A>(mut self, schema: Schema, f: F) -> Listener<S>
    where
        A: Arguments<S, Last = Element>,
    {
        let name = schema.name.clone();
        self.spec.needs.push(Need::Accept(Cow::Owned(schema)));
        self.bind(Way::Route(name), f, |it| Ok(it.clone()))
    }

    /// Declares a payload that it may emit, whose name is known at run time only.
    ///
    /// ```
    /// use pumphouse::prelude::*;
    /// use pumphouse::schema::Schema;
    ///
    /// let any = |local: &str| Schema::any(Name::new("urn:x", local), "Whatever it is.");
    /// let mirror = Listener::new("mirror")
    ///     .on_named(any("image"), async |it: Element| it)
    ///     .may_emit_named(any("image"));
    /// assert!(pumphouse::builder().with(mirror).build().is_ok());
    /// ```
    #[must_use]
    pub fn may_emit_named(mut self, schema: Schema) -> Listener<S> {
        for all in self.spec.emits.values_mut() {
            all.push(schema.name.clone());
        }
        self.spec.needs.push(Need::Emit(Cow::Owned(schema)));
        self
    }

    /// Grants a right that its signatures need. `build()` compares the two.
    #[must_use]
    pub fn grant<G: Grant>(mut self) -> Listener<S> {
        self.spec.grants.insert(G::GRANT.to_owned());
        self
    }

    /// Grants emitting this reserved payload, and no other.
    ///
    /// ```
    /// use pumphouse::prelude::*;
    ///
    /// /// Wants nothing.
    /// #[derive(Payload)]
    /// #[payload(ns = "urn:example")]
    /// struct Nothing;
    ///
    /// let quiet = Listener::new("quiet").on(async |_: Nothing| Done {}).may_emit::<Done>();
    /// assert!(pumphouse::builder().with(quiet).build().is_ok());
    /// ```
    #[must_use]
    pub fn may_emit<P: Payload>(mut self) -> Listener<S> {
        self.spec.grants.insert(emit_of(&P::NAME));
        self
    }

    /// Keeps a `T` per thread, for handlers that take a `Fold<T>`.
    #[must_use]
    pub fn fold<T: Apply>(mut self) -> Listener<S> {
        let (id, fold) = FoldOf::of::<T>();
        self.spec.folds.insert(id, fold);
        self
    }

    /// Describes the listener in a sentence.
    #[must_use]
    pub fn describe(mut self, text: impl Into<String>) -> Listener<S> {
        self.spec.text = Some(text.into());
        self
    }

    /// Sets the kind of listener. The default is `tool`, or `agent` if its calls have threads of
    /// their own. Agents also know `relic`, `workflow` and `llm`.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Listener<S> {
        self.spec.kind = Some(kind.into());
        self
    }

    /// Names the model that it asks, in a few words, for people.
    #[must_use]
    pub fn model(mut self, text: impl Into<String>) -> Listener<S> {
        self.spec.model = Some(text.into());
        self
    }

    /// Names the media types of attachments that its model takes, such as `image/*`.
    #[must_use]
    pub fn attachments(mut self, types: Vec<String>) -> Listener<S> {
        self.spec.attachments = types;
        self
    }

    /// Declares what a call may do besides answering.
    ///
    /// ```
    /// use pumphouse::listener::Effects;
    /// use pumphouse::prelude::*;
    ///
    /// # /// A text to send.
    /// # #[derive(Payload)]
    /// # #[payload(ns = "urn:fax")]
    /// # struct Fax { text: String }
    /// let fax = Listener::new("fax").on(async |_: Fax| ()).effects(Effects::Outside);
    /// let plan = pumphouse::builder().with(fax).build()?;
    /// let fax = plan.capabilities().listener("fax").and_then(|it| it.effects);
    /// assert_eq!(fax.map(Effects::as_str), Some("outside"));
    /// # Ok::<(), pumphouse::engine::Complaints>(())
    /// ```
    #[must_use]
    pub fn effects(mut self, effects: Effects) -> Listener<S> {
        self.spec.effects = Some(effects);
        self
    }

    /// Sets how long a handler may run. The default is 30 s.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Listener<S> {
        self.spec.timeout = Some(limit);
        self
    }

    /// How many turns it has in a thread, if it bounds them itself, for reports of budgets.
    #[must_use]
    pub fn turns_max(mut self, turns: u64) -> Listener<S> {
        self.spec.turns_max = Some(turns);
        self
    }

    /// Sets the listeners that it may address by name. Without this it may address every listener.
    #[must_use]
    pub fn peers<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Listener<S> {
        self.spec.peers = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// The listeners that it can't do without: it may address them whoever its peers are, and
    /// `build()` complains where one isn't there.
    #[must_use]
    pub fn relies_on<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Listener<S> {
        self.spec.relies_on = names.into_iter().map(Into::into).collect();
        self
    }

    /// Handles a thread's messages in order, one at a time.
    #[must_use]
    pub fn serial(mut self) -> Listener<S> {
        self.spec.traits.serial = true;
        self
    }

    /// May handle a message again after a crash, with the same effect.
    #[must_use]
    pub fn idempotent(mut self) -> Listener<S> {
        self.spec.traits.idempotent = true;
        self
    }

    /// Declares that it depends on nothing but its arguments. A replay runs pure listeners, and
    /// reads the outputs of others. A pure listener is idempotent, too.
    #[must_use]
    pub fn pure(mut self) -> Listener<S> {
        self.spec.traits.pure = true;
        self.idempotent()
    }

    /// Declares that it depends on nothing but its arguments and on answers from elsewhere, and
    /// that it emits all of those answers. A replay runs it with a
    /// [`Record`](crate::listener::Record) of them.
    #[must_use]
    pub fn recorded(mut self) -> Listener<S> {
        self.spec.traits.recorded = true;
        self
    }

    /// Lets it run in a thread that is over budget, too, and always have room for answers. This is
    /// for listeners that only pass on results of earlier messages.
    #[must_use]
    pub fn settles(mut self) -> Listener<S> {
        self.spec.traits.settles = true;
        self
    }

    /// Has its handlers polled within the worker, without a task. This is for handlers that take
    /// microseconds.
    #[must_use]
    pub fn inline(mut self) -> Listener<S> {
        self.spec.traits.inline = true;
        self
    }

    /// Declares an agent, which waits for a model most of its time: its [kind](Listener::kind) is
    /// `agent`, and `agents_at_once` of its handlers run at once, in place of `handlers_max`.
    #[must_use]
    pub fn agent(mut self) -> Listener<S> {
        self.spec.traits.agent = true;
        self.kind("agent")
    }

    /// Runs on threads that may block.
    #[must_use]
    pub fn blocking(mut self) -> Listener<S> {
        self.spec.traits.blocking = true;
        self
    }

    /// Shares its names with other shared listeners. Each of them gets the message.
    #[must_use]
    pub fn shared(mut self) -> Listener<S> {
        self.spec.traits.shared = true;
        self
    }

    /// The listener's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Gives it another name, for factories that make several.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Listener<S> {
        let name = name.into();
        let group = self.spec.traits.own_namespace;
        if let Some(moved) = group.and_then(|group| Move::between(group, &self.spec.name, &name)) {
            moved.spec(&mut self.spec);
        }
        self.spec.name = name;
        self
    }

    /// Grants a right by its name. A name that no signature needs grants nothing.
    #[must_use]
    pub fn grant_named(mut self, grant: impl Into<String>) -> Listener<S> {
        self.spec.grants.insert(grant.into());
        self
    }

    /// The payloads that it takes or may emit, without those that only the pump may send. A payload
    /// may be there more than once.
    ///
    /// ```
    /// use pumphouse::listeners::tool::calculate::calculate;
    ///
    /// let calculate = calculate();
    /// let names: Vec<&str> = calculate.payloads().map(|it| it.local()).collect();
    /// assert!(names.contains(&"calculate") && names.contains(&"calculated"));
    /// ```
    pub fn payloads(&self) -> impl Iterator<Item = &Name> {
        self.spec.payloads()
    }

    /// A payload that both listeners take although not both are [shared](Listener::shared). One
    /// organism can't have the two, whatever their names.
    #[must_use]
    pub fn disputes<T>(&self, other: &Listener<T>) -> Option<&Name> {
        let is_taken = |it: &&Way| other.spec.handlers.iter().any(|(way, _)| way == *it);
        let ways = self.spec.handlers.iter().map(|(way, _)| way);
        let both_share = self.spec.traits.shared && other.spec.traits.shared;
        ways.filter(|_| !both_share).filter(is_taken).find_map(|way| match way {
            Way::Route(name) => Some(name),
            Way::Reply(_) | Way::AnyReply => None,
        })
    }

    /// The names of rights that it may be granted: those that its signatures need, `emit:core`, and
    /// one for each reserved payload that they emit.
    #[must_use]
    pub fn grantable(&self) -> Vec<String> {
        let asked = self.spec.needs.iter().filter_map(|it| match it {
            Need::Grant(it) | Need::MayGrant(it) => Some((*it).to_owned()),
            Need::Emit(it) if it.reserved => Some(emit_of(&it.name)),
            _ => None,
        });
        let mut grants: Vec<_> = asked.chain([EmitCore::GRANT.to_owned()]).collect();
        grants.sort_unstable();
        grants.dedup();
        grants
    }

    /// Gives each call by another listener a child thread of the caller's. The caller hears
    /// `thread-result` when it ends.
    #[must_use]
    pub fn own_thread(mut self) -> Listener<S> {
        self.spec.traits.own_thread = true;
        self
    }

    /// Delivers its [`Later`](crate::listener::Later) messages early: when `wakes` returns true for
    /// a waiting message and an entry that came anywhere in the tree. `wakes` must depend on these
    /// two alone and be fast, since it is called for every entry while a message waits.
    #[must_use]
    pub fn wakes(mut self, wakes: fn(waiting: &Entry, came: &Entry) -> bool) -> Listener<S> {
        self.spec.wakes = Some(wakes);
        self
    }

    fn typed<F: Handler<A>, A: Arguments<S, Last: Payload>>(mut self, way: Way, f: F) -> Self {
        self.spec.needs.push(Need::Accept(Cow::Borrowed(A::Last::schema())));
        self.bind(way, f, |it| Ok(A::Last::read(it.view())?))
    }

    fn bind<F: Handler<A>, A: Arguments<S>>(mut self, way: Way, f: F, last: Last<A::Last>) -> Self {
        let state = self.state.clone();
        let needs = [A::needs(), <F as Function<A>>::Output::emits()].concat();
        for need in &needs {
            if let Need::Keep(Kept(id, fold)) = need {
                self.spec.folds.insert(*id, *fold);
            }
        }
        let emits = needs.iter().filter_map(|it| match it {
            Need::Emit(it) => Some(it.name.clone()),
            _ => None,
        });
        if !matches!(way, Way::Route(_)) {
            self.spec.emits_then.extend(emits.clone());
        }
        if let Way::Route(name) = &way {
            self.spec.emits.insert(name.clone(), emits.collect());
            if needs.iter().any(|it| matches!(it, Need::Reply)) {
                self.spec.no_replies.push(name.clone());
            }
        }
        let takes_folds = needs.iter().any(|it| matches!(it, Need::Fold(_) | Need::Keep(_)));
        let takes_asked = needs.iter().any(|it| matches!(it, Need::Asked));
        let reads_log = takes_asked || needs.iter().any(|it| matches!(it, Need::Log));
        self.spec.needs.extend(needs);
        let home = self.spec.traits.own_namespace.map(|group| (group, self.spec.name.clone()));
        let run: Run = Arc::new(move |call: Arc<HandlerCall>| {
            let away =
                home.as_ref().and_then(|(group, home)| Move::between(group, home, &call.listener));
            let last = call.message.element().and_then(|element| match &away {
                Some(away) => last(&away.reversed().element(element)?),
                None => last(element),
            });
            let context = Context { state: state.clone(), call };
            let future = last.and_then(|last| A::take(&context, last)).map(|all| f.invoke(all));
            Box::pin(async move {
                let emit = future?.await.into_emit();
                Ok(match away {
                    Some(away) => away.emit(emit),
                    None => emit,
                })
            })
        });
        let run = if takes_asked { once_read(run) } else { run };
        self.spec.handlers.push((way, Bound { run, takes_folds, reads_log }));
        self
    }
}

/// How the payload is taken from a message.
type Last<T> = fn(&Element) -> Result<T, Fault>;
