//! A WebSocket server for tests: it keeps what is sent to it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;
use tokio_tungstenite::tungstenite::{self, Message};

/// Bytes both ways.
trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

pub(super) struct Peer {
    port: u16,
    stream: Arc<Mutex<Option<TcpStream>>>,
    taken: Receiver<Value>,
    over: JoinHandle<()>,
}

impl Peer {
    /// A peer at this port; at 0, at any. It takes one connection.
    pub(super) fn at(port: u16) -> Peer {
        Peer::with(port, None)
    }

    /// The same by TLS, at any port.
    pub(super) fn by_tls(tls: ServerConfig) -> Peer {
        Peer::with(0, Some(tls))
    }

    fn with(port: u16, tls: Option<ServerConfig>) -> Peer {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (take, taken) = sync_channel(10_000);
        let stream = Arc::new(Mutex::new(None));
        let kept = stream.clone();
        let over = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            drop(listener);
            let own = stream.try_clone().unwrap();
            let stream: Box<dyn Stream> = match tls {
                None => Box::new(stream),
                Some(tls) => {
                    let tls = ServerConnection::new(Arc::new(tls)).unwrap();
                    Box::new(StreamOwned::new(tls, stream))
                }
            };
            let Ok(mut socket) = tungstenite::accept(stream) else { return };
            *kept.lock().unwrap() = Some(own);
            // It ends when the sink or the test wants it to.
            while let Ok(message) = socket.read() {
                if let Message::Text(text) = message {
                    take.send(serde_json::from_str(&text).unwrap()).unwrap();
                }
            }
        });
        Peer { port, stream, taken, over }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The next object.
    #[track_caller]
    pub(super) fn next(&self) -> Value {
        self.taken.recv_timeout(Duration::from_secs(60)).expect("an object comes")
    }

    /// Takes objects up to the entry at a position.
    #[track_caller]
    pub(super) fn upto(&self, position: u64) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            all.push(self.next());
            if all.last().is_some_and(|it| it["position"] == position) {
                return all;
            }
        }
    }

    /// Goes away without a word; gives what it was sent and nobody asked for yet.
    pub(super) fn go(self) -> Vec<Value> {
        if let Some(stream) = self.stream.lock().unwrap().take() {
            // The other side may be gone already.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        self.over.join().unwrap();
        self.taken.try_iter().collect()
    }

    /// Whether it has its connection.
    pub(super) fn is_connected(&self) -> bool {
        self.stream.lock().unwrap().is_some()
    }
}
