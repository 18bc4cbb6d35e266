//! The stages of a push, from its envelope to a worker's inbox. The push is checked and routed, and
//! its client id is looked up.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;
use tracing::{Instrument as _, Span};

use crate::engine::common::shared::Shared;
use crate::engine::handle::pump::{Destination, Identity, Pump, acceptance, stopped, typed};
use crate::engine::read_fault::unread;
use crate::engine::tree::event::{ClientId, Push, Pusher};
use crate::engine::tree::lineage::Source;
use crate::engine::tree::observer::{PushEvent, PushObserver, tell};
use crate::engine::tree::route::Addressed;
use crate::id::EntryId;
use crate::log;
use crate::log::Flags;
use crate::name::{CORE_NAME, Name};
use crate::wire::{Code, Envelope, Fault, Payload, quoted};

/// A push whose payload fits its schema and whose receivers are known. Its client id isn't claimed
/// yet. If the push opens a fork, the entry that the fork continues from isn't looked up yet.
struct CheckedPush {
    destination: Destination,
    by: Pusher,
    message: Addressed,
    meta: Option<Bytes>,
    id: Option<Arc<str>>,
    span: Span,
}

/// A push that may be posted.
pub(super) struct Routed {
    destination: Destination,
    push: Box<Push>,
    span: Span,
}

/// Tells the observer of a push that the push is refused, and traces the refusal.
#[derive(Clone)]
struct RefusalObserver {
    observer: Arc<dyn PushObserver>,
    number: u64,
    id: Option<Arc<str>>,
    span: Span,
}

/// The future of a push that waits. Its output is None if the push was refused or repeats an
/// earlier push.
pub(super) type PendingPush = Pin<Box<dyn Future<Output = Option<Routed>> + Send>>;

/// A push after `begin`: it is ready to be posted, or it waits.
pub(super) enum PushProgress {
    /// The push may be posted. None if the push was refused and its observer was told.
    Ready(Option<Routed>),
    /// The push has claimed its client id, and the log is asked whether it has that id. Later
    /// pushes of the connection may begin meanwhile.
    LooksUp(PendingPush),
    /// The push waits for another push with the same client id, or for the entry that its fork
    /// continues from. Later pushes of the connection may not begin: they could claim ids, and two
    /// pushes could wait for each other for ever.
    Waits(PendingPush),
}

impl CheckedPush {
    /// Returns the push, with its client id claimed and the entry of its fork found.
    fn routed(self, claim: Option<Claim>, source: Option<Source>) -> Routed {
        let CheckedPush { destination, by, message, meta, id, span } = self;
        let own = |(id, claim)| ClientId { id, claim: Arc::new(claim) };
        let client_id = id.zip(claim).map(own);
        Routed { destination, push: Box::new(Push { by, message, meta, client_id, source }), span }
    }

    /// Returns whether the push repeats an earlier push, which became `entry`. Receiver and payload
    /// must be the same, and the envelope must name or leave out the receiver and the thread as
    /// before.
    fn is_same(&self, entry: &log::Entry) -> bool {
        let given = Flags::TO_GIVEN.with(Flags::THREAD_GIVEN).bits();
        let message = &self.message;
        entry.to == message.to
            && entry.name == *message.checked.name()
            && entry.body == message.checked.element().canonical()
            && entry.flags.bits() & given == message.flags.bits() & given
    }
}

impl RefusalObserver {
    fn refused(&self, pump: &Pump, fault: Fault) {
        let _span = self.span.enter();
        tracing::debug!(fault = %fault.code, "refused");
        pump.shared().counts.refused(&fault);
        let fault = fault.of_client(self.id.as_deref());
        tell(&*self.observer, self.number, PushEvent::Refused(fault));
    }
}

impl Pump {
    /// Takes an envelope from a connection. `observer` receives the events of the push, each with
    /// `number`.
    ///
    /// The call waits only if the push has a client id or opens a fork. In that case it waits for
    /// the log, or for another push with the same client id.
    pub async fn push(
        &self,
        who: &Identity,
        envelope: Envelope,
        observer: &Arc<dyn PushObserver>,
        number: u64,
    ) {
        let by = who.pusher(self.may_know_why(who), observer.clone(), number);
        let routed = match self.begin(by, envelope) {
            PushProgress::Ready(routed) => routed,
            PushProgress::LooksUp(pushing) | PushProgress::Waits(pushing) => pushing.await,
        };
        if let Some(routed) = routed {
            self.go(routed);
        }
    }

