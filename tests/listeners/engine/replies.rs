//! Which sender or listener gets an answer, an error or another emission.

use pumphouse::log::Flags;
use pumphouse::prelude::*;
use pumphouse::sim::{Disk, Sim};

use super::{Answer, Down, Question, only_thread, start, story};

async fn answer(Question { n }: Question) -> Answer {
    Answer { n: n + 1 }
}

#[tokio::test]
async fn an_answer_goes_to_whoever_asked() {
    let pump = start(Listener::new("a").on(answer));
    assert_eq!(pump.ask::<Answer>(Question { n: 1 }).await.unwrap(), Answer { n: 2 });
    let thread = only_thread(&pump).await;
    assert_eq!(story(pump.log(), &thread).await, ["console > a: question", "a > console: answer"]);
}

#[tokio::test]
async fn a_thread_goes_on_where_it_is_named() {
    let pump = start(Listener::new("a").on(answer));
    let first = pump.tell(Question { n: 1 }).await.unwrap();
    let pump = pump.in_thread(&first.thread);
    pump.ask::<Answer>(Question { n: 2 }).await.unwrap();
    assert_eq!(story(pump.log(), &first.thread).await.len(), 4);
}

#[tokio::test]
async fn a_chain_of_messages_to_oneself_is_recorded_once_each() {
    let down = async |Down { n }: Down| (n > 1).then(|| Again(Down { n: n - 1 }));
    let pump = start(Listener::new("chain").on(down).inline());
    assert!(matches!(pump.ask::<Done>(Down { n: 30 }).await, Ok(Done {})));
    let thread = only_thread(&pump).await;
    let story = story(pump.log(), &thread).await;
    assert_eq!(story.len(), 31);
    assert_eq!(story[0], "console > chain: down");
    assert!(story[1..30].iter().all(|it| it == "chain > chain: down"), "{story:?}");
    assert_eq!(story[30], "core > console: done");
}

async fn told(out: Outbox<Answer>, history: History, it: Answer) -> Result<(), Fault> {
    let first = history.all().await?.swap_remove(0);
    out.reply_to(&first, it).await
}

#[tokio::test]
async fn a_listener_calls_another_and_takes_the_reply() {
    let ask = async |Down { n }: Down| To("a", Question { n });
    let caller = Listener::new("b").on(ask).on_reply(told);
    let pump = start((Listener::new("a").on(answer), caller));
    assert_eq!(pump.ask::<Answer>(Down { n: 7 }).await.unwrap(), Answer { n: 8 });
    let story = story(pump.log(), &only_thread(&pump).await).await;
    let told = ["console > b: down", "b > a: question", "a > b: answer", "b > console: answer"];
    assert_eq!(story, told);
}

#[tokio::test]
async fn an_answer_that_is_invalid_is_told_to_whom_it_was_for() {
    /// A number of one digit.
    #[derive(Debug, Payload)]
    #[payload(ns = "urn:test")]
    struct Narrow {
        #[payload(max = 9)]
        digit: u8,
    }
    let ask = async |Down { n }: Down| To("a", Question { n });
    let told = async |history: History, _: Answer| {
        let first = history.all().await?.swap_remove(0);
        Ok::<_, Fault>(Reply(first, Narrow { digit: 10 }))
    };
    let caller = Listener::new("b").on(ask).on_reply(told);
    let pump = start((Listener::new("a").on(answer), caller));
    let error = pump.ask::<Narrow>(Down { n: 7 }).await.unwrap_err();
    let story = story(pump.log(), &only_thread(&pump).await).await;
    let told = ["console > b: down", "b > a: question", "a > b: answer", "core > console: huh"];
    assert_eq!(story, told);
    assert!(matches!(&error, AskError::Failed(huh) if huh.code == "P0017"), "{error:?}");
}

