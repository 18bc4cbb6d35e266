//! Opens child threads, hands their results to the parent, and ends, pauses and resumes branches. A
//! branch is a thread with all threads below it.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::engine::tree::effect::{Step, World};
use crate::engine::tree::event::ORGANISM;
use crate::engine::tree::loop_guard::{Chain, Hop};
use crate::engine::tree::request::{
    ChildPurpose, ChildRequest, OpenerNote, Steering, ThreadEnd, TreeRequest,
};
use crate::engine::tree::route::Receiver;
use crate::engine::tree::sending::{Part, Sending, word};
use crate::engine::tree::step::Tree;
use crate::engine::tree::thread::{Spawner, Thread, ended};
use crate::id::{EntryId, ThreadId};
use crate::log::{Flags, NewThread, State};
use crate::wire::budget::BudgetKey;
use crate::wire::core::{ThreadCancelled, ThreadNote, ThreadResult, ThreadSpawned, ThreadStatus};
use crate::wire::{Checked, Code, Fault, Payload};
use crate::xml::Element;

impl Tree {
    /// Carries out the requests of threads to their tree, and the requests that follow from these.
    pub(crate) fn carry_out_requests(&mut self, world: &World<'_>, out: &mut Step) {
        while let Some(next) = out.requests.pop_front() {
            match next {
                TreeRequest::Open(request) => {
                    let part = request.part.clone();
                    self.open(*request, world, out);
                    self.let_go(&part, world, out);
                }
                TreeRequest::Ended(it) => self.ended(it, world, out),
                TreeRequest::Note(it) => self.note_for_opener(it, world, out),
                TreeRequest::Spent(it) => self.spent(&it, world, out),
                TreeRequest::Raise(request) => {
                    self.raise(&request, world, out);
                    self.let_go(&request.part, world, out);
                }
                TreeRequest::Retry(request) => {
                    self.retry(&request, world, out);
                    self.let_go(&request.part, world, out);
                }
                TreeRequest::Steer(request) => {
                    self.steer(&request, world, out);
                    self.let_go(&request.part, world, out);
                }
            }
        }
    }

    /// Notes that a request is done, so that its push no longer waits for it.
    fn let_go(&mut self, part: &Part, world: &World<'_>, out: &mut Step) {
        if let Some(thread) = self.threads.get_mut(part.message.thread()) {
            thread.let_go(part.root, world, out);
        }
    }

    fn open(&mut self, opening: ChildRequest, world: &World<'_>, out: &mut Step) {
        let at = opening.part.message.thread().clone();
        let spawner = match opening.purpose {
            ChildPurpose::ForSender => Spawner::of(&opening.part.message),
            _ => Spawner::listener(&world.routes.listeners[opening.part.listener].name),
        };
        let live = self.threads.len() as u64;
        let Some(parent) = self.threads.get_mut(&at).filter(|it| it.state.is_live()) else {
            return;
        };
        let fits = room_for(parent, live, world, out);
        let receivers = fits.and_then(|()| may_open(&opening, &spawner, world));
        let receivers = match receivers {
            Ok(receivers) => receivers,
            Err(fault) if opening.purpose == ChildPurpose::ForSender => {
                let fault =
                    parent.with_reason(&opening.part, fault, Some(opening.first.name()), world);
                return parent.complain(&opening.part, &fault, world, out);
            }
            Err(fault) => {
                return parent.refuse(&opening.part, opening.first, None, &fault, world, out);
            }
        };
        if opening.purpose != ChildPurpose::ForSender {
            let first = parent.sending(&opening.part, opening.first.clone(), None, world);
            let first = Sending { receivers: &receivers, ..first };
            if let Some(bound) = parent.goes_round(&first, None, world) {
                return parent.stop_round(&opening.part, first, bound, world, out);
            }
        }
        let id = self.child_id(&at, &opening.label);
        let Some(parent) = self.threads.get_mut(&at) else { return };
        let record = NewThread { id: id.clone(), parent: Some(at), fork: None };
        let mut child = Thread::new(record, parent.owner.clone(), 0);
        child.depth = parent.depth + 1;
        child.state = if parent.state == State::Paused { State::Paused } else { State::Open };
        let at = parent.opened(&id, &opening, &spawner, world, out);
        child.root_above = opening.part.root;
        let spawner = Spawner { chain: parent.guard.resumed(opening.part.chain, at), ..spawner };
        let chain = parent.guard.below(spawner.chain, &child.guard);
        child.begin(&opening, &spawner, chain, &receivers, world, out);
        self.threads.insert(id, Box::new(child));
        out.ledger.look_at(BudgetKey::Children, live);
    }

