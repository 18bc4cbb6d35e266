//! [`Listener`], the builder of a listener, and [`Spec`], the description that it hands to the
//! engine.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::listener::asked::once_read;
use crate::listener::grant::emit_of;
use crate::listener::namespace::Move;
use crate::listener::{
    Announcement, Apply, Arguments, AtStop, Boxed, Context, DoorAccess, Emit, EmitCore, Entry,
    Extensions, FoldId, FoldOf, Function, Grant, Handler, HandlerCall, IntoEmit, Kept, Need,
};
use crate::name::Name;
use crate::schema::Schema;
use crate::secret::Secret;
use crate::wire::{Fault, Payload};
use crate::xml::Element;

/// A named part of an organism: its handlers, and what the pump must know before it runs them.
///
/// ```
/// # extern crate pumphouse_core as pumphouse;
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
    /// Who may send it messages at a door. None if that follows from the effects.
    pub(crate) door: Option<DoorAccess>,
    pub(crate) extensions: Extensions,
    pub(crate) peers: Option<Arc<[String]>>,
    pub(crate) relies_on: Arc<[String]>,
    pub(crate) grants: BTreeSet<String>,
    pub(crate) folds: BTreeMap<FoldId, FoldOf>,
    pub(crate) needs: Vec<Need>,
    /// The names of owned payloads whose handlers take an argument that only replies have, such as
    /// [`Asked`](crate::listener::Asked). `build()` fails if there are any.
    pub(crate) no_replies: Vec<Name>,
    /// Maps the name of each owned payload to the payloads that its handler may emit, for
    /// descriptions.
    pub(crate) emits: Arc<BTreeMap<Name, Vec<Name>>>,
    /// The payloads that the handlers of replies may emit.
    pub(crate) emits_then: Arc<BTreeSet<Name>>,
    pub(crate) handlers: Vec<(HandlerKey, BoundHandler)>,
    pub(crate) wakes: Option<Wakes>,
    pub(crate) announcements: Vec<Announcement>,
    pub(crate) at_stop: Vec<AtStop>,
    pub(crate) secrets: Vec<Secret>,
}

/// What a call of a listener may do besides answering, as the listener's author declares it.
/// Descriptions show the declaration, and nothing enforces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Effects {
    /// The call only answers, and the answer depends on the payload alone.
    None,
    /// The call reads data of this machine.
    Reads,
    /// The call changes data of this machine.
    Writes,
    /// The call connects to other machines.
    Outside,
}

impl Effects {
    /// The effect as one word, as descriptions show it.
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

/// Says whether an arrived entry (the second argument) lets a waiting message (the first argument)
/// be delivered now.
pub(crate) type Wakes = fn(&Entry, &Entry) -> bool;

/// A handler with its listener's state.
#[derive(Clone)]
pub(crate) struct BoundHandler {
    pub(crate) run: Run,
    /// Whether the handler takes a fold. Other handlers get no folds.
    pub(crate) takes_folds: bool,
    /// Whether the handler reads the log.
    pub(crate) reads_log: bool,
}

/// The properties of a listener that decide how it is run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits {
    pub(crate) agent: bool,
    pub(crate) blocking: bool,
    pub(crate) idempotent: bool,
    pub(crate) inline: bool,
    /// The text before the listener's name in the namespace of its payloads: empty, or a group
    /// such as `shops/`. None if the namespace isn't tied to the name.
    pub(crate) own_namespace: Option<&'static str>,
    pub(crate) own_thread: bool,
    pub(crate) pure: bool,
    pub(crate) recorded: bool,
    pub(crate) serial: bool,
    pub(crate) settles: bool,
    pub(crate) shared: bool,
    /// Whether folds and history reach as far as the thread when a handler starts.
    pub(crate) up_to_date: bool,
    /// Whether the listener's author has decided that folds end at the message at hand.
    pub(crate) at_message: bool,
}

/// The key by which messages find their handler.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HandlerKey {
    Reply(Name),
    AnyReply,
    Route(Name),
}

/// A handler without its types. Calling this function takes the handler's arguments. The returned
/// future runs the handler's code.
pub(crate) type Run = Arc<dyn Fn(Arc<HandlerCall>) -> Boxed<'static, Emit> + Send + Sync>;

