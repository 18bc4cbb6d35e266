//! A door that listens on TCP.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs, lookup_host};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use crate::door::acceptor;
use crate::door::acceptor::{Opened, Source};
use crate::door::client_tokens::Tokens;
use crate::door::error::Error;
use crate::door::peer;
use crate::door::peer::Peer;
use crate::door::tls::Tls;
use crate::engine::{Builder, CONSOLE, Door, Identity, Plugin, Pump};
use crate::listener::Boxed;
use crate::wire::{Code, Fault};

/// How long a connection may be silent before the system probes it, by TCP keep-alive.
const ALIVE_AFTER: Duration = Duration::from_secs(60);
/// The time between two probes of a silent connection.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// The first byte of every TLS connection.
const TLS_HANDSHAKE: u8 = 0x16;

/// A door that listens on TCP, with TLS or without.
///
/// ```
/// # extern crate pumphouse_door as pumphouse;
/// use pumphouse::door::{Options, Tcp};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let door = Tcp::bind("127.0.0.1:0", Options::default()).await?;
/// println!("listening on {}", door.local_addr());
/// let pump = pumphouse::builder().with(door).build()?.start();
/// # pump.shutdown().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Tcp {
    listener: TcpListener,
    address: SocketAddr,
    options: Options,
}

/// The options of a door.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The tokens of clients. A TCP door that other machines can reach must have tokens, and each
    /// of its clients needs one.
    pub tokens: Tokens,
    /// The certificate of a TCP door. With one, the door speaks TLS only.
    pub tls: Option<Tls>,
}

impl Options {
    /// Sets the tokens of clients.
    #[must_use]
    pub fn tokens(self, tokens: Tokens) -> Options {
        Options { tokens, ..self }
    }

    /// Lets a TCP door speak TLS with this certificate.
    #[must_use]
    pub fn tls(self, tls: Tls) -> Options {
        Options { tls: Some(tls), ..self }
    }
}

impl Tcp {
    /// Listens at an address. Clients may connect from now on, and are served once the pump has
    /// started.
    ///
    /// # Errors
    /// If the system doesn't let the door listen at the address, or if other machines can reach it
    /// and there are no tokens.
    pub async fn bind(address: impl ToSocketAddrs, options: Options) -> Result<Tcp, Error> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "no such address");
        for address in lookup_host(address).await.map_err(Error::Address)? {
            if options.tokens.is_empty() && !is_local(address.ip()) {
                return Err(Error::Exposed(address));
            }
            match TcpListener::bind(address).await {
                Ok(listener) => {
                    let address = listener.local_addr().map_err(Error::Address)?;
                    if options.tls.is_none() && !is_local(address.ip()) {
                        tracing::warn!(%address, "without TLS, others on the way read tokens");
                    }
                    return Ok(Tcp { listener, address, options });
                }
                Err(error) => last = error,
            }
        }
        Err(Error::Address(last))
    }

    /// The address that the door listens at.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }
}

/// Whether only this machine can reach an address.
pub(super) fn is_local(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

impl Plugin for Tcp {
    fn install(self, builder: &mut Builder) {
        builder.door(self);
    }
}

impl Door for Tcp {
    fn serve(self: Box<Self>, pump: Pump) -> Boxed<'static, ()> {
        let Tcp { listener, address, options: Options { tokens, tls } } = *self;
        // Connections inherit the sizes of both buffers. By default, the system buffers tens of
        // megabytes for each client that sends faster than the door reads, so a push may wait there
        // for minutes. It also buffers megabytes for each client that reads nothing, until all
        // connections of the machine are short of buffers.
        let (limits, socket) = (pump.limits(), SockRef::from(&listener));
        let bounds = [
            socket.set_recv_buffer_size(limits.receive_buffer_bytes),
            socket.set_send_buffer_size(limits.send_buffer_bytes),
        ];
        for error in bounds.into_iter().filter_map(Result::err) {
            tracing::warn!(%address, %error, "the system sets no bound to what it keeps");
        }
        let listening = Listening { listener, address, tls, tokens: tokens.clone() };
        Box::pin(acceptor::serve(listening, tokens, pump))
    }

    fn identities(&self) -> Vec<Arc<str>> {
        self.options.tokens.identities()
    }

    fn has_tokens(&self) -> bool {
        !self.options.tokens.is_empty()
    }
}

/// Accepts TCP connections.
struct Listening {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
    tokens: Tokens,
}

impl Source for Listening {
    type Accepted = (TcpStream, SocketAddr);
    type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

    fn place(&self) -> String {
        self.address.to_string()
    }

    async fn accept(&self) -> io::Result<((TcpStream, SocketAddr), String)> {
        let (stream, peer) = self.listener.accept().await?;
        // Answers are batched already, so Nagle's algorithm would only delay them.
        drop(stream.set_nodelay(true));
        // A client that vanished must not keep its place forever.
        let alive = TcpKeepalive::new().with_time(ALIVE_AFTER).with_interval(ALIVE_EVERY);
        drop(SockRef::from(&stream).set_tcp_keepalive(&alive));
        Ok(((stream, peer), peer.to_string()))
    }

    async fn open(
        &self,
        (stream, address): (TcpStream, SocketAddr),
    ) -> io::Result<Opened<Listening>> {
        let peer = Some(address.ip());
        let process = peer::of_tcp(address, stream.local_addr()?).await;
        if process == Peer::Unknown && peer::has_left(&SockRef::from(&stream)) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let stream = match &self.tls {
            None => Either::Left(stream),
            Some(_) if is_plain(&stream).await? => {
                return Ok(Opened { stream: Either::Left(stream), who: Err(no_tls()), peer });
            }
            Some(tls) => Either::Right(Box::new(tls.acceptor().accept(stream).await?)),
        };
        // At an address that only this machine can reach, clients need no token and share the name
        // `console`.
        let console = || Identity { name: CONSOLE.into(), operator: false };
        let who = is_local(self.address.ip()).then(console);
        let who = process.identity(who, !self.tokens.is_empty());
        Ok(Opened { stream, who, peer })
    }
}

/// Waits for a client's first byte. Returns true if that byte shows that the client doesn't speak
/// TLS.
async fn is_plain(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [TLS_HANDSHAKE];
    stream.peek(&mut first).await?;
    Ok(first != [TLS_HANDSHAKE])
}

fn no_tls() -> Fault {
    let text = "this door speaks TLS, and what came is none; `pumphouse` connects by TLS where \
                tls: stands before HOST:PORT";
    Fault::new(Code::Framing, text).advised("Connect by TLS.")
}
