//! Limits a model's replies at once, and its requests and tokens in a minute.

mod bucket;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use self::bucket::Bucket;
use crate::clock;
use crate::model::error::Error;
use crate::model::interface::{Boxed, Model, Reply};
use crate::model::load::{Asking, Load};
use crate::model::model_identity::Details;
use crate::model::piece::Piece;
use crate::model::price::Price;
use crate::model::prompt::{Prompt, Tool};
use crate::model::retry_pause;
use crate::secret::Secret;

/// The fewest tokens that a request counts as until the provider has counted its tokens.
const TOKENS_MIN: u64 = 100;

/// A model with limits. A turn beyond the limits waits until they allow it. Agents with waiting
/// turns are served round robin, so that an agent with many threads doesn't hold up the others.
///
/// ```
/// # extern crate pumphouse_model as pumphouse;
/// use std::sync::Arc;
/// use pumphouse::model::{Bounded, Model, Scripted};
///
/// let model = Arc::new(Scripted::replies(["<response>42</response>"]));
/// let model = Bounded::new("fixed", model).at_once(8).tokens_per_minute(100_000);
/// assert!(model.describe().starts_with("scripted"));
/// ```
#[derive(Debug)]
pub struct Bounded {
    name: String,
    model: Arc<dyn Model>,
    gate: Arc<Gate>,
}

impl Bounded {
    /// Wraps a model, without a limit yet. The name is for traces.
    #[must_use]
    pub fn new(name: impl Into<String>, model: Arc<dyn Model>) -> Bounded {
        Bounded { name: name.into(), model, gate: Arc::default() }
    }

    /// Limits the replies under way at once. 0 counts as 1.
    #[must_use]
    pub fn at_once(self, most: usize) -> Bounded {
        self.gate.state().at_once = Some(most.max(1));
        self
    }

    /// Limits the requests in a minute. A token bucket starts with `most` requests, and refills
    /// evenly by `most` in a minute. 0 counts as 1.
    #[must_use]
    pub fn requests_per_minute(self, most: u64) -> Bounded {
        self.gate.state().requests = Some(Bucket::full(most, clock::now_us()));
        self
    }

    /// Limits the tokens in a minute, of prompts and replies together, by a token bucket as for
    /// requests. 0 counts as 1. Until the provider has counted, a request counts as the estimated
    /// tokens of its prompt, but as at least 100.
    #[must_use]
    pub fn tokens_per_minute(self, most: u64) -> Bounded {
        self.gate.state().tokens = Some(Bucket::full(most, clock::now_us()));
        self
    }

    /// Waits until one more reply may begin, and counts the reply as under way.
    async fn permit(&self, prompt: &Prompt) -> Permit {
        let tokens = match self.gate.counts_tokens() {
            true => self.model.prompt_tokens(prompt).max(TOKENS_MIN),
            false => 0,
        };
        // `_waiting` is declared before the channel, and so dropped after it. If the turn is
        // cancelled, its channel is closed by then, and `admit` sees that the turn is gone.
        let _waiting = AdmitOnDrop(&self.gate);
        let (sender, mut permit) = oneshot::channel();
        let agent = prompt.agent.clone();
        let is_first = self.gate.state().join(Ticket { agent, tokens, sender });
        self.gate.admit();
        if let Ok(permit) = permit.try_recv() {
            return permit;
        }
        self.gate.state().held_up += 1;
        if is_first {
            tracing::info!(
                model = &*self.name,
                "a turn waits: the limits of its model are reached"
            );
        }
        loop {
            let changed = self.gate.changed.notified();
            let wait = self.gate.admit();
            tokio::select! {
                biased;
                // The channel can't close before a permit comes: this turn keeps the gate alive.
                Ok(permit) = &mut permit => return permit,
                () = retry_pause::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
                () = changed => {}
            }
        }
    }
}

