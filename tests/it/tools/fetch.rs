//! `use: fetch`: what is read from the web, which addresses are out of reach, and how misbehaving
//! servers are handled.

use pumphouse::listeners::tool::fetch::{Fetch, Page, Refused, fetch};
use pumphouse::listeners::tool::web::Reason;
use pumphouse::{AskError, Payload as _, Pump};

use super::site::{Answer, Site, head, page, redirect};
use super::{asked, in_order, organism};
use crate::program::Scene;

/// A pump with the tool, and with these settings.
fn pump(settings: &str) -> Pump {
    let fetch = fetch(&serde_json::from_str(settings).unwrap()).unwrap();
    pumphouse::builder().with(fetch).build().unwrap().start()
}

/// One that may reach a site.
fn pump_for(site: &Site, limits: &str) -> Pump {
    pump(&format!(r#"{{"hosts": ["{}"], "limits": {{{limits}}}}}"#, site.host()))
}

async fn get(pump: &Pump, url: &str, from: Option<u64>) -> Result<Page, Refused> {
    let url = url.to_owned();
    match pump.ask::<Page>(Fetch { url, from }).await {
        Ok(it) => Ok(it),
        Err(AskError::Other(it)) => Err(Refused::decode(&it).unwrap()),
        Err(error) => panic!("{error}"),
    }
}

#[track_caller]
fn refused(answer: &Result<Page, Refused>, reason: Reason, text: &str) {
    let refused = answer.as_ref().unwrap_err();
    assert_eq!(refused.reason, reason, "{refused:?}");
    assert!(refused.text.contains(text), "{refused:?}");
}

#[tokio::test]
async fn a_page_is_its_text() {
    let site = Site::start(|path| match path {
        "/" => redirect("/page#part"),
        "/page" => page("text/html", "<title>T</title><h1>One</h1><p>see <a href=b>this</a>"),
        "/latin" => page("text/plain; charset=iso-8859-1", b"caf\xe9"),
        "/json" => page("application/json", "{\"a\": 1}"),
        "/png" => page("image/png", "png"),
        _ => Answer::Whole(head("404 Not Found", "content-length: 0\r\n")),
    });
    let site = site.await;
    let pump = pump_for(&site, "");
    let Page { url, kind, next, title, text } = get(&pump, &site.url("/"), None).await.unwrap();
    assert_eq!(url, site.url("/page"));
    assert_eq!((kind.as_str(), title.as_deref(), next), ("text/html", Some("T"), None));
    assert_eq!(text, format!("# One\n\nsee [this]({})", site.url("/b")));
    let text = async |path: &str| get(&pump, &site.url(path), None).await.unwrap().text;
    assert_eq!(text("/latin").await, "café");
    assert_eq!(text("/json").await, "{\"a\": 1}");
    let png = get(&pump, &site.url("/png"), None).await;
    refused(&png, Reason::WrongKind, "the answer is image/png; HTML, plain text, PDF, JSON");
    let none = get(&pump, &site.url("/none"), None).await;
    refused(&none, Reason::Status, "127.0.0.1 answers 404 Not Found");
    assert_eq!(none.unwrap_err().status, Some(404));
    let request = site.asked().concat().to_lowercase();
    assert!(!request.contains("accept-encoding") && !request.contains("referer"), "{request}");
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_long_page_is_read_piece_by_piece() {
    let site = Site::one(page("text/plain", "one\ntwo\nthree\n")).await;
    let pump = pump_for(&site, r#""text_bytes_max": 9"#);
    let first = get(&pump, &site.url("/"), None).await.unwrap();
    assert_eq!((first.text.as_str(), first.next), ("one\ntwo\n", Some(8)));
    let second = get(&pump, &site.url("/"), first.next).await.unwrap();
    assert_eq!((second.text.as_str(), second.next), ("three\n", None));
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_redirect_leads_only_where_a_url_may() {
    let other = Site::one(page("text/plain", "the secret")).await;
    let elsewhere = other.url("/");
    let site = Site::start(move |path| match path {
        "/metadata" => redirect("http://169.254.169.254/latest/meta-data/"),
        "/port" => redirect(&elsewhere),
        "/file" => redirect("file:///etc/passwd"),
        "/name" => redirect("http://user:word@127.0.0.1/"),
        "/bare" => Answer::Whole(head("302 Found", "content-length: 0\r\n")),
        round => redirect(round),
    });
    let site = site.await;
    let pump = pump_for(&site, "");
    let out = Reason::OutOfReach;
    for (path, reason, text) in [
        ("/metadata", out, "the server redirects: 169.254.169.254:80 is out of reach; there is"),
        ("/port", out, "is out of reach; there is"),
        ("/file", Reason::BadUrl, "begins with https:// or http://"),
        ("/name", Reason::BadUrl, "no place for a name or a password"),
        ("/bare", Reason::Redirect, "without saying where"),
        ("/round", Reason::Redirect, "the limit redirects_max is 5"),
    ] {
        refused(&get(&pump, &site.url(path), None).await, reason, text);
    }
    assert_eq!(other.asked(), [""; 0]);
    assert_eq!(site.asked().len(), 5 + 6);
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn without_hosts_nothing_private_is_reached() {
    let pump = pump("{}");
    for url in [
        "http://localhost/",
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://169.254.169.254/latest/meta-data/",
    ] {
        let answer = get(&pump, url, None).await;
        refused(&answer, Reason::OutOfReach, "has no public address");
    }
    let port = get(&pump, "http://localhost:7000/", None).await;
    refused(&port, Reason::OutOfReach, "the port 7000 is out of reach");
    refused(&get(&pump, "file:///etc/passwd", None).await, Reason::BadUrl, "begins with");
    refused(&get(&pump, "page", None).await, Reason::BadUrl, "this is no URL");
    let long = format!("http://a/{}", "x".repeat(3_000));
    refused(&get(&pump, &long, None).await, Reason::TooLarge, "the limit url_bytes_max is 2048");
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn no_answer_takes_more_than_its_limits() {
    let plain = head("200 OK", "content-type: text/plain\r\n");
    let gzip = "content-type: text/html\r\ncontent-encoding: gzip\r\n";
    let (endless, slow) = (plain.clone(), plain.clone());
    let site = Site::start(move |path| match path {
        "/endless" => Answer::Endless(endless.clone(), vec![b'x'; 4096]),
        "/headers" => Answer::Endless(b"HTTP/1.1 200 OK\r\n".to_vec(), b"a: b\r\n".to_vec()),
        "/slow" => Answer::Slow(slow.clone()),
        "/long" => Answer::Whole(head("200 OK", "content-length: 100000000000\r\n")),
        "/gzip" => Answer::Whole([head("200 OK", gzip), b"\x1f\x8b".to_vec()].concat()),
        "/cut" => Answer::Whole(head("200 OK", "content-length: 10\r\n")),
        _ => Answer::Whole(b"SSH-2.0-x\r\n".to_vec()),
    });
    let site = site.await;
    let pump = pump_for(&site, r#""seconds_max": 1, "body_bytes_max": 100000"#);
    for (path, reason, text) in [
        ("/endless", Reason::TooLarge, "the limit body_bytes_max is 100000 bytes"),
        ("/long", Reason::TooLarge, "the limit body_bytes_max is 100000 bytes"),
        ("/slow", Reason::Timeout, "the limit seconds_max is 1"),
        ("/gzip", Reason::WrongKind, "compressed"),
        ("/headers", Reason::Broken, ""),
        ("/cut", Reason::Broken, "the answer breaks off"),
        ("/ssh", Reason::Broken, ""),
    ] {
        refused(&get(&pump, &site.url(path), None).await, reason, text);
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    pump.shutdown().await.unwrap();
    let gone = self::pump(&format!(r#"{{"hosts": ["localhost:{port}"]}}"#));
    let url = format!("http://localhost:{port}/");
    refused(&get(&gone, &url, None).await, Reason::Unreachable, "no connection to localhost");
    gone.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_megabyte_of_nested_elements_is_read_like_any_other() {
    let deep = "<div>".repeat(200_000) + "deep";
    let site = Site::one(page("text/html", deep)).await;
    let pump = pump_for(&site, "");
    assert_eq!(get(&pump, &site.url("/"), None).await.unwrap().text, "deep");
    pump.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_a_manifest_reads_a_page() {
    let site = Site::one(page("text/html", "<h1>News</h1>")).await;
    let host = site.host();
    let tools = [("fetch", format!("use: fetch, settings: {{hosts: [\"{host}\"]}}"))];
    let tools = [(tools[0].0, tools[0].1.as_str())];
    let replies = format!(
        r#"%% reply
<action id="page">{{"name": "fetch", "parameters": {{"url": "http://{host}/"}}}}</action>
<action id="out">{{"name": "fetch", "parameters": {{"url": "http://example.org/"}}}}</action>
%% reply
<response>It says: ${{page.text}}</response>
"#
    );
    let scene = organism(&tools, &replies);
    let log = tokio::task::block_in_place(|| asked(&scene, "Read it."));
    in_order(&log, &["example.org:80 is out of reach"]);
    in_order(&log, &["<response", "It says: # News"]);
}

#[test]
fn check_tells_what_is_no_host() {
    let scene = Scene::new();
    let check = |settings: &str, code: i32, text: &str| {
        scene.write("organism.yaml", format!("listeners: [{{use: fetch, settings: {settings}}}]"));
        scene.run(&["check"]).code(code).says(&[text]);
    };
    check("{}", 0, "Gets pages and files from public web servers, as text.");
    check("{hosts: [a.org, \"b:81\"]}", 0, "Gets pages and files from a.org, b:81, as text.");
    check("{hosts: [\"http://a.org/\"]}", 1, "`http://a.org/` is no host, as in");
    check("{hosts: []}", 1, "`hosts` is empty");
    check("{limits: {seconds: 1}}", 1, "did you mean `seconds_max`?");
}
