//! A private HTTP cache for the answer of one URL, by RFC 9111 and RFC 9110.
//!
//! The cache sends nothing and reads no clock. Its caller asks [`CachedUrl::plan`] whether to use
//! the cached answer. If not, the caller adds the header fields of the plan to its `GET` request,
//! sends the request, and gives the answer to [`CachedUrl::take`]. If there is no answer,
//! [`CachedUrl::stale`] says whether the cached answer may still be shown.
//!
//! The crate `http-cache-semantics` isn't used. It reads dates only in the form of RFC 2822, and
//! `Age` only as a single number. It has nothing like the [`Ttl`] of a feed.
//!
//! Times are microseconds since the Unix epoch.

use std::time::Duration;

use bytes::Bytes;
use reqwest::StatusCode;
use reqwest::header::{
    AGE, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, EXPIRES,
    HeaderMap, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
};

use super::caching_fields::{
    Directives, age_seconds, date_us, opaque, remove_fields_of_connection, varying,
};

/// The maximum number of header fields of a cached answer, as many as hyper reads. An answer with
/// more fields isn't cached.
pub(crate) const FIELDS_MAX: usize = 100;
/// The maximum number of bytes of these fields' names and values together. An answer with more
/// bytes isn't cached.
pub(crate) const FIELDS_BYTES_MAX: usize = 32 * 1024;

/// One second.
const SECOND_US: i64 = 1_000_000;

/// Header fields that describe the bytes of a body. A 304 has no body, so it doesn't update these
/// fields (RFC 9111, section 3.2).
const OF_BODY: [HeaderName; 4] = [CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE];

/// The cached answer of one URL. By default, nothing is cached.
///
/// [`FIELDS_MAX`] and [`FIELDS_BYTES_MAX`] limit an answer's header fields. The caller limits the
/// body, for instance by `body_bytes_max` of the client's limits. Of the request, only the header
/// fields that `Vary` names are stored.
#[derive(Debug, Default)]
pub(crate) struct CachedUrl {
    kept: Option<Kept>,
}

/// A server's answer to a `GET` request, with its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimedAnswer {
    /// The time when the request was sent. If the answer was confirmed later, this is the time of
    /// the confirming request.
    pub(crate) asked_at_us: u64,
    /// The time when the answer was received, or when it was last confirmed.
    pub(crate) answered_at_us: u64,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// The caller's time to live (ttl) of an answer, besides the lifetime that the server gives.
///
/// A server's lifetime counts from the time when the answer was generated. A ttl counts from the
/// time when the answer was received or confirmed. Whatever the ttl is, an answer with `no-store`
/// isn't cached, and an answer with `no-cache` is never fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ttl {
    /// Only the server's lifetime counts. If the server gives none, the answer is stale at once.
    #[cfg_attr(not(test), expect(dead_code, reason = "the cases of others are played with it"))]
    Server,
    /// The server's lifetime counts, but at most this time. If the server gives none, this time
    /// counts (a heuristic lifetime as in RFC 9111, section 4.2.2).
    AtMost(Duration),
    /// This time counts, whatever `max-age` and `Expires` say. This variant is for content that
    /// contains its own ttl. Such a ttl is more exact than a lifetime that the server gives all its
    /// files.
    Exactly(Duration),
}

/// The next step for a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plan<'a> {
    /// The cached answer is fresh: use it, and send nothing.
    Use(&'a TimedAnswer),
    /// Send the request with these additional header fields: `If-None-Match` and
    /// `If-Modified-Since` of the cached answer (RFC 9111, section 4.3.1), or none.
    Ask(HeaderMap),
}

/// The effect of an answer on the cached answer.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Taken {
    /// The answer is cached in place of the previous one. [`CachedUrl::answer`] returns it.
    Kept,
    /// The server confirmed the cached answer. The body stays, and the header fields are updated.
    Confirmed,
    /// The answer, or the cached answer that it confirms, may be used for this request only.
    /// Nothing is cached now.
    Once(TimedAnswer),
    /// The server has a temporary failure: a status 5xx, 408, 425 or 429. This answer isn't cached,
    /// and the cached answer stays. [`CachedUrl::stale`] says whether the cached answer may be
    /// shown instead (RFC 9111, section 4.3.3).
    Failed(TimedAnswer),
    /// The server confirmed an answer other than the cached one. Nothing is cached now, so that the
    /// next plan asks without conditions. A server that answers 304 to such a request is broken.
    Unmatched,
}

