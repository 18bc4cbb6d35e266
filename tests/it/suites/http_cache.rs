//! Cases of HTTP caching from the project http-cache-tests, played against the cache of one URL.
//! The test simulates the server and the time.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::{
    CACHE_CONTROL, DATE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, LAST_MODIFIED,
};
use serde_json::Value;

use super::{Case, Score, cases, suites};
use pumphouse::listeners::tool::web::cache::{Answered, CachedUrl, Plan, Taken, Ttl};

/// When a case begins: Sun, 06 Nov 2022 08:49:37 GMT, in microseconds.
const BEGIN_US: u64 = 1_667_724_577_000_000;
/// How long an answer takes.
const ANSWER_US: u64 = 10_000;
/// How long a client waits behind a request with `pause_after`.
const PAUSE_US: u64 = 3_000_000;

/// The cases that aren't played, and why. `docs/conformance.md` has the same table.
const LEFT_OUT: [(&str, &[&str]); 7] = [
    (
        "a rule for shared caches",
        &["cc-resp-private-shared", "stale-close-proxy-revalidate", "stale-close-s-maxage=2"],
    ),
    (
        "the client sends a condition of its own, which a cache would answer",
        &[
            "conditional-304-etag",
            "conditional-etag-precedence",
            "conditional-etag-strong-respond",
            "conditional-etag-strong-respond-multiple-first",
            "conditional-etag-strong-respond-multiple-last",
            "conditional-etag-strong-respond-multiple-second",
            "conditional-etag-weak-respond",
            "conditional-lm-fresh",
            "conditional-lm-fresh-earlier",
            "conditional-lm-fresh-no-lm",
            "conditional-lm-fresh-rfc850",
            "conditional-lm-stale",
        ],
    ),
    (
        "a stale answer is used while another is fetched",
        &["stale-while-revalidate", "stale-while-revalidate-window"],
    ),
    ("a request for a fresh answer gets one, `immutable` or not", &["cc-resp-immutable-fresh"]),
    ("its date has the wrong day of the week", &["freshness-expires-ansi-c"]),
    (
        "a date in the wrong case is taken for none, so the server is asked once more",
        &[
            "freshness-expires-wrong-case-month",
            "freshness-expires-wrong-case-tz",
            "freshness-expires-wrong-case-weekday",
        ],
    ),
    (
        "a feed shows no header fields, so a 304 updates those alone that say how long it is fresh",
        &[
            "304-etag-update-response-Cache-Control",
            "304-etag-update-response-Content-Foo",
            "304-etag-update-response-Test-Header",
            "304-etag-update-response-X-Content-Foo",
            "304-etag-update-response-X-Test-Header",
        ],
    ),
];

#[test]
fn an_answer_is_cached_as_http_requires() {
    let Some(suites) = suites() else { return };
    required(&suites).assert_none_wrong(40);
}

#[test]
fn an_answer_is_cached_as_http_allows() {
    let Some(suites) = suites() else { return };
    optimal(&suites).assert_none_wrong(8);
}

#[test]
fn the_page_lists_the_caching_cases_that_are_left_out() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/conformance.md");
    let page = fs::read_to_string(page).unwrap();
    for (why, ids) in LEFT_OUT {
        let ids: Vec<String> = ids.iter().map(|it| format!("`{it}`")).collect();
        let row = format!("| {} | {why} |", ids.join(", "));
        assert!(page.contains(&row), "the page has no line {row}");
    }
}

/// The cases that every cache has to pass.
pub(super) fn required(suites: &Path) -> Score {
    play_all(suites, |kind| matches!(kind, None | Some("required")))
}

/// The cases that a cache passes that asks no more often than it must.
pub(super) fn optimal(suites: &Path) -> Score {
    play_all(suites, |kind| kind == Some("optimal"))
}

fn play_all(suites: &Path, is_played: fn(Option<&str>) -> bool) -> Score {
    let mut score = Score::default();
    for case in cases(suites, "http-cache/cases.jsonl") {
        let is_left_out = LEFT_OUT.iter().any(|(_, ids)| ids.contains(&case.text("id")));
        if is_played(case.row["kind"].as_str()) && !is_left_out {
            score.count(play(&case).map_err(|why| format!("{}: {why}", case.text("id"))));
        }
    }
    score
}

fn play(case: &Case) -> Result<(), String> {
    let mut client = Client::default();
    let mut now_us = BEGIN_US;
    for (number, request) in case.row["requests"].as_array().unwrap().iter().enumerate() {
        let seen = client.request(request, &mut now_us)?;
        check(request, &seen, &client.server).map_err(|it| format!("{}: {it}", number + 1))?;
        now_us += if request["pause_after"] == true { PAUSE_US } else { 0 };
    }
    Ok(())
}

/// An origin server, which answers as the request's part of the case says.
#[derive(Default)]
struct Server {
    /// The fields of its last answer.
    fields: HeaderMap,
    /// Its last body. Each answer with a body has another one.
    body: String,
    answers: usize,
}

impl Server {
    /// The status, fields and body for a request. A case that expects a condition wants a 304 if
    /// the condition is right.
    fn answer(&mut self, case: &Value, sent: &HeaderMap, now_us: u64) -> Answer {
        let mut headers = fields(&case["response_headers"], now_us);
        headers.entry(DATE).or_insert_with(|| date(now_us, 0));
        let is_same = |sent_in, name| {
            self.fields.get(name).is_some_and(|it: &HeaderValue| sent.get(sent_in) == Some(it))
        };
        let is_condition_expected =
            case["expected_type"].as_str().is_some_and(|it| it.ends_with("_validated"));
        let status = match case["response_status"][0].as_u64() {
            Some(status) => u16::try_from(status).unwrap(),
            None if !is_condition_expected => 200,
            None if is_same(IF_NONE_MATCH, ETAG) => 304,
            None if is_same(IF_MODIFIED_SINCE, LAST_MODIFIED) => 304,
            None => 999,
        };
        self.answers += 1;
        if status != 304 {
            self.body = format!("body {}", self.answers);
        }
        self.fields.clone_from(&headers);
        let status = StatusCode::from_u16(status).unwrap();
        Answer { status, headers, body: self.body.clone() }
    }
}

