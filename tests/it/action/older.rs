//! A log of version 0.1.0 keeps its meaning. Its recorded results settle their actions, even if the
//! same messages would lead to other results today. Unfinished actions continue.

use bytes::Bytes;
use pumphouse::listeners::action::words::{ResultValue, Status};
use pumphouse::log::{Batch, Draft, Mark, NewThread};

use super::*;

const THREAD: &str = "sess-0ldt1mer";

/// An entry: who, to whom, what, which entry it answers, and of which action it is a call.
struct Line(&'static str, &'static str, Element, Option<u64>, Option<u64>);

impl Line {
    fn draft(self, seq: u64) -> Draft {
        let Line(from, to, element, answers, call) = self;
        let id = |seq| EntryId::new(&ThreadId::new(THREAD), seq);
        let key = |it: u64| {
            let meta = "https://xml-pipeline.org/ns/meta/v1";
            Bytes::from(format!("<key xmlns=\"{meta}\">{THREAD}/{it}</key>"))
        };
        let at_us = Sim::BEGINS_US - 1_000 + seq;
        let body = element.canonical().clone();
        let draft = Draft::new(id(seq), at_us, from.into(), element.name(), body);
        Draft {
            to: Some(to.into()),
            receivers: u32::from(from != to),
            reply_to: answers.map(id),
            meta: call.map(key),
            flags: if from == "console" { Flags::FROM_IDENTITY } else { Flags::NONE },
            ..draft
        }
    }
}

/// Goes on with a thread of which all is done but its last entry: its results, its story, and what
/// was done.
fn goes_on(lines: Vec<Line>) -> (Vec<String>, Vec<String>, usize) {
    let world = World::new(1, Vec::new());
    let disk = Disk::new(&world.sim);
    let thread = ThreadId::new(THREAD);
    let entries: Vec<Draft> = lines.into_iter().zip(1..).map(|(it, seq)| it.draft(seq)).collect();
    let (_, before) = entries.split_last().unwrap();
    let done = before.iter().filter(|it| it.receivers > 0).map(|it| {
        let (entry, listener) = (it.id.clone(), it.to.clone().unwrap());
        Mark::Consumed { entry, listener, attempt: 1 }
    });
    let marks = done.collect();
    let threads = vec![NewThread { id: thread.clone(), parent: None, fork: None }];
    let log = disk.log();
    world.sim.run(log.append(Batch { threads, entries, marks })).unwrap().unwrap();
    world.sim.run(log.close()).unwrap().unwrap();
    let _pump = world.start(&disk);
    world.sim.rest().unwrap();
    let results = world.sim.run(results(disk.kept(), &thread)).unwrap();
    let story = world.sim.run(story(disk.kept(), &thread)).unwrap();
    let effects = world.effects.lock().unwrap().len();
    (results, story, effects)
}

/// What an agent said to `action`, as an action of its first turn.
fn acts(words: &str) -> Element {
    let mut found = Vec::new();
    Parser::new(Config::default()).feed(words, &mut |event| {
        if let What::Closed(it) = event.what {
            found.push(read::action(&it, Some(1), None).unwrap());
        }
    });
    found.remove(0).encode().unwrap()
}

fn work(what: &str) -> Element {
    let work = Work { what: what.into(), ms: None, fails: None, number: None, item_id: None };
    work.encode().unwrap()
}

/// The result that 0.1.0 recorded of an action that its agent's stop answered.
fn ok(of: u64, id: &str) -> Element {
    let result = ActionResult {
        id: id.to_owned(),
        turn: Some(1),
        of,
        name: "halt".to_owned(),
        status: Status::Ok,
        attempts: 1,
        dialect: None,
        show: None,
        because: None,
        answer: Some(Stopped::NAME.to_string()),
        note: Vec::new(),
        warning: Vec::new(),
        error: None,
        value: Some(ResultValue { form: None, text: "null".to_owned() }),
    };
    result.encode().unwrap()
}

#[test]
fn a_recorded_result_counts_though_today_it_would_be_a_failure() {
    let halts = Halt { reason: "model".to_owned(), error: None }.encode().unwrap();
    for retry in [0, 1] {
        let a = format!(
            r#"<action id="a" mode="async" retry="{retry}">
{{"name": "halt", "parameters": {{"reason": "model"}}}}</action>"#
        );
        let b = r#"<action id="b" mode="async" depends_on="a">
{"name": "tool", "parameters": {"what": "b"}}</action>"#;
        let c = r#"<action id="c" mode="async" depends_on="b">
{"name": "tool", "parameters": {"what": "${a.reason}"}}</action>"#;
        let (results, story, effects) = goes_on(vec![
            Line("console", "ada", Go {}.encode().unwrap(), None, None),
            Line("ada", "ada", begin(1, Dispatch::Immediate).encode().unwrap(), None, None),
            Line("ada", "action", acts(&a), None, None),
            Line("ada", "action", acts(b), None, None),
            Line("ada", "action", acts(c), None, None),
            Line("action", "halt", halts.clone(), None, Some(3)),
            Line("ada", "action", end(1).encode().unwrap(), None, None),
            Line("halt", "action", stopped("model").encode().unwrap(), Some(6), None),
            Line("action", "ada", ok(3, "a"), Some(3), None),
            Line("action", "tool", work("b"), None, Some(4)),
        ]);
        assert_eq!(results, ["a ok null", r#"b ok "b""#, r#"c ok "model""#], "{story:#?}");
        assert_eq!(story.iter().filter(|it| *it == "action > halt: halt").count(), 1);
        assert_eq!(effects, 2);
    }
}

#[test]
fn a_recorded_call_counts_though_today_its_action_would_wait() {
    let a = r#"<action id="a" mode="async">
{"name": "tool", "parameters": {"what": "echo $HOME"}}</action>"#;
    for is_over in [false, true] {
        let mut lines = vec![
            Line("console", "ada", Go {}.encode().unwrap(), None, None),
            Line("ada", "ada", begin(1, Dispatch::Immediate).encode().unwrap(), None, None),
            Line("ada", "action", acts(a), None, None),
            Line("action", "tool", work("echo $HOME"), None, Some(3)),
        ];
        if is_over {
            lines.push(Line("ada", "action", end(1).encode().unwrap(), None, None));
            lines.push(Line("tool", "action", work("done"), Some(4), None));
        }
        let (results, story, effects) = goes_on(lines);
        assert!(results.len() == 1 && results[0].starts_with("a ok "), "{results:?} {story:#?}");
        assert_eq!(effects, usize::from(!is_over), "{story:#?}");
    }
}