/// A cached answer that may be shown although it couldn't be confirmed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stale<'a> {
    pub(crate) answer: &'a TimedAnswer,
    /// The time since the answer was generated or confirmed (RFC 9111, section 4.2.3).
    pub(crate) age: Duration,
}

impl CachedUrl {
    /// Returns the cached answer, whether it is fresh or not.
    #[cfg_attr(not(test), expect(dead_code, reason = "the cases of others are played with it"))]
    pub(crate) fn answer(&self) -> Option<&TimedAnswer> {
        self.kept.as_ref().map(|it| &it.answer)
    }

    /// Decides whether to use the cached answer for a request with these header fields, or with
    /// which fields to ask the server (RFC 9111, section 4). In the request's `Cache-Control`,
    /// `no-cache`, `max-age` and `min-fresh` count. The request must have no condition and no
    /// `Range` of its own.
    pub(crate) fn plan(&self, request: &HeaderMap, ttl: Ttl, now_us: u64) -> Plan<'_> {
        match self.fitting(request) {
            None => Plan::Ask(HeaderMap::new()),
            Some(kept) if kept.is_enough(request, ttl, now_us) => Plan::Use(&kept.answer),
            Some(kept) => Plan::Ask(kept.conditions()),
        }
    }

    /// Takes the answer to a request with these header fields. A 304 confirms the cached answer and
    /// updates its fields (RFC 9111, sections 3.2 and 4.3.4). A temporary failure leaves the cached
    /// answer unchanged. Any other answer replaces the cached answer, if the new answer may be
    /// cached (section 3). If the new answer may not be cached, nothing is cached any more.
    pub(crate) fn take(&mut self, request: &HeaderMap, answer: TimedAnswer) -> Taken {
        if is_failure_for_now(answer.status) {
            return Taken::Failed(answer);
        }
        let is_confirmation = answer.status == StatusCode::NOT_MODIFIED;
        let answer = if is_confirmation {
            let fits = self.fitting(request).is_some_and(|it| it.is_meant_by(&answer));
            let Some(kept) = self.kept.take().filter(|_| fits) else { return Taken::Unmatched };
            kept.answer.updated(answer)
        } else {
            answer
        };
        self.kept = None;
        let Some(varying) = varying_if_kept(request, &answer) else { return Taken::Once(answer) };
        self.kept = Some(Kept::new(request, answer, varying));
        if is_confirmation { Taken::Confirmed } else { Taken::Kept }
    }

    /// Returns the time for which the cached answer is still fresh (RFC 9111, section 4.2). Zero if
    /// the answer is stale, if nothing is cached, or if the clock went back.
    pub(crate) fn fresh_for(&self, ttl: Ttl, now_us: u64) -> Duration {
        let left = self.kept.as_ref().map_or(0, |it| it.fresh_us(ttl, now_us));
        Duration::from_micros(u64::try_from(left).unwrap_or(0))
    }

    /// Returns the cached answer for a request that got no answer, or only a temporary failure (RFC
    /// 9111, section 4.2.4). `None` if no cached answer fits the request, or if the cached answer
    /// - has `no-cache`,
    /// - has `must-revalidate` and is stale, or
    /// - has been stale for longer than its `stale-if-error` (RFC 5861, section 4).
    ///
    /// Without `stale-if-error`, the cached answer may have any age.
    pub(crate) fn stale(&self, request: &HeaderMap, ttl: Ttl, now_us: u64) -> Option<Stale<'_>> {
        let kept = self.fitting(request)?;
        let overdue = kept.left_us(ttl, now_us).saturating_neg();
        let is_allowed = match kept.rules {
            Rules { no_cache: true, .. } => false,
            _ if overdue < 0 => true,
            Rules { must_revalidate: true, .. } => false,
            Rules { stale_if_error_us, .. } => stale_if_error_us.is_none_or(|it| overdue <= it),
        };
        let age = Duration::from_micros(u64::try_from(kept.age_us(now_us)).unwrap_or(0));
        is_allowed.then_some(Stale { answer: &kept.answer, age })
    }

    /// Returns the cached answer. `None` if a header field that its `Vary` names is different in
    /// this request (RFC 9111, section 4.1).
    fn fitting(&self, request: &HeaderMap) -> Option<&Kept> {
        let is_same = |kept: &Kept, name| request.get_all(name) == kept.selecting.get_all(name);
        self.kept.as_ref().filter(|kept| kept.varying.iter().all(|name| is_same(kept, name)))
    }
}

