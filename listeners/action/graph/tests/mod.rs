//! Tests the graph with tables. Each line is an input and the outputs that it leads to.

mod control;
mod names;
mod random;
mod record;
mod stream;
mod unknown;

use std::collections::BTreeMap;

use pumphouse::wire::SignedDuration;

use super::super::words::{Action, Dialect, ForEach, NOT_TAKEN, When};
use super::*;

const AGENT: &str = "ada";

pub(super) fn plain(id: &str, mode: Mode) -> Action {
    Action { id: id.to_owned(), turn: Some(1), mode, name: format!("to-{id}"), ..Action::default() }
}

/// Makes an action from words such as `a async on=b,c retry=2 turn=2`.
fn action(words: &str) -> Action {
    let mut words = words.split(' ');
    let mut action = plain(words.next().unwrap(), Mode::Sync);
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "async" => action.mode = Mode::Async,
            "sync" => action.mode = Mode::Sync,
            "forget" => action.mode = Mode::FireAndForget,
            "tool_use" => action.dialect = Some(Dialect::ToolUse),
            "on" => action.depends_on = value.split(',').map(str::to_owned).collect(),
            "key" => action.output_key = Some(value.to_owned()),
            "retry" => action.retry = value.parse().ok(),
            "timeout" => action.timeout = value.parse().ok().map(SignedDuration::from_secs),
            "skip" => action.on_error = Some(OnError::Skip),
            "again" => action.on_error = Some(OnError::Retry),
            "turn" => action.turn = value.parse().ok(),
            "alone" => action.turn = None,
            "to" => action.name = value.to_owned(),
            "when" => {
                let condition = value.to_owned();
                action.when = Some(When { metadata: None, condition });
            }
            "each" => {
                let list = value.to_owned();
                let var = "it".to_owned();
                action.for_each = Some(ForEach { var, block: 1, max: None, list });
            }
            "stream" => action.stream = Some(true),
            "block" => action.parallel = value.parse().ok(),
            "max" => action.parallel_max = value.parse().ok(),
            "item" => action.parameters = Some(format!("{{\"item_id\":\"{value}\"}}")),
            "with" => {
                let each: Vec<&str> = value.split('+').collect();
                action.parameters = Some(serde_json::json!({ "it": each }).to_string());
            }
            other => panic!("no word {other}"),
        }
    }
    action
}

/// A graph, and a clock that the test moves.
#[derive(Clone, Default)]
struct Play {
    graph: Graph,
    now: u64,
    next: Id,
    names: BTreeMap<Id, String>,
    due: BTreeSet<Time>,
}

impl Play {
    fn name(&self, id: Id) -> &str {
        &self.names[&id]
    }

    fn step(&mut self, input: Input) -> Vec<String> {
        let outputs = self.graph.step(self.now, input);
        outputs.into_iter().map(|it| self.told(it)).collect()
    }

    fn told(&mut self, output: Output) -> String {
        match output {
            Output::Call { action, attempt, values, .. } => {
                let values = values.iter().map(|(name, it)| match it {
                    Value::Result(Some(it)) if it.local().starts_with("part") => {
                        format!(" ${name}={}", it.local())
                    }
                    Value::Result(_) => format!(" ${name}"),
                    Value::Item(it) => format!(" ${name}={it}"),
                    Value::List(it) => format!(" ${name} of {}", it.len()),
                    Value::Feed(it) => format!(" ${name}={it}"),
                    other => format!(" ${name} {other:?}").to_lowercase(),
                });
                let values: String = values.collect();
                let again = if attempt > 1 { format!(" {attempt}") } else { String::new() };
                format!("call {}{again}{values}", self.name(action))
            }
            Output::Result { definition, done, .. } => {
                let because = done.because.as_ref().map(|it| format!(" for {it}"));
                let code = done.error.as_ref().map(|it| format!(" {}", it.code));
                let code = code
                    .filter(|it| !matches!(&**it, " skipped" | " timed-out" | " cancelled" | " E"));
                let status = format!("{:?}", done.status).to_lowercase();
                let rest = because.or(code).unwrap_or_default();
                format!("{} {status}{rest}", definition.action.id)
            }
            Output::Decide { action, seen, .. } => {
                let seen = seen.iter().map(|(name, it)| {
                    let status = it.status.map_or("feed", Status::as_str);
                    format!(" {name}={status}")
                });
                format!("decide {}{}", self.name(action), seen.collect::<String>())
            }
            Output::Abandon { action, attempt } => format!("drop {} {attempt}", self.name(action)),
            Output::Wake { time, .. } => {
                self.due.insert(time);
                let node = &self.graph.nodes[&time.of];
                let is_running = matches!(node.state, NodeState::Running(_));
                let maybe = if is_running { " maybe" } else { "" };
                format!("wake {}{maybe}", (time.at - self.now) as f64 / 1e6)
            }
            Output::Cancelled(count) => format!("cancelled {count}"),
        }
    }

