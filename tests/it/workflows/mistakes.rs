//! Mistakes in included files: each is reported with its place in the included file.

use pumphouse::manifest::Manifest;

use crate::program::Scene;

/// Checks a manifest that includes one file.
#[track_caller]
fn check(file: &str, listeners: &str, expected: &[&str]) {
    let scene = Scene::new();
    scene.write("file.yml", file);
    let models = "models: {m: {use: scripted, file: r.txt}}\ndefault_model: m\n";
    scene.write("r.txt", "%% reply\nx\n");
    scene.write("organism.yaml", format!("{models}include: [file.yml]\nlisteners: {listeners}\n"));
    scene.run(&["check"]).code(1).says(expected);
}

/// A workflow with these lines behind its name.
fn workflow(lines: &str) -> String {
    format!("kind: Workflow\nname: report\n{lines}\n")
}

#[test]
fn the_nearest_right_word_is_told() {
    let tools = "[{use: calculate}]";
    let step = |it: &str| workflow(&format!("steps: [{{name: a, target: calculate, {it}}}]"));
    check("kind: Workfow\n", tools, &["file.yml:1:7: `Workfow` is no kind of file", "`Workflow`"]);
    check("name: x\n", tools, &["file.yml:1:1: an included file needs `kind:"]);
    check(
        &step("paramters: {}"),
        tools,
        &["file.yml:3:", "here is no key `paramters`", "`parameters`"],
    );
    check(&step("type: tol"), tools, &["`tool`"]);
    let reference = step("parameters: {expression: \"${step.b}\"}");
    check(&reference, tools, &["references don't begin with `step`; did you mean `steps`?"]);
    let reference = step("parameters: {expression: \"${agent.nmae}\"}");
    check(&reference, tools, &["`agent` has no `nmae`"]);
    let target = workflow("steps: [{name: a, target: calcualte}]");
    check(
        &target,
        tools,
        &["file.yml:3:27: there is no listener `calcualte`; did you mean `calculate`?"],
    );
    let agent = "kind: Agent\nname: coder\nimprot: {tools: [calculate]}\n";
    check(
        agent,
        tools,
        &["file.yml:3:1: an agent's file has no key `improt`; did you mean `import`?"],
    );
    let agent = "kind: Agent\nname: coder\nimport: {tools: [calcualte]}\n";
    check(agent, tools, &["file.yml:3:18: there is no listener `calcualte`"]);
    let agent = "kind: Agent\nname: coder\nimport: {workflows: [./none.yml]}\n";
    check(agent, tools, &["file.yml:3:22: ", "none.yml"]);
}

#[test]
fn what_a_step_can_not_do_is_told() {
    let tools = "[{use: calculate}]";
    let step = |it: &str| workflow(&format!("steps: [{{name: a, {it}}}]"));
    let retry = step("target: calculate, retry_policy: {max_attempts: 7}");
    check(&retry, tools, &["file.yml:3:", "it is from 1 to 6"]);
    let long = step("target: calculate, timeout: 2d");
    check(&long, tools, &["it is more than 0 s and at most 86400 s"]);
    let never = workflow("timeout: 0\nsteps: [{name: a, target: calculate}]");
    check(&never, tools, &["file.yml:3:10: it is more than 0 s"]);
    let own = step("target: calculate, parameters: {expression: \"${steps.a}\"}");
    check(&own, tools, &["`a` doesn't come before `a`, so it has no result"]);
    let round = step("target: calculate, parameters: {expression: \"1 + $(trigger.x)\"}");
    check(&round, tools, &["a reference is written with braces, as in ${trigger.x}"]);
    let decision =
        step("type: decision, condition: true, timeout: 1s, then: [{name: b, target: calculate}]");
    check(&decision, tools, &["a decision and a barrier can't fail, and call nobody"]);
    let name = "kind: Workflow\nname: trigger\nsteps: [{name: a, target: calculate}]\n";
    check(name, tools, &["file.yml:2:7: `trigger` is a word of the pump's own"]);
}

#[test]
fn a_value_is_one_argument_of_a_program() {
    let tools = "[{use: shell, settings: {programs: [sh]}}]";
    let step = |command: &str| {
        let parameters = format!("parameters: {{command: {command}}}");
        workflow(&format!("steps: [{{name: a, target: shell, {parameters}}}]"))
    };
    let within = "a value is an argument of its own, or stands behind a name and `=`, and not \
                  within `echo ${trigger.text}`";
    let advice = "list each value as an argument of its own";
    check(&step("[sh, -c, \"echo ${trigger.text}\"]"), tools, &["file.yml:3:", within, advice]);
    check(&step("\"${trigger.all}\""), tools, &["would be all of them"]);
}

#[test]
fn a_trigger_must_fit_the_fields_of_the_agents_that_it_watches() {
    let file =
        workflow("trigger: {conditions: {status: CODIGN}}\nsteps: [{name: a, target: calculate}]");
    let agent = |more: &str| {
        format!(
            "[{{use: calculate}}, {{use: agent, name: coder, {more}metadata: {{fields: {{status: \
             {{values: [IDLE, CODING], default: IDLE}}}}}}}}]"
        )
    };
    let watching = agent("workflows: [report], ");
    check(&file, &watching, &["file.yml:3:23: for the agent `coder`", "did you mean \"CODING\"?"]);
    check(&file, &agent(""), &["file.yml:3:10: the trigger of `report` watches no agent"]);
    let unknown = agent("workflows: [reprot], ");
    check(&file, &unknown, &["there is no workflow `reprot`; did you mean `report`?"]);
}

