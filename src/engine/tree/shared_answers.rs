//! One answer to several messages. An identity gets one entry for all of its messages, and each
//! connection gets the answer once. A listener gets an entry for each of its messages.

use std::sync::Arc;

use crate::engine::tree::effect::{Effect, Step, World};
use crate::engine::tree::observer::{PushEvent, PushObserver};
use crate::engine::tree::sending::{Part, Sending};
use crate::engine::tree::thread::Thread;
use crate::listener::{Entry, Outcome};
use crate::log::Flags;
use crate::wire::Checked;
use crate::wire::core::ThreadStatus;

/// An identity that has the answer, and the observers that got it.
struct AnsweredIdentity {
    identity: Arc<str>,
    entry: Entry,
    observers: Vec<Arc<dyn PushObserver>>,
}

impl Thread {
    /// Answers messages of this thread. In a child thread, an answer to the first message ends the
    /// thread, unless the answer is partial.
    pub(crate) fn answer_askers(
        &mut self,
        part: &Part,
        checked: Checked,
        asked: &[Entry],
        outcome: Outcome,
        world: &World<'_>,
        out: &mut Step,
    ) {
        let from = &world.routes.listeners[part.listener].name;
        let asked: Vec<&Entry> = asked.iter().filter(|it| self.has(it.id())).collect();
        let is_end = asked.iter().any(|it| self.ends_with(it));
        let mut told: Vec<AnsweredIdentity> = Vec::new();
        for message in &asked {
            if self.ends_with(message) {
                continue;
            }
            let sender = message.sender().clone();
            if let Some(told) = told.iter_mut().find(|told| told.identity == sender) {
                self.tell_too(message, told, out);
                continue;
            }
            let flags = match outcome {
                Outcome::Failed | Outcome::Cancelled => part.flags.with(Flags::ERROR),
                Outcome::Partial | Outcome::Completed => part.flags,
            };
            let sending = self.sending(part, checked.clone(), Some(sender.clone()), world);
            let sending = Sending { from, reply_to: Some(message.id().clone()), flags, ..sending };
            if message.is_from_identity() {
                let observers =
                    self.observer(&sender, Some(message.seq())).map(|(observer, _)| observer);
                let entry = self.tell(&sender, message.seq(), sending, world, out);
                told.push(AnsweredIdentity {
                    identity: sender,
                    entry,
                    observers: observers.into_iter().collect(),
                });
            } else {
                self.answer(part, message, sending, world, out);
            }
        }
        let status = match outcome {
            // After a partial answer a child continues. The answer is recorded in the child, and
            // isn't handed to the parent.
            Outcome::Partial if is_end || asked.is_empty() => {
                let sending = self.sending(part, checked, None, world);
                drop(self.append(sending, world, out));
                return;
            }
            Outcome::Partial => return,
            Outcome::Completed => ThreadStatus::Completed,
            Outcome::Failed => ThreadStatus::Failed,
            Outcome::Cancelled => ThreadStatus::Cancelled,
        };
        if is_end {
            self.finish(part, from, checked, status, world, out);
        } else if asked.is_empty() {
            let sending = self.sending(part, checked, None, world);
            drop(self.append(sending, world, out));
        }
    }

    /// Passes an identity's answer on to the connection that sent another message of the identity,
    /// unless that connection has the answer already.
    fn tell_too(&mut self, asked: &Entry, told: &mut AnsweredIdentity, out: &mut Step) {
        let Some(origin) = self.origins.get_mut(&asked.seq()) else { return };
        origin.answered = true;
        if told.observers.iter().any(|it| Arc::ptr_eq(it, &origin.observer)) {
            return;
        }
        let news = PushEvent::Reply(told.entry.clone());
        out.effects.push(Effect::Tell(origin.observer.clone(), origin.push, news));
        told.observers.push(origin.observer.clone());
    }
}
