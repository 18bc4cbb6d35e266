//! The rules of every log, as tests. The tests of each log call [`all`].

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use bytes::Bytes;

use crate::id::{EntryId, ThreadId};
use crate::log::entry::{Batch, Draft, Flags, Mark, NewThread, Receipt};
use crate::log::error::Error;
use crate::log::head::Head;
use crate::log::interface::Health;
use crate::log::interface::Log;
use crate::log::verify::Wrong;
use crate::name::Name;

/// The name of the payloads in these tests.
const NOTE: Name = Name::of("urn:test", "note");

/// Checks every rule, each with a log of its own.
pub fn all(make: &dyn Fn() -> Box<dyn Log>) {
    let rules: [fn(&dyn Log); 21] = [
        an_empty_log_is_whole,
        a_receipt_gives_back_the_entries,
        what_was_appended_is_read,
        positions_are_one_order_over_all_threads,
        a_wrong_sequence_is_a_conflict_and_changes_nothing,
        a_thread_is_opened_once_and_before_its_entries,
        links_lead_backwards,
        marks_are_for_entries_that_are_there,
        marks_are_read_with_their_place,
        a_fork_reads_through_its_link,
        a_clients_id_is_used_once_by_one_identity,
        open_entries_are_those_not_consumed_by_all,
        a_start_that_came_to_nothing_does_not_count,
        a_delivery_may_have_to_wait,
        a_tree_has_what_became_of_its_threads,
        a_tree_has_what_was_charged_and_what_was_handed_to_somebody,
        threads_are_listed_in_the_order_of_their_opening,
        the_head_moves_and_old_heads_stay_on_the_chain,
        appends_keep_the_order_of_their_calls,
        what_goes_ahead_keeps_its_order_too,
        a_closed_log_takes_no_more,
    ];
    for rule in rules {
        rule(&*make());
    }
}

/// Blocks this thread until the future is ready.
pub fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// The id of a thread.
pub fn thread(id: &str) -> ThreadId {
    ThreadId::new(id)
}

/// The id of an entry.
pub fn entry(id: &str) -> EntryId {
    id.parse().unwrap()
}

/// A thread without a parent and a fork link.
pub fn session(id: &str) -> NewThread {
    NewThread { id: thread(id), parent: None, fork: None }
}

/// A draft of the entry with this id (`thread/seq`), whose body contains the id.
pub fn note(id: &str) -> Draft {
    let body = Bytes::from(format!("<note xmlns=\"urn:test\">{id}</note>"));
    Draft::new(entry(id), 1_700_000_000_000_000, "alice".into(), NOTE, body)
}

/// A mark that a listener has consumed an entry in its first attempt.
pub fn consumed(id: &str, listener: &str) -> Mark {
    Mark::Consumed { entry: entry(id), listener: listener.into(), attempt: 1 }
}

/// A mark that a listener has started on an entry.
pub fn started(id: &str, listener: &str, attempt: u32) -> Mark {
    Mark::Started { entry: entry(id), listener: listener.into(), attempt, as_of: None }
}

/// A batch that opens threads and appends entries, by their ids.
pub fn batch(threads: &[&str], entries: &[&str]) -> Batch {
    Batch {
        threads: threads.iter().map(|id| session(id)).collect(),
        entries: entries.iter().map(|id| note(id)).collect(),
        marks: Vec::new(),
    }
}

fn drafts(entries: Vec<Draft>) -> Batch {
    Batch { entries, ..Batch::default() }
}

fn keep(log: &dyn Log, batch: Batch) -> Receipt {
    wait(log.append(batch)).unwrap()
}

/// Reads entries of a thread, and returns their ids.
fn ids(log: &dyn Log, id: &str, after: u64, upto: u64, limit: usize) -> Vec<String> {
    let entries = wait(log.read(&thread(id), after, upto, limit)).unwrap();
    entries.iter().map(|it| it.id.to_string()).collect()
}