/// A cached answer, and the rules that follow from its header fields.
#[derive(Debug)]
struct Kept {
    answer: TimedAnswer,
    /// The names in the answer's `Vary`.
    varying: Vec<HeaderName>,
    /// The request's header fields with the names in `varying`.
    selecting: HeaderMap,
    rules: Rules,
}

impl Kept {
    fn new(request: &HeaderMap, mut answer: TimedAnswer, varying: Vec<HeaderName>) -> Kept {
        let mut selecting = HeaderMap::new();
        for name in varying.iter().filter(|it| request.contains_key(*it)) {
            if !selecting.contains_key(name) {
                let values = request.get_all(name);
                selecting.extend(values.iter().map(|it| (name.clone(), it.clone())));
            }
        }
        let rules = Rules::of(&answer);
        remove_fields_of_connection(&mut answer.headers);
        Kept { answer, varying, selecting, rules }
    }

    /// Returns whether the answer is fresh and meets the request's own demands on freshness (RFC
    /// 9111, section 5.2.1).
    fn is_enough(&self, request: &HeaderMap, ttl: Ttl, now_us: u64) -> bool {
        let wanted = Directives::read(request);
        let left = self.fresh_us(ttl, now_us);
        let is_within = |it: u64| self.age_us(now_us) <= seconds_us(it);
        left > 0
            && !wanted.has("no-cache")
            && wanted.seconds("max-age").is_none_or(is_within)
            && wanted.seconds("min-fresh").is_none_or(|it| left >= seconds_us(it))
    }

    /// Returns the header fields that ask a server whether it still has the answer. There are none
    /// if the answer isn't a success, since a server confirms only successes (RFC 9110, section
    /// 13.2.1).
    fn conditions(&self) -> HeaderMap {
        let mut conditions = HeaderMap::new();
        let headers = &self.answer.headers;
        if !self.answer.status.is_success() {
            return conditions;
        }
        if let Some(tag) = headers.get(ETAG) {
            conditions.insert(IF_NONE_MATCH, tag.clone());
        }
        if let Some(since) = headers.get(LAST_MODIFIED)
            && date_us(headers, &LAST_MODIFIED).is_some()
        {
            conditions.insert(IF_MODIFIED_SINCE, since.clone());
        }
        conditions
    }

    /// Returns whether a 304 is about this answer. A 304 with too many header fields never is. If
    /// both have a tag, the tags must be equal. Otherwise, if both have a time of the last change,
    /// these times must be equal (RFC 9111, section 4.3.4). Otherwise, the 304 is about the only
    /// answer there is. Tags are compared weakly, as in `If-None-Match`, since some servers confirm
    /// a weak tag with the strong tag.
    fn is_meant_by(&self, confirmation: &TimedAnswer) -> bool {
        let both = |name| Some((self.answer.headers.get(name)?, confirmation.headers.get(name)?));
        if !is_within_limits(&confirmation.headers) {
            return false;
        }
        match (both(&ETAG), both(&LAST_MODIFIED)) {
            (Some((one, other)), _) => opaque(one) == opaque(other),
            (None, Some((one, other))) => one == other,
            (None, None) => true,
        }
    }

