//! Plays scenes without a socket. Bytes go through the splitter and the strict reader straight into
//! the pump, and answers have the form that a door would write.

use std::collections::BTreeSet;
use std::sync::Arc;

use pumphouse::engine::{CONSOLE, Identity, PushEvent, PushObserver};
use pumphouse::limits::XmlLimits;
use pumphouse::prelude::*;
use pumphouse::wire::core::{Accepted, Huh, SystemThreadError};
use pumphouse::wire::{Code, Envelope, Facts, Outside, enclose};
use pumphouse::xml::{self, Profile, Splitter};
use tokio::sync::{mpsc, watch};

use super::play::{Line, Stage};

pub(super) struct Memory(pub(super) Pump);

/// What a speaker hears: a message, or that a push of its is over.
enum Heard {
    Message(Element),
    Over(u64),
}

pub(super) struct MemoryLine {
    pump: Pump,
    who: Identity,
    splitter: Splitter,
    heard: mpsc::Receiver<Heard>,
    /// How many pushes have an answer.
    answered: watch::Receiver<u64>,
    inlet: Arc<dyn PushObserver>,
    pushes: u64,
    under_way: BTreeSet<u64>,
    is_over: bool,
}

impl Stage for Memory {
    type Line = MemoryLine;

    async fn open(&self, who: &str) -> MemoryLine {
        let name = if who == "stranger" { CONSOLE } else { who };
        let (heard_by, heard) = mpsc::channel(1_024);
        let (answers, answered) = watch::channel(0);
        let ears = Ears { heard: heard_by, answers, name: name.into() };
        MemoryLine {
            pump: self.0.clone(),
            who: Identity { name: name.into(), operator: false },
            splitter: Splitter::new(XmlLimits::DOOR),
            heard,
            answered,
            inlet: Arc::new(ears),
            pushes: 0,
            under_way: BTreeSet::new(),
            is_over: false,
        }
    }
}

impl Line for MemoryLine {
    async fn send(&mut self, bytes: &[u8]) {
        self.splitter.feed(bytes);
        while !self.is_over {
            let frame = match self.splitter.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => return,
                Err(error) => return self.refuse(error.into()),
            };
            let limits = self.pump.limits();
            let element = match xml::read(&frame.bytes, Profile::Wire, &limits.door) {
                Ok(element) => element,
                Err(error) => return self.refuse(error.into()),
            };
            let envelope = Envelope::open(&element, limits);
            self.pushes += 1;
            match envelope {
                Ok(envelope) => {
                    self.under_way.insert(self.pushes);
                    self.pump.push(&self.who, envelope, &self.inlet, self.pushes).await;
                }
                Err(fault) => self.inlet.hear(self.pushes, PushEvent::Refused(fault)),
            }
            // A door answers in the order of the pushes, and so do we.
            let pushes = self.pushes;
            self.answered.wait_for(|it| *it >= pushes).await.unwrap();
        }
    }

    async fn next(&mut self) -> Option<Element> {
        loop {
            let heard = if self.is_over && self.under_way.is_empty() {
                self.heard.try_recv().ok()?
            } else {
                self.heard.recv().await?
            };
            match heard {
                Heard::Message(message) => return Some(message),
                Heard::Over(push) => drop(self.under_way.remove(&push)),
            }
        }
    }

    async fn hang_up(&mut self) {
        if let Err(error) = self.splitter.finish() {
            let mut fault: Fault = error.into();
            fault.code = Code::HalfMessage;
            return self.refuse(fault);
        }
        self.is_over = true;
    }
}

impl MemoryLine {
    /// Refuses what ends the connection.
    fn refuse(&mut self, fault: Fault) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.inlet.hear(0, PushEvent::Refused(fault));
        }
    }
}

/// Writes what is heard as a door would.
struct Ears {
    heard: mpsc::Sender<Heard>,
    answers: watch::Sender<u64>,
    name: Arc<str>,
}

impl Ears {
    fn tell(&self, it: Heard) {
        // Whoever has left hears nothing more.
        let full = matches!(self.heard.try_send(it), Err(mpsc::error::TrySendError::Full(_)));
        assert!(!full, "a scene has fewer messages");
    }

    fn core<P: Payload>(&self, payload: &P, thread: Option<&str>) {
        let outside = Outside {
            from: "core",
            to: Some(&self.name),
            thread,
            entry: None,
            shown: None,
            meta: None,
        };
        self.message(&outside, &payload.encode().unwrap());
    }

    fn message(&self, outside: &Outside<'_>, payload: &Element) {
        let mut text = String::new();
        enclose(outside, payload, &mut text);
        let message = xml::read(&text, Profile::Wire, &XmlLimits::INSIDE).unwrap();
        self.tell(Heard::Message(message));
    }
}

impl PushObserver for Ears {
    fn hear(&self, push: u64, news: PushEvent) {
        match news {
            PushEvent::Accepted { id, client_id } => {
                let thread = id.thread.to_string();
                let id = Accepted { thread, seq: id.seq, id: client_id.map(|it| it.to_string()) };
                self.core(&id, Some(&id.thread));
                self.answers.send_replace(push);
            }
            PushEvent::Refused(fault) => {
                match &fault.unknown_thread {
                    Some(unknown) => self.core(
                        &SystemThreadError {
                            id: fault.client_id().map(str::to_owned),
                            ..SystemThreadError::of(unknown)
                        },
                        None,
                    ),
                    None => self.core(&Huh::from(&fault), None),
                }
                self.tell(Heard::Over(push));
                self.answers.send_replace(push);
            }
            PushEvent::Reply(entry) => {
                let facts = Facts {
                    id: entry.id(),
                    cause: entry.cause(),
                    at_us: entry.at_us(),
                    failed: entry.is_failure(),
                };
                let outside = Outside {
                    from: entry.from(),
                    to: entry.to(),
                    thread: Some(entry.thread().as_str()),
                    entry: Some(facts),
                    shown: None,
                    meta: entry.meta(),
                };
                self.message(&outside, entry.element().unwrap());
            }
            PushEvent::Settled => self.tell(Heard::Over(push)),
            _ => {}
        }
    }
}
