//! A sink that sends JSON objects to a WebSocket, and waits until the peer confirms them.

use std::future::Future;
use std::sync::Arc;
use std::{fmt, io};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::Url;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::engine::{Port as _, Tokio};
use crate::follower::{Sent, Target, Unreachable};
use crate::limits::XmlLimits;
use crate::log::{Entry, Error};
use crate::sink::NoSink;
use crate::sink::item::{Item, Waiting};
use crate::tls_trust;

/// The default of `reconnect_attempts`.
const ATTEMPTS: u32 = 3;
/// How long a peer may take to answer or to take a frame, in microseconds.
const ANSWER_TIME_MAX_US: u64 = 10_000_000;
/// How long closing a connection may take, in microseconds.
const END_TIME_MAX_US: u64 = 1_000_000;
/// The largest message that a peer may send, in bytes. The sink ignores the content.
const HEARD_BYTES_MAX: usize = 64 * 1024;
/// How many messages of the peer are read before everything that waits to be written is written.
/// Each of them may be a ping, whose pong waits then.
const HEARD_MAX: usize = 1_024;
/// The most bytes of one item under the default limits: JSON writes a byte as up to six.
const ITEM_BYTES_MAX: usize = 6 * XmlLimits::INSIDE.message_bytes_max;
/// How many bytes may wait to be written beside one item.
const BESIDE_BYTES_MAX: usize = 256 * 1024;

/// A WebSocket that a sink sends to.
///
/// ```
/// # extern crate pumphouse_organism as pumphouse;
/// use pumphouse::sink::{Sink, WebSocket};
///
/// let ui = WebSocket::at("ws://localhost:8080/events")?.reconnect_attempts(5);
/// let sink = Sink::websocket("ui", ui);
/// assert!(WebSocket::at("http://localhost:8080/events").is_err());
/// # Ok::<(), pumphouse::sink::NoSink>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct WebSocket {
    url: Url,
    attempts: u32,
    buffers: bool,
}

impl WebSocket {
    /// The WebSocket at a URL such as `ws://localhost:8080/events`.
    ///
    /// # Errors
    /// The URL doesn't begin with `ws://` or `wss://` and a host, or holds a user or a password.
    pub fn at(url: &str) -> Result<WebSocket, NoSink> {
        let wrong = |text: &str| NoSink { setting: "url", text: text.to_owned() };
        let none = "this is no URL of a WebSocket; write one such as ws://localhost:8080/events";
        let url: Url = url.parse().map_err(|_| wrong(none))?;
        if !matches!(url.scheme(), "ws" | "wss") || url.host_str().is_none_or(str::is_empty) {
            return Err(wrong("the URL of a WebSocket begins with ws:// or wss:// and a host"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("a URL is no place for a password; leave it out"));
        }
        Ok(WebSocket { url, attempts: ATTEMPTS, buffers: true })
    }

    /// Sets how many attempts to reach the peer may fail before the sink waits for the next entry
    /// of the log; 3 by default.
    #[must_use]
    pub fn reconnect_attempts(self, attempts: u32) -> WebSocket {
        WebSocket { attempts, ..self }
    }

    /// Sets whether a peer that was unreachable gets the entries that were written meanwhile; true
    /// by default. With false, the peer gets only the number of these entries.
    #[must_use]
    pub fn buffer_on_disconnect(self, buffers: bool) -> WebSocket {
        WebSocket { buffers, ..self }
    }

    /// The URL without its query, which may hold a secret.
    fn shown(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        url.into()
    }
}

impl fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WebSocket").field(&self.shown()).finish()
    }
}

/// A stream of bytes in both directions.
trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for T {}

type Connection = WebSocketStream<Box<dyn Stream>>;

/// Sends the items of a sink.
pub(super) struct Client {
    name: String,
    to: WebSocket,
    connection: Option<Connection>,
    /// How many pings were sent so far; each ping carries its number.
    pings: u64,
    /// How many messages of the peer were read since everything was last written.
    heard: usize,
    waiting: Waiting,
}

impl Client {
    pub(super) fn new(name: String, to: WebSocket, waiting: Waiting) -> Client {
        Client { name, to, connection: None, pings: 0, heard: 0, waiting }
    }

    /// The most bytes that one of the waiting items may have as JSON, or that an item has under the
    /// default limits.
    fn item_bytes_max(&self) -> usize {
        let bytes = self.waiting.items.iter().map(|it| match it {
            Item::Entry(it) => it.body.len().saturating_add(it.meta.as_ref().map_or(0, Bytes::len)),
            Item::Live(it) => it.payload.canonical().len(),
            _ => 0,
        });
        bytes.max().unwrap_or(0).saturating_mul(6).max(ITEM_BYTES_MAX)
    }
}

