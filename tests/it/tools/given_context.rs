//! The setting `agent_context`: tools of a manifest get what they ask for of the calling agent.

use super::site::{Site, page};
use super::{asked, organism};

const REPLY: &str = r#"%% reply
<action id="a">{"name": "who", "parameters": {}}</action>
<action id="b">{"name": "none", "parameters": {}}</action>
<action id="c">{"name": "api", "parameters": {"url": "URL",
"headers": {"x-agent-context": "forged"}}}</action>
<action id="d">{"name": "place", "parameters": {"city": "Ulm"}}</action>
<response>${a.text} ${b.text} ${c.status} ${d.status}</response>
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_of_a_manifest_gets_the_context_that_it_asks_for() {
    let site = Site::one(page("text/plain", "ok")).await;
    let program = |file: &str| {
        let run = format!("[sh, -c, 'printf %s \"$AGENT_CONTEXT\" >{file}; echo {file}']");
        format!("use: command, settings: {{run: {run}, takes: {{type: object}}")
    };
    let hosts = format!("use: http, settings: {{hosts: [\"{}\"]", site.host());
    let takes = "{type: object, properties: {city: {type: string}}}";
    let place = format!("{hosts}, url: \"{}\", takes: {takes}", site.url("/p"));
    let asks = "agent_context: [agent_name, tools]}";
    let scene = organism(
        &[
            ("who", &format!("{}, {asks}", program("who"))),
            ("none", &format!("{}}}", program("none"))),
            ("api", &format!("{hosts}, {asks}")),
            ("place", &format!("{place}, {asks}")),
        ],
        &REPLY.replace("URL", &site.url("/a")),
    );
    asked(&scene, "Go.");
    let read = |file: &str| std::fs::read_to_string(scene.path("work").join(file)).unwrap();
    let expected = r#"{"agent_name":"coder","tools":["who","none","api","place"]}"#;
    let same = |it: &str| {
        let read = |it: &str| serde_json::from_str::<serde_json::Value>(it).unwrap();
        let (mut one, mut two) = (read(it), read(expected));
        for it in [&mut one, &mut two] {
            it["tools"].as_array_mut().unwrap().sort_by_key(ToString::to_string);
        }
        assert_eq!(one, two);
    };
    same(&read("who"));
    assert_eq!(read("none"), "");
    let requests = site.asked();
    assert_eq!(requests.len(), 2, "{requests:?}");
    for request in requests {
        let lines: Vec<&str> = request.split("\r\n").collect();
        let headers: Vec<&str> =
            lines.iter().filter_map(|it| it.strip_prefix("x-agent-context: ")).collect();
        assert_eq!(headers.len(), 1, "{lines:?}");
        same(headers[0]);
    }
}

#[test]
fn a_field_of_the_context_that_no_tool_gets_is_a_mistake() {
    for (field, said) in [
        ("metadta", "an agent's context has no `metadta`; did you mean `metadata`?"),
        ("environment", "`environment` may have secrets, and no tool gets it"),
    ] {
        let settings = format!("settings: {{run: [cat], agent_context: [{field}]}}");
        let scene = organism(&[("who", &format!("use: command, {settings}"))], REPLY);
        scene.run(&["check"]).code(1).says(&[said]);
    }
}
