//! Tests of tools' schemas, rewritten for each wire.

use super::*;
use crate::model::piece::Call;
use crate::model::wire::sent_tools::{SentTools, left_out};

fn tool(parameters: Value) -> Tool {
    Tool::new("t", "Does it.", parameters)
}

fn sent(wire: Wire, parameters: Value) -> Tool {
    rewritten(wire, &tool(parameters)).expect("a tool that the wire takes")
}

fn object(properties: &Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

/// The names of an object's properties, in alphabetical order.
fn names(object: &Value) -> Vec<&str> {
    let names = object.as_object().unwrap().keys().map(String::as_str);
    names.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

/// Checks what becomes of a property's schema.
fn check(wire: Wire, schema: &Value, expected: &Value) {
    let sent = sent(wire, object(&json!({ "a": schema }))).parameters;
    assert_eq!(sent["properties"]["a"].to_string(), expected.to_string(), "{wire}");
}

#[test]
fn an_array_has_items() {
    for wire in Wire::ALL {
        check(wire, &json!({ "type": "array" }), &json!({ "type": "array", "items": {} }));
        let nested = json!({ "type": "object", "properties": { "b": { "type": "array" } } });
        let expected = json!({ "type": "object",
            "properties": { "b": { "type": "array", "items": {} } } });
        check(wire, &nested, &expected);
    }
    let pair = json!([{ "type": "string" }, { "type": "integer" }]);
    let expected = json!({ "type": "array", "prefixItems": pair, "items": { "anyOf": pair } });
    check(Wire::OpenAiChat, &json!({ "type": "array", "prefixItems": pair }), &expected);
    check(Wire::OpenAiChat, &json!({ "type": "array", "items": pair }), &expected);
}

#[test]
fn each_of_several_types_stands_by_itself() {
    let text = json!({ "description": "It.",
        "anyOf": [{ "type": "string", "maxLength": 9 }, { "type": "null" }] });
    let said = json!({ "type": ["string", "null"], "description": "It.", "maxLength": 9 });
    check(Wire::OpenAiChat, &said, &text);
    check(Wire::Ollama, &json!({ "type": ["integer"] }), &json!({ "type": "integer" }));
    let words = json!({ "type": ["string", "null"], "enum": ["a", null] });
    let expected = json!({ "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "null" }] });
    check(Wire::AnthropicMessages, &words, &expected);
}

#[test]
fn bounds_that_a_server_misreads_are_left_out() {
    let check = |schema: Value, expected: Value| check(Wire::OpenAiChat, &schema, &expected);
    check(
        json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX }),
        json!({ "type": "integer", "minimum": 0 }),
    );
    check(json!({ "type": "integer", "minimum": i64::MIN }), json!({ "type": "integer" }));
    check(
        json!({ "type": "integer", "maximum": 10_000_000_000_u64, "description": "It." }),
        json!({ "type": "integer", "description": "It. Its maximum is 10000000000." }),
    );
    check(
        json!({ "type": "string", "maxLength": 5_000 }),
        json!({ "type": "string", "description": "Its maxLength is 5000." }),
    );
    let format = json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX });
    assert_eq!(without_wide_bounds(&format), json!({ "type": "integer", "minimum": 0 }));
}

#[test]
fn references_are_inlined_unless_they_lead_to_themselves() {
    let schema = json!({
        "type": "object",
        "properties": { "share": { "$ref": "#/$defs/percent%25field", "description": "How much." },
            "tree": { "$ref": "#/$defs/tree" } },
        "$defs": { "percent%field": { "type": "integer" }, "tree": { "type": "object",
            "properties": { "in": { "type": "array", "items": { "$ref": "#/$defs/tree" } } } } },
    });
    for wire in [Wire::AnthropicMessages, Wire::OpenAiResponses] {
        let sent = sent(wire, schema.clone()).parameters;
        let share = json!({ "type": "integer", "description": "How much." });
        assert_eq!(sent["properties"]["share"], share);
        let again = json!({ "$ref": "#/$defs/part_1" });
        assert_eq!(sent["properties"]["tree"]["properties"]["in"]["items"], again);
        assert_eq!(sent["$defs"]["part_1"]["properties"]["in"]["items"], again);
    }
    let sent = sent(Wire::Gemini, schema).parameters;
    let inner = &sent["properties"]["tree"]["properties"]["in"]["items"];
    assert_eq!((inner, sent.get("$defs")), (&json!({ "type": "object" }), None));
}

