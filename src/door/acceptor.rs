//! The common part of doors for TCP and for Unix sockets. It accepts connections and ends them when
//! the pump stops. Each connection gets a task and one of the door's `connections_max` places.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tracing::Instrument;

use crate::door::client_tokens::Tokens;
use crate::door::connection::Connection;
use crate::door::eviction;
use crate::door::follow::Follows;
use crate::door::push_events::{Mailbox, Order};
use crate::door::session::{DoorShared, Session};
use crate::door::wrong_tokens::{Guesses, machine};
use crate::engine::{CONSOLE, Identity, LOOK_EVERY_US, Port, Pump, PushLane, Stage, Tokio};
use crate::limits::Limits;
use crate::wire::{Code, Fault};

/// How long to wait if the system has no descriptor or memory left for another connection.
const PAUSE_US: u64 = 50_000;

/// A source of connections, such as a TCP listener.
pub(super) trait Source: Send + Sync + 'static {
    /// A connection as the operating system returns it.
    type Accepted: Send + 'static;
    /// A byte stream that carries messages.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The address that the source listens at, for traces.
    fn place(&self) -> String;

    /// Waits for the next connection. The returned text says where the connection comes from.
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Accepted, String)>> + Send;

    /// Prepares a connection for messages, for example by a TLS handshake. This may wait for the
    /// client.
    fn open(&self, came: Self::Accepted) -> impl Future<Output = io::Result<Opened<Self>>> + Send;
}

/// A connection that is ready for messages.
pub(super) struct Opened<S: Source + ?Sized> {
    pub(super) stream: S::Stream,
    /// The client's identity if it sends no token. `None` if the client must send a token. An error
    /// says why the client can't be served.
    pub(super) who: Result<Option<Identity>, Fault>,
    /// The address that the connection comes from, if that is known.
    pub(super) peer: Option<IpAddr>,
}

/// Serves connections until the pump stops, then waits until all of them have ended.
pub(super) async fn serve<S: Source>(source: S, tokens: Tokens, pump: Pump) -> Result<(), Fault> {
    let (place, source) = (source.place(), Arc::new(source));
    let reception = Reception {
        port: Tokio::current(),
        connected: Arc::new(Connected::default()),
        left: watch::Sender::new(()),
        pump: pump.clone(),
        shared: Arc::new(DoorShared {
            limits: pump.limits().clone(),
            tokens,
            guesses: Guesses::default(),
            share: Arc::default(),
            unread: pump.unread().clone(),
        }),
    };
    let mut stage = pump.stage();
    let accepting = async {
        let ready = pump.ready().await;
        ready.map_err(|error| Fault::new(Code::LogFailed, error.to_string()))?;
        tracing::info!(place, "a door is open");
        for number in 1.. {
            let (came, peer) = reception.accept(&*source).await;
            reception.receive(&source, came, &peer, number);
        }
        Ok::<(), Fault>(())
    };
    tokio::select! {
        ended = accepting => ended?,
        never = reception.look_after_slow_readers() => match never {},
        never = reception.look_after_tokens() => match never {},
        _ = stage.wait_for(|it| *it > Stage::Running) => {}
    }
    // The listening socket closes here, or once no more connections are being opened. From then
    // on, the system refuses new connections.
    drop(source);
    // An error means that the pump is gone.
    drop(stage.wait_for(|it| *it == Stage::Drained).await);
    reception.connected.mailboxes().iter().for_each(|it| it.order(Order::Stop));
    reception.left.closed().await;
    tracing::info!(place, "a door is closed");
    Ok(())
}

/// The open connections.
#[derive(Default)]
struct Connected {
    /// Maps the number of each connection that has a place to the connection's mailbox.
    sessions: DashMap<u64, Arc<Mailbox>>,
    /// How many connections have a place. Counting the entries of `sessions` would lock all its
    /// shards.
    count: AtomicUsize,
    /// How many connections are being refused or evicted.
    farewells: AtomicUsize,
}

