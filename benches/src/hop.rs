//! Measures hops: messages from a listener to itself. In a hop, the message is emitted, encoded,
//! routed, appended, decoded and handled.

use pumphouse::clock;
use pumphouse::engine::Builder;
use pumphouse::listener::{Again, Listener};
use pumphouse::log::Durability;
use pumphouse::wire::Payload;
use pumphouse::wire::core::Done;

use crate::floors::PASS;
use crate::measure::rate;
use crate::output::Failure;
use crate::pump::started;
use crate::row::{Figure, Row};
use crate::sitting::Sitting;

const HOP: &str = "hop, 1,000 threads";

const THREADS: u64 = 1_000;

/// Counts down by one with each message.
#[derive(Clone, Debug, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/calculator/v1")]
struct Add {
    /// How many messages are left, including this one.
    a: u64,
    /// The number of the chain of messages.
    b: u64,
}

pub(crate) async fn rows(sitting: &mut Sitting) -> Result<(), Failure> {
    let durability = Some(Durability::Memory);
    if !sitting.wants(HOP, durability) {
        return Ok(());
    }
    let pass_per_second = 1e6 / sitting.pass_us();
    let per_second = hops(sitting.times(2_000.0)).await?;
    let ratio = pass_per_second / per_second;
    let row = Row::new(HOP, durability)
        .figure(Figure::PerSecond(per_second))
        .beside(PASS, Figure::PerSecond(pass_per_second), ratio)
        .goal("≤ 2.5× a pass or ≥ 500,000/s", ratio <= 2.5 || per_second >= 500_000.0)
        .goal("≥ 700,000/s", per_second >= 700_000.0);
    sitting.show(&row)
}

/// Returns the hops per second, with `length` hops in each thread.
async fn hops(length: u64) -> Result<f64, Failure> {
    let down = async |Add { a, b }: Add| (a > 1).then(|| Again(Add { a: a - 1, b }));
    let listener = Listener::new("chain").on(down).inline().pure();
    let pump = started(Builder::default().with(listener))?;
    pump.ready().await?;
    let since = clock::now_us();
    let chains = (0..THREADS).map(|b| {
        let pump = pump.clone();
        async move { pump.ask::<Done>(Add { a: length, b }).await }
    });
    for ended in futures_util::future::join_all(chains).await {
        ended.map_err(|error| Failure::Wrong(error.to_string()))?;
    }
    let per_second = rate(length * THREADS, since);
    pump.shutdown().await?;
    Ok(per_second)
}
