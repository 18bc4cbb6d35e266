//! Errors that are payloads, state that is a fold, and two listeners that talk.
//!
//! `divider` divides, or answers `by-zero`: an error is an answer like any other. `average` adds
//! up nothing itself: it keeps a fold of the numbers its thread has had, asks `divider` with `To`,
//! takes the quotient with `on_reply`, and only then answers the message that it was `Asked` by.

#![expect(clippy::print_stdout, reason = "an example says what it does")]

use pumphouse::prelude::*;

/// Divides one number by another.
#[derive(Payload)]
#[payload(ns = "https://example.org/ns/calculator/v1")]
struct Divide {
    a: f64,
    b: f64,
}

/// What a division comes to.
#[derive(Debug, Payload)]
#[payload(ns = "https://example.org/ns/calculator/v1")]
struct Quotient {
    value: f64,
}

/// Something was divided by zero.
#[derive(Debug, Payload)]
#[payload(ns = "https://example.org/ns/calculator/v1")]
struct ByZero;

async fn divide(Divide { a, b }: Divide) -> Result<Quotient, ByZero> {
    if b == 0.0 { Err(ByZero) } else { Ok(Quotient { value: a / b }) }
}

/// One more number.
#[derive(Payload)]
#[payload(ns = "https://example.org/ns/average/v1")]
struct Number {
    value: f64,
}

/// Asks for the average of the thread's numbers.
#[derive(Payload)]
#[payload(ns = "https://example.org/ns/average/v1")]
struct Average;

/// The average of the thread's numbers.
#[derive(Debug, Payload)]
#[payload(ns = "https://example.org/ns/average/v1")]
struct Averaged {
    value: f64,
}

/// The average of no numbers.
#[derive(Debug, Payload)]
#[payload(ns = "https://example.org/ns/average/v1")]
struct NoNumbers;

/// What the thread has had: the same entries, the same state, after a restart too.
#[derive(Clone, Debug, Default)]
struct Numbers {
    sum: f64,
    count: u32,
}

impl Apply for Numbers {
    fn apply(&mut self, entry: &Entry) {
        if let Ok(Number { value }) = entry.decode() {
            self.sum += value;
            self.count += 1;
        }
    }
}

/// A number is in the log, and in the fold, before this runs: nothing is left to do.
async fn number(_: Number) {}

async fn average(numbers: Fold<Numbers>, _: Average) -> To<Divide> {
    To("divider", Divide { a: numbers.sum, b: numbers.count.into() })
}

async fn quotient(asked: Asked, Quotient { value }: Quotient) -> Reply<Averaged> {
    Reply(asked.0, Averaged { value })
}

async fn by_zero(asked: Asked, _: ByZero) -> Reply<NoNumbers> {
    Reply(asked.0, NoNumbers)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let divider = Listener::new("divider").on(divide).pure();
    let average = Listener::new("average")
        .fold::<Numbers>()
        .peers(["divider"])
        .on(number)
        .on(average)
        .on_reply(quotient)
        .on_reply(by_zero);
    let pump = pumphouse::builder().with((divider, average)).build()?.start();

    let Quotient { value } = pump.ask(Divide { a: 7.0, b: 2.0 }).await?;
    println!("7 / 2 is {value}");
    if let Err(error) = pump.ask::<Quotient>(Divide { a: 7.0, b: 0.0 }).await {
        println!("7 / 0 is {:?}", error.other::<ByZero>());
    }

    // The numbers of one thread: the first message opens it, the others go into it.
    let first = pump.tell(Number { value: 2.0 }).await?;
    let session = pump.in_thread(&first.thread);
    session.tell(Number { value: 3.0 }).await?;
    session.tell(Number { value: 7.0 }).await?;
    let Averaged { value } = session.ask(Average).await?;
    println!("the average of 2, 3 and 7 is {value}");

    // Two ask before the first is answered, and each is.
    let (one, two) = (session.ask::<Averaged>(Average), session.ask::<Averaged>(Average));
    let (one, number, two) = tokio::join!(one, session.tell(Number { value: 20.0 }), two);
    number?;
    println!("before 20 it is {}, after it {}", one?.value, two?.value);

    if let Err(error) = pump.ask::<Averaged>(Average).await {
        println!("the average of nothing is {:?}", error.other::<NoNumbers>());
    }

    pump.shutdown().await?;
    Ok(())
}