    /// Returns a new id for a child, which no thread of the tree has or had.
    fn child_id(&mut self, parent: &ThreadId, label: &str) -> ThreadId {
        let wanted = parent.child(label, 0);
        if !self.has(&wanted) {
            return wanted;
        }
        let mut number = self.suffixes.get(&wanted).copied().unwrap_or(0);
        loop {
            number += 1;
            let id = parent.child(label, number);
            if !self.has(&id) {
                self.suffixes.insert(wanted, number);
                return id;
            }
        }
    }

    /// Hands the result of an ended thread to its parent, and ends the threads below the ended one.
    fn ended(&mut self, ended: ThreadEnd, world: &World<'_>, out: &mut Step) {
        let Some(mut child) = self.threads.remove(&ended.thread) else { return };
        self.over.insert(ended.thread.clone(), child.state);
        for below in self.branch(&child.children) {
            self.cancel_below(&below, &ended.entry, world, out);
        }
        child.stop(world, out);
        let above = child.record.parent.as_ref().and_then(|it| self.threads.get_mut(it));
        let Some(parent) = above else { return };
        parent.result(&child, ended, world, out);
        let id = parent.id.clone();
        self.end_if_done(&id, world, out);
    }

    /// Records a child's note in the parent thread, unless an identity opened the child. The
    /// listeners that take `thread-note` handle the note. If there are none, the note is addressed
    /// to the listener that opened the child, and starts no handler.
    fn note_for_opener(&mut self, opener_note: OpenerNote, world: &World<'_>, out: &mut Step) {
        let Some(child) = self.threads.get(&opener_note.thread) else { return };
        let note = ThreadNote { thread: child.id.to_string(), payload: opener_note.element };
        let (Some(checked), Some(spawner), root) =
            (word(&note), child.spawner.clone(), child.root_above)
        else {
            return;
        };
        let above = child.record.parent.clone().and_then(|it| self.threads.get_mut(&it));
        let Some(parent) = above.filter(|_| !spawner.is_identity) else { return };
        let receivers = world.routes.receivers(None, checked.name()).unwrap_or_default();
        let sending = to_spawner(&spawner, checked, opener_note.entry, root, world);
        let to = match &receivers[..] {
            [] => sending.to,
            [one] => Some(world.routes.listeners[one.listener].name.clone()),
            _ => None,
        };
        parent.append(Sending { receivers: &receivers, to, ..sending }, world, out);
        parent.start_all_of(&receivers, world, out);
    }

    /// Ends a child that has nothing left to do and gave no answer. In any other thread,
    /// `tell_quiet` may send `nothing-under-way`.
    pub(crate) fn end_if_done(&mut self, id: &ThreadId, world: &World<'_>, out: &mut Step) {
        let Some(thread) = self.threads.get_mut(id) else { return };
        if thread.is_done() {
            thread.end_empty(world, out);
            self.carry_out_requests(world, out);
        } else {
            thread.tell_quiet(world, out);
        }
    }

