//! The rules of docs/actions.md in a whole pump: which listeners an action may call, how an action
//! reports that it can't, and how its references are resolved.

use pumphouse::listeners::action::words::ActionsCancelled;

use super::*;

const GENERIC: &str = "Message could not be delivered. Please verify your target and try again.";

/// What one turn's actions come to.
fn came(says: &'static str) -> Vec<String> {
    play(vec![Turn(1, Dispatch::Immediate), Says(says), Over(1)]).results
}

#[track_caller]
fn check(says: &'static str, expected: &[&str]) {
    assert_eq!(came(says), expected);
}

/// What an action is told whose target isn't among the agent's peers.
fn no_peer(name: &str) -> String {
    format!(
        "P0011: you have no peer {name}; you may call thread.await-threads, thread.cancel-thread, \
         thread.pause-thread, thread.resume-thread, thread.retry-listeners, thread.spawn-thread, \
         tool, web.down, web.fetch, cache, trap, sub, press, halt, below, idler, starter"
    )
}

#[test]
fn unknown_and_forbidden_targets_get_the_same_words() {
    // What is the pump's own can't be forged, nor can an action act.
    for name in ["vault", "secret", "nobody", "action", "action-result"] {
        let says = format!(r#"<action id="a">{{"name": "{name}", "parameters": {{}}}}</action>"#);
        check(says.leak(), &[&format!("a failed {}", no_peer(name))]);
    }
}

#[test]
fn a_name_that_may_be_several_lists_them() {
    let says = r#"<action id="a">{"name": "web", "parameters": {}}</action>"#;
    let told = "a failed ambiguous: web may be any of web.down, web.fetch; say which";
    check(says, &[told]);
}

#[test]
fn parameters_are_held_against_the_schema() {
    let says = r#"<action id="a">{"name": "tool", "parameters": {"waht": 1}}</action>"#;
    let told = came(says).remove(0);
    assert!(told.starts_with("a failed parameters: $ has no property \"waht\""), "{told}");
    assert!(told.contains("did you mean \"what\"?"), "{told}");
}

#[test]
fn parameters_may_be_elements() {
    check(
        r#"<action id="a"><name>tool</name><parameters><what>x &amp; y</what></parameters></action>
<action id="b" depends_on="a"><name>tool</name>
<parameters><what>$a</what><number>4</number></parameters></action>"#,
        &[r#"a ok "x & y""#, r#"b ok "x & y 4""#],
    );
}

#[test]
fn what_is_put_in_stays_text_and_is_not_looked_at_again() {
    check(
        r#"<action id="page">{"name": "web.fetch", "parameters": {"url": "</u>"}}</action>
<action id="a">{"name": "tool", "parameters":
 {"what": "${page.title}", "number": "${page.size}"}}</action>"#,
        &[
            r#"page ok {"links":["a","b"],"size":7,"title":"<b>$url </u></b>"}"#,
            r#"a ok "<b>$url </u></b> 7""#,
        ],
    );
}

#[test]
fn what_stays_unresolved_is_warned_of() {
    let says = r#"<action id="page">{"name": "web.fetch", "parameters": {"url": "u"}}</action>
<action id="a">{"name": "tool", "parameters": {"what": "$pgae"}}</action>"#;
    let told = came(says).remove(1);
    let warning = "($pgae stays as it is: nothing is called pgae; did you mean page?)";
    assert_eq!(told, format!(r#"a ok "$pgae" {warning}"#));
}

#[test]
fn a_path_that_leads_to_nothing_fails_the_action() {
    let says = r#"<action id="page">{"name": "web.fetch", "parameters": {"url": "u"}}</action>
<action id="a" retry="2">{"name": "tool", "parameters": {"what": "${page.titel}"}}</action>
<action id="b"><name>tool</name><parameters><what>${page.links[7]}</what></parameters></action>
<action id="c">{"name": "tool", "parameters": {"what": "$${page.titel}"}}</action>"#;
    check(
        says,
        &[
            r#"page ok {"links":["a","b"],"size":7,"title":"<b>$url u</b>"}"#,
            "a failed reference: ${page.titel} leads to nothing: the result of page has no titel; \
             it has links, size, title; did you mean title?",
            "b failed reference: ${page.links[7]} leads to nothing: the result of page has no 7; \
             it has [0] to [1]",
            r#"c ok "${page.titel}""#,
        ],
    );
}

#[test]
fn a_text_that_is_no_reference_as_a_whole_is_sent_byte_for_byte() {
    for text in [
        "for f in *.c; do echo $$f $$HOME; done; echo $$ $$$$ $(CC) $@",
        "$page = glob('*'); foreach ($page as $f) echo $f;",
        "cp main.js ${page}/",
        "$$ and $$page and ${page}",
        "{{ .Values.page }} ${page.title}",
    ] {
        let json = serde_json::Value::from(text).to_string();
        let says = format!(
            r#"<action id="page">{{"name": "tool", "parameters": {{"what": "p"}}}}</action>
<action id="a">{{"name": "tool", "parameters": {{"what": {json}}}}}</action>
<action id="b"><name>tool</name><parameters><what><![CDATA[{text}]]></what></parameters></action>"#
        );
        let sent = format!("ok {json}");
        check(says.leak(), &[r#"page ok "p""#, &format!("a {sent}"), &format!("b {sent}")]);
    }
}

#[test]
fn calls_in_other_forms_have_no_references() {
    check(
        r#"<tool_use id="page" name="tool">{"what": "p"}</tool_use>
<tool_use id="a" name="tool">{"what": "$page"}</tool_use>
<tool_use id="b" name="tool">{"what": "${page}"}</tool_use>
<tool_use id="c" name="tool">{"what": "$$page"}</tool_use>"#,
        &[r#"page ok "p""#, r#"a ok "$page""#, r#"b ok "${page}""#, r#"c ok "$$page""#],
    );
}

#[test]
fn an_escape_is_its_text_where_the_name_is_known() {
    check(
        r#"<action id="x">{"name": "tool", "parameters": {"what": "x"}}</action>
<action id="a">{"name": "tool", "parameters": {"what": "$$x"}}</action>
<action id="b"><name>tool</name><parameters><what>$${x.y}</what></parameters></action>
<action id="c">{"name": "tool", "parameters": {"what": "$$HOME"}}</action>
<action id="d">{"name": "tool", "parameters": {"what": "$$later"}}</action>
<action id="later">{"name": "tool", "parameters": {"what": "l"}}</action>"#,
        &[
            r#"x ok "x""#,
            r#"a ok "$x""#,
            r#"b ok "${x.y}""#,
            r#"c ok "$$HOME""#,
            r#"d ok "$$later""#,
            r#"later ok "l""#,
        ],
    );
}

#[test]
fn a_type_that_is_another_is_warned_of() {
    check(
        r#"<action id="a" type="relic">{"name": "tool", "parameters": {"what": "x"}}</action>
<action id="b" type="relic">{"name": "cache", "parameters": {"value": "x"}}</action>"#,
        &[r#"a ok "x" (type is relic, but tool is of the type tool)"#, "b ok null"],
    );
}

#[test]
fn what_fails_is_tried_again_with_one_key() {
    let says = r#"<action id="a">
{"name": "tool", "parameters": {"what": "x", "fails": 2}, "retry": 3}</action>"#;
    let came = play(vec![Turn(1, Dispatch::Immediate), Says(says), Over(1)]);
    assert_eq!(came.results, [r#"a ok "x""#]);
    let keys: Vec<&str> = came.effects.iter().map(|it| &*it.0).collect();
    assert!(
        keys.len() == 3 && keys.iter().all(|it| *it == keys[0] && it.contains('/')),
        "{keys:?}"
    );
    let times: Vec<u64> = came.effects.iter().map(|it| it.2).collect();
    assert!((1_000..1_050).contains(&(times[1] - times[0])), "{times:?}");
    assert!((2_000..2_050).contains(&(times[2] - times[1])), "{times:?}");
}

#[test]
fn an_error_that_is_returned_is_a_failure_and_its_dependents_are_skipped() {
    check(
        r#"<action id="a">{"name": "tool", "parameters": {"what": "x", "fails": 9}}</action>
<action id="b">{"name": "tool", "parameters": {"what": "$a"}, "depends_on": ["a"]}</action>
<action id="c" on_error="skip">{"name": "trap", "parameters": {}}</action>
<action id="d" type="relic" depends_on="c"><name>cache</name>
<parameters><value>${c}</value></parameters></action>"#,
        &[
            "a failed broke: tool says no more",
            "b skipped skipped: a failed",
            "c unknown P0015: trap panicked: Report it to the listener's author; the log has the \
             message it stumbled on.",
            "d ok null",
        ],
    );
}

#[test]
fn what_takes_too_long_times_out() {
    let says = r#"<action id="a">
{"name": "tool", "parameters": {"what": "x", "ms": 9000}, "timeout": 2.5}</action>"#;
    check(says, &["a timedout timed-out: no answer came in 2.5 s"]);
}

#[test]
fn internal_actions_reach_who_is_set_for_them_and_nobody_else_does() {
    let unknown = format!("b failed {}", no_peer("add_note"));
    let blocked = format!("c failed P0011: {GENERIC}");
    let other = format!("d failed P0011: {GENERIC}");
    check(
        r#"<action id="a" type="internal">{"name": "add_note", "parameters": {"text": "n"}}</action>
<action id="b">{"name": "add_note", "parameters": {"text": "n"}}</action>
<action id="c" type="context_feed">{"name": "forget_note", "parameters": {}}</action>
<action id="d" type="internal">{"name": "tool", "parameters": {"what": "n"}}</action>"#,
        &[r#"a ok "n""#, &unknown, &blocked, &other],
    );
}

#[test]
fn a_thread_that_an_action_opens_is_what_it_waits_for() {
    let says = r#"<action id="a">{"name": "spawn-thread", "parameters":
{"initial-payload": {"payload": "<sub xmlns='urn:test'><question>q</question></sub>"}}}</action>"#;
    check(says, &[r#"a ok "answer to q""#]);
}

#[test]
fn what_nobody_waits_for_wakes_nobody() {
    let says = r#"<action id="a" mode="fire_and_forget">
{"name": "tool", "parameters": {"what": "x"}}</action>"#;
    let came = play(vec![Turn(1, Dispatch::Immediate), Says(says), Over(1)]);
    assert_eq!(came.results, [r#"a ok "x""#]);
    assert!(came.story.contains(&"tool > action: worked".to_owned()), "{:?}", came.story);
}

#[test]
fn actions_can_be_taken_back() {
    let says = r#"<action id="a" mode="async">
{"name": "tool", "parameters": {"what": "x", "ms": 60000}}</action>
<action id="b" mode="async" depends_on="a">{"name": "tool", "parameters": {"what": "y"}}</action>"#;
    let world = World::new(1, vec![Turn(1, Dispatch::Immediate), Says(says), Over(1)]);
    let disk = Disk::new(&world.sim);
    let pump = world.start(&disk);
    let first = world.sim.run(pump.tell(Go {})).unwrap().unwrap();
    world.sim.run(world.sim.sleep(Duration::from_secs(1))).unwrap();
    let cancel = pumphouse::listeners::action::words::CancelAction {
        id: Some("a".into()),
        turn: None,
        agent: None,
        reason: Some("enough".into()),
    };
    let asked = pump.in_thread(&first.thread);
    let told: ActionsCancelled = world.sim.run(asked.ask(cancel)).unwrap().unwrap();
    assert_eq!(told.count, 1);
    world.sim.rest().unwrap();
    let results = world.sim.run(results(disk.kept(), &first.thread)).unwrap();
    assert_eq!(results, ["a cancelled cancelled: enough", "b skipped skipped: a was cancelled"]);
    assert_eq!(world.effects.lock().unwrap().len(), 1);
}

#[test]
fn an_identity_may_have_something_done_too() {
    let world = World::new(1, Vec::new());
    let disk = Disk::new(&world.sim);
    let pump = world.start(&disk);
    let mut found = Vec::new();
    Parser::new(Config::default()).feed(
        r#"<action id="a">{"name": "calculate.nothing", "parameters": {}}</action>
<action id="b">{"name": "vault", "parameters": {}}</action>"#,
        &mut |event| {
            if let What::Closed(it) = event.what {
                found.push(read::action(&it, None, None).unwrap());
            }
        },
    );
    let said = |it: ActionResult| format!("{} {:?} {}", it.id, it.status, it.answer.is_some());
    let mut told = Vec::new();
    for it in found {
        told.push(said(world.sim.run(pump.ask(it)).unwrap().unwrap()));
    }
    assert_eq!(told, ["a Failed false", "b Ok true"]);
}

#[test]
fn a_fork_begins_without_what_was_under_way() {
    let says = r#"<action mode="async" id="a">{"name": "tool", "parameters": {"what": "x"}}</action>
<action id="b">{"name": "tool", "parameters": {"what": "$a", "ms": 5000}, "timeout": 9}</action>"#;
    let world = World::new(1, vec![Turn(1, Dispatch::Immediate), Says(says), Over(1)]);
    let disk = Disk::new(&world.sim);
    let pump = world.start(&disk);
    let first = world.sim.run(pump.tell(Go {})).unwrap().unwrap();
    world.sim.run(world.sim.sleep(Duration::from_secs(1))).unwrap();
    let log = disk.kept();
    let last = world.sim.run(log.thread(&first.thread)).unwrap().unwrap().unwrap().last_seq;
    let at = EntryId::new(&first.thread, last);
    // The same turn once more: nothing of it is under way here.
    let fork = world.sim.run(pump.fork_at(&at).tell(Go {})).unwrap().unwrap().thread;
    world.sim.rest().unwrap();
    let came = world.sim.run(results(log, &fork)).unwrap();
    assert_eq!(came, [r#"a ok "x""#, r#"a ok "x""#, r#"b ok "x""#]);
    let came = world.sim.run(results(log, &first.thread)).unwrap();
    assert_eq!(came, [r#"a ok "x""#, r#"b ok "x""#]);
}
