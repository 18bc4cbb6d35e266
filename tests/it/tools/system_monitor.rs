//! `use: system_monitor`: figures of the machine, and nothing private of processes.

use std::process::{Command, Stdio};

use crate::program::{Ran, Scene};

#[track_caller]
fn measured(scene: &Scene, inside: &str) -> Ran {
    scene.write("organism.yaml", "listeners: [{use: system_monitor}]\n");
    let server = scene.serve(&[]);
    let ns = "https://xml-pipeline.org/ns/system_monitor/v1";
    let payload = format!("<measure xmlns=\"{ns}\">{inside}</measure>\n");
    scene.pipe(&["send", "--connect", &server.address], &payload).code(0)
}

#[test]
fn the_machine_is_measured_as_far_as_is_asked() {
    let scene = Scene::new();
    let all =
        ["<load ", "cpus=\"", "<memory ", "available=\"", "<disk ", "path=\"/\"", "<processes>"];
    measured(&scene, "").says(&all);
    let some = measured(&scene, "<metrics>cpu</metrics><metrics>memory</metrics>");
    let some = some.says(&["<load ", "<memory "]);
    assert!(!some.out.contains("<disk ") && !some.out.contains("<process"), "{some:?}");
}

#[test]
fn of_processes_it_tells_no_arguments() {
    let scene = Scene::new();
    let mut child = Command::new("sleep").args(["987654321"]).stdin(Stdio::null()).spawn().unwrap();
    let all = measured(&scene, "<metrics>processes</metrics>").says(&["<process ", "name=\""]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!all.out.contains("987654321"), "{all:?}");
    assert!(all.out.matches("<process ").count() <= 20);
}

#[test]
fn check_wants_the_disks_there() {
    let scene = Scene::new();
    let listener = "{use: system_monitor, settings: {disks: [no]}}";
    scene.write("organism.yaml", format!("listeners: [{listener}]\n"));
    scene.run(&["check"]).code(1).says(&["no: "]);
}
