//! What turns reserve and settle of a tree's budget, and how an agent ends when its budget is
//! spent.

use pumphouse::engine::Identity;
use pumphouse::listeners::agent::settings::Settings;
use pumphouse::listeners::agent::words::{CognitionIn, CognitionOut, Interrupt, Response, Stopped};
use pumphouse::model::{Kind, Price, Usage};
use pumphouse::wire::budget::{BudgetKey, BudgetWarning, Charge, RaiseBudget};

use super::world::World;
use super::*;

const MORE: &str = "<response final=\"false\">More.</response>";

/// The oracle with this model, whose replies have at most so many tokens.
fn bounded(world: &World, model: Scripted, max_tokens: u32) -> Agent {
    let settings = Settings { max_tokens: Some(max_tokens), ..Settings::default() };
    Agent::new("oracle", Arc::new(world.timed(model))).peers(["tool"]).settings(settings)
}

/// Asks it, and lets the world come to rest; what it did then is what it does in a replay.
fn asked(world: &World, agent: &Agent) -> ThreadId {
    let pump = world.start([agent.clone()]);
    let thread = world.tell(&pump, agent.ask("Go.").unwrap(), Duration::ZERO);
    world.sim.rest().unwrap();
    drop(pump);
    assert_eq!(world.replay(agent.clone(), &thread).difference, None);
    thread
}

/// What was charged and not refused.
fn charges(world: &World, thread: &ThreadId) -> Vec<Charge> {
    let entries = world.entries(thread);
    let booked = entries.iter().filter(|it| !it.flags.contains(Flags::REFUSED));
    let charge = |it: &Arc<pumphouse::log::Entry>| {
        let element = Element::from_canonical(it.body.clone()).unwrap();
        (it.name == Charge::NAME).then(|| Charge::read(element.view()).unwrap())
    };
    booked.filter_map(charge).collect()
}

fn spent(world: &World, thread: &ThreadId) -> i64 {
    charges(world, thread).iter().map(|it| it.tokens).sum()
}

fn stopped(world: &World, thread: &ThreadId) -> (String, String) {
    let all = world.all::<Stopped>(thread);
    let [Stopped { reason, text, .. }] = &all[..] else { panic!("{all:?}") };
    (reason.clone(), text.clone())
}

#[test]
fn a_turn_reserves_an_estimate_and_settles_what_its_provider_says() {
    let world = World::new(1);
    let script = Script::text("<response>42</response>").usage(Usage::new(700, 30));
    let agent = bounded(&world, Scripted::replies([script]), 500);
    let thread = asked(&world, &agent);
    let prompt = world.all::<CognitionIn>(&thread)[0].bytes.div_ceil(4);
    let all = charges(&world, &thread);
    let [reserved, settled] = &all[..] else { panic!("{all:?}") };
    let model = Some("scripted by a list".to_owned());
    let expected = Charge {
        turns: 1,
        tokens: i64::try_from(prompt).unwrap() + 500,
        model: model.clone(),
        tokens_in: Some(prompt),
        tokens_out: Some(500),
        ..Charge::default()
    };
    assert_eq!(*reserved, expected);
    let expected = Charge {
        tokens: 730 - reserved.tokens,
        settled: true,
        model,
        tokens_in: Some(700),
        tokens_out: Some(30),
        ..Charge::default()
    };
    assert_eq!(*settled, expected);
    assert_eq!(spent(&world, &thread), 730);
}

#[test]
fn what_no_provider_counts_is_estimated_and_says_so() {
    let world = World::new(1);
    let agent = bounded(&world, Scripted::replies(["<response>42</response>"]), 500);
    let thread = asked(&world, &agent);
    let prompt = world.all::<CognitionIn>(&thread)[0].bytes.div_ceil(4);
    let settled = &charges(&world, &thread)[1];
    assert_eq!(settled.estimated, Some(true));
    assert_eq!((settled.tokens_in, settled.tokens_out), (Some(prompt), Some(6)));
    assert_eq!(spent(&world, &thread), i64::try_from(prompt + 6).unwrap());
}

