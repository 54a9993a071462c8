//! Tool calls.

use serde_json::{Value, json};

use super::client::{Reply, Server};

fn ask(tools: &Value, more: Value) -> Value {
    let mut body = json!({"messages": [{"role": "user", "content": "Use a tool."}], "tools": tools});
    for (name, value) in more.as_object().expect("fields") {
        body[name] = value.clone();
    }
    body
}

fn tool(name: &str, parameters: &Value) -> Value {
    json!({"type": "function", "function": {"name": name, "parameters": parameters}})
}

/// The calls of a whole answer, as name and arguments.
fn calls(reply: &Reply) -> Vec<(String, String)> {
    assert_eq!(reply.status, 200, "{}", reply.body);
    let choice = &reply.json()["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(choice["message"]["content"], Value::Null);
    let calls = choice["message"]["tool_calls"].as_array().expect("calls").iter();
    calls
        .map(|call| {
            assert!(call["id"].as_str().is_some_and(|id| id.starts_with("call_")), "{call}");
            assert_eq!(call["type"], "function");
            let text = |name: &str| call["function"][name].as_str().expect("a text").to_owned();
            (text("name"), text("arguments"))
        })
        .collect()
}

/// The same of a stream, put together by the index of each piece.
fn streamed_calls(reply: &Reply) -> (Vec<(String, String)>, usize) {
    let mut calls: Vec<(String, String)> = Vec::new();
    let mut pieces = 0;
    let events = reply.events();
    for event in &events[..events.len() - 1] {
        let choice = serde_json::from_str::<Value>(event).expect("JSON")["choices"][0].clone();
        for piece in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let at = usize::try_from(piece["index"].as_u64().expect("an index")).expect("small");
            if let Some(name) = piece["function"]["name"].as_str() {
                assert!(piece["id"].is_string());
                assert_eq!(at, calls.len());
                calls.push((name.to_owned(), String::new()));
            }
            calls[at].1 += piece["function"]["arguments"].as_str().expect("arguments");
            pieces += 1;
        }
    }
    let last: Value = serde_json::from_str(&events[events.len() - 2]).expect("JSON");
    assert_eq!(last["choices"][0]["finish_reason"], "tool_calls");
    (calls, pieces)
}

