//! A model's server whose replies never end, and clients that ask an agent for such replies.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of text in each piece of a reply.
const PIECE_BYTES: usize = 4_000;

/// The model's server.
pub(crate) struct Endless {
    port: u16,
    said: Arc<AtomicU64>,
}

impl Endless {
    /// Starts the server on a free port. It answers every request until the process ends.
    pub(crate) fn serve() -> Endless {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let said = Arc::new(AtomicU64::new(0));
        let counted = said.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let said = counted.clone();
                std::thread::spawn(move || answer(&stream, &said));
            }
        });
        Endless { port, said }
    }

    /// Writes a manifest with an agent whose model is on this server, and with the listener `echo`,
    /// which the neighbour needs.
    pub(crate) fn write_manifest(&self, folder: &Path) {
        let url = format!("http://127.0.0.1:{}/v1", self.port);
        let model = format!("models:\n  m: {{use: openai, url: \"{url}\", model: endless}}\n");
        let listeners = "listeners:\n  - use: echo\n  - {use: agent, name: talker, model: m}\n";
        std::fs::write(folder.join("organism.yaml"), model + listeners).expect("a folder");
    }

    /// Returns how much text the server has sent, in MiB.
    pub(crate) fn said_mib(&self) -> u64 {
        self.said.load(Ordering::Relaxed) >> 20
    }
}

fn answer(mut stream: &TcpStream, said: &AtomicU64) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    if lines.by_ref().all(|it| !it.is_empty()) {
        return;
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let text = "It goes on and on. ".repeat(PIECE_BYTES / 19);
    let piece = serde_json::json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
    let piece = format!("data: {piece}\n\n");
    let mut result = stream.write_all(head.as_bytes());
    while result.is_ok() {
        result = stream.write_all(piece.as_bytes());
        said.fetch_add(text.len() as u64, Ordering::Relaxed);
    }
}

/// Asks the agent `count` times, each time over a connection and in a thread of its own. Returns
/// the open connections.
pub(crate) fn ask(address: &str, count: usize) -> Vec<TcpStream> {
    let ask = |_| {
        let mut stream = TcpStream::connect(address).expect("the pump listens");
        let text = "<talker xmlns=\"https://xml-pipeline.org/ns/talker/v1\">Talk.</talker>\n";
        stream.write_all(text.as_bytes()).expect("the pump reads");
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).expect("an answer comes");
        assert!(line.contains("<accepted "), "the agent's asker heard {line:?}");
        stream
    };
    (0..count).map(ask).collect()
}
