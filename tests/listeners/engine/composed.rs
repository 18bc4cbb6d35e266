//! Structs as arguments and results of handlers, with derived `FromContext` and `IntoEmit`.

use pumphouse::listener::{FromContext, IntoEmit};
use pumphouse::prelude::*;

use super::{Answer, Question, only_thread, start, story};

/// How many questions a thread has had.
#[derive(Clone, Debug, Default)]
struct Asks(u64);

impl Apply for Asks {
    fn apply(&mut self, entry: &Entry) {
        self.0 += u64::from(entry.is::<Question>());
    }
}

#[derive(FromContext)]
struct Handling {
    history: History,
    asks: Fold<Asks>,
    bonus: State<u64>,
}

#[derive(Default, IntoEmit)]
struct Emissions {
    last_declared_first: Option<Note<Answer>>,
    answers: Vec<Reply<Answer>>,
    note: Option<Note<Question>>,
}

async fn answer(handling: Handling, _: Question) -> Result<Emissions, Fault> {
    let first = handling.history.read(0, 1).await?;
    let n = handling.asks.0.0 + handling.bonus.0;
    Ok(Emissions {
        note: Some(Note(Question { n })),
        answers: first.into_iter().map(|it| Reply(it, Answer { n: n + 1 })).collect(),
        last_declared_first: Some(Note(Answer { n })),
    })
}

fn clerk() -> Listener {
    Listener::with_state("clerk", 40_u64).on(answer).fold::<Asks>().stateless()
}

#[tokio::test]
async fn the_fields_of_a_struct_are_emitted_in_their_order() {
    let pump = start(clerk());
    assert_eq!(pump.ask::<Answer>(Question { n: 0 }).await.unwrap(), Answer { n: 42 });
    let story = story(pump.log(), &only_thread(&pump).await).await;
    let emitted = ["clerk > clerk: answer", "clerk > console: answer", "clerk > clerk: question"];
    assert_eq!(story[1..], emitted);
}

#[test]
fn a_struct_needs_what_its_fields_need() {
    let without_fold = Listener::with_state("clerk", 40_u64).on(answer).stateless();
    let wrong = pumphouse::builder().with(without_fold).build().err().unwrap();
    assert!(wrong.to_string().contains("clerk: it takes Fold<"), "{wrong}");
}