impl Model for Bounded {
    fn turn(&self, prompt: Prompt) -> Boxed<'_, Box<dyn Reply>> {
        Box::pin(async move {
            let permit = self.permit(&prompt).await;
            WithPermit::of(self.model.turn(prompt).await, permit)
        })
    }

    fn turn_once(&self, prompt: Prompt) -> Boxed<'_, Box<dyn Reply>> {
        Box::pin(async move {
            let permit = self.permit(&prompt).await;
            WithPermit::of(self.model.turn_once(prompt).await, permit)
        })
    }

    fn window(&self) -> Option<u32> {
        self.model.window()
    }

    fn tokens(&self, text: &str) -> Option<u64> {
        self.model.tokens(text)
    }

    fn max_tokens(&self) -> Option<u32> {
        self.model.max_tokens()
    }

    fn attachments(&self) -> Vec<String> {
        self.model.attachments()
    }

    fn is_structured(&self) -> bool {
        self.model.is_structured()
    }

    fn left_out(&self, tools: &[Tool]) -> Vec<(String, String)> {
        self.model.left_out(tools)
    }

    fn price(&self) -> Option<Price> {
        self.model.price()
    }

    fn refuses_temperature(&self) -> Option<&'static str> {
        self.model.refuses_temperature()
    }

    fn has_room(&self) -> bool {
        self.gate.state().wait(0, clock::now_us()).is_none() && self.model.has_room()
    }

    fn load(&self) -> Option<Load> {
        let state = self.gate.state();
        Some(Load {
            at_once: state.at_once.map(|it| it as u64),
            under_way: state.under_way as u64,
            waiting: state.waiting() as u64,
            held_up: state.held_up,
        })
    }

    fn asking(&self) -> Vec<Asking> {
        self.model.asking()
    }

    fn secrets(&self) -> Vec<Secret> {
        self.model.secrets()
    }

    fn is_repeatable(&self) -> bool {
        self.model.is_repeatable()
    }

    fn describe(&self) -> String {
        self.model.describe()
    }

    fn details(&self) -> Details {
        self.model.details()
    }
}

/// Decides which turns may ask a model now, and which wait.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<State>,
    /// Notified at the end of each reply, so that waiting turns compute their waits again.
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    at_once: Option<usize>,
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    under_way: usize,
    held_up: u64,
    /// The waiting turns by agent, each agent's in the order of their arrival.
    tickets: BTreeMap<Option<Arc<str>>, VecDeque<Ticket>>,
    /// The agents with waiting turns, in the order in which they are served next.
    order: VecDeque<Option<Arc<str>>>,
}

/// A turn that waits.
#[derive(Debug)]
struct Ticket {
    agent: Option<Arc<str>>,
    /// The tokens that the turn's request counts as.
    tokens: u64,
    sender: oneshot::Sender<Permit>,
}

/// How long a turn has to wait. None if the turn waits for the end of a reply, whose time is
/// unknown.
type Wait = Option<Duration>;

impl State {
    /// Adds a turn to the queue. Returns true if no turn has had to wait so far.
    fn join(&mut self, ticket: Ticket) -> bool {
        let of_agent = self.tickets.entry(ticket.agent.clone()).or_default();
        if of_agent.is_empty() {
            self.order.push_back(ticket.agent.clone());
        }
        of_agent.push_back(ticket);
        self.held_up == 0
    }

    /// Returns how long a request of `tokens` tokens has to wait. The outer None means that the
    /// request may begin.
    fn wait(&self, tokens: u64, now_us: u64) -> Option<Wait> {
        if self.at_once.is_some_and(|most| self.under_way >= most) {
            return Some(None);
        }
        let requests = self.requests.as_ref().and_then(|it| it.wait(1, now_us));
        let tokens = self.tokens.as_ref().and_then(|it| it.wait(tokens, now_us));
        requests.max(tokens).map(Some)
    }

