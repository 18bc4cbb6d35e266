//! Providers that refuse requests: after a rate limit the agent waits and asks again, after another
//! refusal it doesn't.

use std::sync::Mutex;

use pumphouse::listeners::action::words::{ActionResult, Status};
use pumphouse::listeners::agent::words::{CognitionOut, Interrupt, ModelFailed, Response, Stopped};
use pumphouse::listeners::timer::{Tick, TimerCleared, TimerSet};
use pumphouse::model::{self, Kind, Policy, Price, Router, Usage};
use pumphouse::wire::budget::Charge;
use pumphouse::wire::core::ThreadNote;

use super::world::World;
use super::*;

/// An agent whose provider says so many times that it takes no more for so many seconds.
fn limited(world: &World, times: u64, seconds: u64) -> Agent {
    let model = Scripted::new(move |_: &Prompt, turn| match turn > times {
        true => Script::text("<response>Here I am.</response>"),
        false => {
            let error = model::Error::new(Kind::RateLimited, "429 Too Many Requests");
            let retry_after = Some(Duration::from_secs(seconds));
            let mut error = error;
            error.retry_after = retry_after;
            Script::text("").fails_with(0, error)
        }
    });
    Agent::new("oracle", Arc::new(world.timed(model)))
}

fn is_answered(world: &World, thread: &ThreadId) -> bool {
    world.all::<Response>(thread).iter().any(|it| it.text == "Here I am.")
}

