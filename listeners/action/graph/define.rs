//! Adds an action to the graph: finds the actions that it waits for, and fails actions that wait
//! for each other in a cycle.

use std::collections::BTreeSet;
use std::sync::Arc;

use pumphouse::Element;
use pumphouse::limits::ActionLimits;
use pumphouse::schema::json;
use pumphouse::wire::SignedDuration;

use super::super::super::condition::Condition;
use super::super::parameters;
use super::super::variables::{list_reference, names};
use super::super::words::{Action, ActionError, Dialect, METADATA, OnError, References};
use super::{DecisionState, Graph, Id, NeedKind, Node, NodeState, Output, Parts};
use super::{micros, source_name};

/// A defined action, with its parameters parsed and its limits applied.
#[derive(Clone, Debug)]
pub struct ActionDefinition {
    /// The action without its parameters.
    pub action: Action,
    /// The parameters.
    pub parameters: Parameters,
    /// The rules by which texts of the parameters are references.
    pub references: parameters::Parameters,
    /// The names that the parameters refer to.
    pub refers_to: BTreeSet<String>,
    /// The names in texts such as `$$name`, which stand for `$name` if the name is known.
    pub escaped: BTreeSet<String>,
    /// The condition under which the action runs. None if it always runs.
    pub condition: Option<Condition>,
    /// The names that the condition and the list refer to.
    pub decides_by: BTreeSet<String>,
    /// The name that the list refers to. None if the list is written as JSON, or if the action has
    /// no list.
    pub list_name: Option<String>,
    /// The name of the action whose partial results this one takes. None if this action takes none.
    pub source: Option<String>,
    /// The group of the action: the `item_id` in its parameters, or else the called listener. If
    /// actions are batched, the actions of one group run one after another.
    pub group: String,
    /// How long an attempt may take, in microseconds.
    pub timeout_us: u64,
    /// How many times a failed attempt may be repeated.
    pub retry: u32,
    /// The pause before the first retry, in microseconds.
    pub retry_delay_us: u64,
    /// An error in the action itself, such as a timeout above the limit.
    wrong: Option<ActionError>,
}

/// The parameters of an action.
#[derive(Clone, Debug)]
pub enum Parameters {
    /// JSON. An empty object if there are none.
    Json(serde_json::Value),
    /// Elements, as the children of this element.
    Elements(Element),
}

impl ActionDefinition {
    fn of(mut action: Action, limits: &ActionLimits) -> ActionDefinition {
        let mut wrong = Vec::new();
        let parameters = match (action.parameters.take(), action.elements.take()) {
            (None, None) => Parameters::Json(serde_json::Value::Object(serde_json::Map::new())),
            (None, Some(it)) => Parameters::Elements(it.parameters),
            (Some(text), elements) => {
                if elements.is_some() {
                    wrong.push("parameters are JSON or elements, and not both".to_owned());
                }
                let read = json::read(&text);
                wrong.extend(read.as_ref().err().map(|it| format!("parameters: {it}")));
                Parameters::Json(read.unwrap_or_default())
            }
        };
        let timeout = action.timeout.map(|it| u64::try_from(it.as_micros()).unwrap_or(0));
        let most = micros(limits.timeout_max);
        if timeout.is_some_and(|it| it == 0 || it > most) {
            let text = format!("timeout is more than 0 s and at the most {} s", most / 1_000_000);
            wrong.push(text);
        }
        let retry_max = u32::try_from(limits.retry_max).unwrap_or(u32::MAX);
        if action.retry.is_some_and(|it| it > retry_max) {
            wrong.push(format!("retry is {retry_max} at the most"));
        }
        let in_micros = |it: SignedDuration| u64::try_from(it.as_micros()).unwrap_or(0);
        let retry_delay = action.retry_delay.map(in_micros);
        let (condition, decides_by, list_name) = decision(&action, &mut wrong);
        let source = source(&action, &parameters, &mut wrong);
        let references = parameters::Parameters::of(&action, source.as_ref());
        let mut names = parameters.names(&references);
        if let Some(each) = &action.for_each {
            names.references.remove(&each.var);
        }
        let wrong = (!wrong.is_empty())
            .then(|| ActionError { code: "definition".to_owned(), message: wrong.join("; ") });
        let again = u32::from(action.on_error == Some(OnError::Retry));
        ActionDefinition {
            group: group(&action, &parameters),
            timeout_us: timeout.unwrap_or_else(|| match action.untimed {
                Some(true) => most,
                _ => micros(limits.timeout),
            }),
            retry: action.retry.unwrap_or(0).max(again).min(retry_max),
            retry_delay_us: retry_delay.unwrap_or_else(|| micros(limits.retry_delay)),
            action,
            parameters,
            references,
            refers_to: names.references,
            escaped: names.escaped,
            condition,
            decides_by,
            list_name,
            source,
            wrong,
        }
    }

