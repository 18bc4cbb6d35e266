//! Tests streams: actions that are called with the partial results of another one.

use super::super::super::words::PARTS_MAX;
use super::*;

#[test]
fn it_begins_with_the_first_partial_result_and_gets_the_rest() {
    check(
        "a sync => call a
           b sync stream with=$a =>
           c sync with=$b =>
           part a 1 => call b $a=part1
           part a 2 =>
           ok b => call b 2 $a=part2
           ok b =>
           part a 3 => call b 3 $a=part3
           ok a => a ok
           ok b => b ok, call c $b of 3",
    );
    // Each number leads to one call at most: repeated and smaller numbers are ignored.
    check(
        "a sync => call a
           b sync stream with=$a =>
           part a 1 => call b $a=part1
           part a 1 =>
           ok b =>
           part a 3 => call b 2 $a=part3
           part a 2 =>
           ok b 1 =>
           ok a => a ok
           ok b => b ok",
    );
}

#[test]
fn what_came_before_the_stream_was_written_is_taken_too() {
    check(
        "a sync => call a
           part a 1 =>
           part a 2 =>
           ok a => a ok
           b async stream on=a => call b
           c async turn=2 stream with=$a => call c $a=part1
           ok b => call b 2
           ok b => b ok",
    );
    // A condition and another dependency delay the stream. Its partial results are kept meanwhile.
    check(
        "a async => call a
           x async => call x
           b async stream on=a with=$x+$a when=a =>
           part a 1 =>
           ok a => a ok, decide b a=ok
           runs b =>
           ok x => x ok, call b $a=part1 $x
           ok b => b ok",
    );
}

#[test]
fn without_partial_results_it_is_called_once_with_the_result() {
    check(
        "a sync => call a
           b sync stream with=$a =>
           told a => a ok, call b $a
           ok b => b ok",
    );
    check(
        "a sync skip => call a
           b sync stream with=$a =>
           fail a => a failed, call b $a skipped",
    );
}

#[test]
fn it_fails_with_its_source_and_gets_no_more() {
    check(
        "a sync => call a
           b sync stream with=$a =>
           c async on=b =>
           part a 1 => call b $a=part1
           part a 2 =>
           fail a => a failed
           ok b => b failed stream, c skipped for b",
    );
    check(
        "a sync => call a
           b sync stream with=$a =>
           fail a => a failed, b skipped for a",
    );
    // A stream that is written after its source failed is skipped, too.
    check(
        "a sync => call a
           part a 1 =>
           fail a => a failed
           b sync stream with=$a => b skipped for a",
    );
    // A call that waits for `at_once` isn't made if the source fails first.
    check(
        "policy immediate at_once=1
           a async => call a
           b async stream with=$a =>
           part a 1 =>
           fail a => a failed, b skipped for a",
    );
    // A call that was made before the source failed may be retried.
    check(
        "a async => call a
           b async stream with=$a retry=1 =>
           part a 1 => call b $a=part1
           fail b => wake 1
           fail a => a failed
           wait 1 => call b 2 $a=part1
           ok b => b failed stream",
    );
    check(
        "a async skip => call a
           b async stream with=$a =>
           part a 1 => call b $a=part1
           part a 2 =>
           fail a => a failed
           ok b => call b 2 $a=part2
           ok b => b ok",
    );
}

#[test]
fn a_failure_of_its_own_ends_it_and_not_its_source() {
    check(
        "a async => call a
           b async stream with=$a =>
           part a 1 => call b $a=part1
           fail b => b failed
           part a 2 =>
           ok a => a ok",
    );
    check(
        "a async => call a
           b async skip stream with=$a =>
           part a 1 => call b $a=part1
           part a 2 =>
           fail b => call b 2 $a=part2
           ok a => a ok
           ok b => b ok",
    );
}

#[test]
fn another_attempt_of_the_source_goes_on_behind_what_came() {
    check(
        "a async retry=1 => call a
           b async stream with=$a =>
           part a 1 => call b $a=part1
           ok b =>
           fail a => wake 1
           part a 2 =>
           wait 1 => call a 2
           part a 1 =>
           part a 2 => call b 2 $a=part2
           ok a => a ok
           ok b => b ok",
    );
}

#[test]
fn the_items_of_a_loop_and_the_answers_of_a_stream_are_partial_results() {
    check(
        "a sync each=[] => decide a
           b sync stream with=$a =>
           c sync stream with=$b =>
           runs a x - y => call a $it=\"x\"
           told a part1 => call a 2 $it=\"y\", call b $a=part1
           told b part2 => call c $b=part2
           part a 1 => call b 2 $a=part1
           told a => a ok
           ok c =>
           told b part3 => b ok, call c 2 $b=part3
           ok c => c ok",
    );
}

#[test]
fn its_place_in_the_turn_counts_for_its_first_call() {
    check(
        "policy after
           a async =>
           b async stream with=$a =>
           over => call a
           part a 1 => call b $a=part1
           ok b =>
           part a 2 => call b 2 $a=part2",
    );
    // A stream waits for an earlier `sync` action that isn't its source.
    check(
        "a async => call a
           s sync => call s
           b async stream with=$a =>
           part a 1 =>
           ok s => s ok, call b $a=part1",
    );
}

#[test]
fn it_names_one_action() {
    check(
        "a async stream => a failed definition
           b async stream with=$x+$y => b failed definition
           c async stream on=x,y => c failed definition
           d async stream with=$nope =>
           e async stream on=nope =>
           f async stream each=[] with=$it => f failed definition
           over => d failed unknown-dependency, e failed unknown-dependency",
    );
    check(
        "shows f=x
           a async stream with=$f => a failed definition
           b async stream on=b => b failed cycle",
    );
    // The source may be a later action of the turn.
    check(
        "b async stream with=$a =>
           a async => call a
           part a 1 => call b $a=part1",
    );
}

#[test]
fn more_than_parts_max_fail_the_stream() {
    let mut play = Play::default();
    play.line("a async");
    play.line("b async stream with=$a");
    for number in 1..=PARTS_MAX {
        play.line(&format!("part a {number}"));
        assert_eq!(play.line("ok b"), Vec::<String>::new(), "{number}");
    }
    assert_eq!(play.line("part a 101"), ["b failed limit"]);
    let error = play.graph.outcome(2).unwrap().error.clone().unwrap();
    assert!(error.message.contains("parts_max, 100"), "{error:?}");
    assert_eq!(play.line("ok a"), ["a ok"]);
}

#[test]
fn a_cancelled_source_ends_its_stream() {
    check(
        "a async => call a
           b async stream with=$a =>
           part a 1 => call b $a=part1
           ok b =>
           cancel a => drop a 1, a cancelled, cancelled 1, b failed stream",
    );
    check(
        "a async => call a
           b async stream with=$a =>
           part a 1 => call b $a=part1
           cancel b => drop b 1, b cancelled, cancelled 1
           ok a => a ok",
    );
}

#[test]
fn a_fork_keeps_the_partial_results_of_what_is_done() {
    let mut play = Play::default();
    for line in
        ["a async", "b async stream with=$a", "part a 1", "ok b", "ok a", "c async", "part c 1"]
    {
        play.line(line);
    }
    play.line("d async stream with=$c");
    play.graph = std::mem::take(&mut play.graph).forked();
    assert!([3, 4].iter().all(|it| !play.graph.is_live(*it)));
    let calls = play.line("e async turn=2 stream with=$a");
    assert_eq!(calls.first().map(String::as_str), Some("call e $a=part1"));
    assert_eq!(play.line("ok e"), ["e ok"]);
}
