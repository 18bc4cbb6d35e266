//! The examples of *Streaming Execution Protocol* that call an agent. Here every listener that they
//! call is an agent, and answers with text made of the message that it got.

use std::fs;
use std::path::{Path, PathBuf};

use pumphouse::sim::{Disk, Sim};

use super::examples::CALLED;
use super::*;
use crate::reply::protocol::examples;

/// Answers in words made of what it was sent.
fn speaker((name, _): (&'static str, &'static str)) -> Listener {
    let text = format!(
        "%% script repeat=last\n%% reply heard={{words}}\n\
         <response>what {name} says of ({{words}})</response>"
    );
    Agent::new(name, Arc::new(Scripted::parse(&text).unwrap())).listener()
}

/// What the asker is told at last.
fn report(example: &Path) -> String {
    let reply = fs::read_to_string(example).unwrap();
    let sim = Sim::new(1);
    let disk = Disk::new(&sim);
    let model = Scripted::new(move |_: &Prompt, turn| match turn {
        1 => reply.clone(),
        _ => "<response>That is all.</response>".to_owned(),
    });
    let agent = Agent::new("researcher", Arc::new(model)).peers(CALLED.map(|(name, _)| name));
    let question = agent.ask("Write.").unwrap();
    let all =
        ((core(), agent_support()), Vec::from(CALLED.map(speaker)), agent.listener(), disk.log());
    let pump = pumphouse::builder().with(all).workers(1).build().unwrap().start_on(&sim);
    let asked = sim.run(pump.tell_element(question)).unwrap().unwrap();
    sim.rest().unwrap();
    let read = disk.kept().read(&asked.thread, 0, u64::MAX, 10_000);
    let entries = sim.run(read).unwrap().unwrap();
    let entries = entries.iter().map(|it| <Entry as From<&pumphouse::log::Entry>>::from(it));
    let told = entries.filter(|it| it.to() == Some("console"));
    let mut told = told.filter_map(|it| it.decode_if::<Response>());
    told.find(|it| it.is_final).unwrap().text
}

/// How often each of those who are called is heard in a report, where they are.
fn heard(report: &str) -> Vec<(&'static str, usize)> {
    let count = |name| report.matches(&format!("what {name} says of (")).count();
    let each = CALLED.iter().map(|(name, _)| (*name, count(name)));
    each.filter(|(_, count)| *count > 0).collect()
}

#[test]
fn each_source_of_the_complete_example_is_heard_once_in_the_report() {
    let is_complete = |it: &PathBuf| it.ends_with("execution-21.txt");
    let example = examples().into_iter().find(is_complete).unwrap();
    let report = report(&example);
    let sources = ["arxiv_search", "comprehensive_analyzer", "news_api", "web_scraper"];
    assert_eq!(heard(&report), sources.map(|it| (it, 1)), "{report}");
    assert!(!report.contains("{\"") && !report.contains("true,"), "no JSON of ours: {report}");
    for of in ["artificial intelligence", "machine learning", "https://en.wikipedia.org/wiki/AI"] {
        assert_eq!(report.matches(of).count(), 1, "{report}");
    }
}

#[test]
fn nobody_who_is_called_is_heard_twice_in_a_report() {
    let calls_an_agent = |it: &PathBuf| fs::read_to_string(it).unwrap().contains("type=\"agent\"");
    let mut count = 0;
    for example in examples().into_iter().filter(calls_an_agent) {
        let report = report(&example);
        let twice: Vec<_> = heard(&report).into_iter().filter(|it| it.1 > 1).collect();
        assert_eq!(twice, [], "{}: {report}", example.display());
        count += 1;
    }
    assert!(count >= 9, "only {count} examples");
}
