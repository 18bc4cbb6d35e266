//! `use: http`: which requests are sent, which are refused, and that no answer shows a credential.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use pumphouse::listeners::tool::http::{Answered, Http, Refused, http};
use pumphouse::listeners::tool::web::Reason;
use pumphouse::wire::Json;
use pumphouse::{AskError, Payload as _, Pump};
use tempfile::NamedTempFile;

use super::site::{Answer, Site, head, page, redirect};
use crate::program::Scene;

/// A pump with the tool, for a site, with a file of credentials.
fn pump(site: &Site, credentials: Option<&NamedTempFile>) -> Pump {
    let file = credentials.map(|it| it.path().to_str().unwrap());
    let settings = serde_json::json!({ "hosts": [site.host()], "credentials": file });
    let http = http(&serde_json::from_value(settings).unwrap()).unwrap();
    pumphouse::builder().with(http).build().unwrap().start()
}

fn to(url: String) -> Http {
    Http { url, method: None, headers: None, body: None, json: None }
}

async fn ask(pump: &Pump, it: Http) -> Result<Answered, Refused> {
    match pump.ask::<Answered>(it).await {
        Ok(it) => Ok(it),
        Err(AskError::Other(it)) => Err(Refused::decode(&it).unwrap()),
        Err(error) => panic!("{error}"),
    }
}

fn secret_file(text: &str, mode: u32) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
    file
}