    fn steer(&mut self, steering: &Steering, world: &World<'_>, out: &mut Step) {
        let own = steering.part.message.thread().clone();
        let branch = self.branch([&steering.thread]);
        let mut above = self.threads.get(&steering.thread);
        while let Some(thread) = above.filter(|it| it.id != own) {
            above = thread.record.parent.as_ref().and_then(|it| self.threads.get(it));
        }
        if above.is_none() {
            let over = self.over.get(&steering.thread).filter(|_| steering.thread.is_below(&own));
            let over = over.map(|state| ended(&steering.thread, *state));
            if let Some(thread) = self.threads.get_mut(&own) {
                let fault = over.unwrap_or_else(|| Fault::unknown_thread(steering.thread.as_str()));
                thread.complain(&steering.part, &fault, world, out);
            }
            return;
        }
        if steering.thread.as_str() == ORGANISM && steering.state != State::Open {
            if let Some(thread) = self.threads.get_mut(&own) {
                thread.complain(&steering.part, &organism_thread_fault(steering.state), world, out);
            }
            return;
        }
        if !branch.contains(&own)
            && let Some(thread) = self.threads.get_mut(&own)
        {
            thread.reply_to_message(&steering.part, steering.why.clone(), world, out);
        }
        let within: FxHashSet<&ThreadId> = branch.iter().collect();
        for id in &branch {
            let Some(thread) = self.threads.get_mut(id) else { continue };
            if thread.stays(steering.state) {
                if *id == own {
                    thread.reply_to_message(&steering.part, steering.why.clone(), world, out);
                }
                continue;
            }
            if steering.state == State::Cancelled {
                thread.settle_all_stopped(world, out);
            }
            let entry = thread.set_state(steering, world, out);
            if steering.state == State::Cancelled {
                thread.stop(world, out);
                self.over.insert(id.clone(), steering.state);
                let Some(thread) = self.threads.remove(id) else { continue };
                let above = thread.record.parent.as_ref().filter(|it| !within.contains(it));
                if let Some(parent) = above.and_then(|it| self.threads.get_mut(it)) {
                    let status = ThreadStatus::Cancelled;
                    let ended = ThreadEnd { thread: id.clone(), entry, status, element: None };
                    parent.result(&thread, ended, world, out);
                    let id = parent.id.clone();
                    self.end_if_done(&id, world, out);
                }
            }
        }
        // A child that finished its work while it was paused ends now.
        for id in branch.iter().filter(|_| steering.state == State::Open) {
            self.end_if_done(id, world, out);
        }
    }

    /// Ends a thread because a thread above it has ended.
    fn cancel_below(&mut self, id: &ThreadId, cause: &EntryId, world: &World<'_>, out: &mut Step) {
        let Some(mut thread) = self.threads.remove(id) else { return };
        thread.settle_all_stopped(world, out);
        let why = ThreadCancelled {
            thread: id.to_string(),
            by: world.core.to_string(),
            reason: Some("the thread above it came to its end".into()),
        };
        thread.note(&why, State::Cancelled, Some(cause.clone()), world, out);
        thread.stop(world, out);
        self.over.insert(id.clone(), State::Cancelled);
    }

    /// Returns the given threads and all threads below them, the deepest first.
    pub(super) fn branch<'a>(&self, of: impl IntoIterator<Item = &'a ThreadId>) -> Vec<ThreadId> {
        let mut all: Vec<ThreadId> = of.into_iter().cloned().collect();
        all.sort_unstable();
        let mut next = 0;
        while let Some(id) = all.get(next) {
            if let Some(thread) = self.threads.get(id) {
                let mut below: Vec<ThreadId> = thread.children.iter().cloned().collect();
                below.sort_unstable();
                all.extend(below);
            }
            next += 1;
        }
        all.reverse();
        all
    }
}

/// Returns the fault for a request to pause or end the organism's own thread. The pump couldn't
/// record its starts and stops in a paused or ended thread.
fn organism_thread_fault(state: State) -> Fault {
    let text = format!("{ORGANISM} is the pump's own thread, and can't become {state}");
    let advice = "Name a thread below it, or another; what runs the pump stops it.";
    Fault { advice: Some(advice.to_owned()), ..Fault::new(Code::Reserved, text) }
}

