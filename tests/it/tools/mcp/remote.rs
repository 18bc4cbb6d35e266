//! MCP servers behind a URL. A server in this process answers, and records the requests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::called;
use crate::program::Scene;

/// A request: its first line, its headers in small letters, and its body.
#[derive(Clone, Debug)]
struct Asked {
    method: String,
    head: String,
    body: Value,
}

/// A server that speaks MCP over HTTP.
struct Host {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Host {
    /// Starts one that answers to calls as `how` says.
    fn start(how: &'static str) -> Host {
        Host::start_at(TcpListener::bind("127.0.0.1:0").unwrap(), how)
    }

    fn start_at(listener: TcpListener, how: &'static str) -> Host {
        let (port, asked) =
            (listener.local_addr().unwrap().port(), Arc::<Mutex<Vec<Asked>>>::default());
        let noted = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let noted = noted.clone();
                std::thread::spawn(move || serve(stream.unwrap(), how, &noted));
            }
        });
        Host { port, asked }
    }

    /// A folder whose manifest names it.
    fn scene(&self, more: &str) -> Scene {
        let scene = Scene::new();
        let settings = format!("settings: {{url: \"http://127.0.0.1:{}/mcp\"{more}}}", self.port);
        scene.write(
            "organism.yaml",
            format!("listeners: [{{use: mcp, name: words, {settings}}}]\n"),
        );
        scene
    }

    fn asked(&self, method: &str) -> Vec<Asked> {
        let all = self.asked.lock().unwrap();
        all.iter().filter(|it| it.method == method).cloned().collect()
    }
}

fn serve(stream: TcpStream, how: &str, noted: &Mutex<Vec<Asked>>) {
    let mut from = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if from.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|it| it.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |it| it.parse().unwrap())];
    from.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = head.split(' ').next().unwrap().to_owned();
    noted.lock().unwrap().push(Asked { method: method.clone(), head: lower, body: body.clone() });
    let (status, headers, text) = answer(how, &method, &body, noted);
    let length = text.len();
    let mut to = stream;
    drop(write!(
        to,
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{text}"
    ));
}

