//! `use: recall`: what is found in one tree of threads, and in all trees of an identity.

use pumphouse::engine::Identity;
use pumphouse::listener::ReadIdentity;
use pumphouse::listeners;
use pumphouse::listeners::thread::{InitialPayload, SpawnThread};
use pumphouse::listeners::tool::recall::{Recall, Recalled, Settings, recall};
use pumphouse::prelude::*;

use super::{in_order, organism};

/// Something that is said, and answered by its number.
#[derive(Clone, Debug, Payload)]
#[payload(ns = "urn:test")]
struct Note {
    text: String,
}

/// That a note was taken.
#[derive(Clone, Debug, Payload)]
#[payload(ns = "urn:test")]
struct Taken;

async fn take(_: Note) -> Taken {
    Taken
}

/// A pump whose `recall` has these limits, and the grant where it is to have it.
fn pump(limits: &str, grants: bool) -> Pump {
    let settings: Settings = serde_json::from_str(limits).unwrap();
    let recall = recall(&settings);
    let recall = if grants { recall.grant::<ReadIdentity>() } else { recall };
    let scribe = Listener::new("scribe").on(take);
    let all = (listeners::standard(), scribe, recall);
    pumphouse::builder().with(all).workers(2).build().unwrap().start()
}

fn who(pump: &Pump, name: &str) -> Pump {
    pump.speaking_as(Identity { name: name.into(), operator: false })
}

/// Says something in a thread of its own, which is answered.
async fn say(pump: &Pump, text: &str) -> ThreadId {
    let told = pump.tell(Note { text: text.into() }).await.unwrap();
    crate::eventually(async || {
        pump.log().thread(&told.thread).await.unwrap().unwrap().last_seq > told.seq
    })
    .await;
    told.thread
}

/// Opens a thread below, and waits for its end.
async fn spawn(pump: &Pump, below: &ThreadId, name: &str, payload: impl Payload) -> ThreadId {
    let initial_payload = InitialPayload { payload: payload.encode().unwrap() };
    let spawn =
        SpawnThread { metadata: None, suggested_sub_id: Some(name.into()), initial_payload };
    pump.in_thread(below).tell(spawn).await.unwrap();
    let child = below.child(name, 0);
    let closed = async || {
        let record = pump.log().thread(&child).await.unwrap();
        record.is_some_and(|it| it.state == pumphouse::log::State::Closed)
    };
    crate::eventually(closed).await;
    child
}

/// A question by text alone.
fn of_text(text: &str) -> Recall {
    Recall { text: Some(text.to_owned()), ..Recall::default() }
}

fn texts(it: &Recalled) -> Vec<&str> {
    it.found.iter().map(|it| &*it.text).map(str::trim).collect()
}

