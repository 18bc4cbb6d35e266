//! Actions run while their agent is still writing. These are the tests that *Streaming Inline Tool
//! Execution* asks for, and the examples of *Streaming Execution Protocol*.

use super::{Dispatch, Over, Pause, Says, Turn, play};

const FETCH: &str = r#"<thought>I need data.
<action type="tool" mode="async" id="fetch">
{"name": "tool", "parameters": {"what": "fetched", "ms": 300}}
</action>"#;

#[test]
fn test_tool_executes_during_stream() {
    let turn = Turn(1, Dispatch::Immediate);
    let came = play(vec![turn, Says(FETCH), Pause(1_000), Says(" …</thought>"), Over(1)]);
    assert_eq!(came.results, [r#"fetch ok "fetched""#]);
    assert!(came.at("fetched") < 50, "{}", came.at("fetched"));
}

#[test]
fn test_tool_result_before_stream_ends() {
    let turn = Turn(1, Dispatch::Immediate);
    let came = play(vec![turn, Says(FETCH), Pause(1_000), Over(1)]);
    let place = |of: &str| came.story.iter().position(|it| it == of).unwrap();
    assert!(place("action > ada: action-result") < place("ada > action: cognition_out"));
}

const THREE: &str = r#"
<tool_use id="a" name="tool">{"what": "a", "ms": 100}</tool_use>
<tool_use id="b" name="tool.work">{"what": "b", "item_id": "x"}</tool_use>"#;

#[test]
fn test_multiple_tools_batched() {
    let turn = Turn(1, Dispatch::Batched);
    let came = play(vec![turn, Says(THREE), Pause(1_000), Over(1)]);
    assert_eq!(came.results, [r#"b ok "b""#, r#"a ok "a""#]);
    assert!(came.at("a").abs_diff(came.at("b")) < 20, "together: {:?}", came.effects);
}

#[test]
fn test_batch_size_threshold() {
    let third = r#"<tool_use id="c" name="work"><what>c</what></tool_use>"#;
    let turn = Turn(1, Dispatch::Batched);
    let came = play(vec![turn, Says(THREE), Pause(100), Says(third), Pause(1_000), Over(1)]);
    assert_eq!(came.results.len(), 3);
    for what in ["a", "b", "c"] {
        assert!((100..190).contains(&came.at(what)), "{:?}", came.effects);
    }
}

#[test]
fn test_batch_delay_timer() {
    let turn = Turn(1, Dispatch::Batched);
    let came = play(vec![turn.clone(), Says(THREE), Pause(1_000), Over(1)]);
    assert!((200..260).contains(&came.at("a")), "{:?}", came.effects);
    // What waits when the turn ends begins with that.
    let came = play(vec![turn, Says(THREE), Pause(50), Over(1)]);
    assert!((50..150).contains(&came.at("a")), "{:?}", came.effects);
}

#[test]
fn test_groups_by_item_id() {
    let turn = Turn(1, Dispatch::Batched);
    let says = r#"
<tool_use id="a" name="tool">{"what": "a", "ms": 500, "item_id": "x"}</tool_use>
<tool_use id="b" name="tool">{"what": "b", "item_id": "x"}</tool_use>
<tool_use id="c" name="tool">{"what": "c", "item_id": "y"}</tool_use>"#;
    let came = play(vec![turn, Says(says), Over(1)]);
    assert_eq!(came.results, [r#"c ok "c""#, r#"a ok "a""#, r#"b ok "b""#]);
    assert!(came.at("b") >= came.at("a") + 500, "in order within one: {:?}", came.effects);
    assert!(came.at("c") < came.at("a") + 100, "side by side: {:?}", came.effects);
}

#[test]
fn after_the_response_all_begin() {
    let came = play(vec![Turn(1, Dispatch::AfterResponse), Says(FETCH), Pause(700), Over(1)]);
    assert!(came.at("fetched") >= 700);
    assert_eq!(came.results, [r#"fetch ok "fetched""#]);
}

const RESEARCH: &str = r#"
<action type="tool" mode="async" id="wiki">
{"name": "tool", "parameters": {"what": "wiki", "ms": 1000}, "output_key": "wiki_data"}
</action>
<action type="tool" mode="async" id="arxiv">
{"name": "tool", "parameters": {"what": "arxiv", "ms": 1200}, "output_key": "papers"}
</action>
<action type="tool" mode="async" id="news">
{"name": "tool", "parameters": {"what": "news", "ms": 800}, "output_key": "news_articles"}
</action>
<action type="agent" mode="sync" id="analyze">
{"name": "sub",
 "parameters": {"question": "$wiki_data"},
 "depends_on": ["wiki", "arxiv", "news"], "output_key": "comprehensive_analysis"}
</action>
<action type="relic" mode="fire_and_forget" id="cache">
{"name": "cache", "parameters": {"value": "$comprehensive_analysis"}, "depends_on": ["analyze"]}
</action>"#;

#[test]
fn the_research_takes_as_long_as_its_longest_chain() {
    let came = play(vec![Turn(1, Dispatch::Immediate), Says(RESEARCH), Pause(2_000), Over(1)]);
    assert_eq!(
        came.results,
        [
            r#"news ok "news""#,
            r#"wiki ok "wiki""#,
            r#"arxiv ok "arxiv""#,
            r#"analyze ok "answer to wiki""#,
            "cache ok null",
        ]
    );
    let stored = came.at("answer to wiki");
    assert!((1_200..1_400).contains(&stored), "{stored}");
    let child = came.story.iter().filter(|it| *it == "core > action: thread-spawned").count();
    assert_eq!(child, 1, "an agent works in a thread of its own");
    let place = |of: &str| came.story.iter().rposition(|it| it == of).unwrap();
    assert!(place("action > ada: action-result") < place("ada > action: cognition_out"));
}
