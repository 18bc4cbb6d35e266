//! From what a connection received to a thread's inbox: checked, routed, its client id looked up.

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::watch;
use tracing::{Instrument as _, Span};

use crate::engine::common::shared::Shared;
use crate::engine::handle::pump::{Identity, Place, Pump};
use crate::engine::read_fault::unread;
use crate::engine::tree::event::Push;
use crate::engine::tree::observer::{PushEvent, PushObserver};
use crate::log;
use crate::log::Flags;
use crate::name::Name;
use crate::wire::{Code, Envelope, Fault, quoted};

/// A push that may be posted.
pub(crate) struct Routed {
    place: Place,
    push: Box<Push>,
    span: Span,
}

/// A push on its way: nothing comes of one that was refused, or that was there already.
pub(crate) type Pushing = Pin<Box<dyn Future<Output = Option<Routed>> + Send>>;

/// How far a push comes without waiting.
pub(crate) enum Begun {
    /// It may be posted, unless it was refused, which was told.
    Ready(Option<Routed>),
    /// Its id is its own, and is looked up. Those behind it may begin meanwhile.
    LooksUp(Pushing),
    /// It waits for another push under its id, or for what it forks. Those behind it may not begin:
    /// who waits for an id while it holds others could wait for ever.
    Waits(Pushing),
}

impl Pump {
    /// Takes what a connection received. What becomes of it `inlet` hears, under `number`.
    ///
    /// It waits only for the log, where it has a client id or forks, and for another push with the
    /// same id.
    pub async fn push(
        &self,
        who: &Identity,
        envelope: Envelope,
        inlet: &Arc<dyn PushObserver>,
        number: u64,
    ) {
        let routed = match self.begin(who, envelope, inlet, number, None) {
            Begun::Ready(routed) => routed,
            Begun::LooksUp(pushing) | Begun::Waits(pushing) => pushing.await,
        };
        if let Some(routed) = routed {
            self.go(routed);
        }
    }

    /// The first half of a push: what has to come before those behind it begin; whether it is its
    /// sender's only one without an answer, where that is known.
    pub(crate) fn begin(
        &self,
        who: &Identity,
        envelope: Envelope,
        inlet: &Arc<dyn PushObserver>,
        number: u64,
        is_alone: Option<bool>,
    ) -> Begun {
        let span = tracing::debug_span!("push", number);
        let id: Option<Arc<str>> = envelope.id.as_deref().map(Into::into);
        let bound = span.in_scope(|| self.bound(who, envelope, inlet, number));
        let (place, push) = match bound {
            Ok((place, push)) => {
                (place, Box::new(Push { is_alone, client_id: id.clone(), ..push }))
            }
            Err(fault) => {
                let fault = fault.of_client(id.as_deref());
                return Begun::Ready(self.told(&span, inlet, number, Err(fault)));
            }
        };
        let mut routed = Routed { place, push, span };
        let span = routed.span.clone();
        if let Place::Fork(at) = &routed.place {
            let (pump, at, who) = (self.clone(), at.clone(), who.clone());
            return Begun::Waits(self.after(&span, inlet, number, id, async move {
                routed.push.source = Some(pump.source(&who, &at).await?);
                pump.named(routed).await
            }));
        }
        let Some(id) = id else { return Begun::Ready(Some(routed)) };
        let pump = self.clone();
        match Claim::take(self.shared(), &routed.push.identity, &id) {
            Ok(claim) => {
                let of = Some(id.clone());
                Begun::LooksUp(self.after(&span, inlet, number, of, async move {
                    pump.claimed(routed, &id, claim).await
                }))
            }
            Err(_) => {
                let waits = async move { pump.named(routed).await };
                Begun::Waits(self.after(&span, inlet, number, Some(id), waits))
            }
        }
    }

    /// The second half.
    pub(crate) fn go(&self, Routed { place, push, span }: Routed) {
        span.in_scope(|| self.post(&place, push));
    }

    fn bound(
        &self,
        who: &Identity,
        envelope: Envelope,
        inlet: &Arc<dyn PushObserver>,
        number: u64,
    ) -> Result<(Place, Push), Fault> {
        if let Some(from) = envelope.from.as_deref().filter(|it| **it != *who.name) {
            let from = quoted(from);
            let text = format!("<from> says {from}, but this connection sends as {}", who.name);
            return Err(Fault::new(Code::ForgedSender, text));
        }
        let asked = self.tells_why(who).then(|| {
            let payload = &envelope.payload;
            Name::new(payload.namespace().to_owned(), payload.local().to_owned())
        });
        let why = |fault: Fault| match &asked {
            Some(name) => self.shared().routes.explained(fault, envelope.to.as_deref(), name),
            None => fault,
        };
        let checked = self.check(envelope.payload).map_err(&why)?;
        let place = Place::named(envelope.thread.as_deref());
        let mut flags = Flags::NONE;
        for (given, flag) in [
            (envelope.to.is_some(), Flags::TO_GIVEN),
            (place != Place::Session, Flags::THREAD_GIVEN),
        ] {
            flags = if given { flags.with(flag) } else { flags };
        }
        let to = envelope.to.as_deref().map(Into::into);
        let push = self.route(checked, to, who.marked(flags)).map_err(&why)?;
        let push = Push {
            identity: who.name.clone(),
            operator: who.operator,
            tells_why: asked.is_some(),
            meta: envelope.meta,
            inlet: inlet.clone(),
            number,
            ..push
        };
        Ok((place, push))
    }

