//! `pumphouse-bench`: its rows, and the figures of each row.
#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::process::Command;

use serde_json::Value;

/// The outcome of a run of the program.
struct Ran {
    out: String,
    err: String,
}

/// Runs the program, which has to end with this code. Builds `pumphouse` first, which it measures.
fn run(arguments: &[&str], code: i32) -> Ran {
    let build = ["build", "--quiet", "--offline", "--package", "pumphouse", "--bin", "pumphouse"];
    assert!(Command::new(env!("CARGO")).args(build).status().unwrap().success());
    let program = env!("CARGO_BIN_EXE_pumphouse-bench");
    let output = Command::new(program).args(arguments).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    assert_eq!(output.status.code(), Some(code), "{out}{err}");
    Ran { out, err }
}

/// Reads the rows that a run printed as objects.
fn objects(out: &str) -> Vec<Value> {
    out.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

#[test]
fn every_row_has_its_figures_and_those_that_need_one_a_goal() {
    let rows = objects(&run(&["--json", "--scale", "0.001"], 0).out);
    let names = |with: &dyn Fn(&Value) -> bool| -> Vec<String> {
        let rows = rows.iter().filter(|it| with(it));
        rows.map(|it| it["what"].as_str().unwrap().to_owned()).collect()
    };
    let has = |it: &Value, key: &str| it[key].is_number();
    let keys = ["per_second", "mb_per_second", "us_p50", "us", "bytes"];
    let without = names(&|it| !keys.iter().any(|key| has(it, key)));
    // Where there is no `strip`.
    assert!(without.iter().all(|it| it == "stripped binary"), "{without:?}");
    let of_neighbour = |it: &Value| it["what"] == "threads: one beside messages that wait";
    let waits = rows.iter().find(|it| of_neighbour(it)).map(|it| it["us_p99"].as_f64());
    assert!(waits.flatten().is_some_and(|it| it > 0.0), "somebody waited: {waits:?}");
    let durable = names(&|it| it["durability"] == "full");
    let of_all = ["push, one connection, pipelined", "push to answer, one at a time"];
    let load = ["push to answer, at half load", "push to answer, a bare server at that pace"];
    let of_all = [&of_all[..], &load].concat();
    let of_one = [
        "start to the first push answered",
        "memory of an idle server",
        "threads: messages to oneself in one",
        "threads: live sessions, memory more",
    ];
    assert_eq!(durable, [&of_all[..], &of_one].concat());
    assert_eq!(names(&|it| it["durability"] == "memory").len(), 8);
    assert_eq!(names(&|it| it["what"].as_str().unwrap().starts_with("threads: ")).len(), 12);
    let beside = |what: &str| names(&|it| it["beside"]["what"] == what && has(it, "ratio"));
    assert_eq!(beside("one NsReader pass").len(), 7);
    assert_eq!(beside("fdatasync of 4 KiB"), [load[0], load[1], load[0], load[0], load[1]]);
    let aimed = names(&|it| it["goals"][0]["met"].is_boolean());
    for what in ["hop, 1,000 threads", "reply: the example, 4 characters at a time"] {
        assert!(aimed.iter().any(|it| it == what), "{what}: {aimed:?}");
    }
}

#[test]
fn only_what_is_wanted_is_measured() {
    let ran = run(&["--scale", "0.001", "--only", "fdatasync"], 0);
    let lines: Vec<&str> = ran.out.lines().filter(|it| it.starts_with("| ")).collect();
    assert_eq!(lines.len(), 3, "a head, its rule, a row: {}", ran.out);
    assert!(lines[2].contains("fdatasync of 4 KiB") && lines[2].contains("p99 "), "{}", ran.out);
    let ran = run(&["--scale", "0.001", "--only", "a bare server", "--json"], 0);
    assert_eq!(objects(&ran.out).len(), 2);
    let none = run(&["--only", "psuh"], 2);
    assert!(none.err.contains("no row's name holds \"psuh\"; they are:"), "{}", none.err);
    assert!(none.err.contains("\n  push, one connection, pipelined\n"), "{}", none.err);
    let wrong = run(&["--scale", "0"], 2);
    assert!(wrong.err.contains("a factor is a number above 0"), "{}", wrong.err);
}
