//! The context `Asked` tells the handler of a reply which message was being handled when the
//! request was sent.

use std::sync::Arc;

use pumphouse::engine::{Followed, Tokio};
use pumphouse::listener::{Context, FromContext, Need};
use pumphouse::listeners::thread::{InitialPayload, SpawnThread, thread};
use pumphouse::log::{Durability, Log, SqliteLog};
use pumphouse::prelude::*;
use pumphouse::wire::core::{ThreadResult, ThreadSpawned};

use super::crash::{again, crash};
use super::{Answer, Down, Question, start};

/// Answers what was asked at the very start.
#[derive(Clone, Debug, PartialEq, Payload)]
#[payload(ns = "urn:test")]
struct Go;

/// Adds one.
fn adder() -> Listener {
    Listener::new("adder").on(async |Question { n }: Question| Answer { n: n + 1 })
}

async fn ask(Down { n }: Down) -> To<Question> {
    To("adder", Question { n })
}

async fn answered(asked: Asked, it: Answer) -> Reply<Answer> {
    Reply(asked.0, it)
}

/// Has the adder count, for whoever asks.
fn clerk() -> Listener {
    Listener::new("clerk").on(ask).on_reply(answered)
}

/// Two ask at once, in one thread.
async fn two(pump: &Pump) -> (Answer, Answer) {
    let first = pump.tell(Question { n: 0 }).await.unwrap();
    let pump = pump.in_thread(&first.thread);
    let (one, two) = (pump.ask::<Answer>(Down { n: 1 }), pump.ask::<Answer>(Down { n: 10 }));
    let (one, two) = tokio::join!(one, two);
    (one.unwrap(), two.unwrap())
}

