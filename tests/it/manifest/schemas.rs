//! JSON Schemas in a manifest: what `check`, `describe` and `inspect payload` say of them.

use crate::program::Scene;

const WEATHER: &str = r#"{
    "type": "object",
    "description": "Where the weather is wanted.",
    "properties": {
        "city": { "type": "string" },
        "days": { "type": "integer", "multipleOf": 7 },
        "filter": { "oneOf": [{ "type": "string" }, { "type": "integer" }] }
    },
    "required": ["city"],
    "additionalProperties": false
}"#;

#[test]
fn a_json_schema_declares_a_payload() {
    let scene = Scene::new();
    scene.write("weather.schema.json", WEATHER);
    scene.write("organism.yaml", "schemas: [weather.schema.json]\nlisteners: [{use: echo}]\n");
    scene.run(&["check"]).code(0).says(&[
        "schema    {https://xml-pipeline.org/ns/weather/v1}weather",
        "  2 places are held against the JSON Schema alone",
    ]);
    scene.run(&["describe"]).code(0).says(&["declared\n", "Where the weather is wanted."]);
    scene.run(&["describe", "weather"]).code(0).says(&[
        "nobody: a manifest declares it",
        "held against its JSON Schema\n",
        "$.days: more than that schema lets through (multipleOf)\n",
        "$.filter: any JSON value (oneOf)\n",
    ]);
    let objects = scene.run(&["describe", "weather", "--json"]).code(0).objects();
    let loose = &objects[0]["held_against_its_json_schema"];
    assert_eq!((&loose[1]["path"], &loose[1]["any_json"]), (&"$.filter".into(), &true.into()));
    let weather = |inside: &str| {
        let ns = "https://xml-pipeline.org/ns/weather/v1";
        scene.write("it.xml", format!("<weather xmlns=\"{ns}\">{inside}</weather>"));
        scene.run(&["inspect", "payload", "it.xml"])
    };
    let right = weather("<city>Oslo</city><days>14</days>").code(0);
    right.says(&["\"verdict\":\"accept\""]);
    let wrong = weather("<city>Oslo</city><days>3</days>").code(0);
    wrong.says(&["\"verdict\":\"reject\"", "3 is not a multiple of 7"]);
}

#[test]
fn a_file_that_is_no_schema_is_a_mistake_in_its_place() {
    let scene = Scene::new();
    scene.write("a.json", "{\"type\": \"strng\"}");
    scene.write("b.json", "{\"$ref\": \"http://127.0.0.1:1/x\"}");
    scene.write("c.json", "{");
    scene.write("1.json", "{}");
    scene.write("d.json", "{}");
    scene.write("d.schema.json", "{}");
    let files = "[a.json, b.json, c.json, 1.json, e.json, d.json, d.schema.json]";
    scene.write("organism.yaml", format!("schemas: {files}\n"));
    scene.run(&["check"]).code(1).says(&[
        "6 mistakes in organism.yaml",
        "organism.yaml:1:11: a.json: #",
        "b.json: #: it refers to \"http://127.0.0.1:1/x\", which isn't in it; nothing is fetched",
        "c.json: line 1, column 2: the text ends within its value",
        "1.json: a payload is called as its file, and that is no name of XML",
        "e.json: No such file",
        "d.schema.json is the payload {https://xml-pipeline.org/ns/d/v1}d, as another file is",
    ]);
}
