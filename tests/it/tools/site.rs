//! A web server for tests: the path of a request decides the answer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What it answers.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// These bytes.
    Whole(Vec<u8>),
    /// These bytes, and then the same piece until the client goes.
    Endless(Vec<u8>, Vec<u8>),
    /// These bytes, and then one more each 50 ms.
    Slow(Vec<u8>),
}

type Answers = dyn Fn(&str) -> Answer + Send + Sync;

pub(super) struct Site {
    pub(super) port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// Starts it; an answer is by the path.
    pub(super) async fn start(answers: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let (shared, answers) = (asked.clone(), Arc::<Answers>::from(Box::new(answers) as Box<_>));
        spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                spawn(serve(stream, answers.clone(), shared.clone()));
            }
        });
        Site { port, asked }
    }

    /// Starts one that answers every request so.
    pub(super) async fn one(answer: Answer) -> Site {
        Site::start(move |_| answer.clone()).await
    }

    /// As a manifest lists it.
    pub(super) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The requests that came.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// An answer with a kind and a body.
pub(super) fn page(kind: &str, body: impl AsRef<[u8]>) -> Answer {
    let body = body.as_ref();
    let headers = format!("content-type: {kind}\r\ncontent-length: {}\r\n", body.len());
    Answer::Whole([head("200 OK", &headers).as_slice(), body].concat())
}

pub(super) fn redirect(to: &str) -> Answer {
    Answer::Whole(head("302 Found", &format!("location: {to}\r\ncontent-length: 0\r\n")))
}

pub(super) fn head(status: &str, headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n").into_bytes()
}

#[expect(clippy::disallowed_methods, reason = "a test has no port")]
fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
}

#[expect(clippy::disallowed_methods, reason = "a server's slowness is what is tested")]
async fn serve(mut stream: TcpStream, answers: Arc<Answers>, asked: Arc<Mutex<Vec<String>>>) {
    let Some(request) = read(&mut stream).await else { return };
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    asked.lock().unwrap().push(request);
    match answers(&path) {
        Answer::Whole(bytes) => drop(stream.write_all(&bytes).await),
        Answer::Endless(head, piece) => {
            let mut is_there = stream.write_all(&head).await.is_ok();
            while is_there {
                is_there = stream.write_all(&piece).await.is_ok();
            }
        }
        Answer::Slow(head) => {
            let mut is_there = stream.write_all(&head).await.is_ok();
            while is_there {
                tokio::time::sleep(Duration::from_millis(50)).await;
                is_there = stream.write_all(b"x").await.is_ok();
            }
        }
    }
    drop(stream.shutdown().await);
}

/// A request with its body.
async fn read(stream: &mut TcpStream) -> Option<String> {
    let (mut all, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut piece).await.ok().filter(|it| *it > 0)?;
        all.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&all).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|it| it.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |it| it.parse().unwrap()) {
            return Some(text);
        }
    }
}
