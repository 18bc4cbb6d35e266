//! Which messages of an agent's thread a clear hides, and which it doesn't.

use pumphouse::listener::{Apply as _, Clears};
use pumphouse::listeners::agent::ask as asking;
use pumphouse::listeners::agent::recall::recall;
use pumphouse::listeners::agent::render::{Form, render};
use pumphouse::listeners::agent::settings::{Keep, OnFull, Settings};
use pumphouse::listeners::agent::words::{ContextFull, ContextSummary};

use pumphouse::listeners::feed::PromptFeeds;
use pumphouse::listeners::view::{ClearContext, UndoClear};
use pumphouse::model::Kind;
use pumphouse::wire::budget::Charge;
use pumphouse::wire::core::ContextCleared;

use super::world::World;
use super::*;

/// A thread with an oracle that says these things, one a turn, and the prompts that it was shown.
struct Told {
    world: World,
    pump: Pump,
    thread: ThreadId,
    seen: Arc<std::sync::Mutex<Vec<Prompt>>>,
}

impl Told {
    /// Asks the first question.
    fn new(replies: &[&str]) -> Told {
        let quick = |text: &&str| Script::text(*text);
        Told::with(replies.iter().map(quick).collect(), None, Settings::default())
    }

    fn with(replies: Vec<Script>, window: Option<u32>, settings: Settings) -> Told {
        Told::of(World::new(7), replies, window, settings)
    }

    fn of(world: World, replies: Vec<Script>, window: Option<u32>, settings: Settings) -> Told {
        let seen: Arc<std::sync::Mutex<Vec<Prompt>>> = Arc::default();
        let kept = seen.clone();
        let model = Scripted::new(move |prompt: &Prompt, turn| {
            kept.lock().unwrap().push(prompt.clone());
            let script = replies.get(usize::try_from(turn).unwrap() - 1).cloned();
            script.unwrap_or_else(|| Script::text("<response>So.</response>"))
        });
        let model = world.timed(match window {
            Some(window) => model.with_window(window),
            None => model,
        });
        let agent = Agent::new("oracle", Arc::new(model)).settings(settings);
        let agent = agent.peers(["calculate", "tool", "clerk"]);
        let question = agent.ask("First?").unwrap();
        let pump = world.start([agent]);
        let thread = world.tell(&pump, question, Duration::from_secs(1));
        let pump = pump.in_thread(&thread);
        Told { world, pump, thread, seen }
    }

    /// Asks once more, and lets a second pass.
    fn ask(&self, text: &str) {
        let asked = self.pump.tell_element(asking("oracle", text).unwrap());
        self.world.sim.run(asked).unwrap().unwrap();
        self.wait();
    }

    fn wait(&self) {
        self.world.sim.run(self.world.sim.sleep(Duration::from_secs(1))).unwrap();
    }

    /// Clears from outside.
    fn clear(&self, keep: u64) -> ContextCleared {
        self.world.sim.run(self.pump.ask(ClearContext { keep })).unwrap().unwrap()
    }

    fn entries(&self) -> Vec<Entry> {
        self.world.entries(&self.thread).iter().map(|it| -> Entry { (&**it).into() }).collect()
    }

    /// What of the thread is in view now.
    fn in_view(&self) -> Vec<Entry> {
        let (mut clears, mut all) = (Clears::default(), self.entries());
        all.iter().for_each(|it| clears.apply(it));
        all.retain(|it| !clears.hides(it.seq()));
        all
    }

    /// Whether something in view has this text.
    fn shows(&self, text: &str) -> bool {
        self.in_view().iter().any(|it| std::str::from_utf8(it.body()).unwrap().contains(text))
    }