/// Schemas with everything that a call's arguments can be made of.
fn schemas() -> Vec<Value> {
    let value = |schema: Value| json!({"type": "object", "required": ["value"], "properties": {"value": schema}});
    let mut all = vec![
        json!({"type": "object", "required": ["city", "when"], "additionalProperties": false, "properties": {
            "city": {"type": "string", "minLength": 7},
            "when": {"type": "object", "required": ["day"], "properties": {
                "day": {"type": "integer", "minimum": 3, "maximum": 5}, "hour": {"type": "number"}}},
            "unit": {"enum": ["C", "F"]}}}),
        json!({"type": "object", "required": ["value"], "$defs": {"node": {
            "type": "object", "required": ["next", "name"], "properties": {
                "name": {"type": "string"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}}},
            "properties": {"value": {"$ref": "#/$defs/node"}}}),
        json!({"type": "object", "minProperties": 3, "properties": {"a": {"type": "string"}},
            "additionalProperties": {"type": "boolean"}}),
    ];
    all.extend(
        [
            json!({"const": {"a": [1]}}),
            json!({"enum": [7, "x"], "type": "string"}),
            json!({"anyOf": [false, {"type": "integer", "exclusiveMinimum": 2, "multipleOf": 5}, {"type": "null"}]}),
            json!({"oneOf": [{"type": "array", "minItems": 2, "items": {"type": "number", "exclusiveMaximum": 0}}]}),
            json!({"type": "array", "minItems": 3, "uniqueItems": true, "items": {"type": "string", "maxLength": 6}}),
            json!({"type": "array", "minItems": 3, "prefixItems": [{"type": "boolean"}], "items": {"enum": [4]}}),
            json!({"allOf": [{"type": "object", "required": ["a"], "properties": {"a": {"type": "null"}}},
                {"required": ["b"], "properties": {"b": {"const": 1}}}]}),
            json!({"type": "string", "pattern": "^[A-Z]{2}-(x|y)\\d+$", "minLength": 8}),
            json!({"type": ["null", "string"]}),
            json!({"type": "number", "exclusiveMinimum": 0.25, "exclusiveMaximum": 0.5}),
            json!({"type": "integer", "minimum": 9_223_372_036_854_775_807_i64}),
            json!({"minimum": -3.5, "maximum": -3.5}),
            json!({}),
        ]
        .map(value),
    );
    all
}

#[test]
fn arguments_fit_the_schema_whole_and_streamed() {
    let server = Server::start(&[]);
    for schema in schemas() {
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let tools = json!([tool("first", &schema), tool("second", &json!({}))]);
        let whole = calls(&server.chat(ask(&tools, json!({}))));
        let (streamed, pieces) = streamed_calls(&server.chat(ask(&tools, json!({"stream": true}))));
        assert_eq!(whole, streamed);
        let [(name, arguments)] = &whole[..] else {
            panic!("{whole:?}")
        };
        assert_eq!(name, "first");
        let arguments: Value = serde_json::from_str(arguments).expect("JSON");
        let errors: Vec<String> = validator.iter_errors(&arguments).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{schema}: {arguments}: {errors:?}");
        assert!(pieces > 1 || arguments == json!({}), "{arguments}");
    }
}

#[test]
fn the_asked_share_of_calls_is_wrong_and_the_same_in_each_run() {
    let servers = [0, 1].map(|_| Server::start(&["--tool-wrong-rate", "0.4", "--seed", "3"]));
    let always = Server::start(&["--tool-wrong-rate", "1"]);
    let mut wrong = 0;
    let mut kinds = [0, 0];
    for n in 0..100 {
        let schema = json!({"type": "object", "required": [format!("p{n}")], "properties": {
            format!("p{n}"): {"type": "integer", "maximum": n}}});
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let request = ask(&json!([tool("t", &schema)]), json!({}));
        let [first, again] = servers.each_ref().map(|server| calls(&server.chat(request.clone())));
        assert_eq!(first, again);
        let fits = |call: &str| validator.is_valid(&serde_json::from_str(call).expect("JSON"));
        wrong += usize::from(!fits(&first[0].1));
        let bad = calls(&always.chat(request));
        assert!(!fits(&bad[0].1), "{bad:?}");
        kinds[usize::from(bad[0].1 == "{}")] += 1;
    }
    assert!((25..=55).contains(&wrong), "{wrong}");
    assert!(kinds.iter().all(|count| *count > 20), "{kinds:?}");
}

#[test]
fn a_schema_that_allows_everything_is_still_broken() {
    let server = Server::start(&["--tool-wrong-rate", "1"]);
    let broken = calls(&server.chat(ask(&json!([tool("t", &json!({}))]), json!({}))));
    assert!(serde_json::from_str::<Value>(&broken[0].1).is_err(), "{broken:?}");
}

#[test]
fn the_choice_of_tools_is_kept() {
    let server = Server::start(&[]);
    let tools = json!([tool("a_tool", &json!({})), tool("b_tool", &json!({}))]);
    let name = |more: Value| calls(&server.chat(ask(&tools, more)))[0].0.clone();
    assert_eq!(name(json!({"tool_choice": "required"})), "a_tool");
    let named = json!({"tool_choice": {"type": "function", "function": {"name": "b_tool"}}});
    assert_eq!(name(named), "b_tool");
    let wants_b = json!({"messages": [{"role": "user", "content": "Call b_tool now"}]});
    assert_eq!(name(wants_b), "b_tool");
    let silent = server.chat(ask(&tools, json!({"tool_choice": "none"}))).json();
    assert_eq!(silent["choices"][0]["finish_reason"], "stop");
    let answered = json!({"messages": [
        {"role": "user", "content": "2 + 3 = ?"},
        {"role": "assistant", "content": null, "tool_calls": []},
        {"role": "tool", "tool_call_id": "call_1_0_0", "content": "5"},
    ]});
    let answered = server.chat(ask(&tools, answered));
    assert!(answered.content().ends_with("#### 5"), "{}", answered.body);
    for (tools, choice) in [
        (&tools, json!({"type": "function", "function": {"name": "c"}})),
        (&json!([]), json!("required")),
        (&tools, json!("perhaps")),
    ] {
        assert_eq!(server.chat(ask(tools, json!({"tool_choice": choice}))).status, 400);
    }
}

#[test]
fn known_questions_get_their_calls_and_faults_strike_each_tool_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("answers.jsonl");
    let lines = [
        json!({"question": "Two, please.", "tool_calls": [
            {"name": "t", "arguments": {"n": 1}}, {"name": "t", "arguments": {"n": 2}}]}),
        json!({"question": "None fits.", "tool_calls": []}),
    ];
    std::fs::write(&file, lines.map(|line| line.to_string()).join("\n")).expect("written");
    let file = file.to_str().expect("UTF-8");
    let tools = json!([tool("t", &json!({"type": "object"}))]);
    let asked = |question: &str| ask(&tools, json!({"messages": [{"role": "user", "content": question}]}));
    let right = Server::start(&["--answers", file]);
    let two = [("t", r#"{"n":1}"#), ("t", r#"{"n":2}"#)].map(|(n, a)| (n.to_owned(), a.to_owned()));
    assert_eq!(calls(&right.chat(asked("Two, please."))), two);
    let mut stream = asked("Two, please.");
    stream["stream"] = json!(true);
    assert_eq!(streamed_calls(&right.chat(stream)).0, two);
    assert_eq!(right.chat(asked("None fits.")).content(), "No tool fits.");
    let wrong = Server::start(&["--answers", file, "--accuracy", "0"]);
    assert_eq!(wrong.chat(asked("Two, please.")).content(), "No tool fits.");
    assert_eq!(calls(&wrong.chat(asked("None fits."))).len(), 1);

    let failing = Server::start(&["--fail-rate", "0.5"]);
    let failed = (0..60).filter(|n| {
        let tools = json!([tool(&format!("t{n}"), &json!({}))]);
        failing.chat(ask(&tools, json!({}))).status == 500
    });
    let failed = failed.count();
    assert!(
        (15..=45).contains(&failed),
        "{failed} of 60 with one question and as many tools"
    );
}

#[test]
fn arguments_are_cut_at_the_limit() {
    let server = Server::start(&[]);
    let schema = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "minLength": 90}}});
    let reply = server
        .chat(ask(&json!([tool("t", &schema)]), json!({"max_tokens": 4})))
        .json();
    let choice = &reply["choices"][0];
    assert_eq!(choice["finish_reason"], "length");
    assert_eq!(reply["usage"]["completion_tokens"], 4);
    let arguments = choice["message"]["tool_calls"][0]["function"]["arguments"].as_str();
    assert!(
        arguments.is_some_and(|text| text.starts_with("{\"a\":") && !text.ends_with('}')),
        "{choice}"
    );
}

