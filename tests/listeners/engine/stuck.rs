//! Handlers that block their threads and can't be ended.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pumphouse::AskError;
use pumphouse::listener::Effects;
use pumphouse::prelude::*;
use pumphouse::wire::core::Huh;

use super::{Answer, Question};

type Waits = Arc<Mutex<Receiver<()>>>;

/// Blocks on a question of 0 until something comes, and answers any other.
fn blocks() -> (Listener<Waits>, SyncSender<()>) {
    let (to, from) = sync_channel(1);
    let handler = async |State(from): State<Waits>, Question { n }: Question| {
        if n == 0 {
            let _ = from.lock().unwrap().recv();
        }
        Answer { n }
    };
    let listener = Listener::with_state("blocks", Arc::new(Mutex::new(from)));
    (listener.blocking().on(handler).timeout(Duration::from_millis(10)), to)
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    (limits.handlers_max, limits.stuck_handlers_max) = (1, 2);
    limits
}

async fn ask(pump: &Pump, n: u64) -> Result<Answer, Box<Huh>> {
    match pump.ask::<Answer>(Question { n }).await {
        Ok(answer) => Ok(answer),
        Err(AskError::Failed(huh)) => Err(huh),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_place_of_a_handler_that_blocks_is_free_again_and_too_many_refuse() {
    let (listener, release) = blocks();
    let pump = pumphouse::builder().with(listener).limits(limits()).build().unwrap().start();
    for _ in 0..2 {
        assert_eq!(ask(&pump, 0).await.unwrap_err().code, "P0014");
    }
    let refused = ask(&pump, 1).await.unwrap_err();
    assert_eq!((&*refused.code, refused.retry), ("P0032", true));
    let text = "blocks takes no message now: 2 of its handlers ran out of time and still block; \
                the limit is stuck_handlers_max, 2";
    assert_eq!(refused.message, text);
    release.send(()).unwrap();
    let answer = loop {
        match ask(&pump, 1).await {
            Ok(answer) => break answer,
            Err(refused) => assert_eq!(refused.code, "P0032"),
        }
    };
    assert_eq!(answer, Answer { n: 1 });
    drop(release);
    pump.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_handler_that_writes_had_done_at_its_time_is_unknown() {
    let told = async |listener: Listener<Waits>| {
        let pump = pumphouse::builder().with(listener).build().unwrap().start();
        ask(&pump, 0).await.unwrap_err()
    };
    for effects in [Effects::Writes, Effects::Outside] {
        let (listener, _release) = blocks();
        let huh = told(listener.effects(effects)).await;
        assert_eq!((&*huh.code, huh.retry), ("P0014", false));
        assert!(huh.message.ends_with("; what it had done by then is unknown"), "{huh:?}");
        let (listener, _release) = blocks();
        assert!(told(listener.effects(effects).idempotent()).await.retry);
    }
    let (listener, _release) = blocks();
    assert!(told(listener.effects(Effects::Reads)).await.retry);
}
