//! Updates of metadata that several called agents share with their caller at the same time.
//! Triggers compare each update with the one before it.

use serde_json::Value;

use crate::program::Scene;

/// The agents that are called, and how many updates each of them shares.
const CALLED: u64 = 5;
const UPDATES: u64 = 8;

/// A lead whose metadata five other agents change, each update to another number.
fn scene() -> Scene {
    let scene = Scene::new();
    let workflow = |name: &str, fire: &str| {
        let trigger = format!("{{conditions: \"metadata.n > 0\", fire: {fire}}}");
        let step = "{name: a, target: echo, parameters: {text: \"${trigger.metadata.n}\"}}";
        let text = format!("kind: Workflow\nname: {name}\ntrigger: {trigger}\nsteps: [{step}]\n");
        scene.write(&format!("{name}.yml"), text);
    };
    workflow("change", "on_change");
    workflow("level", "level");
    let fields = "fields: {n: {type: number}}";
    let names: Vec<String> = (1..=CALLED).map(|it| format!("t{it}")).collect();
    let mut models = "models:\n  lead: {use: scripted, file: lead.txt}\n".to_owned();
    let all = names.join(", ");
    let mut listeners = format!(
        "listeners:\n  - {{use: echo}}\n  - {{use: agent, name: lead, model: lead, peers: [{all}], \
         workflows: [change, level], metadata: {{{fields}, children: share}}}}\n"
    );
    let mut calls = "%% reply\n".to_owned();
    for (number, name) in (1..).zip(&names) {
        models += &format!("  {name}: {{use: scripted, file: {name}.txt}}\n");
        listeners +=
            &format!("  - {{use: agent, name: {name}, model: {name}, metadata: {{{fields}}}}}\n");
        let call = format!("{{\"name\": \"{name}\", \"parameters\": {{\"text\": \"Go.\"}}}}");
        calls +=
            &format!("<action mode=\"async\" type=\"agent\" id=\"c{number}\">{call}</action>\n");
        let update = |it: u64| format!("<metadata>{{\"n\": {}}}</metadata>", number * 100 + it);
        let updates: String = (0..UPDATES).map(update).collect();
        scene.write(&format!("{name}.txt"), format!("%% reply\n{updates}<response>.</response>\n"));
    }
    let waits: String = (1..=CALLED).map(|it| format!("$c{it}")).collect();
    scene.write("lead.txt", format!("{calls}<response>{waits}</response>\n"));
    let include = "include: [change.yml, level.yml]\n";
    scene.write("organism.yaml", format!("{include}{models}{listeners}"));
    scene
}

fn payload(entry: &Value) -> &str {
    entry["payload"].as_str().unwrap_or_default()
}

/// The decisions of an entry that fire this trigger.
fn fires(entry: &Value, rule: &str) -> usize {
    let name = format!("rule=\"{rule}\"");
    let decisions = payload(entry).split("<decision ").skip(1);
    let fires = decisions.filter(|it| it.contains("fires=\"true\"") && it.contains(&name));
    if entry["name"] == "triggers-decided" { fires.count() } else { 0 }
}

#[test]
fn each_update_is_compared_with_the_one_before_and_one_run_is_at_work_at_a_time() {
    let scene = scene();
    let server = scene.serve(&[]);
    let ask = "<lead xmlns=\"https://xml-pipeline.org/ns/lead/v1\">Go.</lead>";
    let mut batches = 0;
    for _ in 0..8 {
        let ran = scene.pipe(&["send", "--json", "--connect", &server.address], ask).code(0);
        let thread = ran.objects()[0]["thread"].as_str().unwrap().to_owned();
        let all = scene.run(&["show", &thread, "--json"]).code(0).objects();
        let changed: usize = all.iter().map(|it| fires(it, "change")).sum();
        assert_eq!(changed as u64, CALLED * UPDATES, "{thread}");
        let (mut at_work, mut threads) = (0, Vec::new());
        for entry in &all {
            at_work += fires(entry, "level");
            assert!(at_work <= 1, "{thread}: {entry}");
            if entry["name"] == "thread-result" && payload(entry).contains(".level") {
                at_work -= 1;
            }
            threads.push(entry);
        }
        // Decisions on several updates have the first one as their cause.
        let decided = all.iter().filter(|it| it["name"] == "triggers-decided");
        let is_own = |it: &&Value| {
            let cause = it["cause"].as_str().and_then(|it| it.rsplit('/').next()).unwrap_or("");
            payload(it).contains(&format!(" of=\"{cause}\""))
        };
        batches += decided.filter(|it| !is_own(it)).count();
        let history = scene.run(&["metadata", &thread, "--history"]).code(0);
        assert!(!history.out.contains("it was refused"), "{}", history.out);
        scene.run(&["replay", &thread]).code(0);
    }
    assert!(batches > 0, "no two updates were decided on together");
}