    /// Finds the error in the definition of the action. Returns its code and its message.
    /// `has_source` says whether the action has the source of partial results that it names, if it
    /// names one.
    fn find_error(&self, has_source: bool) -> Option<(&str, String)> {
        if let Some(why) = &self.wrong {
            return Some((&why.code, why.message.clone()));
        }
        let name = self.source.as_ref().filter(|_| !has_source)?;
        let text = format!("stream takes the partial results of an action, and {name} is a feed");
        Some(("definition", text))
    }

    /// The part of the action that refers to a name, in words.
    pub(super) fn decided_by(&self, name: &str) -> &'static str {
        match self.list_name.as_deref() == Some(name) {
            true => "the list of its foreach",
            false => "its condition",
        }
    }

    /// Whether the action needs a decision, since it has a condition or a list.
    fn is_decided(&self) -> bool {
        self.condition.is_some() || self.action.for_each.is_some()
    }

    /// How the action's failure affects the actions that depend on it.
    pub(super) fn on_error(&self) -> OnError {
        self.action.on_error.unwrap_or_default()
    }

    /// Whether the model wrote the action as a tool call. The tool calls of a turn run side by
    /// side.
    pub(super) fn is_tool_use(&self) -> bool {
        self.action.dialect.is_some_and(|it| it != Dialect::Tags)
    }

    /// The called name up to its first dot. If the action names a listener, this is the listener's
    /// name.
    pub fn target(&self) -> &str {
        target(&self.action.name)
    }
}

/// Returns the condition of an action, the names that the decision about the action depends on, and
/// the name that its list refers to.
fn decision(
    action: &Action,
    wrong: &mut Vec<String>,
) -> (Option<Condition>, BTreeSet<String>, Option<String>) {
    let mut decides_by = BTreeSet::new();
    let condition = action.when.as_ref().and_then(|when| {
        let read = Condition::parse(&when.condition);
        read.map_err(|it| wrong.push(format!("condition: {it}"))).ok()
    });
    let used = condition.iter().flat_map(Condition::references).map(|it| it.name().to_owned());
    decides_by.extend(used.filter(|it| it != METADATA));
    let mut list_name = None;
    if let Some(each) = &action.for_each {
        decides_by.remove(&each.var);
        let list = list_reference(&each.list);
        list_name = list.as_deref().and_then(|it| names(it).first().map(|it| (*it).to_owned()));
        decides_by.extend(list_name.clone());
    }
    (condition, decides_by, list_name)
}

impl Parameters {
    fn names(&self, references: &parameters::Parameters) -> parameters::Names {
        match self {
            Parameters::Json(it) => references.names(it),
            Parameters::Elements(it) => references.names_within(it.view()),
        }
    }
}

/// The name of the action whose partial results an action takes. Where `depends_on` doesn't name
/// it, the parameters do, in every form of action.
fn source(action: &Action, parameters: &Parameters, wrong: &mut Vec<String>) -> Option<String> {
    if action.stream != Some(true) {
        return None;
    }
    let all = Action { references: Some(References::All), ..action.clone() };
    let names = parameters.names(&parameters::Parameters::of(&all, None));
    source_name(action, &names.references, wrong)
}

fn target(name: &str) -> &str {
    name.split_once('.').map_or(name, |(listener, _)| listener)
}

fn group(action: &Action, parameters: &Parameters) -> String {
    let item = match parameters {
        Parameters::Json(it) => it.get("item_id").map(|it| match it {
            serde_json::Value::String(it) => it.clone(),
            it => it.to_string(),
        }),
        Parameters::Elements(elements) => {
            let item = elements.view().elements().find(|it| it.local() == "item_id");
            item.map(|it| it.text().into_owned())
        }
    };
    item.map_or_else(|| format!("to {}", target(&action.name)), |it| format!("item {it}"))
}

