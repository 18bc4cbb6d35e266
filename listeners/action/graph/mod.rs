//! The actions of a thread as a state machine: [`Graph::step`] takes an input, such as a defined
//! action or an answer, and returns outputs, such as a call to make. The graph knows no log, no
//! schemas and no clock, so equal inputs give equal outputs.

mod define;
mod retry_pause;
mod names;
mod record;
mod decide;
mod stream;
mod wait;
mod start;
mod io;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pumphouse::Element;
use pumphouse::wire::Timestamp;

pub use self::decide::{Decision, LIST_FAILED, Seen, SeenNames};
use self::decide::{DecisionState, Items};
pub use self::define::{ActionDefinition, Parameters};
use self::io::micros;
pub use self::io::{
    ActionOutcome, CallOutcome, CancelRequest, FeedContents, Input, Meaning, Output, Part, Policy,
    Time, Value, Values,
};
use self::stream::{Parts, source_name};
use super::super::words::agent::Dispatch;
use super::words::{ActionError, Mode, OnError, Status};

/// Identifies an action: the number of its entry in the thread.
pub type Id = u64;

/// The actions of a thread: the unfinished ones, and finished ones whose results can still be
/// referred to.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    nodes: BTreeMap<Id, Node>,
    /// The unfinished actions.
    live: BTreeSet<Id>,
    scopes: BTreeMap<Arc<str>, Scope>,
    /// The requested wake-up times that are still ahead, per agent. The flag says whether the time
    /// is awaited, see [`Output::Wake`].
    armed: BTreeMap<(Arc<str>, bool), BTreeSet<Time>>,
    /// The time of the last input, in microseconds since the epoch.
    now: u64,
}

/// An agent's turns, and the names of its actions and feeds.
#[derive(Clone, Debug, Default)]
struct Scope {
    turns: BTreeMap<u64, Box<Turn>>,
    names: BTreeMap<String, Id>,
    keys: BTreeMap<String, Id>,
    /// Maps each called listener to the first action that called it, and to the second one if there
    /// is one.
    targets: BTreeMap<String, (Id, Option<Id>)>,
    /// Maps each turn to the contents of the agent's feeds in the turn's prompt.
    shown: BTreeMap<u64, Arc<FeedContents>>,
    /// Whether the agent has begun a turn since its last final answer or stop.
    is_at_work: bool,
    at_once: Option<usize>,
}

#[derive(Clone, Debug, Default)]
struct Turn {
    policy: Policy,
    is_over: bool,
    ids: BTreeSet<String>,
    count: usize,
    /// The latest time at which the turn's batch starts, in microseconds since the epoch. None if
    /// no action waits in the batch.
    batch_due: Option<u64>,
}

#[derive(Clone, Debug)]
struct Node {
    agent: Arc<str>,
    definition: Arc<ActionDefinition>,
    needs: Vec<Needed>,
    /// The meanings of the references in the action's parameters.
    bound: BTreeMap<String, Bound>,
    /// The meanings of the names that the decision about the action depends on.
    seen: BTreeMap<String, Bound>,
    decision: DecisionState,
    /// The items with which the action is called. None if it is called once.
    items: Option<Items>,
    /// The place of the item whose call failed, in words.
    failed_item: Option<String>,
    values: Arc<Values>,
    attempts: u32,
    state: NodeState,
    /// The end of the rate limit that the called agent waits for, in microseconds since the epoch.
    limited_until: Option<u64>,
    /// How far the called agent has come.
    progress: Option<String>,
    /// The payload that answered the last attempt. None if there was none.
    answer: Option<Element>,
    /// The partial results so far.
    parts: Parts,
    /// Whether the log has the action's result.
    is_recorded: bool,
    /// Whether the action's last call may be made twice with the effect of once. If so, it may be
    /// tried again even if nobody knows what became of it.
    is_idempotent: bool,
}

