//! The command line as people and scripts use it: its output and its exit codes.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::door::tls::Authority;
use crate::program::{Scene, log_in};

fn echo(text: &str) -> String {
    format!("<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>{text}</text></echo>")
}

fn calculate(expression: &str) -> String {
    format!(
        "<calculate xmlns=\"https://xml-pipeline.org/ns/calculate/v1\">\
         <expression>{expression}</expression></calculate>"
    )
}

/// A data folder with one thread in it, nobody serving it; the thread.
fn written(scene: &Scene) -> String {
    let mut server = scene.serve(&[]);
    let send = ["send", "--json", "--connect", &server.address];
    let sent = scene.pipe(&send, &calculate("6*7")).code(0).objects();
    server.stop("-INT");
    sent[0]["thread"].as_str().unwrap().to_owned()
}

#[test]
fn the_demo_shows_the_whole_trip_and_leaves_nothing() {
    let scene = Scene::new();
    let folder = scene.write("tmp/kept", "").parent().unwrap().to_owned();
    for arguments in [&["demo"][..], &["demo", "--json"]] {
        let output = scene.command(arguments).env("TMPDIR", &folder).output().unwrap();
        let ran = crate::program::Ran::from(output).code(0);
        assert_eq!(ran.err, "");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "only what was there");
        if arguments.len() > 1 {
            assert!(ran.objects().iter().any(|it| it["sound"] == true));
        } else {
            ran.says(&["<value>42</value>", "P0007", "P0009", "P0011", "led to it", "sound: "]);
        }
    }
}

#[test]
fn what_is_sent_is_served_and_can_be_read_meanwhile() {
    let scene = Scene::new();
    let server = scene.serve(&[]);
    let greeting = &server.greeting;
    assert_eq!(greeting["durability"], "full");
    assert_eq!(
        greeting["listeners"],
        json!([
            "thread",
            "timer",
            "todo",
            "view",
            "action",
            "feed",
            "echo",
            "calculate",
            "describe"
        ])
    );
    let file = format!("<?xml version=\"1.0\"?>\n{}\n{}\n", echo("日本"), calculate("6*7"));
    scene.write("two.xml", file);
    let send = ["send", "--connect", &server.address, "two.xml"];
    scene.run(&send).code(0).says(&[
        "element 1: accepted as sess-",
        "element 2: accepted as sess-",
        "  echo → console\n",
        "\n    <value>42</value>\n",
    ]);
    let sent = scene.run(&[&send[..], &["--json"]].concat()).code(0).objects();
    assert_eq!(sent.iter().filter(|it| it["event"] == "accepted").count(), 2);
    let answer = sent.iter().find(|it| it["from"] == "calculate").unwrap();
    let (thread, entry) = (answer["thread"].as_str().unwrap(), answer["entry"].as_str().unwrap());

    let listed = scene.run(&["threads"]).code(0);
    assert_eq!(listed.out.lines().count(), 1 + 4, "{}", listed.out);
    listed.says(&[thread, "console → calculate  <calculate><expression>6*7</expression>"]);
    assert_eq!(scene.run(&["threads", "--json"]).code(0).objects().len(), 4);
    scene.run(&["show", thread]).code(0).says(&[
        &format!("thread {thread}  2 entries"),
        &format!("{thread}/1  console → calculate  [from-identity]"),
        "answers /1",
        "\n    <value>42</value>\n",
    ]);
    let shown = scene.run(&["show", thread, "--json"]).code(0).objects();
    assert_eq!(shown[0]["payload"], calculate("6*7"));
    assert_eq!(scene.run(&["show", entry, "--json"]).code(0).objects()[0], shown[1]);
    scene.run(&["why", entry]).code(0).says(&[
        "1 message led to it",
        &format!("1. From outside, console opened {thread} with this, for calculate."),
        "2. Handling it, calculate answered console.",
    ]);
    let why = scene.run(&["why", entry, "--json"]).code(0).objects();
    assert_eq!(why.iter().map(|it| &it["seq"]).collect::<Vec<_>>(), [1, 2]);
    let tail = scene.run(&["tail", "-n", "3"]).code(0);
    assert_eq!(tail.out.lines().count(), 3, "{}", tail.out);
    assert_eq!(scene.run(&["tail", "--json"]).code(0).objects().len(), 8);
    scene.run(&["verify"]).code(0).says(&["sound: ", "8 entries in 4 threads", "\nhead "]);
}

