//! A connection without its socket: bytes in, pushes out; news in, bytes out. Time is given.

mod deadlines;
mod proof;
mod room;
mod asks;
mod say;
mod silence;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use crate::door::Tokens;
use crate::door::egress::Egress;
use crate::door::guesses::{Guesses, machine};
use crate::door::share::{Part, Share};
use crate::door::tokens::Proof;
use crate::engine::{Identity, PushEvent, UnreadBytes};
use crate::id::EntryId;
use crate::limits::Limits;
use crate::listener::Entry;
use crate::wire::meta::{Follow, Following, Unfollow, Unfollowed};
use crate::wire::{Code, Envelope, Fault};
use crate::xml::{self, Frame, Framing, Profile, Splitter};
use asks::Asks;
use proof::is_authenticate;
use room::Room;
use tokio::sync::OwnedSemaphorePermit;

/// The name that the pump speaks under.
const CORE_NAME: &str = "core";

/// What all sessions of a door share.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) limits: Limits,
    pub(super) tokens: Tokens,
    pub(super) guesses: Guesses,
    pub(super) share: Arc<Share>,
    pub(super) unread: Arc<UnreadBytes>,
}

/// What a session wants of the pump.
#[derive(Debug)]
pub(super) enum Step {
    /// Push this under this number.
    Push(u64, Envelope),
    /// Follow a thread.
    Follow(u64, Follow),
    /// End that.
    Unfollow(u64, Unfollow),
    /// Count a refusal, and let the session hear it under this number.
    Refused(u64, Fault),
}

/// One connection.
pub(super) struct Session {
    setting: Arc<Setting>,
    who: Option<Identity>,
    /// The token that says so, where one does.
    proof: Option<Proof>,
    /// What every answer begins with, up to the thread.
    head: String,
    splitter: Splitter,
    input: Input,
    /// Whether all that has arrived was taken, but for the beginning of a message.
    hungry: bool,
    /// Whether the client has said all it will say.
    is_half_closed: bool,
    /// Whether it was silent, and ends for a newcomer.
    made_room: bool,
    pub(super) egress: Egress,
    /// Pushes without an answer, and those after them.
    window: VecDeque<Slot>,
    /// How many that are, and how long, of all that the door has.
    part: Part,
    /// What it shares with all connections of the pump.
    room: Room,
    /// The number of the first of them.
    first: u64,
    /// Bytes of what waits for earlier answers.
    held_bytes: usize,
    /// When something last happened, while there is memory to give back.
    busy_us: Option<u64>,
    /// Whether anything happened since.
    moved: bool,
    /// When something last happened.
    moved_us: u64,
    /// Pushes that were accepted and whose consequences aren't over.
    unsettled: u64,
    opened_us: u64,
    /// Whether pushes wait, so that none behind them may be taken.
    held: bool,
    /// When the clock was last looked at.
    now_us: u64,
    /// The machine at the other end, where that is known.
    peer: Option<IpAddr>,
    /// When the message on its way began.
    begun_us: Option<u64>,
    /// Since when the client has read nothing though something waits.
    stuck_us: Option<u64>,
    /// When the connection ends, whatever waits.
    ends_us: Option<u64>,
}

/// Whether more is taken from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Open,
    /// No more bytes come; messages may still wait.
    Ended,
    /// Nothing more is taken.
    Done,
}

/// A push that waits for its answer, or for the answer of one before it.
#[derive(Default)]
struct Slot {
    /// How long the push was.
    bytes: usize,
    answer: Option<Answer>,
    /// What came of it and may not stand before its answer.
    replies: Vec<Entry>,
    /// The place of a large message.
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
    /// A session of whom the door knows already, or of who has yet to say.
    pub(super) fn new(setting: Arc<Setting>, who: Option<Identity>, now_us: u64) -> Session {
        let mut session = Session {
            who: None,
            proof: None,
            head: String::new(),
            splitter: Splitter::new(setting.limits.door),
            input: Input::Open,
            hungry: true,
            is_half_closed: false,
            made_room: false,
            egress: Egress::default(),
            window: VecDeque::new(),
            part: Part::of(&setting.share),
            room: Room::of(&setting.unread),
            first: 0,
            held_bytes: 0,
            busy_us: None,
            moved: false,
            moved_us: now_us,
            unsettled: 0,
            opened_us: now_us,
            held: false,
            now_us,
            peer: None,
            begun_us: None,
            stuck_us: None,
            ends_us: None,
            setting,
        };
        session.is(who);
        session
    }

    /// A session that says one thing only: why there can be none.
    pub(super) fn refused(setting: Arc<Setting>, fault: &Fault, now_us: u64) -> Session {
        let mut session = Session::new(setting, None, now_us);
        session.input = Input::Done;
        session.say(fault);
        session.end_by(now_us);
        session
    }

    /// The same, of whoever comes from there.
    pub(super) fn from(self, peer: Option<IpAddr>) -> Session {
        Session { peer, ..self }
    }

    /// Who is sending, once that is known.
    pub(super) fn who(&self) -> Option<&Identity> {
        self.who.as_ref()
    }