/// Checks that the budget has room for a child of `parent`. `live` is the number of live threads in
/// the tree.
fn room_for(
    parent: &mut Thread,
    live: u64,
    world: &World<'_>,
    out: &mut Step,
) -> Result<(), Fault> {
    if parent.state == State::OverBudget {
        return Err(ended(&parent.id, parent.state));
    }
    let (ledger, depth) = (&out.ledger, parent.depth as u64);
    // The session itself doesn't count as a child.
    let fits = ledger
        .fits(BudgetKey::Depth, 1, depth)
        .and_then(|()| ledger.fits(BudgetKey::Children, 1, live.saturating_sub(1)))
        .and_then(|()| ledger.fits_message(world.now_us));
    fits.map_err(|short| {
        parent.run_out(short, None, out);
        short.fault()
    })
}

/// Returns the receivers of a child's first message, or the fault if the child may not be opened.
fn may_open(
    opening: &ChildRequest,
    spawner: &Spawner,
    world: &World<'_>,
) -> Result<Vec<Receiver>, Fault> {
    let name = opening.first.name();
    if opening.purpose == ChildPurpose::ForSender
        && opening.first.is_reserved(&world.routes.catalog)
    {
        return Err(Fault::new(Code::Reserved, format!("{name} may be sent by the pump only")));
    }
    if let ChildPurpose::Call(receiver) = opening.purpose {
        return Ok(vec![receiver]);
    }
    let receivers = world.routes.receivers(None, name)?;
    if spawner.is_identity {
        // A thread is no way around what a listener's `door` says.
        let flags = opening.part.message.flags();
        return world.routes.admitted(receivers, &spawner.name, flags);
    }
    let spawner = world.routes.find(&spawner.name).map(|it| &world.routes.listeners[it]);
    let name = |it: &Receiver| &world.routes.listeners[it.listener].name;
    let may = |it: &Receiver| spawner.is_none_or(|spawner| spawner.may_reach(name(it)));
    if !receivers.iter().all(may) {
        return Err(Fault::undeliverable());
    }
    Ok(receivers)
}

impl Thread {
    /// Records that a child is opened, and tells its opener. Returns the number of the entry that
    /// stands for the child in the loop guard: the message that asked for the child, or the entry
    /// of `thread-spawned`.
    fn opened(
        &mut self,
        id: &ThreadId,
        opening: &ChildRequest,
        spawner: &Spawner,
        world: &World<'_>,
        out: &mut Step,
    ) -> u64 {
        self.children.insert(id.clone());
        self.hold(opening.part.root);
        let spawned = ThreadSpawned { assigned_id: id.to_string(), parent_id: self.id.to_string() };
        let at = self.entry(self.next_seq);
        let Some(checked) = word(&spawned) else { return at.seq };
        let sending = self.sending(&opening.part, checked, Some(spawner.name.clone()), world);
        let flags = sending.flags.only(Flags::IDEMPOTENT);
        let mut sending = Sending { from: world.core, flags, ..sending };
        match opening.purpose {
            ChildPurpose::ForSender => {
                sending.reply_to = Some(opening.part.message.id().clone());
                self.answer(&opening.part, &opening.part.message, sending, world, out);
                return opening.part.message.seq();
            }
            ChildPurpose::Spawn => {
                let receiver = world.routes.reply(opening.part.listener, &ThreadSpawned::NAME);
                let receivers: Vec<Receiver> = receiver.into_iter().collect();
                self.append(Sending { receivers: &receivers, ..sending }, world, out);
                self.start_all_of(&receivers, world, out);
            }
            ChildPurpose::Call(_) => drop(self.append(sending, world, out)),
        }
        let (chain, cause) = (opening.part.chain, opening.part.message.seq());
        let hop = Hop { from: &spawner.name, to: id.as_str(), chain, cause, asked: None };
        self.watch(&hop, &at, &opening.first.element().canonical(), world, out);
        at.seq
    }

