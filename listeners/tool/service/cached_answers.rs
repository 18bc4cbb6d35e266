//! The answers of a service, cached for each agent and URL. All threads of an agent share these
//! answers. Concurrent callers with the same agent and URL take turns. So a later caller can use
//! the answer that an earlier caller got.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pumphouse::clock;
use pumphouse::wire::Timestamp;
use reqwest::header::HeaderMap;
use reqwest::{StatusCode, Url};

use super::super::web::cache::{Answered, CachedUrl, Plan, Taken, Ttl, is_failure_for_now};
use super::super::web::{Answer, Reason, Refusal, Web};
use super::content::Content;
use pumphouse::listeners::feed::words::FeedContent;

/// The maximum number of cached answers. The least recently used answer is evicted first.
const URLS_MAX: usize = 1_000;
/// The maximum number of bytes of all cached texts of a service. Beyond it, answers are evicted in
/// the same order.
const BYTES_MAX: usize = 32 << 20;
/// The time for which a service isn't asked again for a URL that failed, in microseconds.
const FAILURE_US: u64 = 5_000_000;
/// A year, in microseconds. Content that may still be shown after a year counts as content that may
/// be shown at any time.
const LONG_US: u64 = 365 * 86_400 * 1_000_000;

/// A request to a service.
pub(super) struct Request<'a> {
    pub(super) web: &'a Web,
    pub(super) url: &'a Url,
    pub(super) headers: &'a HeaderMap,
    /// Headers that are sent only to the service itself, and not to other hosts after a redirect.
    pub(super) private: &'a HeaderMap,
}

impl Request<'_> {
    /// Sends the request with further headers.
    async fn send(&self, more: HeaderMap) -> Result<Answer, Refusal> {
        let mut headers = self.headers.clone();
        headers.extend(more);
        self.web.get_with(self.url.as_str(), &headers, self.private).await
    }
}

/// The cached answers of a service.
#[derive(Default)]
pub(super) struct Kept(Mutex<Urls>);

#[derive(Default)]
struct Urls {
    all: BTreeMap<(String, String), KeptUrl>,
    /// The number of calls of `Kept::of` so far. Each URL stores this number at its last use, so
    /// that the least recently used URL can be found.
    asked: u64,
}

struct KeptUrl {
    asked: u64,
    /// How many bytes the cached text has.
    bytes: usize,
    answer: Arc<tokio::sync::Mutex<KeptAnswer>>,
}

/// The cached answer of one URL for one agent. `cached` has the rules of the answer, and
/// `content` its body as text.
#[derive(Default)]
struct KeptAnswer {
    cached: CachedUrl,
    content: Option<Content>,
    failure: Option<Failure>,
}

/// The reason why a URL couldn't be read, and the time until which the service isn't asked again.
struct Failure {
    until_us: u64,
    refusal: Refusal,
}

impl Kept {
    /// Returns the content of a URL for an agent. The content is fresh for at most `ttl` seconds.
    /// The service's headers can shorten this time. If the content's front matter has a `ttl`, only
    /// this `ttl` counts.
    pub(super) async fn get(
        &self,
        agent: &str,
        request: &Request<'_>,
        ttl: f64,
    ) -> Result<FeedContent, Refusal> {
        let answer = self.of(agent, request.url.as_str());
        let mut answer = answer.lock().await;
        let got = answer.get(request, ttl).await;
        let bytes = answer.content.as_ref().map_or(0, |it| it.text.len());
        drop(answer);
        self.note_bytes(agent, request.url.as_str(), bytes);
        got
    }

    /// Notes how many bytes a cached text has, and evicts answers if all have too many.
    fn note_bytes(&self, agent: &str, url: &str, bytes: usize) {
        let mut urls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = urls.all.get_mut(&(agent.to_owned(), url.to_owned())) {
            kept.bytes = bytes;
        }
        while urls.all.values().map(|it| it.bytes).sum::<usize>() > BYTES_MAX {
            urls.evict();
        }
    }

    fn of(&self, agent: &str, url: &str) -> Arc<tokio::sync::Mutex<KeptAnswer>> {
        let mut urls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        urls.asked += 1;
        let asked = urls.asked;
        let kept = urls.all.entry((agent.to_owned(), url.to_owned())).or_insert_with(|| KeptUrl {
            asked,
            bytes: 0,
            answer: Arc::default(),
        });
        kept.asked = asked;
        let answer = kept.answer.clone();
        if urls.all.len() > URLS_MAX {
            urls.evict();
        }
        answer
    }
}

impl Urls {
    /// Drops the least recently used answer.
    fn evict(&mut self) {
        let oldest = self.all.iter().min_by_key(|(_, it)| it.asked);
        if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
            self.all.remove(&oldest);
        }
    }
}