#[test]
fn a_request_that_is_refused_costs_nothing_and_one_that_breaks_off_is_estimated() {
    for (script, is_free) in [
        (Script::text("x").fails(0, Kind::Unreachable), true),
        (Script::text("x").fails(0, Kind::RateLimited), true),
        (Script::text("<thought>So</thought>").fails(10, Kind::Cut), false),
    ] {
        let world = World::new(1);
        let agent = bounded(&world, Scripted::new(move |_: &Prompt, _| script.clone()), 500);
        let thread = asked(&world, &agent);
        assert_eq!(stopped(&world, &thread).0, "model");
        assert_eq!(spent(&world, &thread) == 0, is_free);
        let settled = charges(&world, &thread).into_iter().filter(|it| it.settled);
        assert!(settled.map(|it| it.estimated.is_none()).all(|it| it == is_free));
    }
}

#[test]
fn d1_a_budget_of_tokens_ends_an_agent_with_one_last_turn_that_fits() {
    let mut world = World::new(1);
    world.limits.tree_tokens_max = 3_500;
    let model = Scripted::new(|_: &Prompt, _| Script::text(MORE).usage(Usage::new(690, 10)));
    let agent = bounded(&world, model, 1_000);
    let thread = asked(&world, &agent);
    assert!(spent(&world, &thread) <= 3_500, "{}", spent(&world, &thread));
    let turns = world.all::<CognitionIn>(&thread);
    let last: Vec<bool> = turns.iter().map(|it| it.is_last == Some(true)).collect();
    assert!(last.iter().position(|it| *it) == Some(last.len() - 1) && last.len() > 2, "{last:?}");
    let bound = turns.last().unwrap().max_tokens.unwrap();
    assert!((256..1_000).contains(&bound), "{bound}");
    for BudgetWarning { percent, used, .. } in world.all::<BudgetWarning>(&thread) {
        let spent = u64::try_from(spent(&world, &thread)).unwrap();
        assert!(used <= spent && used * 100 >= 3_500 * u64::from(percent), "{used} of {spent}");
        assert_eq!(used % 700, 0, "what turns took, and not what they reserved");
    }
    let (reason, text) = stopped(&world, &thread);
    let turns = turns.len();
    let expected = format!("The budget has no room for a turn after turn {turns}.");
    assert_eq!((&*reason, text), ("budget", expected));
}

#[test]
fn a_budget_that_no_whole_turn_fits_leaves_one_last_turn() {
    let mut world = World::new(1);
    world.limits.tree_tokens_max = 3_500;
    let model = Scripted::new(|_: &Prompt, _| Script::text(MORE).usage(Usage::new(690, 10)));
    let agent = Agent::new("oracle", Arc::new(world.timed(model)));
    let thread = asked(&world, &agent);
    let turns = world.all::<CognitionIn>(&thread);
    assert_eq!((turns.len(), turns[0].is_last, spent(&world, &thread)), (1, Some(true), 700));
    let reply = u64::from(turns[0].max_tokens.unwrap());
    assert_eq!(turns[0].bytes.div_ceil(4) + reply, 3_500, "the reply has all that is left");
    assert_eq!(stopped(&world, &thread).0, "budget");
}

