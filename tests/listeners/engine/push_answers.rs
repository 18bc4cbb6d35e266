//! What the client of a push is told: acceptance, refusal and answers. Also client ids.

use std::sync::{Arc, Mutex};

use pumphouse::engine::{Identity, PushEvent, PushObserver};
use pumphouse::prelude::*;
use pumphouse::wire::{Code, Envelope};
use pumphouse::xml::{Profile, read};
use tokio::sync::Notify;

use super::{Answer, Question, only_thread, start};

#[derive(Default)]
struct Ear {
    heard: Mutex<Vec<(u64, PushEvent)>>,
    more: Notify,
}

impl PushObserver for Ear {
    fn hear(&self, push: u64, news: PushEvent) {
        self.heard.lock().unwrap().push((push, news));
        self.more.notify_one();
    }
}

impl Ear {
    /// Waits until so many pushes are settled or refused.
    async fn over(&self, pushes: usize) -> Vec<(u64, PushEvent)> {
        loop {
            let heard = self.heard.lock().unwrap().clone();
            let end =
                |it: &&(u64, PushEvent)| matches!(it.1, PushEvent::Settled | PushEvent::Refused(_));
            if heard.iter().filter(end).count() >= pushes {
                return heard;
            }
            self.more.notified().await;
        }
    }
}

const QUESTION: &str = r#"<question xmlns="urn:test"><n>1</n></question>"#;