    /// Takes the id of a push, if it has one, as soon as no other push has it.
    async fn named(&self, routed: Routed) -> Result<Option<Routed>, Fault> {
        let Some(id) = routed.push.client_id.clone() else { return Ok(Some(routed)) };
        loop {
            match Claim::take(self.shared(), &routed.push.identity, &id) {
                Ok(claim) => return self.claimed(routed, &id, claim).await,
                // An error says that the other push is over, which is what is waited for.
                Err(mut other) => drop(other.changed().await),
            }
        }
    }

    /// Looks up the id of a push: nothing, where the same push was taken before and its sender was
    /// told so again.
    async fn claimed(
        &self,
        mut routed: Routed,
        id: &Arc<str>,
        claim: Claim,
    ) -> Result<Option<Routed>, Fault> {
        let Routed { place, push, .. } = &mut routed;
        let failed = |it: log::Error| unread(&it);
        let taken = self.log().client_id(&push.identity, id).await;
        let Some(entry) = taken.map_err(failed)? else {
            push.claim = Some(Arc::new(claim));
            return Ok(Some(routed));
        };
        if !is_same(push, &entry) || !self.is_there(place, &entry).await.map_err(failed)? {
            let text = format!("the id {id} was used for another message, {}", entry.id);
            return Err(Fault::new(Code::ClientId, text));
        }
        let news = PushEvent::Accepted { id: entry.id.clone(), client_id: Some(id.clone()) };
        push.inlet.hear(push.number, news);
        push.inlet.hear(push.number, PushEvent::Settled);
        Ok(None)
    }

    /// What waits before it may be posted, with a word to the sender if it may not.
    fn after(
        &self,
        span: &Span,
        inlet: &Arc<dyn PushObserver>,
        number: u64,
        id: Option<Arc<str>>,
        waits: impl Future<Output = Result<Option<Routed>, Fault>> + Send + 'static,
    ) -> Pushing {
        let (pump, inlet, span) = (self.clone(), inlet.clone(), span.clone());
        Box::pin(async move {
            let came = waits.instrument(span.clone()).await;
            let came = came.map_err(|fault| fault.of_client(id.as_deref()));
            pump.told(&span, &inlet, number, came)
        })
    }

    /// Tells the sender why a push goes no further, where it doesn't.
    fn told(
        &self,
        span: &Span,
        inlet: &Arc<dyn PushObserver>,
        number: u64,
        came: Result<Option<Routed>, Fault>,
    ) -> Option<Routed> {
        came.unwrap_or_else(|fault| {
            span.in_scope(|| tracing::debug!(fault = %fault.code, "refused"));
            self.shared().count(&fault);
            inlet.hear(number, PushEvent::Refused(fault));
            None
        })
    }
}

/// Whether a push repeats what an entry has.
fn is_same(push: &Push, entry: &log::Entry) -> bool {
    let given = Flags::TO_GIVEN.with(Flags::THREAD_GIVEN).bits();
    entry.to == push.to
        && entry.name == *push.checked.name()
        && entry.body == push.checked.element().canonical()
        && entry.flags.bits() & given == push.flags.bits() & given
}

/// A client's id on its way into the log. It is let go when the push is accepted or refused.
struct Claim {
    shared: Arc<Shared>,
    key: (Arc<str>, Arc<str>),
    /// What others wait with, and what tells this claim from a later one on the same id.
    waiting: watch::Receiver<()>,
    done: watch::Sender<()>,
}

impl Claim {
    /// Takes an id, unless another push has it: then what tells when that is over.
    fn take(
        shared: &Arc<Shared>,
        identity: &Arc<str>,
        id: &Arc<str>,
    ) -> Result<Claim, watch::Receiver<()>> {
        let key = (identity.clone(), id.clone());
        match shared.client_ids.entry(key.clone()) {
            dashmap::Entry::Occupied(it) => Err(it.get().clone()),
            dashmap::Entry::Vacant(it) => {
                let (done, waiting) = watch::channel(());
                it.insert(waiting.clone());
                Ok(Claim { shared: shared.clone(), key, waiting, done })
            }
        }
    }

    fn let_go(&self) {
        let own = |_: &_, it: &watch::Receiver<()>| it.same_channel(&self.waiting);
        if self.shared.client_ids.remove_if(&self.key, own).is_some() {
            self.done.send_replace(());
        }
    }
}

impl PushObserver for Claim {
    fn hear(&self, _: u64, _: PushEvent) {
        self.let_go();
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.let_go();
    }
}
