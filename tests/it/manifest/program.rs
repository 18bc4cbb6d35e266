//! The verbs that use a manifest, as people meet them on the command line.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use pumphouse::manifest::Manifest;
use pumphouse::scene;
use serde_json::{Value, json};

use crate::door::tls::Authority;
use crate::program::Scene;

/// The project that `init` makes: its `main.rs`, compiled here.
#[allow(dead_code, reason = "a test starts no program")]
mod trial {
    include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli/project/init/main.rs.txt"));

    pub(super) fn factory() -> Factory {
        Factory::plain("greeter", greeter)
    }
}

const ECHO: &str = "<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>hi</text></echo>";

const TWO: &str = "\
name: parrots
data: log
durability: normal
doors: [{tcp: 127.0.0.1:0}]
listeners:
  - use: echo
    name: parrot
    peers: []
    grants: [emit:core]
";

#[test]
fn run_serves_what_the_manifest_says() {
    let scene = Scene::new();
    scene.write("organism.yaml", TWO);
    let mut server = scene.serve(&[]);
    let it = &server.greeting;
    assert_eq!(it["name"], "parrots");
    assert_eq!(
        it["listeners"],
        json!(["thread", "timer", "todo", "view", "action", "feed", "parrot"])
    );
    assert_eq!((&it["log"], &it["durability"]), (&json!("log/pumphouse.db"), &json!("normal")));
    let sent = scene.pipe(&["send", "--json", "--connect", &server.address], ECHO).code(0);
    assert_eq!(sent.objects()[0]["event"], "accepted");
    // Readers look where the manifest says.
    let threads = scene.run(&["threads", "--json"]).code(0).objects();
    assert_eq!(threads.len(), 2, "the session, and the pump's own life");
    let second = scene.run(&["run", "organism.yaml"]).code(2);
    second.says(&["serves the folder log already", "--data DIR"]);
    let (code, _) = server.stop("-TERM");
    assert_eq!(code, Some(0));
}

#[test]
fn flags_count_more_than_the_manifest() {
    let scene = Scene::new();
    scene.write("conf/one.yaml", TWO);
    let flags = ["conf/one.yaml", "--data", "other", "--durability", "full"];
    let server = scene.serve(&flags);
    assert_eq!(server.greeting["log"], "other/pumphouse.db");
    assert_eq!(server.greeting["durability"], "full");
    assert!(!scene.path("conf/log").exists());
}