    /// The newest prompt, as one text.
    fn prompt(&self) -> String {
        let seen = self.seen.lock().unwrap();
        let texts = seen.last().unwrap().messages.iter().map(|it| &*it.text);
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// Every turn's prompt comes of the log as it was shown.
    fn recalls(&self) {
        let (all, seen) = (self.entries(), self.seen.lock().unwrap());
        let turns = all.iter().filter(|it| it.name().local() == "cognition_in");
        let prompts: Vec<Prompt> = turns.map(|it| recall(&all, it.seq()).unwrap().prompt).collect();
        assert_eq!(prompts, *seen);
    }
}

const SUMS: &str = "<thought>Three at once.</thought><calculate><expression>6*7</expression>\
    </calculate><calculate><expression>1+1</expression></calculate>\
    <calculate><expression>2+2</expression></calculate>";

#[test]
fn ten_messages_are_ten_that_a_prompt_shows() {
    let clear = "<clear-context keep=\"10\"/><response final=\"false\">Well.</response>";
    let told = Told::new(&[SUMS, clear, "<response>Done.</response>"]);
    // The question, a reply, three sums, and what the turn of the clear brought.
    let prompt = told.prompt();
    for text in ["First?", "Three at once.", "42", ">2<", ">4<", "Well."] {
        assert!(prompt.contains(text), "{text}: {prompt}");
    }
    let cleared = told.world.all::<ContextCleared>(&told.thread);
    assert_eq!((cleared[0].upto, cleared[0].hidden), (1, 0));
}

/// Answers each of several questions at once.
fn answered(questions: u32) -> Told {
    let told = Told::new(&["<response>Answer 1.</response>"]);
    (2..=questions).for_each(|it| told.ask(&format!("Question {it}?")));
    told
}

#[test]
fn a_clear_keeps_as_many_messages_as_it_says_and_counts_what_it_hides() {
    let told = answered(8);
    let cleared = told.clear(4);
    assert_eq!((cleared.kept_messages, cleared.hidden), (4, 12));
    told.ask("And then?");
    let texts: Vec<String> = told
        .seen
        .lock()
        .unwrap()
        .last()
        .unwrap()
        .messages
        .iter()
        .map(|it| unmarked(&it.text))
        .collect();
    let first = "[console]\nFirst?\n\n[12 earlier messages are hidden; nothing is lost.]";
    let so = "<response>So.</response>";
    let told_of = [first, so, "[console]\nQuestion 8?", so, "[console]\nAnd then?"];
    assert_eq!(texts, told_of);
    told.recalls();
    // A second clear adds up; what is taken back first is the second.
    assert_eq!(told.clear(1).hidden, 17);
    told.world.sim.run(told.pump.tell(UndoClear)).unwrap().unwrap();
    told.wait();
    assert!(told.shows("Question 8?") && !told.shows("Question 7?"));
    told.recalls();
}

#[test]
fn what_a_clear_counts_is_what_a_prompt_shows() {
    let refused = "<action id=\"a\">{\"name\": \"nobody\"</action>";
    let told = Told::new(&[SUMS, refused, "Only text.", "<response>Done.</response>"]);
    told.ask("And then?");
    let root = pumphouse::listeners::agent::root("oracle");
    let shows = |it: &Entry| {
        let alone = render(
            Form::new(""),
            "oracle",
            &root,
            "",
            std::slice::from_ref(it),
            &PromptFeeds::default(),
        );
        !alone.messages.is_empty()
    };
    let all = told.entries();
    let shown = all.iter().filter(|it| shows(it)).count() as u64;
    assert_eq!(told.clear(1).hidden, shown - 1, "{:#?}", told.world.story(&told.thread));
    let all_kinds = told.pump.capabilities();
    for it in &all {
        let bookkeeping = all_kinds.schema(it.name()).is_some_and(|it| it.bookkeeping);
        assert!(!bookkeeping || !shows(it), "{it:?}");
    }
}

#[test]
fn a_clear_hides_no_question_without_an_answer() {
    let more = "<response final=\"false\">More.</response>";
    let clear = "<clear-context keep=\"1\"/><response final=\"false\">Cleared.</response>";
    let first = "<response>Answer 1.</response>";
    let told = Told::new(&[first, more, more, more, clear, "<response>Done.</response>"]);
    told.ask("What is it that you do?");
    let prompt = told.prompt();
    assert!(prompt.contains("What is it that you do?"), "{prompt}");
    assert!(!prompt.contains("Answer 1.") && !prompt.contains("More."), "{prompt}");
    told.recalls();
    // With its answer it is like any other.
    told.clear(1);
    assert!(!told.shows("What is it that you do?"));
}

#[test]
fn a_turn_begins_once_the_clear_that_the_turn_before_asked_for_is_answered() {
    let clear = "<clear-context keep=\"1\"/><response final=\"false\">Cleared.</response>";
    for (seed, request) in (0..20).flat_map(|it| [(it, clear), (it, "<undo-clear/>")]) {
        let replies = [request, "<response>Done.</response>"].map(Script::text);
        let told = Told::of(World::new(seed), replies.to_vec(), None, Settings::default());
        let all = told.entries();
        let last = |locals: &[&str]| {
            let found = all.iter().rfind(|it| locals.contains(&it.name().local()));
            found.map(Entry::seq).unwrap()
        };
        let answer = last(&["context-cleared", "context-restored"]);
        let turn = last(&["cognition_in"]);
        assert!(answer < turn, "seed {seed}: {:#?}", told.world.story(&told.thread));
    }
}

const SLOW: &str = "<thought>That takes a while.</thought><action id=\"slow\">\
    {\"name\": \"tool\", \"parameters\": {\"what\": \"the slow work\", \"ms\": 5000}}</action>";

#[test]
fn a_clear_hides_no_call_without_a_result() {
    let told = Told::new(&["<response>Answer 1.</response>", SLOW, "<response>Done.</response>"]);
    told.ask("Do it slowly.");
    let cleared = told.clear(1);
    assert!(cleared.hidden > 0, "{cleared:?}");
    let view = told.in_view();
    let written = view.iter().find(|it| it.name().local() == "cognition_out").unwrap();
    assert!(std::str::from_utf8(written.body()).unwrap().contains("That takes a while."));
    assert!(view.iter().any(|it| it.name().local() == "action"));
    assert!(told.shows("Do it slowly.") && !told.shows("Answer 1."));
    told.world.sim.rest().unwrap();
    assert!(told.prompt().contains("the slow work"), "{}", told.prompt());
    told.recalls();
    // With its result it is like any other.
    told.clear(1);
    assert!(!told.shows("That takes a while.") && !told.shows("Done."));
}

#[test]
fn a_clear_hides_no_payload_to_a_peer_that_may_still_answer() {
    // Nobody answers a report, so nothing of it is still to come.
    let both = "<work><what>what the peer does</what><ms>5000</ms></work>\
        <report><summary>for the clerk</summary></report>";
    let late = Script::text("<response>Done.</response>").after(Duration::from_secs(9));
    let first = Script::text("<response>Answer 1.</response>");
    let told = Told::with(vec![first, Script::text(both), late], None, Settings::default());
    told.ask("Ask the peer.");
    let told_of = told.clear(1);
    let sent = |local: &str| {
        let all = told.entries();
        let found = all.iter().find(|it| it.name().local() == local && it.from() == "oracle");
        found.map(Entry::seq)
    };
    let except = told_of.except.unwrap_or_default();
    assert!(except.contains(&sent("work").unwrap()), "{except:?}");
    assert!(!except.contains(&sent("report").unwrap()), "{except:?}");
    told.world.sim.rest().unwrap();
    let except = told.clear(1).except.unwrap_or_default();
    assert!(!except.contains(&sent("work").unwrap()), "{except:?}");
}

#[test]
fn a_clear_hides_nothing_that_came_in_the_turn_that_asks_for_it() {
    let text = "<calculate><expression>6*7</expression></calculate><thought>Now that I have this \
        I look no further back.</thought><clear-context keep=\"1\"/><thought>Good.</thought>";
    let slow = Script::text(text).chunks(8).every(Duration::from_millis(10));
    let done = Script::text("<response>Done.</response>");
    let first = Script::text("<response>Answer 1.</response>");
    let told = Told::with(vec![first, slow, done], None, Settings::default());
    told.ask("Compute.");
    let prompt = told.prompt();
    assert!(prompt.contains("42") && prompt.contains("Compute."), "{prompt}");
    assert!(!prompt.contains("Answer 1."), "{prompt}");
    told.recalls();
}

#[test]
fn a_prompt_that_is_still_too_large_hides_more_until_there_is_no_more_to_hide() {
    let long = format!("<response>{}</response>", "word ".repeat(1_000));
    let replies = [&*long, "<response>Short.</response>", "<response>Short again.</response>"];
    let replies = replies.map(Script::text).to_vec();
    let told = Told::with(replies, Some(1_500), Settings::default());
    // Ten messages would stay, and the long one would be among them.
    told.ask("And now?");
    let full = told.world.all::<ContextFull>(&told.thread);
    let keep: Vec<_> = full.iter().map(|it| it.keep).collect();
    assert_eq!(keep, [Some(10), Some(5), Some(2)]);
    let responses = told.world.all::<Response>(&told.thread);
    assert_eq!(responses.last().unwrap().text, "Short.");
    assert!(told.world.all::<Stopped>(&told.thread).is_empty());
}

#[test]
fn d8_so_many_tokens_of_messages_may_stay_instead_of_so_many_messages() {
    let long = format!("<response>{}</response>", "word ".repeat(1_000));
    let replies = [&*long, "<response>Short.</response>"].map(Script::text).to_vec();
    let settings = Settings { context_keep: Keep::Tokens(100), ..Settings::default() };
    let told = Told::with(replies, Some(1_500), settings);
    told.ask("And now?");
    // The newest message fits, the long one before it doesn't; and the first stays.
    let full = told.world.all::<ContextFull>(&told.thread);
    let keep: Vec<_> = full.iter().map(|it| it.keep).collect();
    assert_eq!(keep, [Some(2)]);
    assert_eq!(told.world.all::<Response>(&told.thread).last().unwrap().text, "Short.");
    told.recalls();
}

/// An oracle with a long answer and a small window; `summary` is what its model says of the past.
fn summarising(world: &World, summary: Script) -> (Agent, Arc<std::sync::Mutex<Vec<Prompt>>>) {
    let long = format!("<response>{}</response>", "word ".repeat(1_000));
    let seen: Arc<std::sync::Mutex<Vec<Prompt>>> = Arc::default();
    let kept = seen.clone();
    let mind = Scripted::new(move |prompt: &Prompt, turn| {
        kept.lock().unwrap().push(prompt.clone());
        match turn {
            1 => Script::text(&*long),
            _ => Script::text("<response>So.</response>"),
        }
    });
    let writes = Scripted::new(move |_: &Prompt, _| summary.clone()).with_window(1_000);
    let mut settings = Settings::default();
    (settings.on_context_full, settings.context_keep) = (OnFull::Summarise, Keep::Messages(2));
    settings.summary_model = Some(Arc::new(world.timed(writes)));
    let agent = Agent::new("oracle", Arc::new(world.timed(mind).with_window(1_500)));
    (agent.settings(settings).peers(["calculate", "tool", "clerk"]), seen)
}

/// The thread of such an oracle, once it was asked.
fn summarised(summary: Script) -> Told {
    let world = World::new(7);
    let (agent, seen) = summarising(&world, summary);
    let question = agent.ask("First?").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::from_secs(1));
    let pump = pump.in_thread(&thread);
    Told { world, pump, thread, seen }
}