#[tokio::test]
async fn a_request_is_sent_as_it_was_said() {
    let made = "etag: \"7\"\r\nset-cookie: a=b\r\ncontent-length: 0\r\n";
    let site = Site::start(move |path| match path {
        "/made" => Answer::Whole(head("201 Created", made)),
        "/none" => Answer::Whole(head("404 Not Found", "content-length: 0\r\n")),
        "/image" => page("image/png", b"\x89PNG"),
        _ => redirect("http://169.254.169.254/"),
    });
    let site = site.await;
    let pump = pump(&site, None);
    let headers = Some(BTreeMap::from([("X-Kind".to_owned(), "tea".to_owned())]));
    let json = Some(Json(serde_json::json!({ "a": 1 })));
    let method = Some("put".to_owned());
    let put = Http { method, headers, json, ..to(site.url("/made")) };
    let answered = ask(&pump, put).await.unwrap();
    assert_eq!((answered.status, answered.text.as_deref()), (201, Some("")));
    assert_eq!(answered.outcome, None);
    assert_eq!(answered.headers, BTreeMap::from([("etag".to_owned(), "\"7\"".to_owned())]));
    let request = site.asked().remove(0);
    for it in ["PUT /made HTTP/1.1", "x-kind: tea", "content-type: application/json", "{\"a\":1}"] {
        assert!(request.contains(it), "{request}");
    }
    // What a server says of failure is its answer, and a redirect isn't followed.
    let none = ask(&pump, to(site.url("/none"))).await.unwrap();
    assert_eq!((none.status, none.outcome.as_deref()), (404, Some("404 Not Found")));
    let away = ask(&pump, to(site.url("/away"))).await.unwrap();
    assert_eq!((away.status, away.headers["location"].as_str()), (302, "http://169.254.169.254/"));
    assert_eq!(away.outcome.as_deref(), Some("302 Found; location: http://169.254.169.254/"));
    let image = ask(&pump, to(site.url("/image"))).await.unwrap();
    assert_eq!((image.kind.as_str(), image.text), ("image/png", None));
    assert_eq!(image.outcome.as_deref(), Some("the body is image/png, and no text"));
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_body_of_json_is_json_and_any_other_a_text() {
    let site = Site::start(|path| match path {
        "/json" => page("application/json", "{\"price\": 2.50, \"id\": 9007199254740993}"),
        "/problem" => page("application/problem+json; charset=utf-8", "[1]"),
        "/broken" => page("application/json", "{\"price\": "),
        "/long" => page("application/json", format!("[\"{}\"]", "x".repeat(100_000))),
        _ => page("text/plain", "{\"price\": 2}"),
    });
    let site = site.await;
    let pump = pump(&site, None);
    let json = async |path: &str| {
        let it = ask(&pump, to(site.url(path))).await.unwrap();
        assert!(it.json.is_none() || it.text.is_none(), "{it:?}");
        it.json.map(|it| it.0.to_string())
    };
    assert_eq!(json("/json").await.unwrap(), "{\"price\":2.5,\"id\":9007199254740993}");
    assert_eq!(json("/problem").await.as_deref(), Some("[1]"));
    for path in ["/broken", "/long", "/plain"] {
        assert_eq!(json(path).await, None, "{path}");
    }
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_a_request_may_not_have_is_refused() {
    let site = Site::one(page("text/plain", "x")).await;
    let pump = pump(&site, None);
    let header = |name: &str, value: &str| {
        let headers = Some(BTreeMap::from([(name.to_owned(), value.to_owned())]));
        Http { headers, ..to(site.url("/")) }
    };
    let method = |it: &str| Http { method: Some(it.to_owned()), ..to(site.url("/")) };
    let both = Http { body: Some("a".to_owned()), json: Some(Json(1.into())), ..to(site.url("/")) };
    for (it, reason, text) in [
        (header("Host", "a"), Reason::BadRequest, "the header host is the client's own"),
        (header("Transfer-Encoding", "chunked"), Reason::BadRequest, "the client's own"),
        (header("a b", "c"), Reason::BadRequest, "`a b` is no name of a header"),
        (header("a", "b\nc: d"), Reason::BadRequest, "holds what no header may"),
        (method("CONNECT"), Reason::BadRequest, "CONNECT is not sent"),
        (method("A B"), Reason::BadRequest, "`A B` is no method"),
        (both, Reason::BadRequest, "give one"),
        (to("http://example.org/".to_owned()), Reason::OutOfReach, "out of reach; there is"),
        (header("a", &"b".repeat(1_100_000)), Reason::TooLarge, "sent_bytes_max is 1048576 bytes"),
    ] {
        let refused = ask(&pump, it).await.unwrap_err();
        assert_eq!(refused.reason, reason, "{refused:?}");
        assert!(refused.text.contains(text), "{refused:?}");
    }
    assert_eq!(site.asked(), [""; 0]);
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_credential_is_sent_to_its_host_and_shown_nowhere() {
    let body = "you sent s3cret-token, \"s3cret\\u002dtoken\"";
    let site = Site::one(page("text/plain", body)).await;
    let line = format!("# mine\n{} Authorization: Bearer s3cret-token\n", site.host());
    let file = secret_file(&line, 0o600);
    let pump = pump(&site, Some(&file));
    let answered = ask(&pump, to(site.url("/"))).await.unwrap();
    assert_eq!(answered.text.as_deref(), Some("you sent …, \"…\""));
    assert!(site.asked()[0].contains("authorization: Bearer s3cret-token\r\n"));
    let headers = Some(BTreeMap::from([("Authorization".to_owned(), "mine".to_owned())]));
    let refused = ask(&pump, Http { headers, ..to(site.url("/")) }).await.unwrap_err();
    assert!(refused.text.contains("is sent anyway"), "{refused:?}");
    pump.shutdown().await.unwrap();
}

#[test]
fn check_tells_what_is_wrong_with_credentials() {
    let scene = Scene::new();
    let check = |text: &str, mode: u32, code: i32, expected: &str| {
        let path = scene.write("keys", text);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let settings = "{hosts: [a.org, \"b.org:81\"], credentials: keys}";
        scene.write("organism.yaml", format!("listeners: [{{use: http, settings: {settings}}}]"));
        let ran = scene.run(&["check"]).code(code).says(&[expected]);
        assert!(!ran.out.contains("s3cret") && !ran.err.contains("s3cret"), "{ran:?}");
    };
    check(
        "a.org X-Key: s3cret-1\nb.org:81 X: s3cret-2\n",
        0o600,
        0,
        "Sends requests to a.org, b.org:81.",
    );
    check("a.org X-Key: s3cret\n", 0o644, 1, "its mode is 0644, so others may read or change it");
    check("\nc.org X-Key: s3cret\n", 0o600, 1, "line 2: c.org doesn't stand in `hosts`");
    check("b.org:82 X-Key: s3cret\n", 0o600, 1, "b.org:82 doesn't stand in `hosts`");
    let short = "line 1: the value of x-key: a secret of 6 bytes is too short";
    check("a.org X-Key: s3cret\n", 0o600, 1, short);
    check("a.org X-Key: Token s3cret\n", 0o600, 1, short);
    check("s3cret\n", 0o600, 1, "a line is a host, a header and its value");
    check("a.org s3cret\n", 0o600, 1, "a line is a host, a header and its value");
    check("a.org X-Key: s3\u{7}cret\n", 0o600, 1, "the value of x-key holds what no header may");
}

/// A request that may have changed something is `unknown` once it was sent; a read has failed.
#[tokio::test]
async fn a_request_that_was_sent_and_not_answered_is_unknown_if_it_may_change_something() {
    let site = Site::start(|path| match path {
        "/large" => Answer::Endless(head("201 Created", ""), b"x".repeat(65_536)),
        "/slow" => Answer::Slow(head("200 OK", "content-type: text/plain\r\n")),
        "/cut" => {
            Answer::Whole(head("200 OK", "content-type: text/plain\r\ncontent-length: 9\r\n"))
        }
        _ => Answer::Whole(Vec::new()),
    });
    let site = site.await;
    let limits = serde_json::json!({ "seconds_max": 1 });
    let settings = serde_json::json!({ "hosts": [site.host(), "127.0.0.1:9"], "limits": limits });
    let http = http(&serde_json::from_value(settings).unwrap()).unwrap();
    let plan = pumphouse::builder().with(http).build().unwrap();
    let described = plan.capabilities().listener("http").unwrap().clone();
    let pump = plan.start();
    for (method, is_read) in [("GET", true), ("head", true), ("POST", false), ("DELETE", false)] {
        let request = |url: String| Http { method: Some(method.to_owned()), ..to(url) };
        let is_idempotent = described.is_idempotent(&request(site.url("/")).encode().unwrap());
        assert_eq!(is_idempotent, is_read, "{method}");
        for path in ["/hangs-up", "/cut", "/large", "/slow"] {
            // An answer to HEAD has no body.
            if method == "head" && path != "/hangs-up" {
                continue;
            }
            let refused = ask(&pump, request(site.url(path))).await.unwrap_err();
            assert_eq!(refused.reason == Reason::Unknown, !is_read, "{method} {path} {refused:?}");
            let says = refused.text.contains("whether anything was done is unknown");
            assert_eq!(says, !is_read, "{refused:?}");
        }
        let unsent = ask(&pump, request("http://127.0.0.1:9/".to_owned())).await.unwrap_err();
        assert_eq!(unsent.reason, Reason::Unreachable);
    }
    pump.shutdown().await.unwrap();
}
