//! A stage with a socket: a pump with a TCP door, and a connection for each speaker.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::clock;
use crate::door::{Options, Tcp, Tokens};
use crate::engine::Builder;
use crate::limits::XmlLimits;
use crate::scene::{Line, Scene, Stage, play};
use crate::wire::Payload;
use crate::wire::core::{Authenticate, Authenticated};
use crate::xml::{self, Element, Profile, Splitter};
use pumphouse_log::MemoryLog;

/// The speaker that has no token.
const STRANGER: &str = "stranger";

/// Plays scenes on a new pump, which keeps its log in memory. Returns a text for each scene that
/// failed, with the scene's first difference.
///
/// # Errors
/// If the door can't be bound, or the pump can't be built, started or stopped.
pub async fn hold(builder: Builder, scenes: &[Scene]) -> Result<Vec<String>, String> {
    let speakers: BTreeSet<&str> =
        scenes.iter().flat_map(|it| &it.steps).map(|it| it.who.as_str()).collect();
    let token = || format!("{:016x}{:016x}", clock::random(), clock::random());
    let known = speakers.into_iter().filter(|it| *it != STRANGER);
    let tokens: BTreeMap<String, String> = known.map(|it| (it.to_owned(), token())).collect();
    let lines: String = tokens.iter().map(|(who, token)| format!("{who}:{token}\n")).collect();
    let options = Options::default().tokens(Tokens::parse(&lines).map_err(|it| it.to_string())?);
    let door = Tcp::bind("127.0.0.1:0", options).await.map_err(|it| it.to_string())?;
    let stage = Socket { address: door.local_addr(), tokens };
    let plan = builder.with((MemoryLog::new(), door)).build().map_err(|it| it.to_string())?;
    let pump = plan.start();
    pump.ready().await.map_err(|it| it.to_string())?;
    let mut wrong = Vec::new();
    for scene in scenes {
        wrong.extend(play(scene, &stage).await.err());
    }
    pump.shutdown().await.map_err(|it| it.to_string())?;
    Ok(wrong)
}

/// A door at which scenes are played.
#[derive(Debug)]
pub struct Socket {
    /// The door's address.
    pub address: SocketAddr,
    /// Maps a speaker's name to its token. Other speakers connect without a token.
    pub tokens: BTreeMap<String, String>,
}

/// A speaker's connection.
#[derive(Debug)]
pub struct SocketLine {
    /// None if the connection couldn't be opened or authenticated.
    stream: Option<TcpStream>,
    splitter: Splitter,
}

impl Stage for Socket {
    type Line = SocketLine;

    async fn open(&self, who: &str) -> SocketLine {
        let stream = TcpStream::connect(self.address).await.ok();
        let mut line = SocketLine { stream, splitter: Splitter::new(XmlLimits::INSIDE) };
        if let Some(token) = self.tokens.get(who)
            && let Ok(element) = (Authenticate { token: token.clone() }).encode()
        {
            line.send(&element.canonical()).await;
            let answer = line.next().await.map(|it| crate::scene::payload(&it));
            if answer.is_none_or(|it| Authenticated::decode(&it).is_err()) {
                line.stream = None;
            }
        }
        line
    }
}

impl Line for SocketLine {
    async fn send(&mut self, bytes: &[u8]) {
        if let Some(stream) = &mut self.stream {
            // An error is ignored here, since the next read notices if the connection has ended.
            drop(stream.write_all(bytes).await);
        }
    }

    async fn next(&mut self) -> Option<Element> {
        loop {
            if let Ok(Some(frame)) = self.splitter.next() {
                return xml::read(&frame.bytes, Profile::Wire, &XmlLimits::INSIDE).ok();
            }
            let mut bytes = [0; 4_096];
            let count = self.stream.as_mut()?.read(&mut bytes).await.ok()?;
            if count == 0 {
                return None;
            }
            self.splitter.feed(&bytes[..count]);
        }
    }

    async fn hang_up(&mut self) {
        if let Some(stream) = &mut self.stream {
            drop(stream.shutdown().await);
        }
    }
}
