//! The command line in this process, which takes a tenth of the time of a process of its own. It
//! runs in a thread that has a current folder apart from the process's, as Linux lets a thread.

use std::path::Path;

use crate::program::{OWN_SETTINGS, Ran};

/// The verbs that read files, print a text and end. All others serve, follow, read the input, catch
/// signals, or start the program.
const VERBS: [&str; 21] = [
    "--help",
    "--version",
    "budget",
    "check",
    "describe",
    "export",
    "feeds",
    "inspect",
    "metadata",
    "models",
    "otel",
    "prompt",
    "replay",
    "show",
    "state",
    "tail",
    "threads",
    "tree",
    "verify",
    "why",
    "workflows",
];

/// Arguments with which such a verb follows a log, reads the input, asks a server or a pump, or
/// starts the program.
const NOT_WITH: [&str; 8] =
    ["--follow", "-f", "-", "--check", "--live", "--raise", "--connect", "--log-json"];

/// Whether a run with these arguments is the same in this process.
#[expect(clippy::disallowed_methods, reason = "a process of its own has no settings of the tester")]
pub(crate) fn is_same(arguments: &[&str]) -> bool {
    let verb = arguments.iter().find(|it| VERBS.contains(it) || !it.starts_with('-'));
    cfg!(target_os = "linux")
        && verb.is_some_and(|it| VERBS.contains(it))
        && !arguments.iter().any(|it| NOT_WITH.contains(it))
        && OWN_SETTINGS.iter().all(|it| std::env::var_os(it).is_none())
}

/// Runs the command line in a folder.
#[cfg(target_os = "linux")]
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Ran {
    use nix::sched::{CloneFlags, unshare};

    let all = std::iter::once("pumphouse").chain(arguments.iter().copied());
    let run = || {
        // The verb's own threads come from this one, and have its folder.
        unshare(CloneFlags::CLONE_FS).unwrap();
        std::env::set_current_dir(folder).unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let code = pumphouse::cli::main_with(pumphouse::builder(), all, &mut out, &mut err);
        let [out, err] = [out, err].map(|it| String::from_utf8(it).unwrap());
        Ran { code: code.into(), out, err }
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let ran = thread.spawn_scoped(scope, run).unwrap().join();
        ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// The stack of a process's first thread.
#[cfg(target_os = "linux")]
const STACK_BYTES: usize = 8 * 1_024 * 1_024;

#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &Path, _: &[&str]) -> Ran {
    unreachable!("nothing is the same here")
}

#[cfg(target_os = "linux")]
#[test]
fn what_runs_in_this_process_says_the_same_as_a_process_of_its_own() {
    use crate::program::Scene;

    let scene = Scene::new();
    scene.write("organism.yaml", "listeners:\n  - use: echo\n");
    scene.write("message.xml", "<a><b/></a>");
    let here = std::env::current_dir().unwrap();
    let several: [&[&str]; 6] = [
        &["check"],
        &["describe", "echo", "--json"],
        &["inspect", "xml", "message.xml"],
        &["threads"],
        &["show", "--nothing"],
        &["--help"],
    ];
    for arguments in several {
        assert!(is_same(arguments), "{arguments:?}");
        let (own, process) =
            (run(&scene.path("."), arguments), Ran::of(&mut scene.command(arguments)));
        assert_eq!(own, process, "{arguments:?}");
    }
    assert_eq!(std::env::current_dir().unwrap(), here);
}
