//! Tests of sessions. They have no sockets, and time is a number.

use std::sync::Arc;
use std::time::Duration;

use crate::door::client_tokens::Tokens;
use crate::door::session::{DoorShared, Session, Step};
use crate::door::wrong_tokens::Guesses;
use crate::engine::{CONSOLE, Identity, PushEvent, UnreadBytes};
use crate::id::{EntryId, ThreadId};
use crate::limits::Limits;
use crate::name::CORE_NAME;
use crate::wire::core::Accepted;
use crate::wire::{Code, Fault, Outside, Payload, enclose};
use crate::xml::Framing;

const A: &str = "<a xmlns=\"urn:a\"></a>";

fn session(limits: Limits) -> Session {
    session_of(&setting(limits))
}

fn setting(limits: Limits) -> Arc<DoorShared> {
    let unread = Arc::new(UnreadBytes::new(&limits));
    Arc::new(DoorShared {
        limits,
        tokens: Tokens::default(),
        guesses: Guesses::default(),
        share: Arc::default(),
        unread,
    })
}

fn session_of(setting: &Arc<DoorShared>) -> Session {
    let who = Identity { name: CONSOLE.into(), operator: false };
    Session::new(setting.clone(), Some(who), 0)
}

/// The numbers of all pushes that can be taken now.
fn pushes(session: &mut Session) -> Vec<u64> {
    let steps = std::iter::from_fn(|| session.next());
    let number = |it| match it {
        Step::Push(number, _) | Step::Follow(number, _) | Step::Unfollow(number, _) => number,
        Step::Refused(number, fault) => panic!("{number}: {fault}"),
    };
    steps.map(number).collect()
}

fn said(session: &mut Session) -> String {
    let mut text = String::new();
    while !session.pending().is_empty() {
        let bytes = session.pending().to_vec();
        session.wrote(bytes.len());
        text.push_str(&String::from_utf8(bytes).unwrap());
    }
    text
}

fn accepted(seq: u64, client_id: Option<&str>) -> PushEvent {
    let id = EntryId::new(&ThreadId::new("sess-a"), seq);
    PushEvent::Accepted { id, client_id: client_id.map(Into::into) }
}