/// The meaning of a name that an action refers to.
#[derive(Clone, Debug)]
enum Bound {
    /// The result of the action with this id.
    Action(Id),
    /// The value that the name had when the action was defined.
    Value(Value),
}

/// A dependency of an action: another action that must be done first.
#[derive(Clone, Debug)]
struct Needed {
    id: String,
    on: Option<Id>,
    kind: NeedKind,
    /// Whether the waiting action takes the partial results of this dependency. The dependency then
    /// needn't be done.
    is_streamed: bool,
}

/// Why an action waits for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NeedKind {
    /// `depends_on` names the other action.
    Named,
    /// The parameters refer to the other action.
    Reference,
    /// The condition or the list refers to the other action.
    Decision,
}

#[derive(Clone, Debug)]
enum NodeState {
    /// The action waits for its dependencies, for its decision, for earlier `sync` actions of its
    /// turn, or for the end of the turn.
    Waiting,
    /// The action waits until its batch starts.
    Batched,
    /// The action waits until fewer actions of its agent or of its `parallel` block run, or until
    /// an earlier action of its group is done.
    Queued,
    /// The action waits for an answer until this time, in microseconds since the epoch.
    Running(u64),
    /// The action's last attempt failed. The next attempt may start at this time.
    Pausing(u64),
    Done(Arc<ActionOutcome>),
}

impl NodeState {
    fn word(&self) -> &'static str {
        match self {
            NodeState::Waiting => "waiting",
            NodeState::Batched => "batched",
            NodeState::Queued => "queued",
            NodeState::Running(_) => "running",
            NodeState::Pausing(_) => "pausing",
            NodeState::Done(_) => "done",
        }
    }
}

impl Graph {
    /// Begins a turn of an agent, with the policy of the turn's actions. Ends the agent's earlier
    /// turns.
    pub fn begins(&mut self, agent: &Arc<str>, turn: u64, policy: Policy) {
        let scope = self.scopes.entry(agent.clone()).or_default();
        scope.is_at_work = true;
        scope.at_once = Some(policy.limits.at_once.max(1));
        for (_, earlier) in scope.turns.range_mut(..turn) {
            earlier.end();
        }
        scope.turns.entry(turn).or_default().policy = policy;
        self.tidy();
    }

    /// Applies an input that comes at the time `now`, in microseconds since the epoch. Returns the
    /// outputs.
    pub fn step(&mut self, now: u64, input: Input) -> Vec<Output> {
        let mut out = Vec::new();
        self.now = now;
        match input {
            Input::Defined(agent, id, action) => self.define(&agent, id, *action, &mut out),
            Input::TurnOver(agent, turn) => {
                self.scopes.entry(agent).or_default().turns.entry(turn).or_default().end();
            }
            Input::Replied(id, attempt, reply) => self.replied(now, id, attempt, reply, &mut out),
            Input::Part(id, attempt, part) => self.part(id, attempt, part),
            Input::Decided(id, decision) => self.decided(id, decision, &mut out),
            Input::Due(time) => self.came(now, time),
            Input::Cancel(which) => self.cancel(&which, &mut out),
        }
        self.settled(now, &mut out);
        out
    }

    /// Advances every action as far as possible, and requests the next wake-up times.
    fn settled(&mut self, now: u64, out: &mut Vec<Output>) {
        while self.advance_all(now, out) || self.release(now) || self.start(now, out) {}
        self.tidy();
        self.arm(out);
    }

    /// The part of the graph that a fork keeps: the results, but no unfinished actions.
    #[must_use]
    pub fn forked(mut self) -> Graph {
        for id in std::mem::take(&mut self.live) {
            self.nodes.remove(&id);
        }
        self.armed.clear();
        for scope in self.scopes.values_mut() {
            scope.turns.clear();
            let is_there = |id: &Id| self.nodes.contains_key(id);
            scope.names.retain(|_, id| is_there(id));
            scope.keys.retain(|_, id| is_there(id));
            scope.targets.retain(|_, (first, second)| second.is_some() || is_there(first));
        }
        self
    }

