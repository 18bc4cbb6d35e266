//! The values of the shipped tools' answers, as people and models read them.

use std::path::Path;
use std::process::Command;

use super::site::{Site, page};
use super::{asked, in_order, organism};
use crate::program::Scene;

const CODE: &str = "fn main() {\n    println!(\"hi & <b>bye</b>\");\n}\n";

/// The contents of the messages of an agent's last prompt, one after another.
#[track_caller]
fn prompt(scene: &Scene) -> String {
    let threads = scene.run(&["threads", "--json"]).code(0).objects();
    // With an MCP server, the organism's own thread stands among them.
    let names = threads.iter().filter_map(|it| it["thread"].as_str());
    let thread = { names }.find(|it| it.starts_with("sess-")).unwrap();
    let entries = scene.run(&["show", thread, "--json"]).code(0).objects();
    let last = entries.iter().filter_map(|it| it["seq"].as_u64()).max().unwrap();
    let id = format!("{thread}/{last}");
    let prompt = scene.run(&["prompt", &id, "--json"]).code(0).objects().pop().unwrap();
    let messages = prompt["messages"].as_array().unwrap().clone();
    let contents = messages.iter().filter_map(|it| it["content"].as_str());
    contents.collect::<Vec<_>>().join("\n")
}

/// The result of an action in a prompt, with its tags.
#[track_caller]
fn result<'a>(prompt: &'a str, id: &str) -> &'a str {
    let at = prompt.find(&format!("<action-result id=\"{id}\"")).unwrap_or_else(|| panic!("{id}"));
    let end = "</action-result>";
    &prompt[at..at + prompt[at..].find(end).unwrap() + end.len()]
}

