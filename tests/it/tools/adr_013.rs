//! ADR-013, section by section, with local services: what the agents of its pods, the claws, are
//! shown, and which requests the services get. Sections 3 and 7 are in `pods`, and more of 3, 4 and
//! 6 is in `service_feeds`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::in_order;
use super::service_feeds::prompts;
use super::site::{Site, page};
use crate::model::fake::{Server as Provider, answer, head, say};
use crate::program::Scene;

/// The answer of a service, as section 6 writes it.
const ANSWER: &str = "---
feed: fleet-alerts
refreshed: 2026-03-19T14:32:00Z
ttl: 60
---

Fleet nominal. 7 agents healthy. No alerts.
";

const DONE: &str = "%% reply\n<response>Done.</response>\n";

/// An organism with a pod whose claw is `tiverton`, of the pod `trading-desk`.
fn pod(site: &Site, claws: &str, replies: &str) -> Scene {
    let scene = Scene::new();
    scene.write(
        "organism.yaml",
        format!(
            "name: house\ndata: data\nservices:\n  claw-api: {{url: \"{}\"}}\npods: [pod.yaml]\n\
             default_model: m\nmodels: {{m: {{use: scripted, file: replies.txt}}}}\n",
            site.url("")
        ),
    );
    scene.write("pod.yaml", format!("x-claw:\n  pod: trading-desk\nservices:\n{claws}"));
    for name in ["TIVERTON", "OCTOPUS"] {
        scene.write(&format!("agents/{name}.md"), format!("You are {name}.\n"));
    }
    scene.write("replies.txt", replies);
    scene
}

/// The claw of section 5.
const TIVERTON: &str = "  tiverton:
    x-claw:
      agent: ./agents/TIVERTON.md
      feeds:
        - source: claw-api
          path: /api/v1/fleet/alerts
";

#[tokio::test(flavor = "multi_thread")]
async fn adr_013_section_1_the_claw_sees_the_data_and_not_the_plumbing() {
    let site = Site::start(|_| page("text/markdown", ANSWER)).await;
    let scene = pod(&site, TIVERTON, DONE);
    let credential = "{\"service\": \"claw-api\", \"auth_type\": \"bearer\", \
        \"token\": \"c0mmon-token\", \"principal\": \"tiverton\"}";
    let path = scene.write("data/context/tiverton/service-auth/claw-api.json", credential);
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    let prompt = prompts(&scene, &["Go."]).remove(0);
    in_order(&prompt, &["Fleet nominal. 7 agents healthy. No alerts."]);
    for plumbing in [&*site.host(), "/api/v1", "claw-id", "ttl", "c0mmon-token", "bearer"] {
        assert!(!prompt.to_lowercase().contains(plumbing), "{plumbing} in {prompt}");
    }
    assert!(
        site.asked()[0].contains("authorization: Bearer c0mmon-token\r\n"),
        "{:?}",
        site.asked()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn adr_013_section_2_declared_feeds_alone_are_shown_with_cllama_and_without() {
    let site = Site::start(|_| page("text/plain", "All is well.")).await;
    let claws = format!(
        "{TIVERTON}  octopus:
    x-claw:
      agent: ./agents/OCTOPUS.md
      cllama: passthrough
      feeds:
        - source: claw-api
          path: /octopus/alerts
"
    );
    let scene = pod(&site, &claws, &DONE.repeat(2));
    scene.run(&["check"]).code(0);
    let server = scene.serve(&[]);
    for claw in ["tiverton", "octopus"] {
        let ask = format!("<{claw} xmlns=\"https://xml-pipeline.org/ns/{claw}/v1\">Go.</{claw}>\n");
        scene.pipe(&["send", "--connect", &server.address], &ask).code(0);
    }
    drop(server);
    let asked: Vec<String> = site.asked();
    let lines: Vec<&str> = asked.iter().filter_map(|it| it.lines().next()).collect();
    let expected = ["GET /api/v1/fleet/alerts HTTP/1.1", "GET /octopus/alerts HTTP/1.1"];
    assert_eq!(lines, expected);
    for claw in ["tiverton", "octopus"] {
        let told = scene.run(&["feeds", claw, "--json"]).code(0).objects();
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0]["text"], "All is well.");
    }
}

