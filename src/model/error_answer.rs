//! Decides which kind of failure a server's error is. The error is an answer that isn't a reply, or
//! an event of a reply's stream.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::{Value, json};

use crate::clock;
use crate::model::error::{Error, Kind};
use crate::model::too_long;
use crate::model::too_long::TooLong;

/// The most characters of a server's message that an error repeats.
const SAID_MAX: usize = 500;

/// The error of an answer that isn't a success. `text` is the beginning of its body. `elsewhere` is
/// the address that a redirect names.
pub(crate) fn of_answer(
    status: StatusCode,
    headers: &HeaderMap,
    text: &str,
    elsewhere: &str,
) -> Error {
    let body =
        serde_json::from_str(text).ok().map(|it: Value| ErrorBody::of(&it)).unwrap_or_default();
    let mut error = refused(status, &body, elsewhere);
    error.said = said(body.message.as_deref().unwrap_or(title(text)));
    error.retry_after = retry_after(headers, clock::wall_us());
    if status == StatusCode::TOO_MANY_REQUESTS {
        error.retry_after = error.retry_after.or_else(|| limit_reset(headers));
    }
    error
}

/// The error that an event of a reply's stream reports.
pub(crate) fn within(error: &Value) -> Error {
    let body = ErrorBody::of(error);
    let status = body.code.parse().ok().and_then(|it| StatusCode::from_u16(it).ok());
    let (kind, retry) = body.kind(status);
    let message = "the server failed in the middle of its reply";
    let error = Error {
        retry,
        status: status.map(|it| it.as_u16()),
        said: body.message.as_deref().and_then(said),
        ..Error::new(kind, message)
    };
    body.measured(error)
}

/// The parts of an error in JSON, from the places where servers put them.
#[derive(Debug, Default)]
struct ErrorBody {
    message: Option<String>,
    code: String,
    kind: String,
    /// How much too long the prompt is, if the error says that.
    too_long: TooLong,
}

impl ErrorBody {
    fn of(value: &Value) -> ErrorBody {
        let error = match &value["error"] {
            Value::Null => value,
            error => error,
        };
        // OpenRouter puts the answer of the provider that it asked into `metadata.raw`.
        if let Some(raw) = error["metadata"]["raw"].as_str().filter(|it| !it.is_empty()) {
            let inner = serde_json::from_str(raw).ok().map(|it: Value| ErrorBody::of(&it));
            let inner = inner.filter(|it| it.message.is_some());
            return inner.unwrap_or_else(|| ErrorBody::of(&json!({ "message": raw })));
        }
        let text = |value: &Value| match value {
            Value::String(it) => Some(it.clone()),
            Value::Number(it) => Some(it.to_string()),
            _ => None,
        };
        let messages = [error, &error["message"], &error["detail"], &error["error"]];
        let message = messages.into_iter().find_map(text);
        let words = message.as_deref().unwrap_or_default().to_ascii_lowercase();
        ErrorBody {
            too_long: TooLong::of(error, &words),
            message,
            code: text(&error["code"]).unwrap_or_default(),
            kind: text(&error["type"]).unwrap_or_default(),
        }
    }

    /// Adds to an error how much too long the prompt is, if that is the error.
    fn measured(&self, error: Error) -> Error {
        let TooLong { prompt_tokens, window } = self.too_long;
        match error.kind {
            Kind::PromptTooLong => {
                let window = window.and_then(|it| u32::try_from(it).ok());
                Error { prompt_tokens, window, ..error }
            }
            _ => error,
        }
    }

    /// The kind of the failure, and whether a retry may help.
    fn kind(&self, status: Option<StatusCode>) -> (Kind, bool) {
        let words =
            format!("{} {} {}", self.code, self.kind, self.message.as_deref().unwrap_or(""));
        let words = words.to_ascii_lowercase();
        let has = |all: &[&str]| all.iter().any(|it| words.contains(it));
        if too_long::says_so(&words) && !self.too_long.is_short() {
            return (Kind::PromptTooLong, false);
        }
        let Some(status) = status else {
            return match () {
                () if has(&["rate_limit", "rate limit"]) => (Kind::RateLimited, true),
                () if has(&["invalid_request", "authentication"]) => (Kind::Refused, false),
                () => (Kind::Failed, true),
            };
        };
        match status {
            StatusCode::PAYLOAD_TOO_LARGE => (Kind::PromptTooLong, false),
            // A used-up quota doesn't come back by itself.
            StatusCode::TOO_MANY_REQUESTS => {
                (Kind::RateLimited, !has(&["insufficient_quota", "billing"]))
            }
            StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT | StatusCode::TOO_EARLY => {
                (Kind::Failed, true)
            }
            status if status.is_server_error() => {
                (Kind::Failed, status != StatusCode::NOT_IMPLEMENTED)
            }
            _ => (Kind::Refused, false),
        }
    }
}

