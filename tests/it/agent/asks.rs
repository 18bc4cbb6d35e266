//! The prompt of a turn has the name of its agent and the id of its thread.

use std::sync::{Arc, Mutex};

use pumphouse::listeners;
use pumphouse::listeners::agent::Agent;
use pumphouse::log::MemoryLog;
use pumphouse::model::{Bounded, Prompt, Script, Scripted};
use pumphouse::prelude::*;

#[tokio::test]
async fn a_prompt_says_which_agent_asks_and_in_which_thread() {
    let asked = Arc::<Mutex<Vec<Prompt>>>::default();
    let kept = asked.clone();
    let model = Scripted::new(move |prompt: &Prompt, _| {
        kept.lock().unwrap().push(prompt.clone());
        Script::text("<response>Yes.</response>")
    });
    let model = Arc::new(Bounded::new("shared", Arc::new(model)).at_once(1));
    let agents = ["many", "one"].map(|name| Agent::new(name, model.clone()));
    let questions = agents.clone().map(|agent| agent.ask("Ready?").unwrap());
    let log = |builder: &mut Builder| builder.log(Arc::new(MemoryLog::default()));
    let builder = pumphouse::builder().with((listeners::standard(), log));
    let builder = agents.into_iter().fold(builder, |all, agent| all.with(agent.listener()));
    let pump = builder.build().unwrap().start();
    let mut expected = Vec::new();
    for (name, question) in ["many", "one"].into_iter().zip(questions) {
        let answer = pump.ask_element(question).await.unwrap();
        expected.push((Some(name.to_owned()), Some(answer.thread().to_string())));
    }
    pump.shutdown().await.unwrap();
    let asked = asked.lock().unwrap();
    let said = asked.iter().map(|prompt| {
        let text = |it: &Option<Arc<str>>| it.as_deref().map(str::to_owned);
        (text(&prompt.agent), text(&prompt.conversation))
    });
    assert_eq!(said.collect::<Vec<_>>(), expected);
}
