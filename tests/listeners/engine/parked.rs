//! Parked messages: a serial listener may keep messages of its queue until its work on them is
//! done.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pumphouse::engine::{Identity, PushEvent, PushObserver};
use pumphouse::listener::{Answer as ToAskers, Outcome, Park, Request};
use pumphouse::sim::{Disk, Sim};
use pumphouse::wire::Envelope;
use pumphouse::wire::core::NothingUnderWay;
use pumphouse::xml::{Profile, read};

use super::*;

/// Says that the work is done.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Enough;

/// Asks somebody who answers nothing.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Hint;

/// The messages in hand that are questions.
fn questions(message: &Message, queue: &Queue) -> Vec<Entry> {
    let all = std::iter::once(&message.0).chain(&queue.0);
    all.filter(|it| it.is::<Question>()).cloned().collect()
}

/// Keeps each question until it hears that it is enough; then answers all of them.
fn keeper() -> Listener {
    async fn keep(message: Message, queue: Queue, _: Question) -> Park {
        let all = questions(&message, &queue);
        Park::default().work(all.iter().map(Entry::seq).collect())
    }
    async fn enough(message: Message, queue: Queue, _: Enough) -> ToAskers<Answer> {
        let all = questions(&message, &queue);
        let n = all.len() as u64;
        ToAskers::new(all, Answer { n })
    }
    Listener::new("keeper").on(keep).on(enough).serial().idempotent()
}

/// What one connection hears of its pushes.
#[derive(Default)]
struct Ear(Mutex<Vec<String>>);

impl PushObserver for Ear {
    fn hear(&self, _: u64, news: PushEvent) {
        let what = match news {
            PushEvent::Accepted { .. } => "accepted".to_owned(),
            PushEvent::Reply(entry) => entry.name().local().to_owned(),
            PushEvent::Settled => "settled".to_owned(),
            other => format!("{other:?}"),
        };
        self.0.lock().unwrap().push(what);
    }
}