/// The body of the request that a provider gets from an agent with the feed of section 4.
async fn body(wire: &str, site: &Site) -> Value {
    let replies = match wire {
        "openai-chat" => answer("<response>Done.</response>"),
        _ => vec![head("400 Bad Request", "content-length: 2\r\n"), say("{}")],
    };
    let provider = Provider::start(vec![replies]).await;
    let scene = Scene::new();
    scene.write(
        "organism.yaml",
        format!(
            "name: trading-desk\nservices:\n  claw-api: {{url: \"{}\"}}\nmodels: {{m: {{use: \
             {wire}, url: \"{}\", model: small}}}}\nlisteners:\n  - use: agent\n    \
             name: tiverton\n    model: m\n    feed_injection: {{form: markers}}\n    \
             feeds:\n      - {{name: fleet-alerts, source: claw-api, path: /fleet/alerts}}\n      \
             - {{name: quotes, source: claw-api, path: /quotes}}\n",
            site.url(""),
            provider.url()
        ),
    );
    let server = scene.serve(&[]);
    let ask = "<tiverton xmlns=\"https://xml-pipeline.org/ns/tiverton/v1\">Go.</tiverton>\n";
    scene.pipe(&["send", "--connect", &server.address], ask);
    drop(server);
    provider.asked().remove(0).body
}

#[tokio::test(flavor = "multi_thread")]
async fn adr_013_section_4_both_wires_have_the_blocks_in_the_order_of_the_manifest() {
    let site = Site::start(|path| match path {
        "/quotes" => page("application/json", "{\"SAP\": 251.4}"),
        _ => page("text/markdown", ANSWER),
    });
    let site = site.await;
    let alerts = "--- BEGIN FEED: fleet-alerts (from claw-api, refreshed 2026-03-19T14:32:00Z) \
        ---\nFleet nominal. 7 agents healthy. No alerts.\n";
    let quotes = "```json\n{\"SAP\": 251.4}\n```\n";
    for wire in ["openai-chat", "anthropic-messages"] {
        let body = body(wire, &site).await;
        let text = |it: &Value| match it {
            Value::String(text) => text.clone(),
            parts => {
                let texts = parts.as_array().unwrap().iter().filter_map(|it| it["text"].as_str());
                texts.collect::<Vec<_>>().join("\n")
            }
        };
        let last = crate::agent::unmarked(&text(
            &body["messages"].as_array().unwrap().last().unwrap()["content"],
        ));
        let markers = ["--- END FEED: fleet-alerts ---\n", "--- BEGIN FEED: quotes (from claw-api"];
        let end = "--- END FEED: quotes ---";
        in_order(&last, &[alerts, markers[0], markers[1], quotes, end]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn adr_013_section_5_a_request_names_the_claw_and_its_pod() {
    let site = Site::start(|_| page("text/plain", "All is well.")).await;
    let scene = pod(&site, TIVERTON, DONE);
    prompts(&scene, &["Go."]);
    let asked = site.asked().remove(0);
    assert!(asked.starts_with("GET /api/v1/fleet/alerts HTTP/1.1\r\n"), "{asked}");
    assert!(asked.contains("\r\nx-claw-id: tiverton\r\n"), "{asked}");
    assert!(asked.contains("\r\nx-claw-pod: trading-desk\r\n"), "{asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn adr_013_section_6_all_feeds_have_a_cap_together() {
    let site = Site::start(|path| match path {
        "/small" => page("text/plain", "Short."),
        _ => page("text/plain", "x".repeat(30_000)),
    });
    let site = site.await;
    let claws = "  tiverton:
    x-claw:
      agent: ./agents/TIVERTON.md
      feeds:
        - {source: claw-api, path: /one}
        - {source: claw-api, path: /two}
        - {source: claw-api, path: /three}
        - {source: claw-api, path: /small}
";
    let scene = pod(&site, claws, DONE);
    let prompt = prompts(&scene, &["Go."]).remove(0);
    in_order(
        &prompt,
        &[
            "<context_feed id=\"two\">",
            "<context_feed id=\"three\" status=\"skipped\">",
            "[total feed size cap reached; block_bytes=300",
            "max_total_bytes=65536]",
            // A smaller one still fits.
            "<context_feed id=\"small\">",
            "Short.",
        ],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn adr_013_section_8_a_claw_subscribes_to_a_feed_while_it_works() {
    let site = Site::start(|_| page("text/plain", "1 alert: squid is late.")).await;
    let claws = "  tiverton:
    x-claw:
      agent: ./agents/TIVERTON.md
      surfaces:
        - \"service://claw-api\"
";
    let replies = "%% reply
<action type=\"internal\" mode=\"sync\" id=\"more\">
{\"name\": \"add_context_feed\", \"parameters\": {\"id\": \"alerts\", \"type\": \"on_demand\",
 \"source\": {\"type\": \"relic\", \"name\": \"claw-api\",
 \"params\": {\"path\": \"/fleet/alerts\"}}}}
</action>
%% reply
<response>I know: $alerts</response>
";
    let scene = pod(&site, claws, replies);
    let prompt = prompts(&scene, &["Go."]).remove(0);
    in_order(&prompt, &["<context_feed id=\"alerts\">", "1 alert: squid is late."]);
}
