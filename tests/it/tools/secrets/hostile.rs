//! Peers that say secrets: a web server that is a service, an MCP server and two models, and a door
//! of another organism.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{forms, secret};

/// How the web server answers requests.
pub(super) const WEB: [&str; 8] =
    ["json", "text", "html", "location", "kind", "status", "utf16", "unnamed"];
/// How the MCP server answers calls. The first ones are answers in JSON.
pub(super) const MCP: [&str; 11] = [
    "result",
    "is-error",
    "rpc-error",
    "structured",
    "attached",
    "links",
    "parts",
    "broken",
    "kind",
    "status",
    "events",
];
pub(super) const MCP_JSON: usize = 8;
/// How the door answers, one way after the other.
pub(super) const DOOR: [&str; 5] = ["text", "from", "name", "huh", "refused"];
/// How the models reply.
pub(super) const MODELS: [&str; 6] =
    ["say-reply", "say-pieces", "say-calls", "say-error", "say-reasoning", "say-references"];

pub(super) struct Hostile {
    /// The address of the web server.
    pub(super) web: String,
    /// The address of the door.
    pub(super) door: String,
    state: State,
}

/// What a model was asked, with its place.
type Prompt = (String, Vec<u8>);

/// What is said now, and what was heard.
#[derive(Clone)]
struct State {
    said: Arc<Mutex<Said>>,
    /// What the models were asked, without the headers.
    heard: Arc<Mutex<Vec<Prompt>>>,
}

/// What the peers say.
#[derive(Clone)]
pub(super) struct Said {
    pub(super) all: String,
    /// Where a stream of `all` is cut into pieces.
    pub(super) cuts: Vec<usize>,
    /// How the door answers.
    pub(super) door: &'static str,
}

impl Said {
    /// The pieces of all that is said.
    fn pieces(&self) -> Vec<&str> {
        let all = &self.all;
        let cuts = self.cuts.iter().map(|it| all.floor_char_boundary(it % (all.len() + 1)));
        let mut cuts: Vec<usize> = cuts.chain([0, all.len()]).collect();
        cuts.sort_unstable();
        cuts.windows(2).map(|it| &all[it[0]..it[1]]).collect()
    }

    /// What is said, as far as it may stand in a header.
    fn header(&self) -> String {
        self.all.chars().filter(|it| matches!(it, ' '..='~')).collect()
    }
}

impl Hostile {
    pub(super) fn start(said: Said) -> Hostile {
        let state = State { said: Arc::new(Mutex::new(said)), heard: Arc::default() };
        let web = TcpListener::bind("127.0.0.1:0").unwrap();
        let door = TcpListener::bind("127.0.0.1:0").unwrap();
        let addresses = [&web, &door].map(|it| it.local_addr().unwrap().to_string());
        let (of_web, of_door) = (state.clone(), state.clone());
        std::thread::spawn(move || {
            for stream in web.incoming() {
                let state = of_web.clone();
                std::thread::spawn(move || serve(stream.unwrap(), &state));
            }
        });
        std::thread::spawn(move || {
            for stream in door.incoming() {
                let said = of_door.said.lock().unwrap().clone();
                std::thread::spawn(move || drop(open(stream.unwrap(), &said)));
            }
        });
        let [web, door] = addresses;
        Hostile { web, door, state }
    }

    /// Makes all peers say something else.
    pub(super) fn say(&self, said: Said) {
        *self.state.said.lock().unwrap() = said;
    }