    /// Returns the time for which the answer is still fresh by its lifetime and by `ttl`, in
    /// microseconds. At least 0.
    fn fresh_us(&self, ttl: Ttl, now_us: u64) -> i64 {
        let left = self.left_us(ttl, now_us);
        let left = match ttl {
            _ if self.rules.no_cache => 0,
            Ttl::AtMost(most) => left.min(duration_us(most).saturating_sub(self.kept_us(now_us))),
            Ttl::Server | Ttl::Exactly(_) => left,
        };
        left.max(0)
    }

    /// Returns the remaining lifetime of the answer, in microseconds. If the lifetime has ended,
    /// the result is negative: the time since its end. The maximum of [`Ttl::AtMost`] is ignored if
    /// the server gives a lifetime. The result is 0 if the clock went back.
    fn left_us(&self, ttl: Ttl, now_us: u64) -> i64 {
        if now_us < self.answer.answered_at_us {
            return 0;
        }
        match (ttl, self.rules.lifetime_us) {
            (Ttl::Exactly(ttl), _) | (Ttl::AtMost(ttl), None) => {
                duration_us(ttl).saturating_sub(self.kept_us(now_us))
            }
            (_, lifetime) => lifetime.unwrap_or(0).saturating_sub(self.age_us(now_us)),
        }
    }

    /// Returns the answer's age in microseconds (RFC 9111, section 4.2.3).
    fn age_us(&self, now_us: u64) -> i64 {
        self.rules.age_us.saturating_add(self.kept_us(now_us))
    }

    /// Returns the time since the answer was received or confirmed, in microseconds.
    fn kept_us(&self, now_us: u64) -> i64 {
        time_us(now_us).saturating_sub(time_us(self.answer.answered_at_us)).max(0)
    }
}

/// The rules for the use of an answer, from its header fields.
#[derive(Debug)]
struct Rules {
    no_cache: bool,
    must_revalidate: bool,
    stale_if_error_us: Option<i64>,
    /// The lifetime that the server gives (RFC 9111, section 4.2.1). `None` if it gives none.
    lifetime_us: Option<i64>,
    /// The age when the answer was received (RFC 9111, section 4.2.3).
    age_us: i64,
}

impl Rules {
    fn of(answer: &TimedAnswer) -> Rules {
        let headers = &answer.headers;
        let directives = Directives::read(headers);
        let answered = time_us(answer.answered_at_us);
        let date = date_us(headers, &DATE).unwrap_or(answered);
        let delay = answered.saturating_sub(time_us(answer.asked_at_us)).max(0);
        let told = seconds_us(age_seconds(headers)).saturating_add(delay);
        // An invalid `Expires` counts as a time that has passed (RFC 9111, section 5.3).
        let expires = || date_us(headers, &EXPIRES).map_or(0, |it| it.saturating_sub(date).max(0));
        let expires = headers.contains_key(EXPIRES).then(expires);
        Rules {
            no_cache: directives.has("no-cache"),
            must_revalidate: directives.has("must-revalidate"),
            stale_if_error_us: directives.seconds("stale-if-error").map(seconds_us),
            lifetime_us: directives.seconds("max-age").map(seconds_us).or(expires),
            age_us: told.max(answered.saturating_sub(date)),
        }
    }
}

impl TimedAnswer {
    /// Returns this answer with the times and fields of a 304 that confirms it (RFC 9111, section
    /// 3.2). The old `Age` and `Date` are removed even if the 304 has none, since the answer's age
    /// counts from the 304.
    fn updated(mut self, confirmation: TimedAnswer) -> TimedAnswer {
        let TimedAnswer { mut headers, asked_at_us, answered_at_us, .. } = confirmation;
        remove_fields_of_connection(&mut headers);
        self.headers.remove(AGE);
        self.headers.remove(DATE);
        for name in headers.keys().filter(|it| !OF_BODY.contains(it)) {
            self.headers.remove(name);
            let values = headers.get_all(name).iter();
            self.headers.extend(values.map(|it| (name.clone(), it.clone())));
        }
        TimedAnswer { asked_at_us, answered_at_us, ..self }
    }
}

