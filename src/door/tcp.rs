//! A door that listens on TCP.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs, lookup_host};
use tokio::sync::watch;
use tracing::Instrument;

use crate::door::connection::Connection;
use crate::door::inbox::Inbox;
use crate::door::session::{Session, Setting};
use crate::door::{Error, Tokens};
use crate::engine::{Builder, Door, Plugin, Port, Pump, Stage, Tokio};
use crate::listener::Boxed;
use crate::wire::{Code, Fault};

/// How long to wait where the system has no descriptor or memory left for another connection.
const PAUSE_US: u64 = 50_000;

/// A TCP door.
///
/// ```
/// use pumphouse::door::{Options, Tcp};
/// use pumphouse::listeners;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let door = Tcp::bind("127.0.0.1:0", Options::default()).await?;
/// println!("listening on {}", door.local_addr());
/// let pump = pumphouse::builder().with(listeners::standard()).with(door).build()?.start();
/// # pump.shutdown().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Tcp {
    listener: TcpListener,
    address: SocketAddr,
    tokens: Tokens,
}

/// How a door is to be.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Who may come in. Beyond loopback there must be some, and nobody comes in without one.
    pub tokens: Tokens,
}

impl Options {
    /// With these tokens.
    #[must_use]
    pub fn tokens(self, tokens: Tokens) -> Options {
        Options { tokens }
    }
}

impl Tcp {
    /// Listens, so that the system lets clients wait; they are served when the pump starts.
    ///
    /// # Errors
    /// Where the address isn't to be had, or is within reach of others and there are no tokens.
    pub async fn bind(address: impl ToSocketAddrs, options: Options) -> Result<Tcp, Error> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "no such address");
        for address in lookup_host(address).await.map_err(Error::Address)? {
            if options.tokens.is_empty() && !is_local(address.ip()) {
                return Err(Error::Exposed(address));
            }
            match TcpListener::bind(address).await {
                Ok(listener) => {
                    let address = listener.local_addr().map_err(Error::Address)?;
                    return Ok(Tcp { listener, address, tokens: options.tokens });
                }
                Err(error) => last = error,
            }
        }
        Err(Error::Address(last))
    }

    /// Where it listens.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

/// Whether an address is within reach of this machine only.
fn is_local(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

impl Plugin for Tcp {
    fn install(self, builder: &mut Builder) {
        builder.door(self);
    }
}

impl Door for Tcp {
    fn serve(self: Box<Self>, pump: Pump) -> Boxed<'static, ()> {
        Box::pin(serve(*self, pump))
    }

    fn identities(&self) -> Vec<Arc<str>> {
        self.tokens.identities()
    }
}

/// Who is connected.
#[derive(Default)]
struct Connected {
    sessions: DashMap<u64, Arc<Inbox>>,
    /// The map would have to lock all its shards to count.
    count: AtomicUsize,
    farewells: AtomicUsize,
}

/// Lets everybody in until the pump stops, then waits until everybody has left.
async fn serve(tcp: Tcp, pump: Pump) -> Result<(), Fault> {
    let Tcp { listener, address, tokens } = tcp;
    let limits = pump.limits().clone();
    let setting = Arc::new(Setting { limits, tokens, local: is_local(address.ip()) });
    let reception = Reception {
        port: Tokio::current(),
        connected: Arc::new(Connected::default()),
        left: watch::Sender::new(()),
        pump: pump.clone(),
        setting,
    };
    let mut stage = pump.stage();
    let accepting = async {
        let ready = pump.ready().await;
        ready.map_err(|error| Fault::new(Code::LogFailed, error.to_string()))?;
        tracing::info!(%address, "a door is open");
        for number in 1.. {
            let (stream, peer) = reception.accept(&listener).await;
            reception.receive(stream, peer, number);
        }
        Ok::<(), Fault>(())
    };
    tokio::select! {
        ended = accepting => ended?,
        _ = stage.wait_for(|it| *it > Stage::Running) => {}
    }
    drop(listener);
    // An error says that the pump is gone altogether.
    drop(stage.wait_for(|it| *it == Stage::Drained).await);
    let inboxes: Vec<_> = reception.connected.sessions.iter().map(|it| it.clone()).collect();
    inboxes.iter().for_each(|it| it.stop());
    reception.left.closed().await;
    tracing::info!(%address, "a door is closed");
    Ok(())
}

/// What whoever comes in is given.
struct Reception {
    port: Tokio,
    connected: Arc<Connected>,
    /// Every connection holds a receiver.
    left: watch::Sender<()>,
    pump: Pump,
    setting: Arc<Setting>,
}

impl Reception {
    /// The next connection. Where the system can't give it, others may leave meanwhile.
    async fn accept(&self, listener: &TcpListener) -> (TcpStream, SocketAddr) {
        let mut told = false;
        loop {
            let error = match listener.accept().await {
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
            self.port.sleep_until(self.port.now_us() + PAUSE_US).await;
        }
    }

    /// Serves a connection, or tells it that there are too many.
    fn receive(&self, stream: TcpStream, peer: SocketAddr, number: u64) {
        // Answers are written together already: nothing is gained by waiting for more.
        drop(stream.set_nodelay(true));
        let limits = &self.setting.limits;
        let (now_us, inbox) = (self.port.now_us(), Arc::new(Inbox::default()));
        let place = Place::take(&self.connected, limits.connections_max, number, &inbox);
        let (session, place) = match place {
            Some(place) => (Session::new(self.setting.clone(), now_us), place),
            None => {
                let max = limits.connections_max;
                let text = format!("connections_max is {max}, and that many are open");
                let fault = Fault::new(Code::Connections, text);
                self.pump.refused(&fault);
                tracing::warn!(%peer, %fault, "a connection is refused");
                let Some(place) = Place::to_leave(&self.connected, limits.farewells_max) else {
                    return;
                };
                (Session::refused(self.setting.clone(), &fault, now_us), place)
            }
        };
        let (pump, port) = (self.pump.clone(), self.port.clone());
        let left = self.left.subscribe();
        let span = tracing::info_span!("connection", number, %peer);
        let serve = async move {
            tracing::debug!("opened");
            Connection { stream, session, inbox, pump, port }.serve().await;
            tracing::debug!("closed");
            drop((place, left));
        };
        self.port.spawn(serve.instrument(span));
    }
}

/// A place among those who are connected, given back when it is dropped, however that comes.
struct Place {
    connected: Arc<Connected>,
    /// None for whoever only hears that there is no place.
    number: Option<u64>,
}

impl Place {
    fn take(
        connected: &Arc<Connected>,
        max: usize,
        number: u64,
        inbox: &Arc<Inbox>,
    ) -> Option<Place> {
        enter(&connected.count, max)?;
        connected.sessions.insert(number, inbox.clone());
        Some(Place { connected: connected.clone(), number: Some(number) })
    }

    fn to_leave(connected: &Arc<Connected>, max: usize) -> Option<Place> {
        enter(&connected.farewells, max)?;
        Some(Place { connected: connected.clone(), number: None })
    }
}

fn enter(count: &AtomicUsize, max: usize) -> Option<()> {
    let more = |it: usize| (it < max).then_some(it + 1);
    count.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok().map(drop)
}

impl Drop for Place {
    fn drop(&mut self) {
        let count = match self.number {
            Some(number) => {
                self.connected.sessions.remove(&number);
                &self.connected.count
            }
            None => &self.connected.farewells,
        };
        count.fetch_sub(1, Ordering::AcqRel);
    }
}
