//! Schemas of the wire as files: the envelope's, written by hand, and that of every house payload,
//! generated from its type. The tests keep the generated files current.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use pumphouse::limits::XmlLimits;
use pumphouse::listeners::metadata::{Field, Fields};
use pumphouse::listeners::tool::{
    agent_context, command, documents, environment, fetch, files, git, http, keyvalue, llm, recall,
    service, shell, skills, sql, system_monitor,
};
use pumphouse::listeners::trigger::Triggers;
use pumphouse::listeners::workflow::Workflow;
use pumphouse::listeners::{self, agent::Agent};
use pumphouse::model::{Models, Scripted};
use pumphouse::schema::{self, Schema};
use pumphouse::xml::{self, Profile};

use crate::golden;

const HOUSE: &str = "https://xml-pipeline.org/ns/";

/// Every payload of the house, by the file that says what it is; but no agent's own.
fn house() -> BTreeMap<String, Schema> {
    let agent = Agent::new("oracle", Arc::new(Scripted::replies([""])));
    let root = agent.root();
    let folder = tempfile::tempdir().unwrap();
    let files = files::files(&files::Settings::new(folder.path().to_str().unwrap())).unwrap();
    let documents = documents::Settings::new(folder.path().to_str().unwrap());
    let documents = documents::documents(&documents).unwrap();
    let service = service::service(&service::Settings::new("http://127.0.0.1:9")).unwrap();
    let command = command::command(serde_json::from_str(r#"{"run": ["cat"]}"#).unwrap()).unwrap();
    let shell = shell::shell(serde_json::from_str(r#"{"programs": "any"}"#).unwrap()).unwrap();
    let fetch = fetch::fetch(&fetch::Settings::default()).unwrap();
    let http = http::http(&serde_json::from_str(r#"{"hosts": ["a.org"]}"#).unwrap()).unwrap();
    let path = folder.path().join("a.db").to_str().unwrap().to_owned();
    let settings = |path: &str| serde_json::json!({ "file": path });
    let keyvalue = serde_json::from_value(settings(&path)).unwrap();
    let keyvalue = keyvalue::keyvalue(&keyvalue).unwrap();
    fs::write(&path, "").unwrap();
    let sql = sql::sql(&serde_json::from_value(settings(&path)).unwrap()).unwrap();
    let git = git::git(&serde_json::from_str(r#"{"root": "."}"#).unwrap()).unwrap();
    let monitor = serde_json::from_str("{}").unwrap();
    let monitor = system_monitor::system_monitor(&monitor).unwrap();
    let mut models = Models::default();
    models.insert("m", Arc::new(Scripted::replies([""])));
    let llm = llm::llm(&serde_json::from_str(r#"{"model": "m"}"#).unwrap(), &models).unwrap();
    let skill = "---\nname: tea\ndescription: How tea is made.\n---\n";
    fs::create_dir(folder.path().join("tea")).unwrap();
    fs::write(folder.path().join("tea/SKILL.md"), skill).unwrap();
    let skills = serde_json::json!({ "folder": folder.path() });
    let skills = skills::skills(&serde_json::from_value(skills).unwrap()).unwrap();
    let recall = recall::recall(&recall::Settings::default());
    let tools =
        vec![monitor, llm, files, git, command, shell, fetch, http, keyvalue, recall, skills, sql];
    let variables = serde_json::from_str(r#"{"variables": ["TZ"]}"#).unwrap();
    let environment = environment::environment(&variables).unwrap();
    let context = agent_context::agent_context(&agent_context::Settings::default()).unwrap();
    let sources = vec![documents, environment, service, context];
    let definition = serde_json::json!({
        "name": "report",
        "trigger": {"conditions": {"status": "BUSY"}},
        "steps": [{"name": "note", "target": "echo"}],
    });
    let workflow = Workflow::from_json(definition).unwrap();
    let run = workflow.root();
    let fields = Fields::new([Field::choice("status", ["IDLE", "BUSY"])]).unwrap();
    let mut triggers = Triggers::default();
    triggers.watch("oracle", fields, [&workflow]).unwrap();
    let flows = vec![workflow.listener(), triggers.listener()];
    let all = (listeners::standard(), agent.listener(), tools, sources, flows);
    let plan = pumphouse::builder().with(all).build().unwrap();
    let is_own = |it: &&Schema| it.name == root || it.name == run;
    let all = plan.schemas().into_iter().filter(|it| !is_own(it)).cloned();
    all.map(|it| (file(&it), it)).collect()
}

/// `core/huh` for `{https://xml-pipeline.org/ns/core/v1}huh`.
fn file(schema: &Schema) -> String {
    let namespace = schema.name.namespace();
    let path = namespace.strip_prefix(HOUSE).unwrap_or_else(|| panic!("{namespace} is no house"));
    format!("{}/{}", path.strip_suffix("/v1").unwrap_or(path), schema.name.local())
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas")
}

#[test]
fn every_house_payload_has_its_files() {
    let mut goldens = golden::Goldens::default();
    for (file, schema) in house() {
        let json = serde_json::to_string_pretty(&schema::json_schema(&schema)).unwrap();
        goldens.check(&folder().join(format!("{file}.xsd")), &schema::xsd(&schema));
        goldens.check(&folder().join(format!("{file}.json")), &format!("{json}\n"));
    }
    goldens.finish();
}

#[test]
fn no_file_is_of_a_payload_that_is_gone() {
    let house = house();
    for entry in fs::read_dir(folder()).unwrap().map(Result::unwrap) {
        if !entry.path().is_dir() {
            let ours = ["envelope.xsd", "export.xsd", "organism.schema.json"];
            assert!(ours.iter().any(|it| entry.file_name() == *it), "{entry:?}");
            continue;
        }
        let folder = entry.file_name().into_string().unwrap();
        for file in fs::read_dir(entry.path()).unwrap().map(Result::unwrap) {
            let path = format!("{folder}/{}", file.path().file_stem().unwrap().display());
            assert!(house.contains_key(&path), "schemas/{path} is of no payload");
        }
    }
}

#[test]
fn every_house_example_passes() {
    let mut pairs = Vec::new();
    for (file, schema) in house() {
        let example = schema::example(&schema);
        let element = xml::read(example.clone(), Profile::Wire, &XmlLimits::DOOR).expect(&file);
        assert_eq!(schema.check(element.view()), Ok(()), "{file}: {example}");
        pairs.push((file, schema::xsd(&schema), vec![example]));
    }
    golden::lint(&pairs);
}

/// The payload that goes into an envelope, without the line end of a file.
fn wrapped(schema: &Schema) -> String {
    let payload = schema::example(schema);
    format!(
        "<message xmlns=\"{HOUSE}envelope/v1\"><meta><thread>sess-k3v9x2ma</thread><from>console\
         </from><to>echo</to><id>1</id><trace xmlns=\"urn:other\">x</trace></meta>{payload}\
         </message>"
    )
}

#[test]
fn the_envelope_takes_every_payload() {
    let xsd = fs::read_to_string(folder().join("envelope.xsd")).unwrap();
    let mut documents: Vec<String> = house().values().map(wrapped).collect();
    let least = format!("<message xmlns=\"{HOUSE}envelope/v1\"><meta/><x xmlns=\"\"/></message>");
    documents.push(least);
    golden::lint(&[("envelope".to_owned(), xsd, documents)]);
}

#[test]
fn the_envelope_takes_nothing_else() {
    if Command::new("xmllint").arg("--version").output().is_err() {
        return crate::skipped("no xmllint");
    }
    let echo = "<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>x</text></echo>";
    let scratch = tempfile::tempdir().unwrap();
    for inside in [
        echo.to_owned(),
        "<meta/>".to_owned(),
        format!("<meta/>{echo}{echo}"),
        format!("{echo}<meta/>"),
        format!("<meta><from/></meta>{echo}"),
        format!("<meta><form>x</form></meta>{echo}"),
        format!("<meta><id>{}</id></meta>{echo}", "x".repeat(129)),
        "<meta/><message><meta/></message>".to_owned(),
        format!("<meta/>text{echo}"),
    ] {
        let text = format!("<message xmlns=\"{HOUSE}envelope/v1\">{inside}</message>");
        let path = scratch.path().join("message.xml");
        fs::write(&path, &text).unwrap();
        let mut command = Command::new("xmllint");
        command.args(["--noout", "--nonet", "--schema"]).arg(folder().join("envelope.xsd"));
        assert!(!command.arg(&path).output().unwrap().status.success(), "{text}");
    }
}
