//! TLS to a pump.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::trust;

/// Speaks TLS over a connection to a host. Trusted is who issued the certificates of a file, or
/// else whom this system trusts.
pub(super) async fn connect(
    stream: TcpStream,
    host: &str,
    authority: Option<&Path>,
) -> io::Result<TlsStream<TcpStream>> {
    let config = trust::config(authority)?;
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        let text = format!("{host:?} is no host's name, and no certificate could be held by it");
        io::Error::new(io::ErrorKind::InvalidInput, text)
    })?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(explained)
}

/// Says what to do, where it is the certificate, or no TLS at all.
fn explained(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(|it| it.downcast_ref::<rustls::Error>());
    match inner.and_then(trust::explained) {
        Some(text) if matches!(inner, Some(rustls::Error::InvalidMessage(_))) => {
            let text = format!("{text}; connect to it without tls:, as HOST:PORT");
            io::Error::new(io::ErrorKind::Unsupported, text)
        }
        Some(text) => io::Error::new(error.kind(), text),
        None => error,
    }
}
