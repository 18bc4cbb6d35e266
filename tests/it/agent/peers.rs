//! What prompts say of an agent's peers: examples that the agent can write exactly as shown.

use pumphouse::listeners::agent::settings::Settings;
use pumphouse::listeners::standard;
use pumphouse::log::Entry as Logged;
use pumphouse::sim::{Disk, Sim};

use super::*;

/// The calls that a prompt shows, in its order, from the peers' part on.
fn examples(system: &str) -> Vec<String> {
    let peers = system.split_once("# Whom you may call").unwrap().1;
    peers.lines().filter(|it| it.starts_with("{\"name\": ")).map(str::to_owned).collect()
}

/// What an agent with these peers, beside an analyst, is told before all else.
fn told(peers: &[String]) -> String {
    let (model, seen) = remembering(["<response>Nothing.</response>"]);
    played(model, peers, "?");
    let mut seen = seen.lock().unwrap();
    seen.remove(0).system
}

/// Asks an agent beside an analyst; what the log has then.
fn played(model: Scripted, peers: &[String], question: &str) -> Vec<Arc<Logged>> {
    let sim = Sim::new(1);
    let disk = Disk::new(&sim);
    let analyst = Agent::new("analyst", Arc::new(Scripted::replies(["<response>So.</response>"])));
    let mut settings = Settings::default();
    // So that the staff's calls are shown like any other peer's.
    settings.abilities.clear();
    let oracle = Agent::new("oracle", Arc::new(model)).settings(settings).peers(peers);
    let question = oracle.ask(question).unwrap();
    let agents = (analyst.listener(), oracle.listener());
    let pump = pumphouse::builder().with((standard(), agents, disk.log())).build().unwrap();
    let pump = pump.start_on(&sim);
    sim.run(pump.tell_element(question)).unwrap().unwrap();
    sim.run(sim.sleep(Duration::from_secs(5))).unwrap();
    drop(pump);
    sim.run(disk.kept().tail(0, 100_000)).unwrap().unwrap()
}

#[test]
fn each_example_of_a_prompt_can_be_written_as_it_stands() {
    let mut peers: Vec<String> = standard().iter().map(|it| it.name().to_owned()).collect();
    peers.push("analyst".to_owned());
    let examples = examples(&told(&peers));
    assert!(examples.len() > 20, "{examples:#?}");
    // What a model can't say it isn't told of, nor what only the machinery says.
    let others = ["fork-thread", "raise-budget", "declare-feeds", "refresh-feeds"];
    assert!(!examples.iter().any(|it| others.iter().any(|other| it.contains(other))));
    for example in examples {
        let reply = format!("<action id=\"a\">\n{example}\n</action>");
        let model = Scripted::new(move |_: &Prompt, turn| match turn {
            1 => reply.clone(),
            _ => "<response>Done.</response>".to_owned(),
        });
        let entries = played(model, &peers, "Do it.");
        // Some of them wait for what doesn't come.
        let is_called =
            entries.iter().any(|it| &*it.from == "action" && it.name.local() != "action");
        assert!(is_called, "{example} wasn't sent: {entries:#?}");
        let wrong = entries.iter().find(|it| {
            let body = String::from_utf8_lossy(&it.body);
            ["notice", "repair"].contains(&it.name.local())
                || it.flags.contains(Flags::REFUSED)
                || ["\"parameters\"", "P0011", "\"ambiguous\""].iter().any(|it| body.contains(it))
                    && it.name.local() == "action-result"
        });
        assert!(wrong.is_none(), "{example}: {wrong:#?}");
    }
}

#[test]
fn an_example_that_holds_any_payload_holds_one_that_the_agent_may_send() {
    for (peers, expected) in [
        (vec!["thread", "calculate"], "<calculate xmlns="),
        (vec!["thread", "echo"], "<echo xmlns="),
        (vec!["thread"], "<oracle xmlns="),
    ] {
        let peers: Vec<String> = peers.into_iter().map(str::to_owned).collect();
        let told = told(&peers);
        let spawn = examples(&told).into_iter().find(|it| it.contains("spawn-thread"));
        assert!(spawn.as_ref().is_some_and(|it| it.contains(expected)), "{peers:?}: {told}");
        assert!(!told.contains("<anything"), "{told}");
    }
}