    fn define(&mut self, action: Action) -> Vec<String> {
        self.next += 1;
        let id = self.next;
        self.names.insert(id, action.id.clone());
        self.step(Input::Defined(AGENT.into(), id, Box::new(action)))
    }

    fn reply(&mut self, id: &str, attempt: Option<u32>, reply: CallOutcome) -> Vec<String> {
        let is_meant = |it: &&Id| self.names[it] == id && self.graph.nodes.contains_key(it);
        let id = *self.names.keys().rev().find(is_meant).unwrap();
        let attempt = attempt.or_else(|| self.graph.nodes.get(&id).map(|it| it.attempts));
        self.step(Input::Replied(id, attempt.unwrap_or(1), reply))
    }

    /// Answers an attempt in part.
    fn part(&mut self, id: &str, number: u64) -> Vec<String> {
        let id = *self.names.keys().rev().find(|it| self.names[it] == id).unwrap();
        let attempt = self.graph.nodes.get(&id).map_or(1, |it| it.attempts);
        let payload = names::answer(&format!("part{number}"));
        self.step(Input::Part(id, attempt, Part { number, payload }))
    }

    /// Answers the newest attempt with a payload.
    fn tell(&mut self, id: &str, local: &str) -> Vec<String> {
        self.reply(id, None, CallOutcome::Ok(Some(names::answer(local))))
    }

    fn decide(&mut self, id: &str, decision: Decision) -> Vec<String> {
        let id = *self.names.keys().rev().find(|it| self.names[it] == id).unwrap();
        self.step(Input::Decided(id, decision))
    }

    fn wait(&mut self, seconds: f64) -> Vec<String> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a table's")]
        let until = self.now + (seconds * 1e6) as u64;
        let mut told = Vec::new();
        while let Some(time) = self.due.first().copied().filter(|it| it.at <= until) {
            self.due.remove(&time);
            self.now = time.at;
            told.extend(self.step(Input::Due(time)));
        }
        self.now = until;
        told
    }

    fn line(&mut self, line: &str) -> Vec<String> {
        let error = || ActionError { code: "E".to_owned(), message: "no".to_owned() };
        let failed = || CallOutcome::Failed { error: error(), answer: None, again: true };
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (id, attempt) = rest.split_once(' ').unwrap_or((rest, ""));
        let attempt = attempt.parse().ok();
        match word {
            "ok" => self.reply(id, attempt, CallOutcome::Ok(None)),
            "fail" => self.reply(id, attempt, failed()),
            "part" => self.part(id, attempt.unwrap_or(1).into()),
            "told" => self.tell(id, rest.split_once(' ').map_or("answer", |it| it.1)),
            "runs" => {
                let item = |it: &str| (it != "-").then(|| it.into());
                let items = rest.split_once(' ').map(|(_, it)| it.split(' ').map(item).collect());
                self.decide(id, Decision { error: None, items })
            }
            "not" => {
                let error = ActionError { code: NOT_TAKEN.to_owned(), message: String::new() };
                self.decide(id, Decision { error: Some(error), items: None })
            }
            "unknown" => {
                self.line(&format!("once {id}"));
                self.reply(id, attempt, CallOutcome::Unknown { error: error(), answer: None })
            }
            "cut" => self.reply(id, attempt, CallOutcome::CutOff(error())),
            // The log has the newest call, which isn't idempotent.
            "once" => {
                let id = *self.names.keys().rev().find(|it| self.names[it] == id).unwrap();
                let attempt = self.graph.nodes.get(&id).map_or(1, |it| it.attempts);
                self.graph.called(id, attempt, false);
                Vec::new()
            }
            "shows" => {
                let words = rest.split(' ').filter_map(|it| it.split_once('='));
                let (mut feeds, mut turn) = (FeedContents::new(), 1);
                for (key, value) in words {
                    match key {
                        "turn" => turn = value.parse().unwrap(),
                        _ => drop(
                            feeds.insert(key.to_owned(), (!value.is_empty()).then(|| value.into())),
                        ),
                    }
                }
                self.graph.shows(&AGENT.into(), turn, feeds);
                Vec::new()
            }
            "over" => {
                let turn = rest.parse().unwrap_or(1);
                self.step(Input::TurnOver(AGENT.into(), turn))
            }
            "answered" => {
                self.graph.work_over(AGENT);
                Vec::new()
            }
            "wait" => self.wait(rest.parse().unwrap()),
            "cancel" => {
                let id = (!rest.is_empty()).then(|| rest.to_owned());
                self.step(Input::Cancel(CancelRequest { id, ..CancelRequest::default() }))
            }
            "policy" => {
                self.begin_turn(rest);
                Vec::new()
            }
            _ => self.define(action(line)),
        }
    }

    /// Begins a turn with a policy from words such as `batched batch=2 turn=3`.
    fn begin_turn(&mut self, words: &str) {
        let mut policy = Policy::default();
        let (mut turn, mut words) = (1, words.split(' '));
        policy.dispatch = match words.next() {
            Some("batched") => Dispatch::Batched,
            Some("after") => Dispatch::AfterResponse,
            _ => Dispatch::Immediate,
        };
        for (key, value) in words.filter_map(|it| it.split_once('=')) {
            match key {
                "batch" => policy.limits.batch = value.parse().unwrap(),
                "at_once" => policy.limits.at_once = value.parse().unwrap(),
                _ => turn = value.parse().unwrap(),
            }
        }
        self.graph.begins(&AGENT.into(), turn, policy);
    }
}