impl Spec {
    /// Returns who may send the listener messages at a door.
    pub(crate) fn door_access(&self) -> DoorAccess {
        self.door.clone().unwrap_or_else(|| DoorAccess::by_effects(self.effects))
    }

    /// The payloads that the listener takes or may emit, without reserved ones.
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
    /// Forgets the type of the listener's state. The handlers that were added before keep the
    /// state.
    #[must_use]
    pub fn stateless(self) -> Listener {
        Listener { state: (), spec: self.spec }
    }
}

impl<S: Clone + Send + Sync + 'static> Listener<S> {
    /// A listener whose handlers may take `State<S>`, for connection pools, clients or settings.
    /// State that messages change belongs in a [fold](Apply).
    pub fn with_state(name: impl Into<String>, state: S) -> Listener<S> {
        Listener { state, spec: Spec { name: name.into(), ..Spec::default() } }
    }

    /// Adds a handler, and routes messages with the name of its payload to this listener.
    #[must_use]
    pub fn on<F: Handler<A>, A: Arguments<S, Last: Payload>>(self, f: F) -> Listener<S> {
        self.typed(HandlerKey::Route(A::Last::NAME), f)
    }

    /// Adds a handler for replies to messages that the listener sent, if the reply has this
    /// payload. This doesn't route other messages with this payload to the listener.
    #[must_use]
    pub fn on_reply<F: Handler<A>, A: Arguments<S, Last: Payload>>(self, f: F) -> Listener<S> {
        self.typed(HandlerKey::Reply(A::Last::NAME), f)
    }

    /// Adds a handler for the replies that no `on_reply` handles.
    #[must_use]
    pub fn on_any_reply<F: Handler<A>, A: Arguments<S, Last = Element>>(self, f: F) -> Listener<S> {
        self.bind(HandlerKey::AnyReply, f, |it| Ok(it.clone()))
    }

    /// Adds a handler of a payload whose name is only known at run time, and routes messages with
    /// that name to this listener.
    #[must_use]
    pub fn on_named<F: Handler<A>, A>(mut self, schema: Schema, f: F) -> Listener<S>
    where
        A: Arguments<S, Last = Element>,
    {
        let name = schema.name.clone();
        self.spec.needs.push(Need::Accept(Cow::Owned(schema)));
        self.bind(HandlerKey::Route(name), f, |it| Ok(it.clone()))
    }

    /// Declares that the listener may emit a payload whose name is only known at run time.
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
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
        for all in Arc::make_mut(&mut self.spec.emits).values_mut() {
            all.push(schema.name.clone());
        }
        self.spec.needs.push(Need::Emit(Cow::Owned(schema)));
        self
    }

    /// Grants a right that the signatures of the listener's handlers need. `build()` fails if a
    /// needed right isn't granted.
    #[must_use]
    pub fn grant<G: Grant>(mut self) -> Listener<S> {
        self.spec.grants.insert(G::GRANT.to_owned());
        self
    }

    /// Grants the right to emit this one reserved payload.
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
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

    /// Registers a fold: the engine keeps a `T` for each thread, for handlers that take a
    /// `Fold<T>`.
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

    /// Sets the kind of listener. The default is `tool`, or `agent` if calls of this listener have
    /// threads of their own. Feeds of agents also use the kinds `relic`, `workflow` and `llm`.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Listener<S> {
        self.spec.kind = Some(kind.into());
        self
    }

    /// Names the model that the listener asks, in a few words for people.
    #[must_use]
    pub fn model(mut self, text: impl Into<String>) -> Listener<S> {
        self.spec.model = Some(text.into());
        self
    }

    /// Names the media types of attachments that the listener's model takes, such as `image/*`.
    #[must_use]
    pub fn attachments(mut self, types: Vec<String>) -> Listener<S> {
        self.spec.attachments = types;
        self
    }

    /// Declares what a call of this listener may do besides answering.
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
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

    /// Sets who may send the listener messages at a door. By default that is everybody if the
    /// listener declares no effects, or [`Effects::None`], and otherwise only operators.
    #[must_use]
    pub fn door(mut self, access: DoorAccess) -> Listener<S> {
        self.spec.door = Some(access);
        self
    }

    /// Returns who may send the listener messages at a door.
    #[must_use]
    pub fn door_access(&self) -> DoorAccess {
        self.spec.door_access()
    }

    /// Declares the secrets that the listener holds, such as the tokens that it sends to servers.
    /// The pump hides them in all that listeners emit, wherever their parts came from. A listener
    /// hides them itself in what servers say, before it cuts or joins texts.
    ///
    /// ```
    /// # extern crate pumphouse_core as pumphouse;
    /// use pumphouse::prelude::*;
    /// use pumphouse::secret::Secret;
    ///
    /// # /// A text to send.
    /// # #[derive(Payload)]
    /// # #[payload(ns = "urn:fax")]
    /// # struct Fax { text: String }
    /// let token = Secret::checked("0123-4567")?;
    /// let fax = Listener::new("fax").on(async |_: Fax| ()).secrets([token]);
    /// # let _ = fax;
    /// # Ok::<(), pumphouse::secret::TooShort>(())
    /// ```
    #[must_use]
    pub fn secrets(mut self, all: impl IntoIterator<Item = Secret>) -> Listener<S> {
        self.spec.secrets.extend(all);
        self
    }

    /// Sets how long a handler may run. The default is the limit
    /// [`handler_time_max`](crate::Limits).
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Listener<S> {
        self.spec.timeout = Some(limit);
        self
    }

    /// Declares how many turns the listener has in a thread, for listeners that limit their turns
    /// themselves. Reports of budgets show the number.
    #[must_use]
    pub fn turns_max(mut self, turns: u64) -> Listener<S> {
        self.spec.turns_max = Some(turns);
        self
    }

    /// Sets the listeners that this one may address by name. Without this call it may address every
    /// listener.
    #[must_use]
    pub fn peers<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Listener<S> {
        self.spec.peers = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the listeners that this one can't work without. This listener may address them even if
    /// they aren't its peers. `build()` fails if one of them is missing.
    #[must_use]
    pub fn relies_on<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Listener<S> {
        self.spec.relies_on = names.into_iter().map(Into::into).collect();
        self
    }

    /// The listener's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Gives the listener another name, for factories that make several listeners of a kind.
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

    /// Grants a right by its name. A name that no signature needs has no effect.
    #[must_use]
    pub fn grant_named(mut self, grant: impl Into<String>) -> Listener<S> {
        self.spec.grants.insert(grant.into());
        self
    }

    /// The names of the rights that can be granted to this listener: those that its handlers'
    /// signatures need or can use, `emit:core`, and one for each reserved payload that it may emit.
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

    /// Runs each call by another listener in a child thread of the caller's thread. The caller gets
    /// `thread-result` when the child thread ends.
    #[must_use]
    pub fn own_thread(mut self) -> Listener<S> {
        self.spec.traits.own_thread = true;
        self
    }

    /// Delivers a waiting [`Later`](crate::listener::Later) message early, once `wakes` returns
    /// true for the waiting message and an entry that arrived anywhere in the tree. `wakes` must
    /// depend on these two arguments alone. It must be fast, since it is called for every entry
    /// while a message waits.
    #[must_use]
    pub fn wakes(mut self, wakes: fn(waiting: &Entry, came: &Entry) -> bool) -> Listener<S> {
        self.spec.wakes = Some(wakes);
        self
    }

    fn typed<F: Handler<A>, A: Arguments<S, Last: Payload>>(
        mut self,
        key: HandlerKey,
        f: F,
    ) -> Self {
        self.spec.needs.push(Need::Accept(Cow::Borrowed(A::Last::schema())));
        self.bind(key, f, |it| Ok(A::Last::read(it.view())?))
    }

    pub(crate) fn bind<F: Handler<A>, A: Arguments<S>>(
        mut self,
        key: HandlerKey,
        f: F,
        last: Last<A::Last>,
    ) -> Self {
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
        if !matches!(key, HandlerKey::Route(_)) {
            Arc::make_mut(&mut self.spec.emits_then).extend(emits.clone());
        }
        if let HandlerKey::Route(name) = &key {
            Arc::make_mut(&mut self.spec.emits).insert(name.clone(), emits.collect());
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
        self.spec.handlers.push((key, BoundHandler { run, takes_folds, reads_log }));
        self
    }
}

/// Reads a handler's last argument from the message's payload.
pub(crate) type Last<T> = fn(&Element) -> Result<T, Fault>;