/// Returns whether a status is a temporary failure, so that a later request may succeed.
pub(crate) fn is_failure_for_now(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429)
}

/// Returns the names in the `Vary` of an answer that may be cached. `None` if the answer may not be
/// cached (RFC 9111, section 3).
fn varying_if_kept(request: &HeaderMap, answer: &TimedAnswer) -> Option<Vec<HeaderName>> {
    let headers = &answer.headers;
    if !is_within_limits(headers) {
        return None;
    }
    let directives = Directives::read(headers);
    let is_kept = !directives.has("no-store")
        && !Directives::read(request).has("no-store")
        && is_status_kept(answer.status, headers, &directives);
    varying(headers).filter(|_| is_kept)
}

/// Returns whether an answer of this status may be cached, by the definition of the status (RFC
/// 9110, section 15.1) or because the server allows it (RFC 9111, section 3). Partial bodies aren't
/// cached.
fn is_status_kept(status: StatusCode, headers: &HeaderMap, directives: &Directives) -> bool {
    let is_said = ["max-age", "public", "private"].into_iter().any(|it| directives.has(it));
    match status.as_u16() {
        ..200 | 206 | 304 => false,
        200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 => true,
        _ => is_said || headers.contains_key(EXPIRES),
    }
}

fn is_within_limits(headers: &HeaderMap) -> bool {
    let bytes: usize = headers.iter().map(|(name, it)| name.as_str().len() + it.len()).sum();
    headers.len() <= FIELDS_MAX && bytes <= FIELDS_BYTES_MAX
}

fn time_us(time_us: u64) -> i64 {
    i64::try_from(time_us).unwrap_or(i64::MAX)
}