#[test]
fn a_pattern_that_makes_no_grammar_is_told_in_words() {
    let said = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    let told =
        |it: &str| json!({ "type": "string", "description": format!("Its pattern is {it}.") });
    for pattern in ["[a-z]+", r"^\d+$", "^(?=.*a)b$"] {
        for wire in [Wire::OpenAiChat, Wire::Ollama] {
            check(wire, &said(pattern), &told(pattern));
        }
        check(Wire::AnthropicMessages, &said(pattern), &said(pattern));
    }
    check(Wire::OpenAiChat, &said(r"^[a-z\-]{1,9}\.$"), &said(r"^[a-z\-]{1,9}\.$"));
}

#[test]
fn parts_of_all_of_are_joined_where_the_wire_does_not_know_it() {
    let schema = json!({ "allOf": [
        { "$ref": "#/$defs/c" },
        { "properties": { "b": { "type": "integer" } }, "required": ["b"] },
    ], "description": "Which." });
    let mut whole = object(&json!({ "a": schema }));
    whole["$defs"] = json!({ "c": { "type": "object", "description": "It.", "required": ["a"],
        "properties": { "a": { "type": "string" } } } });
    let sent = sent(Wire::Gemini, whole).parameters;
    let expected = json!({ "type": "object", "description": "Which. It.", "required": ["a", "b"],
        "properties": { "a": { "type": "string" }, "b": { "type": "integer" } } });
    assert_eq!(sent["properties"]["a"], expected);
}

#[test]
fn choices_at_the_top_are_joined_and_told() {
    for wire in Wire::ALL {
        for word in ["anyOf", "oneOf"] {
            let choices = json!([
                { "properties": { "id": { "type": "integer" } }, "required": ["id", "x"] },
                { "$ref": "#/$defs/named" },
            ]);
            let mut schema = object(&json!({ "x": { "type": "string" } }));
            schema[word] = choices;
            schema["$defs"] = json!({ "named": { "type": "object",
                "properties": { "name": { "type": "string" } }, "required": ["x", "name"] } });
            let sent = sent(wire, schema);
            assert_eq!(names(&sent.parameters), ["properties", "required", "type"]);
            assert_eq!(names(&sent.parameters["properties"]), ["id", "name", "x"]);
            assert_eq!(sent.parameters["required"], json!(["x"]));
            let rule = format!("Does it. The arguments must also be valid against {{\"{word}\":[");
            assert!(sent.description.starts_with(&rule), "{}", sent.description);
        }
    }
    let mut schema = object(&json!({}));
    schema["allOf"] = json!([{ "properties": { "a": { "type": "string" } }, "required": ["a"] }]);
    let sent = sent(Wire::OpenAiChat, schema);
    let expected = json!({ "type": "object", "properties": { "a": { "type": "string" } },
        "required": ["a"] });
    assert_eq!((sent.parameters, &*sent.description), (expected, "Does it."));
}

