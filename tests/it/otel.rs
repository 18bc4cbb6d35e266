//! Spans for OpenTelemetry, sent to a collector of the tests' own: exported from a log as an
//! operator does it, or sent by a running pump.

#[cfg(feature = "otel")]
mod collector;
#[cfg(feature = "otel")]
mod follow;

use crate::program::Scene;

/// A lead that computes and has a helper work, each with a scripted model.
#[cfg(feature = "otel")]
const MANIFEST: &str = "\
name: team
durability: normal
models:
  lead: {use: scripted, file: lead.txt}
  helper: {use: scripted, file: helper.txt}
listeners:
  - {use: calculate}
  - {use: agent, name: lead, model: lead, peers: [calculate, helper]}
  - {use: agent, name: helper, model: helper, peers: []}
";
#[cfg(feature = "otel")]
const LEAD: &str = "\
%% reply usage=800/40
<action id=\"sum\">{\"name\": \"calculate\", \"parameters\": {\"expression\": \"6*7\"}}</action>
<action id=\"help\">{\"name\": \"helper\", \"parameters\": {\"text\": \"Help.\"}}</action>
%% reply usage=900/10
<response>Done: $sum</response>
";
#[cfg(feature = "otel")]
const HELPER: &str = "%% reply usage=30/7\n<response>Helped.</response>\n";
#[cfg(feature = "otel")]
const ASK: &str = "<lead xmlns=\"https://xml-pipeline.org/ns/lead/v1\">secret4711</lead>";

#[cfg(feature = "otel")]
fn team(more: &str) -> Scene {
    let scene = Scene::new();
    scene.write("organism.yaml", format!("{MANIFEST}{more}"));
    scene.write("lead.txt", LEAD);
    scene.write("helper.txt", HELPER);
    scene
}

#[cfg(not(feature = "otel"))]
#[test]
fn a_program_without_the_feature_says_how_to_build_it_with_it() {
    let scene = Scene::new();
    let build = "cargo build --release --features otel";
    scene.run(&["otel", "export"]).code(2).says(&["without the feature `otel`", build]);
    scene.write("organism.yaml", "otel: {endpoint: \"http://127.0.0.1:4318\"}\n");
    let way = "build it with `--features otel`, or leave `otel:` out";
    scene.run(&["check"]).code(1).says(&["organism.yaml:1:7", way]);
    scene.run(&["run"]).code(2).says(&[way]);
}

#[cfg(feature = "otel")]
mod export {
    use std::collections::BTreeMap;

    use opentelemetry_proto::tonic::trace::v1::Span;
    use serde_json::json;

    use super::collector::{Collector, decoded, text};
    use super::{ASK, team};
    use crate::program::{Ran, Scene};

    /// The team's work, done and in the log.
    fn worked() -> (Scene, String) {
        let scene = team("");
        let mut server = scene.serve(&[]);
        let sent = scene.pipe(&["send", "--json", "--connect", &server.address], ASK);
        let thread = sent.code(0).objects()[0]["thread"].as_str().unwrap().to_owned();
        server.stop("-INT");
        (scene, thread)
    }

    fn export(scene: &Scene, more: &[&str]) -> Ran {
        scene.run(&[&["otel", "export", "--json"], more].concat())
    }

    #[test]
    fn agents_turns_and_actions_are_spans_below_one_another() {
        let (scene, thread) = worked();
        let collector = Collector::start();
        let told = export(&scene, &["--to", &collector.url()]).code(0).objects();
        let to = format!("{}/v1/traces", collector.url());
        assert_eq!(told, [json!({ "spans": 7, "rejected": 0, "to": to })]);
        let spans = decoded(&collector.next());
        let ids: BTreeMap<&[u8], &Span> = spans.iter().map(|it| (&*it.span_id, it)).collect();
        let path = |it: &Span| {
            let mut names = vec![it.name.clone()];
            let mut at = it;
            while let Some(above) = ids.get(&*at.parent_span_id) {
                names.push(above.name.clone());
                at = above;
            }
            assert_eq!(at.parent_span_id, [0; 0], "{} has a parent that isn't sent", at.name);
            names.join(" < ")
        };
        let mut paths: Vec<String> = spans.iter().map(path).collect();
        paths.sort();
        assert_eq!(
            paths,
            [
                "chat scripted by helper.txt < invoke_agent helper < execute_tool helper \
                 < invoke_agent lead",
                "chat scripted by lead.txt < invoke_agent lead",
                "chat scripted by lead.txt < invoke_agent lead",
                "execute_tool calculate < invoke_agent lead",
                "execute_tool helper < invoke_agent lead",
                "invoke_agent helper < execute_tool helper < invoke_agent lead",
                "invoke_agent lead",
            ]
        );
        let work = spans.iter().find(|it| it.name == "invoke_agent lead").unwrap();
        assert_eq!(text(work, "gen_ai.conversation.id"), thread);
        assert_eq!(text(work, "gen_ai.usage.input_tokens"), "1700");
        assert!(spans.iter().all(|it| it.trace_id == work.trace_id));
        assert!(spans.iter().all(|it| it.start_time_unix_nano <= it.end_time_unix_nano));
    }