impl Ear {
    fn heard(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

fn envelope(thread: Option<&ThreadId>, payload: &str) -> Envelope {
    let ns = pumphouse::name::ENVELOPE;
    let thread = thread.map(|it| format!("<thread>{it}</thread>")).unwrap_or_default();
    let text = format!(r#"<message xmlns="{ns}"><meta>{thread}</meta>{payload}</message>"#);
    let limits = Limits::default();
    Envelope::open(&read(&text, Profile::Wire, &limits.door).unwrap(), &limits).unwrap()
}

const QUESTION: &str = r#"<question xmlns="urn:test"><n>0</n></question>"#;
const ENOUGH: &str = r#"<enough xmlns="urn:test"/>"#;

/// Pushes as somebody, and waits until everything rests.
fn push(sim: &Sim, pump: &Pump, who: &str, ear: &Arc<Ear>, it: Envelope) {
    let identity = Identity { name: who.into(), operator: true };
    let inlet: Arc<dyn PushObserver> = ear.clone();
    sim.run(async { pump.push(&identity, it, &inlet, 1).await }).unwrap();
    sim.rest().unwrap();
}

fn lines(sim: &Sim, disk: &Disk) -> Vec<String> {
    let (at, kept) = (thread(sim, disk), disk.kept());
    let all = sim.run(kept.read(&at, 0, u64::MAX, 100)).unwrap().unwrap();
    let line = |it: &Arc<pumphouse::log::Entry>| {
        format!("{} > {}: {}", it.from, it.to.as_deref().unwrap_or("*"), it.name.local())
    };
    all.iter().map(line).collect()
}

fn thread(sim: &Sim, disk: &Disk) -> ThreadId {
    let kept = disk.kept();
    sim.run(async { kept.threads(None, 1).await.unwrap().remove(0).id.clone() }).unwrap()
}

#[test]
fn a_parked_message_is_answered_later_once_for_each_sender_and_connection() {
    let sim = Sim::new(1);
    let disk = Disk::new(&sim);
    let pump = pumphouse::builder().with((keeper(), disk.log())).build().unwrap().start_on(&sim);
    let ears = [Arc::new(Ear::default()), Arc::new(Ear::default()), Arc::new(Ear::default())];
    push(&sim, &pump, "ada", &ears[0], envelope(None, QUESTION));
    let at = thread(&sim, &disk);
    push(&sim, &pump, "ada", &ears[1], envelope(Some(&at), QUESTION));
    push(&sim, &pump, "bob", &ears[2], envelope(Some(&at), QUESTION));
    // Nobody is settled while the work goes on.
    assert_eq!(ears.each_ref().map(|it| it.heard()), [["accepted"], ["accepted"], ["accepted"]]);
    let ear = Arc::new(Ear::default());
    push(&sim, &pump, "ops", &ear, envelope(Some(&at), ENOUGH));
    for it in &ears {
        assert_eq!(it.heard(), ["accepted", "answer", "settled"]);
    }
    let story = lines(&sim, &disk);
    let answers: Vec<&String> = story.iter().filter(|it| it.ends_with(": answer")).collect();
    assert_eq!(answers, ["keeper > ada: answer", "keeper > bob: answer"]);
}

/// A pump that was asked something, and that begins again after a crash.
fn started_again(sim: &Sim, disk: &Disk) -> (Pump, ThreadId) {
    let start = || {
        let plan = pumphouse::builder().with((keeper(), disk.log())).build().unwrap();
        plan.start_on(sim)
    };
    let pump = start();
    push(sim, &pump, "ada", &Arc::default(), envelope(None, QUESTION));
    let at = thread(sim, disk);
    sim.crash();
    drop(pump);
    (start(), at)
}

#[test]
fn a_restart_keeps_what_was_parked() {
    let sim = Sim::new(1);
    let disk = Disk::new(&sim);
    let (pump, at) = started_again(&sim, &disk);
    sim.rest().unwrap();
    assert_eq!(lines(&sim, &disk), ["ada > keeper: question"], "it starts nothing by itself");
    let ear = Arc::new(Ear::default());
    push(&sim, &pump, "ops", &ear, envelope(Some(&at), ENOUGH));
    let story = lines(&sim, &disk);
    assert!(story.contains(&"keeper > ada: answer".to_owned()), "{story:#?} {:?}", ear.heard());
}

#[test]
fn what_comes_right_at_a_start_finds_what_was_parked() {
    for seed in 1..=20 {
        let sim = Sim::new(seed);
        let disk = Disk::new(&sim);
        let (pump, at) = started_again(&sim, &disk);
        push(&sim, &pump, "ops", &Arc::default(), envelope(Some(&at), ENOUGH));
        let story = lines(&sim, &disk);
        assert!(story.contains(&"keeper > ada: answer".to_owned()), "{seed}: {story:#?}");
    }
}

#[test]
fn a_call_of_a_listener_with_unfinished_work_runs_in_a_thread_of_its_own() {
    let sim = Sim::new(1);
    let disk = Disk::new(&sim);
    let caller = Listener::new("caller")
        .on(async |_: Down| Request::new(To("keeper", Question { n: 1 })))
        .on_any_reply(async |_: Element| {});
    let plugins = (keeper(), caller, disk.log());
    let pump = pumphouse::builder().with(plugins).build().unwrap().start_on(&sim);
    push(&sim, &pump, "ada", &Arc::default(), envelope(None, QUESTION));
    let at = thread(&sim, &disk);
    let down = r#"<down xmlns="urn:test"><n>1</n></down>"#;
    push(&sim, &pump, "ada", &Arc::default(), envelope(Some(&at), down));
    let story = lines(&sim, &disk);
    assert!(story.contains(&"core > caller: thread-spawned".to_owned()), "{story:#?}");
    assert!(!story.contains(&"caller > keeper: question".to_owned()), "{story:#?}");
}

/// The number of a question that waits until the work at hand is done.
const WAITS: u64 = 9;

/// Asks `silent`, and keeps the questions until it hears that nothing is under way.
fn patient() -> Listener {
    fn keep(all: &[Entry]) -> Park {
        let is_other = |it: &&Entry| it.decode::<Question>().is_ok_and(|it| it.n == WAITS);
        let (others, work): (Vec<&Entry>, Vec<&Entry>) = all.iter().partition(is_other);
        let numbers = |all: Vec<&Entry>| all.into_iter().map(Entry::seq).collect();
        let is_at_work = !work.is_empty();
        let park = Park::default().work(numbers(work)).others(numbers(others));
        if is_at_work { park.quiet() } else { park }
    }
    async fn ask(message: Message, queue: Queue, it: Question) -> (Option<To<Hint>>, Park) {
        let hint = (it.n != WAITS).then_some(To("silent", Hint));
        (hint, keep(&questions(&message, &queue)))
    }
    async fn quiet(message: Message, queue: Queue, _: NothingUnderWay) -> Park {
        keep(&questions(&message, &queue))
    }
    Listener::new("asker").on(ask).on_reply(quiet).serial().idempotent()
}

/// Takes a while, and answers nothing.
fn silent(sim: &Sim) -> Listener {
    async fn silent(State(sim): State<Sim>, _: Hint) {
        sim.sleep(Duration::from_secs(5)).await;
    }
    Listener::with_state("silent", sim.clone()).on(silent).idempotent().stateless()
}

/// Does something an hour later, and has the patient one answer its question then.
fn slow() -> Listener {
    async fn later(clock: Clock, it: Down) -> (Option<To<Question>>, Later<Enough>) {
        let question = (it.n == WAITS).then_some(To("asker", Question { n: it.n }));
        (question, Later::at(clock.now_us() + 3_600_000_000, Enough))
    }
    Listener::new("slow").on(later).on(async |_: Enough| {}).idempotent().grant::<Timers>()
}

/// Does what is asked of it a minute later, and takes a while to say so.
fn late(sim: &Sim) -> Listener {
    async fn late(State(sim): State<Sim>, clock: Clock, _: Hint) -> Later<Answer> {
        sim.sleep(Duration::from_secs(5)).await;
        Later::at(clock.now_us() + 60_000_000, Answer { n: 0 })
    }
    let late = Listener::with_state("silent", sim.clone()).on(late);
    late.on(async |_: Answer| {}).idempotent().grant::<Timers>().stateless()
}

/// Pushes `down`, then so many questions, and looks whether the patient one heard of quiet at the
/// times that are named, in seconds; the pump stops after the first second if it `stops`.
fn hears_quiet(
    stops: bool,
    (down, questions): (u64, u64),
    times: &[u64],
    silent: fn(&Sim) -> Listener,
) -> Vec<bool> {
    let sim = Sim::new(1);
    let disk = Disk::new(&sim);
    let start = || {
        let plugins = (patient(), slow(), silent(&sim), disk.log());
        pumphouse::builder().with(plugins).build().unwrap().start_on(&sim)
    };
    let mut pump = start();
    let ada = pump.speaking_as(Identity { name: "ada".into(), operator: true });
    let told = sim.run(ada.tell(Down { n: down })).unwrap().unwrap();
    let ada = ada.in_thread(&told.thread);
    for n in 0..questions {
        sim.run(sim.sleep(Duration::from_millis(100))).unwrap();
        sim.run(ada.tell(Question { n })).unwrap().unwrap();
    }
    drop(ada);
    let until = |seconds: u64| {
        let at_us = Sim::BEGINS_US + seconds * 1_000_000;
        sim.run(sim.sleep(Duration::from_micros(at_us - sim.now_us()))).unwrap();
    };
    until(1);
    if stops {
        sim.crash();
        pump = start();
    }
    let mut found = Vec::new();
    for seconds in times {
        until(*seconds);
        let story = lines(&sim, &disk);
        found.push(story.iter().any(|it| it == "core > asker: nothing-under-way"));
    }
    drop(pump);
    found
}

#[test]
fn what_another_push_has_timed_does_not_count_as_under_way() {
    for stops in [false, true] {
        let found = hears_quiet(stops, (1, 1), &[4, 60], silent);
        assert_eq!(found, [false, true], "stopped: {stops}");
    }
}

#[test]
fn what_the_push_of_a_message_that_waits_has_timed_does_not_count_as_under_way() {
    for stops in [false, true] {
        let found = hears_quiet(stops, (WAITS, 1), &[4, 60], silent);
        assert_eq!(found, [false, true], "stopped: {stops}");
    }
}

#[test]
fn what_a_push_of_the_work_has_timed_counts_as_under_way_also_if_a_stop_came_before() {
    for stops in [false, true] {
        for questions in [1, 2] {
            let found = hears_quiet(stops, (1, questions), &[50, 90], late);
            assert_eq!(found, [false, true], "stopped: {stops}, {questions} questions");
        }
    }
}

#[test]
fn a_listener_hears_once_that_nothing_it_waits_for_is_under_way() {
    let sim = Sim::new(1);
    let disk = Disk::new(&sim);
    let pump = pumphouse::builder().with((patient(), silent(&sim), disk.log())).build().unwrap();
    let pump = pump.start_on(&sim);
    push(&sim, &pump, "ada", &Arc::default(), envelope(None, QUESTION));
    let story = lines(&sim, &disk);
    let expected = ["ada > *: question", "asker > silent: hint", "core > asker: nothing-under-way"];
    assert_eq!(story[1..], expected[1..], "{story:#?}");
}

#[test]
fn an_answer_that_says_so_fails_or_cancels_the_thread_that_it_ends() {
    for (outcome, status) in [
        (Outcome::Completed, "completed"),
        (Outcome::Failed, "failed"),
        (Outcome::Cancelled, "cancelled"),
    ] {
        let sim = Sim::new(1);
        let disk = Disk::new(&sim);
        async fn work(
            State(outcome): State<Outcome>,
            message: Message,
            it: Question,
        ) -> ToAskers<Answer> {
            ToAskers::new(vec![message.0], Answer { n: it.n }).outcome(outcome)
        }
        let worker = Listener::with_state("worker", outcome).on(work).own_thread().stateless();
        let caller = Listener::new("caller")
            .on(async |_: Down| To("worker", Question { n: 1 }))
            .on_any_reply(async |_: Element| {});
        let pump = pumphouse::builder().with((worker, caller, disk.log())).build().unwrap();
        let pump = pump.start_on(&sim);
        let down = r#"<down xmlns="urn:test"><n>1</n></down>"#;
        push(&sim, &pump, "ada", &Arc::default(), envelope(None, down));
        let all = sim.run(disk.kept().tail(0, 100)).unwrap().unwrap();
        let result = all.iter().find(|it| it.name.local() == "thread-result").unwrap();
        let body = String::from_utf8_lossy(&result.body).into_owned();
        assert!(body.contains(&format!("status=\"{status}\"")), "{body}");
    }
}