#[test]
fn names_that_a_provider_refuses_are_others_there_and_their_own_here() {
    let long = "n".repeat(70);
    let schema = json!({ "type": "object", "required": ["$filter", "_filter"], "properties": {
        "$filter": { "type": "string", "description": "OData." }, "_filter": { "type": "string" },
        "ids[]": { "type": "array", "items": { "type": "object",
            "properties": { "@id": { "type": "integer" } } } },
        (long.clone()): { "type": "boolean" },
        "free": { "type": "object", "additionalProperties": { "type": "string" } } } });
    let tools = [tool(schema.clone())];
    let sent = SentTools::new(Wire::AnthropicMessages, 9, &tools);
    let properties = &sent.all[0].parameters["properties"];
    let short = "n".repeat(59);
    assert_eq!(names(properties), ["_filter", "_filter_2", "free", "ids__", &short]);
    assert_eq!(sent.all[0].parameters["required"], json!(["_filter_2", "_filter"]));
    assert_eq!(properties["_filter_2"]["description"], "OData. It is called $filter.");
    let said = format!(
        "{{\"ids__\":[{{\"_id\":9007199254740993}}],\"_filter_2\":\"a\",\
         \"_filter\":\"b\",\"{short}\":true,\"free\":{{\"_filter_2\":\"c\"}}}}"
    );
    let meant = sent.meant(Call::new("x", "t", said.clone()));
    let expected = format!(
        "{{\"ids[]\":[{{\"@id\":9007199254740993}}],\"$filter\":\"a\",\
         \"_filter\":\"b\",\"{long}\":true,\"free\":{{\"_filter_2\":\"c\"}}}}"
    );
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(value(&meant.arguments), value(&expected));
    let mut prompt = crate::model::prompt::Prompt::new("").user("Go.").assistant("");
    prompt.messages[1].calls = vec![meant, Call::new("y", "other", "{\"ids[]\": 1}")];
    let again = sent.prompt(&prompt);
    let calls: Vec<&str> = again.messages[1].calls.iter().map(|it| &*it.arguments).collect();
    assert_eq!((value(calls[0]), calls[1]), (value(&said), "{\"ids[]\": 1}"));
    // Other wires take every name.
    assert_eq!(SentTools::new(Wire::OpenAiChat, 9, &tools).all[0].parameters, schema);
}

#[test]
fn the_order_of_properties_is_the_authors() {
    let properties = json!({ "reasoning": { "type": "string" }, "answer": { "type": "string" } });
    let schema = object(&properties);
    for wire in Wire::ALL {
        assert_eq!(sent(wire, schema.clone()).parameters.to_string(), schema.to_string());
    }
}

#[test]
fn a_tool_that_is_too_large_is_left_out_and_the_others_are_sent() {
    let words: Vec<String> = (0..900).map(|it| format!("{it:0>90}")).collect();
    let large = Tool::new("large", "", object(&json!({ "a": { "enum": words } })));
    let tools = [tool(object(&json!({}))), large];
    for wire in Wire::ALL {
        assert_eq!(SentTools::new(wire, 9, &tools).all.len(), 1);
        let (name, why) = left_out(wire, 9, &tools).remove(0);
        assert_eq!(name, "large");
        assert!(why.ends_with("the limit tool_schema_bytes_max is 65536"), "{why}");
    }
}

#[test]
fn of_too_many_tools_the_first_are_sent() {
    let words: Vec<String> = (0..900).map(|it| format!("{it:0>90}")).collect();
    let large = object(&json!({ "a": { "enum": words } }));
    let empty = object(&json!({}));
    let all = [("a", &empty), ("b", &large), ("c", &empty), ("d", &empty)];
    let tools = all.map(|(name, it)| Tool::new(name, "", it.clone()));
    let wire = Wire::OpenAiChat;
    let sent: Vec<_> = SentTools::new(wire, 2, &tools).all.into_iter().map(|it| it.name).collect();
    assert_eq!(sent, ["a", "c"]);
    let out = left_out(wire, 2, &tools);
    let names: Vec<_> = out.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["b", "d"]);
    assert_eq!(out[1].1, "the server takes 2 tools, and this is one more");
}

#[test]
fn a_schema_of_many_references_is_not_inlined_beyond_its_limit() {
    let mut defined = Map::new();
    for case in 0..20 {
        let inner = json!({ "$ref": format!("#/$defs/d{}", case + 1) });
        let both = object(&json!({ "a": inner, "b": inner }));
        defined.insert(format!("d{case}"), both);
    }
    defined.insert("d20".to_owned(), json!({ "type": "string" }));
    let schema = json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/d0" } },
        "$defs": defined });
    let sent = sent(Wire::OpenAiChat, schema);
    assert!(sent.parameters["$defs"].as_object().unwrap().len() >= 20);
}
