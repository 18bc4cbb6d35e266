//! Connects to a pump over TLS.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::tls_trust;

/// Makes a TLS connection to a host. The certificates of trusted issuers are in the file
/// `authority`. Without a file, the issuers that this system trusts are trusted.
pub(super) async fn connect(
    stream: TcpStream,
    host: &str,
    authority: Option<&Path>,
) -> io::Result<TlsStream<TcpStream>> {
    let config = tls_trust::config(authority)?;
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        let text = format!("{host:?} is no host's name, and no certificate could be held by it");
        io::Error::new(io::ErrorKind::InvalidInput, text)
    })?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(explained)
}

/// Explains the error if the certificate is wrong or the pump doesn't speak TLS.
fn explained(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(|it| it.downcast_ref::<rustls::Error>());
    match inner.and_then(tls_trust::explained) {
        Some(text) if matches!(inner, Some(rustls::Error::InvalidMessage(_))) => {
            let text = format!("{text}; connect to it without tls:, as HOST:PORT");
            io::Error::new(io::ErrorKind::Unsupported, text)
        }
        Some(text) => io::Error::new(error.kind(), text),
        None => error,
    }
}
