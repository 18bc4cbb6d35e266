//! How long the content of one URL is fresh, and how its server is asked whether it changed.
//!
//! The cache holds no content, sends nothing and reads no clock. Its caller asks
//! [`CachedUrl::plan`] whether the content that it has is fresh. If not, the caller adds the header
//! fields of the plan to its `GET` request, sends the request, and gives the answer to
//! [`CachedUrl::take`]. If there is no answer, [`CachedUrl::stale`] says whether the old content
//! may still be shown.
//!
//! The rules are those of a private cache (RFC 9111) whose requests for a URL are all alike, so
//! what requests may say of caching isn't read. A malformed field only has the server asked once
//! more.
//!
//! Times are microseconds since the Unix epoch.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::{
    AGE, CACHE_CONTROL, DATE, ETAG, EXPIRES, HeaderMap, HeaderName, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, LAST_MODIFIED, VARY,
};

/// The header fields that are kept. A 304 that lacks one of the first four leaves it as it was.
const FIELDS: [HeaderName; 6] = [CACHE_CONTROL, ETAG, EXPIRES, LAST_MODIFIED, AGE, DATE];
const STAYING: usize = 4;
/// The most seconds that a field can have, more than 68 years.
const SECONDS_MAX: i64 = 1 << 31;

/// What is known of the content of one URL. By default, there is no content.
#[derive(Debug, Default)]
pub struct CachedUrl {
    kept: Option<Kept>,
}

/// A server's answer to a `GET` request, with its times.
#[derive(Debug)]
pub struct Answered<'a> {
    /// The time when the request was sent.
    pub asked_at_us: u64,
    /// The time when the answer was received.
    pub answered_at_us: u64,
    pub status: StatusCode,
    pub headers: &'a HeaderMap,
}

/// The caller's time to live (ttl) of content, besides the lifetime that the server gives.
///
/// A server's lifetime counts from the time when the answer was generated. A ttl counts from the
/// time when the answer was received or confirmed. Whatever the ttl is, content with `no-store`
/// isn't kept, and content with `no-cache` is never fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// The server's lifetime counts, but at most this time. If the server gives none, this time
    /// counts.
    AtMost(Duration),
    /// This time counts, whatever `max-age` and `Expires` say. This is for content that contains
    /// its own ttl, which is more exact than a lifetime that the server gives all its files.
    Exactly(Duration),
}

/// The next step for a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Plan {
    /// The content is fresh: use it, and send nothing.
    Use,
    /// Send the request with these additional header fields: `If-None-Match` and
    /// `If-Modified-Since`, or none.
    Ask(HeaderMap),
}

/// The effect of an answer on the content.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Taken {
    /// The answer's content takes the place of the old content.
    Kept,
    /// The server confirmed the old content.
    Confirmed,
    /// The answer's content, or the content that it confirms, may be used for this request only.
    Once,
    /// The server has a temporary failure: a status 5xx, 408, 425 or 429. The old content stays.
    Failed,
    /// The server confirmed other content than the caller has. Nothing is kept now, so that the
    /// next plan asks without conditions. A server that answers 304 to such a request is broken.
    Unmatched,
}

impl CachedUrl {
    /// Decides whether to use the content, or with which fields to ask the server.
    pub fn plan(&self, ttl: Ttl, now_us: u64) -> Plan {
        match &self.kept {
            None => Plan::Ask(HeaderMap::new()),
            Some(kept) if kept.fresh_us(ttl, now_us) > 0 => Plan::Use,
            Some(kept) => Plan::Ask(kept.conditions()),
        }
    }

    /// Takes an answer. A 304 confirms the content, and replaces the fields that it has. Any other
    /// answer but a temporary failure replaces what is known of the content.
    pub fn take(&mut self, answer: &Answered<'_>) -> Taken {
        if is_failure_for_now(answer.status) {
            return Taken::Failed;
        }
        let before = self.kept.take();
        let is_confirmation = answer.status == StatusCode::NOT_MODIFIED;
        let before = before.filter(|it| is_confirmation && it.is_meant_by(answer.headers));
        if is_confirmation && before.is_none() {
            return Taken::Unmatched;
        }
        let is_new = answer.status.is_success() && answer.status != StatusCode::PARTIAL_CONTENT;
        let kept = Kept::new(answer, before.as_ref());
        if !(is_new || is_confirmation) || kept.directive("no-store").is_some() || varies(answer) {
            return Taken::Once;
        }
        self.kept = Some(kept);
        if is_confirmation { Taken::Confirmed } else { Taken::Kept }
    }

