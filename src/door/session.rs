//! A session: a connection's state without its socket. Bytes from the client become pushes, and the
//! pump's events about pushes become bytes for the client. A session has no clock: its caller says
//! what time it is.

mod deadlines;
mod authentication;
mod shared_limits;
mod client_request;
mod answer;
mod eviction;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use crate::door::client_tokens::Proof;
use crate::door::client_tokens::Tokens;
use crate::door::egress::Egress;
use crate::door::push_shares::{Part, Share};
use crate::door::wrong_tokens::{Guesses, machine};
use crate::engine::{Identity, PushEvent, UnreadBytes};
use crate::id::EntryId;
use crate::limits::Limits;
use crate::listener::Entry;
use crate::wire::meta::{Follow, Following, Unfollow, Unfollowed};
use crate::wire::{Code, Envelope, Fault};
use crate::xml::{self, Frame, Framing, Profile, Splitter};
use authentication::is_authenticate;
use client_request::ClientRequest;
use shared_limits::Room;
use tokio::sync::OwnedSemaphorePermit;

/// The settings and counts that all sessions of a door share.
#[derive(Debug)]
pub(super) struct DoorShared {
    pub(super) limits: Limits,
    pub(super) tokens: Tokens,
    pub(super) guesses: Guesses,
    pub(super) share: Arc<Share>,
    pub(super) unread: Arc<UnreadBytes>,
}

/// An instruction from a session to its connection.
#[derive(Debug)]
pub(super) enum Step {
    /// Push this message. The number identifies the push within the session.
    Push(u64, Envelope),
    /// Follow a thread, as the request with this number.
    Follow(u64, Follow),
    /// Stop following a thread, as the request with this number.
    Unfollow(u64, Unfollow),
    /// Count a refusal. Then pass it to the session, as the answer to the request with this number.
    Refused(u64, Fault),
}

/// The state of one connection.
pub(super) struct Session {
    shared: Arc<DoorShared>,
    who: Option<Identity>,
    /// The token that proved the identity, if one did.
    proof: Option<Proof>,
    /// The text with which every `<accepted>` message begins, up to `<thread>`.
    head: String,
    splitter: Splitter,
    input: Input,
    /// Whether every complete message that has arrived was taken.
    hungry: bool,
    /// Whether the client has closed its side of the connection.
    is_half_closed: bool,
    /// Whether the session ends to make room for a new connection.
    made_room: bool,
    pub(super) egress: Egress,
    /// The first request without an answer, and all requests after it.
    window: VecDeque<Slot>,
    /// The number and the bytes of the requests in the window. The door's [`Share`] counts them,
    /// too.
    part: Part,
    /// The session's unread bytes and its permit for a large message.
    room: Room,
    /// The number of the first request in the window.
    first: u64,
    /// The number of bytes of all `replies` in the window.
    held_bytes: usize,
    /// When the session was last active, if it has memory that it could free.
    busy_us: Option<u64>,
    /// Whether the session was active since the deadlines were last checked. It is active when it
    /// takes bytes, an event of a push, or an entry of a followed thread.
    moved: bool,
    /// When the session was last active.
    moved_us: u64,
    /// The number of accepted pushes that aren't settled.
    unsettled: u64,
    opened_us: u64,
    /// Whether nothing is read from the client, since earlier pushes wait for the log or for other
    /// pushes.
    input_is_paused: bool,
    /// When the deadlines were last checked.
    now_us: u64,
    /// The client's machine, if it is known.
    peer: Option<IpAddr>,
    /// When the first bytes of the unfinished message came.
    begun_us: Option<u64>,
    /// Since when the client has read nothing although bytes wait for it.
    stuck_us: Option<u64>,
    /// When the connection ends, even if bytes still wait.
    ends_us: Option<u64>,
}

/// Whether the session takes more messages from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Open,
    /// No more bytes come, but messages that have arrived may still wait.
    Ended,
    /// No further message is taken.
    Done,
}

/// A request that waits for its own answer or for the answer to an earlier request. Most are
/// pushes.
#[derive(Default)]
struct Slot {
    /// The length of the push.
    bytes: usize,
    answer: Option<Answer>,
    /// Messages that the push caused. They may not be sent before the answer to the push.
    replies: Vec<Entry>,
    /// The permit that a large message needed to arrive.
    _place: Option<OwnedSemaphorePermit>,
}

enum Answer {
    Accepted(EntryId, Option<Arc<str>>),
    Authenticated,
    Following(Following),
    Unfollowed(Unfollowed),
    Refused(Box<Fault>),
}

impl Session {
    /// A session of a client with the identity `who`. If `who` is `None`, the client must
    /// authenticate first.
    pub(super) fn new(shared: Arc<DoorShared>, who: Option<Identity>, now_us: u64) -> Session {
        let mut session = Session {
            who: None,
            proof: None,
            head: String::new(),
            splitter: Splitter::new(shared.limits.door),
            input: Input::Open,
            hungry: true,
            is_half_closed: false,
            made_room: false,
            egress: Egress::default(),
            window: VecDeque::new(),
            part: Part::of(&shared.share),
            room: Room::of(&shared.unread),
            first: 0,
            held_bytes: 0,
            busy_us: None,
            moved: false,
            moved_us: now_us,
            unsettled: 0,
            opened_us: now_us,
            input_is_paused: false,
            now_us,
            peer: None,
            begun_us: None,
            stuck_us: None,
            ends_us: None,
            shared,
        };
        session.set_identity(who);
        session
    }

