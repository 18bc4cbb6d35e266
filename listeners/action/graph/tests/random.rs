//! Tests the graph with random inputs: every action gets one result, and the same inputs lead to
//! the same outputs.

use proptest::prelude::*;
use pumphouse::limits::ActionLimits;

use super::*;

/// An event of a [`Story`]. The story turns the event's numbers into an input.
#[derive(Clone, Debug)]
enum Happens {
    Define {
        mode: u8,
        on: Vec<u8>,
        refers: Option<u8>,
        retry: u8,
        skip: bool,
        id: u8,
        stream: bool,
    },
    CallOutcome {
        which: u8,
        kind: u8,
    },
    Part {
        which: u8,
        number: u8,
    },
    Time(u8),
    Over,
    CancelRequest(u8),
}

fn happens() -> impl Strategy<Value = Happens> {
    let define = (0..3_u8, prop::collection::vec(0..12_u8, 0..3), prop::option::of(0..12_u8));
    let define = (define, 0..3_u8, any::<bool>(), 0..12_u8, any::<bool>()).prop_map(
        |((mode, on, refers), retry, skip, id, stream)| Happens::Define {
            mode,
            on,
            refers,
            retry,
            skip,
            id,
            stream,
        },
    );
    prop_oneof![
        6 => define,
        8 => (any::<u8>(), 0..6_u8).prop_map(|(which, kind)| Happens::CallOutcome { which, kind }),
        4 => (any::<u8>(), 1..5_u8).prop_map(|(which, number)| Happens::Part { which, number }),
        3 => any::<u8>().prop_map(Happens::Time),
        1 => Just(Happens::Over),
        1 => any::<u8>().prop_map(Happens::CancelRequest),
    ]
}

fn policies() -> impl Strategy<Value = Policy> {
    let dispatch = prop_oneof![
        Just(Dispatch::Immediate),
        Just(Dispatch::Batched),
        Just(Dispatch::AfterResponse)
    ];
    (dispatch, 1..4_usize, 1..6_usize).prop_map(|(dispatch, batch, at_once)| {
        let mut limits = ActionLimits::default();
        (limits.batch, limits.at_once) = (batch, at_once);
        Policy { dispatch, limits }
    })
}

/// A graph that gets random events, with all its inputs, their times and their outputs.
#[derive(Default)]
struct Story {
    graph: Graph,
    inputs: Vec<(u64, Input)>,
    outputs: Vec<Vec<Output>>,
    now: u64,
    due: BTreeSet<Time>,
    /// Calls without an answer.
    open: Vec<(Id, u32)>,
    defined: BTreeMap<Id, Action>,
}

impl Story {
    fn happen(&mut self, input: Input) {
        let outputs = self.graph.step(self.now, input.clone());
        for output in &outputs {
            match output {
                Output::Call { action, attempt, .. } => self.open.push((*action, *attempt)),
                Output::Wake { time, .. } => {
                    assert!(time.at > self.now, "a time that is over is not waited for");
                    self.due.insert(*time);
                }
                _ => {}
            }
        }
        self.inputs.push((self.now, input));
        self.outputs.push(outputs);
    }

