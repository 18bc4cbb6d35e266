//! A client of a pump. It knows only the pump's address and some payloads.
//!
//! `cargo run --example push -- 127.0.0.1:8765` connects to a running pump. Without an address, the
//! program starts a pump of its own. The client
//!
//! - asks a question,
//! - sends the same message twice with one client id, so that it is accepted once, and
//! - pushes two messages at once, and reads the outcome of each.

#![expect(clippy::print_stdout, reason = "an example says what it does")]

use pumphouse::client::{Client, Incoming, Push};
use pumphouse::door::{Options, Tcp};
use pumphouse::listeners::tool::calculate::{Calculate, Calculated, Problem};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(address) = std::env::args().nth(1) else {
        let door = Tcp::bind("127.0.0.1:0", Options::default()).await?;
        let address = door.local_addr().to_string();
        let staff = pumphouse::listeners::standard();
        let pump = pumphouse::builder().with((staff, door)).build()?.start();
        talk(&address).await?;
        return Ok(pump.shutdown().await?);
    };
    talk(&address).await
}

async fn talk(address: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut client = Client::connect(address).await?;

    // One question, one answer.
    let question = Push::of(&calculate("6*7"))?;
    let Calculated { value } = client.ask(&question).await?.decode()?;
    println!("6*7 is {value}");

    // Sends the same message twice, as a client does after a lost connection. Both pushes have the
    // same client id, so the pump accepts only one.
    let push = Push::of(&calculate("2^10"))?.with_fresh_id();
    let first = client.tell(&push).await?;
    let again = client.tell(&push).await?;
    println!("twice is once: {}", first == again);
    if let Some(Incoming::Message(answer)) = client.recv().await? {
        println!("2^10 is {}", answer.decode::<Calculated>()?.value);
    }

    // Both pushes are sent before the first answer is read.
    let nobodys = client.push_raw(b"<subtract/>");
    client.push(&Push::of(&calculate("1/0"))?);
    client.finish().await?;
    while let Some(incoming) = client.recv().await? {
        match incoming {
            Incoming::Refused { push, huh } if push == Some(nobodys) => {
                println!("nobody subtracts: {}", huh.code);
            }
            Incoming::Message(it) => println!("1/0 is {:?}", it.decode::<Problem>()?),
            _ => {}
        }
    }
    Ok(())
}

fn calculate(expression: &str) -> Calculate {
    Calculate::new(expression)
}