    /// Appends the first message of a new child thread, and starts its handlers.
    fn begin(
        &mut self,
        opening: &ChildRequest,
        spawner: &Spawner,
        chain: Chain,
        receivers: &[Receiver],
        world: &World<'_>,
        out: &mut Step,
    ) {
        let to = match receivers {
            [one] => Some(world.routes.listeners[one.listener].name.clone()),
            _ => None,
        };
        let at_door = Flags::AT_DOOR.with(Flags::AS_OPERATOR);
        let outside = match spawner.is_identity {
            true => opening.part.message.flags().only(at_door).with(Flags::FROM_IDENTITY),
            false => Flags::NONE,
        };
        // A child of a paused thread begins paused.
        let held = if self.state == State::Paused { Flags::PAUSES } else { Flags::NONE };
        let flags = opening.part.flags.with(outside).with(held);
        let sending = self.sending(&opening.part, opening.first.clone(), to.clone(), world);
        let sending = Sending { from: &spawner.name, flags, receivers, root: 0, chain, ..sending };
        self.append(sending, world, out);
        let asked = Some(opening.part.message.id().clone());
        self.spawner = Some(Spawner { asked, to, ..spawner.clone() });
        self.start_all_of(receivers, world, out);
    }

    /// Hands a child's result to the opener of the child. If the result also answers this thread's
    /// first message, as `is_answered_by` decides, this thread ends with the result instead.
    fn result(&mut self, child: &Thread, ended: ThreadEnd, world: &World<'_>, out: &mut Step) {
        self.children.remove(&child.id);
        let root = child.root_above;
        let (status, element) = (ended.status, ended.element.clone());
        let result = ThreadResult {
            thread: child.id.to_string(),
            status: ended.status,
            payload: ended.element,
        };
        if let (Some(checked), Some(spawner)) = (word(&result), &child.spawner) {
            let reply_to = Some(child.entry(1));
            let sending =
                Sending { reply_to, ..to_spawner(spawner, checked, ended.entry, root, world) };
            match self.is_answered_by(spawner) {
                true => self.finish_with(sending, status, element, world, out),
                false => self.hand(spawner, sending, world, out),
            }
        }
        self.let_go(root, world, out);
    }

    /// Returns whether this thread ends with the result of a child. The handling of this thread's
    /// first message must have opened the child for the opener of this thread.
    fn is_answered_by(&self, child: &Spawner) -> bool {
        let own = self.spawner.as_ref().filter(|_| self.state.is_live());
        own.is_some_and(|own| {
            child.asked.as_ref() == Some(&self.entry(1))
                && (&child.name, child.is_identity) == (&own.name, own.is_identity)
                && own.to.as_ref() != Some(&child.name)
        })
    }

    /// Ends the thread with a child's result.
    fn finish_with(
        &mut self,
        sending: Sending<'_>,
        status: ThreadStatus,
        element: Option<Element>,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let state = if status == ThreadStatus::Failed { State::Failed } else { State::Closed };
        let (flags, reply_to) = (state.flag(), Some(self.entry(1)));
        let entry = self.append(Sending { flags, reply_to, ..sending }, world, out).id().clone();
        self.state = state;
        let thread = self.id.clone();
        out.requests.push_back(TreeRequest::Ended(ThreadEnd { thread, entry, status, element }));
    }

    /// Sends an entry to the opener of a child: an identity or a listener.
    fn hand(&mut self, to: &Spawner, sending: Sending<'_>, world: &World<'_>, out: &mut Step) {
        if to.is_identity {
            let root = sending.root;
            self.tell(&to.name, root, sending, world, out);
            return;
        }
        let found = world.routes.find(&to.name);
        let receiver = found.and_then(|at| world.routes.reply(at, &ThreadResult::NAME));
        let receivers: Vec<Receiver> = receiver.into_iter().collect();
        self.append(Sending { receivers: &receivers, ..sending }, world, out);
        self.start_all_of(&receivers, world, out);
    }