#[test]
fn a_signal_drains_and_says_so() {
    for signal in ["-INT", "-TERM"] {
        let scene = Scene::new();
        let mut server = scene.serve(&["--durability", "normal"]);
        let (code, said) = server.stop(signal);
        assert_eq!(code, Some(0));
        let events: Vec<_> = said.iter().map(|it| &it["event"]).collect();
        assert_eq!(events, ["stopping", "stopped"]);
        scene.run(&["verify"]).code(0);
    }
}

#[test]
fn a_signal_said_twice_at_once_is_one() {
    let scene = Scene::new();
    let mut server = scene.serve(&["--durability", "normal"]);
    let (code, said) = server.stop_at_once(["-TERM", "-TERM", "-INT"]);
    assert_eq!(code, Some(0));
    assert_eq!(said.last().unwrap()["event"], "stopped");
}

#[test]
fn a_unix_socket_and_tls_are_served_beside_each_other() {
    let authority = Authority::new();
    authority.issue("127.0.0.1", 2099);
    let file = |name: &str| authority.path(name).display().to_string();
    let (scene, cert, key, ca) = (Scene::new(), file("cert.pem"), file("key.pem"), file("ca.pem"));
    let options = ["--unix", "pump.sock", "--tls-cert", &cert, "--tls-key", &key];
    let server = scene.serve(&options);
    assert_eq!(server.greeting["listen"][1], "unix:pump.sock");
    assert!(server.address.starts_with("tls:127.0.0.1:"), "{}", server.address);
    let unix = ["send", "--connect", "unix:pump.sock"];
    scene.pipe(&unix, &echo("a")).code(0).says(&["<text>a</text>"]);
    let tls = ["send", "--connect", &server.address];
    let trusting = [&tls[..], &["--ca", &ca]].concat();
    scene.pipe(&trusting, &echo("b")).code(0).says(&["<text>b</text>"]);
    scene.pipe(&[&unix[..], &["--ca", &ca]].concat(), &echo("c")).code(2).says(&["tls:HOST:PORT"]);
    // A new certificate for another name: who comes by the old one no longer believes it.
    authority.issue("localhost", 2099);
    server.signal("-HUP");
    let refused = || scene.pipe(&trusting, &echo("d"));
    let is_new = std::iter::repeat_with(refused).find(|it| it.code == 2).unwrap();
    is_new.says(&["its certificate is for another name"]);
    let other = Scene::new();
    let wrong = ["run", "--listen", "127.0.0.1:0", "--tls-cert", &ca, "--tls-key", &key];
    other.run(&wrong).code(2).says(&["key.pem: it is not the key of"]);
    let used = ["run", "--listen", "127.0.0.1:0", "--unix", &file("key.pem")];
    other.run(&used).code(2).says(&["is no socket", "--unix PATH"]);
}

#[test]
fn a_message_can_go_into_a_thread_and_to_a_listener() {
    let scene = Scene::new();
    let server = scene.serve(&["--durability", "memory"]);
    assert!(!scene.path("data").exists(), "memory needs no folder");
    let connect = ["send", "--json", "--connect", &server.address];
    let first = scene.pipe(&connect, &echo("a")).code(0).objects();
    let thread = first[0]["thread"].as_str().unwrap();
    let into = ["--thread", thread, "--to", "echo"];
    let second = scene.pipe(&[&connect[..], &into].concat(), &echo("b")).code(0).objects();
    assert_eq!(second[0]["entry"], format!("{thread}/3"));
    let wrapped = format!(
        "<message xmlns='https://xml-pipeline.org/ns/envelope/v1'><meta><thread>{thread}</thread>\
         </meta>{}</message>",
        echo("c")
    );
    let third = scene.pipe(&connect, &wrapped).code(0).objects();
    assert_eq!(third[0]["entry"], format!("{thread}/5"));
    let both = scene.pipe(&[&connect[..], &into].concat(), &wrapped);
    both.code(2).says(&["element 1: it has a <message> of its own", "nothing was sent"]);
}

#[test]
fn what_is_refused_ends_with_one() {
    let scene = Scene::new();
    let server = scene.serve(&[]);
    let send = |more: &[&str], input: &str| {
        scene.pipe(&[&["send", "--connect", &server.address], more].concat(), input)
    };
    let wrong = echo("a").replace("text>", "txt>");
    send(&[], &wrong)
        .code(1)
        .says(&["refused P0007: line 1, column 51: <echo> has no field <txt>"]);
    let object = send(&["--json"], &wrong).code(1).objects();
    assert_eq!((&object[0]["code"], &object[0]["path"]), (&json!("P0007"), &json!("/echo/txt")));
    let two = send(&[], &format!("{}{wrong}", echo("a")));
    two.code(1).says(&["element 1: accepted as", "element 2: refused P0007"]);
    send(&[], "<nobody xmlns='urn:x'/>").code(1).says(&["refused P0011"]);
    send(&["--thread", "sess-nobodys"], &echo("a")).code(1).says(&["refused: thread sess-nobodys"]);
    send(&[], "<a></b>").code(1).says(&["refused P0001"]);
}

