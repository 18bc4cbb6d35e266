//! Writes a session's answers and the messages of threads as bytes.

use crate::door::egress::{put_number, put_text};
use crate::door::session::{Answer, Session};
use crate::engine::Followed;
use crate::id::{EntryId, ThreadId};
use crate::listener::Entry;
use crate::name::{CORE, CORE_NAME};
use crate::wire::core::{Authenticated, said};
use crate::wire::{Facts, Fault, Outside, Payload, Shown, enclose};
use crate::xml::{Element, escape_attribute, escape_text};

impl Session {
    pub(super) fn write(&mut self, answer: &Answer) {
        match answer {
            Answer::Accepted(id, client_id) => self.accepted(id, client_id.as_deref()),
            Answer::Refused(fault) => self.say(fault),
            Answer::Authenticated => {
                let name = self.who.as_ref().map_or("", |it| &it.name);
                self.speak_of(&Authenticated { identity: name.into() });
            }
            Answer::Following(it) => self.speak_of(it),
            Answer::Unfollowed(it) => self.speak_of(it),
        }
    }

    fn speak_of(&mut self, payload: &impl Payload) {
        match payload.encode() {
            Ok(element) => self.speak(&element),
            Err(fault) => tracing::error!(fault = %fault.code, "an answer can't be written"),
        }
    }

    /// Writes the acceptance of a push. The bytes are those that `enclose` would write, but this
    /// function is faster. The speed matters, since every accepted push gets such a message.
    fn accepted(&mut self, id: &EntryId, client_id: Option<&str>) {
        let (head, framing) = (&self.head, self.framing());
        let thread = id.thread.as_str();
        self.egress.add(framing, |out| {
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(b"<thread>");
            put_text(thread, escape_text, out);
            out.extend_from_slice(b"</thread></meta><accepted xmlns=\"");
            out.extend_from_slice(CORE.as_bytes());
            if let Some(client_id) = client_id {
                out.extend_from_slice(b"\" id=\"");
                put_text(client_id, escape_attribute, out);
            }
            out.extend_from_slice(b"\" seq=\"");
            put_number(id.seq, out);
            out.extend_from_slice(b"\" thread=\"");
            put_text(thread, escape_attribute, out);
            out.extend_from_slice(b"\"></accepted></message>");
        });
    }

    pub(super) fn say(&mut self, fault: &Fault) {
        if let Some(checked) = said(fault) {
            self.speak(checked.element());
        }
    }

    /// Writes a message of the pump that belongs to no thread.
    fn speak(&mut self, element: &Element) {
        let who = self.who.as_ref().map(|it| it.name.clone());
        let (from, to) = (CORE_NAME, who.as_deref());
        let outside = Outside { from, to, thread: None, entry: None, shown: None, meta: None };
        self.send(&outside, element);
    }

    fn send(&mut self, outside: &Outside<'_>, element: &Element) {
        let mut text = String::new();
        enclose(outside, element, &mut text);
        let framing = self.framing();
        self.egress.add(framing, |out| {
            // The reserved room includes the line end, which could otherwise double the buffer of a
            // large message.
            out.reserve(text.len() + 1);
            out.extend_from_slice(text.as_bytes());
        });
    }

    /// Writes an entry or a live payload of a followed thread.
    pub(crate) fn show(&mut self, thread: &ThreadId, followed: &Followed) {
        self.moved = true;
        match followed {
            Followed::Entry(entry) => self.pass(entry, thread, Some(Shown::Followed)),
            Followed::Live(live) => self.send(
                &Outside {
                    from: &live.from,
                    to: None,
                    thread: Some(thread.as_str()),
                    entry: None,
                    shown: Some(Shown::Live { cause: &live.cause }),
                    meta: None,
                },
                &live.payload,
            ),
        }
    }

    /// Writes an entry whose receiver is the client.
    pub(super) fn tell(&mut self, entry: &Entry) {
        self.pass(entry, entry.thread(), None);
    }

    /// Writes an entry as a message of `thread`. A follower of a fork gets shared entries as
    /// messages of the fork.
    fn pass(&mut self, entry: &Entry, thread: &ThreadId, shown: Option<Shown<'_>>) {
        let element = match entry.element() {
            Ok(element) => element,
            Err(fault) => {
                tracing::error!(entry = %entry.id(), fault = %fault.code, "an entry can't be told");
                return;
            }
        };
        let failed = entry.is_failure();
        let facts = Facts { id: entry.id(), cause: entry.cause(), at_us: entry.at_us(), failed };
        let outside = Outside {
            from: entry.from(),
            to: entry.to(),
            thread: Some(thread.as_str()),
            entry: Some(facts),
            shown,
            meta: entry.meta(),
        };
        self.send(&outside, element);
    }
}