impl Connected {
    /// Closes a few silent connections to make room for new ones.
    fn make_room(&self, limits: &Limits, now_us: u64) {
        let seen = self.sessions.iter().map(|it| (*it.key(), it.machine.clone(), it.silence()));
        for number in eviction::longest(seen.collect(), limits.frame_time_max, now_us) {
            if enter(&self.farewells, limits.farewells_max).is_none() {
                return;
            }
            match self.sessions.remove(&number) {
                Some((_, mailbox)) => {
                    self.count.fetch_sub(1, Ordering::AcqRel);
                    mailbox.order(Order::MakeRoom);
                }
                // The connection has ended by itself meanwhile.
                None => drop(self.farewells.fetch_sub(1, Ordering::AcqRel)),
            }
        }
    }

    fn mailboxes(&self) -> Vec<Arc<Mailbox>> {
        self.sessions.iter().map(|it| it.clone()).collect()
    }
}

/// The state that a door needs to admit connections.
struct Reception {
    port: Tokio,
    connected: Arc<Connected>,
    /// This channel closes when all connections have ended, since each of them holds a receiver.
    left: watch::Sender<()>,
    pump: Pump,
    shared: Arc<DoorShared>,
}

impl Reception {
    /// While more than half of `owed_bytes_max` is used up, cuts connections whose clients read
    /// nothing. Never returns.
    async fn look_after_slow_readers(&self) -> Infallible {
        let unread = self.pump.unread();
        loop {
            unread.over_half().await;
            while unread.is_over_half() {
                unread.cut_slow_readers(self.port.now_us());
                self.port.sleep_until(self.port.now_us() + LOOK_EVERY_US).await;
            }
        }
    }

    /// Tells all connections to check their tokens each time the list of tokens has been read
    /// again. Never returns.
    async fn look_after_tokens(&self) -> Infallible {
        let mut changes = self.shared.tokens.changes();
        loop {
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            let mailboxes = self.connected.mailboxes();
            mailboxes.iter().for_each(|it| it.order(Order::CheckToken));
        }
    }

    /// Returns the next connection. If the system can't give one, this function closes silent
    /// connections, waits and tries again.
    async fn accept<S: Source>(&self, source: &S) -> (S::Accepted, String) {
        let mut told = false;
        loop {
            let error = match source.accept().await {
                Ok(accepted) => return accepted,
                Err(error) => error,
            };
            use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
            if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
                continue;
            }
            if !std::mem::replace(&mut told, true) {
                tracing::warn!(%error, "no connection can be accepted now; trying on");
            }
            self.connected.make_room(&self.shared.limits, self.port.now_us());
            self.port.sleep_until(self.port.now_us() + PAUSE_US).await;
        }
    }

    /// Serves a connection in a task. If all places are taken, first tries to evict silent
    /// connections. If that frees no place, tells the client that too many connections are open.
    /// The client isn't told if `farewells_max` connections are being refused or evicted already.
    fn receive<S: Source>(&self, source: &Arc<S>, came: S::Accepted, peer: &str, number: u64) {
        let limits = &self.shared.limits;
        let now_us = self.port.now_us();
        let mailbox = Arc::new(Mailbox::new(&sender(peer), now_us));
        let take = || Seat::take(&self.connected, limits.connections_max, number, &mailbox);
        let place = take().or_else(|| {
            self.connected.make_room(limits, now_us);
            take()
        });
        let (place, refused) = match place {
            Some(place) => (place, None),
            None => {
                let max = limits.connections_max;
                let text = format!("connections_max is {max}, and that many are open");
                let fault = Fault::new(Code::Connections, text);
                self.pump.refused(&sender(peer), &fault);
                tracing::debug!(peer, %fault, "a connection is refused");
                match Seat::to_leave(&self.connected, limits.farewells_max) {
                    Some(place) => (place, Some(fault)),
                    None => return,
                }
            }
        };
        let guest = Guest {
            source: source.clone(),
            mailbox,
            refused,
            shared: self.shared.clone(),
            pump: self.pump.clone(),
            port: self.port.clone(),
        };
        let left = self.left.subscribe();
        let connected = self.pump.connected();
        let span = tracing::info_span!("connection", number, peer);
        let serve = async move {
            tracing::debug!("opened");
            guest.serve(came).await;
            tracing::debug!("closed");
            drop((place, left, connected));
        };
        self.port.spawn(serve.instrument(span));
    }
}

