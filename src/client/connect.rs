//! Connects to the address of a pump.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::address::Address;
use crate::client::tls;

/// A byte stream that carries messages.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Connects to an address.
pub(super) async fn connect(address: &Address) -> io::Result<Box<dyn Stream>> {
    match address {
        Address::Tcp(address) => Ok(Box::new(tcp(address).await?)),
        Address::Tls { address, authority } => {
            let host = address.rsplit_once(':').map_or(&**address, |(host, _)| host);
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let stream = tcp(address).await?;
            Ok(Box::new(tls::connect(stream, host, authority.as_deref()).await?))
        }
        #[cfg(unix)]
        Address::Unix(path) => Ok(Box::new(tokio::net::UnixStream::connect(path).await?)),
        #[cfg(not(unix))]
        Address::Unix(_) => {
            let text = "this system has no Unix sockets";
            Err(io::Error::new(io::ErrorKind::Unsupported, text))
        }
    }
}

async fn tcp(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