#[test]
fn what_can_not_be_tried_ends_with_two() {
    let scene = Scene::new();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let to_nobody = ["send", "--connect", &nobody];
    scene.pipe(&to_nobody, &echo("a")).code(2).says(&["can't be reached", "`pumphouse run`"]);
    let nothing = "nothing was sent";
    scene.pipe(&to_nobody, "").code(2).says(&["the input holds no element", nothing]);
    scene.pipe(&to_nobody, "hello").code(2).says(&["line 1, column 1", nothing]);
    scene.pipe(&to_nobody, "\n<a><b></b>").code(2).says(&["the input: line ", nothing]);
    scene.run(&["send", "missing.xml"]).code(2).says(&["missing.xml can't be read"]);
    scene.run(&["send", "--timeout", "soon"]).code(2).says(&["a number of seconds"]);
    scene.run(&["why", "sess-a"]).code(2).says(&["THREAD/SEQ, such as sess-k3v9x2ma/7"]);
    scene.run(&["verify", "--expect", "1:0"]).code(2).says(&["64 hexadecimal digits"]);
    scene.run(&["run", "--durability", "some"]).code(2).says(&["full, normal, memory"]);
    scene.run(&["run", "--listen", "0.0.0.0:0"]).code(2).says(&["no tokens", "--tokens FILE"]);
    scene.run(&["run", "--tokens", "none"]).code(2).says(&["none: "]);
    scene.run(&["run", "--listen", "nonsense"]).code(2).says(&["HOST:PORT"]);
    assert!(!scene.path("data").exists(), "what can't start leaves nothing");
    scene.run(&["sing"]).code(2);
    scene.run(&[]).code(2).says(&["Usage:", "Examples:"]);
}

#[test]
fn a_time_that_is_up_says_where_to_look() {
    let scene = Scene::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let send = ["send", "--connect", &address, "--timeout", "0.2"];
    scene
        .pipe(&send, &echo("a"))
        .code(1)
        .says(&["waited 0.2 s: 0 of 1 pushes", "--timeout SECONDS"]);
}