    #[test]
    fn another_export_has_the_same_bytes_and_so_has_a_file() {
        let (scene, thread) = worked();
        let collector = Collector::start();
        let first = export(&scene, &["--to", &collector.url()]).code(0);
        let body = collector.next();
        let second = export(&scene, &["--to", &collector.url()]).code(0);
        assert_eq!((first.out, &body), (second.out, &collector.next()));
        export(&scene, &["--to", "spans.pb"]).code(0).says(&["\"spans\":7", "spans.pb"]);
        assert_eq!(std::fs::read(scene.path("spans.pb")).unwrap(), body);
        export(&scene, &["--to", "spans.pb"]).code(2).says(&["is there already", "--force"]);
        export(&scene, &["--to", "spans.pb", "--force", "--thread", &thread]).code(0);
        assert_eq!(std::fs::read(scene.path("spans.pb")).unwrap(), body);
        // Later positions have those of the spans that end there, the same again.
        let all = decoded(&body);
        for from in 2..10 {
            let from = from.to_string();
            export(&scene, &["--to", "later.pb", "--force", "--from", &from]).code(0);
            let later = decoded(&std::fs::read(scene.path("later.pb")).unwrap());
            assert_eq!(later, all[all.len() - later.len()..]);
        }
    }

    #[test]
    fn texts_of_messages_are_sent_only_where_content_is_asked_for() {
        let (scene, _) = worked();
        let has = |more: &[&str], what: &[u8]| {
            export(&scene, &[&["--to", "spans.pb", "--force"], more].concat()).code(0);
            let bytes = std::fs::read(scene.path("spans.pb")).unwrap();
            bytes.windows(what.len()).any(|it| it == what)
        };
        for content in [&b"secret4711"[..], b"6*7", b"Helped.", b"Done: 42"] {
            assert!(!has(&[], content) && has(&["--content"], content), "{content:?}");
        }
    }

    #[test]
    fn an_export_says_what_to_do_where_it_fails() {
        let (scene, _) = worked();
        let collector = Collector::start();
        collector.answer(503);
        let to = ["--to", &collector.url()];
        export(&scene, &to).code(1).says(&["answers 503", "Export them again"]);
        collector.answer(400);
        export(&scene, &to).code(1).says(&["answers 400", "see what the collector logs"]);
        export(&scene, &[]).code(2).says(&["--to FILE or --to URL", "otel: {endpoint:"]);
        export(&scene, &["--to", "x.pb", "--thread", "sess-none"]).code(1).says(&["no thread"]);
        export(&scene, &["--from", "soon"]).code(2).says(&["1500, or begin, or a time"]);
        assert!(!scene.path("x.pb").exists());
    }

    #[test]
    fn what_is_too_large_for_the_collector_is_sent_in_halves() {
        let (scene, _) = worked();
        let collector = Collector::start();
        export(&scene, &["--to", &collector.url()]).code(0);
        let body = collector.next();
        collector.take_at_most(body.len() / 2);
        export(&scene, &["--to", &collector.url()]).code(0).says(&["\"spans\":7,"]);
        let mut spans = Vec::new();
        while spans.len() < 7 {
            spans.extend(decoded(&collector.next()));
        }
        assert_eq!(spans, decoded(&body));
    }

    #[test]
    fn an_export_begins_at_a_time() {
        let (scene, _) = worked();
        export(&scene, &["--to", "a.pb", "--from", "1d"]).code(0).says(&["\"spans\":7,"]);
        export(&scene, &["--to", "b.pb", "--from", "2126-01-01"]).code(0).says(&["\"spans\":0,"]);
    }
}