    /// Returns the time for which the content is still fresh. Zero if it is stale, if there is
    /// none, or if the clock went back.
    pub fn fresh_for(&self, ttl: Ttl, now_us: u64) -> Duration {
        let left = self.kept.as_ref().map_or(0, |it| it.fresh_us(ttl, now_us));
        Duration::from_micros(left.unsigned_abs())
    }

    /// Returns the age of content that may be shown for a request that got no answer, or only a
    /// temporary failure. `None` if there is no content, or if it
    /// - has `no-cache`,
    /// - has `must-revalidate` and is stale, or
    /// - has been stale for longer than its `stale-if-error`.
    ///
    /// Without `stale-if-error`, the content may have any age.
    pub fn stale(&self, ttl: Ttl, now_us: u64) -> Option<Duration> {
        let kept = self.kept.as_ref()?;
        let overdue = kept.left_us(ttl, now_us).saturating_neg();
        let is_allowed = kept.directive("no-cache").is_none()
            && (overdue < 0
                || kept.directive("must-revalidate").is_none()
                    && kept.seconds_us("stale-if-error").is_none_or(|it| overdue <= it));
        let age_us = kept.age_us(now_us).max(0).unsigned_abs();
        is_allowed.then(|| Duration::from_micros(age_us))
    }
}

/// The fields of an answer, and its times.
#[derive(Debug)]
struct Kept {
    headers: HeaderMap,
    asked_us: i64,
    answered_us: i64,
}

impl Kept {
    /// The fields of an answer, and those of the answer before that it confirms.
    fn new(answer: &Answered<'_>, before: Option<&Kept>) -> Kept {
        let mut headers = HeaderMap::new();
        for (at, name) in FIELDS.iter().enumerate() {
            let stays = at < STAYING && !answer.headers.contains_key(name);
            let from = before.filter(|_| stays).map_or(answer.headers, |it| &it.headers);
            headers.extend(from.get_all(name).iter().map(|it| (name.clone(), it.clone())));
        }
        let (asked_us, answered_us) = (time_us(answer.asked_at_us), time_us(answer.answered_at_us));
        Kept { headers, asked_us, answered_us }
    }

    /// The header fields that ask a server whether it still has the content.
    fn conditions(&self) -> HeaderMap {
        let tag = self.headers.get(ETAG).map(|it| (IF_NONE_MATCH, it.clone()));
        let changed =
            self.headers.get(LAST_MODIFIED).filter(|_| self.date(&LAST_MODIFIED).is_some());
        let changed = changed.map(|it| (IF_MODIFIED_SINCE, it.clone()));
        tag.into_iter().chain(changed).collect()
    }

    /// Whether a 304 is about this content. If both have a tag, the tags must be equal. Otherwise,
    /// if both have a time of the last change, these must be equal. Tags are compared weakly, since
    /// some servers confirm a weak tag with the strong tag.
    fn is_meant_by(&self, confirmation: &HeaderMap) -> bool {
        let both = |name| {
            let strong = |it: &HeaderMap| {
                let tag = it.get(name)?.as_bytes();
                Some(tag.strip_prefix(b"W/").unwrap_or(tag).to_owned())
            };
            Some(strong(&self.headers)? == strong(confirmation)?)
        };
        both(&ETAG).or_else(|| both(&LAST_MODIFIED)).unwrap_or(true)
    }

    /// The time for which the content is still fresh by its lifetime and by `ttl`. At least 0.
    fn fresh_us(&self, ttl: Ttl, now_us: u64) -> i64 {
        let left = match ttl {
            _ if self.directive("no-cache").is_some() => 0,
            Ttl::AtMost(most) => duration_us(most).saturating_sub(self.kept_us(now_us)),
            Ttl::Exactly(_) => i64::MAX,
        };
        left.min(self.left_us(ttl, now_us)).max(0)
    }