fn envelope(meta: &str, payload: &str) -> Envelope {
    let text = if meta.is_empty() {
        payload.to_owned()
    } else {
        let ns = pumphouse::name::ENVELOPE;
        format!(r#"<message xmlns="{ns}"><meta>{meta}</meta>{payload}</message>"#)
    };
    let limits = Limits::default();
    let element = read(&text, Profile::Wire, &limits.door).unwrap();
    Envelope::open(&element, &limits).unwrap()
}

async fn push(pump: &Pump, who: &str, envelopes: &[Envelope]) -> Vec<(u64, PushEvent)> {
    let ear = Arc::new(Ear::default());
    let inlet: Arc<dyn PushObserver> = ear.clone();
    let who = Identity { name: who.into(), operator: who == "root" };
    for (number, envelope) in envelopes.iter().enumerate() {
        pump.push(&who, envelope.clone(), &inlet, number as u64).await;
    }
    ear.over(envelopes.len()).await
}

fn refused(news: &[(u64, PushEvent)]) -> Option<Code> {
    news.iter().find_map(|it| match &it.1 {
        PushEvent::Refused(fault) => Some(fault.code),
        _ => None,
    })
}

fn pump() -> Pump {
    start(Listener::new("a").on(async |Question { n }: Question| Answer { n }))
}

#[tokio::test]
async fn acceptance_comes_before_the_answer_and_the_end_last() {
    let heard = push(&pump(), "alice", &[envelope("", QUESTION)]).await;
    let words = heard.iter().map(|it| match &it.1 {
        PushEvent::Accepted { .. } => "accepted",
        PushEvent::Reply(entry) => entry.name().local(),
        PushEvent::Settled => "settled",
        _ => "?",
    });
    assert_eq!(words.collect::<Vec<_>>(), ["accepted", "answer", "settled"]);
}

/// Panics at whatever it hears.
struct Panicking;

impl PushObserver for Panicking {
    fn hear(&self, _: u64, _: PushEvent) {
        panic!("an observer may not panic, and does");
    }
}

#[tokio::test]
async fn an_observer_that_panics_harms_nobody_else() {
    let pump = pump();
    let who = Identity { name: "alice".into(), operator: false };
    let observer: Arc<dyn PushObserver> = Arc::new(Panicking);
    // The worker itself refuses the second push: only it knows that there is no such thread.
    for meta in ["", "<thread>sess-00000000</thread>"] {
        pump.push(&who, envelope(meta, QUESTION), &observer, 1).await;
    }
    let heard = push(&pump, "alice", &[envelope("", QUESTION)]).await;
    assert_eq!((refused(&heard), heard.len()), (None, 3));
}

#[tokio::test]
async fn a_name_without_a_namespace_means_the_one_listener_that_owns_it() {
    let pump = pump();
    let heard = push(&pump, "alice", &[envelope("", "<question><n>1</n></question>")]).await;
    assert_eq!(refused(&heard), None);
    let thread = only_thread(&pump).await;
    let first = pump.log().read(&thread, 0, 1, 1).await.unwrap().remove(0);
    assert_eq!(&first.body[..], QUESTION.as_bytes());
    let heard = push(&pump, "alice", &[envelope("", "<nothing/>")]).await;
    assert_eq!(refused(&heard), Some(Code::Undeliverable));
}

#[tokio::test]
async fn strangers_are_refused_what_is_not_theirs() {
    let pump = pump();
    push(&pump, "alice", &[envelope("", QUESTION)]).await;
    let thread = only_thread(&pump).await;
    let there = format!("<thread>{thread}</thread>");
    let done = r#"<done xmlns="https://xml-pipeline.org/ns/core/v1"/>"#;
    for (who, meta, payload, code) in [
        ("alice", "<from>bob</from>", QUESTION, Some(Code::ForgedSender)),
        ("alice", "<from>alice</from>", QUESTION, None),
        ("alice", "<thread>sess-00000000</thread>", QUESTION, Some(Code::UnknownThread)),
        ("bob", &there, QUESTION, Some(Code::UnknownThread)),
        ("root", &there, QUESTION, None),
        ("alice", &there, QUESTION, None),
        ("alice", "", done, Some(Code::Reserved)),
        ("alice", "", "<done/>", Some(Code::Reserved)),
        ("alice", "<to>b</to>", QUESTION, Some(Code::Undeliverable)),
        ("alice", "", r#"<question xmlns="urn:test"><m>1</m></question>"#, Some(Code::Invalid)),
        (
            "alice",
            "",
            r#"<question xmlns="urn:tset"><n>1</n></question>"#,
            Some(Code::Undeliverable),
        ),
    ] {
        let heard = push(&pump, who, &[envelope(meta, payload)]).await;
        assert_eq!(refused(&heard), code, "{who} {meta} {payload}");
    }
    assert_eq!(pump.refusals()[&Code::Undeliverable], 2);
}

#[tokio::test]
async fn a_client_id_is_one_message_for_ever() {
    let pump = pump();
    let same = envelope("<id>one</id>", QUESTION);
    let heard = push(&pump, "alice", &[same.clone(), same.clone(), same.clone()]).await;
    let ids = heard.iter().filter_map(|it| match &it.1 {
        PushEvent::Accepted { id, client_id } => Some((id.to_string(), client_id.clone())),
        _ => None,
    });
    let ids: Vec<_> = ids.collect();
    assert_eq!(ids.len(), 3);
    assert!(ids.iter().all(|it| *it == ids[0] && it.1.as_deref() == Some("one")), "{ids:?}");
    assert_eq!(pump.log().threads(None, 10).await.unwrap().len(), 1);
    let other = r#"<question xmlns="urn:test"><n>2</n></question>"#;
    for (meta, payload, code) in [
        ("<id>one</id>", other, Some(Code::ClientId)),
        ("<to>a</to><id>one</id>", QUESTION, Some(Code::ClientId)),
        ("<id>two</id>", QUESTION, None),
    ] {
        let heard = push(&pump, "alice", &[envelope(meta, payload)]).await;
        assert_eq!(refused(&heard), code, "{meta} {payload}");
    }
    let heard = push(&pump, "bob", &[envelope("<id>one</id>", other)]).await;
    assert_eq!(refused(&heard), None, "ids are per identity");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_client_id_that_many_fight_for_is_one_message_for_ever() {
    let pump = pump();
    for round in 0..50 {
        let id = format!("<id>x{round}</id>");
        let refused = envelope(&format!("<thread>sess-00000000</thread>{id}"), QUESTION);
        let taken = envelope(&id, QUESTION);
        let mut fights = Vec::new();
        for number in 0..8 {
            let envelope = if number < 3 { refused.clone() } else { taken.clone() };
            let pump = pump.clone();
            fights.push(tokio::spawn(async move { push(&pump, "alice", &[envelope]).await }));
        }
        let mut ids = std::collections::BTreeSet::new();
        for fight in fights {
            for (_, news) in fight.await.unwrap() {
                match news {
                    PushEvent::Accepted { id, .. } => drop(ids.insert(id)),
                    PushEvent::Refused(it) => {
                        assert!(matches!(it.code, Code::UnknownThread | Code::ClientId), "{it}");
                    }
                    _ => {}
                }
            }
        }
        assert_eq!(ids.len(), 1, "{ids:?}");
    }
}

#[tokio::test]
async fn a_session_that_waits_for_a_time_sleeps_once_its_client_has_left() {
    let later = async |clock: Clock, Question { n }: Question| {
        Later::at(clock.now_us() + 3_600_000_000, Answer { n }).unawaited()
    };
    let listener = Listener::new("l").on(later).on(async |_: Answer| ()).grant::<Timers>();
    let limits = Limits { trees_awake_max: 1, ..Limits::default() };
    let plan = pumphouse::builder().with(listener).limits(limits).workers(1).build();
    let pump = plan.unwrap().start();
    let (ear, root) = (Arc::new(Ear::default()), Identity { name: "root".into(), operator: true });
    let inlet: Arc<dyn PushObserver> = ear.clone();
    for number in 0..30 {
        pump.push(&root, envelope("", QUESTION), &inlet, number).await;
    }
    ear.over(30).await;
    assert!(pump.metrics().trees_awake >= 30, "somebody is there");
    drop((ear, inlet));
    for _ in 0..10 {
        pump.tell(Question { n: 1 }).await.unwrap();
    }
    let awake = pump.metrics().trees_awake;
    assert!(awake <= 12, "{awake} are awake");
}
