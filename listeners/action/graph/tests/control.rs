//! Tests conditions, lists and blocks of actions that run side by side.

use super::check;

#[test]
fn a_condition_is_decided_when_what_it_refers_to_is_done() {
    check(
        "a sync => call a
           b async when=a =>
           c async when=a on=b =>
           d async on=b with=$b =>
           fail a => a failed, decide b a=failed, decide c a=failed
           not b => b skipped condition, call d $b skipped
           runs c => call c
           ok c => c ok",
    );
    check(
        "a async when=nope =>
           over => a failed condition",
    );
    check("a async when=a => a failed cycle");
    check(
        "a async when=b =>
           b async => call b
           ok b => b ok, decide a b=ok
           cancel a => a cancelled, cancelled 1
           runs a =>",
    );
    check(
        "shows f=x
           a async when=f => decide a f=feed
           runs a => call a
           runs a =>",
    );
    check("a async when=1>=2= => a failed definition");
}

#[test]
fn a_list_is_gone_through_item_by_item() {
    check(
        "s async => call s
           a sync each=s with=$it =>
           b sync each=s with=$a =>
           c async with=$b =>
           ok s => s ok, decide a s=ok, decide b s=ok
           runs b - y =>
           runs a x y => call a $it=\"x\"
           ok a => call a 2 $it=\"y\"
           ok a 1 =>
           ok a => a ok, call b $a $it=\"y\"
           ok b => b ok, call c $b of 2",
    );
    check(
        "a sync each=[] => decide a
           runs a - => a ok",
    );
    check(
        "a async each=[] retry=1 => decide a
           runs a x y => call a $it=\"x\"
           fail a => wake 1
           wait 1 => call a 2 $it=\"x\"
           ok a => call a 3 $it=\"y\"
           fail a => wake 1
           wait 1 => call a 4 $it=\"y\"
           fail a => a failed",
    );
    check(
        "a async each=[] skip => decide a
           runs a x y => call a $it=\"x\"
           fail a => call a 2 $it=\"y\"
           ok a => a ok",
    );
}

#[test]
fn a_block_runs_side_by_side_and_what_comes_next_waits_for_it() {
    check(
        "s sync => call s
           a sync block=1 max=2 =>
           b sync block=1 max=2 =>
           c sync block=1 max=2 =>
           d sync =>
           e async turn=2 => call e
           ok s => s ok, call a, call b
           ok b => b ok, call c
           ok a => a ok
           ok c => c ok, call d",
    );
}