#[tokio::test]
async fn any_reply_is_taken_as_an_element_and_is_no_route() {
    let ask = async |_: Down| To("a".to_owned(), Question { n: 1 });
    let any = async |it: Element| To("c", Down { n: it.local().len() as u64 });
    let end = async |_: Down| {};
    let pump = start((
        Listener::new("a").on(answer),
        Listener::new("b").on(ask).on_any_reply(any).shared(),
        Listener::new("c").on(end).shared(),
    ));
    let first = pump.to("b").tell(Down { n: 0 }).await.unwrap();
    pump.in_thread(&first.thread).to("c").ask::<Done>(Down { n: 0 }).await.unwrap();
    pump.shutdown().await.unwrap();
    let story = story(pump.log(), &first.thread).await;
    assert!(story.contains(&"b > c: down".to_owned()), "{story:?}");
    let refused = start(Listener::new("a").on_any_reply(async |_: Element| {}));
    assert!(refused.tell(Question { n: 1 }).await.is_err());
}

#[tokio::test]
async fn shared_listeners_all_get_it() {
    let one = async |Question { n }: Question| Answer { n };
    let both = (Listener::new("a").on(one).shared(), Listener::new("b").on(one).shared());
    let pump = start(both);
    pump.ask::<Answer>(Question { n: 1 }).await.unwrap();
    pump.shutdown().await.unwrap();
    let mut story = story(pump.log(), &only_thread(&pump).await).await;
    story.sort();
    let told = ["a > console: answer", "b > console: answer", "console > *: question"];
    assert_eq!(story, told);
}

#[tokio::test]
async fn nothing_to_answer_is_answered_with_done() {
    let pump = start(Listener::new("a").on(async |_: Question| {}));
    assert!(matches!(pump.ask::<Done>(Question { n: 1 }).await, Ok(Done {})));
    let other = pump.ask::<Answer>(Question { n: 1 }).await;
    assert!(matches!(other, Err(AskError::Unanswered)), "{other:?}");
}

#[tokio::test]
async fn another_answer_is_an_error_that_has_it() {
    let pump = start(Listener::new("a").on(async |Question { n }: Question| Down { n }));
    let error = pump.ask::<Answer>(Question { n: 4 }).await.unwrap_err();
    assert_eq!(error.other::<Down>(), Some(Down { n: 4 }));
    assert_eq!(error.other::<Answer>(), None);
}

#[tokio::test]
async fn what_nobody_takes_is_refused() {
    let pump = start(Listener::new("a").on(answer));
    let fault = pump.tell(Down { n: 1 }).await.unwrap_err();
    assert_eq!(fault.code, pumphouse::wire::Code::Undeliverable);
    let fault = pump.to("nobody").tell(Question { n: 1 }).await.unwrap_err();
    assert_eq!(fault.code, pumphouse::wire::Code::Undeliverable);
}

#[tokio::test]
async fn a_peer_that_is_not_allowed_gets_nothing_and_the_sender_learns_it() {
    let ask = async |_: Down| To("a", Question { n: 1 });
    let huh = async |it: Huh| To("b", Answer { n: it.code[1..].parse().unwrap() });
    let b = Listener::new("b").on(ask).on_reply(huh).on(async |_: Answer| {}).peers(["c"]);
    let c = Listener::new("c").on_reply(async |_: Answer| {});
    let pump = start((Listener::new("a").on(answer), b, c));
    let first = pump.tell(Down { n: 1 }).await.unwrap();
    pump.shutdown().await.unwrap();
    let story = story(pump.log(), &first.thread).await;
    let told = ["console > b: down", "b > a: question refused", "core > b: huh", "b > b: answer"];
    assert_eq!(story[..4], told);
    // It made nothing of it, so whoever asked learns that nothing comes.
    assert_eq!(story[4..], ["core > console: huh"]);
}

