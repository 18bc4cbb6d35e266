//! A door that listens on TCP.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream, ToSocketAddrs, lookup_host};

use crate::door::reception::{self, Opened, Source};
use crate::door::{Error, Tokens};
use crate::engine::{Builder, CONSOLE, Door, Identity, Plugin, Pump};
use crate::listener::Boxed;

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
        let Tcp { listener, address, tokens } = *self;
        Box::pin(reception::serve(Knocks { listener, address }, tokens, pump))
    }

    fn identities(&self) -> Vec<Arc<str>> {
        self.tokens.identities()
    }
}

/// Where those who come over TCP come from.
struct Knocks {
    listener: TcpListener,
    address: SocketAddr,
}

impl Source for Knocks {
    type Came = TcpStream;
    type Stream = TcpStream;

    fn place(&self) -> String {
        self.address.to_string()
    }

    async fn accept(&self) -> io::Result<(TcpStream, String)> {
        let (stream, peer) = self.listener.accept().await?;
        // Answers are written together already: nothing is gained by waiting for more.
        drop(stream.set_nodelay(true));
        Ok((stream, peer.to_string()))
    }

    async fn open(&self, stream: TcpStream) -> io::Result<Opened<Knocks>> {
        // Whoever comes from this very machine needs no token, and shares a name.
        let console = || Identity { name: CONSOLE.into(), operator: false };
        Ok(Opened { stream, who: is_local(self.address.ip()).then(console) })
    }
}