/// Plays lines of `input => outputs`. The output that requests the time of a timeout ends in
/// `maybe`. Such outputs are checked only in lines that expect one.
#[track_caller]
fn check(script: &str) {
    let mut play = Play::default();
    for line in script.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let (input, expected) = line.split_once("=>").unwrap_or((line, ""));
        let mut told = play.line(input.trim());
        if !expected.contains("maybe") {
            told.retain(|it| !it.ends_with("maybe"));
        }
        assert_eq!(told.join(", "), expected.trim(), "{line}\nof {script}");
    }
}

#[test]
fn what_may_begin_begins_at_once() {
    check(
        "a async => call a, wake 300 maybe
           b async => call b
           c sync => call c
           ok b => b ok
           ok c => c ok
           ok a => a ok",
    );
}

#[test]
fn nothing_of_a_turn_begins_after_a_sync_one_before_that_is_done() {
    check(
        "a async => call a
           s sync => call s
           b async =>
           t sync =>
           fail s => s failed, call b, call t
           c async =>
           over =>
           ok t => t ok, call c",
    );
    check(
        "s sync => call s
           b async turn=2 => call b",
    );
    check(
        "a sync tool_use => call a
           b sync tool_use => call b
           c sync => ",
    );
    check(
        "a sync alone => call a
           b sync alone => call b",
    );
}

#[test]
fn an_action_waits_for_those_it_depends_on() {
    check(
        "a async => call a
           b async => call b
           c forget on=a,b =>
           d sync on=c =>
           ok a => a ok
           ok b => b ok, call c
           ok c => c ok, call d",
    );
}

#[test]
fn an_action_may_depend_on_one_that_is_not_written_yet() {
    check(
        "b async on=a =>
           c async on=b =>
           a async => call a
           over =>
           ok a => a ok, call b
           ok b => b ok, call c",
    );
}

#[test]
fn an_unknown_dependency_is_an_error_when_the_turn_is_over() {
    check(
        "a async on=nope =>
           b async on=a =>
           c async => call c
           over => a failed unknown-dependency, b skipped for a",
    );
    check("a async alone on=nope => a failed unknown-dependency");
    let mut play = Play::default();
    play.line("fetch async");
    play.line("b async on=fetsh");
    let outputs = play.graph.step(0, Input::TurnOver(AGENT.into(), 1));
    let Output::Result { done, .. } = &outputs[0] else { panic!("{outputs:?}") };
    let told = &done.error.as_ref().unwrap().message;
    assert!(told.ends_with("did you mean fetch?"), "{told}");
}

#[test]
fn a_circle_is_an_error_at_once() {
    check("a async on=a => a failed cycle");
    check(
        "a async on=b =>
           b async on=c =>
           x async on=a =>
           c async on=a => a failed cycle, b failed cycle, c failed cycle, x skipped for a",
    );
    check(
        "s sync on=l =>
           l async => s failed cycle, l failed cycle",
    );
    check(
        "a async on=b =>
           b async with=$a => a failed cycle, b failed cycle",
    );
    let mut play = Play::default();
    play.line("s sync on=l");
    let outputs = play.graph.step(0, Input::Defined(AGENT.into(), 9, Box::new(action("l async"))));
    let Output::Result { done, .. } = &outputs[0] else { panic!("{outputs:?}") };
    let told = &done.error.as_ref().unwrap().message;
    assert_eq!(told, "it waits for itself: l comes after s, which is sync; s depends on l");
}

#[test]
fn what_depends_on_a_failure_is_skipped_and_names_it() {
    check(
        "a async => call a
           b async on=a =>
           c async on=b =>
           d async => call d
           fail a => a failed, b skipped for a, c skipped for a
           e async on=c => e skipped for a
           ok d => d ok",
    );
    check(
        "a async skip => call a
           b async on=a with=$a =>
           fail a => a failed, call b $a skipped",
    );
    check(
        "a async => call a
           b async on=a =>
           unknown a => a unknown, b skipped for a",
    );
}