fn an_empty_log_is_whole(log: &dyn Log) {
    assert_eq!(log.health(), Health::Well);
    let report = wait(log.verify(None)).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!((report.commits, report.entries, report.threads), (0, 0, 0));
    assert_eq!(report.head, wait(log.head()).unwrap());
    assert_eq!(report.head.number, 0);
    assert_eq!(wait(log.tail(0, 10)).unwrap(), []);
    assert_eq!(wait(log.threads(None, 10)).unwrap(), []);
    assert_eq!(wait(log.open_entries()).unwrap(), []);
    assert_eq!(wait(log.thread(&thread("a"))).unwrap(), None);
    let unknown = Error::UnknownThread(thread("a"));
    assert_eq!(wait(log.read(&thread("a"), 0, 9, 9)), Err(unknown));
}

fn a_receipt_gives_back_the_entries(log: &dyn Log) {
    let first = keep(log, batch(&["a", "b"], &["a/1", "b/1", "a/2"]));
    assert_eq!(first.first_position, 1);
    let told: Vec<_> = first.entries.iter().map(|it| (it.position, it.id.to_string())).collect();
    assert_eq!(told, [(1, "a/1".into()), (2, "b/1".into()), (3, "a/2".into())]);
    assert_eq!(wait(log.tail(0, 9)).unwrap(), first.entries);
    assert_eq!(wait(log.head()).unwrap(), first.head);
    let empty = keep(log, Batch::default());
    assert_eq!((empty.first_position, empty.head, empty.entries.len()), (4, first.head, 0));
}

fn what_was_appended_is_read(log: &dyn Log) {
    keep(log, batch(&["a"], &["a/1"]));
    let mut full = note("a/2");
    full.to = Some("bob".into());
    full.cause = Some(entry("a/1"));
    full.reply_to = Some(entry("a/1"));
    full.flags = Flags::FROM_IDENTITY.with(Flags::of_bits(1 << 31));
    full.receivers = 3;
    full.client_id = Some("mine".into());
    full.meta = Some(Bytes::from_static(b"<trace xmlns='urn:x'/>"));
    full.key = Some(7);
    full.name = Name::new("", "plain");
    full.body = Bytes::from(vec![0, 255, b'<']);
    let kept = keep(log, drafts(vec![full.clone()])).entries.remove(0);
    let read = wait(log.read(&thread("a"), 1, 2, 9)).unwrap().remove(0);
    assert_eq!(read, kept);
    assert_eq!((&read.id, read.at_us, &read.from), (&full.id, full.at_us, &full.from));
    assert_eq!((&read.to, &read.name, &read.cause), (&full.to, &full.name, &full.cause));
    assert_eq!((&read.reply_to, read.flags), (&full.reply_to, full.flags));
    assert_eq!((read.receivers, &read.client_id), (full.receivers, &full.client_id));
    assert_eq!((&read.meta, &read.body, read.key), (&full.meta, &full.body, full.key));
    let empty = Draft { body: Bytes::new(), meta: Some(Bytes::new()), ..note("a/3") };
    let kept = keep(log, drafts(vec![empty])).entries.remove(0);
    assert_eq!(wait(log.tail(2, 1)).unwrap(), [kept]);
    let record = wait(log.thread(&thread("a"))).unwrap().unwrap();
    assert_eq!((record.last_seq, record.first.unwrap().position), (3, 1));
    assert!(wait(log.verify(None)).unwrap().is_sound());
}

fn positions_are_one_order_over_all_threads(log: &dyn Log) {
    keep(log, batch(&["a", "b"], &["a/1", "b/1", "b/2"]));
    keep(log, batch(&["c"], &["a/2", "c/1"]));
    let ids = |after, limit| -> Vec<String> {
        wait(log.tail(after, limit)).unwrap().iter().map(|it| it.id.to_string()).collect()
    };
    assert_eq!(ids(0, 9), ["a/1", "b/1", "b/2", "a/2", "c/1"]);
    assert_eq!(ids(1, 2), ["b/1", "b/2"]);
    assert_eq!(ids(5, 9), [""; 0]);
    assert_eq!(ids(u64::MAX, 9), [""; 0]);
    assert_eq!(ids(0, 0), [""; 0]);
}

