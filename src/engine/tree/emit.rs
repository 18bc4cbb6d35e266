//! Sends the emissions of handlers: replies, messages to other listeners and to identities,
//! refusals and faults.

use std::sync::Arc;

use crate::engine::tree::due_time::Until;
use crate::engine::tree::effect::{Effect, Step, World};
use crate::engine::tree::event::Ready;
use crate::engine::tree::loop_guard::Chain;
use crate::engine::tree::observer::PushEvent;
use crate::engine::tree::request::{ChildPurpose, ChildRequest, Steering, TreeRequest};
use crate::engine::tree::route::Receiver;
use crate::engine::tree::sending::{Part, Sending, word};
use crate::engine::tree::thread::{Later, Origin, Thread};
use crate::engine::tree::undelivered_report::trace;
use crate::id::EntryId;
use crate::listener::{Entry, Target, may_emit};
use crate::log::Flags;
use crate::wire::core::{Done, ThreadStatus, said};
use crate::wire::{Checked, Code, Fault};

impl Thread {
    /// Sends the emissions of a handler, up to `emissions_max` for one handling. Emissions beyond
    /// this bound are dropped, and the sender of the message is told.
    pub(crate) fn emit_all(
        &mut self,
        part: &Part,
        ready: Vec<Ready>,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let max = world.limits.emissions_max;
        let room = (max + ready.len()).saturating_sub(part.emitted);
        let over = ready.len() > room;
        let before = self.next_seq;
        for emission in ready.into_iter().take(room) {
            let part = Part { flags: emission.flags, meta: emission.meta.clone(), ..part.clone() };
            self.emit(&part, emission, world, out);
        }
        let takes_queue =
            world.routes.listeners.get(part.listener).is_some_and(|it| it.takes_queue);
        if takes_queue && self.next_seq > before {
            self.last_emissions.insert(part.listener, (self.next_seq - 1, part.root));
        }
        if over {
            let text = format!("more than emissions_max, {max}, came of one message");
            self.complain(part, &Fault::new(Code::TooManyEmissions, text), world, out);
        }
    }

    fn emit(&mut self, part: &Part, ready: Ready, world: &World<'_>, out: &mut Step) {
        let checked = match ready.payload {
            Ok(checked) => checked,
            Err(fault) => {
                let (target, sought) = (ready.target, ready.sought);
                return self.fail_emission(part, fault, &target, sought.as_ref(), world, out);
            }
        };
        let registered = &world.routes.listeners[part.listener];
        let answers = ready.target.answered(&part.message).is_some();
        if let Some(short) = self.shortage_for(part, &ready.target, world, out) {
            return self.refuse_for(part, checked, &ready.target, short, world, out);
        }
        let is_charge = matches!(ready.target, Target::Charge(_));
        let reserved = !is_charge && checked.is_reserved(&world.routes.catalog);
        if reserved && !may_emit(&*registered.grants, checked.name()) {
            return self.refuse_reserved(part, checked, answers, world, out);
        }
        match ready.target {
            Target::Sender => self.reply_to_message(part, checked, world, out),
            Target::Entry(entry) if self.has(entry.id()) => {
                self.reply(part, &entry, checked, world, out);
            }
            Target::Entry(_) => {
                self.refuse(part, checked, None, &Fault::undeliverable(), world, out);
            }
            Target::Askers(asked, outcome) => {
                self.answer_askers(part, checked, &asked, outcome, world, out);
            }
            // A `Park` takes effect only among the emissions that a handler returns. `returned` has
            // removed it from those, so a `Park` here is ignored.
            Target::Park(_) => {}
            // The `Withdraw`s of a handling were carried out before its other emissions.
            Target::Withdraw(_) => {}
            Target::Opener => self.end_with(part, checked, world, out),
            Target::Along if self.spawner.is_none() => self.end_with(part, checked, world, out),
            Target::Along => {
                drop(self.append(self.sending(part, checked, None, world), world, out));
            }
            Target::Above => self.note_above(part, checked, world, out),
            Target::Note(to) => self.take_note(part, checked, to, world, out),
            Target::Child { label, for_sender } => {
                let purpose =
                    if for_sender { ChildPurpose::ForSender } else { ChildPurpose::Spawn };
                self.open(part, label, checked, purpose, out);
            }
            Target::Threads(thread, state) => {
                let (part, why) = (part.clone(), checked);
                self.hold(part.root);
                let steering = Steering { part, thread, state, why };
                out.requests.push_back(TreeRequest::Steer(Box::new(steering)));
            }
            Target::Charge(charge) => self.charge(part, checked, &charge, world, out),
            Target::Raise => self.ask_for_more(part, &checked, out),
            Target::Retry => self.ask_for_retry(part, &checked, out),
            it @ Target::Later { .. } => self.put_off(part, checked, &it, world, out),
            Target::Oneself => {
                let receiver = world.routes.route(part.listener, checked.name());
                let to = registered.name.clone();
                let root = part.next_root.unwrap_or(part.root);
                let part = Part { root, ..part.clone() };
                self.forward(&part, checked, to, receiver, world, out);
            }
            Target::Listener(to) => self.call(part, to, checked, world, out),
        }
    }

