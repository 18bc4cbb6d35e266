//! `init trial && cd trial && cargo run`, as a newcomer types it. The new project works at once,
//! and one edit changes its answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::program::{Ran, Scene};

const GREET: &str =
    "<greet xmlns=\"https://example.org/ns/greeter/v1\"><name>world</name></greet>\n";

#[test]
fn a_new_project_works_at_once_and_one_edit_changes_its_answer() {
    let scene = Scene::new();
    let made = scene.run(&["init", "my trial"]).code(0);
    made.says(&["my trial is there, as my-trial; now: cd 'my trial' && cargo run"]);
    let trial = Trial { folder: scene.path("my trial") };
    trial.cargo(&["check"]).code(0).says(&["organism.yaml is sound", "listener  greeter"]);
    trial.cargo(&["test"]).code(0).says(&["1 of 1 scenes hold"]);
    assert!(trial.served().ask().contains("<text>Hello, world!</text>"));
    trial.cargo(&["threads"]).code(0).says(&["sess-"]);
    // The program that made it doesn't know the project's listeners, and says who does.
    let mut bare = scene.command(&["check"]);
    let bare = Ran::from(bare.current_dir(&trial.folder).output().unwrap()).code(1);
    bare.says(&["no listener is of the kind `greeter`", "`cargo run -- check`"]);

    let main = trial.folder.join("src/main.rs");
    let text = std::fs::read_to_string(&main).unwrap();
    std::fs::write(&main, text.replace("Hello, {name}!", "Good day, {name}!")).unwrap();
    assert!(trial.served().ask().contains("<text>Good day, world!</text>"));
    trial.cargo(&["test"]).code(1).says(&["greet.scene:4", "0 of 1 scenes hold"]);
}

/// Has the projects in a folder use what was built for these tests. Returns the folder of what was
/// built, as the value of `CARGO_TARGET_DIR`, and writes a file from which Cargo takes the settings
/// with which it was built.
pub(crate) fn share_target(folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let settings = std::fs::read_to_string(root.join(".cargo/config.toml")).unwrap();
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let (_, profile) = manifest.split_once("[profile.dev]\n").expect("it is the last profile");
    std::fs::create_dir_all(folder.join(".cargo")).unwrap();
    let file = folder.join(".cargo/config.toml");
    std::fs::write(file, format!("{settings}\n[profile.dev]\n{profile}")).unwrap();
    std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned()
}

/// A project that was made.
struct Trial {
    folder: PathBuf,
}

impl Trial {
    /// `cargo run`, offline.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO"));
        command.args(["run", "--quiet", "--offline", "--"]).args(arguments);
        command.current_dir(&self.folder).stdin(Stdio::null()).env("LISTEN", "127.0.0.1:0");
        command.env("CARGO_TARGET_DIR", share_target(self.folder.parent().unwrap()));
        command
    }

    #[track_caller]
    fn cargo(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// `cargo run`, which serves.
    fn served(&self) -> Served {
        let mut child = self.command(&["--json", "run"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let greeting: Value = serde_json::from_str(&line).expect("it says that it accepts");
        Served { child, out, greeting }
    }
}

/// A project's pump, told to stop when it is dropped.
struct Served {
    child: Child,
    out: BufReader<ChildStdout>,
    greeting: Value,
}

impl Served {
    /// What is said to a greeting, as netcat shows it.
    fn ask(&self) -> String {
        let mut stream = TcpStream::connect(self.greeting["listen"][0].as_str().unwrap()).unwrap();
        stream.write_all(GREET.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Cargo waits for the program that it runs.
        let process = self.greeting["process"].as_u64().unwrap().to_string();
        let _ = Command::new("kill").args(["-INT", &process]).status();
        let mut rest = String::new();
        let _ = self.out.read_to_string(&mut rest);
        let _ = self.child.wait();
    }
}

/// Runs the program itself in a folder of a scene.
#[track_caller]
fn there(scene: &Scene, folder: &str, arguments: &[&str]) -> Ran {
    let mut command = scene.command(arguments);
    Ran::from(command.current_dir(scene.path(folder)).output().unwrap())
}

#[test]
fn a_project_of_a_program_works_at_once_without_rust() {
    let scene = Scene::new();
    let made = scene.run(&["init", "trial", "--command"]).code(0);
    made.says(&["trial is there; now: cd trial && pumphouse test\n"]);
    let check = there(&scene, "trial", &["check"]).code(0);
    check.says(&["organism.yaml is sound: trial", "listener  greeter  Runs ./greet.sh on `run`."]);
    there(&scene, "trial", &["test"]).code(0).says(&["1 of 1 scenes hold"]);
    let script = scene.path("trial/greet.sh");
    let text = std::fs::read_to_string(&script).unwrap();
    std::fs::write(&script, text.replace("Hello", "Good day")).unwrap();
    there(&scene, "trial", &["test"]).code(1).says(&["Good day, world!", "0 of 1 scenes hold"]);
}

#[test]
fn a_project_of_an_agent_works_at_once_without_rust_and_without_a_model() {
    let scene = Scene::new();
    let made = scene.run(&["init", "my agent", "--agent"]).code(0);
    let next = "cd 'my agent' && pumphouse test --manifest stand-in.yaml\n";
    made.says(&[&format!("my agent is there, as my-agent; now: {next}")]);
    let check = there(&scene, "my agent", &["check"]).code(0);
    check.says(&["organism.yaml is sound: my-agent", "peers   files, fetch"]);
    let test = there(&scene, "my agent", &["test", "--manifest", "stand-in.yaml"]).code(0);
    test.says(&["1 of 1 scenes hold"]);
    // The two manifests have one agent.
    let read = |name: &str| std::fs::read_to_string(scene.path("my agent").join(name)).unwrap();
    let listeners = |text: String| text.split_once("listeners:").unwrap().1.to_owned();
    assert_eq!(listeners(read("organism.yaml")), listeners(read("stand-in.yaml")));
}

#[test]
fn a_project_is_of_one_sort() {
    let scene = Scene::new();
    scene.run(&["init", "trial", "--agent", "--command"]).code(2).says(&["cannot be used with"]);
    let both = ["init", "trial", "--agent", "--pumphouse", "."];
    scene.run(&both).code(2).says(&["cannot be used with"]);
}