fn a_wrong_sequence_is_a_conflict_and_changes_nothing(log: &dyn Log) {
    let before = keep(log, batch(&["a"], &["a/1"])).head;
    for (wrong, next) in [("a/1", 2), ("a/3", 2), ("a/18446744073709551615", 2)] {
        let refused = wait(log.append(batch(&["b"], &["b/1", wrong])));
        match refused {
            Err(Error::Conflict { entry, next: it }) if it == next => {
                assert_eq!(entry.to_string(), wrong);
            }
            Err(Error::Invalid(_)) if wrong.len() > 9 => {}
            other => panic!("{wrong}: {other:?}"),
        }
    }
    assert_eq!(wait(log.head()).unwrap(), before);
    assert_eq!(wait(log.thread(&thread("b"))).unwrap(), None);
    keep(log, batch(&["b"], &["b/1", "a/2", "b/2"]));
    assert_eq!(ids(log, "b", 0, 9, 9), ["b/1", "b/2"]);
    assert!(wait(log.verify(Some(before))).unwrap().is_sound());
}

fn a_thread_is_opened_once_and_before_its_entries(log: &dyn Log) {
    let unknown = Error::UnknownThread(thread("a"));
    assert_eq!(wait(log.append(batch(&[], &["a/1"]))).err(), Some(unknown.clone()));
    let child = NewThread { parent: Some(thread("a")), ..session("a.b") };
    let mut both = batch(&[], &["a.b/1"]);
    both.threads.push(child.clone());
    assert_eq!(wait(log.append(both.clone())).err(), Some(unknown));
    both.threads.insert(0, session("a"));
    keep(log, both);
    let exists = Error::ThreadExists(thread("a"));
    assert_eq!(wait(log.append(batch(&["c", "a"], &[]))).err(), Some(exists));
    let exists = Error::ThreadExists(thread("c"));
    assert_eq!(wait(log.append(batch(&["c", "c"], &[]))).err(), Some(exists));
    keep(log, batch(&["c"], &[]));
    let record = wait(log.thread(&thread("a.b"))).unwrap().unwrap();
    assert_eq!((record.parent, record.fork), (child.parent, None));
    let record = wait(log.thread(&thread("c"))).unwrap().unwrap();
    assert_eq!((record.last_seq, record.first), (0, None));
    assert!(wait(log.verify(None)).unwrap().is_sound());
}

fn links_lead_backwards(log: &dyn Log) {
    keep(log, batch(&["a", "b"], &["a/1"]));
    for (cause, reply_to) in [("a/2", "a/1"), ("a/1", "a/3"), ("b/1", "a/1"), ("x/1", "a/1")] {
        let links = (Some(entry(cause)), Some(entry(reply_to)));
        let draft = Draft { cause: links.0, reply_to: links.1, ..note("a/2") };
        let refused = wait(log.append(drafts(vec![draft])));
        let told = matches!(refused, Err(Error::Invalid(_) | Error::UnknownThread(_)));
        assert!(told, "{cause} {reply_to}: {refused:?}");
    }
    let second = Draft { cause: Some(entry("a/1")), ..note("a/2") };
    let third = Draft { cause: Some(entry("a/2")), ..note("b/1") };
    keep(log, drafts(vec![second, third]));
    assert!(wait(log.verify(None)).unwrap().is_sound());
}

fn marks_are_for_entries_that_are_there(log: &dyn Log) {
    keep(log, batch(&["a"], &["a/1"]));
    for wrong in ["a/2", "x/1"] {
        let marks = vec![consumed("a/1", "echo"), consumed(wrong, "echo")];
        let refused = wait(log.append(Batch { marks, ..Batch::default() }));
        assert!(matches!(refused, Err(Error::Invalid(_))), "{wrong}: {refused:?}");
    }
    let mut both = batch(&[], &["a/2"]);
    both.marks = vec![started("a/2", "echo", 1), consumed("a/1", "echo")];
    keep(log, both);
    assert!(wait(log.verify(None)).unwrap().is_sound());
}

