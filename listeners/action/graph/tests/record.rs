//! Tests that recorded calls and results of an older version count, even if today's rules would
//! lead to other calls and results.

use super::names::answer;
use super::*;

impl Play {
    /// Applies a recorded result.
    fn recorded(&mut self, id: Id, status: Status) {
        self.graph.settle(id, ActionOutcome { status, answer: None, error: None, because: None });
    }

    /// Lets the first attempt fail with this payload.
    fn failed(&mut self, id: Id, local: &str) -> Vec<String> {
        let error = ActionError { code: "E".to_owned(), message: "no".to_owned() };
        let reply = CallOutcome::Failed { error, answer: Some(answer(local)), again: true };
        self.step(Input::Replied(id, 1, reply))
    }
}

#[track_caller]
fn play(script: &str) -> Play {
    let mut play = Play::default();
    for line in script.lines().map(str::trim) {
        play.line(line);
    }
    play
}

#[test]
fn a_result_that_the_graph_made_itself_changes_nothing() {
    let mut play = play(
        "a async
         b async on=a
         c async
         fail a",
    );
    let before = format!("{:?}", play.graph);
    play.recorded(1, Status::Failed);
    play.recorded(2, Status::Skipped);
    assert!(
        play.graph.called(3, 1, true)
            && !play.graph.called(1, 1, true)
            && !play.graph.called(9, 1, true)
    );
    let after = format!("{:?}", play.graph).replace("is_recorded: true", "is_recorded: false");
    assert_eq!(after, before);
}

#[test]
fn a_recorded_result_settles_its_action_and_those_that_depend_on_it() {
    // By today's rules, the first action would be tried again, and the others would wait.
    let mut tried = play(
        "a async retry=2
         b async on=a
         c async on=b with=$a",
    );
    assert_eq!(tried.failed(1, "stopped").first().unwrap(), "wake 1");
    tried.recorded(1, Status::Ok);
    assert!(
        matches!(tried.graph.resolved(1), Some(Value::Result(Some(it))) if it.local() == "stopped")
    );
    assert!(tried.graph.called(2, 1, true), "it runs");
    assert_eq!(tried.line("ok b"), ["b ok", "call c $a"]);
    // The pause before a retry of `a` is dropped, but the timeout of `c` still holds.
    assert_eq!(tried.wait(1.0), Vec::<String>::new());
    assert!(tried.graph.armed.values().flatten().all(|it| it.of != 1));
    assert_eq!(tried.wait(300.0), ["drop c 1", "c timedout"]);
}

#[test]
fn what_was_skipped_for_a_recorded_success_runs() {
    let mut play = play(
        "a async
         x async
         b async on=a
         c async on=b
         d async on=x
         over
         policy immediate turn=2
         fail x",
    );
    play.failed(1, "stopped");
    assert!([3, 4, 5].iter().all(|id| !play.graph.is_live(*id)));
    play.recorded(2, Status::Failed);
    play.recorded(1, Status::Ok);
    // The log may already have the call of `b`, or not yet.
    assert!(play.graph.called(3, 1, true) && play.graph.is_live(4));
    assert_eq!(play.graph.outcome(5).unwrap().status, Status::Skipped);
    assert_eq!(play.line("ok b"), ["b ok", "call c"]);
}

#[test]
fn what_the_log_has_of_results_before_is_not_undone() {
    let mut play = play(
        "a async
         b async on=a",
    );
    play.failed(1, "stopped");
    play.recorded(2, Status::Skipped);
    play.recorded(1, Status::Ok);
    assert!(!play.graph.is_live(2) && !play.graph.called(2, 1, true));
}

#[test]
fn a_recorded_call_runs_though_today_it_would_wait() {
    let mut play = play("a async with=$HOME");
    assert!(play.graph.called(1, 1, true));
    assert_eq!(play.line("over"), Vec::<String>::new());
    assert_eq!(play.line("ok a"), ["a ok"]);
}
