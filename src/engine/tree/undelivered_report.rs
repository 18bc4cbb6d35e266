//! Reports emissions that no listener got: traces them, and tells the senders that wait for an
//! answer.

use crate::engine::tree::effect::{Step, World};
use crate::engine::tree::event::Ready;
use crate::engine::tree::sending::Part;
use crate::engine::tree::thread::{Running, Thread};
use crate::listener::{Entry, Target};
use crate::name::Name;
use crate::wire::core::{Done, Huh, said};
use crate::wire::{Checked, Fault, Payload};

/// How many characters of a receiver's name are traced.
const TRACED_MAX: usize = 100;

impl Ready {
    /// Returns whether the emission is silent: a note, a charge, or a request to raise a budget. A
    /// silent emission answers nobody.
    pub(crate) fn is_silent(&self) -> bool {
        use Target::{Above, Charge, Note, Raise, Retry};
        matches!(self.target, Note(_) | Above | Charge(_) | Raise | Retry) && self.payload.is_ok()
    }
}

impl Running {
    /// Takes the faults that the step has noted for this handling. Their emissions count as silent,
    /// and the handling keeps its first fault.
    pub(crate) fn take_undelivered(&mut self, out: &mut Step) {
        let faults = std::mem::take(&mut out.undelivered);
        self.silent += faults.len();
        if self.undelivered.is_none() {
            self.undelivered = faults.into_iter().next().map(Box::new);
        }
    }
}

impl Thread {
    /// Returns whether the sender of the current message may know why no listener takes a payload.
    /// Only the identity that pushed may know the reason.
    pub(crate) fn may_know_why(&self, part: &Part) -> bool {
        let origin = self.origins.get(&part.root);
        origin.is_some_and(|it| it.may_know_why && it.identity == *part.message.sender())
    }

    /// Replaces the fault's message with the reason why no listener takes the payload `name`, if
    /// the sender of the current message may know the reason. Without `name` the fault stays as it
    /// is.
    pub(crate) fn with_reason(
        &self,
        part: &Part,
        fault: Fault,
        name: Option<&Name>,
        world: &World<'_>,
    ) -> Fault {
        match name.filter(|_| self.may_know_why(part)) {
            Some(name) => world.routes.explained(fault, None, name),
            None => fault,
        }
    }

    /// Tells the waiting senders that an emission failed: those whose messages it was to answer, if
    /// these are in this thread, or else the sender of the message that the handler has. `sought`
    /// is the name of the emitted payload if no listener takes it.
    pub(crate) fn fail_emission(
        &mut self,
        part: &Part,
        fault: Fault,
        target: &Target,
        sought: Option<&Name>,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let fault = self.with_reason(part, fault, sought, world);
        let asked: &[Entry] = match target {
            Target::Entry(asked) => std::slice::from_ref(&**asked),
            Target::Askers(asked, _) => asked,
            _ => return self.complain(part, &fault, world, out),
        };
        let told: Vec<&Entry> = asked.iter().filter(|it| self.has(it.id())).collect();
        if told.is_empty() {
            return self.complain(part, &fault, world, out);
        }
        for asked in told {
            self.complain_to(part, asked, &fault, world, out);
        }
    }

    /// Notes that no listener got an emission.
    pub(crate) fn note_undelivered(
        &mut self,
        part: &Part,
        refused: &Entry,
        fault: &Fault,
        out: &mut Step,
    ) {
        trace(refused, fault);
        if let Some(origin) = self.origins.get_mut(&part.root) {
            origin.undelivered.get_or_insert_with(|| Box::new(fault.clone()));
        }
        out.undelivered.push(fault.clone());
    }

    /// Tells the sender of a message that its handler's emissions reached no receiver, if all
    /// emissions of the handler are silent or undelivered. If the handler's listener takes faults,
    /// only this listener is told. An identity is told later, once its push is settled, unless the
    /// message is the first of a child thread.
    pub(crate) fn report_undelivered(
        &mut self,
        part: &Part,
        running: &Running,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let Some(fault) = &running.undelivered else { return };
        let is_deaf = world.routes.reply(part.listener, &Huh::NAME).is_none();
        let waits = !part.message.is_from_identity() || self.ends_with(&part.message);
        if running.silent >= running.emitted && is_deaf && waits && !part.is_from_core() {
            self.complain(part, fault, world, out);
        }
    }

    /// Tells an identity how its push ended, if the push got no answer. If an emission reached no
    /// receiver, the identity gets the fault. Otherwise it gets `done` if it asked for an answer.
    pub(crate) fn report_end(&mut self, pushed: u64, world: &World<'_>, out: &mut Step) {
        let Some(origin) = self.origins.get_mut(&pushed).filter(|it| !it.answered) else { return };
        let word = match origin.undelivered.take() {
            Some(fault) => said(&fault),
            None if origin.wants_answer => {
                Done {}.encode().ok().map(|it| Checked::typed(Done::NAME, it))
            }
            None => None,
        };
        let identity = origin.identity.clone();
        let Some(checked) = word else { return };
        let sending = self.to_pusher(pushed, &identity, checked, world);
        self.tell(&identity, pushed, sending, world, out);
    }
}

/// Traces that no listener got an emission.
pub(crate) fn trace(refused: &Entry, fault: &Fault) {
    let to: String = refused.to().unwrap_or_default().chars().take(TRACED_MAX).collect();
    let (message, listener) = (refused.id(), refused.from());
    tracing::warn!(%message, listener, ?to, fault = %fault.code, "nobody gets what was sent");
}
