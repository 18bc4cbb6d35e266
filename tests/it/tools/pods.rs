//! Pod files: the examples of ADR-013 word for word, from the file to the prompt. Also the
//! credentials of agents, and mistakes in pod files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::service_feeds::prompts;
use super::site::{Answer, Site, head, page};
use crate::program::Scene;

/// The example of section 3, and that of section 7.
const SECTION_3: &str = include_str!("pods/section_3.yaml");
const SECTION_7: &str = include_str!("pods/section_7.yaml");

const DONE: &str = "%% reply\n<response>Done.</response>\n";

/// An organism with a pod file in a folder of its own.
fn organism(services: &str, more: &str, pod: &str, replies: &str) -> Scene {
    let scene = Scene::new();
    scene.write(
        "organism.yaml",
        format!(
            "name: house\ndata: data\nservices:\n{services}pods: [desk/pod.yaml]\n\
             default_model: m\nmodels: {{m: {{use: scripted, file: replies.txt}}}}\n{more}"
        ),
    );
    scene.write("desk/pod.yaml", pod);
    for name in ["TIVERTON", "OCTOPUS"] {
        scene.write(&format!("desk/agents/{name}.md"), format!("You are {name}.\n"));
    }
    scene.write("replies.txt", replies);
    scene
}

/// Writes a credential file that only its owner can read.
fn write_credential(scene: &Scene, path: &str, token: &str) {
    let text = format!(
        "{{\"service\": \"claw-api\", \"auth_type\": \"bearer\", \"token\": \"{token}\", \
         \"principal\": \"a\"}}"
    );
    let path = scene.write(path, text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn adr_013_section_3_a_pod_has_an_agent_with_feeds() {
    let site = Site::start(|path| match path {
        "/api/v1/market-summary" => page("text/plain", "Stocks are up."),
        _ => page("application/json", "{\"cash\": 5}"),
    });
    let site = site.await;
    let service = format!("  trading-api: {{url: \"{}\"}}\n", site.url(""));
    let scene = organism(&service, "", SECTION_3, DONE);
    scene.run(&["check"]).code(0);
    let file = scene.path("data/context/tiverton/feeds.json");
    assert!(!file.exists(), "check writes nothing");
    let prompt = prompts(&scene, &["Go."]).remove(0);
    super::in_order(
        &prompt,
        &[
            "You are TIVERTON.",
            "Stocks are up.",
            "<context_feed id=\"portfolio\">",
            "{\"cash\": 5}",
        ],
    );
    // A pod without a name is known by the manifest's.
    let asked = site.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    for it in asked {
        assert!(it.contains("x-claw-id: tiverton\r\nx-"), "{it}");
        assert!(it.contains("x-claw-pod: house\r\n"), "{it}");
    }
    // The manifest that section 3 makes of its example.
    let entry = |name: &str, ttl: u32| {
        let path = format!("/api/v1/{name}");
        let source = "\"source\":\"trading-api\"";
        format!("  {{\"name\":\"{name}\",{source},\"path\":\"{path}\",\"ttl\":{ttl}}}")
    };
    let feeds = format!("[\n{},\n{}\n]\n", entry("market-summary", 300), entry("portfolio", 30));
    assert_eq!(fs::read_to_string(&file).unwrap(), feeds);
    // The file is written again only when it changes.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o400)).unwrap();
    let before = fs::metadata(&file).unwrap().modified().unwrap();
    drop(scene.serve(&[]));
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), before);
    let none = "services:\n  tiverton: {x-claw: {agent: ./agents/TIVERTON.md}}\n";
    scene.write("desk/pod.yaml", none);
    drop(scene.serve(&[]));
    assert_eq!(fs::read_to_string(&file).unwrap(), "[]\n");
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
    let replies = "%% reply
<action type=\"tool\" mode=\"sync\" id=\"detail\">
{\"name\": \"claw-api\", \"parameters\": {\"path\": \"/fleet/agents/tiverton\"}}
</action>
%% reply
<response>$alerts The detail: $detail</response>
";
    let more = "context-folder: .claw-runtime/context\n";
    let scene = organism(&service, more, SECTION_7, replies);
    write_credential(&scene, "service-auth/claw-api.json", "c0mmon-key");
    scene.run(&["check"]).code(0);
    let server = scene.serve(&[]);
    let ask = "<octopus xmlns=\"https://xml-pipeline.org/ns/octopus/v1\">Well?</octopus>\n";
    let ran = scene.pipe(&["send", "--connect", &server.address], ask).code(0);
    ran.says(&["1 alert: tiverton is late. The detail: ```json\n", "{\"late_s\": 42}"]);
    let asked = site.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    for it in asked {
        assert!(it.contains("x-claw-id: octopus\r\n"), "{it}");
        assert!(it.contains("x-claw-pod: trading-desk\r\n"), "{it}");
        assert!(it.contains("x-pumphouse-organism: house\r\n"), "{it}");
        assert!(it.contains("authorization: Bearer c0mmon-key\r\n"), "{it}");
    }
    let feeds = fs::read_to_string(scene.path(".claw-runtime/context/octopus/feeds.json"));
    let entry =
        "  {\"name\":\"alerts\",\"source\":\"claw-api\",\"path\":\"/fleet/alerts\",\"ttl\":30}\n";
    assert_eq!(feeds.unwrap(), format!("[\n{entry}]\n"));
}

/// A pod of two agents and a source of feeds, as a Compose file may have it.
fn compose(url: &str) -> String {
    format!(
        "name: desk
x-common: &common {{restart: always}}
x-claw: {{pod: trading-desk}}
services:
  octopus:
    <<: *common
    image: ghcr.io/example/claw:${{TAG}}
    x-claw: {{agent: ./agents/OCTOPUS.md, cllama: {{mode: passthrough}}, feeds: [status]}}
    environment: {{KEY: \"${{NOT_SET?err}}\"}}
    depends_on: [db]
    x-other: 1
  tiverton:
    x-claw:
      agent: ./agents/TIVERTON.md
      feeds: [{{name: alerts, source: claw-api, path: /alerts, ttl: 1m}}, ...]
  claw-api:
    url: \"{url}\"
    ports: [\"8080:8080\"]
    feeds: [{{name: status, path: /status}}]
  db: {{image: postgres, volumes: [\"db:/var/lib\"]}}
volumes: {{db: {{}}}}
"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_has_services_of_its_own_and_an_agent_its_own_credential() {
    let site = Site::start(|path| match path {
        "/status" => Answer::Whole(head("403 Forbidden", "content-length: 0\r\n")),
        _ => page("text/plain", "Read with c0mmon-key-own, not c0mmon-key."),
    });
    let site = site.await;
    let more = "feeds-defaults: [status]\n";
    let scene = organism("  {}\n", more, &compose(&site.url("")), &DONE.repeat(2));
    write_credential(&scene, "service-auth/claw-api.json", "c0mmon-key");
    write_credential(
        &scene,
        "elsewhere/context/tiverton/service-auth/claw-api.json",
        "c0mmon-key-own",
    );
    scene.run(&["check", "--data", "elsewhere"]).code(0);
    let server = scene.serve(&["--data", "elsewhere"]);
    for agent in ["tiverton", "octopus"] {
        let ask =
            format!("<{agent} xmlns=\"https://xml-pipeline.org/ns/{agent}/v1\">Go.</{agent}>\n");
        scene.pipe(&["send", "--connect", &server.address], &ask).code(0);
    }
    let asked = site.asked();
    assert_eq!(asked.len(), 3, "{asked:?}");
    for it in &asked {
        let token = match it.contains("x-claw-id: tiverton\r\n") {
            true => "authorization: Bearer c0mmon-key-own\r\n",
            false => "authorization: Bearer c0mmon-key\r\n",
        };
        assert!(it.contains(token) && it.contains("x-claw-pod: trading-desk\r\n"), "{it}");
    }
    let said = scene.run(&["feeds", "tiverton", "--values", "--data", "elsewhere"]).code(0).out;
    super::in_order(&said, &["alerts", "Read with "]);
    assert!(!said.contains("c0mmon-key") && !said.contains("-own"), "{said}");
    let feeds = fs::read_to_string(scene.path("elsewhere/context/tiverton/feeds.json")).unwrap();
    super::in_order(&feeds, &["\"name\":\"alerts\"", "\"ttl\":60}", "\"name\":\"status\""]);
}

#[test]
fn a_credential_that_others_can_read_is_a_mistake() {
    for path in ["service-auth/claw-api.json", "data/context/octopus/service-auth/claw-api.json"] {
        let url = "  claw-api: {url: \"http://127.0.0.1:1\"}\n";
        let scene = organism(url, "", SECTION_7, DONE);
        write_credential(&scene, path, "t0psecret");
        scene.run(&["check"]).code(0);
        fs::set_permissions(scene.path(path), fs::Permissions::from_mode(0o644)).unwrap();
        let ran = scene.run(&["check"]).code(1);
        let ran = ran.says(&["organism.yaml:4:", "service-auth/claw-api.json", "chmod 600"]);
        assert!(!ran.out.contains("t0psecret"), "{ran:?}");
    }
}

/// A text of section 7, what stands there instead, and what is said of it.
const MISTAKES: &[(&str, &str, &[&str])] = &[
    (
        "x-claw:\n  pod",
        "x-clow:\n  pod",
        &["pod.yaml:1:1: a pod has no key `x-clow`; did you mean `x-claw`?"],
    ),
    (
        "master: octopus",
        "mastre: octopus",
        &["pod.yaml:3:3: x-claw has no key `mastre`", "`master`?"],
    ),
    (
        "master: octopus",
        "master: octopsu",
        &[
            "pod.yaml:3:11: the pod has no service `octopsu`; did you mean `octopus`?",
            "there is octopus",
        ],
    ),
    (
        "agent: ./agents",
        "agnet: ./agents",
        &["pod.yaml:8:7: x-claw of a service has no key `agnet`", "`agent`?"],
    ),
    ("OCTOPUS.md", "OCTOPOS.md", &["pod.yaml:8:14: desk/./agents/OCTOPOS.md: No such file"]),
    (
        "source: claw-api",
        "source: claw-ap",
        &[
            "pod.yaml:11:19: there is no service `claw-ap`",
            "`claw-api`?",
            "declare it under `services`",
        ],
    ),
    (
        "service://claw-api",
        "service://claw-ap",
        &["pod.yaml:15:11: there is no listener `claw-ap`", "`claw-api`?"],
    ),
    (
        "service://claw-api",
        "volume://data",
        &["pod.yaml:15:11: `volume://data` is no surface of a service", "service://claw-api"],
    ),
    ("ttl: 30", "tll: 30", &["pod.yaml:13:11: a feed of a service has no key `tll`", "`ttl`?"]),
    ("ttl: 30", "ttl: 0", &["pod.yaml:13:16: a ttl is more than 0"]),
    (
        "    x-claw:",
        "    imgae: x\n    x-claw:",
        &["pod.yaml:7:5: a service of a pod has no key `imgae`; did you mean `image`?"],
    ),
    (
        "    x-claw:",
        "    timeout: 3s\n    x-claw:",
        &["pod.yaml:7:14: a service with `timeout` needs the key `url`"],
    ),
    (
        "    x-claw:",
        "    url: \"http://127.0.0.1:2\"\n    x-claw:",
        &["pod.yaml:7:10: an agent has no `url`"],
    ),
    (
        "octopus:\n",
        "claw-api:\n",
        &["pod.yaml", "line 4 of organism.yaml has a listener `claw-api` already"],
    ),
    (
        "    x-claw:",
        "    <<: {x-claw: {}}\n    x-claw:",
        &["pod.yaml:7:5: a service of a pod has no key `<<`"],
    ),
    ("passthrough", "${NOT_SET}", &["pod.yaml:9:15: the variable NOT_SET isn't set"]),
    ("  pod:", "\t pod:", &["pod.yaml:2:", "this is no YAML"]),
];

#[test]
fn what_is_wrong_in_a_pod_file_is_told_with_its_place() {
    for (from, to, says) in MISTAKES {
        assert!(SECTION_7.contains(*from), "{from}");
        let url = "  claw-api: {url: \"http://127.0.0.1:1\"}\n";
        let scene = organism(url, "", &SECTION_7.replacen(from, to, 1), DONE);
        scene.run(&["check"]).code(1).says(says);
    }
}

#[test]
fn what_a_manifest_must_say_for_its_pods_is_told_with_its_place() {
    let url = "  claw-api: {url: \"http://127.0.0.1:1\"}\n";
    for (from, to, says) in [
        (
            "default_model: m\n",
            "",
            &[
                "pod.yaml:8:14: an agent of a pod has the model `default_model`, and the manifest ",
                "there is m",
            ][..],
        ),
        (
            "default_model: m",
            "default_model: n",
            &["1 mistake in organism.yaml", "organism.yaml:6:16: ", "`n`"],
        ),
        ("desk/pod.yaml", "desk/pot.yaml", &["organism.yaml:5:8: desk/pot.yaml: No such file"]),
        ("claw-api:", "claw-apo:", &["there is no service `claw-api`", "did you mean `claw-apo`?"]),
    ] {
        let scene = organism(url, "", SECTION_7, DONE);
        let text = fs::read_to_string(scene.path("organism.yaml")).unwrap();
        assert!(text.contains(from), "{from}");
        scene.write("organism.yaml", text.replacen(from, to, 1));
        scene.run(&["check"]).code(1).says(says);
    }
    let scene = organism(url, "", &SECTION_7.replace("master", "mastre"), DONE);
    let told = scene.run(&["check", "--json"]).code(1).objects();
    assert_eq!((&told[0]["file"], &told[0]["line"]), (&"desk/pod.yaml".into(), &3.into()));
    let scene = organism(url, "", &SECTION_7.replace("service://claw-api", "service://x"), DONE);
    let told = scene.run(&["check", "--json"]).code(1).objects();
    assert_eq!(told[0]["path"], "services.octopus.x-claw.surfaces[0]");
    let listed = "listeners: [{use: agent, name: tiverton}]\n";
    let scene = organism(url, listed, SECTION_7, DONE);
    scene.run(&["check"]).code(0).says(&["tiverton", "octopus", "claw-api"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_sends_its_own_pods_name_whatever_other_pods_declare() {
    let site = Site::start(|_| page("text/plain", "Read.")).await;
    let service = format!("  claw-api: {{url: \"{}\"}}\n", site.url(""));
    let pod = "x-claw: {pod: one}\nservices:\n  octopus:\n    x-claw:\n      \
        agent: ./agents/OCTOPUS.md\n      feeds: [{source: claw-api, path: /a}]\n";
    let scene = organism(&service, "", pod, DONE);
    let manifest = fs::read_to_string(scene.path("organism.yaml")).unwrap();
    let two = manifest.replace("pods: [desk/pod.yaml]", "pods: [desk/pod.yaml, other.yaml]");
    scene.write("organism.yaml", two);
    scene.write("other.yaml", "x-claw: {pod: two}\nservices: {octopus: {image: nginx}}\n");
    let server = scene.serve(&[]);
    let ask = "<octopus xmlns=\"https://xml-pipeline.org/ns/octopus/v1\">Go.</octopus>\n";
    scene.pipe(&["send", "--connect", &server.address], ask).code(0);
    let asked = site.asked();
    assert!(asked.len() == 1 && asked[0].contains("x-claw-pod: one\r\n"), "{asked:?}");
}

#[test]
fn mistakes_of_a_pod_alone_name_its_file_alone() {
    let pod = "x-claw: {pod: one, mastr: x}\nservices: {octopus: {x-claw: {agnt: a.md}}}\n";
    let ran = organism("  {}\n", "", pod, DONE).run(&["check"]).code(1);
    let head = ran.out.lines().next().unwrap().to_owned();
    assert!(head.ends_with(" mistakes in desk/pod.yaml"), "{}", ran.out);
}

#[test]
fn a_feed_that_a_service_of_a_pod_advertises_may_refer_to_metadata() {
    let pod = "x-claw: {pod: one}\nservices:\n  claw-api:\n    url: \"http://127.0.0.1:1\"\n    \
        feeds: [{name: news, path: \"/news/${metadata.status}\"}]\n";
    let agent = "listeners: [{use: agent, name: ada, feeds: [news], \
        metadata: {fields: {status: {values: [IDLE, BUSY], default: IDLE}}}}]\n";
    organism("  {}\n", agent, pod, DONE).run(&["check"]).code(0).says(&["claw-api"]);
}

/// A pod whose service advertises feeds by labels, and whose agent has keys of its own.
const LABELLED: &str = "\
x-claw: {pod: desk}
services:
  claw-api:
    image: claw/api
    labels: LABELS
  tiverton:
    x-claw:
      agent: ./agents/TIVERTON.md
      model: clever
      feeds: [fleet-alerts, load]
      metadata: {fields: {mood: {values: [CALM, ALERT], default: CALM}}}
      context_feeds:
        - {id: sum, source: {type: tool, name: calculate, params: {expression: 40 + 2}}}
      surfaces: [\"service://claw-api\"]
";

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_a_pod_has_the_keys_of_any_agent_and_feeds_of_labels() {
    let site = Site::start(|path| match path {
        "/fleet/alerts" => page("text/plain", "No alerts."),
        "/load" => page("text/plain", "Load 7."),
        _ => page("text/plain", "nothing"),
    });
    let site = site.await;
    let map = "{claw.feed.0.name: fleet-alerts, claw.feed.0.path: /fleet/alerts, \
        claw.feed.0.ttl: \"30\", claw.feed.0.description: x, claw.feed.load: /load, com.a: b}";
    let list = "[claw.feed.1.path=/fleet/alerts, claw.feed.1.name=fleet-alerts, a=b, \
        claw.feed.load.path=/load]";
    let service = format!("  claw-api: {{url: \"{}\"}}\n", site.url(""));
    let more = "listeners: [{use: calculate}, {use: echo}]\n";
    let clever = "{m: {use: scripted, file: none.txt}, clever: {use: scripted, file: replies.txt}}";
    let replies = "%% reply\n<metadata>{\"mood\": \"ALERT\"}</metadata><response>$sum</response>\n";
    for labels in [map, list] {
        let scene = organism(&service, more, &LABELLED.replace("LABELS", labels), replies);
        let text = fs::read_to_string(scene.path("organism.yaml")).unwrap();
        let text = text.replace("{m: {use: scripted, file: replies.txt}}", clever);
        scene.write("organism.yaml", text);
        scene.write("none.txt", "%% reply\n<response>Wrong.</response>\n");
        let prompt = prompts(&scene, &["Go."]).remove(0);
        for said in ["You are TIVERTON.", "No alerts.", "Load 7.", "42", "mood"] {
            assert!(prompt.contains(said), "{said}: {prompt}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_the_manifest_adds_its_keys_to_the_pods_agent_of_its_name() {
    let site = Site::start(|path| match path {
        "/own" => page("text/plain", "Own feed."),
        _ => page("text/plain", "Stocks are up."),
    });
    let site = site.await;
    let service = format!("  trading-api: {{url: \"{}\"}}\n", site.url(""));
    let more = "include: [flagged.yml]\nlisteners:\n  - {use: echo}\n  - use: agent\n    \
        name: tiverton\n    workflows: [flagged]\n    peers: [echo]\n    feeds: [{source: \
        trading-api, path: /own}]\n    metadata: {fields: {mood: {values: [CALM, ALERT], \
        default: CALM}}}\n";
    let replies = "%% reply\n<metadata>{\"mood\": \"ALERT\"}</metadata><action id=\"e\">\
        {\"name\": \"echo\", \"parameters\": {\"text\": \"x\"}}</action>\
        <response>Done.</response>\n";
    let scene = organism(&service, more, SECTION_3, replies);
    let steps = "[{name: a, target: echo, parameters: {text: alerted}}]";
    let trigger = "{conditions: {mood: ALERT}}";
    let workflow = format!("kind: Workflow\nname: flagged\ntrigger: {trigger}\nsteps: {steps}\n");
    scene.write("flagged.yml", workflow);
    scene.run(&["check"]).code(0);
    let server = scene.serve(&[]);
    let ask = "<tiverton xmlns=\"https://xml-pipeline.org/ns/tiverton/v1\">Go.</tiverton>\n";
    let sent = scene.pipe(&["send", "--connect", &server.address, "--json"], ask).code(0);
    let sent = sent.objects();
    let session = sent.iter().find_map(|it| it["thread"].as_str()).unwrap();
    drop(server);
    let entries = scene.run(&["show", session, "--json"]).code(0).objects();
    let prompt = scene.run(&["prompt", &format!("{session}/{}", entries.len())]).code(0).out;
    for said in ["You are TIVERTON.", "Stocks are up.", "Own feed.", "mood", "echo"] {
        assert!(prompt.contains(said), "{said}: {prompt}");
    }
    let runs = scene.run(&["workflows", "--json"]).code(0).objects();
    assert_eq!(runs[0]["workflow"], "flagged", "{runs:?}");
}

#[test]
fn labels_that_advertise_no_feed_are_told_with_their_place() {
    for (labels, says) in [
        ("{claw.feed.0.pth: /a}", &["desk/pod.yaml:5:", "did you mean `path`?"][..]),
        ("{claw.feed.0.name: a}", &["desk/pod.yaml:5:", "needs the key `path`"]),
        ("[claw.feed.0.path=/a]", &["desk/pod.yaml:5:", "needs the key `url`"]),
    ] {
        let scene = organism("  {}\n", "", &LABELLED.replace("LABELS", labels), DONE);
        scene.run(&["check"]).code(1).says(says);
    }
}