    /// Begins a push: checks and routes it, and claims its client id. The pushes of a connection
    /// must begin in their order.
    pub(super) fn begin(&self, by: Pusher, envelope: Envelope) -> PushProgress {
        let number = by.number;
        let span = tracing::debug_span!("push", number);
        let id: Option<Arc<str>> = envelope.id.as_deref().map(Into::into);
        let report = RefusalObserver { observer: by.observer.clone(), number, id, span };
        let checked = match report.span.in_scope(|| self.check_push(by, envelope, &report)) {
            Ok(checked) => checked,
            Err(fault) => {
                report.refused(self, fault);
                return PushProgress::Ready(None);
            }
        };
        let pump = self.clone();
        if let Destination::Fork(at) = &checked.destination {
            let at = at.clone();
            return PushProgress::Waits(self.finish_later(report, async move {
                let who =
                    Identity { name: checked.by.identity.clone(), operator: checked.by.operator };
                let source = pump.source(&who, &at).await?;
                pump.claim_id(checked, Some(source)).await
            }));
        }
        let Some(id) = report.id.clone() else {
            return PushProgress::Ready(Some(checked.routed(None, None)));
        };
        match Claim::take(self.shared(), &checked.by.identity, &id) {
            Ok(claim) => {
                PushProgress::LooksUp(self.finish_later(report, async move {
                    pump.look_up_id(checked, claim, None).await
                }))
            }
            Err(_) => PushProgress::Waits(
                self.finish_later(report, async move { pump.claim_id(checked, None).await }),
            ),
        }
    }