    /// Whether an action is unfinished.
    #[must_use]
    pub fn is_live(&self, id: Id) -> bool {
        self.live.contains(&id)
    }

    fn replied(
        &mut self,
        now: u64,
        id: Id,
        attempt: u32,
        reply: CallOutcome,
        out: &mut Vec<Output>,
    ) {
        let Some(node) = self.nodes.get(&id) else { return };
        if self.is_of_earlier_item(id, attempt) {
            return;
        }
        let is_late = attempt < node.attempts;
        match node.state {
            NodeState::Running(_) | NodeState::Pausing(_) | NodeState::Queued => {}
            NodeState::Waiting | NodeState::Batched | NodeState::Done(_) => return,
        }
        let done = |status, answer, error| ActionOutcome { status, answer, error, because: None };
        // A success counts even if it answers an earlier attempt. A failure counts only for the
        // attempt that runs now.
        let (again, done) = match reply {
            CallOutcome::Ok(answer) => (false, done(Status::Ok, answer, None)),
            _ if is_late || !matches!(node.state, NodeState::Running(_)) => return,
            CallOutcome::Failed { error, answer, again } => {
                (again, done(Status::Failed, answer, Some(error)))
            }
            CallOutcome::Unknown { error, answer } => {
                (node.is_idempotent, done(Status::Unknown, answer, Some(error)))
            }
            CallOutcome::CutOff(error) => {
                let status = if node.is_idempotent { Status::Failed } else { Status::Unknown };
                (node.is_idempotent, done(status, None, Some(error)))
            }
            CallOutcome::Cancelled { error, answer } => {
                (false, done(Status::Cancelled, answer, Some(error)))
            }
        };
        if is_late {
            out.push(Output::Abandon { action: id, attempt: node.attempts });
        }
        self.attempted(now, id, done, again, out);
    }

