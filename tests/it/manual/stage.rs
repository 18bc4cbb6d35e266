//! The environment in which a page's commands run: a folder of its own, a server of its own on a
//! free port, and substitutes for commands that would take minutes.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::examples;

/// What the pages write for `pumphouse`. `run` goes on beside the commands that follow it, on a
/// free port; what follows a log is told to stop.
const PUMPHOUSE: &str = r#"#!/bin/bash
program="${PROGRAM:-$STAGE_PROGRAM}"
verb=
for it in "$@"; do case "$it" in -*) ;; *) verb="$it"; break ;; esac; done
if [ -z "$verb" ] && [ -f organism.yaml ]; then verb=run; set -- run "$@"; fi
case "$verb" in
run)
  if [ -f "$STAGE/server" ]; then
    kill -INT "$(cat "$STAGE/server")" 2>/dev/null
    while kill -0 "$(cat "$STAGE/server")" 2>/dev/null; do sleep 0.05; done
  fi
  case " $* " in *" --listen "*) listen=() ;; *) listen=(--listen "127.0.0.1:$STAGE_PORT") ;; esac
  "$program" "$@" "${listen[@]}" >"$STAGE/said" 2>&1 </dev/null &
  echo $! >"$STAGE/server"
  for _ in $(seq 200); do
    if grep -q "accepts XML" "$STAGE/said"; then cat "$STAGE/said"; exit 0; fi
    sleep 0.05
  done
  cat "$STAGE/said"; exit 1 ;;
send | workflow)
  case " $* " in *" --connect "*) exec "$program" "$@" ;; esac
  exec "$program" "$@" --connect "127.0.0.1:$STAGE_PORT" ;;
esac
case " $* " in
*" --follow "*|*" -f "*) exec timeout --preserve-status -s INT 1 "$program" "$@" ;;
esac
exec "$program" "$@"
"#;

/// What the pages write for `cargo`: what is built is there, what is tested is tested elsewhere.
/// A project that a page made is built, beside what was built for these tests.
const CARGO: &str = r#"#!/bin/bash
case "$1 ${2:-}" in
"run "|"run --")
  shift 1; [ "${1:-}" != -- ] || shift 1
  # Where there is no project, the page means this one.
  [ -f Cargo.toml ] || exec pumphouse "$@"
  "$STAGE_CARGO" build --quiet --offline || exit 1
  name=$(sed -n 's/^name = "\(.*\)"/\1/p' Cargo.toml)
  PROGRAM="$CARGO_TARGET_DIR/debug/$name"; export PROGRAM
  exec pumphouse "$@" ;;
"run --release")
  [ "$3" = -- ] || exit 1
  shift 3; exec pumphouse "$@" ;;
"run --example")
  [ "$4" = -- ] || exit 1
  PROGRAM="$STAGE_EXAMPLES/$3"; export PROGRAM
  shift 4; exec pumphouse "$@" ;;
"build --release") exit 0 ;;
"test ") grep -qx "cargo test" "$STAGE_ROOT/.ci/run"; exit ;;
esac
echo "no page may say: cargo $*" >&2
exit 1
"#;

/// What the pages write for `just`: there is such a recipe.
const JUST: &str = "#!/bin/bash\ngrep -q \"^$1\\( .*\\)\\?:\" \"$STAGE_ROOT/justfile\"\n";

/// A message for pages that push one from a file.
pub(super) const ONE: &str =
    "<echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>one</text></echo>\n";
/// Tools that may be missing where tests run.
const TOOLS: [&str; 7] = ["nc", "sqlite3", "python3", "node", "jq", "xmllint", "curl"];

pub(super) struct Stage {
    folder: TempDir,
    port: u16,
    /// Where metrics are shown.
    metrics: u16,
}