#[test]
fn a_manifest_here_needs_no_verb() {
    let scene = Scene::new();
    scene.write("organism.yaml", TWO);
    let mut child = scene.command(&["--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let greeting: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(greeting["name"], "parrots");
}

#[test]
fn check_shows_what_comes_of_a_manifest() {
    let scene = Scene::new();
    scene.run(&["check"]).code(0).says(&["no manifest here", "listener  calculate"]);
    scene.write("organism.yaml", TWO);
    scene.run(&["check"]).code(0).says(&[
        "organism.yaml is sound: parrots\n",
        "log       log/pumphouse.db (normal)\n",
        "door      tcp 127.0.0.1:0\n",
        "listener  parrot  Returns what it is told.\n",
        "  takes   {https://xml-pipeline.org/ns/echo/v1}echo\n",
        "  peers   nobody\n",
        "  grant   emit:core\n",
    ]);
    let object = &scene.run(&["check", "--json"]).code(0).objects()[0];
    let own = object["listeners"].as_array().unwrap().last().unwrap();
    assert_eq!(own["grants"], json!(["emit:core"]));
    assert!(!scene.path("log").exists(), "it opens nothing");
    scene.run(&["check", "none.yaml"]).code(2).says(&["none.yaml can't be read", "init DIR"]);
}

#[test]
fn check_shows_each_door_that_is_not_the_usual_one() {
    let scene = Scene::new();
    let doors = |manifest: &str| {
        scene.write("organism.yaml", manifest);
        let out = scene.run(&["check"]).code(0).out;
        let lines = out.lines().filter_map(|it| it.strip_prefix("  door    "));
        lines.map(str::to_owned).collect::<Vec<String>>()
    };
    let files = "use: files, settings: {root: .}";
    let listeners = |rest: &str| {
        format!(
            "listeners:\n  - {{use: echo{rest}}}\n  - {{{files}}}\n  \
             - {{{files}, name: all, door: true}}\n"
        )
    };
    assert_eq!(doors(&listeners("")), ["everybody"]);
    assert_eq!(doors(&listeners(", door: false")), ["nobody", "everybody"]);
    assert_eq!(doors(&listeners(", door: [ann]")), ["ann", "everybody"]);
    let tokens = scene.write("tokens", "ann:s3cret-of-ann\n");
    std::fs::set_permissions(tokens, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let named = format!("tokens: {{file: tokens}}\n{}", listeners(", door: false"));
    assert_eq!(doors(&named), ["nobody", "operators"]);
}

#[test]
fn check_tells_every_mistake() {
    let scene = Scene::new();
    scene.write("organism.yaml", "nmae: x\nlisteners:\n  - use: ecko\n");
    let told = [
        "2 mistakes in organism.yaml\n",
        "organism.yaml:1:1: the manifest has no key `nmae`; did you mean `name`?\n",
        "organism.yaml:3:10: no listener is of the kind `ecko`; did you mean `echo`?\n",
    ];
    scene.run(&["check"]).code(1).says(&told);
    scene.run(&["run"]).code(2).says(&told);
    let objects = scene.run(&["check", "--json"]).code(1).objects();
    assert_eq!((&objects[1]["line"], &objects[1]["column"]), (&json!(3), &json!(10)));
    assert_eq!(objects[1]["nearest"], "echo");
    assert!(!scene.path("data").exists());
    scene.write("organism.yaml", "listeners: [{use: echo}, {use: echo, name: two}]");
    scene.run(&["check"]).code(1).says(&["owned by echo and two", "organism.yaml:1:"]);
    scene.write("organism.yaml", vec![b'x'; 10 << 20]);
    scene.run(&["check"]).code(1).says(&["manifest_bytes_max is 262144"]);
}

#[test]
fn test_plays_scenes() {
    let scene = Scene::new();
    let told = |text: &str| {
        format!("# A test.\nann sends:\n  {ECHO}\nann receives:\n  {}\n", ECHO.replace("hi", text))
    };
    scene.run(&["test"]).code(2).says(&["scenes can't be read"]);
    scene.write("scenes/a.scene", told("hi"));
    scene.run(&["test"]).code(0).says(&["1 of 1 scenes hold"]);
    scene.write("scenes/b.scene", told("ho"));
    let wrong = scene.run(&["test"]).code(1);
    wrong.says(&["scenes/b.scene:4: ann received", "1 of 2 scenes hold"]);
    scene.run(&["test", "scenes/a.scene", "--json"]).code(0).says(&["\"scenes\":1"]);
    scene.write("scenes/b.scene", "ann sings\n");
    scene.run(&["test"]).code(2).says(&["scenes/b.scene:1: \"ann sings\" is no line of a scene"]);
}

#[test]
fn init_makes_a_project() {
    let scene = Scene::new();
    scene.run(&["init", "my trial"]).code(0).says(&["cargo run"]);
    let read = |file: &str| std::fs::read_to_string(scene.path(file)).unwrap();
    let cargo = read("my trial/Cargo.toml");
    let path = format!("pumphouse = {{ path = \"{}\" }}", env!("CARGO_MANIFEST_DIR"));
    assert!(cargo.contains(&path) && cargo.contains("name = \"my-trial\""), "{cargo}");
    let files = ["src/main.rs", "organism.yaml", "scenes/greet.scene", "README.md", ".gitignore"];
    for file in files {
        assert!(!read(&format!("my trial/{file}")).contains('@'), "{file}");
    }
    scene.run(&["init", "my trial"]).code(2).says(&["isn't empty"]);
    let elsewhere = scene.run(&["init", "other", "--pumphouse", "my trial"]).code(2);
    elsewhere.says(&["it isn't Pumphouse's", "--pumphouse PATH"]);
    assert!(!scene.path("other").exists());
}

/// The listener, the manifest and the scene of a new project fit one another.
#[tokio::test]
async fn what_init_makes_works_at_once() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/project/init");
    let text = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let builder = pumphouse::builder().with((trial::factory(), pumphouse::listeners::factories));
    let yaml = text("organism.yaml.txt").replace("@NAME@", "trial");
    let manifest = Manifest::read(Path::new("o.yaml"), yaml.as_bytes(), &|_| None, &builder);
    let scene = scene::Scene::read("greet.scene", 0, &text("greet.scene.txt")).unwrap();
    let wrong = scene::hold(builder.with(manifest.unwrap()), &[scene]).await.unwrap();
    assert_eq!(wrong, [] as [String; 0]);
}

#[cfg(unix)]
#[test]
fn what_is_kept_is_its_owners_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new();
    let server = scene.serve(&["--data", "a/b"]);
    scene.pipe(&["send", "--connect", &server.address], ECHO).code(0);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&scene.path("a")), mode(&scene.path("a/b"))), (0o700, 0o700));
    let files: Vec<_> = std::fs::read_dir(scene.path("a/b")).unwrap().map(Result::unwrap).collect();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        assert_eq!(mode(&file.path()), 0o600, "{file:?}");
    }
}