type Answer = (&'static str, String, String);

fn answer(how: &str, method: &str, body: &Value, noted: &Mutex<Vec<Asked>>) -> Answer {
    let result = |it: Value| json!({ "jsonrpc": "2.0", "id": body["id"], "result": it });
    let json = |it: Value| ("200 OK", "content-type: application/json\r\n".into(), it.to_string());
    let events = |it: &str| ("200 OK", "content-type: text/event-stream\r\n".into(), it.to_owned());
    let refused = |code: i64, text: &str| {
        let error = json!({ "code": code, "message": text });
        let said = json!({ "jsonrpc": "2.0", "id": body["id"], "error": error });
        ("400 Bad Request", "content-type: application/json\r\n".into(), said.to_string())
    };
    let done = |id: &Value| {
        let said = json!({ "content": [{ "type": "text", "text": "it is done" }] });
        json!({ "jsonrpc": "2.0", "id": id, "result": said })
    };
    match (method, body["method"].as_str().unwrap_or_default()) {
        (_, "tools/list") if how == "changes" && is_forgotten(noted) => {
            let schema = json!({ "type": "object", "properties": {} });
            let good = json!({ "name": "good", "description": "other", "inputSchema": schema });
            json(result(json!({ "tools": [good] })))
        }
        ("DELETE", _) => ("204 No Content", String::new(), String::new()),
        // A stream is taken up again.
        ("GET", _) => {
            let asked = noted.lock().unwrap();
            let call = asked.iter().rfind(|it| it.body["method"] == "tools/call").unwrap();
            let times = asked.iter().filter(|it| it.method == "GET").count();
            if how == "breaks again" && times == 1 {
                return events("data:\n\n");
            }
            events(&format!("id: 2\ndata: {}\n\n", done(&call.body["id"])))
        }
        (_, "initialize") if how == "redirects" => {
            ("307 Temporary Redirect", "location: http://127.0.0.1:1/\r\n".into(), String::new())
        }
        (_, "initialize") => {
            let (status, headers, text) =
                json(result(json!({ "protocolVersion": "2025-06-18", "capabilities": {} })));
            (status, headers + "mcp-session-id: s-1\r\n", text)
        }
        (_, "ping") if how == "forgets by 400" && is_forgotten(noted) => {
            ("400 Bad Request", String::new(), String::new())
        }
        (_, "ping") if how == "answers by 400" => refused(-32601, "Method not found"),
        (_, "ping") => json(result(json!({}))),
        (_, "tools/list") => {
            let schema = json!({ "type": "object", "properties": {} });
            json(result(json!({ "tools": [{ "name": "good", "inputSchema": schema }] })))
        }
        (_, "tools/call") => match how {
            "json" => json(done(&body["id"])),
            "events" => {
                let other = json!({ "method": "notifications/message", "params": {} });
                events(&format!(": hi\n\ndata: {other}\n\ndata: {}\n\n", done(&body["id"])))
            }
            "breaks" | "breaks again" => events("id: 1\nretry: 10\ndata:\n\n"),
            "ends" => events(": nothing\n\n"),
            "forgets" | "forgets by 400" => match is_forgotten(noted) {
                true if how == "forgets" => ("404 Not Found", String::new(), String::new()),
                true => ("400 Bad Request", String::new(), String::new()),
                false => json(done(&body["id"])),
            },
            "answers by 400" => refused(-32602, "no such bill"),
            "bad request" => ("400 Bad Request", String::new(), String::new()),
            "refuses" => ("401 Unauthorized", String::new(), String::new()),
            "large" => json(json!("x".repeat(5 << 20))),
            _ => ("500 Internal Server Error", String::new(), String::new()),
        },
        // A notification. Servers of the Python SDK name a type of the body that isn't there.
        _ => ("202 Accepted", "content-type: application/json\r\n".into(), String::new()),
    }
}

/// Whether the server forgot its session: one was begun for its tools, and one for the call.
fn is_forgotten(noted: &Mutex<Vec<Asked>>) -> bool {
    let asked = noted.lock().unwrap();
    asked.iter().filter(|it| it.body["method"] == "initialize").count() == 2
}

#[track_caller]
fn says(how: &'static str, expected: &[&str]) -> Host {
    let host = Host::start(how);
    let scene = host.scene("");
    let server = scene.serve(&[]);
    called(&scene, &server, "good", "").says(expected);
    host
}

#[test]
fn a_tool_behind_a_url_is_called_and_answers_in_json_or_events() {
    says("json", &["<text>it is done</text>"]);
    says("events", &["<text>it is done</text>"]);
}

#[test]
fn requests_have_the_session_the_revision_and_the_bearer() {
    let host = Host::start("json");
    let scene = host.scene(", bearer: \"${TOKEN}\"");
    let live = scene.command(&["check", "--live"]).env("TOKEN", "sk-secret-1").output().unwrap();
    assert!(live.status.success(), "{live:?}");
    let asked = host.asked("POST");
    let methods: Vec<_> = asked.iter().map(|it| it.body["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["initialize", "notifications/initialized", "tools/list"]);
    for it in &asked {
        assert!(it.head.contains("authorization: bearer sk-secret-1\r\n"), "{it:?}");
        assert!(it.head.contains("accept: application/json, text/event-stream\r\n"), "{it:?}");
    }
    for it in &asked[1..] {
        assert!(it.head.contains("mcp-session-id: s-1\r\n"), "{it:?}");
        assert!(it.head.contains("mcp-protocol-version: 2025-06-18\r\n"), "{it:?}");
    }
    let [ended] = &host.asked("DELETE")[..] else { panic!("one session is ended") };
    assert!(ended.head.contains("mcp-session-id: s-1\r\n"), "{ended:?}");
}

#[test]
fn a_pump_that_stops_ends_its_session() {
    let host = Host::start("json");
    let scene = host.scene("");
    let mut server = scene.serve(&[]);
    called(&scene, &server, "good", "").says(&["<text>it is done</text>"]);
    assert_eq!(host.asked("DELETE").len(), 1, "the session in which the tools were asked for");
    assert_eq!(server.stop("-TERM").0, Some(0));
    assert_eq!(host.asked("DELETE").len(), 2);
}

#[test]
fn a_stream_that_breaks_off_is_taken_up_where_it_was() {
    let host = says("breaks", &["<text>it is done</text>"]);
    let [taken_up] = &host.asked("GET")[..] else { panic!("it is taken up once") };
    assert!(taken_up.head.contains("last-event-id: 1\r\n"), "{taken_up:?}");
    let host = says("breaks again", &["<text>it is done</text>"]);
    for taken_up in host.asked("GET") {
        assert!(taken_up.head.contains("last-event-id: 1\r\n"), "{taken_up:?}");
    }
    says("ends", &["reason=\"unknown\"", "the server's stream ended without an answer"]);
}

/// The server did nothing, so the call itself begins a session anew.
#[test]
fn a_session_that_its_server_forgot_is_begun_again_within_the_call() {
    for how in ["forgets", "forgets by 400"] {
        let host = says(how, &["<text>it is done</text>"]);
        let count = |method: &str| {
            host.asked("POST").iter().filter(|it| it.body["method"] == method).count()
        };
        assert_eq!((count("initialize"), count("tools/call")), (3, 2), "{how}");
    }
}

/// The session that is called is the one that was compared with the record.
#[test]
fn a_server_is_asked_for_its_tools_in_each_session() {
    let host = says("changes", &["<tool-failed", "reason=\"changed\""]);
    assert!(!host.asked("POST").iter().any(|it| it.body["method"] == "tools/call"));
}

/// A server may answer 400 to a call and know the session all the same.
#[test]
fn a_call_that_is_refused_by_400_is_not_sent_again() {
    for (how, why) in [("bad request", "400 Bad Request"), ("answers by 400", "no such bill")] {
        let host = says(how, &["reason=\"refused\"", why]);
        let calls = host.asked("POST");
        assert_eq!(calls.iter().filter(|it| it.body["method"] == "tools/call").count(), 1, "{how}");
    }
}

/// The connection of the recorded tools is of no use any more: another server took the port.
#[test]
fn a_server_that_cannot_be_connected_to_is_unreachable_until_it_is_there_again() {
    let host = Host::start("json");
    let scene = host.scene("");
    scene.run(&["check", "--live"]).code(0);
    let address = std::fs::read_to_string(scene.path("organism.yaml")).unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    scene.write("organism.yaml", address.replace(&host.port.to_string(), &gone.to_string()));
    let record = std::fs::read_to_string(scene.path("mcp.lock.json")).unwrap();
    scene.write("mcp.lock.json", record.replace(&host.port.to_string(), &gone.to_string()));
    let server = scene.serve(&[]);
    for _ in 0..3 {
        called(&scene, &server, "good", "").says(&["reason=\"unreachable\"", "no connection"]);
    }
    let _back = Host::start_at(TcpListener::bind(("127.0.0.1", gone)).unwrap(), "json");
    called(&scene, &server, "good", "").says(&["<text>it is done</text>"]);
}

#[test]
fn what_a_server_behind_a_url_refuses_is_told() {
    let wants = "127.0.0.1 answers 401 Unauthorized: it wants another `bearer`";
    says("refuses", &["reason=\"refused\"", wants]);
    says("fails", &["reason=\"unknown\"", "127.0.0.1 answers 500 Internal Server Error"]);
    says("large", &["reason=\"unknown\"", "the server's answer has more than 4194304 bytes"]);
}

#[test]
fn no_redirect_of_a_server_is_followed() {
    let host = Host::start("redirects");
    let told = host.scene("").run(&["check", "--live"]).code(1);
    told.says(&["can't be asked for its tools: 127.0.0.1 answers 307 Temporary Redirect"]);
}

#[test]
fn a_bearer_is_sent_over_tls_or_to_this_machine() {
    let scene = Scene::new();
    for (settings, expected) in [
        ("url: \"http://example.org/mcp\", bearer: abcdef", "`bearer` is sent over https:// alone"),
        ("url: \"http://127.0.0.1:9/\", bearer: \" \"", "`bearer` is empty"),
        (
            "url: \"http://127.0.0.1:9/\", bearer: abcdefg",
            "`bearer`: a secret of 7 bytes is too short",
        ),
        ("url: \"ftp://a.org/\"", "https:// or http://"),
        ("url: \"http://u:p@a.org/\"", "no place for a name or a password"),
        ("command: [ls], url: \"http://a.org/\"", "give one"),
        ("command: [ls], bearer: abcdef", "`bearer` goes with `url`"),
    ] {
        let manifest = format!("listeners: [{{use: mcp, settings: {{{settings}}}}}]\n");
        scene.write("organism.yaml", manifest);
        scene.run(&["check"]).code(1).says(&[expected]);
    }
}