#[test]
fn a_token_says_who_is_sending() {
    let scene = Scene::new();
    let tokens = scene.write("tokens", "feeder:hunter2\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let server = scene.serve(&["--tokens", tokens.to_str().unwrap()]);
    scene.write("a.xml", echo("a"));
    let send = |token: &str| {
        let arguments = ["send", "--json", "--connect", &server.address, "a.xml"];
        let output = scene.command(&arguments).env("PUMPHOUSE_TOKEN", token).output().unwrap();
        crate::program::Ran::from(output)
    };
    let thread = send("hunter2").code(0).objects()[0]["thread"].as_str().unwrap().to_owned();
    scene.run(&["show", &thread]).code(0).says(&["/1  feeder → echo", "/2  echo → feeder"]);
    let wrong = send("hunter3").code(2).says(&["P0021", "nothing was sent"]);
    assert!(!wrong.err.contains("hunter3") && !wrong.out.contains("hunter3"), "{wrong:?}");
    let help =
        scene.command(&["send", "--help"]).env("PUMPHOUSE_TOKEN", "hunter2").output().unwrap();
    assert!(!String::from_utf8_lossy(&help.stdout).contains("hunter2"));
}

#[test]
fn what_a_listener_of_the_house_refuses_ends_with_1() {
    let scene = Scene::new();
    let server = scene.serve(&[]);
    let core = "https://xml-pipeline.org/ns/core/v1";
    for (payload, answer) in [
        (format!("<set-timer xmlns='{core}'/>"), "timer-refused"),
        (format!("<todo-complete xmlns='{core}'><id>7</id></todo-complete>"), "todo-refused"),
        (format!("<fork-thread xmlns='{core}'/>"), "fork-refused"),
        (
            "<request-schema xmlns='https://xml-pipeline.org/ns/meta/v1' payload='ehco'/>".into(),
            "unknown",
        ),
    ] {
        let send = ["send", "--connect", &server.address];
        scene.pipe(&send, &payload).code(1).says(&[&format!("<{answer}")]);
    }
    let spawn = format!(
        "<spawn-thread xmlns='{core}'><initial-payload><spawn-thread><initial-payload>\
         <nothing xmlns='urn:x'/></initial-payload></spawn-thread></initial-payload></spawn-thread>"
    );
    let send = ["send", "--connect", &server.address];
    scene.pipe(&send, &spawn).code(1).says(&["status=\"failed\""]);
    scene.run(&["tail", "-n", "abc"]).code(2).says(&["a whole number of messages, such as 100"]);
}

#[test]
fn a_folder_has_one_run() {
    let scene = Scene::new();
    let server = scene.serve(&[]);
    let process = format!("process {} serves the folder data", server.greeting["process"]);
    let second = |address: &str| scene.run(&["run", "--listen", address]).code(2);
    second("127.0.0.1:0").says(&[&process, "--data DIR"]);
    second(&server.address).says(&[&process]);
    let elsewhere = scene.run(&["run", "--listen", &server.address, "--data", "other"]);
    elsewhere.code(2).says(&["is listened on already", "--listen ADDR"]);
    assert!(!scene.path("other").exists());
}

#[test]
fn a_tampered_file_is_found() {
    let scene = Scene::new();
    let thread = written(&scene);
    let head = |data: &str| -> String {
        let report = scene.run(&["verify", "--json", "--data", data]).code(0);
        report.objects()[0]["head"].as_str().unwrap().to_owned()
    };
    let kept = head("data");
    scene.run(&["verify", "--expect", &kept]).code(0).says(&["the expected head", "on the chain"]);
    let other = format!("{}:{}", kept.split(':').next().unwrap(), "0".repeat(64));
    scene.run(&["verify", "--expect", &other]).code(1).says(&["isn't on the chain"]);

    let log = std::fs::read(log_in(&scene.path("data"))).unwrap();
    let found = |what: &[u8]| log.windows(what.len()).position(|it| it == what).unwrap();
    let mut changed = log.clone();
    changed[found(b"6*7")] = b'9';
    scene.write("changed/pumphouse.db", &changed);
    let wrong = scene.run(&["verify", "--data", "changed"]).code(1);
    wrong.says(&["wrong: ", &format!("{thread}/1: "), "it was changed", "head "]);
    let report = scene.run(&["verify", "--json", "--data", "changed"]).code(1).objects();
    assert_eq!(
        (&report[0]["sound"], &report[0]["findings"][0]["kind"]),
        (&json!(false), &json!("digest"))
    );
    let file = log_in(&scene.path("changed"));
    scene.run(&["verify", "--data", file.to_str().unwrap()]).code(1);

    scene.write("cut/pumphouse.db", &log[..log.len() / 2]);
    scene.run(&["verify", "--data", "cut"]).code(1);
    // What was sent later makes the chain longer; the head that was kept is still on it.
    let server = scene.serve(&[]);
    scene.pipe(&["send", "--connect", &server.address], &echo("more")).code(0);
    scene.run(&["verify", "--expect", &kept]).code(0);
    assert_ne!(head("data"), kept);
}

#[test]
fn a_reader_says_what_is_missing() {
    let scene = Scene::new();
    scene.write("empty/nothing", "");
    scene.write("garbage/pumphouse.db", "this is no log, however long it goes on".repeat(100));
    scene.write("nothing/pumphouse.db", "");
    written(&scene);
    let mut newer = std::fs::read(log_in(&scene.path("data"))).unwrap();
    // SQLite's header has the format there.
    newer[63] = 9;
    scene.write("newer/pumphouse.db", newer);
    let verbs: [&[&str]; 5] =
        [&["threads"], &["tail"], &["show", "sess-a"], &["why", "sess-a/1"], &["verify"]];
    for verb in verbs {
        let read = |data: &str| scene.run(&[verb, &["--data", data]].concat());
        read("absent").code(2).says(&["there is no folder absent", "`pumphouse run` makes one"]);
        read("empty").code(2).says(&["empty holds no log", "--data DIR"]);
        let other = if verb == ["verify"] { 1 } else { 2 };
        read("garbage").code(other).says(&["is not a Pumphouse log"]);
        read("nothing").code(other).says(&["is not a Pumphouse log"]);
        read("newer").code(2).says(&["format 9", "upgrade"]);
    }
}

#[test]
fn an_unknown_thread_is_answered_with_the_nearest() {
    let scene = Scene::new();
    let thread = written(&scene);
    // No id has this letter.
    let near = format!("{}u", &thread[..thread.len() - 1]);
    let meant = format!("did you mean {thread}?");
    scene.run(&["show", &near]).code(1).says(&[&meant, "`pumphouse threads`"]);
    scene.run(&["why", &format!("{near}/1")]).code(1).says(&[&meant]);
    let beyond = format!("the last message of its thread is {thread}/2");
    scene.run(&["why", &format!("{thread}/3")]).code(1).says(&[&beyond]);
    scene.run(&["show", &format!("{thread}/3")]).code(1).says(&[&beyond]);
}

#[test]
fn a_closed_pipe_is_quiet() {
    let scene = Scene::new();
    let thread = written(&scene);
    for verb in [&["show", &thread][..], &["tail"], &["threads", "--json"], &["demo"], &["verify"]]
    {
        let mut command = scene.command(verb);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ran = crate::program::Ran::from(child.wait_with_output().unwrap());
        assert_eq!((ran.code, &*ran.err), (0, ""), "{verb:?}");
    }
}

#[test]
fn a_tail_follows() {
    let scene = Scene::new();
    let server = scene.serve(&[]);
    let mut command = scene.command(&["tail", "--follow", "-n", "0", "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The first may have come before the tail began; one of the later ones can't have.
    let mut next = || lines.next().unwrap().unwrap();
    let sender = std::thread::scope(|scope| {
        let heard = scope.spawn(&mut next);
        let send = ["send", "--connect", &server.address];
        while !heard.is_finished() {
            scene.pipe(&send, &echo("a")).code(0);
        }
        heard.join().unwrap()
    });
    let first: Value = serde_json::from_str(&sender).unwrap();
    assert_eq!(first["name"], "echo");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn nothing_in_a_payload_steers_the_terminal() {
    let scene = Scene::new();
    let server = scene.serve(&[]);
    let send = ["send", "--connect", &server.address];
    let evil = echo("&#x9b;2J\u{9b}31m\u{202e}&#x202e;\nsess-a/1  core → you");
    let sent = scene.pipe(&send, &evil).code(0).says(&["&#x9B;2J&#x9B;31m&#x202E;"]);
    let entry = sent.out.split("accepted as ").nth(1).unwrap().lines().next().unwrap().to_owned();
    let thread = entry.split('/').next().unwrap();
    let verbs: [&[&str]; 6] = [
        &["show", thread],
        &["tail"],
        &["threads"],
        &["why", &entry],
        &["show", thread, "--json"],
        &["tail", "--json"],
    ];
    for verb in verbs {
        let ran = scene.run(verb).code(0);
        let steers = |it: char| it.is_control() && it != '\n' || it == '\u{202e}';
        assert!(!ran.out.contains(steers), "{verb:?}: {:?}", ran.out);
        let forged = ran.out.lines().any(|it| it.starts_with("sess-a/1"));
        assert!(!forged, "{verb:?}: {}", ran.out);
    }
    let exact = scene.run(&["show", &entry, "--json"]).objects()[0]["payload"].clone();
    assert_eq!(exact, echo("\u{9b}2J\u{9b}31m\u{202e}\u{202e}\nsess-a/1  core → you"));
}

#[test]
fn help_has_examples_and_version_a_number() {
    let scene = Scene::new();
    let readers = ["threads", "show", "tail", "why", "workflows", "metadata", "watch"];
    for verb in ["run", "send", "verify", "eval", "models", "budget"].into_iter().chain(readers) {
        scene.run(&[verb, "--help"]).code(0).says(&["Examples:", "pumphouse "]);
    }
    scene.run(&["--help"]).code(0).says(&["Exit codes: 0 done; 1 "]);
    scene.run(&["--version"]).code(0).says(&[env!("CARGO_PKG_VERSION")]);
}

#[test]
fn inspect_xml_gives_each_file_a_verdict() {
    let scene = Scene::new();
    scene.write("right.xml", "<?pi?><a b='1'/>");
    scene.write("wrong.xml", "<a>\n  <b></a>");
    let list = "right.xml\nwrong.xml\nnowhere.xml\n";
    let told = scene.pipe(&["inspect", "xml", "-"], list).code(0).objects();
    let digest = blake3::hash(b"<a b=\"1\"></a>").to_hex().to_string();
    let right = json!({
        "file": "right.xml", "verdict": "accept", "error": null, "canonical_blake3": digest,
    });
    assert_eq!(told[0], right);
    let error = json!({
        "code": "P0001", "line": 2, "column": 6, "message": "</a> stands where </b> must",
    });
    assert_eq!((&told[1]["verdict"], &told[1]["error"]), (&json!("reject"), &error));
    assert_eq!(told[2]["error"]["code"], "unreadable");
    let wire = ["inspect", "xml", "--profile", "wire", "right.xml"];
    assert_eq!(scene.run(&wire).code(0).objects()[0]["error"]["code"], "P0004");
    scene.run(&["inspect", "xml"]).code(2);
}