    /// Who is sending, or the machine that it comes from, for those who count refusals.
    pub(super) fn sender(&self) -> Cow<'_, str> {
        match (&self.who, self.peer) {
            (Some(who), _) => Cow::Borrowed(&*who.name),
            (None, Some(peer)) => Cow::Owned(machine(peer).to_string()),
            (None, None) => Cow::Borrowed("unknown"),
        }
    }

    /// Takes what has arrived.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.moved = true;
        self.hungry = false;
        self.room.fed(bytes.len(), self.now_us);
        self.splitter.feed(bytes);
    }

    /// Takes that nothing more will arrive.
    pub(super) fn feed_end(&mut self) {
        self.is_half_closed = true;
        if self.input == Input::Open {
            self.input = Input::Ended;
        }
    }

    /// What the pump is to do next; nothing before more has arrived or gone out.
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
                    let fault = Fault { code: Code::HalfMessage, ..error.into() };
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
        let door = &self.setting.limits.door;
        let element = match xml::read(frame.bytes, Profile::Wire, door) {
            Ok(element) => element,
            Err(error) => return Some(self.close(error.into())),
        };
        let envelope = match Envelope::open(&element, &self.setting.limits) {
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
        Some(match envelope.and_then(Asks::of) {
            Ok(Asks::Push(envelope)) => Step::Push(self.number(bytes), *envelope),
            Ok(Asks::Follow(it)) => Step::Follow(self.number(bytes), it),
            Ok(Asks::Unfollow(it)) => Step::Unfollow(self.number(bytes), it),
            Err(fault) => self.refuse(fault),
        })
    }

    /// A number for what waits for an answer from now on.
    fn number(&mut self, bytes: usize) -> u64 {
        let _place = self.room.take();
        self.window.push_back(Slot { bytes, _place, ..Slot::default() });
        self.part.add(bytes);
        self.first + self.window.len() as u64 - 1
    }

    fn refuse(&mut self, fault: Fault) -> Step {
        Step::Refused(self.number(0), fault)
    }

    /// Refuses, and takes nothing more. What is due before is still told, in its order.
    fn close(&mut self, fault: Fault) -> Step {
        self.input = Input::Done;
        self.refuse(fault)
    }

    /// Takes no more from the client until the pushes that wait may go on.
    pub(super) fn hold(&mut self) {
        self.held = true;
    }

    pub(super) fn go_on(&mut self) {
        self.held = false;
    }

    pub(super) fn is_held(&self) -> bool {
        self.held
    }

    /// Takes what became of a push.
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
            // The door refuses whatever comes next, and says why.
            PushEvent::Lost(_) => {}
            PushEvent::Settled => self.unsettled = self.unsettled.saturating_sub(1),
        }
    }

    /// Says that a thread is followed from here on.
    pub(super) fn follow(&mut self, number: u64, following: Following) {
        self.answer(number, Answer::Following(following));
    }

    /// Says that a thread is followed no more.
    pub(super) fn unfollow(&mut self, number: u64, unfollow: Unfollow) {
        self.answer(number, Answer::Unfollowed(Unfollowed { thread: unfollow.thread }));
    }

    /// Says why a thread isn't followed; where its client thinks it is, that ends the connection.
    pub(super) fn stop_following(&mut self, number: u64, fault: Fault) {
        if self.is_answered(number) {
            self.end(fault);
        } else {
            self.answer(number, Answer::Refused(Box::new(fault)));
        }
    }

    /// Whether the answer to a push was told.
    pub(super) fn is_answered(&self, number: u64) -> bool {
        number < self.first
    }

    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.window.get_mut(at)
    }

    /// Notes an answer, and says all that nothing before it waits for any more.
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

    /// Whether what is followed may be told now.
    pub(super) fn has_outbound_room(&self) -> bool {
        let waiting = self.egress.len() + self.held_bytes;
        waiting == 0
            || waiting < self.setting.limits.outbound_bytes_high && !self.room.unread.is_over_half()
    }

    /// Whether one more push may be taken.
    fn has_room(&self) -> bool {
        self.part.has_room(&self.setting.limits) && self.has_outbound_room()
    }

    /// Whether a single push is without an answer.
    pub(super) fn has_one(&self) -> bool {
        self.part.has_one()
    }

    /// How many pushes it takes before its neighbours have their turn.
    pub(super) fn turn(&self) -> usize {
        self.part.turn()
    }

    /// Whether the client should be read. What arrived before must be taken first: room comes and
    /// goes with what others do, and whoever read at each glimpse of it would pile up all there is.
    pub(super) fn wants_bytes(&self) -> bool {
        self.could_read() && !self.lacks_place()
    }

    fn could_read(&self) -> bool {
        self.input == Input::Open && self.hungry && !self.held && self.has_room()
    }

    /// What is to be written now.
    pub(super) fn pending(&mut self) -> &[u8] {
        self.egress.pending()
    }

    /// That so many bytes of it were written.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.egress.wrote(bytes);
        self.stuck_us = None;
    }

    /// Whether nothing more can come of what was pushed.
    pub(super) fn is_settled(&self) -> bool {
        self.input == Input::Done && self.window.is_empty() && self.unsettled == 0
    }

    /// Whether all that was due was told.
    pub(super) fn is_over(&self) -> bool {
        self.is_settled() && self.egress.is_empty()
    }

    /// Whether the client may still send what must be read and dropped.
    pub(super) fn expects_bytes(&self) -> bool {
        !self.is_half_closed && !self.made_room
    }

    /// The pump has nothing more to tell: what is written already may still go out.
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
