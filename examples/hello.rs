//! The whole of it in one page: two payloads, a function, a question.
//!
//! `cargo run --example hello` prints what the listener answers, and why it answered nothing to
//! somebody else's question.

#![expect(clippy::print_stdout, reason = "an example says what it does")]

use pumphouse::prelude::*;

/// Wants to be greeted.
#[derive(Payload)]
#[payload(ns = "https://example.org/ns/greeter/v1")]
struct Greet {
    /// Who wants to be greeted.
    name: String,
}

/// A greeting.
#[derive(Payload)]
#[payload(ns = "https://example.org/ns/greeter/v1")]
struct Greeting {
    /// What is said.
    text: String,
}

async fn greet(Greet { name }: Greet) -> Greeting {
    Greeting { text: format!("Hello, {name}!") }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let greeter = Listener::new("greeter").on(greet).describe("Greets whoever asks.");
    let pump = pumphouse::builder().with(greeter).build()?.start();

    let Greeting { text } = pump.ask(Greet { name: "world".into() }).await?;
    println!("{text}");

    // A payload that nobody takes is refused, with a number and a reason.
    let nobodys = pump.ask::<Greeting>(Greeting { text: "Hello, you!".into() }).await;
    println!("{}", nobodys.err().map(|it| it.to_string()).unwrap_or_default());

    pump.shutdown().await?;
    Ok(())
}
