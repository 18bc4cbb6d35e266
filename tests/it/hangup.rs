//! SIGHUP: which files a server reads again, and that the signal never ends the server.

use std::fs::{self, File, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;

use crate::program::{Scene, Server};

const CORE: &str = "https://xml-pipeline.org/ns/core/v1";
const ECHO: &str = "<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>hello</text></echo>";

/// A client with a token.
struct Client(BufReader<TcpStream>);

impl Client {
    /// Connects; what it hears first.
    fn come(server: &Server, token: &str) -> (Client, String) {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        write!(stream, "<authenticate xmlns=\"{CORE}\" token=\"{token}\"/>").unwrap();
        let mut client = Client(BufReader::new(stream));
        let first = client.line();
        (client, first)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line
    }

    #[track_caller]
    fn is_served(&mut self) {
        self.0.get_mut().write_all(ECHO.as_bytes()).unwrap();
        let (accepted, reply) = (self.line(), self.line());
        assert!(accepted.contains("<accepted "), "{accepted}");
        assert!(reply.contains("<text>hello</text>"), "{reply}");
    }
}

fn list(scene: &Scene, lines: &str) {
    let path = scene.write("tokens.txt", lines);
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn sighup_ends_no_server_without_tls() {
    let scene = Scene::new();
    let mut server = scene.serve(&["--durability", "memory"]);
    server.signal("-HUP");
    let mut console = Client(BufReader::new(TcpStream::connect(&server.address).unwrap()));
    console.is_served();
    server.signal("-HUP");
    console.is_served();
    assert_eq!(server.stop("-TERM").0, Some(0));
}

#[test]
fn sighup_ends_the_connections_of_tokens_that_are_gone() {
    let scene = Scene::new();
    list(&scene, "ann:s3cret-a\nben:s3cret-b\nops:s3cret-o:operator\n");
    let mut server = scene.serve(&["--durability", "memory", "--tokens", "tokens.txt"]);
    let mut console = Client(BufReader::new(TcpStream::connect(&server.address).unwrap()));
    console.is_served();
    let (mut ann, first) = Client::come(&server, "s3cret-a");
    assert!(first.contains("<authenticated "), "{first}");
    ann.is_served();
    let (mut ben, _) = Client::come(&server, "s3cret-b");
    let (mut ops, _) = Client::come(&server, "s3cret-o");
    list(&scene, "ben:s3cret-b\ncho:s3cret-c\nops:s3cret-o\n");
    server.signal("-HUP");
    for (client, name) in [(&mut ann, "ann"), (&mut ops, "ops")] {
        let mut last = String::new();
        client.0.read_to_string(&mut last).unwrap();
        assert!(last.contains("code=\"P0021\""), "{last}");
        assert!(last.contains(&format!("the token of {name} is no longer listed")), "{last}");
    }
    ben.is_served();
    console.is_served();
    let (mut cho, first) = Client::come(&server, "s3cret-c");
    assert!(first.contains("identity=\"cho\""), "{first}");
    cho.is_served();
    let (_, first) = Client::come(&server, "s3cret-a");
    assert!(first.contains("nobody has this token"), "{first}");
    assert_eq!(server.stop("-TERM").0, Some(0));
}

#[test]
fn a_list_of_tokens_that_cant_be_used_changes_nothing() {
    let scene = Scene::new();
    list(&scene, "ben:s3cret-b\n");
    let traces = scene.path("traces");
    let file = File::create(&traces).unwrap();
    let options = ["--durability", "memory", "--tokens", "tokens.txt"];
    let mut server = scene.serve_traced(&options, file.into());
    let (mut ben, _) = Client::come(&server, "s3cret-b");
    for (lines, why) in [
        ("ben s3cret-x", "line 1: a line is NAME:TOKEN"),
        ("ben:s3cret-b\necho:s3cret-e", "echo is no identity: a listener or the pump has this"),
        ("# all gone", "it lists nobody any more"),
    ] {
        list(&scene, lines);
        server.signal("-HUP");
        crate::until(|| fs::read_to_string(&traces).unwrap().contains(why));
        ben.is_served();
    }
    let (mut again, first) = Client::come(&server, "s3cret-b");
    assert!(first.contains("identity=\"ben\""), "{first}");
    again.is_served();
    let traces = fs::read_to_string(&traces).unwrap();
    assert!(traces.contains("WARN") && traces.contains("the tokens stay as they were"), "{traces}");
    assert!(!traces.contains("s3cret"), "{traces}");
    assert_eq!(server.stop("-TERM").0, Some(0));
}