fn duration_us(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn seconds_us(seconds: u64) -> i64 {
    time_us(seconds).saturating_mul(SECOND_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT.
    const NOW: u64 = 784_111_777_000_000;
    const DATED: &str = "date: Sun, 06 Nov 1994 08:49:37 GMT";

    fn headers(lines: &[&str]) -> HeaderMap {
        let parts = lines.iter().map(|it| it.split_once(": ").unwrap());
        parts.map(|(name, it)| (name.parse::<HeaderName>().unwrap(), it.parse().unwrap())).collect()
    }

    fn answer(status: u16, lines: &[&str], seconds: u64) -> TimedAnswer {
        let (status, now) = (StatusCode::from_u16(status).unwrap(), NOW + seconds * 1_000_000);
        let (headers, body) = (headers(lines), Bytes::from_static(b"body"));
        TimedAnswer { asked_at_us: now, answered_at_us: now, status, headers, body }
    }

    fn kept(lines: &[&str]) -> CachedUrl {
        let mut url = CachedUrl::default();
        assert_eq!(url.take(&HeaderMap::new(), answer(200, lines, 0)), Taken::Kept);
        url
    }

    /// Checks the number of seconds for which an answer with these fields is still fresh, `seconds`
    /// after it was received.
    #[track_caller]
    fn check_fresh(lines: &[&str], ttl: Ttl, seconds: u64, expected: u64) {
        let left = kept(lines).fresh_for(ttl, NOW + seconds * 1_000_000);
        assert_eq!(left, Duration::from_secs(expected), "{lines:?} {ttl:?}");
    }

    /// Checks the conditions of a plan. `use` stands for a plan that uses the cached answer.
    #[track_caller]
    fn check_plan(url: &CachedUrl, request: &[&str], ttl: Ttl, expected: &[&str]) {
        match url.plan(&headers(request), ttl, NOW + SECOND_US.unsigned_abs()) {
            Plan::Use(_) => assert_eq!(["use"], expected),
            Plan::Ask(conditions) => assert_eq!(conditions, headers(expected)),
        }
    }

    const FIVE: Ttl = Ttl::AtMost(Duration::from_secs(5));
    const EXACTLY_FIVE: Ttl = Ttl::Exactly(Duration::from_secs(5));
    const TAGGED: [&str; 2] = ["cache-control: max-age=0", "etag: \"a\""];

    #[test]
    fn max_age_goes_before_expires_and_the_ttl_is_a_cap_or_the_default() {
        let expires = "expires: Sun, 06 Nov 1994 08:49:40 GMT";
        let max_age = "cache-control: max-age=9";
        check_fresh(&[DATED, expires], Ttl::Server, 0, 3);
        check_fresh(&[DATED, expires, max_age, "age: 2"], Ttl::Server, 1, 6);
        check_fresh(&[expires, "cache-control: s-maxage=9"], FIVE, 0, 3);
        check_fresh(&[max_age], FIVE, 1, 4);
        check_fresh(&["cache-control: max-age=2"], FIVE, 1, 1);
        check_fresh(&["expires: 0"], FIVE, 0, 0);
        check_fresh(&[], FIVE, 1, 4);
        check_fresh(&["age: 9"], FIVE, 1, 4);
        check_fresh(&[], Ttl::Server, 0, 0);
        check_fresh(&["cache-control: max-age=9"], EXACTLY_FIVE, 1, 4);
        check_fresh(&["cache-control: max-age=1"], EXACTLY_FIVE, 1, 4);
        check_fresh(&["cache-control: no-cache"], EXACTLY_FIVE, 0, 0);
    }

    #[test]
    fn an_age_counts_the_time_of_the_request_and_what_date_says() {
        let fields = ["cache-control: max-age=9", DATED, "age: 1"];
        let asked_at_us = NOW + 2_000_000;
        let slow = TimedAnswer { asked_at_us, ..answer(200, &fields, 4) };
        let mut url = CachedUrl::default();
        assert_eq!(url.take(&HeaderMap::new(), slow), Taken::Kept);
        assert_eq!(url.fresh_for(Ttl::Server, NOW + 5_000_000), Duration::from_secs(4));
        assert_eq!(url.fresh_for(Ttl::Server, NOW), Duration::ZERO, "the clock went back");
    }

    #[test]
    fn a_stale_answer_is_asked_for_by_tag_and_time() {
        let changed = "last-modified: Sun, 06 Nov 1994 08:49:37 GMT";
        let asked = ["if-none-match: \"a\"", "if-modified-since: Sun, 06 Nov 1994 08:49:37 GMT"];
        let url = kept(&["cache-control: no-cache", "etag: \"a\"", changed]);
        check_plan(&url, &[], EXACTLY_FIVE, &asked);
        check_plan(&kept(&["last-modified: never"]), &[], Ttl::Server, &[]);
        check_plan(&kept(&[]), &[], FIVE, &["use"]);
        check_plan(&CachedUrl::default(), &[], FIVE, &[]);
    }

    #[test]
    fn a_request_may_want_a_fresher_answer() {
        let url = kept(&["etag: \"a\"", "cache-control: max-age=9"]);
        let asked = ["if-none-match: \"a\""];
        check_plan(&url, &["cache-control: max-age=1, min-fresh=8"], Ttl::Server, &["use"]);
        for wish in ["no-cache", "max-age=0", "min-fresh=9"] {
            check_plan(&url, &[&format!("cache-control: {wish}")], Ttl::Server, &asked);
        }
    }

    #[test]
    fn an_answer_fits_requests_with_the_same_fields_that_vary_names() {
        let mut url = CachedUrl::default();
        let varied = answer(200, &["vary: A, B", "cache-control: max-age=9"], 0);
        assert_eq!(url.take(&headers(&["a: 1", "c: 1"]), varied), Taken::Kept);
        check_plan(&url, &["a: 1", "c: 2"], Ttl::Server, &["use"]);
        for other in [&["a: 2"][..], &["a: 1", "a: 1"], &["a: 1", "b: 1"], &[]] {
            check_plan(&url, other, Ttl::Server, &[]);
            assert_eq!(url.stale(&headers(other), Ttl::Server, NOW), None);
        }
    }

    #[test]
    fn what_may_not_be_kept_ends_what_was_kept() {
        let long = format!("a: {}", "a".repeat(FIELDS_BYTES_MAX));
        let of_200 = ["cache-control: no-store, max-age=9", "vary: *", &long];
        let of_200 = of_200.map(|it| answer(200, &[it], 0));
        let many = answer(200, &["a: b"; FIELDS_MAX + 1], 0);
        let others = [206, 302, 403].map(|it| answer(it, &[], 0));
        for once in of_200.into_iter().chain([many]).chain(others) {
            let mut url = kept(&[]);
            assert_eq!(url.take(&HeaderMap::new(), once.clone()), Taken::Once(once));
            assert_eq!(url.answer(), None);
        }
        let request = headers(&["cache-control: no-store"]);
        assert!(matches!(kept(&[]).take(&request, answer(200, &[], 0)), Taken::Once(_)));
        let said = answer(403, &["cache-control: max-age=9", "connection: x", "x: 1"], 0);
        let mut url = kept(&[]);
        assert_eq!(url.take(&HeaderMap::new(), said), Taken::Kept);
        assert_eq!(url.answer().unwrap().headers, headers(&["cache-control: max-age=9"]));
    }

    #[test]
    fn a_304_updates_fields_and_age_but_not_what_describes_the_body() {
        let mut url =
            kept(&[&TAGGED[..], &[DATED, "age: 7", "x: 1", "content-type: a/b"]].concat());
        let fields = ["etag: W/\"a\"", "cache-control: max-age=9", "y: 2", "content-type: c/d"];
        assert_eq!(url.take(&HeaderMap::new(), answer(304, &fields, 3)), Taken::Confirmed);
        let merged = [&fields[..3], &["x: 1", "content-type: a/b"]].concat();
        let expected = TimedAnswer { status: StatusCode::OK, ..answer(200, &merged, 3) };
        assert_eq!(url.answer(), Some(&expected));
        assert_eq!(url.fresh_for(Ttl::Server, NOW + 3_000_000), Duration::from_secs(9));
        let ended = answer(304, &["cache-control: no-store"], 3);
        assert!(matches!(url.take(&HeaderMap::new(), ended), Taken::Once(it) if it.body == "body"));
        assert_eq!(url.answer(), None);
    }

    #[test]
    fn a_304_for_another_answer_is_unmatched() {
        let changed = "last-modified: Sun, 06 Nov 1994 08:49:37 GMT";
        let other = "last-modified: Sun, 06 Nov 1994 08:49:38 GMT";
        for (before, fields) in [(TAGGED[1], "etag: \"b\""), (changed, other)] {
            let mut url = kept(&[before]);
            assert_eq!(url.take(&HeaderMap::new(), answer(304, &[fields], 0)), Taken::Unmatched);
            check_plan(&url, &[], FIVE, &[]);
        }
        let nothing = CachedUrl::default().take(&HeaderMap::new(), answer(304, &[], 0));
        assert_eq!(nothing, Taken::Unmatched);
    }

    #[test]
    fn a_failure_for_now_leaves_what_is_kept() {
        for status in [408, 425, 429, 500, 503] {
            let (mut url, failed) = (kept(&[]), answer(status, &["cache-control: max-age=9"], 0));
            assert_eq!(url.take(&HeaderMap::new(), failed.clone()), Taken::Failed(failed));
            assert!(url.answer().is_some());
        }
    }

    #[test]
    fn a_stale_answer_may_be_shown_unless_the_server_forbids_it() {
        let age = |said: &str, ttl: Ttl| {
            let url = kept(&[&format!("cache-control: {said}")]);
            let stale = url.stale(&HeaderMap::new(), ttl, NOW + 3_000_000);
            stale.map(|it| it.age.as_secs())
        };
        for allowed in ["max-age=1", "max-age=1, stale-if-error=2", "max-age=9, must-revalidate"] {
            assert_eq!(age(allowed, FIVE), Some(3), "{allowed}");
        }
        let least = ["no-cache", "max-age=3, must-revalidate", "max-age=1, stale-if-error=1"];
        for forbidden in least {
            assert_eq!(age(forbidden, FIVE), None, "{forbidden}");
        }
        assert_eq!(age("must-revalidate", FIVE), Some(3));
        assert_eq!(age("must-revalidate", Ttl::Server), None);
    }
}