impl Graph {
    /// Adds an action to the graph. Fails the action if its definition is wrong.
    pub(super) fn define(
        &mut self,
        agent: &Arc<str>,
        id: Id,
        action: Action,
        out: &mut Vec<Output>,
    ) {
        let scope = self.scopes.entry(agent.clone()).or_default();
        let turn = scope.turns.entry(action.turn.unwrap_or(0)).or_default();
        let limits = turn.policy.limits;
        let definition = Arc::new(ActionDefinition::of(action, &limits));
        let action = &definition.action;
        if action.turn.is_none() {
            turn.end();
        }
        turn.count += usize::from(action.turn.is_some());
        let most = limits.in_turn_max;
        let is_over_full = turn.count > most;
        let is_again = turn.ids.contains(&action.id);
        if action.turn.is_some() {
            turn.ids.insert(action.id.clone());
        }
        let (mut needs, bound) = self.needs(agent, &definition);
        let (decision_needs, seen) = self.decision_needs(agent, &definition);
        needs.extend(decision_needs);
        let is_decided = definition.is_decided();
        let decision = if is_decided { DecisionState::Open } else { DecisionState::Made };
        let node = Node {
            agent: agent.clone(),
            definition: definition.clone(),
            needs,
            bound,
            seen,
            decision,
            items: None,
            failed_item: None,
            values: Arc::default(),
            attempts: 0,
            state: NodeState::Waiting,
            limited_until: None,
            progress: None,
            answer: None,
            parts: Parts::default(),
            is_recorded: false,
            // The log tells as soon as it has the call.
            is_idempotent: true,
        };
        let has_source = definition.source.is_none() || node.needs.iter().any(|it| it.is_streamed);
        self.nodes.insert(id, node);
        self.live.insert(id);
        if is_again {
            let text = format!("this turn has an action {} already; it alone counts", action.id);
            self.fail(id, "duplicate-id", text, out);
        } else if is_over_full {
            let text = format!("more than in_turn_max, {most}, actions in one turn");
            self.fail(id, "limit", text, out);
        } else if let Some((code, text)) = definition.find_error(has_source) {
            self.fail(id, code, text, out);
        }
        if is_again || is_over_full {
            // No action can refer to this one, since it isn't registered under its name.
            self.nodes.remove(&id);
            return;
        }
        self.name(agent, id, &definition);
        self.meet(agent, id);
        self.break_circle(id, out);
    }

    /// Fails all actions of a dependency cycle that this action closes.
    fn break_circle(&mut self, id: Id, out: &mut Vec<Output>) {
        while self.live.contains(&id) {
            let mut path = vec![(id, String::new())];
            if !self.comes_back(id, &mut path, &mut BTreeSet::new()) {
                return;
            }
            let why: Vec<String> = path.iter().skip(1).map(|(_, why)| why.clone()).collect();
            let why = why.join("; ");
            path.pop();
            path.sort_unstable();
            for (id, _) in path {
                self.fail(id, "cycle", format!("it waits for itself: {why}"), out);
            }
        }
    }

    /// Whether the path of waiting actions leads back to its beginning. If so, `path` holds the
    /// cycle.
    fn comes_back(&self, id: Id, path: &mut Vec<(Id, String)>, seen: &mut BTreeSet<Id>) -> bool {
        for (next, why) in self.waits_for(id) {
            let is_back = path.first().is_some_and(|(it, _)| *it == next);
            if !is_back && !seen.insert(next) {
                continue;
            }
            path.push((next, why));
            if is_back || self.comes_back(next, path, seen) {
                return true;
            }
            path.pop();
        }
        false
    }

    /// The unfinished actions that this one waits for, and why.
    fn waits_for(&self, id: Id) -> Vec<(Id, String)> {
        let waiting = self.nodes.get(&id).filter(|it| matches!(it.state, NodeState::Waiting));
        let Some(node) = waiting else { return Vec::new() };
        let own = &node.definition.action.id;
        let needs = node.needs.iter().filter_map(|need| {
            let on = need.on.filter(|on| self.live.contains(on))?;
            let how = if need.kind == NeedKind::Named { "depends on" } else { "refers to" };
            Some((on, format!("{own} {how} {}", need.id)))
        });
        let barrier = self.barrier(id).filter_map(|node| {
            let other = &self.nodes.get(&node)?.definition.action.id;
            Some((node, format!("{own} comes after {other}, which is sync")))
        });
        needs.chain(barrier).collect()
    }

    /// The unfinished actions of an agent, each with its state in a word.
    pub fn open<'a>(&'a self, agent: &'a str) -> impl Iterator<Item = (&'a Action, &'static str)> {
        let nodes = self.live.iter().filter_map(|it| self.nodes.get(it));
        let nodes = nodes.filter(move |it| *it.agent == *agent);
        nodes.map(|it| (&it.definition.action, it.state.word()))
    }
}