#[tokio::test]
async fn a_reserved_payload_is_forged_in_vain() {
    let forge = async |_: Question| {
        let bytes = r#"<done xmlns="https://xml-pipeline.org/ns/core/v1"></done>"#;
        Element::from_canonical(bytes.into()).unwrap()
    };
    let pump = start(Listener::new("a").on(forge));
    let error = pump.ask::<Done>(Question { n: 1 }).await.unwrap_err();
    assert!(matches!(error, AskError::Failed(huh) if huh.code == "P0017"));
    let story = story(pump.log(), &only_thread(&pump).await).await;
    let told =
        ["console > a: question", "a > *: done refused", "core > a: huh", "core > console: huh"];
    assert_eq!(story, told);
    let granted = start(Listener::new("a").on(forge).grant::<EmitCore>());
    assert!(granted.ask::<Done>(Question { n: 1 }).await.is_ok());
    // One may be granted and no other.
    let granted = start(Listener::new("a").on(forge).may_emit::<Done>());
    assert!(granted.ask::<Done>(Question { n: 1 }).await.is_ok());
    let other = start(Listener::new("a").on(forge).may_emit::<Huh>());
    assert!(other.ask::<Done>(Question { n: 1 }).await.is_err());
}

#[tokio::test]
async fn a_huh_that_makes_a_huh_does_not_go_on_for_ever() {
    let wrong = async |_: Question| To("nobody", Question { n: 1 });
    let again = async |_: Huh| To("nobody", Question { n: 1 });
    let pump = start(Listener::new("a").on(wrong).on_reply(again));
    let first = pump.tell(Question { n: 1 }).await.unwrap();
    pump.shutdown().await.unwrap();
    assert_eq!(story(pump.log(), &first.thread).await.len(), 6);
}

#[tokio::test]
async fn nobody_speaks_under_a_listeners_name() {
    let pump = start(Listener::new("a").on(answer));
    for name in ["a", "core"] {
        let identity = pumphouse::engine::Identity { name: name.into(), operator: true };
        let fault = pump.speaking_as(identity).tell(Question { n: 1 }).await.unwrap_err();
        assert_eq!(fault.code, pumphouse::wire::Code::ForgedSender, "{name}");
    }
}

#[tokio::test]
async fn a_note_is_recorded_for_oneself_or_another_and_wakes_nobody() {
    let ask = async |_: Down| (Note(Answer { n: 1 }), Note(To("a", Question { n: 2 })));
    let caller = Listener::new("b").on(ask);
    let pump = start((Listener::new("a").on(answer), caller));
    assert!(matches!(pump.ask::<Done>(Down { n: 7 }).await, Ok(Done {})));
    let story = story(pump.log(), &only_thread(&pump).await).await;
    let told = ["console > b: down", "b > b: answer", "b > a: question", "core > console: done"];
    assert_eq!(story, told);
}

#[tokio::test]
async fn a_note_reaches_no_stranger_and_no_listener_that_is_not_there() {
    let ask = async |_: Down| {
        (Note(To("a", Question { n: 2 })), Note(To("nobody".to_owned(), Question { n: 3 })))
    };
    let caller = Listener::new("b").on(ask).peers(["c"]);
    let c = Listener::new("c").on(async |it: Answer| it);
    let pump = start((Listener::new("a").on(answer), caller, c));
    assert!(matches!(pump.ask::<Done>(Down { n: 7 }).await, Ok(Done {})));
    let story = story(pump.log(), &only_thread(&pump).await).await;
    let told = ["b > a: question refused", "core > b: huh"];
    assert_eq!(story[1..3], told);
    let told = ["b > nobody: question refused", "core > b: huh"];
    assert_eq!(story[3..5], told);
}

