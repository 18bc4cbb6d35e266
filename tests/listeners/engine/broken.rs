//! A worker that panics: later pushes are refused.

use std::panic::resume_unwind;
use std::pin::Pin;

use futures_util::FutureExt as _;
use pumphouse::engine::{Port, Tokio};
use pumphouse::wire::Code;

use super::*;

type Told = Pin<Box<dyn Future<Output = Result<(), Fault>> + Send>>;

/// A port with which the worker panics that begins a handler, once a pump is here. Another push
/// lies in that worker's inbox by then.
#[derive(Clone)]
struct Fragile {
    port: Tokio,
    pump: Arc<Mutex<Option<Pump>>>,
    late: Arc<Mutex<Option<Told>>>,
}

impl Port for Fragile {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let Some(pump) = self.pump.lock().unwrap().take() else { return self.port.spawn(task) };
        let mut late: Told = Box::pin(async move { pump.tell(Down { n: 1 }).await.map(drop) });
        assert!((&mut late).now_or_never().is_none());
        *self.late.lock().unwrap() = Some(late);
        // The hook, which would print a panic, isn't called; all else is as in a panic.
        resume_unwind(Box::new("the worker"));
    }

    fn spawn_blocking(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.port.spawn_blocking(task);
    }

    fn sleep_until(&self, at_us: u64) -> impl Future<Output = ()> + Send + 'static {
        self.port.sleep_until(at_us)
    }

    fn now_us(&self) -> u64 {
        self.port.now_us()
    }

    fn wall_us(&self) -> u64 {
        self.port.wall_us()
    }

    fn random(&self) -> u64 {
        self.port.random()
    }
}

#[tokio::test]
async fn a_push_that_a_broken_worker_cannot_take_is_counted_as_refused() {
    let port = Fragile { port: Tokio::current(), pump: Arc::default(), late: Arc::default() };
    let listener = Listener::new("a").on(async |_: Down| ());
    let pump = pumphouse::builder().with(listener).workers(1).build().unwrap().start_on(&port);
    pump.ready().await.unwrap();
    *port.pump.lock().unwrap() = Some(pump.clone());
    let first = tokio::spawn({
        let pump = pump.clone();
        async move { drop(pump.tell(Down { n: 0 }).await) }
    });
    crate::eventually(async || port.late.lock().unwrap().is_some()).await;
    let late = port.late.lock().unwrap().take().unwrap();
    assert_eq!(late.await.unwrap_err().code, Code::Broken);
    assert_eq!(pump.refusals().get(&Code::Broken), Some(&1));
    first.abort();
}