#[test]
fn in_a_last_turn_that_the_budget_leaves_no_action_runs_and_an_answer_is_one() {
    let mut world = World::new(1);
    world.limits.tree_tokens_max = 3_500;
    let seen: Arc<std::sync::Mutex<Vec<Prompt>>> = Arc::default();
    let kept = seen.clone();
    let model = Scripted::new(move |prompt: &Prompt, turn| {
        kept.lock().unwrap().push(prompt.clone());
        let action = r#"<action id="a">{"name": "tool", "parameters": {"what": "x"}}</action>"#;
        let text = if turn == 1 { MORE.to_owned() } else { format!("{action}<response>So.") };
        Script::text(text).usage(Usage::new(700, 10))
    });
    let agent = bounded(&world, model, 2_000);
    let thread = asked(&world, &agent);
    let responses = world.all::<Response>(&thread);
    assert_eq!(responses.last().map(|it| (it.is_final, &*it.text)), Some((true, "So.")));
    assert!(world.effects.lock().unwrap().is_empty());
    let prompt = format!("{:?}", seen.lock().unwrap()[1]);
    assert!(prompt.contains("This is your last turn: no action runs."), "{prompt}");
}

#[test]
fn where_no_last_turn_fits_the_agent_stops_with_the_numbers_until_there_is_more() {
    let mut world = World::new(1);
    world.limits.tree_tokens_max = 1_200;
    let model = Scripted::new(|_: &Prompt, turn| {
        let text = if turn == 1 { MORE } else { "<response>Yes.</response>" };
        Script::text(text).usage(Usage::new(900, 100))
    });
    let agent = bounded(&world, model, 100);
    let pump = world.start([agent.clone()]);
    let thread = world.tell(&pump, agent.ask("Go.").unwrap(), Duration::ZERO);
    world.sim.rest().unwrap();
    let (reason, text) = stopped(&world, &thread);
    assert_eq!(reason, "budget");
    assert!(text.ends_with("asked for, 1000 used, the limit is 1200"), "{text}");
    assert_eq!(world.all::<CognitionIn>(&thread).len(), 1);
    let pump = pump.speaking_as(Identity { name: "ops".into(), operator: true });
    let here = pump.in_thread(&thread);
    let raise = RaiseBudget { key: BudgetKey::Tokens, by: Some(5_000), to: None };
    world.sim.run(here.tell(raise)).unwrap().unwrap();
    world.tell(&here, agent.ask("And now?").unwrap(), Duration::ZERO);
    world.sim.rest().unwrap();
    assert_eq!(world.all::<Response>(&thread).last().unwrap().text, "Yes.");
}

#[test]
fn a_budget_of_money_ends_an_agent_whose_model_has_a_price() {
    for price in [None, Some(Price::new(1.0, 10.0))] {
        let mut world = World::new(1);
        world.limits.tree_cost_micros_max = 12_000;
        let model = Scripted::new(|_: &Prompt, _| Script::text(MORE).usage(Usage::new(690, 10)));
        let model = price.into_iter().fold(model, Scripted::with_price);
        let agent = bounded(&world, model, 500);
        let thread = asked(&world, &agent);
        let all = charges(&world, &thread);
        let cost: i64 = all.iter().map(|it| it.cost_micros).sum();
        let said: u64 = all.iter().filter_map(|it| it.spent_micros).sum();
        let (reason, _) = stopped(&world, &thread);
        match price {
            None => assert_eq!((&*reason, cost, said), ("turns", 0, 0)),
            Some(_) => {
                assert_eq!((&*reason, cost), ("budget", i64::try_from(said).unwrap()));
                assert!((6_000..=12_000).contains(&cost), "{cost}");
                assert!(world.all::<CognitionIn>(&thread).last().unwrap().is_last == Some(true));
            }
        }
    }
}

/// Two agents whose turns take two seconds and fit one after the other.
fn pair(world: &mut World) -> [Agent; 2] {
    world.limits.tree_tokens_max = 6_000;
    ["ada", "bob"].map(|name| {
        let script = Script::text("<response>Done.</response>").after(Duration::from_secs(2));
        let script = script.usage(Usage::new(600, 10));
        let model = world.timed(Scripted::new(move |_: &Prompt, _| script.clone()));
        Agent::new(name, Arc::new(model))
    })
}