#[tokio::test]
async fn what_is_partial_reaches_whoever_asked_and_the_thread_goes_on() {
    let down = async |Down { n }: Down| match n {
        0 => (None, None, Some(Final(Answer { n: 0 }))),
        n => (Some(Partial(Answer { n })), Some(Again(Down { n: n - 1 })), None),
    };
    let pump = start(Listener::new("chain").on(down));
    let first: Answer = pump.ask(Down { n: 2 }).await.unwrap();
    assert_eq!(first, Answer { n: 2 });
    let thread = only_thread(&pump).await;
    let mut follow = pump.follow(&thread, 0);
    for _ in 0..6 {
        follow.next().await.unwrap();
    }
    let told = [
        "console > chain: down",
        "chain > console: answer",
        "chain > chain: down",
        "chain > console: answer",
        "chain > chain: down",
        "chain > console: answer",
    ];
    assert_eq!(story(pump.log(), &thread).await, told);
}

#[tokio::test]
async fn a_request_is_answered_with_done_where_its_handler_emits_nothing() {
    let ask = async |message: Message, Down { n }: Down| {
        Request::new(To("a", Question { n })).key(format!("<{}>", message.seq()))
    };
    let keep = async |message: Message, _: Question| {
        assert_eq!(message.key().as_deref(), Some("<1>"));
    };
    let told = async |history: History, _: Done| -> Result<Reply<Answer>, Fault> {
        Ok(Reply(history.all().await?.swap_remove(0), Answer { n: 9 }))
    };
    let caller = Listener::new("b").on(ask).on_reply(told);
    let pump = start((Listener::new("a").on(keep), caller));
    assert_eq!(pump.ask::<Answer>(Down { n: 7 }).await.unwrap(), Answer { n: 9 });
    let story = story(pump.log(), &only_thread(&pump).await).await;
    let told = ["console > b: down", "b > a: question", "core > b: done", "b > console: answer"];
    assert_eq!(story, told);
}

#[tokio::test]
async fn what_is_returned_as_an_error_says_so_in_the_log() {
    let fail = async |Question { n }: Question| -> Result<Answer, Down> {
        if n == 0 { Err(Down { n }) } else { Ok(Answer { n }) }
    };
    let pump = start(Listener::new("a").on(fail));
    pump.ask::<Answer>(Question { n: 0 }).await.unwrap_err();
    pump.in_thread(&only_thread(&pump).await).ask::<Answer>(Question { n: 1 }).await.unwrap();
    let thread = only_thread(&pump).await;
    let entries = pump.log().read(&thread, 0, u64::MAX, 9).await.unwrap();
    let wrong: Vec<bool> = entries.iter().map(|it| it.flags.contains(Flags::ERROR)).collect();
    assert_eq!(wrong, [false, true, false, false]);
}

#[test]
fn whoever_waits_when_the_log_fails_hears_that() {
    /// Answers, but the disk fails before.
    async fn fails(State(disk): State<Disk>, Question { n }: Question) -> Answer {
        disk.fail();
        Answer { n }
    }
    /// Takes its time.
    async fn waits(State(disk): State<Disk>, Down { .. }: Down) -> Answer {
        disk.fail();
        std::future::pending().await
    }
    for waiting in [false, true] {
        let sim = Sim::new(7);
        let disk = Disk::new(&sim);
        let listener = Listener::with_state("l", disk.clone()).on(fails).on(waits);
        let plan = pumphouse::builder().with((listener.stateless(), disk.log())).build().unwrap();
        let pump = plan.start_on(&sim);
        let asked = async {
            if waiting {
                let late = pump.clone();
                let late = async move { late.ask::<Answer>(Question { n: 1 }).await };
                let (first, _) = futures_util::join!(pump.ask::<Answer>(Down { n: 1 }), late);
                return first;
            }
            pump.ask::<Answer>(Question { n: 1 }).await
        };
        let asked = sim.run(asked).unwrap();
        let Err(AskError::Lost(fault)) = asked else { panic!("{asked:?}") };
        assert_eq!(fault.code, pumphouse::wire::Code::LogFailed);
        let entries = sim.run(disk.kept().tail(0, 10)).unwrap().unwrap();
        assert!(entries.iter().all(|it| *it.from == *"console"), "questions, and no answer");
        assert!(!entries.is_empty(), "what was accepted is there");
    }
}