/// What a block came to.
pub(super) enum Played {
    Said(String),
    Skipped(&'static str),
}

/// A free port, below those that the system gives to whoever connects: a page starts its server
/// more than once, and between, the port must stay free.
fn free_port() -> u16 {
    const FIRST: u32 = 12_000;
    const COUNT: u32 = 20_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let at = std::process::id().wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + at % COUNT).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl Stage {
    pub(super) fn new() -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let stage = Stage { folder, port: free_port(), metrics: free_port() };
        for (name, text) in [("pumphouse", PUMPHOUSE), ("cargo", CARGO), ("just", JUST)] {
            let path = stage.path(&format!("bin/{name}"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            assert!(Command::new("chmod").arg("+x").arg(path).status().unwrap().success());
        }
        let built = stage.path("here/target/release");
        std::fs::create_dir_all(&built).unwrap();
        link(&stage.path("bin/pumphouse"), &built.join("pumphouse"));
        stage.write("message.xml", ONE);
        let tokens = stage.write("tokens.txt", "ada:s3cret:operator\n");
        assert!(Command::new("chmod").arg("600").arg(tokens).status().unwrap().success());
        link(&root().join("examples"), &stage.path("here/examples"));
        link(&root().join("schemas"), &stage.path("here/schemas"));
        stage
    }

    /// A path of the stage.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path("here").join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Runs a block; what it wrote to its output, or why it went wrong.
    pub(super) fn play(&self, block: &str) -> Result<Played, String> {
        if let Some(tool) = missing(block) {
            return Ok(Played::Skipped(tool));
        }
        // A block begins where the one before it ended.
        let script = format!("{}\npwd >\"$STAGE/where\"", self.filled(block));
        let output = self
            .command("timeout")
            .args(["600", "bash", "-euo", "pipefail", "-c", &script])
            .output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(Played::Said(said));
        }
        let err = String::from_utf8_lossy(&output.stderr);
        Err(format!("{} of\n{script}\n{said}\n{err}", output.status))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        #[expect(clippy::disallowed_methods, reason = "programs are found where they are")]
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.path("bin").display());
        let place = std::fs::read_to_string(self.path("where"));
        let place = place.map_or(self.path("here"), |it| it.trim_end().into());
        command.current_dir(place).stdin(Stdio::null()).env("PATH", path);
        for name in ["RUST_LOG", "NO_COLOR", "PUMPHOUSE_TOKEN", "COLUMNS", "LC_CTYPE"] {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C.UTF-8");
        command.env("STAGE", self.folder.path()).env("STAGE_ROOT", root());
        command.env("STAGE_PORT", self.port.to_string());
        command.env("STAGE_PROGRAM", env!("CARGO_BIN_EXE_pumphouse"));
        command.env("STAGE_EXAMPLES", examples::folder());
        command.env("STAGE_CARGO", env!("CARGO"));
        command.env("CARGO_TARGET_DIR", crate::init::share_target(self.folder.path()));
        command
    }

    /// A block with what only this run knows: its port, its newest session, its head.
    pub(super) fn filled(&self, block: &str) -> String {
        let port = self.port.to_string();
        let text = block.replace("127.0.0.1 8765", &format!("127.0.0.1 {port}"));
        // No test listens where other machines can reach it, or asks one.
        let hosts = ["127.0.0.1:8765", "0.0.0.0:8765", "pump.example:8765"];
        let here = format!("127.0.0.1:{port}");
        let text = text.replace("127.0.0.1:9464", &format!("127.0.0.1:{}", self.metrics));
        let mut text = hosts.iter().fold(text, |text, it| text.replace(it, &here));
        if let Some(thread) = self.told(&["threads", "--json"], "thread") {
            for shown in masked(&text, session) {
                text = text.replace(&shown, &thread);
            }
        }
        if let Some(head) = self.told(&["verify", "--json"], "head") {
            text = text.replace("--expect HEAD", &format!("--expect {head}"));
        }
        text
    }

    /// A value of the last line that the program prints.
    fn told(&self, arguments: &[&str], value: &str) -> Option<String> {
        let mut command = self.command(env!("CARGO_BIN_EXE_pumphouse"));
        let output = command.args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let object: serde_json::Value = serde_json::from_str(text.lines().last()?).ok()?;
        object[value].as_str().map(str::to_owned)
    }
}

impl Stage {
    /// Ends the server, if there is one, and waits until it has closed its log.
    pub(super) fn stop(&self) {
        let wait = "[ ! -f \"$STAGE/server\" ] || { kill -INT $(cat \"$STAGE/server\") || true; \
                    while kill -0 $(cat \"$STAGE/server\"); do sleep 0.05; done; }";
        let mut command = self.command("bash");
        command.args(["-c", wait]).stderr(Stdio::null()).status().unwrap();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A text without what differs from run to run: sessions, times, digits of digests, ports.
pub(super) fn plain(text: &str) -> String {
    let mut text = format!("{}\n", text.trim_end());
    for (find, shown) in [
        (session as fn(&str) -> usize, "SESSION"),
        (time, "TIME"),
        (digest, "DIGEST"),
        (address, "ADDRESS"),
    ] {
        for it in masked(&text, find) {
            text = text.replace(&it, shown);
        }
    }
    text
}

/// Every part of a text that a rule takes, the longest first.
fn masked(text: &str, rule: fn(&str) -> usize) -> Vec<String> {
    let starts = text.char_indices().map(|(at, _)| at);
    let fresh = starts.filter(|at| !text[..*at].ends_with(|it: char| it.is_ascii_alphanumeric()));
    let mut found: Vec<String> = fresh
        .map(|at| text[at..at + rule(&text[at..])].to_owned())
        .filter(|it| !it.is_empty())
        .collect();
    found.sort_by_key(|it| std::cmp::Reverse(it.len()));
    found
}

/// How long a session's id is that stands there.
fn session(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("sess-") else { return 0 };
    let word = rest.find(|it: char| !it.is_ascii_alphanumeric()).unwrap_or(rest.len());
    if word == 8 { "sess-".len() + 8 } else { 0 }
}

/// How long a time is that stands there.
fn time(text: &str) -> usize {
    let length = text.find(|it: char| !"0123456789-:.TZ".contains(it)).unwrap_or(text.len());
    let is_time = length >= "2026-11-21T22:15:36Z".len() && text[..length].ends_with('Z');
    if is_time { length } else { 0 }
}

/// How long a digest is that stands there, whole or its first four bytes.
fn digest(text: &str) -> usize {
    let length = text.find(|it: char| !it.is_ascii_hexdigit()).unwrap_or(text.len());
    if length == 8 || length == 64 { length } else { 0 }
}

/// How long an address of this machine is that stands there.
fn address(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("127.0.0.1:") else { return 0 };
    let digits = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
    if digits > 0 { "127.0.0.1:".len() + digits } else { 0 }
}

/// A tool that a block needs and this machine lacks.
pub(super) fn missing(block: &str) -> Option<&'static str> {
    if block.contains("fullchain.pem") {
        // `door/tls.rs` makes some for itself.
        return Some("certificate that clients of this machine trust");
    }
    let words = |tool: &str| {
        block.split(|it: char| !(it.is_alphanumeric() || it == '.')).any(|it| it == tool)
    };
    let lacks = |tool: &&'static str| match *tool {
        // Another netcat has another -N.
        "nc" => !Command::new("nc")
            .arg("-h")
            .output()
            .is_ok_and(|it| String::from_utf8_lossy(&it.stderr).contains("OpenBSD")),
        tool => Command::new(tool).arg("--version").output().is_err(),
    };
    TOOLS.into_iter().filter(|it| words(it)).find(lacks)
}

fn link(to: &Path, at: &Path) {
    #[cfg(unix)]
    std::os::unix::fs::symlink(to, at).unwrap();
    #[cfg(not(unix))]
    panic!("{} isn't linked to {}: the pages are played on Unix", at.display(), to.display());
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn what_differs_from_run_to_run_is_masked() {
    let text = "sess-26thg2nz/1  2026-11-21T22:15:36.123Z  0a1b2c3d on 127.0.0.1:4711, sess-b\n";
    assert_eq!(plain(text), "SESSION/1  TIME  DIGEST on ADDRESS, sess-b\n");
}
