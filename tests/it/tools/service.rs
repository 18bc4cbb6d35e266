//! `use: service`: the headers of its requests, its cache, and its limits for misbehaving services.

use std::sync::atomic::{AtomicUsize, Ordering};

use pumphouse::listeners::feed::words::FeedContent;
use pumphouse::listeners::tool::service::{Get, Refused, Settings, service};
use pumphouse::listeners::tool::web::Reason;
use pumphouse::{AskError, Payload as _, Pump};

use super::site::{Answer, Site, head, page, redirect};

fn pump(settings: &Settings) -> Pump {
    pumphouse::builder().with(service(settings).unwrap()).build().unwrap().start()
}

fn pump_at(site: &Site) -> Pump {
    let mut settings = Settings::new(site.url(""));
    settings.limits.seconds_max = 1;
    pump(&settings)
}

async fn get(pump: &Pump, path: &str, ttl: f64) -> Result<FeedContent, Refused> {
    let (path, ttl) = (path.to_owned(), Some(ttl));
    match pump.ask::<FeedContent>(Get { path, ttl }).await {
        Ok(it) => Ok(it),
        Err(AskError::Other(it)) => Err(Refused::decode(&it).unwrap()),
        Err(error) => panic!("{error}"),
    }
}

async fn text(pump: &Pump, path: &str, ttl: f64) -> String {
    get(pump, path, ttl).await.unwrap().text
}

#[track_caller]
fn refused(answer: &Result<FeedContent, Refused>, reason: Reason, text: &str) {
    let refused = answer.as_ref().unwrap_err();
    assert_eq!(refused.reason, reason, "{refused:?}");
    assert!(refused.text.contains(text), "{refused:?}");
}

/// A page with further fields of its head.
fn with_fields(fields: &str, body: &str) -> Answer {
    let length = format!("content-type: text/plain\r\ncontent-length: {}\r\n", body.len());
    Answer::Whole([&*head("200 OK", &format!("{length}{fields}")), body.as_bytes()].concat())
}

fn failure() -> Answer {
    Answer::Whole(head("503 Service Unavailable", "content-length: 0\r\n"))
}