fn marks_are_read_with_their_place(log: &dyn Log) {
    keep(log, batch(&["a", "x"], &["a/1", "x/1", "a/2"]));
    let child = NewThread { parent: Some(thread("a")), ..session("a.b") };
    let waits = Mark::Waits { entry: entry("a/2"), listener: "timer".into(), until_us: 1 << 50 };
    let first = vec![started("a/1", "echo", 1), started("x/1", "echo", 1), waits.clone()];
    keep(log, Batch { threads: vec![child], entries: vec![note("a.b/1")], marks: first });
    let second = vec![consumed("a.b/1", "plan"), consumed("a/1", "echo")];
    keep(log, Batch { marks: second.clone(), ..Batch::default() });
    keep(log, batch(&[], &["a/3"]));
    let marks = |root: &str| -> Vec<(u64, Mark)> {
        let noted = wait(log.marks(&thread(root))).unwrap();
        noted.into_iter().map(|it| (it.after, it.mark)).collect()
    };
    let [below, above] = [&second[0], &second[1]].map(Clone::clone);
    let all = vec![(3, started("a/1", "echo", 1)), (3, waits), (4, below.clone()), (4, above)];
    assert_eq!(marks("a"), all, "of a thread and of all below it");
    assert_eq!(marks("a.b"), [(4, below)]);
    assert_eq!(marks("x"), [(3, started("x/1", "echo", 1))]);
    assert_eq!(marks("nobody"), []);
}

fn a_fork_reads_through_its_link(log: &dyn Log) {
    keep(log, batch(&["a"], &["a/1", "a/2", "a/3"]));
    let fork = |id, at| NewThread { fork: Some(entry(at)), ..session(id) };
    let threads = vec![fork("b", "a/2")];
    keep(log, Batch { threads, ..Batch::default() });
    let record = wait(log.thread(&thread("b"))).unwrap().unwrap();
    assert_eq!((record.last_seq, record.first.unwrap().position), (2, 1));
    assert_eq!(ids(log, "b", 0, 9, 9), ["a/1", "a/2"]);
    let conflict = wait(log.append(batch(&[], &["b/1"])));
    assert_eq!(conflict.err(), Some(Error::Conflict { entry: entry("b/1"), next: 3 }));
    keep(log, batch(&[], &["b/3", "b/4"]));
    let threads = vec![fork("c", "b/3"), fork("d", "b/1")];
    keep(log, Batch { threads, entries: vec![note("c/4"), note("d/2")], marks: Vec::new() });
    assert_eq!(ids(log, "c", 0, 9, 9), ["a/1", "a/2", "b/3", "c/4"]);
    assert_eq!(ids(log, "c", 1, 3, 9), ["a/2", "b/3"]);
    assert_eq!(ids(log, "c", 0, u64::MAX, 3), ["a/1", "a/2", "b/3"]);
    assert_eq!(ids(log, "c", 3, 9, 9), ["c/4"]);
    assert_eq!(ids(log, "c", 5, 3, 9), [""; 0]);
    assert_eq!(ids(log, "d", 0, 9, 9), ["a/1", "d/2"]);
    assert_eq!(ids(log, "a", 0, 9, 9), ["a/1", "a/2", "a/3"]);
    for nowhere in ["a/4", "x/1", "c/5"] {
        let threads = vec![fork("e", nowhere)];
        assert!(wait(log.append(Batch { threads, ..Batch::default() })).is_err(), "{nowhere}");
    }
    // An entry that a fork shares belongs to the source thread. Marks must use its id there.
    let marks = vec![consumed("b/2", "echo")];
    assert!(wait(log.append(Batch { marks, ..Batch::default() })).is_err());
    let linked = Draft { cause: Some(entry("c/1")), ..note("c/5") };
    keep(log, drafts(vec![linked]));
    let report = wait(log.verify(None)).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
}