fn refused(status: StatusCode, body: &ErrorBody, elsewhere: &str) -> Error {
    let (kind, retry) = body.kind(Some(status));
    let message = match (kind, status.as_u16()) {
        (Kind::PromptTooLong, _) => format!("the prompt is too long for the model: {status}"),
        (Kind::RateLimited, _) => format!("the server has had enough of us for now: {status}"),
        (Kind::Failed, _) => format!("the server failed: {status}"),
        (_, 300..=399) => {
            format!("the server sends us elsewhere, {status}; if that is right, write {elsewhere}")
        }
        (_, 401 | 403) => format!("the server doesn't let us in: {status}; is the key right?"),
        (_, 404) => format!("the server has no such model or address: {status}"),
        _ => format!("the server refuses the request: {status}"),
    };
    body.measured(Error { status: Some(status.as_u16()), retry, ..Error::new(kind, message) })
}

/// The beginning of a message, on one line. None if it is empty.
pub(crate) fn said(text: &str) -> Option<Box<str>> {
    let words: Vec<&str> = text
        .split(|it: char| it.is_whitespace() || it.is_control())
        .filter(|it| !it.is_empty())
        .collect();
    let text = words.join(" ");
    match text.char_indices().nth(SAID_MAX) {
        Some((end, _)) => Some(format!("{}…", &text[..end]).into()),
        None if text.is_empty() => None,
        None => Some(text.into()),
    }
}

/// The title of a page, or the whole page if it has none.
pub(crate) fn title(page: &str) -> &str {
    let lower = page.to_ascii_lowercase();
    let title = lower.find("<title>").and_then(|at| {
        let from = at + "<title>".len();
        let to = from + lower[from..].find("</title>")?;
        Some(&page[from..to])
    });
    title.filter(|it| !it.trim().is_empty()).unwrap_or(page)
}

/// Returns how long the server asks to wait before a retry. The headers hold milliseconds, seconds,
/// or a date.
fn retry_after(headers: &HeaderMap, now_us: u64) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(ms) = text("retry-after-ms").and_then(|it| it.parse::<u64>().ok()) {
        return Some(Duration::from_millis(ms));
    }
    let text = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    let at_us = u64::try_from(at.as_microsecond()).unwrap_or(0);
    Some(Duration::from_micros(at_us.saturating_sub(now_us)))
}