/// A file system of 1 MiB, gone when this is.
struct Small<'a>(&'a Path);

impl Small<'_> {
    /// None where nobody lets us.
    fn mount(path: &Path) -> Option<Small<'_>> {
        std::fs::create_dir(path).unwrap();
        let mut mount = Command::new("mount");
        let mount = mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(path).output();
        mount.is_ok_and(|it| it.status.success()).then_some(Small(path))
    }
}

impl Drop for Small<'_> {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.0).status());
    }
}

#[test]
fn a_full_disk_is_told_and_recovers() {
    let scene = Scene::new();
    let folder = scene.path("small");
    let Some(small) = Small::mount(&folder) else {
        return crate::skipped("no tmpfs may be mounted");
    };
    let fill = |bytes: usize| std::fs::write(folder.join("rest"), vec![b'x'; bytes]);
    drop(fill(2 << 20));
    let full = scene.run(&["run", "--listen", "127.0.0.1:0", "--data", "small"]);
    full.code(2).says(&["the disk that holds small is full", "--data DIR"]);
    std::fs::remove_file(folder.join("rest")).unwrap();
    let server = scene.serve(&["--data", "small"]);
    drop(fill(2 << 20));
    let send = |text: &str| {
        let send = ["send", "--json", "--timeout", "2", "--connect", &server.address];
        scene.pipe(&send, text)
    };
    // The first waits for room; while it does, nothing else is taken.
    send(&ECHO.replace("hi", &"x".repeat(200_000))).code(1);
    let refused = send(ECHO).code(1);
    assert_eq!(refused.objects()[0]["code"], "P0018", "{refused:?}");
    std::fs::remove_file(folder.join("rest")).unwrap();
    let recovered = (0..50).any(|_| send(ECHO).code == 0);
    assert!(recovered, "it takes messages again when there is room");
    drop((server, small));
}

