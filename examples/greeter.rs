//! The program of the tutorial: a listener of its own, with the whole command line of `pumphouse`.
//!
//! `cargo run --example greeter -- run` serves the listener. `docs/tutorial.md` explains the
//! program step by step.

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
    text: String,
}

/// Nobody can be greeted without a name.
#[derive(Payload)]
#[payload(ns = "https://example.org/ns/greeter/v1")]
struct Nameless;

async fn greet(Thread(thread): Thread, Greet { name }: Greet) -> Result<Greeting, Nameless> {
    if name.trim().is_empty() {
        return Err(Nameless);
    }
    Ok(Greeting { text: format!("Hello, {name}! This is {thread}.") })
}

fn main() -> std::process::ExitCode {
    let greeter = Listener::new("greeter").on(greet).describe("Greets whoever asks.");
    pumphouse::cli::main(pumphouse::builder().with(greeter))
}
