//! One model made of several: if one fails, the next is asked.

mod backend;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use self::backend::{Backend, Routed};
use crate::clock;
use crate::limits::RouterLimits;
use crate::model::attachments::takes;
use crate::model::error::{Error, Kind};
use crate::model::interface::{Boxed, Model, Reply};
use crate::model::load::Asking;
use crate::model::model_identity::Details;
use crate::model::price::Price;
use crate::model::prompt::{Prompt, Tool};
use crate::model::retry_pause;
use crate::secret::Secret;

/// One model made of several. One of them answers each turn: if a model fails before its reply
/// begins, the next is asked.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use std::sync::Arc;
/// use pumphouse::model::{Kind, Model, Piece, Policy, Prompt, Router, Script, Scripted};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let down = Scripted::replies([Script::text("").fails(0, Kind::Unreachable)]);
/// let up = Scripted::replies(["<response>Hello.</response>"]);
/// let best = Router::new("best", Policy::Failover)
///     .model("large", Arc::new(down))
///     .model("small", Arc::new(up));
/// let mut reply = best.turn(Prompt::new("You greet people.")).await?;
/// let Some(Piece::Tried(error)) = reply.next().await? else { panic!("the first was tried") };
/// assert_eq!((error.model.as_deref(), error.kind), (Some("large"), Kind::Unreachable));
/// let Some(Piece::Answering(it)) = reply.next().await? else { panic!("the second answers") };
/// assert_eq!(it.name, "small");
/// # Ok(()) }
/// ```
///
/// - A turn proceeds in rounds, and a round asks each model at most once. [`RouterLimits`] sets how
///   many further rounds there are, and the pauses between them.
/// - A later round asks only those models whose failure may pass. A model that refused the request,
///   for example for its key or its name, isn't asked again in the turn.
/// - A model that failed is asked after the others until its pause is over.
/// - A model that asked to wait isn't asked before its wait is over. If all models that may be
///   asked again asked to wait, the shortest of their waits decides. If this wait is longer than
///   the router's own pause, the turn fails at once, with the wait in [`Error::retry_after`].
///   Otherwise, the router pauses and asks again.
#[derive(Debug)]
pub struct Router {
    name: String,
    policy: Policy,
    backends: Vec<Arc<Backend>>,
    limits: RouterLimits,
    /// The number of turns so far. With `round_robin`, it decides which model a turn asks first.
    turns: AtomicUsize,
}

/// The order in which a router asks its models.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use pumphouse::model::Policy;
///
/// assert_eq!("round_robin".parse(), Ok(Policy::RoundRobin));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// In the order of the list.
    #[default]
    Failover,
    /// Each turn begins with the next model of the list.
    RoundRobin,
    /// The models with the fewest replies under way first.
    LeastLoaded,
}

impl Policy {
    /// Every policy.
    pub const ALL: [Policy; 3] = [Policy::Failover, Policy::RoundRobin, Policy::LeastLoaded];

    /// The policy's name in manifests.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Policy::Failover => "failover",
            Policy::RoundRobin => "round_robin",
            Policy::LeastLoaded => "least_loaded",
        }
    }
}

impl FromStr for Policy {
    type Err = NoPolicy;

    fn from_str(name: &str) -> Result<Policy, NoPolicy> {
        Policy::ALL.into_iter().find(|policy| policy.as_str() == name).ok_or(NoPolicy)
    }
}

/// The error of a name that no policy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoPolicy;

impl fmt::Display for NoPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Policy::ALL.map(Policy::as_str).join(", ");
        write!(f, "no policy has this name; there are {names}")
    }
}

impl std::error::Error for NoPolicy {}

impl Router {
    /// A router without models yet. Its name is for traces and errors.
    #[must_use]
    pub fn new(name: impl Into<String>, policy: Policy) -> Router {
        Router {
            name: name.into(),
            policy,
            backends: Vec::new(),
            limits: RouterLimits::default(),
            turns: AtomicUsize::new(0),
        }
    }