    /// The remaining lifetime of the content. If the lifetime has ended, the result is negative:
    /// the time since its end. The maximum of [`Ttl::AtMost`] is ignored if the server gives a
    /// lifetime. The result is 0 if the clock went back.
    fn left_us(&self, ttl: Ttl, now_us: u64) -> i64 {
        if time_us(now_us) < self.answered_us {
            return 0;
        }
        match (ttl, self.lifetime_us()) {
            (Ttl::AtMost(_), Some(lifetime)) => lifetime.saturating_sub(self.age_us(now_us)),
            (Ttl::AtMost(ttl) | Ttl::Exactly(ttl), _) => {
                duration_us(ttl).saturating_sub(self.kept_us(now_us))
            }
        }
    }

    /// The lifetime that the server gives, if it does. An invalid `Expires` is a time that has
    /// passed.
    fn lifetime_us(&self) -> Option<i64> {
        let expires =
            || self.date(&EXPIRES).map_or(0, |it| it.saturating_sub(self.made_us()).max(0));
        let expires = self.headers.contains_key(EXPIRES).then(expires);
        self.seconds_us("max-age").or(expires)
    }

    /// The time since the answer was generated (RFC 9111, section 4.2.3).
    fn age_us(&self, now_us: u64) -> i64 {
        let told = self.headers.get(AGE).and_then(|it| it.to_str().ok()?.split(',').next());
        let told = told.and_then(|it| seconds_us(it.trim())).unwrap_or(0);
        let told = told.saturating_add(self.answered_us.saturating_sub(self.asked_us).max(0));
        let age = told.max(self.answered_us.saturating_sub(self.made_us()));
        age.saturating_add(self.kept_us(now_us))
    }

    /// The time since the answer was received.
    fn kept_us(&self, now_us: u64) -> i64 {
        time_us(now_us).saturating_sub(self.answered_us).max(0)
    }

    /// The time when the answer was generated.
    fn made_us(&self) -> i64 {
        self.date(&DATE).unwrap_or(self.answered_us)
    }

    fn date(&self, name: &HeaderName) -> Option<i64> {
        let date = httpdate::parse_http_date(self.headers.get(name)?.to_str().ok()?).ok()?;
        Some(jiff::Timestamp::try_from(date).ok()?.as_microsecond())
    }

    /// The argument of a directive of `Cache-Control`. It is empty for a directive without one.
    fn directive(&self, name: &str) -> Option<String> {
        self.headers.get_all(CACHE_CONTROL).iter().find_map(|line| {
            let line = String::from_utf8_lossy(line.as_bytes());
            line.split(',').find_map(|it| {
                let (key, argument) = it.split_once('=').unwrap_or((it, ""));
                let is_it = key.trim().eq_ignore_ascii_case(name);
                is_it.then(|| argument.trim().trim_matches('"').to_owned())
            })
        })
    }

    /// The time that a directive of `Cache-Control` gives. An invalid one counts as 0.
    fn seconds_us(&self, name: &str) -> Option<i64> {
        self.directive(name).map(|it| seconds_us(&it).unwrap_or(0))
    }
}

/// Whether a status is a temporary failure, so that a later request may succeed.
pub fn is_failure_for_now(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
}

/// Whether an answer is for one request alone: its `Vary` has a `*`.
fn varies(answer: &Answered<'_>) -> bool {
    let mut lines = answer.headers.get_all(VARY).iter().map(|it| it.as_bytes());
    lines.any(|line| line.split(|it| *it == b',').any(|it| it.trim_ascii() == b"*"))
}

/// The time of a number of seconds, which is digits alone.
fn seconds_us(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(SECONDS_MAX).min(SECONDS_MAX) * 1_000_000)
}

fn time_us(time_us: u64) -> i64 {
    i64::try_from(time_us).unwrap_or(i64::MAX)
}