#[tokio::test]
async fn parents_children_and_siblings_are_found_from_every_thread_of_the_tree() {
    let pump = pump("{}", false);
    let root = say(&pump, "green tea above").await;
    let note = |text: &str| Note { text: text.into() };
    let one = spawn(&pump, &root, "one", note("green tea beside")).await;
    let asker = spawn(&pump, &root, "asker", of_text("GREEN tea")).await;
    // The child that asked sees its parent and its sibling.
    let answer = pump.log().read(&asker, 0, u64::MAX, 10).await.unwrap();
    let answer = String::from_utf8_lossy(&answer.last().unwrap().body).into_owned();
    let first = format!("entry=\"{root}/1\"");
    let second = format!("entry=\"{one}/1\"");
    in_order(&answer, &["<recalled", &first, "above", &second, "beside"]);
    // The root sees its children, and one thread alone where that is asked.
    let there = pump.in_thread(&root);
    let all: Recalled = there.ask(of_text("tea")).await.unwrap();
    assert!(all.found.iter().any(|it| it.entry == format!("{one}/1")), "{all:?}");
    let thread = Some(one.to_string());
    let some: Recalled = there.ask(Recall { thread, ..of_text("tea") }).await.unwrap();
    assert_eq!(texts(&some), ["green tea beside"]);
    // A number is one of the own thread unless another is named.
    let after: Recalled = there.ask(Recall { after: Some(0), ..of_text("tea") }).await.unwrap();
    assert!(after.found.iter().all(|it| it.entry.starts_with(&format!("{root}/"))), "{after:?}");
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn without_the_grant_no_entry_of_another_tree_or_identity_is_seen() {
    let pump = pump("{}", false);
    let (alice, bob) = (who(&pump, "alice"), who(&pump, "bob"));
    let theirs = say(&bob, "green tea of bob").await;
    let earlier = say(&alice, "green tea earlier").await;
    let own = say(&alice, "green tea now").await;
    let alice = alice.in_thread(&own);
    let all: Recalled = alice.ask(of_text("tea")).await.unwrap();
    assert_eq!(texts(&all), ["green tea now"]);
    for other in [&theirs, &earlier] {
        let thread = Some(other.to_string());
        let none: Recalled = alice.ask(Recall { thread, ..of_text("tea") }).await.unwrap();
        assert!(none.found.is_empty() && none.left_out == 0, "{none:?}");
        let read_on = Some(format!("{other}/1"));
        let none: Recalled = alice.ask(Recall { read_on, ..of_text("tea") }).await.unwrap();
        assert!(none.found.is_empty() && none.left_out == 0, "{none:?}");
    }
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn with_the_grant_all_trees_of_the_identity_are_read_and_no_others() {
    let pump = pump("{}", true);
    let (alice, bob) = (who(&pump, "alice"), who(&pump, "bob"));
    let theirs = say(&bob, "green tea of bob").await;
    let earlier = say(&alice, "green tea earlier").await;
    spawn(&alice, &earlier, "sub", Note { text: "green tea below".into() }).await;
    spawn(&bob, &theirs, "sub", Note { text: "green tea below bob".into() }).await;
    let own = say(&alice, "green tea now").await;
    let alice = alice.in_thread(&own);
    let note = Some("note".to_owned());
    let question = Recall { name: note, ..of_text("tea") };
    let all: Recalled = alice.ask(question.clone()).await.unwrap();
    assert_eq!(texts(&all), ["green tea earlier", "green tea below", "green tea now"]);
    let thread = Some(theirs.to_string());
    let none: Recalled = alice.ask(Recall { thread, ..question.clone() }).await.unwrap();
    assert!(none.found.is_empty(), "{none:?}");
    let read_on = Some(format!("{theirs}/1"));
    let rest: Recalled = alice.ask(Recall { read_on, ..question }).await.unwrap();
    assert!(rest.found.iter().all(|it| !it.text.contains("bob")), "{rest:?}");
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_reading_that_a_limit_stops_says_so_and_goes_on_where_it_stopped() {
    for (limit, most) in [("entries_max", 4), ("bytes_max", 600), ("threads_max", 2)] {
        reads_on(limit, most).await;
    }
}

async fn reads_on(limit: &str, most: usize) {
    let pump = pump(&format!(r#"{{"limits": {{"{limit}": {most}}}}}"#), false);
    let root = say(&pump, "green tea 1").await;
    let there = pump.in_thread(&root);
    for n in 2..=5 {
        say(&there, &format!("green tea {n}")).await;
    }
    spawn(&there, &root, "sub", Note { text: "green tea 6".into() }).await;
    let (mut read_on, mut found, mut stops) = (None, Vec::new(), 0);
    for _ in 0..20 {
        let question = Recall { name: Some("note".into()), read_on, ..of_text("tea") };
        let some: Recalled = there.ask(question).await.unwrap();
        found.extend(texts(&some).into_iter().map(str::to_owned));
        assert_eq!(some.stopped_by.is_some(), some.read_on.is_some(), "{some:?}");
        if let Some(by) = &some.stopped_by {
            assert_eq!(by, limit);
            stops += 1;
        }
        read_on = some.read_on;
        if read_on.is_none() {
            break;
        }
    }
    assert!(read_on.is_none() && stops > 0, "{limit}: {stops} stops");
    let expected: Vec<String> = (1..=6).map(|n| format!("green tea {n}")).collect();
    assert_eq!(found, expected);
    pump.shutdown().await.unwrap();
}

#[test]
fn an_agent_finds_what_was_said_and_is_told_its_entries() {
    let replies = "%% reply\n<response>Noted.</response>\n\
                   %% reply\n<action id=\"a\">{\"name\": \"recall\", \"parameters\": \
                   {\"text\": \"GREEN tea\", \"name\": \"coder\"}}</action>\n\
                   %% reply\n<action id=\"b\">{\"name\": \"recall\", \"parameters\": \
                   {\"text\": \"coffee\"}}</action>\n\
                   %% reply\n<action id=\"c\">{\"name\": \"recall\"}</action>\n\
                   %% reply\n<action id=\"d\">{\"name\": \"recall\", \"parameters\": \
                   {\"text\": \"green\"}}</action>\n\
                   %% reply\n<response>It is green.</response>\n";
    let scene = organism(&[("recall", "use: recall")], replies);
    scene.run(&["check"]).code(0);
    scene.pipe(&["chat"], "My tea is green.\nWhich tea?\n").code(0);
    let threads = scene.run(&["threads", "--json"]).code(0).objects();
    let thread = threads[0]["thread"].as_str().unwrap();
    let entries = scene.run(&["show", thread, "--json"]).code(0).objects();
    let payloads: Vec<&str> = entries.iter().map(|it| it["payload"].as_str().unwrap()).collect();
    let answers: Vec<&&str> = payloads.iter().filter(|it| it.starts_with("<recalled")).collect();
    let [found, nothing, again] = answers[..] else { panic!("{payloads:#?}") };
    let first = format!("entry=\"{thread}/1\"");
    let from = format!("from={}", entries[0]["from"]);
    in_order(found, &["left_out=\"0\"", "<found", &first, &from, "My tea is green."]);
    assert_eq!(found.matches("<found").count(), 1, "{found}");
    assert!(!nothing.contains("<found"), "{nothing}");
    // Neither what was asked nor what was answered is found again.
    in_order(again, &["left_out=\"0\"", "<found", &first]);
    assert_eq!(again.matches("<found").count(), 1, "{again}");
    let refused = payloads.iter().find(|it| it.starts_with("<not-recalled"));
    assert!(refused.is_some_and(|it| it.contains("say which")), "{payloads:#?}");
}

#[tokio::test]
async fn each_thread_of_other_trees_counts_once_among_the_threads() {
    let pump = pump(r#"{"limits": {"threads_max": 7}}"#, true);
    let alice = who(&pump, "alice");
    for n in 1..=4 {
        say(&alice, &format!("green tea {n}")).await;
    }
    let own = say(&alice, "green tea now").await;
    let all: Recalled = alice.in_thread(&own).ask(of_text("tea")).await.unwrap();
    assert_eq!(all.found.len(), 5, "{all:?}");
    pump.shutdown().await.unwrap();
}