    fn play(&mut self, happens: Happens) {
        match happens {
            Happens::Define { mode, mut on, refers, retry, skip, id, stream } => {
                let modes = [Mode::Sync, Mode::Async, Mode::FireAndForget];
                let mut action = plain(&format!("n{id}"), modes[usize::from(mode)]);
                on.truncate(if stream { 1 } else { on.len() });
                action.stream = stream.then_some(true);
                action.depends_on = on.iter().map(|it| format!("n{it}")).collect();
                action.parameters = refers.map(|it| format!("{{\"it\":\"$n{it}\"}}"));
                action.retry = Some(u32::from(retry));
                action.on_error = skip.then_some(OnError::Skip);
                action.name = format!("to-{}", id % 3);
                let place = self.inputs.len() as Id + 1;
                self.defined.insert(place, action.clone());
                self.happen(Input::Defined(AGENT.into(), place, Box::new(action)));
            }
            Happens::CallOutcome { which, kind } if !self.open.is_empty() => {
                let (id, attempt) = self.open.remove(usize::from(which) % self.open.len());
                let error = ActionError { code: "E".to_owned(), message: String::new() };
                let reply = match kind {
                    0 | 1 => CallOutcome::Ok(None),
                    2 => CallOutcome::Failed { error, answer: None, again: true },
                    3 => CallOutcome::Failed { error, answer: None, again: false },
                    4 => CallOutcome::CutOff(error),
                    _ => CallOutcome::Unknown { error, answer: None },
                };
                self.happen(Input::Replied(id, attempt, reply));
            }
            Happens::Part { which, number } if !self.open.is_empty() => {
                let (id, attempt) = self.open[usize::from(which) % self.open.len()];
                // The number of the input makes each partial result different.
                let payload = names::answer(&format!("part{}", self.inputs.len()));
                let part = Part { number: number.into(), payload };
                self.happen(Input::Part(id, attempt, part));
            }
            Happens::CallOutcome { .. } | Happens::Part { .. } => {}
            Happens::Time(by) => self.pass(u64::from(by) * u64::from(by) * 10_000),
            Happens::Over => self.happen(Input::TurnOver(AGENT.into(), 1)),
            Happens::CancelRequest(id) => {
                let id = Some(format!("n{}", id % 12));
                self.happen(Input::Cancel(CancelRequest { id, ..CancelRequest::default() }));
            }
        }
    }

    fn pass(&mut self, by: u64) {
        let until = self.now + by;
        while let Some(time) = self.due.first().copied().filter(|it| it.at <= until) {
            self.due.remove(&time);
            self.now = time.at;
            self.happen(Input::Due(time));
        }
        self.now = until;
    }

    /// Ends the story: no call is answered any more, so all unfinished actions time out.
    fn end(&mut self) {
        self.happen(Input::TurnOver(AGENT.into(), 1));
        for _ in 0..1_000 {
            let Some(first) = self.due.first().copied() else { return };
            self.pass(first.at.saturating_sub(self.now));
        }
        panic!("times without end");
    }

    /// Checks all outputs against the rules.
    fn judge(&self, policy: Policy) {
        let (mut running, mut done) = (BTreeMap::new(), BTreeMap::new());
        for ((_, input), outputs) in self.inputs.iter().zip(&self.outputs) {
            // An attempt ends when it is answered or abandoned.
            if let Input::Replied(id, attempt, _) = input
                && running.get(id) == Some(attempt)
            {
                running.remove(id);
            }
            for output in outputs {
                self.judge_output(output, policy, &mut running, &mut done);
            }
        }
        for id in self.defined.keys() {
            assert!(done.contains_key(id), "each has its result: {id}");
        }
        self.judge_streams();
    }

    /// Checks that a stream is called with each partial result once, in the order of the partial
    /// results.
    fn judge_streams(&self) {
        let mut taken: BTreeMap<Id, BTreeMap<usize, usize>> = BTreeMap::new();
        for output in self.outputs.iter().flatten() {
            let Output::Call { action, item: Some(item), definition, values, .. } = output else {
                continue;
            };
            let source = self.graph.nodes[action].source().unwrap();
            let value = definition.refers_to.iter().find_map(|it| match values.get(it) {
                Some(Value::Result(Some(it))) => it.local().strip_prefix("part")?.parse().ok(),
                _ => None,
            });
            let Some(place) = value else { continue };
            assert!(matches!(&self.inputs[place], (_, Input::Part(id, ..)) if *id == source));
            let before = taken.entry(*action).or_default().insert(*item, place);
            assert!(before.is_none_or(|it| it == place), "another attempt gets the same");
        }
        for items in taken.into_values() {
            let places: Vec<usize> = items.into_values().collect();
            assert!(places.is_sorted_by(|one, next| one < next), "{places:?}");
        }
    }

