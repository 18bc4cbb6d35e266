//! Servers that hang, close too early, send slowly, lie about lengths, or refuse.

use std::time::Duration;

use pumphouse::limits::ModelLimits;
use pumphouse::model::{Error, Kind, Piece, Remote, Wait, Wire};

use super::fake::{Act, DONE, STOP, Server, delta, events, head, rude, say};
use super::{heard, text_of};

/// What is heard of a server that is asked once, and why it ends.
async fn once(acts: Vec<Act>, change: impl Fn(&mut ModelLimits)) -> (String, Option<Error>) {
    let server = Server::start(vec![acts]).await;
    let mut limits = ModelLimits {
        retries_max: 0,
        usage_time_max: Duration::from_millis(200),
        ..ModelLimits::default()
    };
    change(&mut limits);
    let (pieces, error) = heard(&server.model().limits(limits).build().unwrap()).await;
    (text_of(&pieces), error)
}

/// The text that is heard, and the kind of failure.
#[track_caller]
fn check((text, error): (String, Option<Error>), expected: &str, kind: Option<Kind>) {
    assert_eq!(text, expected);
    assert_eq!(error.as_ref().map(|it| it.kind), kind, "{error:?}");
}

#[tokio::test]
async fn a_server_that_hangs_is_left() {
    let soon = |it: &mut ModelLimits| {
        it.first_byte_time_max = Duration::from_millis(100);
        it.silence_time_max = Duration::from_millis(100);
    };
    let first = Some(Kind::TimedOut(Wait::FirstByte));
    check(once(vec![Act::Hang], soon).await, "", first);
    check(once(vec![events(), Act::Hang], soon).await, "", first);
    let next = Some(Kind::TimedOut(Wait::NextByte));
    check(once(vec![events(), say("data: {"), Act::Hang], soon).await, "", next);
    let (text, error) = once(vec![events(), delta("a"), Act::Hang], soon).await;
    let message = "the server fell silent in the middle of its reply: silence_time_max is 100ms";
    assert_eq!((text.as_str(), error.unwrap().to_string().as_str()), ("a", message));
    // When it has said that the reply is over, only the usage is waited for.
    check(once(vec![events(), delta("a"), say(STOP), Act::Hang], soon).await, "a", None);
}

#[tokio::test]
async fn a_reply_without_an_end_ends() {
    let mut acts = vec![events()];
    for _ in 0..100 {
        acts.extend([delta("a"), Act::Wait(Duration::from_millis(20))]);
    }
    let short = |it: &mut ModelLimits| it.reply_time_max = Duration::from_millis(300);
    let (text, error) = once(acts, short).await;
    assert!(!text.is_empty() && text.len() < 100, "{text}");
    assert_eq!(error.map(|it| it.kind), Some(Kind::TimedOut(Wait::End)));
    // Signs of life aren't a reply.
    let mut acts = vec![events()];
    for _ in 0..100 {
        acts.extend([say(": alive\n\n"), Act::Wait(Duration::from_millis(20))]);
    }
    check(once(acts, short).await, "", Some(Kind::TimedOut(Wait::End)));
}

#[tokio::test]
async fn a_server_that_cuts_is_told_from_one_that_ends() {
    let all = |_: &mut ModelLimits| {};
    check(once(vec![], all).await, "", Some(Kind::Cut));
    check(once(vec![events()], all).await, "", Some(Kind::Cut));
    check(once(vec![events(), delta("a")], all).await, "a", Some(Kind::Cut));
    check(once(vec![events(), delta("a"), say("data: {\"choi")], all).await, "a", Some(Kind::Cut));
    check(once(vec![events(), delta("a"), say(STOP)], all).await, "a", None);
    check(once(vec![events(), delta("a"), say(DONE)], all).await, "a", None);
    check(once(vec![events(), delta("a"), say(DONE.trim_end())], all).await, "a", None);
    check(once(vec![events(), delta("a"), say(STOP.trim_end())], all).await, "a", None);
}