    pub(super) fn heard(&self) -> Vec<Prompt> {
        self.state.heard.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, state: &State) {
    let said = &state.said.lock().unwrap().clone();
    let mut from = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if from.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let length = head.to_lowercase();
    let length = length.lines().find_map(|it| it.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |it| it.parse().unwrap())];
    from.read_exact(&mut body).unwrap();
    let path = head.split(' ').nth(1).unwrap().split('?').next().unwrap().to_owned();
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (status, headers, text) = match &*path {
        "/mcp" => mcp(&asked, said, &["bearer", "url"]),
        "/own" => mcp(&asked, said, &["program"]),
        "/v1/chat/completions" | "/v1/messages" => {
            state.heard.lock().unwrap().push((format!("a prompt to {path}"), body));
            model(&path, &asked, said)
        }
        path => web(path.trim_start_matches('/'), said),
    };
    let length = text.len();
    let mut to = stream;
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n");
    let all = [head.as_bytes(), b"connection: close\r\n\r\n", &text].concat();
    for piece in all.chunks(all.len() / (said.cuts.len() + 1) + 1) {
        if to.write_all(piece).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

type Answer = (&'static str, String, Vec<u8>);

fn of_kind(kind: &str, text: impl Into<Vec<u8>>) -> Answer {
    ("200 OK", format!("content-type: {kind}\r\n"), text.into())
}

/// A secret in four parts, each of which is shorter than a half.
fn quarters(secret: &str) -> [&str; 4] {
    let (first, second) = secret.split_at(secret.len() / 2);
    let ((a, b), (c, d)) = (first.split_at(first.len() / 2), second.split_at(second.len() / 2));
    [a, b, c, d]
}

fn web(how: &str, said: &Said) -> Answer {
    let all = &said.all;
    match how {
        "quotes" => {
            let [a, b, c, d] = quarters(secret("service"));
            of_kind("application/json", json!({ "a": a, "b": b, "c": c, "d": d }).to_string())
        }
        "json" => of_kind("application/json", json!({ "all": all, all: 1 }).to_string()),
        "html" => of_kind("text/html", format!("<title>{all}</title><p>{all}")),
        "location" => {
            let (secret, link) = (secret("http"), said.header());
            let far = "a".repeat(1_000 - secret.len() + 1);
            let headers = format!("location: /{far}{secret}\r\nlink: {link}\r\n");
            ("302 Found", headers, Vec::new())
        }
        "kind" => of_kind(&format!("text/{}", said.header()), "x"),
        "status" => ("401 Unauthorized", String::new(), all.clone().into()),
        "utf16" => {
            let text = all.encode_utf16().flat_map(u16::to_le_bytes);
            of_kind("text/plain; charset=utf-16le", text.collect::<Vec<u8>>())
        }
        // The bytes of UTF-16, with nothing that says so but their mark.
        "unnamed" => {
            let text = format!("\u{feff}{all}").encode_utf16().flat_map(u16::to_be_bytes).collect();
            ("200 OK", "content-type: text/plain\r\n".into(), text)
        }
        _ => of_kind("text/plain", all.clone()),
    }
}

/// An MCP server's answer. What is recorded of the server has the secrets that it was given alone.
fn mcp(asked: &Value, said: &Said, given: &[&str]) -> Answer {
    let (all, own) = (&said.all, forms(given.iter().map(|it| secret(it))));
    let id = &asked["id"];
    let json = |it: &Value| of_kind("application/json", it.to_string());
    let result = |it: Value| json!({ "jsonrpc": "2.0", "id": id, "result": it });
    let text = |it: &str| json!([{ "type": "text", "text": it }]);
    match asked["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let server = json!({ "name": own, "version": own });
            json(&result(json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": server, "instructions": own
            })))
        }
        "tools/list" => {
            let x = json!({ "type": "string", "description": own });
            let schema = json!({ "type": "object", "properties": { "x": x } });
            json(&result(json!({ "tools": [
                { "name": "t", "description": own, "title": own, "inputSchema": schema },
                { "name": secret(given[0]), "description": own, "inputSchema": schema },
            ] })))
        }
        "tools/call" => match asked["params"]["arguments"]["x"].as_str().unwrap_or_default() {
            "is-error" => json(&result(json!({ "isError": true, "content": text(all) }))),
            "rpc-error" => {
                let error = json!({ "code": -1, "message": all, "data": { "all": all } });
                json(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
            }
            "structured" => json(&result(json!({ "structuredContent": { "all": all } }))),
            "attached" => {
                let data = super::base64_text(all.as_bytes());
                let image = json!({ "type": "image", "mimeType": all, "data": data });
                json(&result(json!({ "content": [image] })))
            }
            "links" => {
                let link =
                    json!({ "type": "resource_link", "uri": all, "name": all, "title": all });
                let file = json!({ "uri": all, "mimeType": "text/plain", "text": all });
                let file = json!({ "type": "resource", "resource": file });
                let other = json!({ "type": all, "text": all, "annotations": { "all": all } });
                json(&result(json!({ "content": [link, file, other], "_meta": { "all": all } })))
            }
            "parts" => {
                let parts =
                    said.pieces().into_iter().map(|it| json!({ "type": "text", "text": it }));
                let parts: Vec<Value> = parts.collect();
                json(&result(json!({ "content": parts, "structuredContent": { "all": parts } })))
            }
            "kind" => of_kind(&format!("text/{}", said.header()), "x"),
            "broken" => of_kind("application/json", format!("{{\"id\": {id}, {all}")),
            "status" => {
                let error = json!({ "code": -1, "message": all });
                let said = json!({ "jsonrpc": "2.0", "id": id, "error": error });
                (
                    "403 Forbidden",
                    "content-type: application/json\r\n".into(),
                    said.to_string().into(),
                )
            }
            "events" => {
                let answer = result(json!({ "content": text(all) }));
                of_kind("text/event-stream", format!("id: {}\ndata: {answer}\n\n", said.header()))
            }
            _ => json(&result(json!({ "content": text(all) }))),
        },
        _ => ("202 Accepted", String::new(), Vec::new()),
    }
}

/// A model's answer: the last word of the prompt says which.
fn model(path: &str, asked: &Value, said: &Said) -> Answer {
    let all = &said.all;
    let prompt = asked.to_string();
    let how = MODELS.iter().max_by_key(|it| prompt.rfind(**it));
    let how = how.copied().unwrap_or_default();
    if how == "say-error" {
        let error = json!({ "error": { "message": all, "type": all, "code": all } });
        return (
            "400 Bad Request",
            "content-type: application/json\r\n".into(),
            error.to_string().into(),
        );
    }
    let [a, b, c, d] = quarters(secret("key"));
    let escaped = all.replace('&', "&amp;").replace('<', "&lt;");
    // Once an action has been done, the turn ends.
    let last = asked["messages"].as_array().and_then(|it| it.last()).unwrap_or(asked).to_string();
    let texts = match how {
        "say-calls" if !last.contains(how) => vec![format!("<response>{escaped}</response>")],
        "say-pieces" => {
            let escaped = Said { all: escaped, ..said.clone() };
            let all = ["<response>", a, b, c, d].into_iter().chain(escaped.pieces());
            all.chain(["</response>"]).map(str::to_owned).collect()
        }
        "say-calls" => {
            let body = json!({ "name": "echo", "parameters": { "text": all } }).to_string();
            let body = body.replace('&', "&amp;").replace('<', "&lt;");
            vec![
                format!("<action id=\"e1\" type=\"tool\">{body}</action>"),
                format!("<response>{escaped}</response>"),
            ]
        }
        "say-references" => {
            let echo = |id: &str, text: &str| {
                let body = json!({ "name": "echo", "parameters": { "text": text } });
                format!("<action id=\"{id}\" type=\"tool\">{body}</action>")
            };
            let all = [("e1", a), ("e2", b), ("e3", c), ("e4", d)].map(|(id, it)| echo(id, it));
            vec![all.concat(), "<response>${e1}${e2}${e3}${e4}</response>".into()]
        }
        _ => vec![format!("<response>{escaped}</response>")],
    };
    match path {
        "/v1/messages" => anthropic(&texts, said, how),
        _ => openai(&texts, said, how),
    }
}

fn openai(texts: &[String], said: &Said, how: &str) -> Answer {
    let mut events = String::new();
    for piece in said.pieces().into_iter().filter(|_| how == "say-reasoning") {
        let delta = json!({ "choices": [{ "delta": { "reasoning_content": piece } }] });
        events += &format!("data: {delta}\n\n");
    }
    for text in texts {
        let delta = json!({ "choices": [{ "delta": { "content": text } }] });
        events += &format!("data: {delta}\n\n");
    }
    events += "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    of_kind("text/event-stream", events)
}

fn anthropic(texts: &[String], said: &Said, how: &str) -> Answer {
    let mut all = vec![json!({ "type": "message_start", "message": { "usage": {} } })];
    if how == "say-reasoning" {
        let block = json!({ "type": "thinking", "thinking": "", "signature": "" });
        all.push(json!({ "type": "content_block_start", "index": 0, "content_block": block }));
        for part in quarters(secret("key")).into_iter().chain(said.pieces()) {
            for (kind, field) in [("thinking_delta", "thinking"), ("signature_delta", "signature")]
            {
                let delta = json!({ "type": kind, field: part });
                all.push(json!({ "type": "content_block_delta", "index": 0, "delta": delta }));
            }
        }
        all.push(json!({ "type": "content_block_stop", "index": 0 }));
    }
    let block = json!({ "type": "text", "text": "" });
    all.push(json!({ "type": "content_block_start", "index": 1, "content_block": block }));
    for text in texts {
        let delta = json!({ "type": "text_delta", "text": text });
        all.push(json!({ "type": "content_block_delta", "index": 1, "delta": delta }));
    }
    all.push(json!({ "type": "content_block_stop", "index": 1 }));
    all.push(
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": {} }),
    );
    all.push(json!({ "type": "message_stop" }));
    let event = |it: &Value| format!("event: {}\ndata: {it}\n\n", it["type"].as_str().unwrap());
    of_kind("text/event-stream", all.iter().map(event).collect::<String>())
}

/// Answers one question at the door, as another organism does.
fn open(mut stream: TcpStream, said: &Said) -> std::io::Result<()> {
    const CORE: &str = "https://xml-pipeline.org/ns/core/v1";
    let (all, how) = (&said.all, said.door);
    let token = secret("organism");
    let mut asked = vec![0; 65_536];
    let mut peer = stream.try_clone()?;
    let read = peer.read(&mut asked)?;
    let is_framed = asked[..read].starts_with(&[0]);
    let mut say = |from: &str, payload: &str, thread: &str| {
        let text = format!(
            "<message xmlns=\"https://xml-pipeline.org/ns/envelope/v1\"><meta><from>{from}</from>\
             {thread}</meta>{payload}</message>"
        );
        let length = u32::try_from(text.len()).unwrap().to_be_bytes();
        if is_framed {
            stream.write_all(&length)?;
        }
        stream.write_all(text.as_bytes())
    };
    say("core", &format!("<authenticated xmlns=\"{CORE}\" identity=\"x\"/>"), "")?;
    let _ = peer.read(&mut asked)?;
    if how == "refused" {
        let huh = format!(
            "<huh xmlns=\"{CORE}\" code=\"P0001\" retry=\"false\">\
             <message>{token}</message><advice>{token}</advice></huh>"
        );
        return say("core", &huh, "");
    }
    say("core", &format!("<accepted xmlns=\"{CORE}\" seq=\"1\" thread=\"sess-aaaaaaaa\"/>"), "")?;
    let thread = format!(
        "<thread>sess-aaaaaaaa</thread><entry xmlns=\"{CORE}\" id=\"sess-aaaaaaaa/2\" \
         cause=\"sess-aaaaaaaa/1\" time=\"2026-01-01T00:00:00Z\"/>"
    );
    let escaped = all.replace('&', "&amp;").replace('<', "&lt;");
    let payload = match how {
        "name" => format!("<{token} xmlns=\"urn:x\">y</{token}>"),
        "huh" => {
            format!(
                "<huh xmlns=\"{CORE}\" code=\"P0001\" retry=\"false\">\
                 <message>{escaped}</message><advice>{escaped}</advice></huh>"
            )
        }
        _ => format!("<x xmlns=\"urn:x\"><{token} a=\"{token}\"/>{escaped}</x>"),
    };
    say(if how == "from" { token } else { "a" }, &payload, &thread)?;
    // The connection stays until the peer goes.
    peer.read(&mut asked).map(drop)
}
