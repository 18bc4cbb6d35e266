//! Calls that may have happened: they are tried again only if they are idempotent.

use super::check;

/// A call that isn't idempotent and began is never made again, unless its listener says that it
/// failed.
#[test]
fn what_may_have_happened_is_not_tried_again() {
    check(
        "a async retry=2 timeout=2 => call a
           once a =>
           wait 2 => drop a 1, a unknown",
    );
    check(
        "a async retry=2 timeout=2 => call a
           wait 2 => drop a 1, wake 1",
    );
    check(
        "a async retry=1 => call a
           once a =>
           cut a => a unknown",
    );
    check(
        "a async retry=1 => call a
           cut a => wake 1
           wait 1 => call a 2
           cut a => a failed",
    );
    check(
        "a async retry=1 => call a
           once a =>
           fail a => wake 1
           wait 1 => call a 2
           unknown a => a unknown",
    );
    check(
        "a async skip => call a
           b async on=a with=$a =>
           unknown a => a unknown, call b $a skipped",
    );
}
