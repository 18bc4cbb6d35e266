//! A client: it knows an address and some payloads, and nothing of the pump's insides.
//!
//! `cargo run --example push -- 127.0.0.1:8765` talks to a server that runs; without an address
//! it opens a door of its own. It asks, it pushes several at once and reads what becomes of each,
//! and it sends the same message twice under one id, which happens once.

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

    // The same message twice, as after a lost connection: both are accepted as one.
    let push = Push::of(&calculate("2^10"))?.with_fresh_id();
    let first = client.tell(&push).await?;
    let again = client.tell(&push).await?;
    println!("twice is once: {}", first == again);
    if let Some(Incoming::Message(answer)) = client.recv().await? {
        println!("2^10 is {}", answer.decode::<Calculated>()?.value);
    }

    // The rest as it comes; each push has its answer, in the order of the pushes.
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
    Calculate { expression: expression.to_owned() }
}
