//! Prompts that the provider refuses as too long, and what an agent learns of that about its model.

use pumphouse::listeners::agent::ask as asking;
use pumphouse::listeners::agent::recall::recall;
use pumphouse::listeners::agent::settings::{OnFull, Settings};
use pumphouse::listeners::agent::words::{
    CognitionIn, CognitionOut, ContextFull, ContextSummary, Response, Stopped,
};
use pumphouse::model::{self, Kind, Usage};

use super::world::World;
use super::*;

/// The tokens that the model takes.
const WINDOW: u64 = 4_000;

/// How a provider tells that a prompt is too long.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Tells {
    All,
    Window,
    Nothing,
}

/// How a provider counts tokens: each character of Chinese is one, and each other a quarter.
fn counted(prompt: &Prompt) -> u64 {
    let texts = prompt.messages.iter().map(|it| &*it.text).chain([&*prompt.system]);
    let chars = texts.flat_map(str::chars);
    chars.map(|it| if it > '\u{2e80}' { 4 } else { 1 }).sum::<u64>() / 4
}

fn too_long(tokens: u64, tells: Tells) -> model::Error {
    let mut error = model::Error::new(Kind::PromptTooLong, "the prompt is too long");
    error.prompt_tokens = (tells == Tells::All).then_some(tokens);
    error.window = (tells != Tells::Nothing).then(|| u32::try_from(WINDOW).unwrap());
    error
}

/// A conversation of so many long questions in Chinese. Returns the world, the thread, and how many
/// requests the provider had and refused.
fn talk(declared: Option<u32>, tells: Tells, settings: &Settings) -> (World, ThreadId, [usize; 2]) {
    let world = World::new(5);
    let asked = Arc::new(std::sync::Mutex::new([0, 0]));
    let agent = || {
        let kept = asked.clone();
        let model = Scripted::new(move |prompt: &Prompt, _| {
            let tokens = counted(prompt);
            let is_refused = tokens > WINDOW;
            let mut asked = kept.lock().unwrap();
            *asked = [asked[0] + 1, asked[1] + usize::from(is_refused)];
            match is_refused {
                true => Script::new().fails_with(0, too_long(tokens, tells)),
                false => Script::text("<response>好的。</response>").usage(Usage::new(tokens, 5)),
            }
        });
        let model = world.timed(declared.into_iter().fold(model, Scripted::with_window));
        Agent::new("oracle", Arc::new(model)).settings(settings.clone())
    };
    let text = "请把这段话翻译成英文。".repeat(36);
    let question = agent().ask(&text).unwrap();
    let pump = world.start([agent()]);
    let thread = world.tell(&pump, question, Duration::from_secs(1));
    let pump = pump.in_thread(&thread);
    for _ in 1..16 {
        world.sim.run(pump.tell_element(asking("oracle", &text).unwrap())).unwrap().unwrap();
        world.sim.run(world.sim.sleep(Duration::from_secs(1))).unwrap();
    }
    world.sim.rest().unwrap();
    let asked = *asked.lock().unwrap();
    assert_eq!(world.replay(agent(), &thread).difference, None);
    (world, thread, asked)
}

#[test]
fn a_prompt_that_the_provider_refuses_is_cleared_and_asked_again() {
    for declared in [None, Some(4_000), Some(100_000)] {
        for tells in [Tells::All, Tells::Window, Tells::Nothing] {
            let (world, thread, [_, refused]) = talk(declared, tells, &Settings::default());
            let answers = world.all::<Response>(&thread);
            assert_eq!(answers.len(), 16, "{declared:?} {tells:?}");
            assert!(world.all::<Stopped>(&thread).is_empty());
            // The agent learns what fits, and how many tokens its text has.
            assert!(refused <= 1, "{declared:?} {tells:?}: {refused}");
            let full = world.all::<ContextFull>(&thread);
            assert!(full.len() >= 2, "{declared:?} {tells:?}: {full:?}");
            let told = full.iter().filter(|it| it.is_refused == Some(true)).count();
            assert_eq!(told, refused);
        }
    }
}

#[test]
fn a_refused_prompt_costs_no_turn_and_no_failure() {
    let settings = Settings { max_turns: 1, ..Settings::default() };
    let (world, thread, _) = talk(None, Tells::All, &settings);
    let outs = world.all::<CognitionOut>(&thread);
    let refused: Vec<_> = outs.iter().filter(|it| it.stop == CognitionOut::FULL).collect();
    assert_eq!((refused.len(), world.all::<Response>(&thread).len()), (1, 16));
    assert_eq!(refused[0].tokens_in, None);
    // What the log has makes the same prompts again.
    let all: Vec<Entry> = world.entries(&thread).iter().map(|it| (&**it).into()).collect();
    for begun in all.iter().filter(|it| it.is::<CognitionIn>()) {
        let digest = begun.decode::<CognitionIn>().unwrap().digest;
        assert_eq!(recall(&all, begun.seq()).unwrap().prompt.digest().to_string(), digest);
    }
}

#[test]
fn an_agent_that_stops_when_its_context_is_full_stops() {
    let settings = Settings { on_context_full: OnFull::Stop, ..Settings::default() };
    let (world, thread, _) = talk(None, Tells::All, &settings);
    let stopped = world.all::<Stopped>(&thread);
    assert!(stopped.iter().all(|it| it.reason == "context-full"), "{stopped:?}");
    let text = format!("tokens, and the model {WINDOW}.");
    assert!(stopped[0].text.ends_with(&text), "{stopped:?}");
}

#[test]
fn a_refused_prompt_may_be_summarised() {
    let mut settings = Settings { on_context_full: OnFull::Summarise, ..Settings::default() };
    let summaries = Scripted::new(|prompt: &Prompt, _| match counted(prompt) {
        1_000.. => Script::new().fails_with(0, too_long(1_000, Tells::Nothing)),
        _ => Script::text("There were questions."),
    });
    settings.summary_model = Some(Arc::new(summaries));
    let (world, thread, _) = talk(None, Tells::Nothing, &settings);
    let summaries = world.all::<ContextSummary>(&thread);
    assert!(!summaries.is_empty());
    for it in summaries {
        assert_eq!((it.error, &*it.text), (None, "There were questions."));
    }
}

#[test]
fn a_prompt_that_no_clear_makes_short_enough_stops_the_agent() {
    let world = World::new(5);
    let model = world.timed(Scripted::new(|_: &Prompt, _| {
        Script::new().fails_with(0, too_long(1_000_000, Tells::Nothing))
    }));
    let agent = Agent::new("oracle", Arc::new(model));
    let question = agent.ask("Well?").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::from_secs(1));
    world.sim.rest().unwrap();
    let stopped = world.all::<Stopped>(&thread);
    assert_eq!(stopped.len(), 1, "{:#?}", world.story(&thread));
    assert_eq!(stopped[0].reason, "context-full");
    assert!(world.all::<CognitionIn>(&thread).len() < 8);
}
