//! Shows errors that are payloads, state that is a fold, and two listeners that send messages to
//! each other.
//!
//! The listener `divider` answers `quotient` or `by-zero`. An error is an answer like any other.
//!
//! The listener `average` keeps the sum and the count of its thread's numbers in a fold. It sends
//! `divide` to `divider` with `To`, and handles the answer with `on_reply`. Only then does it
//! answer the question, which it gets as `Asked`.

#![expect(clippy::print_stdout, reason = "an example says what it does")]

use pumphouse::prelude::*;

/// Divides one number by another.
#[derive(Payload)]
#[payload(ns = "https://example.org/ns/calculator/v1")]
struct Divide {
    a: f64,
    b: f64,
}

/// The result of a division.
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

/// A number to be averaged.
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

/// There is no average, since the thread has no numbers.
#[derive(Debug, Payload)]
#[payload(ns = "https://example.org/ns/average/v1")]
struct NoNumbers;

/// The sum and the count of the thread's numbers. The fold is computed from the log, so it survives
/// a restart.
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

/// Does nothing: the fold has the number before this handler runs.
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

    // The first message opens a thread. The next messages go into this thread.
    let first = pump.tell(Number { value: 2.0 }).await?;
    let session = pump.in_thread(&first.thread);
    session.tell(Number { value: 3.0 }).await?;
    session.tell(Number { value: 7.0 }).await?;
    let Averaged { value } = session.ask(Average).await?;
    println!("the average of 2, 3 and 7 is {value}");

    // Two questions are open at the same time, with a number between them. Each gets its own
    // answer.
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