#[test]
fn an_id_that_stands_twice_in_a_turn_runs_once() {
    check(
        "a async => call a
           a async => a failed duplicate-id
           b async on=a =>
           ok a => a ok, call b
           over =>
           a async turn=2 => call a
           c async turn=2 on=a =>
           ok a => a ok, call c",
    );
    check(
        "a async alone => call a
           a async alone => call a",
    );
}

#[test]
fn what_takes_too_long_times_out() {
    check(
        "a async timeout=5 => call a, wake 5 maybe
           b async on=a =>
           wait 4.9 =>
           wait 0.2 => drop a 1, a timedout, b skipped for a
           ok a =>",
    );
    check(
        "a async => call a
           wait 299 =>
           wait 1 => drop a 1, a timedout",
    );
    // One requested time serves several actions. When this time comes, the next one is requested.
    check(
        "a async => call a, wake 300 maybe
           wait 10 =>
           b async => call b
           ok a => a ok
           c async timeout=1 => call c, wake 1 maybe
           wait 290 => drop c 1, c timedout, wake 10 maybe
           wait 10 => drop b 1, b timedout",
    );
}

#[test]
fn what_failed_is_tried_again_with_longer_pauses() {
    check(
        "a sync retry=3 => call a
           b async =>
           fail a => wake 1
           wait 1 => call a 2
           fail a => wake 2
           wait 2 => call a 3
           fail a => wake 4
           wait 4 => call a 4
           fail a => a failed, call b",
    );
    check(
        "a async again => call a
           fail a => wake 1
           wait 1 => call a 2
           ok a => a ok",
    );
    check(
        "a async retry=1 timeout=2 => call a
           wait 2 => drop a 1, wake 1
           wait 1 => call a 2
           ok a 1 => drop a 2, a ok
           ok a 2 =>",
    );
    check(
        "a async retry=2 => call a
           unknown a => a unknown",
    );
    check(
        "a async retry=2 timeout=2 => call a
           wait 2 => drop a 1, wake 1
           fail a 1 =>
           wait 1 => call a 2
           fail a 1 =>",
    );
}

#[test]
fn five_run_at_once() {
    check(
        "a async => call a
           b async => call b
           c async => call c
           d async => call d
           e async => call e
           f async =>
           g async turn=2 =>
           ok c => c ok, call f
           cancel a => drop a 1, a cancelled, cancelled 1, call g",
    );
    check(
        "policy immediate at_once=1
           a async => call a
           b async =>
           ok a => a ok, call b",
    );
}

#[test]
fn batches_begin_when_they_are_full_or_have_waited() {
    check(
        "policy batched batch=2
           a async => wake 0.1
           b async => call a, call b
           wait 0.1 =>
           c async => wake 0.1
           wait 0.1 => call c
           d async => wake 0.1
           over => call d
           wait 0.1 =>
           e async on=a =>
           ok a => a ok, call e",
    );
    check(
        "policy batched batch=2
           a async =>  wake 0.1
           wait 0.1 => call a
           b async => wake 0.1
           c async => call b, call c
           wait 1 =>",
    );
}

#[test]
fn a_group_of_a_batch_runs_in_order_and_groups_side_by_side() {
    check(
        "policy batched batch=4
           a async item=1 => wake 0.1
           b async item=1 =>
           c async item=2 =>
           d async to=x => call a, call c, call d
           e async to=x =>
           ok a => a ok, call b
           over =>
           ok d => d ok, call e",
    );
}

#[test]
fn after_the_response_all_begin() {
    check(
        "policy after
           a async =>
           b sync =>
           c async =>
           wait 10 =>
           over => call a, call b
           ok b => b ok, call c",
    );
}

#[test]
fn what_is_taken_back_is_over_and_its_answer_nothing() {
    check(
        "a async => call a
           b async on=a =>
           c forget => call c
           cancel => drop a 1, a cancelled, b cancelled, drop c 1, c cancelled, cancelled 3
           ok a =>
           over =>
           d async turn=2 => call d",
    );
    check(
        "a async => call a
           b async on=a =>
           cancel a => drop a 1, a cancelled, cancelled 1, b skipped for a",
    );
}

#[test]
fn what_is_wrong_in_itself_never_runs() {
    check(
        "a async retry=6 => a failed definition
           b async on=a => b skipped for a",
    );
    check("a async timeout=0 => a failed definition");
    let mut broken = plain("a", Mode::Sync);
    broken.parameters = Some("{".to_owned());
    let mut play = Play::default();
    assert_eq!(play.define(broken), ["a failed definition"]);
    for n in 0..256 {
        play.define(plain(&format!("n{n}"), Mode::Async));
    }
    assert_eq!(play.define(plain("one", Mode::Async)), ["one failed limit"]);
}