    /// A session that only tells the client why the connection is refused.
    pub(super) fn refused(shared: Arc<DoorShared>, fault: &Fault, now_us: u64) -> Session {
        let mut session = Session::new(shared, None, now_us);
        session.input = Input::Done;
        session.say(fault);
        session.end_by(now_us);
        session
    }

    /// Sets the machine that the client comes from.
    pub(super) fn from(self, peer: Option<IpAddr>) -> Session {
        Session { peer, ..self }
    }

    /// The client's identity, once it is known.
    pub(super) fn who(&self) -> Option<&Identity> {
        self.who.as_ref()
    }

    /// The client's name in the counts of refusals: its identity, or else its machine.
    pub(super) fn sender(&self) -> Cow<'_, str> {
        match (&self.who, self.peer) {
            (Some(who), _) => Cow::Borrowed(&*who.name),
            (None, Some(peer)) => Cow::Owned(machine(peer).to_string()),
            (None, None) => Cow::Borrowed("unknown"),
        }
    }

    /// Takes bytes that have arrived.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.moved = true;
        self.hungry = false;
        self.room.fed(bytes.len(), self.now_us);
        self.splitter.feed(bytes);
    }

    /// Notes that no more bytes will arrive.
    pub(super) fn feed_end(&mut self) {
        self.is_half_closed = true;
        if self.input == Input::Open {
            self.input = Input::Ended;
        }
    }

    /// Returns the next step. Returns `None` while the session waits for bytes from the client, for
    /// bytes to be sent, or for answers to pushes. Also returns `None` once no further message is
    /// taken.
    pub(super) fn next(&mut self) -> Option<Step> {
        while self.input != Input::Done && self.has_room() {
            let frame = match self.splitter.next() {
                Ok(Some(frame)) => frame,
                Ok(None) if self.input == Input::Open => {
                    self.hungry = true;
                    return None;
                }
                Ok(None) => {
                    self.input = Input::Done;
                    let error = self.splitter.finish().err()?;
                    let mut fault: Fault = error.into();
                    fault.code = Code::HalfMessage;
                    return Some(self.refuse(fault));
                }
                Err(error) => return Some(self.close(error.into())),
            };
            self.begun_us = None;
            if let Some(step) = self.take(frame) {
                return Some(step);
            }
        }
        None
    }

    fn take(&mut self, frame: Frame) -> Option<Step> {
        let bytes = frame.bytes.len();
        let door = &self.shared.limits.door;
        let element = match xml::read(frame.bytes, Profile::Wire, door) {
            Ok(element) => element,
            Err(error) => return Some(self.close(error.into())),
        };
        let envelope = match Envelope::open(&element, &self.shared.limits) {
            Ok(envelope) if is_authenticate(&envelope.payload) => {
                return self.authenticate(&envelope.payload);
            }
            Ok(envelope) => Ok(envelope),
            Err(fault) => Err(fault),
        };
        if self.who.is_none() {
            let text = "this door asks who you are before anything else";
            return Some(self.close(Fault::new(Code::Authentication, text)));
        }
        Some(match envelope.and_then(ClientRequest::parse) {
            Ok(ClientRequest::Push(envelope)) => Step::Push(self.number(bytes), *envelope),
            Ok(ClientRequest::Follow(it)) => Step::Follow(self.number(bytes), it),
            Ok(ClientRequest::Unfollow(it)) => Step::Unfollow(self.number(bytes), it),
            Err(fault) => self.refuse(fault),
        })
    }

    /// Gives a request a number and a slot in the window, where it waits for its answer.
    fn number(&mut self, bytes: usize) -> u64 {
        let _place = self.room.take();
        self.window.push_back(Slot { bytes, _place, ..Slot::default() });
        self.part.add(bytes);
        self.first + self.window.len() as u64 - 1
    }

    fn refuse(&mut self, fault: Fault) -> Step {
        Step::Refused(self.number(0), fault)
    }

    /// Refuses the connection, and takes no further message. The answers to earlier pushes are
    /// still sent first, in their order.
    fn close(&mut self, fault: Fault) -> Step {
        self.input = Input::Done;
        self.refuse(fault)
    }

    /// Reads no more from the client until [`resume_input`](Session::resume_input) is called.
    pub(super) fn pause_input(&mut self) {
        self.input_is_paused = true;
    }

    /// Reads from the client again.
    pub(super) fn resume_input(&mut self) {
        self.input_is_paused = false;
    }

    /// Takes an event about a push.
    pub(super) fn hear(&mut self, number: u64, news: PushEvent) {
        self.moved = true;
        if self.ends_us.is_some() {
            return;
        }
        match news {
            PushEvent::Accepted { id, client_id } => {
                self.unsettled += 1;
                self.answer(number, Answer::Accepted(id, client_id));
            }
            PushEvent::Refused(fault) => self.answer(number, Answer::Refused(Box::new(fault))),
            PushEvent::Reply(entry) => match self.slot(number) {
                Some(slot) => {
                    let bytes = entry.body().len();
                    slot.replies.push(entry);
                    self.held_bytes += bytes;
                }
                None => self.tell(&entry),
            },
            // The push has its answer already. The client's next push is refused, with the reason.
            PushEvent::Lost(_) => {}
            PushEvent::Settled => self.unsettled = self.unsettled.saturating_sub(1),
        }
    }

    /// Answers a request to follow a thread: the thread is followed from now on.
    pub(super) fn follow(&mut self, number: u64, following: Following) {
        self.answer(number, Answer::Following(following));
    }

    /// Answers a request to stop following a thread: the thread is no longer followed.
    pub(super) fn unfollow(&mut self, number: u64, unfollow: Unfollow) {
        self.answer(number, Answer::Unfollowed(Unfollowed { thread: unfollow.thread }));
    }

    /// Refuses a request to follow a thread. If the request was already answered otherwise, the
    /// fault ends the connection.
    pub(super) fn stop_following(&mut self, number: u64, fault: Fault) {
        if self.is_answered(number) {
            self.end(fault);
        } else {
            self.answer(number, Answer::Refused(Box::new(fault)));
        }
    }

    /// Whether the answer to the request with this number was sent.
    pub(super) fn is_answered(&self, number: u64) -> bool {
        number < self.first
    }

    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.window.get_mut(at)
    }

    /// Notes an answer. Sends all answers that don't have to wait for the answer to an earlier
    /// request.
    fn answer(&mut self, number: u64, answer: Answer) {
        let Some(slot) = self.slot(number) else { return };
        slot.answer = Some(answer);
        while let Some(answer) = self.window.front_mut().and_then(|it| it.answer.take()) {
            self.write(&answer);
            let slot = self.window.pop_front().unwrap_or_default();
            self.first += 1;
            self.part.remove(slot.bytes);
            for entry in slot.replies {
                self.held_bytes = self.held_bytes.saturating_sub(entry.body().len());
                self.tell(&entry);
            }
        }
    }

    fn framing(&self) -> Framing {
        self.splitter.framing().unwrap_or(Framing::Element)
    }

    /// Whether more bytes may be queued for the client. They may if no bytes wait for this client.
    /// They also may if fewer than `outbound_bytes_high` bytes wait for it, and no more than half
    /// of `owed_bytes_max` is used up.
    pub(super) fn has_outbound_room(&self) -> bool {
        let waiting = self.egress.len() + self.held_bytes;
        waiting == 0
            || waiting < self.shared.limits.outbound_bytes_high && !self.room.unread.is_over_half()
    }

    /// Whether one more push may be taken.
    fn has_room(&self) -> bool {
        self.part.has_room(&self.shared.limits) && self.has_outbound_room()
    }

    /// Whether exactly one push is without an answer.
    pub(super) fn has_one(&self) -> bool {
        self.part.has_one()
    }

    /// How many pushes the session takes before other connections have their turn.
    pub(super) fn turn(&self) -> usize {
        self.part.turn()
    }

    /// Whether to read from the client. A session reads only after it has taken all messages that
    /// have arrived. Without this rule, it would read more each time another connection frees some
    /// of the door's room, and would buffer more and more bytes.
    pub(super) fn wants_bytes(&self) -> bool {
        self.could_read() && !self.lacks_place()
    }

    fn could_read(&self) -> bool {
        self.input == Input::Open && self.hungry && !self.input_is_paused && self.has_room()
    }

    /// The bytes to write now.
    pub(super) fn pending(&mut self) -> &[u8] {
        self.egress.pending()
    }

    /// Notes how many bytes were written.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.egress.wrote(bytes);
        self.stuck_us = None;
    }

    /// Whether no further message is taken, and all that the pushes caused is done.
    pub(super) fn is_settled(&self) -> bool {
        self.input == Input::Done && self.window.is_empty() && self.unsettled == 0
    }

    /// Whether the session is settled and all its bytes were sent.
    pub(super) fn is_over(&self) -> bool {
        self.is_settled() && self.egress.is_empty()
    }

    /// Whether the client may still send bytes, which must be read and dropped.
    pub(super) fn expects_bytes(&self) -> bool {
        !self.is_half_closed && !self.made_room
    }

    /// Ends the session when the pump stops. Bytes that wait may still be sent.
    pub(super) fn stop(&mut self, now_us: u64) {
        self.input = Input::Done;
        self.forget();
        self.end_by(now_us);
    }

    fn forget(&mut self) {
        self.first += self.window.len() as u64;
        self.window = VecDeque::new();
        self.part.clear();
        self.held_bytes = 0;
        self.unsettled = 0;
    }
}