    /// Ends an attempt. The action then pauses before a retry, continues with its next item, or is
    /// done.
    fn attempted(
        &mut self,
        now: u64,
        id: Id,
        done: ActionOutcome,
        again: bool,
        out: &mut Vec<Output>,
    ) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        node.answer.clone_from(&done.answer);
        let attempts = node.attempts - node.items.as_ref().map_or(0, |it| it.before);
        if again && attempts <= node.definition.retry {
            let pause = node.definition.pause_us(attempts);
            node.state = NodeState::Pausing(now.saturating_add(pause));
        } else if let Some(done) = self.item_over(id, done, out) {
            self.finish(id, done, out);
        }
    }

    fn finish(&mut self, id: Id, done: ActionOutcome, out: &mut Vec<Output>) {
        let Some(node) = self.nodes.get_mut(&id).filter(|_| self.live.remove(&id)) else { return };
        let done = Arc::new(done);
        node.state = NodeState::Done(done.clone());
        let (agent, definition) = (node.agent.clone(), node.definition.clone());
        let (values, attempts) = (std::mem::take(&mut node.values), node.attempts);
        let item = node.failed_item.take();
        let answers = self.answers(id).filter(|_| done.status == Status::Ok);
        out.push(Output::Result {
            action: id,
            agent,
            definition,
            values,
            attempts,
            answers,
            item,
            done,
        });
    }

    fn fail(&mut self, id: Id, code: &str, message: String, out: &mut Vec<Output>) {
        let error = Some(ActionError { code: code.to_owned(), message });
        let done = ActionOutcome { status: Status::Failed, answer: None, error, because: None };
        self.finish(id, done, out);
    }

    fn cancel(&mut self, which: &CancelRequest, out: &mut Vec<Output>) {
        let is_meant = |node: &Node| {
            which.agent.as_ref().is_none_or(|agent| node.agent == *agent)
                && which.turn.is_none_or(|turn| node.definition.action.turn == Some(turn))
                && which.id.as_ref().is_none_or(|id| node.definition.action.id == *id)
        };
        let meant = self.live.iter().filter(|it| self.nodes.get(it).is_some_and(is_meant));
        let meant: Vec<Id> = meant.copied().collect();
        let reason = which.reason.clone().unwrap_or_else(|| "it was taken back".to_owned());
        for id in &meant {
            let Some(node) = self.nodes.get(id) else { continue };
            if matches!(node.state, NodeState::Running(_)) {
                out.push(Output::Abandon { action: *id, attempt: node.attempts });
            }
            let error = Some(ActionError { code: "cancelled".to_owned(), message: reason.clone() });
            let done =
                ActionOutcome { status: Status::Cancelled, answer: None, error, because: None };
            self.finish(*id, done, out);
        }
        out.push(Output::Cancelled(meant.len() as u64));
    }

    /// Advances each unfinished action by one step. Returns whether any action changed.
    fn advance_all(&mut self, now: u64, out: &mut Vec<Output>) -> bool {
        let live: Vec<Id> = self.live.iter().copied().collect();
        let mut changed = false;
        for id in live {
            changed |= self.advance(now, id, out);
        }
        changed
    }

    fn advance(&mut self, now: u64, id: Id, out: &mut Vec<Output>) -> bool {
        let is_cut_off = self.nodes.get(&id).is_some_and(|it| self.is_cut_off(it));
        let Some(node) = self.nodes.get_mut(&id) else { return false };
        match node.state {
            _ if is_cut_off => node.state = NodeState::Waiting,
            NodeState::Waiting => return self.look(now, id, out),
            NodeState::Running(until) if until <= now => {
                let seconds = node.definition.timeout_us as f64 / 1e6;
                let mut message = format!("no answer came in {seconds} s");
                if let Some(until) = node.limited_until {
                    let until = i64::try_from(until).ok();
                    let until = until.and_then(|it| Timestamp::from_microsecond(it).ok());
                    let until = until.unwrap_or_default();
                    message += &format!("; the rate limit of its model lasts until {until}");
                }
                message += &node.progress.take().map(|it| format!("; {it}")).unwrap_or_default();
                let again = node.is_idempotent;
                let status = if again { Status::TimedOut } else { Status::Unknown };
                if !again {
                    message += "; whether it had its effect is unknown";
                }
                let error = Some(ActionError { code: "timed-out".to_owned(), message });
                let done = ActionOutcome { status, answer: None, error, because: None };
                out.push(Output::Abandon { action: id, attempt: node.attempts });
                self.attempted(now, id, done, again, out);
            }
            NodeState::Pausing(until) if until <= now => node.state = NodeState::Queued,
            _ => return false,
        }
        true
    }

    /// Queues the actions of batches that are full, that have waited long enough, or whose turn is
    /// over.
    fn release(&mut self, now: u64) -> bool {
        let mut batches: BTreeMap<(Arc<str>, u64), Vec<Id>> = BTreeMap::new();
        for id in &self.live {
            if let Some(node) =
                self.nodes.get(id).filter(|it| matches!(it.state, NodeState::Batched))
            {
                batches.entry((node.agent.clone(), node.turn())).or_default().push(*id);
            }
        }
        let turns = self.scopes.iter_mut().flat_map(|(agent, scope)| {
            scope.turns.iter_mut().map(move |(turn, it)| ((agent.clone(), *turn), it))
        });
        for (turn, state) in turns {
            state.batch_due = state.batch_due.filter(|_| batches.contains_key(&turn));
        }
        let mut changed = false;
        for ((agent, turn), ids) in batches {
            let scope = self.scopes.get_mut(&agent);
            let Some(turn) = scope.and_then(|it| it.turns.get_mut(&turn)) else { continue };
            let is_due = turn.batch_due.is_none_or(|it| it <= now);
            if !is_due && !turn.is_over && ids.len() < turn.policy.limits.batch {
                continue;
            }
            turn.batch_due = None;
            for id in ids {
                if let Some(node) = self.nodes.get_mut(&id) {
                    node.state = NodeState::Queued;
                }
            }
            changed = true;
        }
        changed
    }

    /// Removes this wake-up time, and all times that have passed.
    fn came(&mut self, now: u64, time: Time) {
        let is_ahead = |it: &Time| *it != time && it.at > now;
        self.armed.values_mut().for_each(|it| it.retain(is_ahead));
        self.armed.retain(|_, it| !it.is_empty());
    }

    /// Requests the next wake-up time of each agent. The agents' times are separate, so that a time
    /// of one agent never causes entries of another agent.
    fn arm(&mut self, out: &mut Vec<Output>) {
        let mut times: BTreeMap<(Arc<str>, bool), Time> = BTreeMap::new();
        let mut add = |agent: &Arc<str>, is_awaited, time| {
            let first = times.entry((agent.clone(), is_awaited)).or_insert(time);
            *first = time.min(*first);
        };
        for (of, node) in self.live.iter().filter_map(|it| Some((*it, self.nodes.get(it)?))) {
            let is_heard = node.definition.action.mode != Mode::FireAndForget;
            match node.state {
                NodeState::Running(at) => add(&node.agent, is_heard, Time { at, of }),
                NodeState::Pausing(at) => add(&node.agent, true, Time { at, of }),
                NodeState::Batched => {
                    let at = self.turn(node).and_then(|it| it.batch_due);
                    at.into_iter().for_each(|at| add(&node.agent, true, Time { at, of }));
                }
                _ => {}
            }
        }
        for (whose, time) in times {
            let is_awaited = whose.1;
            let armed = self.armed.entry(whose).or_default();
            if armed.first().is_none_or(|it| time.at < it.at) {
                armed.insert(time);
                out.push(Output::Wake { time, is_awaited });
            }
        }
    }

    /// Drops turns that are over and have no unfinished actions. Each agent's newest turn stays.
    fn tidy(&mut self) {
        let live = self.live.iter().filter_map(|it| self.nodes.get(it));
        let live: BTreeSet<(Arc<str>, u64)> =
            live.map(|it| (it.agent.clone(), it.turn())).collect();
        for (agent, scope) in &mut self.scopes {
            let newest = scope.turns.keys().next_back().copied().unwrap_or_default();
            let stays = |turn: u64, scope_turn: &Turn| {
                turn == newest || !scope_turn.is_over || live.contains(&(agent.clone(), turn))
            };
            scope.turns.retain(|turn, it| stays(*turn, it));
        }
    }

    fn turn(&self, node: &Node) -> Option<&Turn> {
        self.scopes.get(&node.agent)?.turns.get(&node.turn()).map(|it| &**it)
    }

    fn turn_mut(&mut self, id: Id) -> Option<&mut Turn> {
        let node = self.nodes.get(&id)?;
        self.scopes.get_mut(&node.agent)?.turns.get_mut(&node.turn()).map(|it| &mut **it)
    }
}

impl Turn {
    fn end(&mut self) {
        self.is_over = true;
        self.batch_due = None;
    }
}

impl Node {
    /// The turn that the action belongs to. 0 if the action belongs to no turn.
    fn turn(&self) -> u64 {
        self.definition.action.turn.unwrap_or(0)
    }

    /// The `parallel` block that the action stands in.
    fn block(&self) -> Option<(Arc<str>, u64, u64)> {
        Some((self.agent.clone(), self.turn(), self.definition.action.parallel?))
    }

    /// Whether two actions of one turn stand in the same `parallel` block.
    fn is_beside(&self, other: &Node) -> bool {
        let block = self.definition.action.parallel;
        block.is_some() && block == other.definition.action.parallel
    }

    fn is_queued(&self) -> bool {
        matches!(self.state, NodeState::Queued)
    }
}