impl Target for Client {
    fn attempts_max(&self) -> Option<u32> {
        Some(self.to.attempts)
    }

    async fn take(&mut self, entry: Arc<Entry>) -> Result<(), Error> {
        self.waiting.take(entry);
        Ok(())
    }

    fn take_live(&mut self, position: u64) {
        self.waiting.take_live(position);
    }

    fn has_waiting(&self) -> bool {
        !self.waiting.items.is_empty()
    }

    async fn send(&mut self) -> Result<Sent, Unreachable> {
        // The connection is taken out of its field, so that it isn't used again after an error or
        // if this future is dropped.
        let mut connection = match self.connection.take() {
            Some(it) => it,
            None => {
                let opened = connect(&self.to.url, self.item_bytes_max());
                let opened = in_time(ANSWER_TIME_MAX_US, opened).await?;
                self.heard = 0;
                if !self.to.buffers {
                    self.connection = Some(opened);
                    return Ok(Sent::FromNowOn);
                }
                opened
            }
        };
        if self.heard > 0 {
            in_time(ANSWER_TIME_MAX_US, connection.flush()).await?;
            self.heard = 0;
        }
        if !self.waiting.items.is_empty() {
            self.pings += 1;
            let (waiting, heard) = (&self.waiting, &mut self.heard);
            let delivered = deliver(&mut connection, waiting, self.pings, heard).await;
            if let Err(away) = delivered {
                self.waiting.forget_live();
                return Err(away);
            }
            self.waiting.items.clear();
        }
        self.connection = Some(connection);
        Ok(Sent::All)
    }

    fn skip(&mut self, entries: u64) {
        self.waiting.skip(entries);
        if entries > 0 {
            let sink = &*self.name;
            tracing::info!(sink, entries, "a sink was away, and these entries are skipped");
        }
    }

    async fn wake(&mut self) {
        let Some(connection) = &mut self.connection else { return self.waiting.grown().await };
        let is_closed = tokio::select! {
            () = self.waiting.grown() => false,
            () = closed(connection, &mut self.heard) => true,
        };
        if is_closed {
            self.connection = None;
        }
    }

    async fn end(&mut self) {
        if let Some(mut connection) = self.connection.take() {
            // The sink ends in any case, so an error here changes nothing.
            let _ = in_time(END_TIME_MAX_US, connection.close(None)).await;
        }
    }

    fn report_unreachable(&self, reason: &str) {
        let (sink, url) = (&*self.name, self.to.shown());
        match self.to.buffers {
            true => tracing::warn!(
                sink,
                url,
                reason,
                "a sink is away; entries wait in the log until it is back"
            ),
            false => tracing::warn!(
                sink,
                url,
                reason,
                "a sink is away; what is written until it is back is skipped"
            ),
        }
    }

    fn report_reachable(&self) {
        let (sink, url) = (&*self.name, self.to.shown());
        tracing::info!(sink, url, "a sink is back");
    }
}

async fn connect(url: &Url, item_bytes_max: usize) -> Result<Connection, tungstenite::Error> {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let port = url.port_or_known_default().unwrap_or(80);
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    let stream: Box<dyn Stream> = match url.scheme() {
        "wss" => {
            let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
            let connector = TlsConnector::from(Arc::new(tls_trust::config(None)?));
            Box::new(connector.connect(name, stream).await.map_err(explained)?)
        }
        _ => Box::new(stream),
    };
    let config = Some(config(item_bytes_max));
    let (connection, _) = client_async_with_config(url.as_str(), stream, config).await?;
    Ok(connection)
}

fn config(item_bytes_max: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(HEARD_BYTES_MAX))
        .max_frame_size(Some(HEARD_BYTES_MAX))
        .max_write_buffer_size(item_bytes_max.saturating_add(BESIDE_BYTES_MAX))
}

/// Replaces the error of a wrong certificate, or of a peer without TLS, by an error that says what
/// to do.
fn explained(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(|it| it.downcast_ref::<rustls::Error>());
    match inner.and_then(tls_trust::explained) {
        Some(text) => io::Error::new(error.kind(), text),
        None => error,
    }
}

