//! Plays scenes over sockets: a pump with a door, and a connection for each speaker.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pumphouse::limits::XmlLimits;
use pumphouse::prelude::*;
use pumphouse::wire::core::Authenticated;
use pumphouse::xml::{self, Profile, Splitter};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::play::{Line, Stage, payload};

/// Who may speak; their tokens are their names backwards.
pub(super) const SPEAKERS: [&str; 2] = ["alice", "bob"];

/// Where the pump listens.
pub(super) enum Socket {
    Tcp(SocketAddr),
    Unix(PathBuf),
    /// By TLS, with a file of whom to trust.
    Tls(SocketAddr, PathBuf),
}

trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

pub(super) struct SocketLine {
    stream: Box<dyn Stream>,
    splitter: Splitter,
}

impl Stage for Socket {
    type Line = SocketLine;

    async fn open(&self, who: &str) -> SocketLine {
        let stream: Box<dyn Stream> = match self {
            Socket::Tcp(address) => Box::new(TcpStream::connect(address).await.unwrap()),
            Socket::Tls(address, authority) => Box::new(tls(*address, authority).await),
            Socket::Unix(path) => Box::new(UnixStream::connect(path).await.unwrap()),
        };
        let mut line = SocketLine { stream, splitter: Splitter::new(XmlLimits::INSIDE) };
        if SPEAKERS.contains(&who) {
            line.send(format!("<authenticate token=\"{}\"/>\n", token(who)).as_bytes()).await;
            let message = line.next().await.unwrap();
            let Authenticated { identity } = Authenticated::decode(&payload(&message)).unwrap();
            assert_eq!(identity, who);
        }
        line
    }
}

impl Line for SocketLine {
    async fn send(&mut self, bytes: &[u8]) {
        // Whoever was cut off may learn of it here or by reading.
        let _ = self.stream.write_all(bytes).await;
    }

    async fn next(&mut self) -> Option<Element> {
        loop {
            if let Some(frame) = self.splitter.next().unwrap() {
                return Some(xml::read(&frame.bytes, Profile::Wire, &XmlLimits::INSIDE).unwrap());
            }
            let mut bytes = [0; 4_096];
            let count = self.stream.read(&mut bytes).await.unwrap();
            if count == 0 {
                self.splitter.finish().unwrap();
                return None;
            }
            self.splitter.feed(&bytes[..count]);
        }
    }

    async fn hang_up(&mut self) {
        let _ = self.stream.shutdown().await;
    }
}

async fn tls(address: SocketAddr, authority: &Path) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = address.ip().into();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

pub(super) fn token(who: &str) -> String {
    who.chars().rev().collect()
}
