//! Feeds of services, as ADR-013 declares them, from the manifest to the prompt.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::site::{Answer, Site, head, page};
use crate::program::{Ran, Scene};

/// An organism with an agent, `tiverton`, whose feeds are these, and which replies so.
fn desk(services: &str, agent: &str, replies: &str) -> Scene {
    let scene = Scene::new();
    scene.write(
        "organism.yaml",
        format!(
            "name: trading-desk\nservices:\n{services}\
             models: {{m: {{use: scripted, file: replies.txt}}}}\n\
             listeners:\n  - use: agent\n    name: tiverton\n    model: m\n{agent}"
        ),
    );
    scene.write("replies.txt", replies);
    scene
}

/// Asks the agent these, each in a session of its own, and gives the last prompt of each.
#[track_caller]
pub(super) fn prompts(scene: &Scene, questions: &[&str]) -> Vec<String> {
    scene.run(&["check"]).code(0);
    let server = scene.serve(&[]);
    for question in questions {
        let ns = "https://xml-pipeline.org/ns/tiverton/v1";
        let ask = format!("<tiverton xmlns=\"{ns}\">{question}</tiverton>\n");
        scene.pipe(&["send", "--connect", &server.address], &ask).code(0);
    }
    drop(server);
    let threads = scene.run(&["threads", "--json"]).code(0).objects();
    let named = |it: &Value| it["thread"].as_str().unwrap().to_owned();
    let sessions = threads.iter().map(named).filter(|it| it.starts_with("sess-"));
    let mut all: Vec<(u64, String)> = sessions
        .map(|thread| {
            let entries = scene.run(&["show", &thread, "--json"]).code(0).objects();
            let begun = entries[0]["at_us"].as_u64().unwrap_or_default();
            let last = format!("{thread}/{}", entries.len());
            (begun, scene.run(&["prompt", &last]).code(0).out)
        })
        .collect();
    all.sort_by_key(|it| it.0);
    all.into_iter().map(|it| it.1).collect()
}

#[track_caller]
fn checked(services: &str, agent: &str) -> Ran {
    desk(services, agent, "%% reply\n<response>Done.</response>\n").run(&["check"])
}

const DONE: &str = "%% reply\n<response>Done.</response>\n";

/// The example of section 3.
const SECTION_3: &str = "    feeds:
      - source: trading-api
        path: /api/v1/market-summary
        ttl: 300
      - source: trading-api
        path: /api/v1/portfolio
        ttl: 30
";

