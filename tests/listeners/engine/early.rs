//! Handlers that are inline and pure run before their message is in the log. One commit has the
//! message and what such a handler emits.

use pumphouse::listener::{Context, FromContext};
use pumphouse::prelude::*;

use super::{Answer, Question, start, story};

async fn answer(Question { n }: Question) -> Answer {
    Answer { n }
}

/// How many commits a question and its answer take.
async fn commits(listener: Listener) -> u64 {
    let pump = start(listener);
    pump.ask::<Answer>(Question { n: 1 }).await.unwrap();
    let before = pump.log().head().await.unwrap().number;
    let Answer { n } = pump.ask(Question { n: 2 }).await.unwrap();
    assert_eq!(n, 2);
    pump.shutdown().await.unwrap();
    pump.log().head().await.unwrap().number - before
}

#[tokio::test]
async fn what_is_inline_and_pure_is_in_one_commit_with_its_message() {
    let new = || Listener::new("answers").on(answer);
    assert_eq!(commits(new().inline().pure()).await, 1);
    assert_eq!(commits(new().inline()).await, 2);
    assert_eq!(commits(new().pure()).await, 2);
}

/// How often a thread was asked.
#[derive(Clone, Debug, Default)]
struct Asked(u64);

impl Apply for Asked {
    fn apply(&mut self, it: &Entry) {
        self.0 += u64::from(it.name().local() == "question");
    }
}

#[tokio::test]
async fn its_folds_have_what_the_log_does_not_have_yet() {
    let count = async |Fold(asked): Fold<Asked>, _: Question| Answer { n: asked.0 };
    let listener = Listener::new("counts").on(count).inline().pure().fold::<Asked>();
    let pump = start(listener);
    let first = pump.tell(Question { n: 0 }).await.unwrap();
    let here = pump.in_thread(&first.thread);
    for n in 2..20 {
        assert_eq!(here.ask::<Answer>(Question { n }).await.unwrap(), Answer { n });
    }
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn the_first_of_a_thread_is_in_one_commit_with_what_a_fold_says_of_it() {
    let count = async |Fold(asked): Fold<Asked>, _: Question| Answer { n: asked.0 };
    let listener = Listener::new("counts").on(count).inline().pure().fold::<Asked>();
    let pump = start(listener);
    pump.ready().await.unwrap();
    let before = pump.log().head().await.unwrap().number;
    assert_eq!(pump.ask::<Answer>(Question { n: 7 }).await.unwrap(), Answer { n: 1 });
    pump.shutdown().await.unwrap();
    assert_eq!(pump.log().head().await.unwrap().number - before, 1);
}

#[tokio::test]
async fn pushes_of_one_thread_are_each_followed_by_what_they_come_to() {
    let pump = start(Listener::new("answers").on(answer).inline().pure());
    let first = pump.tell(Question { n: 0 }).await.unwrap();
    let here = pump.in_thread(&first.thread);
    let all: Vec<_> = (0..20).map(|n| here.tell(Question { n })).collect();
    for it in all {
        it.await.unwrap();
    }
    pump.shutdown().await.unwrap();
    let story = story(pump.log(), &first.thread).await;
    let (asked, answered): (Vec<_>, Vec<_>) = story.chunks(2).map(|it| (&it[0], &it[1])).unzip();
    assert!(asked.iter().all(|it| it.contains("question")), "{story:?}");
    assert!(answered.iter().all(|it| it.contains("answer")), "{story:?}");
}

#[tokio::test]
async fn what_reads_the_log_waits_until_it_has_the_message() {
    let last = async |history: History,
                      message: Message,
                      Question { n }: Question|
           -> Result<Answer, Fault> {
        let last = history.all().await?.last().map(Entry::seq);
        assert_eq!(last, Some(message.seq()));
        Ok(Answer { n })
    };
    assert_eq!(commits(Listener::new("reads").on(last).inline().pure()).await, 2);
}

/// Reads the log and doesn't say so.
struct Secretly(History);

impl<S> FromContext<S> for Secretly {
    fn from_context(it: &Context<S>) -> Result<Secretly, Fault> {
        Ok(Secretly(History::from_context(it)?))
    }
}

#[tokio::test]
async fn an_argument_that_reads_the_log_has_to_say_so() {
    let read = async |Secretly(history): Secretly, _: Question| -> Result<Answer, Fault> {
        Ok(Answer { n: history.all().await?.len() as u64 })
    };
    let early = start(Listener::new("secret").on(read).inline().pure());
    let fault = early.ask::<Answer>(Question { n: 0 }).await.unwrap_err();
    assert!(fault.to_string().contains("History"), "{fault}");
    // Where it comes after its message anyway, nothing is amiss.
    let later = start(Listener::new("secret").on(read));
    assert_eq!(later.ask::<Answer>(Question { n: 0 }).await.unwrap(), Answer { n: 1 });
}