    /// Refuses a payload that only the pump may emit. If the payload answers a message, complains
    /// to the message's sender.
    fn refuse_reserved(
        &mut self,
        part: &Part,
        checked: Checked,
        answers: bool,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let text = format!("{} may be emitted by the pump only", checked.name());
        let fault = Fault::new(Code::Reserved, text);
        self.refuse(part, checked, None, &fault, world, out);
        if answers {
            let name = &world.routes.listeners[part.listener].name;
            let text = format!("the answer of {name} was refused");
            self.complain(part, &Fault::new(Code::InvalidReturn, text), world, out);
        }
    }

    /// Sends a message to a listener. The message opens a child thread if the receiver has
    /// `own_thread`, or if it parks messages and has unfinished work in this thread. A message from
    /// a listener to itself opens no thread.
    fn call(
        &mut self,
        part: &Part,
        to: String,
        checked: Checked,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let registered = &world.routes.listeners[part.listener];
        let found = world.routes.address(Some(registered), &to, checked.name()).ok();
        let own = |receiver: &Receiver| {
            let listener = &world.routes.listeners[receiver.listener];
            let is_busy = listener.parks && self.has_unfinished(receiver.listener);
            (listener.traits.own_thread || is_busy) && receiver.listener != part.listener
        };
        match found.filter(own) {
            Some(receiver) => self.open(part, to, checked, ChildPurpose::Call(receiver), out),
            None => self.forward(part, checked, to.into(), found, world, out),
        }
    }

    /// Records a note: an entry that starts no handler.
    fn take_note(
        &mut self,
        part: &Part,
        checked: Checked,
        to: Option<String>,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let registered = &world.routes.listeners[part.listener];
        let to: Arc<str> = to.map_or_else(|| registered.name.clone(), Arc::from);
        if !world.routes.may_name(registered, &to) {
            let fault = world.routes.misaddressed(registered, &to, checked.name());
            let sending = self.sending(part, checked, Some(to), world);
            let refused = self.append(Sending { flags: Flags::REFUSED, ..sending }, world, out);
            // No sender waits for an answer to a note.
            trace(&refused, &fault);
            return self.tell_refused(part, refused.id(), &fault, world, out);
        }
        let sending = self.sending(part, checked, Some(to), world);
        self.append(sending, world, out);
    }

    /// Appends a message that a listener sends itself, and makes the message wait until it is due.
    fn put_off(
        &mut self,
        part: &Part,
        checked: Checked,
        target: &Target,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let Target::Later { until_us, is_awaited, by_clock } = *target else { return };
        let to = world.routes.listeners[part.listener].name.clone();
        let Some(receiver) = world.routes.route(part.listener, checked.name()) else {
            let own = &world.routes.listeners[part.listener];
            let fault = world.routes.misaddressed(own, &to, checked.name());
            return self.refuse(part, checked, Some(to), &fault, world, out);
        };
        let root = if is_awaited { part.root } else { Later::FOR_NONE };
        let watches = !is_awaited && until_us == u64::MAX;
        let flags = if watches { part.flags.with(Flags::WATCHES) } else { part.flags };
        let (flags, until) = match by_clock && until_us < u64::MAX {
            true => (flags.with(Flags::BY_CLOCK), Until::Clock(until_us)),
            false => (flags, Until::Passed(until_us)),
        };
        let sending = self.sending(part, checked, Some(to), world);
        let sending = Sending { flags, until: Some(until), root, ..sending };
        self.append(Sending { receivers: &[receiver], ..sending }, world, out);
    }

    /// Asks the tree to open a child of this thread.
    fn open(
        &mut self,
        part: &Part,
        label: String,
        first: Checked,
        purpose: ChildPurpose,
        out: &mut Step,
    ) {
        self.hold(part.root);
        let opening = ChildRequest { part: part.clone(), label, first, purpose };
        out.requests.push_back(TreeRequest::Open(Box::new(opening)));
    }

    /// Returns whether an answer to `answered` ends the thread: `answered` must be the first
    /// message of this thread, and the thread must be a live child.
    pub(crate) fn ends_with(&self, answered: &Entry) -> bool {
        self.spawner.is_some()
            && self.state.is_live()
            && answered.seq() == 1
            && *answered.thread() == self.id
    }