fn a_clients_id_is_used_once_by_one_identity(log: &dyn Log) {
    let with = |id: &str, from: &str, flags| Draft {
        from: from.into(),
        flags,
        client_id: Some("mine".into()),
        ..note(id)
    };
    let outside = Flags::FROM_IDENTITY;
    let mut first = batch(&["a"], &[]);
    first.entries.push(with("a/1", "alice", outside));
    let first = keep(log, first).entries.remove(0);
    let again = wait(log.append(drafts(vec![note("a/2"), with("a/3", "alice", outside)])));
    assert_eq!(again.err(), Some(Error::ClientIdTaken { entry: entry("a/1") }));
    let twice = drafts(vec![with("a/2", "eve", outside), with("a/3", "eve", outside)]);
    assert!(matches!(wait(log.append(twice)), Err(Error::Invalid(_))));
    keep(log, drafts(vec![with("a/2", "bob", outside), with("a/3", "alice", Flags::NONE)]));
    assert_eq!(wait(log.client_id("alice", "mine")).unwrap(), Some(first));
    assert_eq!(wait(log.client_id("bob", "mine")).unwrap().unwrap().id, entry("a/2"));
    assert_eq!(wait(log.client_id("eve", "mine")).unwrap(), None);
    assert_eq!(wait(log.client_id("alice", "other")).unwrap(), None);
}