fn duration_us(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    const NOW: u64 = 784_111_777_000_000;
    const DATED: &str = "date: Sun, 06 Nov 1994 08:49:37 GMT";
    const FIVE: Ttl = Ttl::AtMost(Duration::from_secs(5));
    const EXACTLY_FIVE: Ttl = Ttl::Exactly(Duration::from_secs(5));
    const LONG: Ttl = Ttl::AtMost(Duration::MAX);

    fn headers(lines: &[&str]) -> HeaderMap {
        let parts = lines.iter().map(|it| it.split_once(": ").unwrap());
        parts.map(|(name, it)| (name.parse::<HeaderName>().unwrap(), it.parse().unwrap())).collect()
    }

    /// Takes an answer with these fields, `seconds` after the time of the tests.
    fn take(url: &mut CachedUrl, status: u16, lines: &[&str], seconds: u64) -> Taken {
        let (status, now) = (StatusCode::from_u16(status).unwrap(), NOW + seconds * 1_000_000);
        let headers = &headers(lines);
        url.take(&Answered { asked_at_us: now, answered_at_us: now, status, headers })
    }

    fn kept(lines: &[&str]) -> CachedUrl {
        let mut url = CachedUrl::default();
        assert_eq!(take(&mut url, 200, lines, 0), Taken::Kept);
        url
    }

    /// Checks the number of seconds for which content with these fields is still fresh, `seconds`
    /// after it was received.
    #[track_caller]
    fn check_fresh(lines: &[&str], ttl: Ttl, seconds: u64, expected: u64) {
        let left = kept(lines).fresh_for(ttl, NOW + seconds * 1_000_000);
        assert_eq!(left, Duration::from_secs(expected), "{lines:?} {ttl:?}");
    }

    /// Checks the conditions of a plan. `use` stands for a plan that uses the content.
    #[track_caller]
    fn check_plan(url: &CachedUrl, ttl: Ttl, expected: &[&str]) {
        match url.plan(ttl, NOW + 1_000_000) {
            Plan::Use => assert_eq!(["use"], expected),
            Plan::Ask(conditions) => assert_eq!(conditions, headers(expected)),
        }
    }

    #[test]
    fn max_age_goes_before_expires_and_the_ttl_is_a_cap_or_the_default() {
        let expires = "expires: Sun, 06 Nov 1994 08:49:40 GMT";
        let max_age = "cache-control: max-age=9";
        check_fresh(&[DATED, expires], LONG, 0, 3);
        check_fresh(&[DATED, expires, max_age, "age: 2"], LONG, 1, 6);
        check_fresh(&[expires, "cache-control: s-maxage=9"], FIVE, 0, 3);
        check_fresh(&[max_age], FIVE, 1, 4);
        check_fresh(&["cache-control: max-age=2"], FIVE, 1, 1);
        check_fresh(&["expires: 0"], FIVE, 0, 0);
        check_fresh(&[], FIVE, 1, 4);
        check_fresh(&["age: 9"], FIVE, 1, 4);
        check_fresh(&["cache-control: max-age=9"], EXACTLY_FIVE, 1, 4);
        check_fresh(&["cache-control: max-age=1"], EXACTLY_FIVE, 1, 4);
        check_fresh(&["cache-control: no-cache"], EXACTLY_FIVE, 0, 0);
    }

    #[test]
    fn a_number_of_seconds_is_digits_with_or_without_quotes() {
        let check = |line: &str, expected| check_fresh(&[line], LONG, 0, expected);
        check("cache-control: private , MAX-age=\"10\"", 10);
        check("cache-control: max-age=010", 10);
        check("cache-control: max-age=99999999999999999999", 1 << 31);
        for wrong in ["", "=", "=-1", "=1.5", "=a", "=1 2", "='1'", "=+1"] {
            check(&format!("cache-control: max-age{wrong}"), 0);
        }
    }

    #[test]
    fn an_age_counts_the_time_of_the_request_and_what_date_says() {
        let headers = &headers(&["cache-control: max-age=9", DATED, "age: 1"]);
        let (asked_at_us, answered_at_us) = (NOW + 2_000_000, NOW + 4_000_000);
        let mut url = CachedUrl::default();
        let slow = Answered { asked_at_us, answered_at_us, status: StatusCode::OK, headers };
        assert_eq!(url.take(&slow), Taken::Kept);
        assert_eq!(url.fresh_for(LONG, NOW + 5_000_000), Duration::from_secs(4));
        assert_eq!(url.fresh_for(LONG, NOW), Duration::ZERO, "the clock went back");
    }

    #[test]
    fn stale_content_is_asked_for_by_tag_and_time() {
        let changed = "last-modified: Sun, 06 Nov 1994 08:49:37 GMT";
        let asked = ["if-none-match: \"a\"", "if-modified-since: Sun, 06 Nov 1994 08:49:37 GMT"];
        let url = kept(&["cache-control: no-cache", "etag: \"a\"", changed]);
        check_plan(&url, EXACTLY_FIVE, &asked);
        check_plan(&kept(&["last-modified: never", "expires: 0"]), FIVE, &[]);
        check_plan(&kept(&[]), FIVE, &["use"]);
        check_plan(&CachedUrl::default(), FIVE, &[]);
    }

    #[test]
    fn what_may_not_be_kept_ends_what_was_kept() {
        for line in ["cache-control: no-store, max-age=9", "vary: *", "vary: a, *"] {
            let mut url = kept(&[]);
            assert_eq!(take(&mut url, 200, &[line], 0), Taken::Once, "{line}");
            check_plan(&url, FIVE, &[]);
        }
        for status in [206, 302, 403] {
            let mut url = kept(&[]);
            assert_eq!(take(&mut url, status, &[], 0), Taken::Once, "{status}");
            check_plan(&url, FIVE, &[]);
        }
    }

    #[test]
    fn a_304_updates_the_lifetime_and_the_age() {
        let mut url = kept(&["cache-control: max-age=0", "etag: \"a\"", DATED, "age: 7"]);
        let fields = ["etag: W/\"a\"", "cache-control: max-age=9"];
        assert_eq!(take(&mut url, 304, &fields, 3), Taken::Confirmed);
        assert_eq!(url.fresh_for(LONG, NOW + 3_000_000), Duration::from_secs(9));
        assert_eq!(take(&mut url, 304, &[], 6), Taken::Confirmed);
        assert_eq!(url.fresh_for(LONG, NOW + 6_000_000), Duration::from_secs(9));
        assert_eq!(take(&mut url, 304, &["cache-control: no-store"], 7), Taken::Once);
        check_plan(&url, FIVE, &[]);
    }

    #[test]
    fn a_304_for_other_content_is_unmatched() {
        let changed = "last-modified: Sun, 06 Nov 1994 08:49:37 GMT";
        let other = "last-modified: Sun, 06 Nov 1994 08:49:38 GMT";
        for (before, field) in [("etag: \"a\"", "etag: \"b\""), (changed, other)] {
            let mut url = kept(&[before]);
            assert_eq!(take(&mut url, 304, &[field], 0), Taken::Unmatched);
            check_plan(&url, FIVE, &[]);
        }
        assert_eq!(take(&mut CachedUrl::default(), 304, &[], 0), Taken::Unmatched);
    }

    #[test]
    fn a_failure_for_now_leaves_what_is_kept() {
        for status in [408, 425, 429, 500, 503] {
            let mut url = kept(&[]);
            assert_eq!(take(&mut url, status, &["cache-control: max-age=9"], 0), Taken::Failed);
            check_plan(&url, FIVE, &["use"]);
        }
    }

    #[test]
    fn stale_content_may_be_shown_unless_the_server_forbids_it() {
        let age = |said: &str, ttl: Ttl| {
            let url = kept(&[&format!("cache-control: {said}")]);
            url.stale(ttl, NOW + 3_000_000).map(|it| it.as_secs())
        };
        for allowed in ["max-age=1", "max-age=1, stale-if-error=2", "max-age=9, must-revalidate"] {
            assert_eq!(age(allowed, FIVE), Some(3), "{allowed}");
        }
        let least = ["no-cache", "max-age=3, must-revalidate", "max-age=1, stale-if-error=1"];
        for forbidden in least {
            assert_eq!(age(forbidden, FIVE), None, "{forbidden}");
        }
        assert_eq!(age("must-revalidate", FIVE), Some(3));
    }
}