#[test]
fn d8_a_summary_stands_in_the_place_of_hidden_messages_until_the_clear_is_undone() {
    let told = summarised(Script::text("Many words were said."));
    told.ask("And now?");
    let [summary] = &told.world.all::<ContextSummary>(&told.thread)[..] else { panic!() };
    assert_eq!((&*summary.text, &summary.error), ("Many words were said.", &None));
    let said = "nothing is lost. In short:]\nMany words were said.";
    assert!(unmarked(&told.prompt()).contains(said), "{}", told.prompt());
    // What it took is charged: it was read in pieces.
    let charges = told.world.all::<Charge>(&told.thread);
    assert!(charges.iter().filter(|it| it.settled).count() > 3, "{charges:#?}");
    told.recalls();
    let undo = told.pump.tell(UndoClear);
    told.world.sim.run(undo).unwrap().unwrap();
    told.wait();
    let view = render_now(&told);
    assert!(!view.contains("In short"), "{view}");
    // A replay asks no model.
    let other = summarising(&told.world, Script::text("Other words.")).0;
    assert_eq!(told.world.replay(other, &told.thread).difference, None);
}

/// What a prompt would show now.
fn render_now(told: &Told) -> String {
    let root = pumphouse::listeners::agent::root("oracle");
    let prompt =
        render(Form::new(""), "oracle", &root, "", &told.in_view(), &PromptFeeds::default());
    prompt.messages.iter().map(|it| it.text.clone() + "\n").collect()
}

