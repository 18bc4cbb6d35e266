//! `init trial && cd trial && cargo run`, as a stranger types it: a project that works at once, and
//! whose answer is one edit away.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
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

/// What Cargo is told so that a project uses what was built for these tests: the same folder, and
/// therefore the same settings as there.
pub(crate) fn settings() -> [(&'static str, PathBuf); 3] {
    let test = std::env::current_exe().unwrap();
    [
        ("CARGO_TARGET_DIR", test.ancestors().nth(3).unwrap().to_owned()),
        ("CARGO_PROFILE_DEV_DEBUG", "line-tables-only".into()),
        ("LIBSQLITE3_FLAGS", "-DHAVE_FDATASYNC -DSQLITE_DEFAULT_MEMSTATUS=0".into()),
    ]
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
        command.envs(settings());
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