impl KeptAnswer {
    async fn get(&mut self, request: &Request<'_>, ttl: f64) -> Result<FeedContent, Refusal> {
        let asked_at_us = clock::wall_us();
        if self.failure.as_ref().is_some_and(|it| asked_at_us < it.until_us) {
            return self.without_answer(ttl, asked_at_us);
        }
        let mut conditions = match self.cached.plan(self.ttl(ttl), asked_at_us) {
            Plan::Use => return self.shown(ttl, asked_at_us),
            Plan::Ask(conditions) => conditions,
        };
        loop {
            let is_conditional = !conditions.is_empty();
            let answer = request.send(std::mem::take(&mut conditions)).await;
            let now_us = clock::wall_us();
            let taken = answer.and_then(|it| self.take(&it, (asked_at_us, now_us)));
            match taken {
                Ok(Some(once)) => return Ok(once),
                Ok(None) if self.content.is_some() => return self.shown(ttl, now_us),
                // The service confirmed an answer other than the cached one, so the next request
                // has no conditions.
                Ok(None) if is_conditional => {}
                Ok(None) => {
                    let text = "the answer has the status 304, which nobody asked for";
                    return Err(Refusal::new(Reason::Broken, text));
                }
                Err(refusal) => {
                    self.fail(refusal, now_us);
                    return self.without_answer(ttl, now_us);
                }
            }
        }
    }

    /// Takes an answer. If the answer may be shown only once, returns its content. Otherwise
    /// returns `None`: then `self.content` has the cached content. If a 304 confirmed another
    /// answer, nothing is cached, and `self.content` is `None`, too.
    fn take(
        &mut self,
        answer: &Answer,
        (asked_at_us, answered_at_us): (u64, u64),
    ) -> Result<Option<FeedContent>, Refusal> {
        let content = match answer.status {
            StatusCode::NOT_MODIFIED => self.content.take(),
            _ => Some(Content::of(answer)?),
        };
        self.failure = None;
        let Answer { status, headers, .. } = answer;
        let answered = Answered { asked_at_us, answered_at_us, status: *status, headers };
        match self.cached.take(&answered) {
            Taken::Kept | Taken::Confirmed => self.content = content,
            Taken::Unmatched => self.content = None,
            Taken::Once | Taken::Failed => {
                self.content = None;
                return Ok(content.map(|it| FeedContent {
                    is_for_one_turn: Some(true),
                    as_of: it.refreshed,
                    text: it.text,
                    ..FeedContent::default()
                }));
            }
        }
        Ok(None)
    }

    /// Records that the URL couldn't be read. If the status says that a later request won't help,
    /// the cached answer is dropped.
    fn fail(&mut self, refusal: Refusal, now_us: u64) {
        let status = refusal.status.and_then(|it| StatusCode::from_u16(it).ok());
        if status.is_some_and(|it| !is_failure_for_now(it)) {
            *self = KeptAnswer::default();
        }
        self.failure = Some(Failure { until_us: now_us.saturating_add(FAILURE_US), refusal });
    }

    /// Returns the cached content, if it may be shown although the service failed. Otherwise
    /// returns the failure.
    fn without_answer(&self, ttl: f64, now_us: u64) -> Result<FeedContent, Refusal> {
        let Some(Failure { until_us, refusal }) = &self.failure else {
            return Err(Refusal::new(Reason::Broken, "the service gave no answer"));
        };
        let stale = self.cached.stale(self.ttl(ttl), now_us);
        let (Some(age), Some(content)) = (stale, &self.content) else {
            return Err(refusal.clone());
        };
        let age_us = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
        let as_of = content.refreshed.or_else(|| stamp(now_us.saturating_sub(age_us)));
        Ok(FeedContent {
            fresh_for: seconds(until_us.saturating_sub(now_us)),
            as_of,
            is_stale: Some(true),
            is_for_one_turn: None,
            text: content.text.clone(),
        })
    }

    /// Returns the cached content. The caller makes sure that the content is fresh, or was just
    /// received or confirmed.
    fn shown(&self, ttl: f64, now_us: u64) -> Result<FeedContent, Refusal> {
        let Some(content) = &self.content else {
            return Err(Refusal::new(Reason::Broken, "the service gave no answer"));
        };
        let later = self.cached.stale(self.ttl(ttl), now_us.saturating_add(LONG_US));
        Ok(FeedContent {
            fresh_for: self.cached.fresh_for(self.ttl(ttl), now_us).as_secs_f64(),
            as_of: content.refreshed,
            is_stale: None,
            is_for_one_turn: later.is_none().then_some(true),
            text: content.text.clone(),
        })
    }

    /// Returns the content's time to live, apart from the lifetime in the service's headers. A
    /// `ttl` in the content's front matter replaces the parameter `ttl`.
    fn ttl(&self, ttl: f64) -> Ttl {
        let duration = |it| Duration::try_from_secs_f64(it).unwrap_or(Duration::MAX);
        match self.content.as_ref().and_then(|it| it.ttl) {
            Some(own) => Ttl::Exactly(duration(own)),
            None => Ttl::AtMost(duration(ttl)),
        }
    }
}

fn stamp(us: u64) -> Option<Timestamp> {
    Timestamp::from_microsecond(i64::try_from(us).ok()?).ok()
}

fn seconds(us: u64) -> f64 {
    Duration::from_micros(us).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_of_all_answers_have_a_bound_and_the_oldest_go() {
        let kept = Kept::default();
        for url in ["a", "b", "c"] {
            drop(kept.of("agent", url));
            kept.note_bytes("agent", url, BYTES_MAX / 2);
        }
        let left = || {
            let urls = kept.0.lock().unwrap();
            urls.all.keys().map(|(_, url)| url.clone()).collect::<Vec<_>>()
        };
        assert_eq!(left(), ["b", "c"]);
        kept.note_bytes("agent", "c", BYTES_MAX + 1);
        assert_eq!(left(), [""; 0]);
    }
}