#[test]
fn hostile_schemas_end() {
    let server = Server::start(&[]);
    let endless = json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}});
    let huge = json!({"type": "object", "required": ["a"], "properties": {"a": {
        "type": "array", "minItems": 1_000_000_000, "items": {"type": "string", "minLength": 1_000_000_000}}}});
    let wide = json!({"type": "object", "required": ["a"], "properties": {"a": {
        "type": "string", "pattern": "((x{1000}){1000}){1000}"}}});
    for schema in [endless, huge, wide] {
        let made = calls(&server.chat(ask(&json!([tool("t", &schema)]), json!({}))));
        assert_eq!(made[0].1, "{}", "nothing fits in bounds");
    }
}

#[test]
fn an_answer_of_131072_tokens_comes_whole_and_streamed() {
    const LONG: usize = 131_072;
    let server = Server::start(&["--max-model-len", "140000"]);
    let body = |stream: bool| {
        json!({"messages": [{"role": "user", "content": "1 + 1"}], "max_tokens": LONG, "ignore_eos": true,
            "stream": stream, "stream_options": {"include_usage": true}})
    };
    let whole = server.chat(body(false));
    assert_eq!(whole.json()["usage"]["completion_tokens"], LONG);
    assert_eq!(whole.content().split_whitespace().count(), LONG);
    let streamed = server.chat(body(true));
    assert!(streamed.complete);
    // One for each word, the counts, and the end.
    assert_eq!(streamed.events().len(), LONG + 2);
}