#[tokio::test]
async fn a_server_that_lies_about_its_length_is_found_out() {
    let of = |length: usize| {
        let headers = format!("content-type: text/event-stream\r\ncontent-length: {length}\r\n");
        vec![head("200 OK", &headers), delta("a"), delta("b")]
    };
    let all = |_: &mut ModelLimits| {};
    check(once(of(10_000), all).await, "ab", Some(Kind::Cut));
    // What is beyond the length is no part of the answer.
    check(once(of(60), all).await, "a", Some(Kind::Cut));
    let chunked = "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n";
    let acts = vec![head("200 OK", chunked), say("ff\r\ndata: {")];
    check(once(acts, all).await, "", Some(Kind::Cut));
    let acts = vec![head("200 OK", chunked), say("zz\r\ndata: {")];
    check(once(acts, all).await, "", Some(Kind::Cut));
}

#[tokio::test]
async fn a_server_that_drips_is_heard() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"é\"}}]}\r\n\r\ndata: [DONE]\r\n\r\n";
    let bytes =
        text.bytes().flat_map(|it| [Act::Say(vec![it]), Act::Wait(Duration::from_millis(1))]);
    let acts = [events()].into_iter().chain(bytes).collect();
    check(once(acts, |_| {}).await, "é", None);
}

#[tokio::test]
async fn a_reply_is_no_longer_than_the_room_of_all_replies() {
    let shared = |it: &mut ModelLimits| it.replies_bytes_max = 400_000;
    let many: Vec<Act> = (0..300).map(|_| delta(&"b".repeat(1_000))).collect();
    let acts = [vec![events()], many, vec![Act::Hang]].concat();
    let (text, error) = once(acts, shared).await;
    let error = error.unwrap();
    assert_eq!(error.kind, Kind::TooLarge);
    assert!(error.to_string().contains("share replies_bytes_max, 400000"), "{error}");
    // A half at the most; other tests' replies may be under way.
    assert!((64_000..=200_000).contains(&text.len()), "{}", text.len());
}

#[tokio::test]
async fn a_server_that_says_too_much_is_left() {
    let small = |it: &mut ModelLimits| {
        it.event_bytes_max = 1_000;
        it.reply_bytes_max = 2_000;
        it.refusal_bytes_max = 100;
    };
    let long = format!("data: {}", "a".repeat(10_000));
    check(
        once(vec![events(), delta("a"), say(&long), Act::Hang], small).await,
        "a",
        Some(Kind::TooLarge),
    );
    let (_, error) = once(vec![events(), say(&long), Act::Hang], small).await;
    let message = "an event is over a limit: event_bytes_max is 1000";
    assert_eq!(error.unwrap().to_string(), message);
    let many: Vec<Act> = (0..5).map(|_| delta(&"b".repeat(500))).collect();
    let acts = [vec![events()], many].concat();
    let (text, error) = once(acts, small).await;
    assert_eq!((text.len(), error.map(|it| it.kind)), (2_000, Some(Kind::TooLarge)));
    let json = head("200 OK", "content-type: application/json\r\n");
    check(once(vec![json, say(&long), Act::Hang], small).await, "", Some(Kind::TooLarge));
    // A page that never ends is read as far as it may be.
    let page = head("500 Internal Server Error", "content-type: text/html\r\n");
    let (_, error) = once(vec![page, say("a".repeat(200)), Act::Hang], small).await;
    assert_eq!(error.unwrap().said.unwrap().len(), 100);
}