#[test]
fn a_rate_limit_is_waited_for_by_a_timer_in_the_thread() {
    let world = World::new(1);
    let agent = limited(&world, 1, 60);
    let question = agent.ask("Go.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::from_secs(59));
    assert_eq!(world.all::<CognitionOut>(&thread).len(), 1, "it isn't asked before");
    assert_eq!(world.all::<CognitionOut>(&thread)[0].waits_ms, Some(60_000));
    assert_eq!(world.all::<TimerSet>(&thread).len(), 1);
    world.sim.run(world.sim.sleep(Duration::from_secs(2))).unwrap();
    assert!(is_answered(&world, &thread));
    assert_eq!(world.all::<Tick>(&thread).len(), 1);
}

#[test]
fn a_rate_limit_that_is_waited_for_is_no_failure() {
    let world = World::new(1);
    let agent = limited(&world, 5, 60);
    let question = agent.ask("Go.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::from_secs(10 * 60));
    assert!(is_answered(&world, &thread), "{:?}", world.all::<Stopped>(&thread));
    assert_eq!(world.all::<CognitionOut>(&thread).len(), 6);
}

#[test]
fn a_rate_limit_beyond_what_the_agent_waits_is_a_failure() {
    let world = World::new(1);
    let agent = limited(&world, 9, 16 * 60);
    let question = agent.ask("Go.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::from_secs(1));
    let stopped = world.all::<Stopped>(&thread).remove(0);
    assert!(stopped.reason == "model" && stopped.text.contains("429"), "{stopped:?}");
    assert_eq!(world.all::<TimerSet>(&thread).len(), 0);
}

#[test]
fn an_interrupt_ends_the_wait_for_a_rate_limit() {
    let world = World::new(1);
    let agent = limited(&world, 1, 60);
    let question = agent.ask("Go.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::from_secs(10));
    let interrupt = Interrupt { reason: None };
    let here = pump.in_thread(&thread).to("oracle");
    world.sim.run(async move { here.tell(interrupt).await }).unwrap().unwrap();
    world.sim.run(world.sim.sleep(Duration::from_secs(120))).unwrap();
    assert_eq!(world.all::<Stopped>(&thread).remove(0).reason, "interrupted");
    assert_eq!(world.all::<TimerCleared>(&thread).len(), 1);
    assert_eq!(world.all::<CognitionOut>(&thread).len(), 1, "nothing is asked after it");
}

#[test]
fn a_rate_limit_is_waited_for_across_a_restart() {
    let world = World::new(1);
    let question = limited(&world, 1, 60).ask("Go.").unwrap();
    let pump = world.start([limited(&world, 1, 60)]);
    let thread = world.tell(&pump, question, Duration::from_secs(10));
    world.sim.run(async move { pump.shutdown().await }).unwrap().unwrap();
    let _pump = world.start([limited(&world, 1, 60)]);
    world.sim.run(world.sim.sleep(Duration::from_secs(40))).unwrap();
    assert_eq!(world.all::<CognitionOut>(&thread).len(), 1, "it isn't asked before");
    world.sim.run(world.sim.sleep(Duration::from_secs(60))).unwrap();
    assert!(is_answered(&world, &thread), "{:?}", world.all::<Stopped>(&thread));
}

#[test]
fn a_call_that_takes_too_long_names_the_rate_limit_that_its_agent_waits_for() {
    let world = World::new(1);
    let oracle = limited(&world, 1, 60);
    let call = r#"<action id="q1" type="agent" timeout="10">
{"name": "oracle", "parameters": {"text": "Go."}}</action>"#;
    let prompts = Arc::new(Mutex::new(Vec::new()));
    let model = Scripted::new({
        let prompts = prompts.clone();
        move |prompt: &Prompt, turn| {
            prompts.lock().unwrap().push(format!("{prompt:?}"));
            match turn {
                1 => call.to_owned(),
                _ => "<response>It took too long.</response>".to_owned(),
            }
        }
    });
    let lead = Agent::new("lead", Arc::new(world.timed(model))).peers(["oracle"]);
    let question = lead.ask("Go.").unwrap();
    let pump = world.start([lead, oracle]);
    let thread = world.tell(&pump, question, Duration::from_secs(30));
    let result = world.all::<ActionResult>(&thread).remove(0);
    assert_eq!(result.status, Status::TimedOut);
    let message = result.error.unwrap().message;
    let expected = "no answer came in 10 s; the rate limit of its model lasts until ";
    assert!(message.starts_with(expected), "{message}");
    let prompts = prompts.lock().unwrap();
    assert_eq!(prompts.len(), 2);
    assert!(prompts[1].contains(expected), "{prompts:#?}");
    // The note that says so is the pump's own business.
    assert!(!prompts.iter().any(|it| it.contains("thread-note")), "{prompts:#?}");
    assert_eq!(world.all::<ThreadNote>(&thread).len(), 1);
}

#[test]
fn every_attempt_of_a_router_is_in_the_thread_and_the_model_that_answered_is_paid() {
    let world = World::new(1);
    let mut refused = model::Error::new(Kind::Refused, "401 Unauthorized");
    (refused.status, refused.retry) = (Some(401), false);
    let large = Script::text("").fails_with(0, refused);
    let small = Script::text("<response>Here I am.</response>").usage(Usage::new(1_000, 100));
    let large = Scripted::replies([large]).with_price(Price::new(10.0, 10.0));
    let small = Scripted::replies([small]).with_price(Price::new(0.15, 0.60));
    let router = Router::new("best", Policy::Failover);
    let router = router.model("large", Arc::new(large)).model("small", Arc::new(small));
    let agent = Agent::new("oracle", Arc::new(router));
    let question = agent.ask("Go.").unwrap();
    let pump = world.start([agent]);
    let thread = world.tell(&pump, question, Duration::from_secs(1));
    assert!(is_answered(&world, &thread));
    let failed = world.all::<ModelFailed>(&thread).remove(0);
    assert_eq!((failed.model.as_deref(), &*failed.kind), (Some("large"), "refused"));
    assert_eq!((failed.status, &*failed.text), (Some(401), "401 Unauthorized"));
    let over = world.all::<CognitionOut>(&thread).remove(0);
    assert_eq!(over.answered_by.as_deref(), Some("scripted by a list"));
    let charges = world.all::<Charge>(&thread);
    let settled = charges.iter().find(|it| it.settled).unwrap();
    assert_eq!((settled.spent_micros, &settled.model), (Some(210), &over.answered_by));
    assert_eq!(charges[0].model.as_deref(), Some("failover of large, small"));
}

#[test]
fn tokens_that_a_provider_kept_or_reasoned_with_stand_in_the_turns_end() {
    let mut usage = Usage::new(1_000, 100);
    (usage.cached, usage.reasoning) = (800, 60);
    for (usage, expected) in [(usage, (Some(800), Some(60))), (Usage::new(9, 1), (None, None))] {
        let world = World::new(1);
        let oracle = || {
            let reply = Script::text("<response>Here I am.</response>").usage(usage);
            Agent::new("oracle", Arc::new(Scripted::replies([reply])))
        };
        let pump = world.start([oracle()]);
        let thread = world.tell(&pump, oracle().ask("Go.").unwrap(), Duration::from_secs(1));
        let over = world.all::<CognitionOut>(&thread).remove(0);
        assert_eq!((over.tokens_cached, over.tokens_reasoning), expected);
        assert_eq!(over.tokens_cache_written, None);
        assert_eq!(world.replay(oracle(), &thread).difference, None);
    }
}