    /// Adds a model to the end of the list.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>, model: Arc<dyn Model>) -> Router {
        self.backends.push(Arc::new(Backend::new(name.into(), model)));
        self
    }

    /// Sets how often models are asked again, and after which pauses.
    #[must_use]
    pub fn limits(self, limits: RouterLimits) -> Router {
        Router { limits, ..self }
    }

    /// Begins a turn. After the first round, there are at most `retries_max` further ones.
    async fn begin(&self, prompt: Prompt, retries_max: usize) -> Result<Box<dyn Reply>, Error> {
        let (mut tried, mut refused) = (Vec::<Error>::new(), BTreeSet::new());
        let first = self.turns.fetch_add(1, Ordering::Relaxed);
        for round in 0..=retries_max {
            let mut asked = refused.clone();
            while let Some(at) = self.next(first, &asked) {
                asked.insert(at);
                let backend = &self.backends[at];
                match backend.ask(prompt.clone()).await {
                    Ok(reply) => {
                        self.fails_over(&tried, backend);
                        return Ok(Box::new(Routed::new(
                            reply,
                            backend.clone(),
                            tried,
                            self.limits.clone(),
                        )));
                    }
                    Err(error) => {
                        backend.fails(&error, &self.limits);
                        let (router, model, kind) = (&*self.name, &*backend.name, error.kind);
                        let kind = kind.as_str();
                        tracing::warn!(
                            router,
                            model,
                            kind,
                            status = error.status,
                            "a model failed"
                        );
                        if !error.retry {
                            refused.insert(at);
                        }
                        tried.push(error);
                    }
                }
            }
            if refused.len() == self.backends.len() {
                break;
            }
            let rest = self.rest(&refused);
            let pause =
                retry_pause::pause(round, self.limits.retry_time_min, self.limits.retry_time_max);
            let is_last = round == retries_max;
            match rest {
                Some(rest) if rest > pause || is_last && tried.is_empty() => {
                    return Err(self.resting(rest, tried));
                }
                _ if !is_last => {
                    retry_pause::sleep(pause.max(rest.unwrap_or_default())).await;
                }
                _ => {}
            }
        }
        // If any failure may pass, the last such failure is reported, and otherwise the last
        // failure.
        let at = tried.iter().rposition(|error| error.retry).or(tried.len().checked_sub(1));
        let Some(at) = at else {
            let text = format!("the router {} has no models", self.name);
            return Err(Error { retry: false, ..Error::new(Kind::Refused, text) });
        };
        let last = tried.remove(at);
        Err(Error { tried, ..last })
    }

    /// The next model to ask, of those that `asked` doesn't hold.
    fn next(&self, first: usize, asked: &BTreeSet<usize>) -> Option<usize> {
        let now_us = clock::now_us();
        let may_be_asked = |at: &usize| !self.backends[*at].is_out(now_us);
        let mut all: Vec<usize> = (0..self.backends.len()).filter(may_be_asked).collect();
        let well = all.iter().filter(|at| !self.backends[**at].is_failing(now_us)).count();
        all.sort_by_key(|at| self.backends[*at].is_failing(now_us));
        match self.policy {
            Policy::Failover => {}
            Policy::RoundRobin if well > 0 => all[..well].rotate_left(first % well),
            Policy::RoundRobin => {}
            Policy::LeastLoaded => {
                all[..well].sort_by_key(|at| self.backends[*at].under_way());
            }
        }
        // A model without room under its own limits is asked only if no model has room.
        all.retain(|at| !asked.contains(at));
        let has_room = |at: &&usize| self.backends[**at].model.has_room();
        all.iter().find(has_room).or(all.first()).copied()
    }

    /// Returns how long it takes until one of the models that may be asked again accepts requests.
    /// None if one of them accepts requests now.
    fn rest(&self, refused: &BTreeSet<usize>) -> Option<Duration> {
        let now_us = clock::now_us();
        let others = (0..self.backends.len()).filter(|at| !refused.contains(at));
        let rests: Option<Vec<u64>> = others.map(|at| self.backends[at].rest_us(now_us)).collect();
        rests?.into_iter().min().map(Duration::from_micros)
    }

    /// The error of a turn in which no model may be asked again for a while.
    fn resting(&self, rest: Duration, mut tried: Vec<Error>) -> Error {
        let last = tried.iter().rposition(|it| it.kind == Kind::RateLimited);
        let error = last.map(|at| tried.remove(at)).unwrap_or_else(|| {
            let text = format!("every model of {} wants no request for a while", self.name);
            Error::new(Kind::RateLimited, text)
        });
        Error { retry_after: Some(rest), retry: true, tried, ..error }
    }

    fn fails_over(&self, tried: &[Error], to: &Backend) {
        let failed: BTreeSet<&str> = tried.iter().filter_map(|it| it.model.as_deref()).collect();
        let others = self.backends.iter().filter(|it| it.name != to.name);
        for from in others.filter(|it| failed.contains(&*it.name)) {
            from.fails_over();
            let (router, from, to) = (&*self.name, &*from.name, &*to.name);
            tracing::warn!(router, from, to, "another model answers the turn");
        }
    }

    fn all<T>(&self, of: impl Fn(&dyn Model) -> T) -> impl Iterator<Item = T> {
        self.backends.iter().map(move |it| of(&*it.model))
    }
}

