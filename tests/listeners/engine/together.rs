//! Pushes that one run of a handler takes in together have one answer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pumphouse::engine::{Identity, PushEvent, PushObserver};
use pumphouse::prelude::*;
use pumphouse::wire::Envelope;
use pumphouse::xml::{Profile, read};

use super::{Answer, Question, only_thread, start, story};

/// What one connection hears: of which push, and what.
#[derive(Default)]
struct Ear(Mutex<Vec<(u64, String)>>);

impl PushObserver for Ear {
    fn hear(&self, push: u64, news: PushEvent) {
        let what = match news {
            PushEvent::Accepted { .. } => "accepted".to_owned(),
            PushEvent::Reply(entry) => entry.name().local().to_owned(),
            PushEvent::Settled => "settled".to_owned(),
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push((push, what));
    }
}

impl Ear {
    /// What it heard of a push.
    fn of(&self, push: u64) -> Vec<String> {
        let all = self.0.lock().unwrap();
        all.iter().filter(|it| it.0 == push).map(|it| it.1.clone()).collect()
    }
}

/// Says what comes of the thread once it has waited, for all that it took in.
async fn answer(Queue(rest): Queue, Question { n }: Question) -> Final<Answer> {
    tokio::time::sleep(Duration::from_millis(50)).await;
    Final(Answer { n: n + rest.len() as u64 })
}

fn question(thread: Option<&ThreadId>) -> Envelope {
    let ns = pumphouse::name::ENVELOPE;
    let thread = thread.map(|it| format!("<thread>{it}</thread>")).unwrap_or_default();
    let payload = r#"<question xmlns="urn:test"><n>0</n></question>"#;
    let text = format!(r#"<message xmlns="{ns}"><meta>{thread}</meta>{payload}</message>"#);
    let limits = Limits::default();
    Envelope::open(&read(&text, Profile::Wire, &limits.door).unwrap(), &limits).unwrap()
}

/// The first push is at work while the others come, each from where it says; the pump rests then.
async fn pushed(ears: &[&Arc<Ear>]) -> Vec<String> {
    let pump = start(Listener::new("a").on(answer).serial());
    let root = Identity { name: "root".into(), operator: true };
    let mut thread = None;
    for (number, ear) in ears.iter().enumerate() {
        let inlet: Arc<dyn PushObserver> = (*ear).clone();
        pump.push(&root, question(thread.as_ref()), &inlet, number as u64).await;
        crate::eventually(async || !ear.of(number as u64).is_empty()).await;
        thread = Some(only_thread(&pump).await);
    }
    let thread = only_thread(&pump).await;
    pump.shutdown().await.unwrap();
    story(pump.log(), &thread).await
}

#[tokio::test]
async fn each_connection_hears_the_one_answer_to_what_was_taken_in_together() {
    let ears = [Arc::new(Ear::default()), Arc::new(Ear::default()), Arc::new(Ear::default())];
    let story = pushed(&[&ears[0], &ears[1], &ears[2]]).await;
    for (number, ear) in ears.iter().enumerate() {
        assert_eq!(ear.of(number as u64), ["accepted", "answer", "settled"], "push {number}");
    }
    // One answer to the first, and one to both that came meanwhile: they are one identity's.
    assert_eq!(story.iter().filter(|it| it.contains("answer")).count(), 2, "{story:?}");
}

#[tokio::test]
async fn a_connection_hears_one_answer_once() {
    let ear = Arc::new(Ear::default());
    pushed(&[&ear, &ear, &ear]).await;
    assert_eq!(ear.of(0), ["accepted", "answer", "settled"]);
    assert_eq!(ear.of(1), ["accepted", "answer", "settled"]);
    assert_eq!(ear.of(2), ["accepted", "settled"]);
}