/// Returns the time until OpenAI's limits of requests and of tokens are as they were, the longer of
/// the two. A limit that has something left is left out, unless both have: then the tokens that are
/// left are too few for the prompt. The headers hold times such as `1m2s` or `20ms`.
fn limit_reset(headers: &HeaderMap) -> Option<Duration> {
    let of = |name: String| headers.get(name)?.to_str().ok().map(str::trim);
    let reset = |what: &str| {
        let text = of(format!("x-ratelimit-reset-{what}"))?;
        let seconds = text.parse::<f64>().ok();
        let time = seconds.and_then(|it| Duration::try_from_secs_f64(it).ok());
        time.or_else(|| text.parse::<jiff::SignedDuration>().ok()?.try_into().ok())
    };
    let has_more = |what: &str| {
        let left = of(format!("x-ratelimit-remaining-{what}"));
        left.and_then(|it| it.parse::<u64>().ok()).is_some_and(|it| it > 0)
    };
    let used_up = ["requests", "tokens"].into_iter().filter(|it| !has_more(it));
    used_up.filter_map(reset).max().or_else(|| reset("tokens"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderName;
    use serde_json::json;

    #[test]
    fn a_limit_that_says_when_it_is_reset_is_a_time_to_wait() {
        let check = |all: &[(&'static str, &'static str)], expected: Option<u64>| {
            let mut headers = HeaderMap::new();
            for (name, value) in all {
                let name: HeaderName = format!("x-ratelimit-{name}").parse().unwrap();
                headers.insert(name, value.parse().unwrap());
            }
            assert_eq!(limit_reset(&headers), expected.map(Duration::from_millis), "{all:?}");
        };
        check(&[("reset-requests", "1m2s")], Some(62_000));
        check(&[("reset-tokens", "6m0s"), ("reset-requests", "20ms")], Some(360_000));
        check(&[("reset-tokens", "1h2m3.5s")], Some(3_723_500));
        check(&[("reset-tokens", "7.66s")], Some(7_660));
        check(&[("reset-requests", "2")], Some(2_000));
        let left = [("remaining-requests", "9999"), ("reset-requests", "8m")];
        check(&[left[0], left[1], ("reset-tokens", "3s")], Some(3_000));
        check(&[left[0], left[1], ("remaining-tokens", "10"), ("reset-tokens", "3s")], Some(3_000));
        check(&left, None);
        check(&[("reset-requests", "soon")], None);
        check(&[("reset-requests", "-2s")], None);
        check(&[], None);
    }

    #[test]
    fn a_failure_has_its_kind() {
        let check = |status: u16, body: Value, kind, retry| {
            let status = StatusCode::from_u16(status).ok();
            assert_eq!(ErrorBody::of(&body).kind(status), (kind, retry), "{status:?} {body}");
        };
        let none = || json!({});
        check(400, none(), Kind::Refused, false);
        check(401, none(), Kind::Refused, false);
        check(404, none(), Kind::Refused, false);
        check(408, none(), Kind::Failed, true);
        check(413, none(), Kind::PromptTooLong, false);
        check(429, none(), Kind::RateLimited, true);
        check(429, json!({"error": {"code": "insufficient_quota"}}), Kind::RateLimited, false);
        check(500, none(), Kind::Failed, true);
        check(501, none(), Kind::Failed, false);
        check(529, none(), Kind::Failed, true);
        let long = json!({"error": {"code": "context_length_exceeded", "message": "Too long."}});
        check(400, long, Kind::PromptTooLong, false);
        let long = json!({"error": {"code": 400, "type": "exceed_context_size_error"}});
        check(400, long, Kind::PromptTooLong, false);
        let long = json!({"message": "This model's maximum context length is 8192 tokens"});
        check(400, long, Kind::PromptTooLong, false);
        let raw =
            r#"{"type":"error","error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}"#;
        let wrapped = json!({"error": {"message": "Provider returned error", "code": 400,
            "metadata": {"raw": raw, "provider_name": "x"}}});
        check(400, wrapped, Kind::PromptTooLong, false);
        // The reply's tokens are what doesn't fit.
        let reply = "'max_tokens' is too large: 4096. This model's maximum context length is 4096 \
                     tokens and your request has 52 input tokens (4096 > 4096 - 52).";
        check(400, json!({"message": reply}), Kind::Refused, false);
        // In a stream, only the error itself can have a status.
        check(0, json!({"error": {"type": "rate_limit_exceeded"}}), Kind::RateLimited, true);
        check(0, json!({"error": {"type": "invalid_request_error"}}), Kind::Refused, false);
        check(0, json!({"error": "boom"}), Kind::Failed, true);
    }

    #[test]
    fn an_error_in_the_stream_may_have_a_status() {
        let error = within(&json!({"code": 429, "message": "Slow  down\n"}));
        assert_eq!((error.kind, error.status), (Kind::RateLimited, Some(429)));
        assert_eq!(error.said.as_deref(), Some("Slow down"));
        assert_eq!(within(&json!("boom")).said.as_deref(), Some("boom"));
        assert_eq!(within(&json!({})).said, None);
    }

    #[test]
    fn the_message_is_found_wherever_it_stands() {
        let check = |body: Value, expected: Option<&str>| {
            assert_eq!(ErrorBody::of(&body).message.as_deref(), expected, "{body}");
        };
        check(json!({"error": {"message": "a"}}), Some("a"));
        check(json!({"error": "a"}), Some("a"));
        check(json!({"message": "a"}), Some("a"));
        check(json!({"detail": "a"}), Some("a"));
        check(json!("a"), Some("a"));
        check(json!({"error": {"message": "b", "metadata": {"raw": "a"}}}), Some("a"));
        let raw = r#"{"error":{"message":"a"}}"#;
        check(json!({"error": {"message": "b", "metadata": {"raw": raw}}}), Some("a"));
        check(json!({"detail": [{"loc": ["body"]}]}), None);
        check(json!([]), None);
    }

    #[test]
    fn what_was_said_is_short_and_on_one_line() {
        assert_eq!(said(" a\r\n\tb\u{7}c "), Some("a b c".into()));
        assert_eq!(said(" \n"), None);
        let long = said(&"é".repeat(600)).unwrap();
        assert_eq!(long.chars().count(), SAID_MAX + 1);
        assert_eq!(title("<html><TITLE>502 Bad Gateway</TITLE>…"), "502 Bad Gateway");
        assert_eq!(title("<title></title>"), "<title></title>");
        assert_eq!(title("<title>İ"), "<title>İ");
    }

    #[test]
    fn a_time_to_wait_is_seconds_or_a_time_of_day() {
        let check = |name: &'static str, value: &'static str, expected: Option<u64>| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            let now_us = 784_111_777_000_000 - 30_000_000;
            let found = retry_after(&headers, now_us);
            assert_eq!(found, expected.map(Duration::from_millis), "{name}: {value}");
        };
        check("retry-after", "2", Some(2_000));
        check("retry-after", " 1.5 ", Some(1_500));
        check("retry-after-ms", "250", Some(250));
        check("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", Some(30_000));
        check("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT", Some(0));
        check("retry-after", "-1", None);
        check("retry-after", "soon", None);
        check("retry", "2", None);
    }
}