#[test]
fn d8_where_no_summary_can_be_written_the_messages_are_hidden_and_the_prompt_says_so() {
    let told = summarised(Script::new().fails(0, Kind::Refused));
    told.ask("And now?");
    let prompt = unmarked(&told.prompt());
    assert!(prompt.contains("hidden; nothing is lost. There is no summary of them.]"), "{prompt}");
    assert_eq!(told.world.all::<Response>(&told.thread).last().unwrap().text, "So.");
    told.recalls();
}

#[test]
fn a_prompt_that_is_too_large_for_its_newest_alone_ends_the_work() {
    let question = "word ".repeat(2_000);
    let told = Told::with(vec![Script::text("<response>Yes.</response>")], Some(1_500), {
        Settings::default()
    });
    told.ask(&question);
    let stopped = told.world.all::<Stopped>(&told.thread);
    assert_eq!((stopped.len(), &*stopped[0].reason), (1, "context-full"));
    // It is over, and so may be hidden.
    told.ask("And now?");
    let responses = told.world.all::<Response>(&told.thread);
    assert_eq!(responses.last().unwrap().text, "So.");
}

#[test]
fn what_waited_where_a_thread_was_forked_is_not_waited_for_in_the_fork() {
    let told = Told::new(&["<response>Answer 1.</response>", SLOW]);
    told.ask("Do it slowly.");
    let all = told.entries();
    let asked = all.iter().rev().find(|it| it.name().local() == "action").unwrap();
    let fork = told.pump.fork_at(asked.id());
    let cleared: ContextCleared =
        told.world.sim.run(fork.ask(ClearContext { keep: 1 })).unwrap().unwrap();
    assert_eq!((cleared.except, cleared.upto), (None, asked.seq()));
    assert!(told.clear(1).except.unwrap().contains(&asked.seq()));
}