#[test]
fn an_answer_waits_for_those_before_it() {
    let mut session = session(Limits::default());
    session.feed(A.repeat(3).as_bytes());
    assert_eq!(pushes(&mut session), [0, 1, 2]);
    session.hear(2, accepted(1, None));
    session.hear(1, PushEvent::Refused(Fault::undeliverable()));
    assert_eq!(said(&mut session), "");
    session.hear(0, accepted(2, None));
    let text = said(&mut session);
    let places = ["seq=\"2\"", "P0011", "seq=\"1\""].map(|it| text.find(it).unwrap());
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn an_acceptance_is_written_as_its_type_would_be() {
    for client_id in [None, Some("x"), Some("<a> & \"b\"\t")] {
        let mut session = session(Limits::default());
        session.feed(A.as_bytes());
        assert_eq!(pushes(&mut session), [0]);
        session.hear(0, accepted(12, client_id));
        let id = client_id.map(str::to_owned);
        let accepted = Accepted { thread: "sess-a".into(), seq: 12, id }.encode().unwrap();
        let (to, thread) = (Some("console"), Some("sess-a"));
        let outside = Outside { from: CORE_NAME, to, thread, entry: None, shown: None, meta: None };
        let mut expected = String::new();
        enclose(&outside, &accepted, &mut expected);
        assert_eq!(said(&mut session), expected + "\n");
    }
}

#[test]
fn a_full_window_stops_the_reading_until_there_is_an_answer() {
    for limits in [
        Limits { pushes_in_flight_max: 2, ..Limits::default() },
        Limits { push_bytes_in_flight_max: A.len() + 1, ..Limits::default() },
    ] {
        let mut session = session(limits);
        session.feed(A.repeat(3).as_bytes());
        assert_eq!(pushes(&mut session), [0, 1]);
        assert!(!session.wants_bytes());
        session.hear(0, accepted(1, None));
        assert_eq!(pushes(&mut session), [2]);
        session.hear(1, accepted(2, None));
        assert!(pushes(&mut session).is_empty());
        assert!(session.wants_bytes());
    }
}

#[test]
fn nothing_is_read_while_something_waits_to_be_taken() {
    let setting = setting(Limits { door_pushes_in_flight_max: 6, ..Limits::default() });
    let (mut one, mut other) = (session_of(&setting), session_of(&setting));
    one.feed(A.repeat(3).as_bytes());
    other.feed(A.repeat(3).as_bytes());
    assert_eq!(pushes(&mut one), [0, 1, 2]);
    assert_eq!(pushes(&mut other), [0, 1]);
    // There is room again for the messages that have arrived.
    one.hear(0, accepted(1, None));
    one.hear(1, accepted(2, None));
    assert!(!other.wants_bytes());
    assert_eq!(pushes(&mut other), [2]);
    one.hear(2, accepted(3, None));
    other.hear(0, accepted(4, None));
    assert!(!other.wants_bytes());
    assert!(pushes(&mut other).is_empty());
    assert!(other.wants_bytes());
}

#[test]
fn what_the_door_doesnt_read_is_not_late() {
    let limits = Limits { pushes_in_flight_max: 1, ..Limits::default() };
    let frame = u64::try_from(limits.frame_time_max.as_micros()).unwrap();
    let mut session = session(limits);
    session.feed(A.as_bytes());
    session.feed(b"<half");
    assert_eq!(pushes(&mut session), [0]);
    assert_eq!(session.tick(frame * 9), None);
    session.hear(0, accepted(1, None));
    said(&mut session);
    assert!(pushes(&mut session).is_empty());
    assert_eq!(session.tick(frame * 9), None);
    assert_eq!(session.tick(frame * 10 - 1), None);
    assert_eq!(session.tick(frame * 10).map(|it| it.code), Some(Code::HalfMessage));
}

#[test]
fn a_connection_is_over_when_all_it_caused_is_done() {
    let mut session = session(Limits::default());
    session.feed(A.repeat(2).as_bytes());
    session.feed_end();
    assert_eq!(pushes(&mut session), [0, 1]);
    session.hear(1, PushEvent::Refused(Fault::undeliverable()));
    session.hear(0, accepted(1, None));
    said(&mut session);
    assert!(!session.is_over());
    session.hear(0, PushEvent::Settled);
    assert!(session.is_over());
}

#[test]
fn a_slow_reader_is_cut_after_its_time() {
    let limits = Limits { write_time_max: Duration::from_micros(10), ..Limits::default() };
    let mut session = session(limits);
    session.feed(A.repeat(2).as_bytes());
    pushes(&mut session);
    session.hear(0, accepted(1, None));
    assert_eq!(session.tick(5), None);
    let first = session.pending().len();
    session.wrote(1);
    assert_eq!(session.tick(16), None);
    assert_eq!(session.deadline_us(), Some(26));
    session.hear(1, accepted(2, None));
    assert_eq!(session.tick(26).map(|it| it.code), Some(Code::SlowReader));
    let text = said(&mut session);
    assert!(text[first - 1..].contains("P0024") && !text.contains("seq=\"2\""), "{text}");
    assert!(session.is_over());
}

/// Adds bytes that the client doesn't read.
fn owe(session: &mut Session, bytes: usize) {
    session.egress.add(Framing::Length, |out| out.extend(vec![b'x'; bytes]));
}

#[test]
fn clients_that_read_nothing_are_cut_once_half_of_owed_bytes_max_is_used_up() {
    const MS: u64 = 1_000;
    let setting = setting(Limits { owed_bytes_max: 1_000_000, ..Limits::default() });
    let mut stuck = [session_of(&setting), session_of(&setting), session_of(&setting)];
    let (mut reader, mut little) = (session_of(&setting), session_of(&setting));
    stuck.iter_mut().for_each(|it| owe(it, 130_000));
    let tick = |session: &mut Session, at_ms: u64| session.tick(at_ms * MS).map(|it| it.code);
    assert_eq!(tick(&mut stuck[0], 1), None);
    assert_eq!(tick(&mut stuck[1], 100), None);
    assert_eq!(tick(&mut stuck[2], 200), None);
    owe(&mut reader, 160_000);
    owe(&mut little, 100);
    assert_eq!(tick(&mut reader, 200), None);
    assert_eq!(tick(&mut little, 200), None);
    assert!(setting.unread.is_over_half());
    // The system's buffers take some of the bytes, so the client counts as reading.
    assert_eq!(reader.pending().len(), 160_004);
    reader.wrote(10_000);
    assert_eq!(tick(&mut reader, 230), None);
    setting.unread.cut_slow_readers(240 * MS);
    assert_eq!(stuck.each_mut().map(|it| tick(it, 240)), [None; 3]);
    assert!(!reader.wants_bytes() && !little.wants_bytes(), "it reads first");
    said(&mut little);
    assert!(little.wants_bytes(), "a client with nothing to read goes on");
    setting.unread.cut_slow_readers(260 * MS);
    let cut = stuck.each_mut().map(|it| tick(it, 260));
    assert_eq!(cut, [Some(Code::SlowReader), None, None], "the one that has waited longest");
    assert!(!setting.unread.is_over_half());
    assert_eq!((tick(&mut reader, 270), tick(&mut little, 270)), (None, None));
}

#[test]
fn beyond_nine_sixteenths_the_slow_reader_with_most_bytes_is_cut_at_once() {
    let setting = setting(Limits { owed_bytes_max: 100_000, ..Limits::default() });
    let (mut most, mut less) = (session_of(&setting), session_of(&setting));
    owe(&mut most, 55_000);
    assert_eq!(most.tick(1_000).map(|it| it.code), None);
    owe(&mut less, 50_000);
    assert_eq!(less.tick(2_000).map(|it| it.code), None);
    let fault = most.tick(3_000).unwrap();
    assert_eq!(fault.code, Code::SlowReader);
    assert!(fault.message.contains("owed_bytes_max is 100000"), "{fault}");
    assert_eq!(less.tick(3_000).map(|it| it.code), None);
    assert!(said(&mut most).contains("P0024"), "it hears why");
}

#[test]
fn a_large_message_arrives_only_with_a_place() {
    let unread = Limits { owed_bytes_max: 32 << 20, ..Limits::default() };
    let setting = setting(unread);
    let (mut one, mut other) = (session_of(&setting), session_of(&setting));
    let waker = futures_util::task::noop_waker();
    let context = &mut std::task::Context::from_waker(&waker);
    let text = format!("<a xmlns=\"urn:a\">{}</a>", "x".repeat(100_000));
    for session in [&mut one, &mut other] {
        session.feed(&text.as_bytes()[..70_000]);
        assert!(pushes(session).is_empty());
        assert!(!session.wants_bytes());
    }
    assert!(one.poll_place(context) && one.wants_bytes());
    assert!(!other.poll_place(context) && !other.wants_bytes());
    one.feed(&text.as_bytes()[70_000..]);
    assert_eq!(pushes(&mut one), [0]);
    assert_eq!(one.tick(1).map(|it| it.code), None);
    assert!(!other.poll_place(context), "until it is answered");
    one.hear(0, accepted(1, None));
    assert!(other.poll_place(context) && other.wants_bytes());
    // A few bytes at a time are no progress, and `one` waits for the permit.
    one.feed(&text.as_bytes()[..70_000]);
    assert!(pushes(&mut one).is_empty());
    assert_eq!(other.tick(900_000).map(|it| it.code), None);
    other.feed(b"x");
    assert!(pushes(&mut other).is_empty());
    let fault = other.tick(1_100_000).unwrap();
    assert_eq!(fault.code, Code::HalfMessage);
    assert!(fault.message.contains("64 KiB a second"), "{fault}");
    assert_eq!(other.tick(1_100_001).map(|it| it.code), None);
    assert!(one.poll_place(context));
}

#[test]
fn what_was_written_of_a_buffer_counts_until_its_rest_was_written() {
    let setting = setting(Limits { owed_bytes_max: 1_000_000, ..Limits::default() });
    let mut session = session_of(&setting);
    owe(&mut session, 600_000);
    assert_eq!(session.pending().len(), 600_004);
    session.wrote(590_000);
    assert_eq!(session.tick(1).map(|it| it.code), None);
    assert!(setting.unread.is_over_half(), "the whole buffer is still in memory");
    session.wrote(10_004);
    assert!(session.pending().is_empty());
    assert_eq!(session.tick(2).map(|it| it.code), None);
    assert!(!setting.unread.is_over_half());
}