/// A connection that is about to be served, or to be refused with an answer.
struct Guest<S> {
    source: Arc<S>,
    mailbox: Arc<Mailbox>,
    /// Why the connection is refused, if it is.
    refused: Option<Fault>,
    shared: Arc<DoorShared>,
    pump: Pump,
    port: Tokio,
}

impl<S: Source> Guest<S> {
    async fn serve(self, came: S::Accepted) {
        let Guest { source, mailbox, refused, shared, pump, port } = self;
        let wait = u64::try_from(shared.limits.frame_time_max.as_micros()).unwrap_or(u64::MAX);
        let mut stage = pump.stage();
        let opened = tokio::select! {
            opened = source.open(came) => opened,
            () = mailbox.ordered(Order::MakeRoom) => {
                return tracing::debug!("it didn't come to speak, and a newcomer has its place");
            }
            () = port.sleep_until(port.now_us().saturating_add(wait)) => {
                return tracing::debug!("it didn't come to speak in frame_time_max");
            }
            _ = stage.wait_for(|it| *it == Stage::Drained) => return,
        };
        // The source is dropped before the client is served, so that the door can close its
        // listening socket while connections are still served.
        drop((source, stage));
        let Opened { stream, who, peer } = match opened {
            Ok(opened) => opened,
            Err(error) => return tracing::debug!(%error, "it doesn't come to speak"),
        };
        let who = who.and_then(|it| it.map(|it| checked(it, &pump)).transpose());
        // A client with the name `console` came through an address that only this machine can
        // reach.
        let is_console = matches!(&who, Ok(Some(it)) if *it.name == *CONSOLE);
        let is_open = is_console && shared.tokens.is_empty();
        let pump = if is_open { pump.without_secrets() } else { pump };
        let now_us = port.now_us();
        let session = match (refused, who) {
            (Some(fault), _) => Session::refused(shared, &fault, now_us),
            (None, Err(fault)) => {
                let who = peer.map_or("unknown".to_owned(), |it| machine(it).to_string());
                pump.refused(&who, &fault);
                Session::refused(shared, &fault, now_us)
            }
            (None, Ok(who)) => Session::new(shared, who, now_us),
        };
        let session = session.from(peer);
        let (follows, pushes) = (Follows::new(pump.clone()), PushLane::new(pump.clone()));
        Connection { stream, session, mailbox, pump, port, follows, pushes }.serve().await;
    }
}

/// Returns the machine of a peer's socket address. Connections and refusals are counted by machine.
/// A text that is no socket address, such as `uid 1000`, is returned unchanged.
fn sender(peer: &str) -> String {
    let address = peer.parse::<SocketAddr>();
    address.map_or_else(|_| peer.to_owned(), |it| machine(it.ip()).to_string())
}

/// Returns a fault if the identity has the name of a listener.
fn checked(who: Identity, pump: &Pump) -> Result<Identity, Fault> {
    pump.speaking_as(who.clone()).checked_name().map(|()| who)
}

/// A connection's place. Dropping this value frees the place.
struct Seat {
    connected: Arc<Connected>,
    /// The connection's number. `None` if the connection is only told that there is no place.
    number: Option<u64>,
}

impl Seat {
    fn take(
        connected: &Arc<Connected>,
        max: usize,
        number: u64,
        mailbox: &Arc<Mailbox>,
    ) -> Option<Seat> {
        enter(&connected.count, max)?;
        connected.sessions.insert(number, mailbox.clone());
        Some(Seat { connected: connected.clone(), number: Some(number) })
    }

    fn to_leave(connected: &Arc<Connected>, max: usize) -> Option<Seat> {
        enter(&connected.farewells, max)?;
        Some(Seat { connected: connected.clone(), number: None })
    }
}

fn enter(count: &AtomicUsize, max: usize) -> Option<()> {
    let more = |it: usize| (it < max).then_some(it + 1);
    count.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok().map(drop)
}

impl Drop for Seat {
    fn drop(&mut self) {
        let sessions = &self.connected.sessions;
        // An evicted connection has given up its place already, and counts among the farewells.
        let has_place = self.number.is_some_and(|it| sessions.remove(&it).is_some());
        let count = match has_place {
            true => &self.connected.count,
            false => &self.connected.farewells,
        };
        count.fetch_sub(1, Ordering::AcqRel);
    }
}