/// A site whose answer to the request with this number is this.
async fn numbered(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Site {
    let count = AtomicUsize::new(0);
    Site::start(move |_| answer(count.fetch_add(1, Ordering::SeqCst))).await
}

#[tokio::test]
async fn a_service_is_told_who_asks_and_content_is_text() {
    let site = Site::start(|path| match path {
        "/v1/alerts" => page(
            "text/markdown",
            "---\nfeed: fleet-alerts\nrefreshed: 2026-03-19T14:32:00Z\nttl: 60s\n---\n\nNominal.\n",
        ),
        "/v1/json?of=all" => page("application/json; charset=utf-8", "{\"a\": 1}\n"),
        "/v1/latin" => page("text/plain; charset=iso-8859-1", b"caf\xe9"),
        "/v1/html" => page("text/html", "<h1>One</h1><script>x</script>"),
        _ => page("text/plain", "other"),
    });
    let site = site.await;
    let mut settings = Settings::new(site.url("/v1/"));
    settings.pod = Some("trading-desk".to_owned());
    let pump = pump(&settings);
    let alerts = get(&pump, "/alerts", 5.0).await.unwrap();
    assert_eq!(alerts.text, "Nominal.\n");
    assert!(alerts.fresh_for > 55.0 && alerts.fresh_for <= 60.0, "{alerts:?}");
    assert_eq!(alerts.as_of.unwrap().to_string(), "2026-03-19T14:32:00Z");
    assert_eq!(text(&pump, "/json?of=all", 5.0).await, "```json\n{\"a\": 1}\n```");
    assert_eq!(text(&pump, "/latin", 5.0).await, "café");
    assert_eq!(text(&pump, "/html", 5.0).await.trim(), "# One");
    let asked = site.asked().remove(0);
    for field in [
        "GET /v1/alerts HTTP/1.1\r\n",
        "x-claw-id: console\r\n",
        "x-pumphouse-agent: console\r\n",
        "x-claw-pod: trading-desk\r\n",
        "x-pumphouse-organism: trading-desk\r\n",
        "accept: text/plain, text/markdown, application/json",
    ] {
        assert!(asked.contains(field), "no {field:?} in {asked}");
    }
}

#[tokio::test]
async fn content_is_asked_for_again_when_its_time_is_over() {
    let site = numbered(|number| match number {
        0 => with_fields("etag: \"a\"\r\ncache-control: max-age=0\r\n", "one"),
        1 => Answer::Whole(head("304 Not Modified", "etag: \"a\"\r\n")),
        _ => page("text/plain", "two"),
    });
    let site = site.await;
    let pump = pump_at(&site);
    for expected in ["one", "one", "two", "two"] {
        assert_eq!(text(&pump, "/a", 60.0).await, expected);
    }
    let asked = site.asked();
    assert_eq!(asked.len(), 3, "the last one was kept");
    assert!(!asked[0].contains("if-none-match") && asked[1].contains("if-none-match: \"a\"\r\n"));
}

#[tokio::test]
async fn a_service_says_less_than_the_ttl_and_never_more() {
    let site = Site::start(|path| match path {
        "/long" => with_fields("cache-control: max-age=3600\r\n", "x"),
        "/short" => with_fields("cache-control: max-age=10\r\n", "x"),
        "/own" => with_fields("cache-control: max-age=10\r\n", "---\nttl: 300\n---\nx"),
        _ => page("text/plain", "x"),
    });
    let pump = pump_at(&site.await);
    for (path, most) in [("/long", 60.0), ("/short", 10.0), ("/own", 300.0), ("/silent", 60.0)] {
        let fresh_for = get(&pump, path, 60.0).await.unwrap().fresh_for;
        assert!(fresh_for <= most && fresh_for > most - 5.0, "{path}: {fresh_for}");
    }
}

#[tokio::test]
async fn one_request_is_made_for_all_that_wait() {
    let site = numbered(|number| page("text/plain", format!("answer {number}"))).await;
    let pump = pump_at(&site);
    let all = futures_util::future::join_all((0..20).map(|_| text(&pump, "/a", 60.0))).await;
    assert!(all.iter().all(|it| it == "answer 0"), "{all:?}");
    assert_eq!(site.asked().len(), 1);
}

#[tokio::test]
async fn while_a_service_fails_the_kept_content_is_stale_and_it_is_not_asked_each_time() {
    let site = numbered(|number| match number {
        0 => with_fields("cache-control: max-age=0\r\n", "old"),
        _ => failure(),
    });
    let site = site.await;
    let pump = pump_at(&site);
    assert_eq!(get(&pump, "/a", 60.0).await.unwrap().is_stale, None);
    for _ in 0..3 {
        let stale = get(&pump, "/a", 60.0).await.unwrap();
        assert_eq!((&*stale.text, stale.is_stale), ("old", Some(true)));
        assert!(stale.as_of.is_some() && stale.fresh_for <= 5.0, "{stale:?}");
    }
    assert_eq!(site.asked().len(), 2);
}

#[tokio::test]
async fn what_a_service_takes_back_is_not_shown_again() {
    let site = numbered(|number| match number {
        0 => with_fields("cache-control: max-age=0\r\n", "old"),
        _ => Answer::Whole(head("404 Not Found", "content-length: 0\r\n")),
    });
    let pump = pump_at(&site.await);
    assert_eq!(text(&pump, "/a", 60.0).await, "old");
    for _ in 0..2 {
        let gone = get(&pump, "/a", 60.0).await;
        refused(&gone, Reason::Status, "127.0.0.1 answers 404 Not Found");
        assert_eq!(gone.unwrap_err().status, Some(404));
    }
}

#[tokio::test]
async fn content_that_may_not_be_stored_is_for_one_turn() {
    let site = numbered(|number| match number {
        0 => with_fields("cache-control: no-store\r\n", "secret"),
        1 => with_fields("cache-control: max-age=0, must-revalidate\r\n", "exact"),
        _ => failure(),
    });
    let pump = pump_at(&site.await);
    for expected in ["secret", "exact"] {
        let once = get(&pump, "/a", 60.0).await.unwrap();
        assert_eq!((&*once.text, once.is_for_one_turn), (expected, Some(true)));
        assert!(once.fresh_for.abs() < 1e-9, "{once:?}");
    }
    refused(&get(&pump, "/a", 60.0).await, Reason::Status, "answers 503");
}

#[tokio::test]
async fn a_token_goes_to_the_service_alone_and_is_hidden_in_what_it_says() {
    let other = Site::start(|_| page("text/plain", "from elsewhere")).await;
    let elsewhere = other.url("/b");
    let site = Site::start(move |path| match path {
        "/moved" => redirect(&elsewhere),
        "/here" => redirect("/b"),
        _ => page("text/plain", "you sent Bearer t0psecret"),
    });
    let site = site.await;
    let scene = crate::program::Scene::new();
    let file = r#"{"service": "a", "auth_type": "bearer", "token": "t0psecret", "principal": "b"}"#;
    let file = scene.write("service-auth/a.json", file);
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode;
    std::fs::set_permissions(&file, mode(0o600)).unwrap();
    let mut settings = Settings::new(site.url(""));
    settings.auth = Some(file.to_str().unwrap().into());
    settings.hosts = vec![other.host()];
    let pump = pump(&settings);
    assert_eq!(text(&pump, "/here", 0.0).await, "you sent Bearer …");
    assert_eq!(text(&pump, "/moved", 0.0).await, "from elsewhere");
    assert!(site.asked().iter().all(|it| it.contains("authorization: Bearer t0psecret\r\n")));
    assert!(!other.asked()[0].contains("authorization"), "{:?}", other.asked());
    std::fs::set_permissions(&file, mode(0o644)).unwrap();
    let error = service(&settings).err().unwrap();
    assert!(error.contains("chmod 600") && !error.contains("t0psecret"), "{error}");
}

#[tokio::test]
async fn a_redirect_is_checked_like_the_first_url() {
    let other = Site::start(|_| page("text/plain", "inside")).await;
    let private = other.url("/");
    let site = Site::start(move |path| match path {
        "/private" => redirect(&private),
        "/metadata" => redirect("http://169.254.169.254/latest"),
        "/file" => redirect("file:///etc/passwd"),
        _ => redirect("/itself"),
    });
    let pump = pump_at(&site.await);
    refused(&get(&pump, "/private", 0.0).await, Reason::OutOfReach, "the server redirects: ");
    refused(&get(&pump, "/metadata", 0.0).await, Reason::OutOfReach, "no public address");
    refused(&get(&pump, "/file", 0.0).await, Reason::BadUrl, "begins with https:// or http://");
    refused(&get(&pump, "/itself", 0.0).await, Reason::Redirect, "too many redirects");
    assert_eq!(other.asked().len(), 0);
}

#[tokio::test]
async fn a_path_stays_below_the_url() {
    let site = Site::start(|_| page("text/plain", "x")).await;
    let pump = pump(&Settings::new(site.url("/v1")));
    for (path, says) in [
        ("alerts", "a path begins with /"),
        ("/../admin", "leads out of"),
        ("/%2e%2e/admin", "leads out of"),
        ("", "a path begins with /"),
    ] {
        refused(&get(&pump, path, 0.0).await, Reason::BadUrl, says);
    }
    refused(&get(&pump, "/a", -1.0).await, Reason::BadRequest, "ttl is in seconds");
    assert_eq!(text(&pump, "//a", 0.0).await, "x");
    assert!(site.asked()[0].starts_with("GET /v1//a "));
}

#[tokio::test]
async fn rude_services_are_bounded() {
    let chunk = vec![b'x'; 64 * 1024];
    let site = Site::start(move |path| match path {
        "/drip" => Answer::Slow(head("200 OK", "content-type: text/plain\r\n")),
        "/silent" => Answer::Slow(b"HTTP/1.1 200 OK\r\nx: ".to_vec()),
        "/huge" => Answer::Endless(head("200 OK", "content-type: text/plain\r\n"), chunk.clone()),
        "/zip" => with_fields("content-encoding: gzip\r\n", "zip"),
        "/short" => Answer::Whole(
            [&*head("200 OK", "content-type: text/plain\r\ncontent-length: 99\r\n"), b"half"]
                .concat(),
        ),
        "/binary" => page("text/plain", b"a\0b"),
        "/image" => page("image/png", b"png"),
        "/half" => page("text/plain", b"caf\xc3"),
        "/utf16" => page("text/plain", b"\xfe\xff\0a\0b"),
        _ => Answer::Whole(b"nonsense\r\n\r\n".to_vec()),
    });
    let pump = pump_at(&site.await);
    for (path, reason, says) in [
        ("/drip", Reason::Timeout, "seconds_max is 1"),
        ("/silent", Reason::Timeout, "seconds_max is 1"),
        ("/huge", Reason::TooLarge, "body_bytes_max"),
        ("/zip", Reason::WrongKind, "compressed"),
        ("/short", Reason::Broken, "breaks off"),
        ("/binary", Reason::WrongKind, "binary"),
        ("/image", Reason::WrongKind, "image/png"),
        ("/nonsense", Reason::Broken, "hung up"),
    ] {
        let answer = get(&pump, path, 60.0).await;
        refused(&answer, reason, says);
    }
    assert_eq!(text(&pump, "/half", 60.0).await, "caf\u{fffd}");
    assert_eq!(text(&pump, "/utf16", 60.0).await, "ab");
}

#[tokio::test]
async fn a_service_that_hangs_delays_no_other_path() {
    let site = Site::start(|path| match path {
        "/hangs" => Answer::Slow(b"HTTP/1.1 200 OK\r\nx: ".to_vec()),
        _ => page("text/plain", "quick"),
    });
    let pump = pump_at(&site.await);
    let mut hanging = std::pin::pin!(get(&pump, "/hangs", 60.0));
    let quick = std::pin::pin!(text(&pump, "/quick", 60.0));
    match futures_util::future::select(&mut hanging, quick).await {
        futures_util::future::Either::Right((quick, _)) => assert_eq!(quick, "quick"),
        futures_util::future::Either::Left(_) => panic!("the other path waited"),
    }
    refused(&hanging.await, Reason::Timeout, "seconds_max");
}

#[test]
fn settings_that_are_wrong_say_what_would_be_right() {
    let error = |url: &str| service(&Settings::new(url)).err().unwrap_or_default();
    assert!(error("claw-api").contains("url: `claw-api` is no URL, as in http://127.0.0.1:8090"));
    assert!(error("file:///etc").starts_with("hosts: ") || error("file:///etc").contains("url"));
    assert!(error("http://a:b@127.0.0.1/").contains("no place for a name or a password"));
    assert!(error("http://127.0.0.1/?a=b").contains("a query has its place"));
}
