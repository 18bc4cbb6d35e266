//! Timeouts of a request to a model's server.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::time::Sleep;

use crate::limits::ModelLimits;
use crate::model::error::{Error, Kind, Wait};
use crate::model::retry_pause::sleep;

/// The timers of one request. They keep running between calls of `watch`, so that dropping a future
/// and asking again gains no time.
#[derive(Debug)]
pub(super) struct Timers {
    end: Timer,
    /// The timer of the next bytes. None while nothing waits for them.
    next: Option<Timer>,
    silence: Duration,
}

#[derive(Debug)]
struct Timer {
    sleep: Pin<Box<Sleep>>,
    wait: Wait,
    limit: (&'static str, Duration),
}

impl Timer {
    fn new(wait: Wait, name: &'static str, limit: Duration) -> Timer {
        Timer { sleep: Box::pin(sleep(limit)), wait, limit: (name, limit) }
    }

    async fn watch<T>(&mut self, future: impl Future<Output = T>) -> Result<T, Error> {
        tokio::select! {
            biased;
            it = future => Ok(it),
            () = &mut self.sleep => Err(late(self.wait, self.limit)),
        }
    }
}

/// The error of a wait that took longer than its limit.
pub(super) fn late(wait: Wait, (name, limit): (&str, Duration)) -> Error {
    let what = match wait {
        Wait::Connection => "there was no connection in time",
        Wait::FirstByte => "the server didn't begin to answer in time",
        Wait::NextByte => "the server fell silent in the middle of its reply",
        Wait::End => "the reply had no end in time",
    };
    Error::new(Kind::TimedOut(wait), format!("{what}: {name} is {limit:?}"))
}

impl Timers {
    /// The timers of a request that begins now.
    pub(super) fn new(limits: &ModelLimits) -> Timers {
        let ModelLimits { first_byte_time_max, silence_time_max, reply_time_max, .. } = *limits;
        let first = Timer::new(Wait::FirstByte, "first_byte_time_max", first_byte_time_max);
        Timers {
            end: Timer::new(Wait::End, "reply_time_max", reply_time_max),
            next: Some(first),
            silence: silence_time_max,
        }
    }

    /// Waits for a future.
    ///
    /// # Errors
    /// If a time limit was reached before the future completed.
    pub(super) async fn watch<T>(&mut self, future: impl Future<Output = T>) -> Result<T, Error> {
        let mut future = pin!(future);
        // A future that is ready needs no timer.
        if let Poll::Ready(it) = poll_fn(|it| Poll::Ready(future.as_mut().poll(it))).await {
            return Ok(it);
        }
        let Timers { end, next, silence } = self;
        let silent = || Timer::new(Wait::NextByte, "silence_time_max", *silence);
        end.watch(next.get_or_insert_with(silent).watch(future)).await?
    }

    /// Ends the wait for the next bytes: they have come.
    pub(super) fn heard(&mut self) {
        self.next = None;
    }

    /// Sets how long further bytes may take from now on. This is for the end of a reply, when only
    /// its usage may still come.
    pub(super) fn hurry(&mut self, time: Duration) {
        self.silence = time;
        self.heard();
    }
}
