//! A server that sends what a test tells it to send, even if that is invalid in HTTP.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pumphouse::limits::ModelLimits;
use pumphouse::model::remote::Settings;
use pumphouse::model::{Remote, Wire};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// One thing that it does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Say(Vec<u8>),
    /// Says the same again and again, so many times, and keeps nothing of it.
    Flood(Arc<[u8]>, usize),
    /// Waits so long.
    Wait(Duration),
    /// Waits until it is told.
    Until(Arc<Notify>),
    /// Waits until the client goes.
    Hang,
}

impl Act {
    /// What it says.
    pub(crate) fn text(&self) -> String {
        match self {
            Act::Say(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        }
    }
}

pub(crate) fn say(text: impl AsRef<[u8]>) -> Act {
    Act::Say(text.as_ref().to_vec())
}

/// The head of an answer that ends with its connection.
pub(crate) fn head(status: &str, headers: &str) -> Act {
    say(format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n"))
}

pub(crate) fn events() -> Act {
    head("200 OK", "content-type: text/event-stream\r\n")
}

/// An event that adds a text.
pub(crate) fn delta(text: &str) -> Act {
    let text = Value::from(text);
    say(format!("data: {{\"choices\":[{{\"delta\":{{\"content\":{text}}}}}]}}\n\n"))
}

pub(crate) const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// A whole answer.
pub(crate) fn answer(text: &str) -> Vec<Act> {
    vec![events(), delta(text), say(STOP), say(DONE)]
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: Value,
}

#[derive(Default)]
struct Seen {
    asked: Vec<Asked>,
    /// Bytes of what was said so far.
    said: usize,
    /// Clients that went while it hung.
    left: usize,
}

/// What it does with a request.
type Answer = dyn Fn(&Asked) -> Vec<Act> + Send + Sync;

pub(crate) struct Server {
    port: u16,
    seen: Arc<Mutex<Seen>>,
}

impl Server {
    /// Gives each request the next of these answers, and the last one to all further ones.
    pub(crate) async fn start(answers: Vec<Vec<Act>>) -> Server {
        let next = AtomicUsize::new(0);
        Server::answering(move |_| {
            let number = next.fetch_add(1, Ordering::Relaxed);
            answers[number.min(answers.len() - 1)].clone()
        })
        .await
    }

    /// Answers each request as a function says.
    pub(crate) async fn answering(
        answer: impl Fn(&Asked) -> Vec<Act> + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::<Mutex<Seen>>::default();
        let shared = seen.clone();
        let answer: Arc<Answer> = Arc::new(answer);
        let serve = async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                spawn(serve(stream, answer.clone(), shared.clone()));
            }
        };
        spawn(serve);
        Server { port, seen }
    }

    /// A model there, which waits no longer than a test can.
    pub(crate) fn model(&self) -> Settings {
        let limits = ModelLimits {
            retry_time_min: Duration::from_millis(1),
            retry_time_max: Duration::from_millis(2_000),
            ..ModelLimits::default()
        };
        Remote::at(Wire::OpenAiChat, self.url(), "m").limits(limits)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.seen.lock().unwrap().asked.clone()
    }

    /// Keeps none of the requests that came so far.
    pub(crate) fn forget(&self) {
        self.seen.lock().unwrap().asked.clear();
    }

    pub(crate) fn said(&self) -> usize {
        self.seen.lock().unwrap().said
    }

    pub(crate) fn left(&self) -> usize {
        self.seen.lock().unwrap().left
    }
}

/// A server that speaks before it is spoken to: its port.
pub(crate) async fn rude(text: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            drop(stream.write_all(text.as_bytes()).await);
            while stream.read(&mut [0; 64]).await.is_ok_and(|it| it > 0) {}
        }
    });
    port
}

#[expect(clippy::disallowed_methods, reason = "a test has no port")]
fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
}

#[expect(clippy::disallowed_methods, reason = "a server's slowness is what is tested")]
async fn serve(mut stream: TcpStream, answer: Arc<Answer>, seen: Arc<Mutex<Seen>>) {
    stream.set_nodelay(true).unwrap();
    let Some(asked) = read(&mut stream).await else { return };
    let acts = answer(&asked);
    seen.lock().unwrap().asked.push(asked);
    for act in acts {
        match act {
            // A client may have gone: then there is nobody to say it to.
            Act::Say(bytes) if stream.write_all(&bytes).await.is_err() => return,
            Act::Say(bytes) => seen.lock().unwrap().said += bytes.len(),
            Act::Flood(bytes, times) => {
                for _ in 0..times {
                    if stream.write_all(&bytes).await.is_err() {
                        return;
                    }
                    seen.lock().unwrap().said += bytes.len();
                }
            }
            Act::Until(told) => told.notified().await,
            Act::Wait(time) => tokio::time::sleep(time).await,
            Act::Hang => {
                while stream.read(&mut [0; 64]).await.is_ok_and(|it| it > 0) {}
                seen.lock().unwrap().left += 1;
            }
        }
    }
    drop(stream.shutdown().await);
}

/// A request, with its body.
async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    loop {
        let mut some = [0; 4_096];
        let count = stream.read(&mut some).await.ok().filter(|it| *it > 0)?;
        bytes.extend_from_slice(&some[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|it| {
            let (name, value) = it.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then_some(value)
        })?;
        if body.len() >= length.parse().unwrap() {
            let (head, body) = (head.to_owned(), serde_json::from_str(body).unwrap());
            return Some(Asked { head, body });
        }
    }
}