#[tokio::test]
async fn of_two_askers_each_gets_their_own_answer() {
    let kinds: [fn(Listener) -> Listener; 6] = [
        |it| it,
        |it| it.serial(),
        |it| it.inline(),
        |it| it.blocking(),
        |it| it.pure(),
        |it| it.inline().pure(),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (number, kind) in kinds.into_iter().enumerate() {
        let file = folder.path().join(format!("{number}.db"));
        let log = Arc::new(SqliteLog::open(&file, Durability::Normal).unwrap());
        let pump = start((kind(adder()), kind(clerk()), move |it: &mut Builder| it.log(log)));
        assert_eq!(two(&pump).await, (Answer { n: 2 }, Answer { n: 11 }), "{number}");
        pump.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn a_fault_and_a_word_of_the_pump_are_replies_too() {
    let ask = async |Down { n }: Down| Request::new(To("rude", Question { n }));
    let huh = async |asked: Asked, huh: Huh| {
        let Down { n } = asked.decode()?;
        Ok::<_, Fault>(Reply(asked.0, Answer { n: n + huh.code[1..].parse::<u64>().unwrap() }))
    };
    let done = async |asked: Asked, _: Done| {
        let Down { n } = asked.decode()?;
        Ok::<_, Fault>(Reply(asked.0, Answer { n: n + 1_000 }))
    };
    let rude = async |Question { n }: Question| assert_ne!(n, 1, "one");
    let clerk = Listener::new("clerk").on(ask).on_reply(huh).on_reply(done);
    let pump = start((Listener::new("rude").on(rude), clerk));
    let first = pump.tell(Down { n: 0 }).await.unwrap();
    let pump = pump.in_thread(&first.thread);
    assert_eq!(pump.ask::<Answer>(Down { n: 1 }).await.unwrap(), Answer { n: 1 + 15 });
    assert_eq!(pump.ask::<Answer>(Down { n: 2 }).await.unwrap(), Answer { n: 2 + 1_000 });
}

#[tokio::test]
async fn a_request_that_was_refused_was_asked_for_by_the_message_at_hand() {
    let huh = async |asked: Asked, _: Huh| Reply(asked.0, Answer { n: 0 });
    let clerk = Listener::new("clerk").on(ask).on_reply(huh).peers(["deaf"]);
    let deaf = Listener::new("deaf").on_reply(async |_: Answer| {});
    let pump = start((adder(), clerk, deaf));
    let first = pump.tell(Question { n: 0 }).await.unwrap();
    let pump = pump.in_thread(&first.thread);
    assert_eq!(pump.ask::<Answer>(Down { n: 1 }).await.unwrap(), Answer { n: 0 });
}

/// Has `thread` open a thread.
async fn has_opened(Down { n }: Down) -> Result<To<SpawnThread>, Fault> {
    let initial_payload = InitialPayload { payload: Question { n }.encode()? };
    Ok(To("thread", SpawnThread { metadata: None, suggested_sub_id: None, initial_payload }))
}

/// What came of a thread, for whoever asked for it.
async fn result(asked: Asked, it: ThreadResult) -> Result<Reply<Answer>, Fault> {
    let payload = it.payload.ok_or_else(Fault::undeliverable)?;
    Ok(Reply(asked.0, Answer::decode(&payload)?))
}

#[tokio::test]
async fn what_comes_of_a_thread_was_asked_by_the_message_that_opened_it() {
    let call = Listener::new("clerk").on(ask).on_reply(result);
    let opens = async |Down { n }: Down| Spawn::new(Question { n });
    let opens = Listener::new("clerk").on(opens).on_reply(result).grant::<Threads>();
    let has_opened = Listener::new("clerk").on(has_opened).on_reply(result);
    for clerk in [call, opens, has_opened] {
        let pump = start((adder().own_thread(), clerk, thread()));
        assert_eq!(two(&pump).await, (Answer { n: 2 }, Answer { n: 11 }));
    }
}

#[tokio::test]
async fn a_thread_that_was_opened_was_asked_for_by_the_same_message() {
    let spawned = async |asked: Asked, _: ThreadSpawned| {
        let Down { n } = asked.decode()?;
        Ok::<_, Fault>(Reply(asked.0, Answer { n }))
    };
    let opens = async |Down { n }: Down| Spawn::new(Question { n });
    let opens = Listener::new("clerk").on(opens).on_reply(spawned).grant::<Threads>();
    let has_opened = Listener::new("clerk").on(has_opened).on_reply(spawned);
    for clerk in [opens, has_opened] {
        let pump = start((adder(), clerk, thread()));
        assert_eq!(two(&pump).await, (Answer { n: 1 }, Answer { n: 10 }));
    }
}

#[tokio::test]
async fn a_fork_knows_who_asked_before_it() {
    /// Answers the second entry of the thread.
    async fn late(history: History, out: Outbox<Answer>, _: Go) -> Result<(), Fault> {
        out.reply_to(&history.read(1, 1).await?[0], Answer { n: 9 }).await
    }
    let adder = Listener::new("adder").on(async |_: Question| {}).on(late);
    let pump = start((adder, clerk()));
    let first = pump.tell(Down { n: 1 }).await.unwrap();
    crate::eventually(async || {
        pump.log().thread(&first.thread).await.unwrap().unwrap().last_seq >= 2
    })
    .await;
    let request = EntryId::new(&first.thread, 2);
    let fork = pump.fork_at(&request).tell(Go).await.unwrap();
    let mut follow = pump.follow_log(&fork.thread, fork.seq);
    loop {
        let Followed::Entry(it) = follow.next().await.unwrap() else { continue };
        if it.from() == "clerk" {
            assert_eq!((it.reply_to(), it.to()), (Some(&first), Some("console")));
            return;
        }
    }
}

/// Whom the clerk answered what, in order.
async fn told(log: &Arc<dyn Log>, thread: &ThreadId) -> Vec<(u64, u64)> {
    let all = log.read(thread, 0, u64::MAX, 1_000).await.unwrap();
    let entries = all.iter().map(|it| <Entry as From<&pumphouse::log::Entry>>::from(it));
    let said = entries.filter(|it| it.from() == "clerk" && it.is::<Answer>());
    let mut told: Vec<_> =
        said.map(|it| (it.reply_to().unwrap().seq, it.decode::<Answer>().unwrap().n)).collect();
    told.sort_unstable();
    told
}

#[test]
fn a_stop_between_request_and_reply_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pumphouse.db");
    let adder = || {
        let add = async |Attempt(attempt): Attempt, Question { n }: Question| {
            if attempt == 1 {
                std::future::pending::<()>().await;
            }
            Answer { n: n + 1 }
        };
        Listener::new("adder").on(add).idempotent()
    };
    let thread = crash(&file, (adder(), clerk()), async |pump| {
        let first = pump.tell(Down { n: 1 }).await.unwrap();
        pump.in_thread(&first.thread).tell(Down { n: 10 }).await.unwrap();
        let mut follow = pump.follow(&first.thread, 0);
        for _ in 0..4 {
            follow.next().await.unwrap();
        }
        first.thread
    });
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let pump = again(&file, (adder(), clerk())).await;
        let mut follow = pump.follow(&thread, 0);
        for _ in 0..8 {
            follow.next().await.unwrap();
        }
        let asked = pump.log().read(&thread, 0, u64::MAX, 100).await.unwrap();
        let asked: Vec<u64> =
            asked.iter().filter(|it| &*it.from == "console").map(|it| it.id.seq).collect();
        assert_eq!(told(pump.log(), &thread).await, [(asked[0], 2), (asked[1], 11)]);
    });
}