fn has_python() -> bool {
    let has = Command::new("python3").arg("--version").output().is_ok();
    if !has {
        crate::skipped("no python3");
    }
    has
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_has_what_a_person_wants_to_read() {
    let site = Site::start(|path| match path {
        "/page.html" => page("text/html", "<h1>Tea</h1><p>Warm the pot.</p>"),
        _ => page("application/json", r#"{"price": 2.5, "status": "in stock"}"#),
    });
    let site = site.await;
    let hosts = format!("settings: {{hosts: [\"{}\"]}}", site.host());
    let tools = [
        ("web_scraper", format!("use: fetch, {hosts}")),
        ("api", format!("use: http, {hosts}")),
        ("files", "use: files, settings: {root: work}".to_owned()),
        ("redis_cache", "use: keyvalue, settings: {file: cache.db}".to_owned()),
        ("sh", "use: shell, settings: {programs: [printf], root: work}".to_owned()),
    ];
    let tools: Vec<(&str, &str)> = tools.iter().map(|(name, rest)| (*name, &**rest)).collect();
    let replies = r#"%% reply
<action type="tool" mode="async" id="fetch">
{"name": "web_scraper", "parameters": {"url": "URL/page.html"}, "output_key": "webpage"}
</action>
<action id="api">{"name": "api", "parameters": {"url": "URL/x.json", "method": "GET"}}</action>
<action id="read">{"name": "files.read", "parameters": {"path": "code.rs"}}</action>
<action id="tree">{"name": "files.tree", "parameters": {"format": "paths"}}</action>
<action id="list">{"name": "files.list", "parameters": {}}</action>
<action id="hits">{"name": "files.search", "parameters": {"pattern": "println"}}</action>
<action id="run">{"name": "sh", "parameters": {"command": ["printf", "a\nb"]}}</action>
<action id="set">{"name": "redis_cache", "parameters":
{"operation": "set", "key": "k", "value": "{\"deep\": [7]}"}}</action>
<action id="cached">{"name": "redis_cache", "parameters": {"operation": "get", "key": "k"}}
</action>
%% reply
<response>The page: $webpage|
api: $api, ${api.price}, ${api.status}, ${api.body.status}|
read: ${read}tree: ${tree}list: ${list}hits: ${hits}run: $run|
cached: $cached, ${cached.deep[0]}, ${cached.found}|</response>
"#;
    let scene = organism(&tools, &replies.replace("URL", &site.url("")));
    scene.write("work/code.rs", CODE);
    scene.write("work/sub/a.txt", "");
    let told = asked(&scene, "Go.");
    let said = |text: &str| serde_json::to_string(text).unwrap().trim_matches('"').to_owned();
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let expected = [
        "The page: # Tea\n\nWarm the pot.|",
        "api: {\"price\":2.5,\"status\":\"in stock\"}, 2.5, 200, in stock|",
        &format!("read: {CODE}tree: code.rs\nsub/a.txt\nlist: code.rs (47 bytes)\nsub/\n"),
        "hits: code.rs:2:     println!(\"hi & <b>bye</b>\");\nrun: a\nb|",
        "cached: {\"deep\": [7]}, 7, true|",
    ];
    let expected: Vec<String> = expected.iter().map(|it| said(&escaped(it))).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    let at = told.rfind("<response").unwrap();
    in_order(&told[at..], &expected);
}

#[test]
fn code_and_logs_reach_a_model_once_and_as_they_are() {
    if !has_python() {
        return;
    }
    let tools = [
        ("files", "use: files, settings: {root: work}"),
        ("sh", "use: shell, settings: {programs: [cat], root: work}"),
        ("show", "use: command, settings: {run: [cat, code.py], root: work, input: text}"),
        ("mcp", "use: mcp, settings: {command: [python3, server.py], tools: [say, both]}"),
    ];
    let replies = r#"%% reply
<action id="files">{"name": "files.read", "parameters": {"path": "code.py"}}</action>
<action id="sh">{"name": "sh", "parameters": {"command": ["cat", "code.py"]}}</action>
<action id="show">{"name": "show", "parameters": {"text": ""}}</action>
<action id="both">{"name": "mcp", "parameters": {"words": "x"}}</action>
%% reply
<response>Done, ${both.content.length}.</response>
"#;
    let code = "if a < b && c == \"d\\n\":\n\tsay('two') # <p>\n".repeat(150);
    let scene = organism(&tools, replies);
    scene.write("work/code.py", &code);
    let server = include_str!("mcp/server.py");
    let both = "    if name == \"both\":\n        code = open(\"work/code.py\").read()\n        \
                return {**text(code), \"structuredContent\": {\"content\": {\"text\": code, \
                \"length\": len(code)}}}\n    if name == \"count\":";
    let server = server.replace("    if name == \"count\":", both);
    let described = "        {\"name\": \"both\", \"inputSchema\": NOTHING},\n        \
                     {\"name\": \"count\"";
    let server = server.replace("        {\"name\": \"count\"", described);
    scene.write("server.py", server);
    let manifest = std::fs::read_to_string(scene.path("organism.yaml")).unwrap();
    scene.write("organism.yaml", manifest.replace("tools: [say, both]", "tools: [both]"));
    scene.write("replies.txt", replies.replace("{\"words\": \"x\"}", "{}"));
    let told = asked(&scene, "Go.");
    assert!(told.contains(&format!("Done, {}.", code.len())), "{told}");
    let prompt = prompt(&scene);
    for id in ["files", "sh", "show", "both"] {
        let result = result(&prompt, id);
        assert!(result.contains(code.trim_end()), "{id}: {result}");
        assert!(result.len() * 10 <= code.len() * 11, "{id}: {} bytes", result.len());
    }
}

#[test]
fn what_else_an_answer_says_stands_beside_its_value() {
    let tools = [
        ("files", "use: files, settings: {root: work, limits: {read_bytes_max: 64}}"),
        ("sh", "use: shell, settings: {programs: [sh], root: work}"),
        ("db", "use: sql, settings: {file: shop.db}"),
    ];
    let replies = r#"%% reply
<action id="read">{"name": "files.read", "parameters": {"path": "long.txt"}}</action>
<action id="warns">
{"name": "sh", "parameters": {"command": ["sh", "-c", "echo out; echo oh >&2"]}}</action>
<action id="fails">
{"name": "sh", "parameters": {"command": ["sh", "-c", "echo out; echo oh >&2; exit 3"]}}</action>
<action id="rows">{"name": "db", "parameters": {"query": "SELECT name, price FROM item"}}</action>
%% reply
<response>$rows ${rows[0][0]} ${rows.column[1]}</response>
"#;
    let scene = organism(&tools, replies);
    scene.write("work/long.txt", "0123456789\n".repeat(20));
    let shop = rusqlite::Connection::open(scene.path("shop.db")).unwrap();
    shop.execute_batch("CREATE TABLE item (name, price); INSERT INTO item VALUES ('tea', 2)")
        .unwrap();
    let told = asked(&scene, "Go.");
    in_order(&told, &["<response", "[[\\\"tea\\\",2]] tea price"]);
    let prompt = prompt(&scene);
    let check = |id: &str, expected: &str| assert_eq!(result(&prompt, id), expected);
    let lines = "0123456789\n".repeat(5);
    let open = |id: &str, status: &str| format!("<action-result id=\"{id}\" status=\"{status}\">");
    let end = "</action-result>";
    check("read", &format!("{}{lines}\n[next: 6]{end}", open("read", "ok")));
    check("warns", &format!("{}out\n\n[err: oh]{end}", open("warns", "ok")));
    let why = "sh ended with the exit code 3\n[out: out]\n[err: oh]";
    check("fails", &format!("{}{why}{end}", open("fails", "failed")));
    check("rows", &format!("{}[[\"tea\",2]]\n[column: name, price]{end}", open("rows", "ok")));
}

#[test]
fn a_feed_puts_nothing_into_a_programs_command_line() {
    let tools = [("sh", "use: shell, settings: {programs: [sh], root: work}")];
    let replies = "%% reply\n<metadata>{\"topic\": \"-c\"}</metadata>\n\
        <response final=\"false\">one</response>\n%% reply\n<response>$look</response>\n";
    let scene = organism(&tools, replies);
    scene.write("work/x", "");
    let manifest = std::fs::read_to_string(scene.path("organism.yaml")).unwrap();
    let feed = |command: &str| {
        let source = format!("{{type: tool, name: sh, params: {{command: [{command}]}}}}");
        let metadata = "metadata: {fields: {topic: {type: string}}}";
        format!("{metadata}, context_feeds: [{{id: look, source: {source}}}], peers:")
    };
    let within = feed("sh, -c, \"echo ${metadata.topic}\"");
    scene.write("organism.yaml", manifest.replace("peers:", &within));
    scene.run(&["check"]).code(1).says(&["not within `echo ${metadata.topic}`"]);
    let option = feed("sh, \"${metadata.topic}\"");
    scene.write("organism.yaml", manifest.replace("peers:", &option));
    let told = asked(&scene, "Go.");
    in_order(&told, &["$.command[1] begins with `-`"]);
}

#[test]
fn a_name_of_several_payloads_means_the_one_that_its_parameters_fit() {
    let git = |name: &str| Command::new("git").arg(name).output();
    if git("--version").is_err() {
        return crate::skipped("no git");
    }
    let tools = [
        ("filesystem", "use: files, settings: {root: work}"),
        ("git", "use: git, settings: {root: work}"),
        ("git_tree", "use: git, settings: {root: work}"),
        ("git_log", "use: git, settings: {root: work}"),
    ];
    let replies = r#"%% reply
<action id="fs">{"name": "filesystem", "parameters": {"path": "ROOT", "format": "tree"}}</action>
<action id="made">{"name": "git", "parameters": {"message": "Auto-commit"}}</action>
<action id="files" depends_on="made">
{"name": "git_tree", "parameters": {"path": "ROOT", "max_depth": 3}}</action>
<action id="log" depends_on="made">
{"name": "git_log", "parameters": {"count": 10, "format": "oneline"}}</action>
<action id="what">{"name": "git", "parameters": {}}</action>
<action id="which">{"name": "filesystem", "parameters": {"path": "a"}}</action>
%% reply
<response>fs: ${fs}files: ${files}log: ${log}</response>
"#;
    let scene = organism(&tools, "");
    scene.write("work/src/main.rs", CODE);
    let root = scene.path("work").canonicalize().unwrap();
    scene.write("replies.txt", replies.replace("ROOT", root.to_str().unwrap()));
    let init = Command::new("git").args(["init", "-q", "-b", "main"]).current_dir(&root).status();
    assert!(init.unwrap().success());
    let told = asked(&scene, "Go.");
    let tree = "src/\\n  main.rs\\n";
    let at = told.rfind("<response").unwrap();
    in_order(&told[at..], &[&format!("fs: {tree}files: {tree}log: "), " Auto-commit"]);
    let several =
        "git may be any of git.commit, git.diff, git.log, git.status, git.tree; say which";
    assert!(told.contains(several), "{told}");
    assert!(told.contains("filesystem may be any of filesystem."), "{told}");
}

#[test]
fn a_workflow_is_its_one_output_or_the_one_that_it_names() {
    let gather = |outputs: &str| {
        let scene = Scene::new();
        scene.write("docs/guide.md", "# Guide\n\nWarm the pot.\n");
        scene.write(
            "doc_aggregator.yml",
            format!(
                "kind: Workflow\nname: doc_aggregator\nsteps:\n  - name: gather\n    target: \
                 documents\n    parameters: {{paths: \"${{trigger.paths}}\"}}\n{outputs}\n"
            ),
        );
        scene.write(
            "organism.yaml",
            "include: [doc_aggregator.yml]\nmodels: {m: {use: scripted, file: replies.txt}}\n\
             listeners:\n  - {use: documents, settings: {root: .}}\n  - use: agent\n    name: \
             coder\n    model: m\n    context_feeds:\n      - id: docs\n        type: on_demand\n\
             \x20       source: {type: workflow, name: doc_aggregator, params: {paths: [docs/]}}\n",
        );
        scene.write("replies.txt", "%% reply\n<response>$docs</response>\n");
        scene
    };
    let scene = gather("outputs: {documents: \"${steps.gather}\"}");
    let told = asked(&scene, "Go.");
    let at = told.rfind("<response").unwrap();
    in_order(&told[at..], &[">## docs/guide.md\\n\\n# Guide\\n\\nWarm the pot."]);
    assert!(prompt(&scene).contains("## docs/guide.md\n\n# Guide\n\nWarm the pot."));
    let two = "outputs: {n: \"${steps.gather.documents}\", text: \"${steps.gather}\"}";
    let told = asked(&gather(two), "Go.");
    let at = told.rfind("<response").unwrap();
    in_order(&told[at..], &[">{\\\"n\\\":", "\\\"text\\\":"]);
    let told = asked(&gather(&format!("{two}\nvalue: text")), "Go.");
    let at = told.rfind("<response").unwrap();
    in_order(&told[at..], &[">## docs/guide.md"]);
    let wrong = gather(&format!("{two}\nvalue: txet"));
    wrong.run(&["check"]).code(1).says(&["there is no output txet; there is n, text"]);
}

#[test]
fn an_authors_template_and_a_files_text_stand_in_a_prompt_as_they_are() {
    let scene = Scene::new();
    scene.write("work/code.rs", CODE);
    scene.write(
        "organism.yaml",
        r#"models: {m: {use: scripted, file: replies.txt}}
listeners:
  - {use: files, settings: {root: work}}
  - use: agent
    name: coder
    model: m
    metadata:
      fields: {status: {values: [A, B], default: A}}
      injection:
        template: |
          Available metadata fields (use <metadata> tag to update) & more:
          - status: {values} (current: {current_value})
    context_feeds:
      - id: code
        type: on_demand
        source: {type: tool, name: files.read, params: {path: code.rs}}
"#,
    );
    scene.write("replies.txt", "%% reply\n<response>$code</response>\n");
    assert!(Path::new(&scene.path("organism.yaml")).exists());
    asked(&scene, "Go.");
    let prompt = prompt(&scene);
    let template = "(use <metadata> tag to update) & more:\n- status: [A, B] (current: A)";
    assert!(prompt.contains(template), "{prompt}");
    assert!(
        prompt.contains(&format!("<context_feed id=\"code\">\n{}", CODE.trim_end())),
        "{prompt}"
    );
}