#[test]
fn a_turn_that_fits_but_beside_anothers_waits_for_it() {
    let mut world = World::new(1);
    let [ada, bob] = pair(&mut world);
    let pump = world.start([ada.clone(), bob.clone()]);
    let thread = world.tell(&pump, ada.ask("Go.").unwrap(), Duration::from_millis(100));
    world.tell(&pump.in_thread(&thread), bob.ask("Go.").unwrap(), Duration::ZERO);
    world.sim.rest().unwrap();
    assert_eq!(world.all::<Response>(&thread).len(), 2, "{:?}", world.story(&thread));
    assert!(world.ms() >= 4_000, "{}", world.ms());
    assert_eq!((spent(&world, &thread), charges(&world, &thread).len()), (1_220, 4));
}

/// A provider may count more than was reserved: then nothing is left for who waits.
#[test]
fn a_turn_that_waits_for_another_which_takes_all_that_is_left_is_refused() {
    let mut world = World::new(1);
    let [_, bob] = pair(&mut world);
    let script = Script::text("<response>Done.</response>").after(Duration::from_secs(2));
    let script = script.usage(Usage::new(7_000, 10));
    let ada = Agent::new("ada", Arc::new(world.timed(Scripted::replies([script]))));
    let pump = world.start([ada.clone(), bob.clone()]);
    let thread = world.tell(&pump, ada.ask("Go.").unwrap(), Duration::from_millis(100));
    world.tell(&pump.in_thread(&thread), bob.ask("Go.").unwrap(), Duration::ZERO);
    world.sim.rest().unwrap();
    assert_eq!(world.all::<Response>(&thread).len(), 1, "{:?}", world.story(&thread));
    assert_eq!(stopped(&world, &thread).0, "budget");
    assert_eq!(spent(&world, &thread), 7_010);
}

#[test]
fn an_interrupt_reaches_a_turn_that_waits_for_its_budget() {
    let mut world = World::new(1);
    let [ada, bob] = pair(&mut world);
    let pump = world.start([ada.clone(), bob.clone()]);
    let thread = world.tell(&pump, ada.ask("Go.").unwrap(), Duration::from_millis(100));
    let here = pump.in_thread(&thread);
    world.tell(&here, bob.ask("Go.").unwrap(), Duration::from_millis(100));
    let bob_here = here.to("bob");
    let stop = bob_here.tell(Interrupt { reason: None });
    world.sim.run(stop).unwrap().unwrap();
    world.sim.run(world.sim.sleep(Duration::from_millis(300))).unwrap();
    assert_eq!(stopped(&world, &thread).0, "interrupted");
    assert!(world.ms() < 1_000, "{}", world.ms());
    world.sim.rest().unwrap();
    let begun = world.all::<CognitionIn>(&thread);
    assert_eq!((world.all::<Response>(&thread).len(), begun.len()), (1, 1));
    assert_eq!(spent(&world, &thread), 610);
    drop(pump);
    assert_eq!(world.replay(bob, &thread).difference, None);
}

#[test]
fn a_stop_while_a_turn_runs_and_another_waits_loses_and_doubles_no_reservation() {
    for at in [50_000, 1_200_000, 1_990_000, 2_050_000, 2_500_000, 4_050_000] {
        let mut world = World::new(3);
        let agents = pair(&mut world);
        let pump = world.start(agents.clone());
        let thread = world.tell(&pump, agents[0].ask("Go.").unwrap(), Duration::ZERO);
        let here = pump.in_thread(&thread);
        world.tell(&here, agents[1].ask("Go.").unwrap(), Duration::from_micros(at));
        world.sim.crash();
        drop((here, pump));
        let pump = world.start(agents.clone());
        world.sim.rest().unwrap();
        drop(pump);
        let story = world.story(&thread);
        assert_eq!(world.all::<CognitionOut>(&thread).len(), 2, "{at}: {story:#?}");
        assert_eq!(spent(&world, &thread), 1_220, "{at}: {story:#?}");
    }
}