    /// Takes the next turn out of the queue, and counts it as under way.
    ///
    /// # Errors
    /// How long the next turn has to wait. None if that isn't known, or if no turn waits.
    fn next(&mut self, now_us: u64) -> Result<Ticket, Wait> {
        while let Some(agent) = self.order.front() {
            let agent = agent.clone();
            let Some(of_agent) = self.tickets.get_mut(&agent) else {
                self.order.pop_front();
                continue;
            };
            of_agent.retain(|it| !it.sender.is_closed());
            let Some(tokens) = of_agent.front().map(|it| it.tokens) else {
                self.tickets.remove(&agent);
                self.order.pop_front();
                continue;
            };
            if let Some(wait) = self.wait(tokens, now_us) {
                return Err(wait);
            }
            self.order.pop_front();
            let Some(of_agent) = self.tickets.get_mut(&agent) else { continue };
            let ticket = of_agent.pop_front();
            match of_agent.is_empty() {
                true => drop(self.tickets.remove(&agent)),
                false => self.order.push_back(agent),
            }
            let Some(ticket) = ticket else { continue };
            self.under_way += 1;
            self.requests.iter_mut().for_each(|it| it.take(1, now_us));
            self.tokens.iter_mut().for_each(|it| it.take(ticket.tokens, now_us));
            return Ok(ticket);
        }
        Err(None)
    }

    fn waiting(&self) -> usize {
        self.tickets.values().flatten().filter(|it| !it.sender.is_closed()).count()
    }
}

impl Gate {
    /// Locks `state`. Poisoning is ignored, because no code that holds the lock panics halfway.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn counts_tokens(&self) -> bool {
        self.state().tokens.is_some()
    }

    /// Admits all turns that may begin now. Returns how long the next turn has to wait. None if
    /// that isn't known, or if no turn waits.
    fn admit(self: &Arc<Gate>) -> Wait {
        loop {
            let next = self.state().next(clock::now_us());
            match next {
                Ok(Ticket { tokens, sender, .. }) => {
                    // If the turn is gone, `send` returns the permit, which is dropped here.
                    drop(sender.send(Permit { gate: self.clone(), tokens }));
                }
                Err(wait) => return wait,
            }
        }
    }
}

/// A guard that admits the next turns when it is dropped, at the end of a turn's wait.
struct AdmitOnDrop<'a>(&'a Arc<Gate>);

impl Drop for AdmitOnDrop<'_> {
    fn drop(&mut self) {
        self.0.admit();
    }
}

/// Permits one reply to be under way. Dropping the permit lets another reply begin.
#[derive(Debug)]
struct Permit {
    gate: Arc<Gate>,
    /// The tokens that were taken from the bucket for this reply so far.
    tokens: u64,
}

impl Permit {
    /// Corrects the tokens of the reply to the provider's count, if that is higher. A lower count
    /// gives nothing back to the bucket.
    fn used(&mut self, tokens: u64) {
        let more = tokens.saturating_sub(self.tokens);
        self.tokens += more;
        let mut state = self.gate.state();
        state.tokens.iter_mut().for_each(|it| it.take(more, clock::now_us()));
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.gate.state().under_way -= 1;
        self.gate.admit();
        self.gate.changed.notify_waiters();
    }
}

/// A reply that holds a permit until it is dropped.
#[derive(Debug)]
struct WithPermit {
    reply: Box<dyn Reply>,
    permit: Permit,
}

impl WithPermit {
    fn of(asked: Result<Box<dyn Reply>, Error>, permit: Permit) -> Result<Box<dyn Reply>, Error> {
        Ok(Box::new(WithPermit { reply: asked?, permit }))
    }
}

impl Reply for WithPermit {
    fn next(&mut self) -> Boxed<'_, Option<Piece>> {
        Box::pin(async {
            let piece = self.reply.next().await?;
            if let Some(Piece::Usage(usage)) = &piece {
                self.permit.used(usage.input.saturating_add(usage.output));
            }
            Ok(piece)
        })
    }
}

#[cfg(test)]
mod tests;
