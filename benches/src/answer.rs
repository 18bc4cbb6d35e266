//! Measures the time from a push to its answer. The client sends each push after the answer to the
//! previous one.

use pumphouse::client::{self, Client, Incoming, Push};
use pumphouse::clock;
use pumphouse::listener::Listener;

use crate::measure::Waits;
use crate::output::Failure;
use crate::pump::{Served, Sink};
use crate::row::Row;
use crate::sitting::{DURABILITIES, Sitting};

const ANSWER: &str = "push to answer, one at a time";

pub(crate) async fn rows(sitting: &mut Sitting) -> Result<(), Failure> {
    for durability in DURABILITIES {
        if sitting.wants(ANSWER, Some(durability)) {
            let echo = Listener::new("sink").on(async |it: Sink| it).inline().pure();
            let served = Served::start(sitting.folder(), "answer", durability, echo).await?;
            let waits = waits(&served, sitting.times(3_000.0)).await?;
            served.stop().await?;
            sitting.show(&Row::new(ANSWER, Some(durability)).waits(&waits))?;
        }
    }
    Ok(())
}

async fn waits(served: &Served, count: u64) -> Result<Waits, Failure> {
    let wrong = |error: client::Error| Failure::Wrong(error.to_string());
    let mut client = Client::connect(served.address).await.map_err(wrong)?;
    let threads = served.threads().await?;
    let push = Push::of(&Sink { a: 1, text: "x".repeat(60) });
    let push = push.map_err(|fault| Failure::Wrong(fault.to_string()))?.in_thread(&threads[0]);
    let mut waits = Vec::new();
    for _ in 0..count {
        let since = clock::now_us();
        client.push(&push);
        client.flush().await.map_err(wrong)?;
        loop {
            match client.recv().await.map_err(wrong)? {
                Some(Incoming::Message(_)) => break,
                Some(Incoming::Accepted { .. }) => {}
                other => return Err(Failure::Wrong(format!("{other:?} came instead"))),
            }
        }
        waits.push(clock::now_us().saturating_sub(since));
    }
    Ok(Waits::of(waits))
}