/// An answer of the server, or one that is shown again.
#[derive(Clone)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

/// A client that keeps the last answer that it may keep.
#[derive(Default)]
struct Client {
    url: CachedUrl,
    kept: Option<Answer>,
    server: Server,
}

/// What a client sees of one request.
struct Seen {
    /// The request that reached the server.
    sent: Option<HeaderMap>,
    answer: Option<Answer>,
}

impl Client {
    fn request(&mut self, case: &Value, now_us: &mut u64) -> Result<Seen, String> {
        let mut sent = fields(&case["request_headers"], *now_us);
        let mut ttl = Ttl::AtMost(Duration::MAX);
        if case["cache"] == "no-cache" {
            // In this mode, a browser adds this field and has each answer confirmed.
            sent.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=0"));
            ttl = Ttl::AtMost(Duration::ZERO);
        }
        let conditions = match self.url.plan(ttl, *now_us) {
            Plan::Use => return Ok(Seen { sent: None, answer: self.kept.clone() }),
            Plan::Ask(conditions) => conditions,
        };
        if case["disconnect"] == true {
            let is_shown = self.url.stale(ttl, *now_us).is_some();
            return Ok(Seen { sent: None, answer: self.kept.clone().filter(|_| is_shown) });
        }
        sent.extend(conditions);
        let answer = self.server.answer(case, &sent, *now_us);
        let asked_at_us = *now_us;
        *now_us += ANSWER_US;
        let Answer { status, headers, .. } = &answer;
        let answered = Answered { asked_at_us, answered_at_us: *now_us, status: *status, headers };
        let answer = match self.url.take(&answered) {
            Taken::Confirmed => self.kept.clone(),
            Taken::Kept => {
                self.kept = Some(answer);
                self.kept.clone()
            }
            Taken::Once | Taken::Failed => Some(answer),
            Taken::Unmatched => return Err("a 304 for another answer".to_owned()),
        };
        Ok(Seen { sent: Some(sent), answer })
    }
}

/// Compares what was seen with what a request's part of a case expects.
fn check(case: &Value, seen: &Seen, server: &Server) -> Result<(), String> {
    let has_sent = |name| seen.sent.as_ref().is_some_and(|it| it.contains_key(name));
    let is_expected = match case["expected_type"].as_str() {
        None => true,
        Some("cached") => seen.sent.is_none() && seen.answer.is_some(),
        Some("not_cached") => seen.sent.is_some(),
        Some("etag_validated") => has_sent(IF_NONE_MATCH),
        Some("lm_validated") => has_sent(IF_MODIFIED_SINCE),
        Some(other) => panic!("no such type: {other}"),
    };
    if !is_expected {
        return Err(format!("not {}; sent {:?}", case["expected_type"], seen.sent));
    }
    let asked = case["response_status"][0].as_u64();
    let status = case.get("expected_status").map_or(asked.or(Some(200)), Value::as_u64);
    let seen_status = seen.answer.as_ref().map(|it| u64::from(it.status.as_u16()));
    if seen_status != status {
        return Err(format!("the status is {seen_status:?}, not {status:?}"));
    }
    let nothing = HeaderMap::new();
    let sent = seen.sent.as_ref().unwrap_or(&nothing);
    check_fields("sent", sent, &case["expected_request_headers"])?;
    let Some(Answer { headers, body, .. }) = &seen.answer else { return Ok(()) };
    check_fields("seen", headers, &case["expected_response_headers"])?;
    for name in list(&case["expected_response_headers_missing"]) {
        if headers.contains_key(name.as_str().unwrap()) {
            return Err(format!("{name} is there"));
        }
    }
    if case["check_body"] != false && *body != server.body {
        return Err(format!("the body is {body:?}, not {:?}", server.body));
    }
    Ok(())
}

/// Whether each field is there that a case lists, and no other of its name: a name, or a name and
/// its value. A field with `false`, and one with a time, isn't compared.
fn check_fields(what: &str, headers: &HeaderMap, expected: &Value) -> Result<(), String> {
    let count = |name| list(expected).iter().filter(|it| it[0] == name).count();
    for field in list(expected).iter().filter(|it| it[2] != false) {
        let name = field.as_str().or(field[0].as_str()).unwrap();
        let values: Vec<&HeaderValue> = headers.get_all(name).iter().collect();
        let is_there = match field[1].as_str() {
            None => !values.is_empty(),
            Some(value) => values.len() == count(name) && values.iter().any(|it| *it == value),
        };
        if !is_there {
            return Err(format!("{field} is not {what}, but {values:?}"));
        }
    }
    Ok(())
}

/// The fields that a case lists. A number stands for a time, in seconds from now.
fn fields(of: &Value, now_us: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for field in list(of) {
        let name: HeaderName = field[0].as_str().unwrap().parse().unwrap();
        let value = match field[1].as_i64() {
            Some(seconds) => date(now_us, seconds),
            None => field[1].as_str().unwrap().parse().unwrap(),
        };
        headers.append(name, value);
    }
    headers
}

fn date(now_us: u64, seconds: i64) -> HeaderValue {
    let time = Duration::from_micros(now_us).as_secs().checked_add_signed(seconds).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(time);
    httpdate::fmt_http_date(time).parse().unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