    fn judge_output(
        &self,
        output: &Output,
        policy: Policy,
        running: &mut BTreeMap<Id, u32>,
        done: &mut BTreeMap<Id, Arc<ActionOutcome>>,
    ) {
        match output {
            Output::Call { action, attempt, item, definition, .. } => {
                let same = |output: &&Output| {
                    matches!(output, Output::Call { action: id, attempt: at, .. }
                        if (id, at) == (action, attempt))
                };
                let times = self.outputs.iter().flatten().filter(same).count();
                assert_eq!(times, 1, "each attempt is made once");
                let of_item = |output: &&Output| {
                    matches!(output, Output::Call { action: id, item: of, .. }
                        if (id, of) == (action, item))
                };
                let tries = self.outputs.iter().flatten().filter(of_item).count();
                let most = definition.retry as usize + 1;
                assert!(tries <= most, "no more often than it says");
                assert!(!done.contains_key(action), "nothing runs that is done");
                running.insert(*action, *attempt);
                assert!(running.len() <= policy.limits.at_once, "no more at once than may be");
                self.judge_order(*action, item.is_some(), done);
            }
            Output::Result { action, done: result, .. } => {
                running.remove(action);
                let before = done.insert(*action, result.clone());
                assert!(before.is_none(), "one result for each");
            }
            Output::Abandon { action, .. } => drop(running.remove(action)),
            Output::Wake { .. } | Output::Cancelled(_) | Output::Decide { .. } => {}
        }
    }

    /// The name that an action's parameters refer to.
    fn refers_to(&self, id: Id) -> Option<&str> {
        let parameters = self.defined[&id].parameters.as_deref()?;
        parameters.strip_prefix("{\"it\":\"$")?.strip_suffix("\"}")
    }

    /// The number of the input that ended the turn.
    fn over(&self) -> Id {
        let over = |it: &(u64, Input)| matches!(it.1, Input::TurnOver(..));
        self.inputs.iter().position(over).map_or(Id::MAX, |it| it as Id)
    }

    /// Checks that an action starts after those that it depends on, and after the `sync` actions
    /// before it.
    fn judge_order(&self, id: Id, is_part: bool, done: &BTreeMap<Id, Arc<ActionOutcome>>) {
        let sources = self.graph.sources(&self.graph.nodes[&id]);
        let source = self.graph.nodes[&id].source().filter(|_| is_part);
        let named = |name: &str| {
            // The first action with the name: later ones with the same name are refused.
            self.defined.iter().find(|(_, it)| it.id == name).map(|(id, _)| *id)
        };
        for on in &self.defined[&id].depends_on {
            let result = named(on).and_then(|it| done.get(&it));
            let skips = named(on).is_some_and(|it| self.defined[&it].on_error.is_some());
            let may = result.is_some_and(|it| it.status == Status::Ok || skips)
                || source.is_some_and(|it| named(on) == Some(it));
            assert!(may, "{id} ran before {on}");
        }
        if let Some(name) = self.refers_to(id)
            && let Meaning::Action(on) = self.graph.meaning(AGENT, name, id, 1)
            // An action that is defined after the end of the turn doesn't belong to the turn.
            && on != id && (on < id || on <= self.over()) && source != Some(on)
        {
            assert!(done.contains_key(&on), "{id} ran before {on}, which it refers to");
        }
        for (other, node) in self.defined.range(..id) {
            let may = node.mode != Mode::Sync || sources.contains(other);
            assert!(may || done.contains_key(other), "{id} overtook {other}");
        }
    }
}

proptest! {
    #[test]
    fn every_action_comes_to_one_end_in_order(
        policy in policies(),
        all in prop::collection::vec(happens(), 1..60),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut story = Story::default();
        story.graph.begins(&AGENT.into(), 1, policy);
        all.into_iter().for_each(|it| story.play(it));
        story.end();
        story.judge(policy);
        // A graph that gets the same inputs gives the same outputs, from any input on.
        let cut = cut.index(story.inputs.len());
        let mut again = Graph::default();
        again.begins(&AGENT.into(), 1, policy);
        for (at, (now, input)) in story.inputs.iter().enumerate() {
            let outputs = again.step(*now, input.clone());
            if at >= cut {
                let (was, is) = (format!("{:?}", story.outputs[at]), format!("{outputs:?}"));
                prop_assert_eq!(was, is);
            }
        }
    }
}