impl Model for Router {
    fn turn(&self, prompt: Prompt) -> Boxed<'_, Box<dyn Reply>> {
        Box::pin(self.begin(prompt, self.limits.retries_max))
    }

    /// Starts a turn with a single round.
    fn turn_once(&self, prompt: Prompt) -> Boxed<'_, Box<dyn Reply>> {
        Box::pin(self.begin(prompt, 0))
    }

    /// The smallest known window of the router's models. A prompt that fits this window fits each
    /// model whose window is known.
    fn window(&self) -> Option<u32> {
        self.all(|it| it.window()).flatten().min()
    }

    /// The highest count of those of the router's models that have a tokenizer.
    fn tokens(&self, text: &str) -> Option<u64> {
        self.all(|it| it.tokens(text)).flatten().max()
    }

    fn max_tokens(&self) -> Option<u32> {
        self.all(|it| it.max_tokens()).flatten().max()
    }

    /// The media types that all of the router's models take, so that any of them can be asked.
    fn attachments(&self) -> Vec<String> {
        let all: Vec<Vec<String>> = self.all(|it| it.attachments()).collect();
        let mut common: Vec<String> = all.concat();
        common.retain(|range| all.iter().all(|it| takes(it, range)));
        common.sort_unstable();
        common.dedup();
        common
    }

    /// Whether all of the router's models are held to formats, so that any of them can be asked.
    /// A tool that one of the models can't take isn't offered to any: another may answer next.
    fn left_out(&self, tools: &[Tool]) -> Vec<(String, String)> {
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        for backend in &self.backends {
            for (tool, why) in backend.model.left_out(tools) {
                all.entry(tool).or_insert_with(|| format!("{why}, for {}", backend.name));
            }
        }
        all.into_iter().collect()
    }

    fn is_structured(&self) -> bool {
        self.all(|it| it.is_structured()).all(|it| it)
    }

    fn secrets(&self) -> Vec<Secret> {
        self.all(|it| it.secrets()).flatten().collect()
    }

    /// The highest known price of the router's models. Budgets reserve by this price. A turn's cost
    /// is computed by the price of the model that answered.
    fn price(&self) -> Option<Price> {
        self.all(|it| it.price()).flatten().reduce(Price::max)
    }

    /// The reason of one of the router's models.
    fn refuses_temperature(&self) -> Option<&'static str> {
        self.all(|it| it.refuses_temperature()).flatten().next()
    }

    fn has_room(&self) -> bool {
        self.all(|it| it.has_room()).any(|it| it)
    }

    fn asking(&self) -> Vec<Asking> {
        self.backends.iter().map(|it| it.asking()).collect()
    }

    fn describe(&self) -> String {
        let names: Vec<&str> = self.backends.iter().map(|it| &*it.name).collect();
        format!("{} of {}", self.policy.as_str(), names.join(", "))
    }

    fn details(&self) -> Details {
        Details::new("router", self.describe())
    }
}

#[cfg(test)]
mod tests;