#[tokio::test(flavor = "multi_thread")]
async fn adr_013_section_3_a_manifest_declares_feeds_by_source_path_and_ttl() {
    let site = Site::start(|path| match path {
        "/api/v1/market-summary" => page("text/plain", "Stocks are up."),
        _ => page("application/json", "{\"cash\": 5}"),
    });
    let site = site.await;
    let service = format!("  trading-api: {{url: \"{}\"}}\n", site.url(""));
    let scene = desk(&service, SECTION_3, &DONE.repeat(2));
    for prompt in prompts(&scene, &["One.", "Two."]) {
        super::in_order(
            &prompt,
            &[
                "│ <context_feed id=\"market-summary\">\n│ Stocks are up.\n│ </context_feed>",
                "│ <context_feed id=\"portfolio\">\n│ ```json\n│ {\"cash\": 5}\n│ ```\n",
            ],
        );
    }
    // Section 5: each request names the agent and the pod. The second thread used the cache.
    let asked = site.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    for it in asked {
        assert!(it.contains("x-claw-id: tiverton\r\n"), "{it}");
        assert!(it.contains("x-claw-pod: trading-desk\r\n"), "{it}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn adr_013_section_4_blocks_have_the_markers_of_the_adr() {
    let site = Site::start(|_| page("text/plain", "Fleet nominal. 7 agents healthy. No alerts."));
    let service = format!("  claw-api: {{url: \"{}\"}}\n", site.await.url(""));
    let feeds = "    feed_injection: {form: markers}
    feeds:
      - {name: fleet-alerts, source: claw-api, path: /fleet/alerts}
      - {name: hidden, source: claw-api, path: /hidden, inject: referenced}
";
    let scene = desk(&service, feeds, DONE);
    let prompt = prompts(&scene, &["Go."]).remove(0);
    super::in_order(
        &crate::agent::unmarked(&prompt),
        &[
            "│ --- BEGIN FEED: fleet-alerts (from claw-api, refreshed 20",
            "Z) ---\n│ Fleet nominal. 7 agents healthy. No alerts.\n\
             │ --- END FEED: fleet-alerts ---\n",
        ],
    );
    assert!(!prompt.contains("hidden"), "{prompt}");
    let told = scene.run(&["feeds", "tiverton"]).code(0).out;
    super::in_order(&told, &["hidden", "not in the last prompt: it is there for references only"]);
    let wrong = "    feed_injection: {form: markdown}\n";
    checked(&service, wrong).code(1).says(&["9:28: this is `markdown`, and `xml` or `markers`"]);
    let wrong = "    feed_injection: {refreshed: true}\n";
    checked(&service, wrong).code(1).says(&["9:21: ", "no other form shows times"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_of_a_service_may_show_a_part_of_the_answer() {
    let quotes = r#"{"quotes": [{"symbol": "SAP", "last": 251.4}, {"symbol": "BMW", "last": 82}]}"#;
    let site = Site::start(move |_| page("application/json", quotes)).await;
    let service = format!("  claw-api: {{url: \"{}\"}}\n", site.url(""));
    let feeds = "    feeds:
      - source: claw-api
        path: /quotes
        transform:
          jsonpath: \"$.quotes[?@.symbol == 'SAP']\"
          template: \"SAP: {{ $.last }} EUR\"
";
    let prompt = prompts(&desk(&service, feeds, DONE), &["Go."]).remove(0);
    super::in_order(&prompt, &["<context_feed id=\"quotes\">", "SAP: 251.4 EUR\n"]);
    let wrong = "    feeds: [{source: claw-api, path: /q, transform: {jsonpath: quotes}}]\n";
    let told = &["transform.jsonpath: \"quotes\" is no JSONPath"];
    checked(&service, wrong).code(1).says(told);
}

#[tokio::test(flavor = "multi_thread")]
async fn adr_013_section_6_front_matter_is_stripped_and_limits_are_told() {
    let site = Site::start(|path| match path {
        "/alerts" => page(
            "text/markdown",
            "---\nfeed: fleet-alerts\nrefreshed: 2026-03-19T14:32:00Z\nttl: 60\n---\n\n\
             Fleet nominal. 7 agents healthy. No alerts.\n",
        ),
        "/large" => page("text/plain", "x".repeat(40_000)),
        _ => Answer::Whole(head("503 Service Unavailable", "content-length: 0\r\n")),
    });
    let service = format!("  claw-api: {{url: \"{}\"}}\n", site.await.url(""));
    let feeds = "    feeds:
      - {name: fleet-alerts, source: claw-api, path: /alerts}
      - {source: claw-api, path: /large}
      - {source: claw-api, path: /down}
";
    let scene = desk(&service, feeds, DONE);
    let prompt = prompts(&scene, &["Go."]).remove(0);
    super::in_order(
        &prompt,
        &[
            "│ <context_feed id=\"fleet-alerts\">\n│ Fleet nominal. 7 agents healthy. No alerts.\n",
            "│ <context_feed id=\"large\" status=\"truncated\">\n",
            "│ [Content truncated]\n",
            "│ <context_feed id=\"down\" status=\"unavailable\">\n│ [Feed unavailable]\n",
        ],
    );
    assert!(!prompt.contains("ttl: 60"), "{prompt}");
    let told = scene.run(&["feeds", "tiverton"]).code(0).out;
    super::in_order(
        &told,
        &[
            "  tiverton fleet-alerts  fresh  from claw-api /alerts\n    44 bytes, ",
            " old, fresh for ",
            "; 44 bytes in the last prompt\n",
            "  tiverton large  truncated  from claw-api /large\n    32768 bytes, ",
            "  tiverton down  unavailable  from claw-api /down\n    0 bytes, ",
            "; not in the last prompt: it was unavailable\n",
            "    claw-api answered an error: 127.0.0.1 answers 503 Service Unavailable\n",
        ],
    );
    let all = scene.run(&["feeds", "--json"]).code(0).objects();
    assert_eq!(all[0]["text"], "Fleet nominal. 7 agents healthy. No alerts.\n");
    assert_eq!((all.len(), &all[2]["not_in_prompt"]), (3, &"it was unavailable".into()));
    scene.run(&["feeds", "--values"]).code(0).says(&["  Fleet nominal. 7 agents healthy."]);
    scene.run(&["feeds", "octopus"]).code(1).says(&["octopus has no feeds in any thread"]);
    scene.run(&["feeds", "--thread", "sess-none"]).code(1).says(&["no thread"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn adr_013_section_7_a_master_claw_reads_alerts_and_asks_for_details() {
    let site = Site::start(|path| match path {
        "/fleet/alerts" => page("text/plain", "1 alert: tiverton is late."),
        "/fleet/agents/tiverton" => page("application/json", "{\"late_s\": 42}"),
        _ => page("text/plain", "nothing"),
    });
    let site = site.await;
    let service = format!("  claw-api: {{url: \"{}\"}}\n", site.url(""));
    let agent = "    peers: [claw-api]
    feeds:
      - source: claw-api
        path: /fleet/alerts
        ttl: 30
";
    let replies = "%% reply
<action type=\"tool\" mode=\"sync\" id=\"detail\">
{\"name\": \"claw-api\", \"parameters\": {\"path\": \"/fleet/agents/tiverton\"}}
</action>
%% reply
<response>$alerts The detail: $detail</response>
";
    let scene = desk(&service, agent, replies);
    scene.run(&["check"]).code(0);
    let server = scene.serve(&[]);
    let ask = "<tiverton xmlns=\"https://xml-pipeline.org/ns/tiverton/v1\">Well?</tiverton>\n";
    let ran = scene.pipe(&["send", "--connect", &server.address], ask).code(0);
    ran.says(&["1 alert: tiverton is late. The detail: ```json\n", "{\"late_s\": 42}"]);
    assert!(site.asked().iter().all(|it| it.contains("x-claw-id: tiverton\r\n")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bound_of_tokens_may_have_underscores() {
    let site = Site::start(|_| page("text/plain", "one two three ".repeat(900))).await;
    let service = format!("  claw-api: {{url: \"{}\"}}\n", site.url(""));
    let feeds = "    feeds: [{source: claw-api, path: /long, max_tokens: 1_000}]\n";
    let prompt = prompts(&desk(&service, feeds, DONE), &["Go."]).remove(0);
    let words = prompt.matches("three").count();
    assert!((100..800).contains(&words), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_hangs_delays_no_agent_without_its_feed() {
    let site = Site::start(|_| Answer::Slow(b"HTTP/1.1 200 OK\r\nx: ".to_vec())).await;
    let service = format!("  claw-api: {{url: \"{}\"}}\n", site.url(""));
    let feeds = "    feeds: [{source: claw-api, path: /hangs}]
  - use: agent
    name: quick
    model: m
";
    let scene = desk(&service, feeds, &DONE.repeat(2));
    let server = scene.serve(&[]);
    let ask = |agent: &str| {
        let ask =
            format!("<{agent} xmlns=\"https://xml-pipeline.org/ns/{agent}/v1\">Go.</{agent}>\n");
        scene.pipe(&["send", "--connect", &server.address], &ask).code(0);
    };
    std::thread::scope(|threads| {
        let hanging = threads.spawn(|| ask("tiverton"));
        crate::until(|| !site.asked().is_empty());
        ask("quick");
        assert!(!hanging.is_finished(), "quick waited for the feed of tiverton");
        hanging.join().unwrap();
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn defaults_are_for_agents_without_feeds_and_a_spread_adds_them() {
    let site = Site::start(|path| page("text/plain", format!("Read of {path}."))).await;
    let service = format!(
        "  claw-api: {{url: \"{}\", feeds: [{{name: alerts, path: /alerts}}, {{path: /market}}]}}\n\
         feeds-defaults: [alerts]\n",
        site.url("")
    );
    for (agent, expected) in [
        ("", &["Read of /alerts."][..]),
        ("    feeds: [market]\n", &["Read of /market."]),
        ("    feeds: [market, ...]\n", &["Read of /market.", "Read of /alerts."]),
        ("    feeds: []\n", &[]),
    ] {
        let prompt = prompts(&desk(&service, agent, DONE), &["Go."]).remove(0);
        super::in_order(&prompt, expected);
        assert_eq!(prompt.matches("Read of").count(), expected.len(), "{agent}{prompt}");
    }
}

#[test]
fn what_is_wrong_with_services_and_their_feeds_is_told_with_its_place() {
    let api = "  claw-api: {url: \"http://127.0.0.1:1\", feeds: [{name: alerts, path: /a}]}\n";
    for (services, agent, says) in [
        (
            api,
            "    feeds: [{source: claw-ap, path: /a}]\n",
            &["no service `claw-ap`", "claw-api"][..],
        ),
        (api, "    feeds: [{source: claw-api, path: a}]\n", &["doesn't begin with `/`"]),
        (api, "    feeds: [{source: claw-api, path: /a, ttl: 0}]\n", &["a ttl is more than 0"]),
        (api, "    feeds: [{source: claw-api}]\n", &["path"]),
        (api, "    feeds: [alrets]\n", &["no service has a feed `alrets`", "alerts"]),
        (api, "    feeds: [...]\n", &["there are none", "feeds-defaults"]),
        (api, "    feeds: [alerts, {source: claw-api, path: /alerts}]\n", &["stands twice"]),
        (api, "    feeds: [{source: claw-api, path: /a, tll: 3}]\n", &["ttl"]),
        ("  claw-api: {url: claw-api}\n", "", &["is no URL"]),
        (
            "  claw-api: {url: \"http://127.0.0.1:1\", auth: none.json}\n",
            "",
            &["auth", "none.json"],
        ),
        ("  claw-api: {auth: a.json}\n", "", &["url"]),
    ] {
        let ran = checked(services, agent).code(1).says(says);
        assert!(ran.out.contains("organism.yaml:"), "{ran:?}");
    }
    let two = format!(
        "{api}  other: {{url: \"http://127.0.0.1:1\", feeds: [{{name: alerts, path: /b}}]}}\n"
    );
    checked(&two, "    feeds: [alerts]\n").code(1).says(&["several services", "claw-api, other"]);
    let two = format!("{api}feeds-defaults: [alerts]\n");
    checked(&two, "    feeds: [..., ...]\n").code(1).says(&["`...` stands twice"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_has_a_feed_fetched_and_the_next_prompt_shows_it() {
    let asked = AtomicUsize::new(0);
    let site = Site::start(move |_| {
        let number = asked.fetch_add(1, Ordering::Relaxed) + 1;
        let fields = "content-type: text/plain\r\ncache-control: no-cache\r\n";
        let text = format!("read {number}");
        let fields = format!("{fields}content-length: {}\r\n", text.len());
        Answer::Whole([head("200 OK", &fields), text.into_bytes()].concat())
    });
    let service = format!("  claw-api: {{url: \"{}\"}}\n", site.await.url(""));
    let feeds = "    feeds: [{source: claw-api, path: /alerts}]\n";
    let scene = desk(&service, feeds, &DONE.repeat(2));
    let server = scene.serve(&["--unix", "pump.sock"]);
    let as_operator = |verb: &[&str], input: &str| {
        scene.pipe(&[verb, &["--connect", "unix:pump.sock"]].concat(), input)
    };
    let ask = "<tiverton xmlns=\"https://xml-pipeline.org/ns/tiverton/v1\">Go.</tiverton>\n";
    as_operator(&["send"], ask).code(0);
    let told = as_operator(&["feed", "fetch", "alerts"], "").code(0).out;
    super::in_order(&told, &["alerts fresh in sess-", "\n  read 2\n"]);
    let object = as_operator(&["feed", "fetch", "alerts", "--json"], "").code(0).objects();
    assert!(object.iter().any(|it| it.to_string().contains("read 3")), "{object:?}");
    let to = ["--connect", &server.address];
    let refused = scene.run(&[&["feed", "fetch", "alerts"][..], &to].concat()).code(1);
    refused.says(&["Unknown thread"]);
    let unknown = as_operator(&["feed", "fetch", "alrets"], "").code(1);
    unknown.says(&["no agent has a feed alrets in any thread"]);
    drop(server);
    let values = scene.run(&["feeds", "tiverton", "--values"]).code(0).out;
    assert!(values.contains("read 3"), "{values}");
}