fn open_entries_are_those_not_consumed_by_all(log: &dyn Log) {
    let to = |id: &str, receivers| Draft { receivers, ..note(id) };
    let mut first = batch(&["a", "b"], &[]);
    first.entries = vec![to("a/1", 2), to("a/2", 0), to("b/1", 1), to("a/3", 1)];
    first.marks = vec![started("a/1", "echo", 1), consumed("a/3", "echo")];
    keep(log, first);
    let open = |log: &dyn Log| -> Vec<String> {
        let show = |it: crate::log::entry::Open| {
            let started = it.started.iter().map(|(by, last)| (by, last.attempt));
            let started = started.collect::<Vec<_>>();
            format!("{} {started:?} {:?}", it.entry.id, it.consumed)
        };
        wait(log.open_entries()).unwrap().into_iter().map(show).collect()
    };
    assert_eq!(open(log), [r#"a/1 [("echo", 1)] []"#, "b/1 [] []"]);
    let marks =
        vec![started("a/1", "echo", 3), started("a/1", "add", 1), started("a/1", "echo", 2)];
    keep(log, Batch { marks, ..Batch::default() });
    let marks = vec![consumed("a/1", "echo"), consumed("a/1", "echo"), consumed("b/1", "echo")];
    keep(log, Batch { marks, ..Batch::default() });
    // The last start counts, also if its number is lower.
    assert_eq!(open(log), [r#"a/1 [("add", 1), ("echo", 2)] ["echo"]"#]);
    let marks = vec![consumed("a/1", "add")];
    keep(log, Batch { marks, ..Batch::default() });
    assert_eq!(open(log), [""; 0]);
}

fn a_start_that_came_to_nothing_does_not_count(log: &dyn Log) {
    let mut first = batch(&["a"], &[]);
    first.entries = vec![Draft { receivers: 1, ..note("a/1") }];
    let start = |attempt, as_of| {
        let (entry, listener) = (entry("a/1"), "wallet".into());
        Mark::Started { entry, listener, attempt, as_of }
    };
    let stopped = || Mark::Stopped { entry: entry("a/1"), listener: "wallet".into() };
    first.marks = vec![start(1, Some(7)), stopped()];
    keep(log, first);
    let last = || {
        let open = wait(log.open_entries()).unwrap();
        open[0].started.iter().map(|(_, it)| (it.attempt, it.as_of)).collect::<Vec<_>>()
    };
    assert_eq!(last(), [(0, None)]);
    keep(log, Batch { marks: vec![start(1, Some(9))], ..Batch::default() });
    assert_eq!(last(), [(1, Some(9))]);
    keep(log, Batch { marks: vec![start(2, Some(9)), stopped()], ..Batch::default() });
    assert_eq!(last(), [(1, Some(9))], "the first attempt began");
    let noted = wait(log.marks(&thread("a"))).unwrap().into_iter().map(|it| it.mark);
    let all = vec![start(1, Some(7)), stopped(), start(1, Some(9)), start(2, Some(9)), stopped()];
    assert_eq!(noted.collect::<Vec<_>>(), all);
}

fn a_delivery_may_have_to_wait(log: &dyn Log) {
    let mut first = batch(&["a"], &[]);
    first.entries = vec![Draft { receivers: 1, ..note("a/1") }];
    let until_us = 1_700_000_000_000_000;
    first.marks = vec![Mark::Waits { entry: entry("a/1"), listener: "timer".into(), until_us }];
    keep(log, first);
    let open = wait(log.open_entries()).unwrap();
    assert_eq!(open[0].waits, [("timer".into(), until_us)]);
    assert_eq!(open[0].started, []);
}

fn a_tree_has_what_became_of_its_threads(log: &dyn Log) {
    let flagged = |id: &str, flags| Draft { flags, ..note(id) };
    let child = |id: &str, parent: &str| NewThread {
        id: ThreadId::new(id),
        parent: Some(ThreadId::new(parent)),
        fork: None,
    };
    let mut first = batch(&["a", "b"], &[]);
    first.threads.extend([child("a.x", "a"), child("a.y", "a"), child("a.x.z", "a.x")]);
    first.entries = vec![
        note("a/1"),
        note("b/1"),
        flagged("a.x/1", Flags::PAUSES),
        flagged("a.x/2", Flags::CHARGES),
        flagged("a.x/3", Flags::RESUMES.with(Flags::REFUSED)),
        flagged("a.y/1", Flags::CLOSES),
        note("a.y/2"),
        flagged("a.x.z/1", Flags::OVER_BUDGET),
    ];
    keep(log, first);
    let tree = |root: &str| -> Vec<String> {
        let told = |record: crate::log::entry::ThreadRecord| {
            format!("{} {} {} {}", record.id, record.state, record.last_seq, record.first.is_some())
        };
        wait(log.tree(&ThreadId::new(root))).unwrap().into_iter().map(told).collect()
    };
    let all =
        ["a open 1 true", "a.x open 3 true", "a.y closed 2 false", "a.x.z over-budget 1 true"];
    assert_eq!(tree("a"), all);
    assert_eq!(tree("a.x"), [all[1], all[3]]);
    assert_eq!(tree("b"), ["b open 1 true"]);
    assert_eq!(tree("c"), [""; 0]);
}

fn a_tree_has_what_was_charged_and_what_was_handed_to_somebody(log: &dyn Log) {
    let flagged = |id: &str, flags| Draft { flags, ..note(id) };
    let handed = |id: &str, from: &str| Draft { receivers: 1, from: from.into(), ..note(id) };
    let child = |id: &str, parent: &str| NewThread {
        id: ThreadId::new(id),
        parent: Some(ThreadId::new(parent)),
        fork: None,
    };
    let mut first = batch(&["a", "b"], &[]);
    first.threads.extend([child("a.x", "a"), child("a.x.y", "a.x")]);
    first.entries = vec![
        handed("a/1", "alice"),
        flagged("a.x.y/1", Flags::CHARGES),
        flagged("a/2", Flags::CHARGES.with(Flags::REFUSED)),
        handed("a/3", "core"),
        handed("a.x/1", "bob"),
        flagged("a.x/2", Flags::RESUMES),
        flagged("b/1", Flags::CHARGES),
    ];
    keep(log, first);
    let charges = |root: &str| -> Vec<String> {
        let all = wait(log.charges(&thread(root))).unwrap();
        all.iter().map(|it| it.id.to_string()).collect()
    };
    let count = |root: &str| wait(log.count(&thread(root), "core")).unwrap();
    assert_eq!((charges("a"), count("a")), (vec!["a.x.y/1".into(), "a/2".into()], 2));
    assert_eq!((charges("a.x"), count("a.x")), (vec!["a.x.y/1".into()], 1));
    assert_eq!((charges("b"), count("b")), (vec!["b/1".into()], 0));
    assert_eq!((charges("c"), count("c")), (Vec::new(), 0));
    let charged = |root: &str| -> Vec<bool> {
        wait(log.tree(&thread(root))).unwrap().iter().map(|it| it.is_charged).collect()
    };
    assert_eq!(charged("a"), [true, false, true]);
}

fn threads_are_listed_in_the_order_of_their_opening(log: &dyn Log) {
    let late = Draft { at_us: 2_000, ..note("z/2") };
    let mut first = batch(&["z", "a"], &[]);
    first.entries = vec![Draft { at_us: 1_000, ..note("z/1") }, late];
    first.threads.push(NewThread { parent: Some(thread("z")), ..session("m") });
    first.threads.push(NewThread { fork: None, ..session("n") });
    keep(log, first);
    let threads = vec![NewThread { fork: Some(entry("z/1")), ..session("f") }];
    keep(log, Batch { threads, entries: vec![note("f/2")], marks: Vec::new() });
    let list = |after: Option<&str>, limit| -> Vec<String> {
        let after = after.map(thread);
        let threads = wait(log.threads(after.as_ref(), limit)).unwrap();
        threads.iter().map(|it| it.id.to_string()).collect()
    };
    assert_eq!(list(None, 9), ["z", "a", "m", "n", "f"]);
    assert_eq!(list(Some("a"), 2), ["m", "n"]);
    assert_eq!(list(Some("f"), 2), [""; 0]);
    let unknown = Error::UnknownThread(thread("x"));
    assert_eq!(wait(log.threads(Some(&thread("x")), 9)).err(), Some(unknown));
    let all = wait(log.threads(None, 9)).unwrap();
    assert_eq!((all[0].entries, all[0].first_us, all[0].last_us), (2, Some(1_000), Some(2_000)));
    assert_eq!((all[1].entries, all[1].first_us, all[1].last_us), (0, None, None));
    assert_eq!((&all[2].parent, &all[2].fork), (&Some(thread("z")), &None));
    assert_eq!((all[4].entries, &all[4].fork), (1, &Some(entry("z/1"))));
}

fn the_head_moves_and_old_heads_stay_on_the_chain(log: &dyn Log) {
    let empty = wait(log.head()).unwrap();
    let first = keep(log, batch(&["a"], &["a/1"])).head;
    let second = keep(log, batch(&["b"], &[])).head;
    let marks = vec![started("a/1", "echo", 1)];
    let third = keep(log, Batch { marks, ..Batch::default() }).head;
    assert_eq!(wait(log.head()).unwrap(), third);
    let all = [empty, first, second, third];
    for (at, head) in all.into_iter().enumerate() {
        assert_eq!(head.number, at as u64);
        let report = wait(log.verify(Some(head))).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        assert_eq!((report.head, report.commits, report.entries), (third, 3, 1));
    }
    for head in [Head { number: 2, ..third }, Head { number: 4, ..third }] {
        let report = wait(log.verify(Some(head))).unwrap();
        let wrong: Vec<_> = report.findings.iter().map(|it| it.wrong).collect();
        assert_eq!(wrong, [Wrong::Head]);
    }
}

fn appends_keep_the_order_of_their_calls(log: &dyn Log) {
    keep(log, batch(&["a"], &[]));
    let appends: Vec<_> =
        (1..=3_000).map(|seq| log.append(batch(&[], &[&format!("a/{seq}")]))).collect();
    // The answers are awaited in the opposite order.
    for (at, append) in appends.into_iter().enumerate().rev() {
        assert_eq!(wait(append).unwrap().first_position, at as u64 + 1);
    }
    assert_eq!(wait(log.read(&thread("a"), 0, 9_999, 9_999)).unwrap().len(), 3_000);
    assert!(wait(log.verify(None)).unwrap().is_sound());
}

fn what_goes_ahead_keeps_its_order_too(log: &dyn Log) {
    keep(log, batch(&["a", "b"], &[]));
    let appends = (1..=1_000).flat_map(|seq| {
        let behind = log.append(batch(&[], &[&format!("a/{seq}")]));
        let ahead = log.append_ahead(batch(&[], &[&format!("b/{seq}")]));
        [behind, ahead]
    });
    let appends: Vec<_> = appends.collect();
    appends.into_iter().for_each(|it| assert!(wait(it).is_ok()));
    for id in ["a", "b"] {
        assert_eq!(wait(log.read(&thread(id), 0, 9_999, 9_999)).unwrap().len(), 1_000);
    }
    assert!(wait(log.verify(None)).unwrap().is_sound());
}

fn a_closed_log_takes_no_more(log: &dyn Log) {
    let before = log.append(batch(&["a"], &["a/1"]));
    let close = log.close();
    wait(close).unwrap();
    assert!(wait(before).is_ok());
    assert_eq!(wait(log.append(batch(&["b"], &[]))).err(), Some(Error::Closed));
    wait(log.close()).unwrap();
}