    /// Ends the thread with an answer to its first message.
    pub(crate) fn finish(
        &mut self,
        part: &Part,
        from: &Arc<str>,
        checked: Checked,
        status: ThreadStatus,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let state = match status {
            ThreadStatus::Failed => State::Failed,
            ThreadStatus::Cancelled => State::Cancelled,
            ThreadStatus::Completed | ThreadStatus::Empty => State::Closed,
        };
        let element = Some(checked.element().clone());
        let to = self.spawner.as_ref().map(|it| it.name.clone());
        let sending = self.sending(part, checked, to, world);
        let reply_to = Some(self.entry(1));
        let flags = state.flag().with(sending.flags);
        let sending = Sending { from, reply_to, flags, ..sending };
        let entry = self.append(sending, world, out).id().clone();
        self.state = state;
        out.requests.push_back(TreeRequest::Ended(ThreadEnd {
            thread: self.id.clone(),
            entry,
            status,
            element,
        }));
    }

    /// Records a listener's note to the opener of its thread.
    pub(crate) fn note_above(
        &mut self,
        part: &Part,
        checked: Checked,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let element = checked.element().clone();
        let to = self.spawner.as_ref().map(|it| it.name.clone());
        let entry = self.append(self.sending(part, checked, to, world), world, out).id().clone();
        let thread = self.id.clone();
        out.requests.push_back(TreeRequest::Note(OpenerNote { thread, entry, element }));
    }

    fn end_empty(&mut self, world: &World<'_>, out: &mut Step) {
        let status = ThreadStatus::Empty;
        let result = ThreadResult { thread: self.id.to_string(), status, payload: None };
        let entry = self.note(&result, State::Closed, None, world, out);
        let (thread, element) = (self.id.clone(), None);
        out.requests.push_back(TreeRequest::Ended(ThreadEnd { thread, entry, status, element }));
    }

    /// Returns whether the thread is a child that has nothing left to do.
    fn is_done(&self) -> bool {
        self.record.parent.is_some()
            && self.state == State::Open
            && self.unconsumed == 0
            && self.held.is_empty()
            && self.later.values().all(|it| it.entry.flags().contains(Flags::WATCHES))
            && self.children.is_empty()
    }

    /// Returns whether the thread keeps its present state. A thread that already has the state
    /// `state` keeps it. A thread that is over budget keeps its state unless it is to be cancelled,
    /// since only a raise lets it continue.
    fn stays(&self, state: State) -> bool {
        self.state == state || self.state == State::OverBudget && state != State::Cancelled
    }

    /// Gives the thread its new state, and records the payload that says why.
    fn set_state(&mut self, steering: &Steering, world: &World<'_>, out: &mut Step) -> EntryId {
        self.state = steering.state;
        let flags = steering.state.flag();
        let sending = self.sending(&steering.part, steering.why.clone(), None, world);
        if steering.part.message.thread() != &self.id {
            let entry = self.append(Sending { flags, ..sending }, world, out);
            self.start_all(world, out);
            return entry.id().clone();
        }
        let to = Some(steering.part.message.sender().clone());
        let reply_to = Some(steering.part.message.id().clone());
        let id = self.entry(self.next_seq);
        let sending = Sending { flags, to, reply_to, ..sending };
        self.answer(&steering.part, &steering.part.message, sending, world, out);
        self.start_all(world, out);
        id
    }

    /// Sets the thread's state, and records the payload of the pump itself that says so.
    pub(crate) fn note<P: Payload>(
        &mut self,
        what: &P,
        state: State,
        cause: Option<EntryId>,
        world: &World<'_>,
        out: &mut Step,
    ) -> EntryId {
        self.state = state;
        self.record(what, state.flag(), cause, world, out)
    }
}

/// Returns a message of the pump to the opener of a thread, because of an entry in that thread.
fn to_spawner<'a>(
    spawner: &Spawner,
    checked: Checked,
    cause: EntryId,
    root: u64,
    world: &World<'a>,
) -> Sending<'a> {
    Sending {
        from: world.core,
        to: Some(spawner.name.clone()),
        checked,
        cause: Some(cause),
        reply_to: None,
        flags: Flags::NONE,
        receivers: &[],
        client_id: None,
        meta: None,
        root,
        chain: spawner.chain,
        until: None,
    }
}