    /// Sends a payload of the pump itself with the client id `id`, and waits until it is in the
    /// log. If the log already has a payload of the pump with this id, nothing is sent.
    ///
    /// # Errors
    /// The fault with which the payload was refused.
    pub async fn tell_as_core(&self, payload: &impl Payload, id: &str) -> Result<EntryId, Fault> {
        let (observer, heard) = acceptance();
        let who = Identity { name: CORE_NAME.into(), operator: true };
        let by = who.pusher(true, observer, 0);
        let checked = typed(payload)?;
        let is_given = matches!(self.destination, Destination::Thread(_));
        let flags = Flags::FROM_OPERATOR.with(Flags::TO_GIVEN);
        let flags = if is_given { flags.with(Flags::THREAD_GIVEN) } else { flags };
        let message = self.route(checked, self.receiver(), flags)?;
        let span = tracing::debug_span!("push", id);
        let (destination, id) = (self.destination.clone(), Some(id.into()));
        let push = CheckedPush { destination, by, message, meta: None, id, span };
        if let Some(routed) = self.claim_id(push, None).await? {
            self.go(routed);
        }
        heard.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Finishes a push: posts it to its worker.
    pub(super) fn go(&self, Routed { destination, push, span }: Routed) {
        span.in_scope(|| self.post(&destination, push));
    }

    fn check_push(
        &self,
        by: Pusher,
        envelope: Envelope,
        report: &RefusalObserver,
    ) -> Result<CheckedPush, Fault> {
        if let Some(from) = envelope.from.as_deref().filter(|from| **from != *by.identity) {
            let from = quoted(from);
            let text = format!("<from> says {from}, but this connection sends as {}", by.identity);
            return Err(Fault::new(Code::ForgedSender, text));
        }
        let asked = by.may_know_why.then(|| {
            let payload = &envelope.payload;
            Name::new(payload.namespace().to_owned(), payload.local().to_owned())
        });
        let why = |fault: Fault| match &asked {
            Some(name) => self.shared().routes.explained(fault, envelope.to.as_deref(), name),
            None => fault,
        };
        let checked = self.check(envelope.payload).map_err(&why)?;
        let destination = Destination::named(envelope.thread.as_deref());
        let flags = [
            (true, Flags::AT_DOOR),
            (by.operator, Flags::FROM_OPERATOR),
            // At doors without tokens, `console` is the user of this machine.
            (by.operator || by.may_know_why, Flags::AS_OPERATOR),
            (envelope.to.is_some(), Flags::TO_GIVEN),
            (destination != Destination::Session, Flags::THREAD_GIVEN),
        ];
        let given = flags.into_iter().filter(|(is_given, _)| *is_given);
        let flags = given.fold(Flags::NONE, |flags, (_, flag)| flags.with(flag));
        let to = envelope.to.as_deref().map(Into::into);
        let message = self.route(checked, to, flags).map_err(&why)?;
        let routes = &self.shared().routes;
        let receivers = routes.admitted(message.receivers, &by.identity, flags)?;
        let message = Addressed { receivers, ..message };
        let (id, span) = (report.id.clone(), report.span.clone());
        Ok(CheckedPush { destination, by, message, meta: envelope.meta, id, span })
    }

    /// Claims the client id of a push, and looks the id up in the log. Waits while another push has
    /// claimed the same id. A push without a client id may be posted at once.
    async fn claim_id(
        &self,
        checked: CheckedPush,
        source: Option<Source>,
    ) -> Result<Option<Routed>, Fault> {
        let Some(id) = checked.id.clone() else { return Ok(Some(checked.routed(None, source))) };
        loop {
            match Claim::take(self.shared(), &checked.by.identity, &id) {
                Ok(claim) => return self.look_up_id(checked, claim, source).await,
                // An error means that the other push is over.
                Err(mut other) => drop(other.changed().await),
            }
        }
    }

    /// Looks up the client id of a push in the log. If the push was accepted before, tells its
    /// sender so again, and returns None.
    async fn look_up_id(
        &self,
        checked: CheckedPush,
        claim: Claim,
        source: Option<Source>,
    ) -> Result<Option<Routed>, Fault> {
        let failed = |error: log::Error| unread(&error);
        let (identity, id) = &claim.key;
        let taken = self.log().client_id(identity, id).await;
        let Some(entry) = taken.map_err(failed)? else {
            return Ok(Some(checked.routed(Some(claim), source)));
        };
        let is_there = self.is_there(&checked.destination, &entry);
        if !checked.is_same(&entry) || !is_there.await.map_err(failed)? {
            let text = format!("the id {id} was used for another message, {}", entry.id);
            return Err(Fault::new(Code::ClientId, text));
        }
        let news = PushEvent::Accepted { id: entry.id.clone(), client_id: Some(id.clone()) };
        let Pusher { observer, number, .. } = &checked.by;
        tell(&**observer, *number, news);
        tell(&**observer, *number, PushEvent::Settled);
        Ok(None)
    }

    /// Finishes a push that has to wait. If the push is refused, its sender is told.
    fn finish_later(
        &self,
        report: RefusalObserver,
        waits: impl Future<Output = Result<Option<Routed>, Fault>> + Send + 'static,
    ) -> PendingPush {
        let (pump, waits) = (self.clone(), waits.instrument(report.span.clone()));
        Box::pin(async move {
            waits.await.unwrap_or_else(|fault| {
                report.refused(&pump, fault);
                None
            })
        })
    }
}

/// A claimed client id. The claim ends once the push is accepted or refused.
struct Claim {
    shared: Arc<Shared>,
    key: (Arc<str>, Arc<str>),
    /// Other pushes with the same id wait on this channel. The channel also distinguishes this
    /// claim from a later claim of the same id.
    waiting: watch::Receiver<()>,
    done: watch::Sender<()>,
}

impl Claim {
    /// Claims an id. If another push has claimed it, returns a receiver that tells when that push
    /// is over.
    fn take(
        shared: &Arc<Shared>,
        identity: &Arc<str>,
        id: &Arc<str>,
    ) -> Result<Claim, watch::Receiver<()>> {
        let key = (identity.clone(), id.clone());
        match shared.clients.client_ids.entry(key.clone()) {
            dashmap::Entry::Occupied(it) => Err(it.get().clone()),
            dashmap::Entry::Vacant(slot) => {
                let (done, waiting) = watch::channel(());
                slot.insert(waiting.clone());
                Ok(Claim { shared: shared.clone(), key, waiting, done })
            }
        }
    }

    fn let_go(&self) {
        let own = |_: &_, it: &watch::Receiver<()>| it.same_channel(&self.waiting);
        if self.shared.clients.client_ids.remove_if(&self.key, own).is_some() {
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