#[tokio::test]
async fn a_replay_reads_the_same() {
    let all = || (adder().pure(), clerk().pure());
    let pump = start(all());
    two(&pump).await;
    pump.shutdown().await.unwrap();
    let plan = pumphouse::builder().with(all()).build().unwrap();
    let thread = super::only_thread(&pump).await;
    let replayed = plan.replay(pump.log(), &thread, &Tokio::current()).await.unwrap();
    assert_eq!((replayed.difference, replayed.skipped), (None, Vec::new()));
    assert_eq!(replayed.compared.get("clerk"), Some(&4));
}

#[test]
fn what_a_listener_owns_was_not_asked_for_by_a_message_of_its_own() {
    let wrong = Listener::new("a").on(async |asked: Asked, it: Answer| Reply(asked.0, it));
    let complaints = pumphouse::builder().with(wrong).build().unwrap_err();
    let said = "a: it takes Asked with {urn:test}answer, which it owns: take Option<Asked>, or \
                use .on_reply(…)";
    assert_eq!(complaints.all(), [said]);
}

#[tokio::test]
async fn a_handler_of_both_takes_it_where_it_is_there() {
    let both = async |asked: Option<Asked>, Answer { n }: Answer| match asked {
        Some(asked) => (Some(Reply(asked.0, Answer { n })), None),
        None => (None, Some(Down { n })),
    };
    let clerk = Listener::new("clerk").on(ask).on(both);
    let pump = start((adder(), clerk));
    assert_eq!(pump.ask::<Down>(Answer { n: 3 }).await.unwrap(), Down { n: 3 });
    assert_eq!(two(&pump).await, (Answer { n: 2 }, Answer { n: 11 }));
}

/// An argument that is made of an `Asked`, and says so or not.
struct Hidden<const SAYS_SO: bool>;

impl<S, const SAYS_SO: bool> FromContext<S> for Hidden<SAYS_SO> {
    fn needs() -> Vec<Need> {
        if SAYS_SO { vec![Need::Asked] } else { Vec::new() }
    }

    fn from_context(it: &Context<S>) -> Result<Self, Fault> {
        Asked::from_context(it).map(|_| Hidden)
    }
}

#[tokio::test]
async fn a_message_that_answers_nothing_has_none() {
    let says_so = Listener::new("a").on(async |_: Hidden<true>, _: Question| {});
    let hides = Listener::new("a").on(async |_: Hidden<false>, _: Question| {});
    for (listener, text) in [
        (says_so, "/1 answers nothing that a sent"),
        (hides, "a takes an Asked that its needs() don't tell of"),
    ] {
        let error = start(listener).ask::<Done>(Question { n: 1 }).await.unwrap_err();
        let AskError::Failed(huh) = error else { panic!("{error}") };
        assert_eq!(huh.code, "P0026");
        assert!(huh.message.ends_with(text), "{}", huh.message);
    }
}