    /// Delivers the thread's result. A child thread ends with the result. A session sends the
    /// result to the identity that pushed, or, if no identity is known, to the sender of the
    /// current message.
    fn end_with(&mut self, part: &Part, checked: Checked, world: &World<'_>, out: &mut Step) {
        let from = &world.routes.listeners[part.listener].name;
        if self.spawner.is_some() {
            if self.state.is_live() {
                self.finish(part, from, checked, part.ending(), world, out);
            }
            return;
        }
        let Some((root, identity)) = self.asked(part.root) else {
            return self.reply_to_message(part, checked, world, out);
        };
        let sending = self.sending(part, checked, Some(identity.clone()), world);
        let sending = Sending { from, reply_to: Some(self.entry(root)), ..sending };
        let others = (!self.joined.is_empty()).then(|| sending.clone());
        let told = self.tell(&identity, root, sending, world, out);
        if let Some(sending) = others {
            self.tell_others(root, told, &sending, world, out);
        }
    }

    /// Sends a message to its receiver, or refuses it if there is no receiver.
    fn forward(
        &mut self,
        part: &Part,
        checked: Checked,
        to: Arc<str>,
        receiver: Option<Receiver>,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let Some(receiver) = receiver else {
            let own = &world.routes.listeners[part.listener];
            let fault = world.routes.misaddressed(own, &to, checked.name());
            return self.refuse(part, checked, Some(to), &fault, world, out);
        };
        let sending = self.sending(part, checked, Some(to), world);
        let sending = Sending { receivers: &[receiver], ..sending };
        if let Some(bound) = self.goes_round(&sending, None, world) {
            return self.stop_round(part, sending, bound, world, out);
        }
        self.pass(sending, None, world, out);
        self.start_all_of(&[receiver], world, out);
    }

    /// Answers the sender of the current message.
    pub(crate) fn reply_to_message(
        &mut self,
        part: &Part,
        checked: Checked,
        world: &World<'_>,
        out: &mut Step,
    ) {
        self.reply(part, &part.message, checked, world, out);
    }

    /// Answers the sender of `answered`.
    fn reply(
        &mut self,
        part: &Part,
        answered: &Entry,
        checked: Checked,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let registered = &world.routes.listeners[part.listener];
        let from = &registered.name;
        if self.ends_with(answered) && !registered.ends_itself {
            return self.finish(part, from, checked, part.ending(), world, out);
        }
        let sending = self.sending(part, checked, Some(answered.sender().clone()), world);
        let sending = Sending { from, reply_to: Some(answered.id().clone()), ..sending };
        self.answer(part, answered, sending, world, out);
    }

    /// Sends an answer to the sender of `answered`, which is an identity or a listener. If the pump
    /// itself sent `answered`, the answer is recorded as refused.
    pub(crate) fn answer(
        &mut self,
        part: &Part,
        answered: &Entry,
        sending: Sending<'_>,
        world: &World<'_>,
        out: &mut Step,
    ) {
        if answered.is_from_identity() {
            self.tell(answered.sender(), answered.seq(), sending, world, out);
            return;
        }
        let name = sending.checked.name();
        let found = world.routes.find(answered.from());
        let receiver = found.and_then(|it| world.routes.reply(it, name));
        if answered.is_from_core() {
            let sending = Sending { flags: sending.flags.with(Flags::REFUSED), ..sending };
            self.append(sending, world, out);
            return;
        }
        let receivers: Vec<Receiver> = receiver.into_iter().collect();
        let sending = Sending { receivers: &receivers, ..sending };
        let asked = Some(answered.body());
        if let Some(bound) = self.goes_round(&sending, asked, world) {
            return self.stop_round(part, sending, bound, world, out);
        }
        self.pass(sending, asked, world, out);
        self.start_all_of(&receivers, world, out);
    }

    /// Records an entry for an identity, and tells the observer of the push `pushed`. If this push
    /// is already settled, the observer of the identity's last push is told instead, as long as
    /// that observer exists.
    pub(crate) fn tell(
        &mut self,
        identity: &Arc<str>,
        pushed: u64,
        sending: Sending<'_>,
        world: &World<'_>,
        out: &mut Step,
    ) -> Entry {
        let flags = sending.flags.with(Flags::TO_IDENTITY);
        let entry = self.append(Sending { flags, ..sending }, world, out);
        if let Some(origin) = self.origins.get_mut(&pushed) {
            origin.answered = true;
        }
        if let Some((observer, push)) = self.observer(identity, Some(pushed)) {
            out.effects.push(Effect::Tell(observer, push, PushEvent::Reply(entry.clone())));
        }
        entry
    }

    /// Sends a fault to the sender of the current message. A fault about a child thread's first
    /// message ends that thread.
    pub(crate) fn complain(
        &mut self,
        part: &Part,
        fault: &Fault,
        world: &World<'_>,
        out: &mut Step,
    ) {
        self.complain_to(part, &part.message, fault, world, out);
    }

