//! A connection: a task that passes bytes and events between a socket, its session and the pump.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::door::eviction::Silence;
use crate::door::follow::Follows;
use crate::door::push_events::{Mailbox, Order};
use crate::door::session::{Session, Step};
use crate::engine::{Port, Pump, PushEvent, PushLane, PushObserver, Pusher, Tokio};
use crate::id::ThreadId;
use crate::wire::Fault;

/// The size of the read buffer. Each thread of the runtime has one buffer, so that connections need
/// none of their own.
const READ_BYTES: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

/// A connection: its socket, its session, and its pushes that aren't posted yet.
pub(super) struct Connection<S> {
    pub(super) stream: S,
    pub(super) session: Session,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) pump: Pump,
    pub(super) port: Tokio,
    pub(super) follows: Follows,
    pub(super) pushes: PushLane,
}

type Timer = Option<(u64, Pin<Box<dyn Future<Output = ()> + Send>>)>;

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Serves the client until everything was sent or the client is gone.
    pub(super) async fn serve(mut self) {
        if let Err(error) = self.talk().await {
            tracing::debug!(%error, "the connection broke");
        }
        self.mailbox.close();
    }

    async fn talk(&mut self) -> io::Result<()> {
        let observer: Arc<dyn PushObserver> = self.mailbox.clone();
        let mut news: Vec<(u64, PushEvent)> = Vec::new();
        let mut timer: Timer = None;
        loop {
            let orders = self.mailbox.take(&mut news);
            for (number, event) in news.drain(..) {
                if let PushEvent::Refused(fault) = &event {
                    self.pump.told_refusal(&self.session.sender(), fault);
                }
                self.session.hear(number, event);
            }
            for order in orders {
                self.obey(order);
            }
            let more = self.push(&observer).await;
            let now_us = self.port.now_us();
            if let Some(fault) = self.session.tick(now_us) {
                self.note_refusal(&fault);
            }
            let is_quiet = self.follows.is_empty() && self.pushes.is_empty();
            self.mailbox.note(if is_quiet { self.session.silence() } else { Silence::Busy });
            if self.session.is_overdue(now_us) {
                return self.leave(now_us).await;
            }
            if self.session.is_settled() {
                self.follows.come_to_an_end();
            }
            if self.session.is_over() && self.follows.is_empty() {
                return self.leave(now_us).await;
            }
            poll_fn(|context| self.poll(context, &mut timer, more)).await?;
        }
    }

    fn obey(&mut self, order: Order) {
        let now_us = self.port.now_us();
        match order {
            Order::Stop => self.session.stop(now_us),
            Order::MakeRoom => {
                if let Some(fault) = self.session.make_room(now_us) {
                    self.note_refusal(&fault);
                }
            }
            Order::CheckToken => {
                if let Some(fault) = self.session.check_token(now_us) {
                    self.note_refusal(&fault);
                }
            }
        }
    }

    fn note_refusal(&mut self, fault: &Fault) {
        tracing::debug!(fault = %fault.code, "the connection is refused");
        self.pump.refused(&self.session.sender(), fault);
        self.follows.end(None);
    }

    /// Pushes the messages that have arrived, as long as there is room and the connection's turn
    /// lasts. Returns true if there may be more.
    async fn push(&mut self, observer: &Arc<dyn PushObserver>) -> bool {
        let (mut pushed, turn) = (0, self.session.turn());
        while pushed < turn
            && self.pushes.is_open()
            && let Some(step) = self.session.next()
        {
            pushed += 1;
            match (step, self.session.who()) {
                (Step::Push(number, envelope), Some(who)) => {
                    let by = who.pusher(self.pump.may_know_why(who), observer.clone(), number);
                    let by = Pusher { is_alone: Some(self.session.has_one()), ..by };
                    self.pushes.begin(by, envelope);
                }
                (Step::Follow(number, follow), Some(who)) => {
                    if let Err(fault) = self.follows.begin(number, &follow, who) {
                        self.refuse(number, fault);
                    }
                }
                (Step::Unfollow(number, unfollow), _) => {
                    let thread = unfollow.thread.as_deref().map(ThreadId::new);
                    self.follows.end(thread.as_ref());
                    self.session.unfollow(number, unfollow);
                }
                (Step::Refused(number, fault), _) => self.refuse(number, fault),
                (Step::Push(..) | Step::Follow(..), None) => {}
            }
        }
        if !self.pushes.is_open() {
            self.session.pause_input();
        }
        if pushed > 0 {
            // A client that never pauses must not starve other connections.
            tokio::task::yield_now().await;
        }
        pushed == turn
    }

    fn refuse(&mut self, number: u64, fault: Fault) {
        tracing::debug!(fault = %fault.code, number, "refused");
        self.pump.refused(&self.session.sender(), &fault);
        self.session.hear(number, PushEvent::Refused(fault));
    }

    /// Writes, reads, or waits until something changes.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        timer: &mut Timer,
        more: bool,
    ) -> Poll<io::Result<()>> {
        let mut busy = self.mailbox.poll(context.waker()) || more;
        busy |= self.follows.poll(context, &mut self.session);
        busy |= self.pushes.poll(context);
        if self.pushes.is_open() {
            self.session.resume_input();
        }
        while !self.session.pending().is_empty() {
            let stream = Pin::new(&mut self.stream);
            match stream.poll_write(context, self.session.pending()) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(bytes)) => self.session.wrote(bytes),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => break,
            }
            busy = true;
        }
        busy |= self.session.poll_place(context) || self.session.poll_cut(context);
        if !more && self.session.wants_bytes() {
            let Connection { stream, session, .. } = self;
            let read = read(stream, context, |bytes| match bytes {
                [] => session.feed_end(),
                bytes => session.feed(bytes),
            });
            if let Poll::Ready(read) = read {
                read?;
                busy = true;
            }
        }
        if busy || self.poll_timer(context, timer).is_ready() {
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    }

    /// Waits for the next deadline. When a deadline moves to a later time, the timer isn't set
    /// again. The timer then fires early, and the check finds that no deadline has passed. That is
    /// cheaper than setting a timer for each message.
    fn poll_timer(&mut self, context: &mut Context<'_>, timer: &mut Timer) -> Poll<()> {
        let Some(next) = self.session.deadline_us() else {
            *timer = None;
            return Poll::Pending;
        };
        if timer.as_ref().is_none_or(|(at, _)| *at > next) {
            *timer = Some((next, Box::pin(self.port.sleep_until(next))));
        }
        let Some((_, sleep)) = timer else { return Poll::Pending };
        ready!(sleep.as_mut().poll(context));
        *timer = None;
        Poll::Ready(())
    }

    /// Ends the connection: closes the pump's side, then reads for up to `linger_time_max` and
    /// drops the bytes. If bytes stayed unread, the system would reset the connection, and the
    /// client might lose the last answer.
    async fn leave(&mut self, now_us: u64) -> io::Result<()> {
        let limits = self.pump.limits();
        let wait = u64::try_from(limits.linger_time_max.as_micros()).unwrap_or(u64::MAX);
        let mut sleep = Box::pin(self.port.sleep_until(now_us.saturating_add(wait)));
        let mut left = if self.session.expects_bytes() { limits.linger_bytes_max } else { 0 };
        let mut said = false;
        poll_fn(|context| {
            if sleep.as_mut().poll(context).is_ready() {
                return Poll::Ready(Ok(()));
            }
            if !said {
                ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
                said = true;
            }
            while left > 0 {
                let mut read_bytes = 0;
                ready!(read(&mut self.stream, context, |bytes| read_bytes = bytes.len()))?;
                left = if read_bytes == 0 { 0 } else { left.saturating_sub(read_bytes) };
            }
            Poll::Ready(Ok(()))
        })
        .await
    }
}

/// Reads once, and passes the bytes to `take`. An empty slice means that the client has closed its
/// side.
fn read<S: AsyncRead + Unpin>(
    stream: &mut S,
    context: &mut Context<'_>,
    take: impl FnOnce(&[u8]),
) -> Poll<io::Result<()>> {
    SCRATCH.with_borrow_mut(|scratch| {
        let mut buffer = ReadBuf::new(scratch);
        ready!(Pin::new(stream).poll_read(context, &mut buffer))?;
        take(buffer.filled());
        Poll::Ready(Ok(()))
    })
}
