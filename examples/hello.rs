//! The smallest complete program: two payloads, a handler, and a question.
//!
//! `cargo run --example hello` prints the listener's answer. It then prints why a payload without a
//! listener was refused.

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
    /// The text of the greeting.
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

    // The pump refuses a payload that no listener takes. The fault has a number and a reason.
    let nobodys = pump.ask::<Greeting>(Greeting { text: "Hello, you!".into() }).await;
    println!("{}", nobodys.err().map(|it| it.to_string()).unwrap_or_default());

    pump.shutdown().await?;
    Ok(())
}
