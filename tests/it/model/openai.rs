//! A model behind a server that has the API of OpenAI.

use std::time::Duration;

use pumphouse::limits::ModelLimits;
use pumphouse::model::remote::Settings;
use pumphouse::model::{Kind, Model, Piece, Prompt, Remote, Stop, Usage, Wire};
use pumphouse::secret::Secret;
use serde_json::json;

use super::fake::{Act, DONE, STOP, Server, answer, delta, events, head, say};
use super::{heard, text_of};

#[tokio::test]
async fn a_reply_is_heard_while_it_is_written() {
    let usage =
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n";
    let acts = vec![
        events(),
        say(": ping\n\n"),
        delta("Hel"),
        delta("lo"),
        say(STOP),
        say(usage),
        say(DONE),
    ];
    let server = Server::start(vec![acts]).await;
    let model = server.model().window(4_096).build().unwrap();
    let (pieces, error) = heard(&model).await;
    let expected = [
        Piece::Text("Hel".into()),
        Piece::Text("lo".into()),
        Piece::Usage(Usage::new(3, 2)),
        Piece::Stop(Stop::End),
    ];
    assert_eq!((&pieces[..], error), (&expected[..], None));
    assert_eq!(model.window(), Some(4_096));
}

#[tokio::test]
async fn a_server_is_asked_as_the_settings_say() {
    let server = Server::start(vec![answer("a")]).await;
    let model = server
        .model()
        .key(Secret::new("sk-1"))
        .header("X-Title", Secret::new("pump"))
        .max_tokens(16)
        .build()
        .unwrap();
    assert_eq!(text_of(&heard(&model).await.0), "a");
    let asked = &server.asked()[0];
    assert!(asked.head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", asked.head);
    for line in [
        "authorization: Bearer sk-1",
        "x-title: pump",
        "accept: text/event-stream",
        "content-type: application/json",
        concat!("user-agent: pumphouse/", env!("CARGO_PKG_VERSION")),
    ] {
        assert!(asked.head.lines().any(|it| it == line), "no {line} in {}", asked.head);
    }
    let expected = json!({
        "model": "m",
        "messages": [{ "role": "user", "content": "Hi" }],
        "stream": true,
        "stream_options": { "include_usage": true },
        "max_tokens": 16,
    });
    assert_eq!(asked.body, expected);
}

#[tokio::test]
async fn a_server_that_doesnt_stream_is_understood() {
    let body = "{\"choices\":[{\"message\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}";
    let acts = vec![head("200 OK", "content-type: application/json; charset=utf-8\r\n"), say(body)];
    let server = Server::start(vec![acts]).await;
    let (pieces, error) = heard(&server.model().build().unwrap()).await;
    assert_eq!((text_of(&pieces).as_str(), error), ("Hello", None));
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    let limited = vec![head("429 Too Many Requests", "retry-after: 1\r\n"), say("Slow down.")];
    let failed =
        vec![head("500 Internal Server Error", ""), say("{\"error\":{\"message\":\"boom\"}}")];
    let within = vec![events(), say("data: {\"error\":{\"message\":\"busy\",\"code\":503}}\n\n")];
    let server = Server::start(vec![limited, failed, within, answer("a")]).await;
    let model = server.model().build().unwrap();
    let begun = pumphouse::clock::now_us();
    let (pieces, error) = heard(&model).await;
    let passed_us = pumphouse::clock::now_us() - begun;
    assert_eq!(error, None);
    let tried: Vec<_> = pieces
        .iter()
        .filter_map(|it| match it {
            Piece::Tried(error) => Some((error.kind, error.status, error.said.as_deref())),
            _ => None,
        })
        .collect();
    assert_eq!(
        tried,
        [
            (Kind::RateLimited, Some(429), Some("Slow down.")),
            (Kind::Failed, Some(500), Some("boom")),
            (Kind::Failed, Some(503), Some("busy")),
        ]
    );
    assert!(matches!(pieces[..3], [Piece::Tried(_), Piece::Tried(_), Piece::Tried(_)]));
    assert_eq!(text_of(&pieces), "a");
    assert!(passed_us >= 1_000_000, "it came back after {passed_us} µs");
}

#[tokio::test]
async fn it_is_tried_so_often_and_no_more() {
    let server = Server::start(vec![vec![head("503 Service Unavailable", "")]]).await;
    let (pieces, error) = heard(&server.model().build().unwrap()).await;
    let error = error.unwrap();
    assert_eq!((pieces, error.kind, error.attempts()), (vec![], Kind::Failed, 4));
    assert_eq!(error.to_string(), "the server failed: 503 Service Unavailable, tried 4 times");
    assert_eq!(server.asked().len(), 4);
}

#[tokio::test]
async fn a_server_that_asks_for_more_time_than_there_is_has_refused() {
    let acts = vec![head("429 Too Many Requests", "retry-after: 3600\r\n")];
    let server = Server::start(vec![acts]).await;
    let error = heard(&server.model().build().unwrap()).await.1.unwrap();
    assert_eq!((error.kind, error.retry, error.attempts()), (Kind::RateLimited, true, 1));
    assert_eq!(error.retry_after, Some(Duration::from_secs(3_600)));
}

#[tokio::test]
async fn whoever_drops_a_reply_ends_the_request() {
    let acts = vec![events(), delta("a"), Act::Hang];
    let server = Server::start(vec![acts]).await;
    let model = server.model().build().unwrap();
    let mut reply = model.turn(Prompt::new("").user("Hi")).await.unwrap();
    assert_eq!(reply.next().await, Ok(Some(Piece::Text("a".into()))));
    assert_eq!(server.left(), 0);
    drop(reply);
    crate::eventually(async || server.left() > 0).await;
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "whoever reads slowly takes time")]
async fn whoever_reads_slowly_slows_the_server_down() {
    // Far more than what sockets keep for a reader.
    let many = (0..64).map(|_| delta(&"a".repeat(1_000_000)));
    let acts = [events()].into_iter().chain(many).chain([say(STOP), say(DONE)]).collect();
    let server = Server::start(vec![acts]).await;
    let limits = ModelLimits {
        event_bytes_max: 2_000_000,
        reply_bytes_max: 64_000_000,
        replies_bytes_max: 256_000_000,
        ..ModelLimits::default()
    };
    let model = server.model().limits(limits).build().unwrap();
    let mut reply = model.turn(Prompt::new("").user("Hi")).await.unwrap();
    let mut last = usize::MAX;
    while server.said() != last {
        last = server.said();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(last < 32_000_000, "{last} bytes came while nobody read");
    let mut bytes = 0;
    while let Some(piece) = reply.next().await.unwrap() {
        if let Piece::Text(text) = piece {
            bytes += text.len();
        }
    }
    assert_eq!(bytes, 64_000_000);
}

#[test]
fn settings_that_wont_do_say_why() {
    let check = |settings: Settings, setting: &str, message: &str| {
        let error = settings.build().unwrap_err();
        assert_eq!((error.setting, &*error.message), (setting, message));
    };
    let no_url = "this is no URL, as in https://llm.example.org/v1 or http://127.0.0.1:8080/v1";
    check(Remote::at(Wire::OpenAiChat, "llm.example.org", "m"), "url", no_url);
    check(
        Remote::at(Wire::OpenAiChat, "ftp://a", "m"),
        "url",
        "a URL of a model begins with https:// or http://",
    );
    let password = "a URL is no place for a password; give it as the key";
    check(Remote::at(Wire::OpenAiChat, "https://u:p@a/v1", "m"), "url", password);
    check(Remote::at(Wire::OpenAiChat, "http://a/v1", " "), "model", "the model has no name");
    let at = || Remote::at(Wire::OpenAiChat, "http://a/v1", "m");
    let control = "the value of authorization holds what no header may: a control character";
    check(at().key(Secret::new("a\nb")), "key", control);
    check(at().header("a b", Secret::new("c")), "headers", "\"a b\" is no name of a header");
    let proxy = "the proxy is no URL, as in http://127.0.0.1:3128";
    check(at().proxy(Secret::new("::")), "proxy", proxy);
    let error = Remote::at(Wire::OpenAiChat, "https://a/v1", "m")
        .authority("no/such.pem")
        .build()
        .unwrap_err();
    assert!(error.message.starts_with("no/such.pem: "), "{error}");
}

#[test]
fn the_url_may_have_the_whole_path_and_a_query() {
    let check = |url: &str, expected: &str| {
        let model = Remote::at(Wire::OpenAiChat, url, "m").build().unwrap();
        assert_eq!(model.describe(), format!("m at {expected}"));
    };
    check("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1");
    check("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1");
    check("http://a/v1/chat/completions", "http://a/v1");
    check("http://a/deployments/x?api-version=1&key=secret", "http://a/deployments/x");
}
