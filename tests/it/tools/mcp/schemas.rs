//! JSON Schemas of tools from other projects. All of them load, and `docs/conformance.md` says how
//! much of each is expressed exactly.

use pumphouse::Name;
use pumphouse::schema::{Content, Field, Kind, Scalar, Schema, Shape, from_json, to_json};
use serde_json::{Value, json};

const TOOLS: &str = include_str!("../../../mcp/schemas.json");

fn tools() -> Vec<Value> {
    serde_json::from_str(TOOLS).unwrap()
}

fn schema(tool: &Value) -> Schema {
    let name = Name::new("urn:test", tool["tool"].as_str().unwrap().to_owned());
    Schema::from_json_schema(name, &tool["inputSchema"]).unwrap()
}

/// What a shape has: places with a value, those of them with any JSON, and objects that take other
/// properties with any JSON.
#[derive(Default)]
struct Places {
    all: usize,
    json: usize,
    others: usize,
}

impl Places {
    fn count(&mut self, shape: &Shape) {
        let fields = match &shape.content {
            Content::Text(it) => std::slice::from_ref(it),
            Content::Sequence(all) | Content::Choice(all) => all,
            _ => &[],
        };
        fields.iter().for_each(|it| self.place(it));
    }

    fn place(&mut self, field: &Field) {
        match &field.kind {
            Kind::Scalar(it) => {
                self.all += 1;
                self.json += usize::from(*it.base() == Scalar::Json);
            }
            Kind::Map(it) => match &it.kind {
                Kind::Scalar(it) if *it.base() == Scalar::Json => self.others += 1,
                _ => self.place(it),
            },
            Kind::Shape(it) | Kind::Choice(it) => self.count(it.shape()),
            _ => self.all += 1,
        }
    }
}

fn row(tool: &Value) -> String {
    let schema = schema(tool);
    let mut places = Places::default();
    places.count(&schema.shape);
    let Places { all, json, others } = places;
    let said = |key: &str| tool[key].as_str().unwrap();
    let (name, project, licence) = (said("tool"), said("project"), said("licence"));
    let open = schema.loose().iter().filter(|it| it.is_open);
    let open: Vec<String> = open.map(|it| format!("`{}`: {}", it.path, it.why)).collect();
    let open = if open.is_empty() { "none".to_owned() } else { open.join("; ") };
    format!("| `{name}` | {project} | {licence} | {all} | {json} | {others} | {open} |")
}

#[test]
fn the_schemas_of_five_tools_load_and_the_page_says_how_much_of_each_is_json() {
    let page = include_str!("../../../../docs/conformance.md");
    let rows: Vec<String> = tools().iter().map(row).collect();
    println!("{}", rows.join("\n"));
    assert_eq!(rows.len(), 5);
    for it in rows {
        assert!(page.contains(&it), "docs/conformance.md has no\n{it}");
    }
}

#[test]
fn calls_of_five_tools_come_back_as_they_were() {
    let calls = [
        json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" }),
        json!({ "repo_path": ".", "max_count": 3, "start_timestamp": null }),
        json!({ "path": "a", "edits": [{ "oldText": "a", "newText": "" }], "dryRun": true }),
        json!({ "query": "tea", "filter": { "property": "object", "value": "page" } }),
        json!({ "page_id": "b55c9c91-384d-452b-81db-d1ef79372b75", "archived": true }),
    ];
    for (tool, call) in tools().iter().zip(calls) {
        let schema = schema(tool);
        let element = from_json(&schema, &call).unwrap();
        assert_eq!(to_json(&schema, element.view()).unwrap(), call, "{}", tool["tool"]);
    }
}