/// TLS of a manifest; and a certificate that changes while it is served, without a word from
/// anybody.
#[cfg(unix)]
#[test]
fn a_manifest_has_tls_and_its_certificate_is_read_again_when_it_changes() {
    let (scene, authority) = (Scene::new(), Authority::new());
    authority.issue("127.0.0.1", 2099);
    let path = |name: &str| authority.path(name).display().to_string();
    let files = format!("{{certificate: {}, key: {}}}", path("cert.pem"), path("key.pem"));
    scene.write("organism.yaml", format!("doors: [{{tcp: 127.0.0.1:0, tls: {files}}}]\n"));
    scene.run(&["check"]).code(0).says(&["door      tcp 127.0.0.1:0, TLS\n"]);
    let mut child = scene.command(&["--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let greeting: Value = serde_json::from_str(&line).unwrap();
    let address = greeting["listen"][0].as_str().unwrap().to_owned();
    assert!(address.starts_with("tls:127.0.0.1:"), "{address}");
    let ca = path("ca.pem");
    let send = || scene.pipe(&["send", "--connect", &address, "--ca", &ca], ECHO);
    send().code(0);
    authority.issue("localhost", 2099);
    let is_new = std::iter::repeat_with(send).find(|it| it.code == 2).unwrap();
    is_new.says(&["its certificate is for another name"]);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// `--listen` is about TCP: sockets and metrics of the manifest stay.
#[cfg(unix)]
#[test]
fn another_address_leaves_sockets_and_metrics_alone() {
    let scene = Scene::new();
    let doors = "doors: [{tcp: 127.0.0.1:1}, {unix: p.sock}, {metrics_to_anyone: 127.0.0.1:0}]\n";
    scene.write("organism.yaml", doors);
    let server = scene.serve(&["--metrics", "127.0.0.1:0"]);
    let listen = server.greeting["listen"].as_array().unwrap();
    assert!(listen.len() == 2 && listen[1] == "unix:p.sock", "{listen:?}");
    assert_eq!(server.greeting["metrics"].as_array().unwrap().len(), 2);
    scene.pipe(&["send", "--connect", "unix:p.sock"], ECHO).code(0);
    let shown = ["run", "--listen", "127.0.0.1:0", "--metrics", "0.0.0.0:0"];
    Scene::new().run(&shown).code(2).says(&["anyone may see them"]);
}

/// Verbs that speak to a running pump.
#[cfg(unix)]
#[test]
fn a_running_pump_is_found_by_the_manifest_that_stands_here() {
    let scene = Scene::new();
    let doors = "doors: [{metrics: 127.0.0.1:0}, {unix: p.sock}, {tcp: 127.0.0.1:0}]\n";
    scene.write("organism.yaml", doors);
    scene.pipe(&["send"], ECHO).code(2).says(&["unix:p.sock can't be reached"]);
    let server = scene.serve(&[]);
    let sent = scene.pipe(&["send", "--json"], ECHO).code(0).objects();
    let thread = sent[0]["thread"].as_str().unwrap();
    let first = format!("{thread}/1");
    scene.run(&["budget", thread, "--raise", "messages=unlimited"]).code(0);
    scene.run(&["fork", &first]).code(0);
    for verb in ["pause", "resume", "cancel"] {
        scene.run(&[verb, thread]).code(0).says(&[thread]);
    }
    let elsewhere = ["send", "--connect", "unix:no.sock"];
    scene.pipe(&elsewhere, ECHO).code(2).says(&["unix:no.sock can't be reached"]);
    scene.write("organism.yaml", "doors: [{tcp: \"${NOWHERE}:1\"}]\n");
    let untold = ["organism.yaml:1:15: the variable NOWHERE isn't set", "--connect ADDR"];
    scene.pipe(&["send"], ECHO).code(2).says(&untold);
    scene.pipe(&["send", "--connect", &server.address], ECHO).code(0);
}

/// `meta` says who may ask `describe`, whether that is named or there by itself.
#[test]
fn a_manifest_may_say_no_more_than_who_may_ask() {
    let scene = Scene::new();
    scene.write("organism.yaml", "meta: {example: none}\n");
    scene.run(&["check"]).code(0).says(&["listener  describe", "listener  echo"]);
    let server = scene.serve(&[]);
    let ask = |what: &str| {
        let ask =
            format!("<{what} xmlns=\"https://xml-pipeline.org/ns/meta/v1\" payload=\"echo\"/>");
        scene.pipe(&["send", "--connect", &server.address], &ask)
    };
    ask("request-schema").code(0).says(&["payload-schema"]);
    ask("request-example").code(1).says(&["not-allowed"]);
}