    /// Sends a fault to the sender of `asked`.
    pub(crate) fn complain_to(
        &mut self,
        part: &Part,
        asked: &Entry,
        fault: &Fault,
        world: &World<'_>,
        out: &mut Step,
    ) {
        if !asked.is_from_identity() && asked.is_from_core() {
            let (message, fault) = (asked.id(), fault.code);
            tracing::warn!(%message, %fault, "nobody to tell of a fault");
            return;
        }
        let Some(checked) = said(fault) else { return };
        if self.ends_with(asked) {
            return self.finish(part, world.core, checked, ThreadStatus::Failed, world, out);
        }
        let to = asked.sender().clone();
        let sending = self.sending(part, checked, Some(to), world);
        let reply_to = Some(asked.id().clone());
        let (flags, meta) = (Flags::NONE, None);
        let sending = Sending { from: world.core, reply_to, flags, meta, ..sending };
        self.answer(part, asked, sending, world, out);
    }

    /// Answers a request with `done`, since its handler emitted nothing.
    pub(crate) fn nothing_came(&mut self, part: &Part, world: &World<'_>, out: &mut Step) {
        let Some(checked) = word(&Done {}) else { return };
        let sending = self.sending(part, checked, Some(part.message.sender().clone()), world);
        let reply_to = Some(part.message.id().clone());
        let sending = Sending { from: world.core, reply_to, ..sending };
        self.answer(part, &part.message, sending, world, out);
    }

    /// Records an emission of a listener as refused, and tells the listener why.
    pub(crate) fn refuse(
        &mut self,
        part: &Part,
        checked: Checked,
        to: Option<Arc<str>>,
        fault: &Fault,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let sending = self.sending(part, checked, to, world);
        let refused = self.append(Sending { flags: Flags::REFUSED, ..sending }, world, out);
        if fault.code == Code::Undeliverable {
            self.note_undelivered(part, &refused, fault, out);
        }
        self.tell_refused(part, refused.id(), fault, world, out);
    }

    /// Tells a listener why its emission was refused. `refused` is the emission's entry.
    pub(crate) fn tell_refused(
        &mut self,
        part: &Part,
        refused: &EntryId,
        fault: &Fault,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let Some(huh) = said(fault) else { return };
        let receiver = world.routes.reply(part.listener, huh.name());
        let receivers: Vec<_> = receiver.into_iter().filter(|_| !part.is_from_core()).collect();
        let to = world.routes.listeners[part.listener].name.clone();
        let sending = self.sending(part, huh, Some(to), world);
        let reply_to = Some(refused.clone());
        let (from, flags, receivers) = (world.core, Flags::NONE, &receivers[..]);
        self.append(Sending { from, reply_to, flags, receivers, ..sending }, world, out);
        self.start_all_of(receivers, world, out);
    }

    /// Returns a message from the handling's listener, with the current message as its cause.
    pub(crate) fn sending<'a>(
        &self,
        part: &Part,
        checked: Checked,
        to: Option<Arc<str>>,
        world: &World<'a>,
    ) -> Sending<'a> {
        Sending {
            from: world.routes.listeners.get(part.listener).map_or(world.core, |it| &it.name),
            to,
            checked,
            cause: Some(part.message.id().clone()),
            reply_to: None,
            flags: part.flags,
            receivers: &[],
            client_id: None,
            meta: part.meta.clone(),
            root: part.root,
            chain: part.chain,
            until: None,
        }
    }

    /// Returns the pump's reply to a push, for the identity that sent it.
    pub(crate) fn to_pusher<'a>(
        &self,
        pushed: u64,
        identity: &Arc<str>,
        checked: Checked,
        world: &World<'a>,
    ) -> Sending<'a> {
        let id: EntryId = self.entry(pushed);
        Sending {
            from: world.core,
            to: Some(identity.clone()),
            checked,
            cause: Some(id.clone()),
            reply_to: Some(id),
            flags: Flags::NONE,
            receivers: &[],
            client_id: None,
            meta: None,
            root: pushed,
            chain: Chain::default(),
            until: None,
        }
    }

    /// Tells an identity that its push was cancelled before the push was answered.
    pub(crate) fn tell_cancelled(
        &mut self,
        pushed: u64,
        origin: &Origin,
        fault: &Fault,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let Some(checked) = said(fault) else { return };
        let sending = self.to_pusher(pushed, &origin.identity, checked, world);
        let sending = Sending { flags: Flags::TO_IDENTITY, ..sending };
        let entry = self.append(sending, world, out);
        out.effects.push(Effect::Tell(
            origin.observer.clone(),
            origin.push,
            PushEvent::Reply(entry),
        ));
    }
}