#[tokio::test]
async fn a_refusal_says_what_the_server_said() {
    let check = async |status: &str, headers: &str, body: &str, kind: Kind, expected: &str| {
        let acts = vec![head(status, headers), say(body)];
        let (_, error) = once(acts, |_| {}).await;
        let error = error.unwrap();
        assert_eq!((error.kind, error.to_string().as_str()), (kind, expected));
        assert_eq!(error.status.map(|it| it.to_string()).as_deref(), Some(&status[..3]));
    };
    let json = "content-type: application/json\r\n";
    check(
        "401 Unauthorized",
        json,
        "{\"error\":{\"message\":\"Incorrect API key provided.\",\"code\":\"invalid_api_key\"}}",
        Kind::Refused,
        "the server doesn't let us in: 401 Unauthorized; is the key right?; it said: Incorrect \
         API key provided.",
    )
    .await;
    check(
        "404 Not Found",
        json,
        "{\"detail\":\"Not Found\"}",
        Kind::Refused,
        "the server has no such model or address: 404 Not Found; it said: Not Found",
    )
    .await;
    check(
        "400 Bad Request",
        json,
        "{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"Too long.\"}}",
        Kind::PromptTooLong,
        "the prompt is too long for the model: 400 Bad Request; it said: Too long.",
    )
    .await;
    check(
        "502 Bad Gateway",
        "content-type: text/html\r\n",
        "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head></html>",
        Kind::Failed,
        "the server failed: 502 Bad Gateway; it said: 502 Bad Gateway",
    )
    .await;
    check(
        "307 Temporary Redirect",
        "location: https://llm.example.org/api/v1/chat/completions?token=x\r\n",
        "",
        Kind::Refused,
        "the server sends us elsewhere, 307 Temporary Redirect; if that is right, write \
         https://llm.example.org/api/v1",
    )
    .await;
}

#[tokio::test]
async fn a_page_for_people_is_no_reply() {
    let acts = vec![
        head("200 OK", "content-type: text/html; charset=utf-8\r\n"),
        say("<html><title>Welcome</title><body>Hello</body></html>"),
    ];
    let (_, error) = once(acts, |_| {}).await;
    let error = error.unwrap();
    assert_eq!((error.kind, error.retry), (Kind::Garbled, false));
    assert_eq!(error.said.as_deref(), Some("Welcome"));
    let acts = vec![events(), say("data: <html>\n\n")];
    check(once(acts, |_| {}).await, "", Some(Kind::Garbled));
}

#[tokio::test]
async fn an_error_in_the_middle_keeps_what_was_heard() {
    let error =
        "event: error\ndata: {\"error\":{\"message\":\"Overloaded\",\"type\":\"overloaded\"}}\n\n";
    let server = Server::start(vec![vec![events(), delta("a"), say(error)]]).await;
    let (pieces, error) = heard(&server.model().build().unwrap()).await;
    assert_eq!(pieces, [Piece::Text("a".into())]);
    let message = "the server failed in the middle of its reply; it said: Overloaded";
    assert_eq!(error.unwrap().to_string(), message);
    assert_eq!(server.asked().len(), 1, "what was heard can't be taken back");
}

#[tokio::test]
async fn a_server_that_isnt_there_is_unreachable() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let limits = ModelLimits { retry_time_min: Duration::from_millis(1), ..ModelLimits::default() };
    let settings =
        |url: String| Remote::at(Wire::OpenAiChat, url, "m").no_proxy().limits(limits.clone());
    let error = heard(&settings(format!("http://{address}/v1")).build().unwrap()).await.1.unwrap();
    assert_eq!((error.kind, error.retry, error.attempts()), (Kind::Unreachable, true, 4));
    assert!(error.to_string().starts_with(&format!("no connection to {address}: ")), "{error}");
    // Speaking TLS with who doesn't is no use, however often.
    let url = format!("https://127.0.0.1:{}", rude("HTTP/1.1 400 Bad Request\r\n\r\n").await);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("issuer.pem");
    let issuer = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&file, issuer.cert.pem()).unwrap();
    let model = settings(url).authority(&file).build().unwrap();
    let error = heard(&model).await.1.unwrap();
    assert_eq!((error.kind, error.attempts()), (Kind::Unreachable, 1), "{error}");
    assert!(error.message.ends_with("what listens there doesn't speak TLS"), "{error}");
}