#[test]
fn workflows_that_run_each_other_are_refused() {
    let file = workflow("steps: [{name: a, type: workflow, target: report}]");
    check(&file, "[{use: calculate}]", &["a run of `report` would begin another run of `report`"]);
}

#[test]
fn a_pattern_that_matches_nothing_is_told() {
    let scene = Scene::new();
    scene.write("organism.yaml", "include: [none/*.yml, \"*/x.yml\", \"w*.yml\"]\n");
    let ran = scene.run(&["check"]).code(1);
    ran.says(&["organism.yaml:1:11: ", "none", "only the file name", "no file matches"]);
    let builder = pumphouse::builder();
    let environment = |_: &str| Some("s3cr3t/VALUE[".to_owned());
    for pattern in ["${TK}*.yml", "${TK}/*.yml", "./${TK}/a?.yml"] {
        let text = format!("include: [\"{pattern}\"]\n");
        let read = Manifest::read("o.yaml".as_ref(), text.as_ref(), &environment, &builder);
        let told = read.err().unwrap().to_string();
        assert!(told.contains(&format!("{pattern}: ")), "{told}");
        assert!(!told.contains("s3cr3t") && !told.contains("VALUE"), "{told}");
    }
}

#[test]
fn workflows_that_run_each_other_in_a_circle_are_refused_each_at_its_place() {
    let scene = Scene::new();
    for (name, target) in [("one", "two"), ("two", "three"), ("three", "one")] {
        let step = format!("{{name: a, type: workflow, target: {target}}}");
        let file = format!("kind: Workflow\nname: {name}\nsteps: [{step}]\n");
        scene.write(&format!("{name}.yml"), file);
    }
    scene.write("organism.yaml", "include: [one.yml, two.yml, three.yml]\n");
    scene.run(&["check"]).code(1).says(&[
        "one.yml:3:8: a run of `one` would begin another run of `one`\n  it runs three, two",
        "two.yml:3:8: a run of `two`",
        "three.yml:3:8: a run of `three`",
    ]);
}

#[test]
fn what_a_workflow_refers_to_of_metadata_must_be_there_at_one_of_its_agents() {
    let agent = |name: &str, fields: &str| {
        let metadata = format!("metadata: {{fields: {{{fields}}}}}");
        format!("{{use: agent, name: {name}, workflows: [report], {metadata}}}")
    };
    let coder = agent("coder", "mode: {values: [FAST, SAFE]}");
    let file = |condition: &str, text: &str| {
        let step = format!(
            "{{name: a, target: calculate, condition: \"{condition}\", parameters: {{expression: \
             \"{text}\"}}}}"
        );
        workflow(&format!("steps: [{step}]"))
    };
    let tools = format!("[{{use: calculate}}, {coder}]");
    check(
        &file("metadata.mdoe == 'FAST'", "1"),
        &tools,
        &["file.yml:3:", "for the agent `coder`: ", "`metadata` has no `mdoe`"],
    );
    check(
        &file("metadata.mode == 'SAFF'", "1"),
        &tools,
        &["`metadata.mode` is one of FAST, SAFE, never \"SAFF\""],
    );
    check(
        &file("true", "${metadata.moed}"),
        &tools,
        &["${metadata.moed}: metadata has no moed; did you mean mode?"],
    );
    let both =
        format!("[{{use: calculate}}, {coder}, {}]", agent("tester", "moed: {type: number}"));
    let scene = Scene::new();
    scene.write("file.yml", file("true", "${metadata.moed}"));
    scene.write("r.txt", "%% reply\nx\n");
    let models = "models: {m: {use: scripted, file: r.txt}}\ndefault_model: m\n";
    scene.write("organism.yaml", format!("{models}include: [file.yml]\nlisteners: {both}\n"));
    scene.run(&["check"]).code(0);
}

/// The mistakes that `check --json` tells of a manifest, each with its file and its path.
fn told(manifest: &str, file: &str) -> Vec<(String, String)> {
    let scene = Scene::new();
    scene.write("r.txt", "%% reply\nx\n");
    scene.write("file.yml", file);
    let models = "models: {m: {use: scripted, file: r.txt}}\ndefault_model: m\n";
    scene.write("organism.yaml", format!("{models}{manifest}"));
    let word = |it: &serde_json::Value| it.as_str().unwrap().to_owned();
    let all = scene.run(&["check", "--json"]).code(1).objects();
    all.iter().map(|it| (word(&it["file"]), word(&it["path"]))).collect()
}

#[test]
fn the_path_of_a_mistake_in_an_included_agent_begins_with_a_key() {
    let agent = "kind: Agent\nname: coder\nimport: {tools: [calcualte]}\ngrants: [nothing]\n\
                 final_payloads: [nothing]\ncontext_feeds: [{id: a, source: {type: tool, name: \
                 nobody}}]\n";
    let told = told("include: [file.yml]\nlisteners: [{use: calculate}]\n", agent);
    let mut paths: Vec<&str> = told.iter().map(|it| &*it.1).collect();
    paths.sort_unstable();
    let expected = ["context_feeds[0].source.name", "final_payloads[0]", "grants[0]", "peers[0]"];
    assert_eq!(paths, expected);
}

#[test]
fn a_mistake_of_a_file_that_is_named_twice_is_told_once() {
    for file in ["name: x\n", "kind: Workfow\n", "kind: [\n"] {
        let told = told("include: [file.yml, \"*.yml\"]\nlisteners: []\n", file);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].0.ends_with("file.yml"), "{told:?}");
    }
}
