//! How references in responses are resolved.

use pumphouse::listeners::feed::{Definition, Feeds, Source};
use serde_json::json;

use super::world::{World, play};
use super::*;

/// The last response of an agent with a feed that is there and one that never is, which says these.
#[track_caller]
fn check<const N: usize>(replies: [&'static str; N], expected: &str) {
    let ask = |what: &str| Source::listener("calculate").params(json!({"expression": what}));
    let feeds = [
        Definition::on_demand("sun", ask("6*7")),
        Definition::on_demand("weather", ask("nonsense")),
        Definition::on_demand("off", ask("1")).disabled(),
    ];
    let (world, thread) = play(|world: &World| {
        let model = world.timed(Scripted::replies(replies));
        let agent = Agent::new("oracle", Arc::new(model)).peers(["calculate", "tool"]);
        agent.feeds(Feeds::new(feeds).unwrap())
    });
    let said = world.all::<Response>(&thread).pop().map(|it| it.text);
    assert_eq!(said.as_deref(), Some(expected), "{:#?}", world.story(&thread));
}

const SUM: &str = r#"
<action id="sum">{"name": "calculate", "parameters": {"expression": "1+1"}}</action>"#;
const BROKEN: &str = r#"
<action id="sum">{"name": "calculate", "parameters": {"expression": "1+"}}</action>
<action id="more" depends_on="sum">
{"name": "calculate", "parameters": {"expression": "1"}}</action>"#;

#[test]
fn a_word_that_is_no_name_is_text() {
    check([SUM, "<response>$sum costs $5, $$5 or $HOME.</response>"], "2 costs $5, $5 or $HOME.");
}

#[test]
fn in_code_nothing_is_filled_in() {
    check(
        [SUM, "<response>$sum `$sum ${sum}`\n```sh\necho $sum $$ ${sum}\n```</response>"],
        "2 `$sum ${sum}`\n```sh\necho $sum $$ ${sum}\n```",
    );
}

#[test]
fn what_failed_or_was_skipped_reads_as_failed() {
    check(
        [BROKEN, "<response>$sum, ${more}, ${sum.value}</response>"],
        "[sum: failed], [more: failed], [sum: failed]",
    );
}

#[test]
fn a_feed_reads_as_the_prompt_showed_it() {
    check(
        ["<response>$sun, $weather, ${off}</response>"],
        "42, [weather: unavailable], [off: unavailable]",
    );
    // Also where the response waits, and before a listener of that name.
    check(
        [r#"<action id="a">{"name": "tool", "parameters": {"what": "$weather"}}</action>
<response>$a; $weather $sun</response>"#],
        "[weather: unavailable]; [weather: unavailable] 42",
    );
}
