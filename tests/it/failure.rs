//! Failures of every kind are marked as failed, and every way of asking for failures shows the same
//! ones.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pumphouse::client::{Client, Incoming, Push};
use pumphouse::door::{Options, Tcp, Tokens};
use pumphouse::engine::Identity;
use pumphouse::limits::Limits;
use pumphouse::listener::{Answer, Outcome};
use pumphouse::listeners::agent::words::{Interrupt, Stopped};
use pumphouse::listeners::thread::{CancelThread, InitialPayload, SpawnThread, thread};
use pumphouse::log::{self, Batch, Draft, Durability, Log, NewThread, SqliteLog};
use pumphouse::prelude::*;
use pumphouse::sim::{Disk, Sim};
use pumphouse::wire::Fault;
use pumphouse::wire::core::{
    DoorRefusals, Huh, ThreadCancelled, ThreadResult, ThreadSpawned, ThreadStatus,
};
use pumphouse::xml;

use crate::program::{Scene, log_in};

macro_rules! payloads {
    ($($(#[$doc:meta])* $Name:ident)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Payload)]
        #[payload(ns = "urn:failure")]
        struct $Name {
            n: u64,
        }
    )* };
}

payloads! {
    /// It went well.
    Well
    /// It went wrong.
    Bad
    /// Has an `Err` returned.
    Returns
    /// Has an `Err` sent.
    Sends
    /// Has an `Err` sent as the answer to a message.
    Replies
    /// Is answered well.
    Works
    /// Panics.
    Panics
    /// Takes too long.
    Dozes
    /// Is passed on to a listener that nobody is called.
    Strays
    /// Is answered by what only the pump may say.
    Forges
    /// Stops its agent.
    Stops
    /// Asks another listener, which strays.
    Calls
    /// Is answered more often than there may be answers.
    Floods
    /// Has the same asked of another listener again and again.
    Circles
    /// Goes on until the budget of its thread is spent.
    Spends
    /// Never comes to an end.
    Sleeps
    /// The same, of a listener that the next pump doesn't have.
    Leaves
}

fn stopped(reason: &str) -> Stopped {
    Stopped { turns: 1, reason: reason.to_owned(), until: 1, text: "It stopped.".into() }
}

/// Listeners that fail in every way, and one that doesn't.
fn frail() -> impl Plugin {
    type Out = Outbox<Result<Well, Bad>>;
    let returns = async |Returns { n }: Returns| Err::<Well, _>(Bad { n });
    let sends = async |out: Out, Sends { n }: Sends| out.send(Err(Bad { n })).await;
    let replies = async |out: Out, message: Message, Replies { n }: Replies| {
        out.reply_to(&message, Err(Bad { n })).await
    };
    let stops = async |message: Message, Stops { n }: Stops| {
        let (word, outcome) = match n {
            0 => (Interrupt::WORD, Outcome::Cancelled),
            _ => ("idle", Outcome::Failed),
        };
        Answer::new(vec![message.0], stopped(word)).outcome(outcome)
    };
    let forges = async |_: Forges| {
        let bytes = r#"<done xmlns="https://xml-pipeline.org/ns/core/v1"></done>"#;
        Element::from_canonical(bytes.into()).unwrap()
    };
    let frail = Listener::new("frail").on(returns).on(sends).on(replies).on(stops).on(forges);
    let frail = frail
        .on(async |Works { n }: Works| Well { n })
        .on(async |_: Panics| assert_eq!(1, 2, "it panics"))
        .on(async |Strays { n }: Strays| To("frial", Well { n }))
        .on(async |Spends { n }: Spends| Again(Spends { n: n + 1 }))
        .on(async |Floods { n }: Floods| vec![Well { n }; 30]);
    let circles = async |Circles { n }: Circles| To("frail", Works { n });
    let circles = Listener::new("circler").on(circles);
    let circles = circles.on_reply(async |Well { n }: Well| To("frail", Works { n }));
    let dozes = async |_: Dozes| std::future::pending::<()>().await;
    let dozes = Listener::new("dozer").on(dozes).timeout(Duration::from_millis(20));
    let sleeps = Listener::new("sleeper").on(async |_: Sleeps| std::future::pending::<()>().await);
    let calls = async |Calls { n }: Calls| To("frail", Strays { n });
    (frail, dozes, sleeps, circles, Listener::new("caller").on(calls).on_reply(async |_: Well| {}))
}

/// Everything that an entry says, under another thread and at another time.
fn copied(it: &log::Entry, prefix: &str, at_us: u64) -> Draft {
    let moved =
        |id: &EntryId| EntryId::new(&ThreadId::new(&format!("{prefix}{}", id.thread)), id.seq);
    let draft = Draft::new(moved(&it.id), at_us, it.from.clone(), it.name.clone(), it.body.clone());
    Draft {
        to: it.to.clone(),
        cause: it.cause.as_ref().map(moved),
        reply_to: it.reply_to.as_ref().map(moved),
        flags: it.flags,
        ..draft
    }
}

/// Writes a log's entries into another, once two hours ago and once over the last hour.
async fn copy(from: &dyn Log, to: &SqliteLog) {
    let now = u64::try_from(jiff::Timestamp::now().as_microsecond()).unwrap();
    let all = from.tail(0, 10_000).await.unwrap();
    for (prefix, begins, apart) in [("old-", 7_200, 1), ("", 3_500, 3_400 / all.len() as u64)] {
        let ids: BTreeSet<_> = all.iter().map(|it| it.id.thread.clone()).collect();
        let new = |id: &ThreadId| NewThread {
            id: ThreadId::new(&format!("{prefix}{id}")),
            parent: None,
            fork: None,
        };
        let threads = ids.iter().map(new).collect();
        let at = |number: usize| now - (begins - number as u64 * apart) * 1_000_000;
        let entries = all.iter().enumerate().map(|(number, it)| copied(it, prefix, at(number)));
        let (entries, marks) = (entries.collect(), Vec::new());
        to.append(Batch { threads, entries, marks }).await.unwrap();
    }
}

/// Something that goes well, then every kind of failure.
async fn fails(pump: &Pump) {
    pump.ask::<Well>(Works { n: 1 }).await.unwrap();
    pump.ask::<Well>(Returns { n: 1 }).await.unwrap_err();
    pump.ask::<Well>(Sends { n: 2 }).await.unwrap_err();
    pump.ask::<Well>(Replies { n: 3 }).await.unwrap_err();
    pump.ask::<Well>(Panics { n: 4 }).await.unwrap_err();
    pump.ask::<Well>(Dozes { n: 5 }).await.unwrap_err();
    pump.ask::<Well>(Strays { n: 6 }).await.unwrap_err();
    pump.ask::<Well>(Forges { n: 7 }).await.unwrap_err();
    pump.ask::<Stopped>(Stops { n: 8 }).await.unwrap();
    pump.ask::<Stopped>(Stops { n: 0 }).await.unwrap();
    pump.ask::<Well>(Circles { n: 9 }).await.unwrap_err();
    pump.ask::<Well>(Spends { n: 10 }).await.unwrap_err();
    pump.ask::<Well>(Floods { n: 11 }).await.unwrap();
    ends(pump).await;
}

/// A message waits in a thread that is cancelled, and a thread that was cancelled is so again.
async fn ends(pump: &Pump) {
    let spawns = SpawnThread {
        metadata: None,
        suggested_sub_id: Some("asleep".into()),
        initial_payload: InitialPayload { payload: Sleeps { n: 12 }.encode().unwrap() },
    };
    let spawned: ThreadSpawned = pump.ask(spawns).await.unwrap();
    let above = pump.in_thread(&ThreadId::new(&spawned.parent_id));
    let cancels = CancelThread { thread: Some(spawned.assigned_id.clone()), reason: None };
    above.ask::<ThreadCancelled>(cancels.clone()).await.unwrap();
    above.ask::<ThreadCancelled>(cancels).await.unwrap_err();
    let waits = pump.tell(Sleeps { n: 13 }).await.unwrap();
    let cancels = CancelThread { thread: None, reason: None };
    pump.in_thread(&waits.thread).ask::<ThreadCancelled>(cancels).await.unwrap();
}

/// A pump over the log of a file, with listeners that fail and `more`.
fn over(file: &Path, more: impl Plugin) -> (Pump, Arc<dyn Log>) {
    let log: Arc<dyn Log> = Arc::new(SqliteLog::open(file, Durability::Normal).unwrap());
    let kept = log.clone();
    let mut limits = Limits::default();
    (limits.emissions_max, limits.tree_messages_max) = (20, 40);
    limits.drain_time_max = Duration::from_millis(10);
    let builder = pumphouse::builder().with(frail()).with(more).limits(limits);
    let builder = builder.with(move |it: &mut Builder| it.log(kept));
    (builder.build().unwrap().start(), log)
}

/// One pump stops while two handlers are at work; the next has one of their listeners.
async fn fails_across_a_stop(file: &Path) {
    let leaves = Listener::new("leaver").on(async |_: Leaves| std::future::pending::<()>().await);
    let (first, log) = over(file, (leaves, thread()));
    fails(&first).await;
    first.tell(Sleeps { n: 14 }).await.unwrap();
    first.tell(Leaves { n: 15 }).await.unwrap();
    crate::eventually(async || {
        !log.open_entries().await.unwrap().iter().any(|it| it.started.is_empty())
    })
    .await;
    first.shutdown().await.unwrap();
    drop((first, log));
    let (next, log) = over(file, thread());
    crate::eventually(async || log.open_entries().await.unwrap().is_empty()).await;
    next.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_hour_with_every_kind_of_failure_shows_all_of_them_and_nothing_else() {
    let scene = Scene::new();
    let source = scene.path("source.db");
    fails_across_a_stop(&source).await;
    let log = SqliteLog::open(&source, Durability::Normal).unwrap();
    let now = jiff::Timestamp::now();
    let refusals = DoorRefusals { since: now, until: now, count: 1, refused: Vec::new() };
    let thread = ThreadId::new("organism");
    let body = refusals.encode().unwrap().canonical();
    let name = DoorRefusals::NAME;
    let draft = Draft::new(EntryId::new(&thread, 1), 1, "core".into(), name, body);
    let threads = vec![NewThread { id: thread, parent: None, fork: None }];
    log.append(Batch { threads, entries: vec![draft], marks: Vec::new() }).await.unwrap();
    std::fs::create_dir(scene.path("data")).unwrap();
    let file = SqliteLog::open(log_in(&scene.path("data")), Durability::Normal).unwrap();
    copy(&log, &file).await;
    file.close().await.unwrap();
    let tail = scene.run(&["tail", "--failed", "--since", "1h", "--json"]).code(0).objects();
    let said = |it: &serde_json::Value, key: &str| it[key].as_str().unwrap_or("*").to_owned();
    let line = |it: &serde_json::Value| {
        assert_eq!(it["failed"], true, "{it}");
        let code = it["payload"].as_str().and_then(|it| it.split_once("code=\"")?.1.get(..5));
        let what = code.map_or_else(|| said(it, "name"), str::to_owned);
        format!("{} > {}: {what}", said(it, "from"), said(it, "to"))
    };
    let mut expected = [
        "frail > console: bad",
        "frail > console: bad",
        "frail > console: bad",
        "core > console: P0015",
        "core > console: P0014",
        "core > frail: P0011",
        "core > console: P0011",
        "core > frail: P0010",
        "core > console: P0017",
        "frail > console: agent-stopped",
        "core > console: P0043",
        "core > frail: P0042",
        "core > console: P0042",
        "core > console: P0029",
        "core > console: P0040",
        "core > console: P0041",
        "core > console: P0016",
        "core > console: P0030",
        "core > *: door-refusals",
    ];
    // Two threads go on side by side after the stop.
    let mut seen: Vec<String> = tail.iter().map(line).collect();
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);
    let of = |all: &[serde_json::Value]| -> BTreeSet<String> {
        all.iter().map(|it| said(it, "thread")).collect()
    };
    let threads = ["threads", "--failed", "--since", "1h", "--json"];
    assert_eq!(of(&scene.run(&threads).code(0).objects()), of(&tail));
    for thread in of(&tail) {
        let shown = scene.run(&["show", &thread, "--failed", "--json"]).code(0).objects();
        assert_eq!(shown.len(), tail.iter().filter(|it| it["thread"] == *thread).count());
    }
    // Those before the hour are there as well, and all of them are shown.
    let all = scene.run(&["tail", "--failed", "--json"]).code(0).objects();
    assert_eq!(all.len(), 2 * expected.len());
    scene.run(&["tail", "--failed", "-n", "1"]).code(0).says(&["failed: <door-refusals"]);
}

async fn served(options: Options) -> (Pump, Client) {
    let door = Tcp::bind("127.0.0.1:0", options).await.unwrap();
    let address = door.local_addr();
    let pump = pumphouse::builder().with(frail()).with(door).build().unwrap().start();
    (pump, Client::connect(address).await.unwrap())
}

/// The next message that is none of the pump's answers to pushes.
async fn message(client: &mut Client) -> pumphouse::client::Message {
    loop {
        if let Some(Incoming::Message(it)) = client.recv().await.unwrap() {
            return it;
        }
    }
}

#[tokio::test]
async fn what_failed_says_so_on_the_wire_and_to_send() {
    let (_pump, mut client) = served(Options::default()).await;
    for (payload, failed) in [
        (Works { n: 1 }.encode(), false),
        (Returns { n: 1 }.encode(), true),
        (Sends { n: 1 }.encode(), true),
        (Replies { n: 1 }.encode(), true),
        (Panics { n: 1 }.encode(), true),
        (Stops { n: 1 }.encode(), true),
        (Stops { n: 0 }.encode(), false),
    ] {
        client.push(&Push::element(payload.unwrap()));
        client.flush().await.unwrap();
        let it = message(&mut client).await;
        assert_eq!(it.failed, failed, "{it:?}");
    }
}

#[tokio::test]
async fn a_thread_whose_answer_is_an_error_has_failed() {
    type Out = Outbox<Result<Well, Bad>>;
    let replies = async |out: Out, message: Message, Replies { n }: Replies| {
        out.reply_to(&message, Err(Bad { n })).await
    };
    let one = Listener::new("one").on(async |Works { n }: Works| Well { n }).on(replies);
    let one = one.on(async |Returns { n }: Returns| Err::<Well, _>(Bad { n }));
    let ends = async |Sends { n }: Sends| Final(Err::<Well, _>(Bad { n }));
    let staff = (one, Listener::new("final").on(ends), thread());
    let door = Tcp::bind("127.0.0.1:0", Options::default()).await.unwrap();
    let address = door.local_addr();
    let pump = pumphouse::builder().with((staff, door)).build().unwrap().start();
    let mut client = Client::connect(address).await.unwrap();
    for (first, expected) in [
        (Works { n: 1 }.encode(), ThreadStatus::Completed),
        (Returns { n: 1 }.encode(), ThreadStatus::Failed),
        (Sends { n: 1 }.encode(), ThreadStatus::Failed),
        (Replies { n: 1 }.encode(), ThreadStatus::Failed),
    ] {
        let initial_payload = InitialPayload { payload: first.unwrap() };
        let spawn = SpawnThread { metadata: None, suggested_sub_id: None, initial_payload };
        client.push(&Push::element(spawn.encode().unwrap()));
        client.flush().await.unwrap();
        let spawned = message(&mut client).await;
        assert!(spawned.is::<ThreadSpawned>() && !spawned.failed, "{spawned:?}");
        let told = message(&mut client).await;
        assert_eq!(told.failed, expected == ThreadStatus::Failed, "{told:?}");
        let result: ThreadResult = told.decode().unwrap();
        assert_eq!(result.status, expected);

        let thread = pump.log().thread(&ThreadId::new(&result.thread)).await.unwrap().unwrap();
        let failed = thread.state == log::State::Failed;
        assert_eq!(failed, expected == ThreadStatus::Failed, "{:?}", thread.state);
    }
}

#[tokio::test]
async fn who_asked_learns_that_nobody_has_what_a_handler_sent() {
    let (pump, mut client) = served(Options::default()).await;
    for error in [
        pump.ask::<Well>(Strays { n: 1 }).await.unwrap_err(),
        pump.ask::<Well>(Calls { n: 1 }).await.unwrap_err(),
    ] {
        let AskError::Failed(huh) = error else { panic!("{error}") };
        let text = "frail sent {urn:failure}well to frial, which is none of its peers";
        assert_eq!((&*huh.code, &*huh.message), ("P0011", text));
    }
    // Over a socket nobody says that they wait; they learn it all the same.
    client.push(&Push::of(&Strays { n: 1 }).unwrap());
    client.flush().await.unwrap();
    assert!(message(&mut client).await.is::<Huh>());
}

#[tokio::test]
async fn the_nearest_of_its_peers_is_told_alike_whether_the_name_is_unknown_or_forbidden() {
    let sends = |to: &'static str| move |Works { n }: Works| async move { To(to, Well { n }) };
    let mut told = Vec::new();
    for to in ["bookkeper", "bookkeeper"] {
        let clerk = Listener::new("clerk").on(sends(to)).peers(["bookkeepers"]);
        let other = |name: &str| Listener::new(name).on_reply(async |_: Well| {});
        let all = (clerk, other("bookkeepers"), other("bookkeeper"));
        let pump = pumphouse::builder().with(all).build().unwrap().start();
        let error = pump.ask::<Well>(Works { n: 1 }).await.unwrap_err();
        let AskError::Failed(huh) = error else { panic!("{error}") };
        assert!(huh.advice.starts_with("Did you mean bookkeepers?"), "{huh:?}");
        told.push(huh.message.replace(to, "NAME"));
    }
    assert_eq!(told[0], told[1]);
}

/// What a client hears of a push that is refused.
async fn refusal(client: &mut Client, push: Push) -> Huh {
    client.push(&push);
    client.flush().await.unwrap();
    loop {
        if let Some(Incoming::Refused { huh, .. }) = client.recv().await.unwrap() {
            return huh;
        }
    }
}

const GENERIC: &str = "Message could not be delivered. Please verify your target and try again.";

#[tokio::test]
async fn operators_and_an_open_loopback_door_are_told_why_nobody_takes_it() {
    let tokens = || Tokens::parse("ann:one\nops:two:operator\n").unwrap();
    let cases = [
        (Push::text("<work xmlns='urn:failure'/>"), "{urn:failure}works"),
        (Push::text("<works xmlns='urn:failur'/>"), "{urn:failure}works"),
        (Push::text("<wroks/>"), "no payload wroks"),
        (Push::text("<nobody-knows xmlns='urn:x'/>"), "no payload {urn:x}nobody-knows"),
        (Ok(Push::of(&Works { n: 1 }).unwrap().to("frial")), "did you mean frail?"),
        (Ok(Push::of(&Works { n: 1 }).unwrap().to("dozer")), "it takes {urn:failure}dozes"),
    ];
    let (_open, mut open) = served(Options::default()).await;
    let (pump, mut ann) = served(Options::default().tokens(tokens())).await;
    let (_other, mut ops) = served(Options::default().tokens(tokens())).await;
    let (_guarded, mut guest) = served(Options::default().tokens(tokens())).await;
    ann.authenticate("one").await.unwrap();
    ops.authenticate("two").await.unwrap();
    for (push, reason) in cases {
        let push = push.unwrap();
        for client in [&mut open, &mut ops] {
            let huh = refusal(client, push.clone()).await;
            assert!(huh.message.contains(reason), "{reason} in {}", huh.message);
        }
        for client in [&mut ann, &mut guest] {
            assert_eq!(refusal(client, push.clone()).await.message, GENERIC);
        }
    }
    let operator = Identity { name: "ops".into(), operator: true };
    let fault = pump.speaking_as(operator).to("frial").tell(Works { n: 1 }).await.unwrap_err();
    assert_eq!(fault.message, "no listener is called frial; did you mean frail?");
    let fault = pump.to("frial").tell(Works { n: 1 }).await.unwrap_err();
    assert_eq!(fault.message, GENERIC);
}

#[tokio::test]
async fn operators_are_told_why_nobody_takes_the_first_of_a_thread() {
    let pump = pumphouse::builder().with(frail()).with(thread()).build().unwrap().start();
    let operator = Identity { name: "ops".into(), operator: true };
    for (first, reason) in [
        ("<wroks/>", "the organism has no payload wroks"),
        ("<work xmlns='urn:failure'/>", "did you mean {urn:failure}works?"),
    ] {
        let limits = &pumphouse::limits::XmlLimits::FILE;
        let payload = xml::read(first, xml::Profile::Wire, limits).unwrap();
        let initial_payload = InitialPayload { payload };
        let spawn = SpawnThread { metadata: None, suggested_sub_id: None, initial_payload };
        let told = async |asker: Pump| {
            let error = asker.ask::<ThreadSpawned>(spawn.clone()).await.unwrap_err();
            let AskError::Failed(huh) = error else { panic!("{error}") };
            huh.message
        };
        let why = told(pump.speaking_as(operator.clone())).await;
        assert!(why.contains(reason), "{why}");
        assert_eq!(told(pump.clone()).await, GENERIC);
    }
}

#[tokio::test]
async fn a_refusal_repeats_the_clients_own_id() {
    let (_pump, mut client) = served(Options::default()).await;
    let huh = refusal(&mut client, Push::text("<nobody/>").unwrap().with_id("order-17")).await;
    assert_eq!(huh.id.as_deref(), Some("order-17"));
    let invalid = Push::text("<works xmlns='urn:failure'/>").unwrap();
    let huh = refusal(&mut client, invalid.clone().with_id("a<b")).await;
    assert_eq!((&*huh.code, huh.id.as_deref()), ("P0007", Some("a<b")));
    assert_eq!(refusal(&mut client, invalid).await.id, None);
    let there = ThreadId::new("sess-00000000");
    let push = Push::of(&Works { n: 1 }).unwrap().with_id("late").in_thread(&there);
    client.push(&push);
    client.flush().await.unwrap();
    let unknown = loop {
        if let Some(Incoming::UnknownThread { error, .. }) = client.recv().await.unwrap() {
            break error;
        }
    };
    assert_eq!(unknown.id.as_deref(), Some("late"));
}

#[test]
fn send_says_the_id_of_what_was_refused() {
    let scene = Scene::new();
    let server = scene.serve(&[]);
    for meta in ["<id>order-17</id>", "<id>order-17</id><thread>sess-00000000</thread>"] {
        let push = format!(
            "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta>{meta}</meta>\
             <nobody xmlns=\"urn:x\"/></message>"
        );
        let ran = scene.pipe(&["send", "--connect", &server.address, "--json"], &push).code(1);
        let told = ran.objects().remove(0);
        assert_eq!((&told["event"], &told["id"]), (&"refused".into(), &"order-17".into()));
    }
}

#[test]
fn a_peer_that_is_not_there_is_a_complaint() {
    let plan = |peer: &str| {
        let a = Listener::new("alpha").peers([peer]).on(async |_: Works| {});
        pumphouse::builder().with((a, Listener::new("beta").on(async |_: Well| {}))).build()
    };
    assert!(plan("beta").is_ok() && plan("alpha").is_ok());
    let said = |peer: &str| plan(peer).unwrap_err().all().to_vec();
    let near = "alpha: no listener is called `bta`, one of its peers: did you mean `beta`?";
    assert_eq!(said("bta"), [near]);
    assert_eq!(said("zz"), ["alpha: no listener is called `zz`, one of its peers: add that too"]);
}

#[test]
fn doors_refusals_are_one_entry_a_minute_in_the_organisms_thread() {
    let sim = Sim::new(1);
    let disk = Disk::new(&sim);
    let plan = pumphouse::builder().with(frail()).with(disk.log()).build().unwrap();
    let pump = plan.start_on(&sim);
    for second in 0..150 {
        pump.refused("10.0.0.9", &Fault::undeliverable());
        if second % 2 == 0 {
            pump.refused("ada", &Fault::undeliverable());
        }
        sim.run(sim.sleep(Duration::from_secs(1))).unwrap();
    }
    sim.rest().unwrap();
    let thread = ThreadId::new("organism");
    let entries = sim.run(pump.log().read(&thread, 0, u64::MAX, 100)).unwrap().unwrap();
    let told: Vec<DoorRefusals> =
        entries.iter().map(|it| <Entry as From<&log::Entry>>::from(it).decode().unwrap()).collect();
    assert_eq!(told.iter().map(|it| it.count).sum::<u64>(), 225);
    assert_eq!(told.len(), 4);
    assert!(entries.windows(2).all(|it| it[1].at_us - it[0].at_us >= 60_000_000));
    let first = &told[1].refused;
    let words = first.iter().map(|it| (it.who.as_deref().unwrap(), &*it.code));
    assert_eq!(words.collect::<Vec<_>>(), [("10.0.0.9", "P0011"), ("ada", "P0011")]);
    let threads = sim.run(pump.log().threads(None, 9)).unwrap().unwrap();
    assert_eq!(threads.len(), 1, "no refusal opens a thread of its own");
}

#[test]
fn send_ends_with_one_where_an_answer_is_an_error() {
    let scene = Scene::new();
    let server = scene.serve(&["--durability", "memory"]);
    let send = ["send", "--json", "--connect", &server.address];
    let calculate = |text: &str| {
        format!(
            "<calculate xmlns=\"https://xml-pipeline.org/ns/calculate/v1\"><expression>{text}\
             </expression></calculate>"
        )
    };
    let well = scene.pipe(&send, &calculate("6*7")).code(0).objects();
    assert_eq!(well.last().unwrap()["failed"], false);
    let wrong = scene.pipe(&send, &calculate("1/0")).code(1).objects();
    assert_eq!(wrong.last().unwrap()["failed"], true);
}
