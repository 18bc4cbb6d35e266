//! Keys are sent to their servers and shown nowhere else.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use pumphouse::model::{Model, Piece, Prompt};
use pumphouse::secret::Secret;
use tracing_subscriber::fmt::MakeWriter;

use super::fake::{Server, answer, events, head, say};

const KEY: &str = "sk-6f0e8c1d";
const HEADER: &str = "hdr-77b1a2";

#[tokio::test]
async fn a_key_is_never_shown() {
    let echo = format!("{{\"error\":{{\"message\":\"Incorrect API key: {KEY} ({HEADER})\"}}}}");
    let stream = format!("data: {echo}\n\n");
    let server = Server::start(vec![
        vec![head("500 Internal Server Error", "content-type: application/json\r\n"), say(&echo)],
        vec![head("429 Too Many Requests", &format!("x-key: {KEY}\r\n")), say(&echo)],
        vec![events(), say(&stream)],
        answer("a"),
        vec![
            events(),
            say("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"),
            say(&stream),
        ],
        vec![head("401 Unauthorized", "content-type: application/json\r\n"), say(&echo)],
        vec![events(), say(format!("data: {KEY}\n\n"))],
    ])
    .await;
    let heard = Heard::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(heard.clone())
        .finish();
    let _guard = crate::metrics::traced_to(subscriber);
    let settings = server
        .model()
        .key(Secret::new(KEY))
        .header("x-tenant", Secret::new(HEADER))
        .proxy(Secret::new("http://user:pw-1b2c@127.0.0.1:1"))
        .no_proxy();
    let mut shown = format!("{settings:?}");
    let model = settings.build().unwrap();
    shown += &format!("{model:?} {}", model.describe());
    for _ in 0..4 {
        match model.turn(Prompt::new("").user("Hi")).await {
            Err(error) => shown += &format!("{error:?} {error}"),
            Ok(mut reply) => {
                shown += &format!("{reply:?}");
                loop {
                    let piece = reply.next().await;
                    shown += &format!("{piece:?}");
                    if let Err(error) = &piece {
                        shown += &error.to_string();
                    }
                    if matches!(piece, Ok(None) | Err(_)) {
                        break;
                    }
                }
            }
        }
    }
    assert_eq!(server.asked().len(), 7, "each of the server's answers was heard");
    assert!(server.asked().iter().all(|it| it.head.contains(KEY)), "the server is shown it");
    let traced = String::from_utf8(heard.0.lock().unwrap().clone()).unwrap();
    assert!(traced.contains("a model is asked again"), "{traced}");
    assert!(shown.contains("Incorrect API key: … (…)"), "{shown}");
    for secret in [KEY, HEADER, "pw-1b2c"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
        assert!(!traced.contains(secret), "{secret} in {traced}");
    }
}

#[tokio::test]
async fn a_key_that_a_server_repeats_in_pieces_of_a_reply_is_never_shown() {
    let piece = |text: &str| {
        say(format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"))
    };
    let (first, rest) = KEY.split_at(5);
    let stop =
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let escaped = HEADER.replace('-', "\\u002d");
    let server = Server::start(vec![vec![
        events(),
        piece(&format!("Your key is {first}")),
        piece(&format!("{rest}, your tenant {escaped}. s")),
        piece("k-"),
        say(stop),
    ]])
    .await;
    let settings = server.model().key(Secret::new(KEY)).header("x-tenant", Secret::new(HEADER));
    let mut reply = settings.build().unwrap().turn(Prompt::new("").user("Hi")).await.unwrap();
    let mut said = String::new();
    while let Some(piece) = reply.next().await.unwrap() {
        if let Piece::Text(text) = piece {
            said += &text;
        }
    }
    assert_eq!(said, "Your key is …, your tenant …. sk-");
}

/// What was traced.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<u8>>>);

impl Write for Heard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Heard {
    type Writer = Heard;

    fn make_writer(&self) -> Heard {
        self.clone()
    }
}