/// Sends the waiting items and a ping, and waits for the pong. The pong shows that the peer has
/// received every item.
async fn deliver(
    connection: &mut Connection,
    waiting: &Waiting,
    ping: u64,
    heard: &mut usize,
) -> Result<(), Unreachable> {
    for item in &waiting.items {
        let message = Message::text(item.to_json().to_string());
        in_time(ANSWER_TIME_MAX_US, connection.feed(message)).await?;
    }
    let ping = ping.to_be_bytes();
    let message = Message::Ping(ping.to_vec().into());
    in_time(ANSWER_TIME_MAX_US, connection.send(message)).await?;
    *heard = 0;
    let answered = async {
        // Each ping is answered, so a peer that sends them and reads nothing would fill the memory.
        while *heard < HEARD_MAX {
            *heard += 1;
            match connection.next().await {
                Some(Ok(Message::Pong(it))) if it[..] == ping => return Ok(()),
                Some(Ok(Message::Close(_))) | None => {
                    return Err(tungstenite::Error::ConnectionClosed);
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
            }
        }
        Err(tungstenite::Error::Io(io::Error::other(format!(
            "it sent {HEARD_MAX} messages, and not the pong that was waited for"
        ))))
    };
    in_time(ANSWER_TIME_MAX_US, answered).await
}

/// Waits until the connection is closed, or has to be because the peer sends too much. Messages of
/// the peer are ignored, and counted.
async fn closed(connection: &mut Connection, heard: &mut usize) {
    while *heard < HEARD_MAX {
        match connection.next().await {
            Some(Ok(Message::Close(_)) | Err(_)) | None => return,
            Some(Ok(_)) => *heard += 1,
        }
    }
}

/// Waits for an operation on a connection, for at most `time_max_us` microseconds.
async fn in_time<T>(
    time_max_us: u64,
    what: impl Future<Output = Result<T, tungstenite::Error>>,
) -> Result<T, Unreachable> {
    let port = Tokio::current();
    let over = port.sleep_until(port.now_us().saturating_add(time_max_us));
    tokio::select! {
        done = what => done.map_err(|it| Unreachable(it.to_string())),
        () = over => Err(Unreachable("it takes too long to answer".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio_tungstenite::tungstenite::protocol::Role;

    use super::*;
    use crate::engine::LiveQueue;

    /// A sink that is connected, and the peer's end of its connection.
    async fn connected() -> (Client, DuplexStream) {
        let (near, far) = duplex(64 * 1024);
        let near: Box<dyn Stream> = Box::new(near);
        let config = Some(config(ITEM_BYTES_MAX));
        let connection = WebSocketStream::from_raw_socket(near, Role::Client, config).await;
        let to = WebSocket::at("ws://localhost/events").unwrap();
        let waiting = Waiting::new(Arc::new(LiveQueue::new(0)), None, true);
        let client = Client::new("ui".to_owned(), to, waiting);
        (Client { connection: Some(connection), ..client }, far)
    }

    /// Unmasked pings with 125 bytes.
    fn pings(count: usize) -> Vec<u8> {
        [&[0x89, 125][..], &[b'x'; 125]].concat().repeat(count)
    }

    #[tokio::test]
    async fn a_peer_that_sends_pings_and_reads_nothing_is_left_however_often_the_sink_wakes() {
        let (mut client, mut peer) = connected().await;
        let pings = pings(300);
        for _ in 0..100 {
            tokio::select! {
                () = client.wake() => break,
                sent = peer.write_all(&pings) => sent.unwrap(),
            }
        }
        assert!(client.connection.is_none(), "{} messages were heard", client.heard);
    }

    #[tokio::test]
    async fn a_peer_that_takes_its_pongs_may_send_as_many_pings_as_it_likes() {
        let (mut client, mut peer) = connected().await;
        let (pings, pongs) = (pings(300), 300 * (125 + 6));
        for _ in 0..8 {
            peer.write_all(&pings).await.unwrap();
            while client.heard < 300 {
                tokio::select! {
                    () = client.wake() => panic!("the peer was left"),
                    () = tokio::task::yield_now() => {}
                }
            }
            assert_eq!(client.send().await.unwrap(), Sent::All);
            assert_eq!(client.heard, 0);
            peer.read_exact(&mut vec![0; pongs]).await.unwrap();
        }
    }

    #[test]
    fn what_is_no_websocket_is_refused_and_a_secret_isnt_repeated() {
        for url in [
            "localhost:8080/events",
            "http://localhost:8080/events",
            "ws://",
            "ws://me:secret@localhost/events",
            "wss://secret@localhost/events",
        ] {
            let wrong = WebSocket::at(url).unwrap_err();
            assert_eq!(wrong.setting, "url", "{url}");
            assert!(!wrong.text.contains("secret"), "{wrong}");
        }
        let it = WebSocket::at("wss://example.org/events?key=secret").unwrap();
        assert_eq!(format!("{it:?}"), "WebSocket(\"wss://example.org/events\")");
    }
}
