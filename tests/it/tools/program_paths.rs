//! The files of programs: what of the pump's is kept from them, and the folder that they have by
//! default.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

use super::command::{Shell, is_confined, sent};
use crate::program::{Ran, Scene};

fn write_private(scene: &Scene, name: &str, text: &str) {
    let path = scene.write(name, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// A folder with all that a pump keeps for itself, and a folder for programs.
fn scene() -> Scene {
    let scene = Scene::new();
    write_private(&scene, "secrets/tokens", "ann:s3cret-of-ann\n");
    write_private(&scene, "secrets/keys", "127.0.0.1:9 X-Key: s3cret-of-http\n");
    write_private(&scene, "secrets/fleet", "s3cret-of-fleet\n");
    let auth =
        r#"{"service": "a", "auth_type": "bearer", "token": "s3cret-of-a", "principal": "p"}"#;
    write_private(&scene, "secrets/auth.json", auth);
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    scene.write("tls/cert", certified.cert.pem());
    write_private(&scene, "tls/key", &certified.signing_key.serialize_pem());
    scene.write(
        "more/other.yml",
        "kind: Workflow\nname: other\nsteps: [{name: a, target: echo, parameters: {text: x}}]\n",
    );
    for folder in ["work", "free", "store", "log", "doors"] {
        fs::create_dir(scene.path(folder)).unwrap();
    }
    scene
}

fn manifest(shell: &str) -> String {
    format!(
        "data: log/data
tokens: {{file: secrets/tokens}}
doors:
  - {{tcp: \"127.0.0.1:0\", tls: {{certificate: tls/cert, key: tls/key}}}}
  - {{unix: doors/pump.sock}}
include: [more/other.yml]
listeners:
  - {{use: echo}}
  - {{use: shell, settings: {{programs: [sh]{shell}}}}}
  - {{use: http, settings: {{hosts: [\"127.0.0.1:9\"], credentials: secrets/keys}}}}
  - {{use: service, settings: {{url: \"http://127.0.0.1:9\", auth: secrets/auth.json}}}}
  - {{use: other_organism, settings: {{connect: \"127.0.0.1:9\", token: secrets/fleet}}}}
  - {{use: keyvalue, settings: {{file: store/kv.db}}}}
"
    )
}

#[test]
fn no_program_gets_what_is_the_pumps() {
    let scene = scene();
    let check = |settings: &str| -> Ran {
        scene.write("organism.yaml", manifest(&format!(", {settings}")));
        scene.run(&["check"])
    };
    let root = scene.path("").canonicalize().unwrap().display().to_string();
    let refused = |settings: &str, may: &str, found: &[&str]| {
        let ran = check(settings).code(1).says(&["organism.yaml:9:5: by `", "`root: work`"]);
        let (setting, path) = settings.split_once(": ").unwrap();
        let path = path.trim_matches(['[', ']']);
        let path = if path == "." { root.clone() } else { format!("{root}/{path}") };
        let text = format!("by `{setting}`, the programs of `shell` may {may} {path}, which ");
        ran.says(&[&text]).says(found);
    };
    let all = [
        "the data folder (log/data)",
        "the tokens (secrets/tokens)",
        "the key of a TLS door",
        "the socket of a door",
        "credentials (secrets/keys)",
        "credentials (secrets/fleet)",
        "credentials (secrets/auth.json)",
    ];
    let more = ["the manifest (organism.yaml)", "a file of the manifest", "the file of a listener"];
    refused("root: .", "write", &[&all[..], &more].concat());
    refused("write: [.]", "write", &[&all[..], &more].concat());
    refused("read: [.]", "read", &all);
    for may in ["read", "write"] {
        for (path, found) in [
            ("log", "holds the data folder (log/data)"),
            ("secrets", "holds the tokens"),
            ("secrets/tokens", "holds the tokens"),
            ("secrets/keys", "holds credentials (secrets/keys)"),
            ("secrets/fleet", "holds credentials (secrets/fleet)"),
            ("secrets/auth.json", "holds credentials (secrets/auth.json)"),
            ("tls/key", "holds the key of a TLS door (tls/key)"),
            ("doors", "holds the socket of a door (doors/pump.sock)"),
        ] {
            refused(&format!("{may}: [{path}]"), may, &[found]);
        }
    }
    fs::create_dir_all(scene.path("log/data/deep")).unwrap();
    refused("root: log/data/deep", "write", &["is in the data folder (log/data)"]);
    for (path, found) in [
        ("organism.yaml", "holds the manifest"),
        ("more", "holds a file of the manifest"),
        ("store", "holds the file of a listener (store/kv.db)"),
    ] {
        refused(&format!("write: [{path}]"), "write", &[found]);
        check(&format!("read: [{path}]")).code(0);
    }
    scene.write("mcp.lock.json", "{}");
    refused("write: [mcp.lock.json]", "write", &["holds the recorded MCP tools"]);
    check("root: work, read: [tls/cert], write: [free]").code(0);
    // Every program may read some folders of the system.
    let text =
        "the programs of `shell`, as all, may read /usr, which holds the data folder (/usr/no)";
    scene.write("organism.yaml", manifest("").replace("log/data", "/usr/no"));
    scene.run(&["check"]).code(1).says(&["organism.yaml:9:5: ", text]);
    // `run` refuses the same, also for what its options name.
    let run = |options: &[&str]| scene.run(&[&["run"], options].concat()).code(2);
    check("root: free").code(0);
    write_private(&scene, "free/tokens", "bob:s3cret-of-bob\n");
    run(&["--tokens", "free/tokens"]).says(&["which holds the tokens (free/tokens)"]);
    run(&["--unix", "free/door/sock"]).says(&["which holds the socket of a door"]);
    run(&["--data", "free"]).says(&["which holds the data folder (free)"]);
}

#[test]
fn a_link_hides_nothing_of_the_pumps() {
    let scene = scene();
    let at = |name: &str| scene.path(name);
    symlink(at("secrets"), at("free/way")).unwrap();
    symlink("way", at("free/way-again")).unwrap();
    let says = |settings: &str, tokens: &str, code: i32, text: &str| {
        let manifest = manifest(settings).replace("secrets/tokens", tokens);
        scene.write("organism.yaml", manifest);
        scene.run(&["check"]).code(code).says(&[text]);
    };
    says(", root: free/way-again", "secrets/tokens", 1, "which holds the tokens");
    symlink(at("log"), at("work/default")).unwrap();
    says(", root: work/default", "secrets/tokens", 1, "which holds the data folder");
    // Who may replace a link on the way decides what is there.
    says(", root: free", "free/way-again/tokens", 1, "which holds the tokens (free/way-again/tok");
    says(", read: [free]", "free/way-again/tokens", 0, "sound");
    fs::hard_link(at("secrets/tokens"), at("hard")).unwrap();
    says(", read: [hard]", "secrets/tokens", 1, "which holds the tokens");
    fs::remove_dir_all(at("work")).unwrap();
    symlink(at("secrets"), at("work")).unwrap();
    says("", "secrets/tokens", 1, "which holds the tokens");
}

#[test]
fn a_folder_that_is_mounted_twice_hides_nothing_of_the_pumps() {
    let scene = scene();
    scene.write("organism.yaml", manifest(", root: free"));
    let run = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script]).current_dir(scene.path(""));
        Ran::of(&mut command)
    };
    let mount = "mount --bind secrets free";
    if run(mount).code != 0 {
        return crate::skipped("no mounts");
    }
    let check = format!("{mount} && {} check", env!("CARGO_BIN_EXE_pumphouse"));
    run(&check).code(1).says(&["which holds the tokens (secrets/tokens)"]);
    scene.run(&["check"]).code(0);
}

#[test]
fn by_default_a_program_has_a_folder_of_its_own() {
    let scene = Scene::new();
    scene.write("secret", "s3cret");
    scene.write("note.sh", "#!/bin/sh\npwd; echo mine >note; cat ../secret");
    fs::set_permissions(scene.path("note.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let manifest = "listeners:\n  - {use: shell, settings: {programs: [sh, ./note.sh]}}\n";
    scene.write("organism.yaml", manifest);
    scene.run(&["check"]).code(0);
    assert!(!scene.path("work").exists(), "`check` makes nothing");
    let server = scene.serve(&[]);
    let mode = |path: &str| scene.path(path).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("work"), 0o700);
    let note = Shell::payload("sh", "").replace("<command>sh", "<command>./note.sh");
    let ran = sent(&scene, &server, &note);
    assert!(ran.out.contains("/work\n"), "{ran:?}");
    assert_eq!(fs::read_to_string(scene.path("work/note")).unwrap(), "mine\n");
    if is_confined() {
        assert!(!ran.out.contains("s3cret"), "{ran:?}");
    }
    // A folder that is gone is made again.
    fs::remove_dir_all(scene.path("work")).unwrap();
    sent(&scene, &server, &Shell::payload("sh", "pwd")).code(0).says(&["/work"]);
    assert_eq!(mode("work"), 0o700);
}
