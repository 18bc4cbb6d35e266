//! `use: skills`: which skills an agent is told of, and which it loads.

use super::{asked, in_order, organism};
use crate::program::Scene;

const TEA: &str = "---\nname: brew-tea\ndescription: How tea is made.\n---\nWarm the pot first.\n";

fn scene(replies: &str) -> Scene {
    let scene = organism(&[("skills", "use: skills, settings: {folder: skills}")], replies);
    scene.write("skills/tea/SKILL.md", TEA);
    scene.write("skills/notes.txt", "no skill");
    scene
}

#[test]
fn an_agent_is_told_of_skills_and_loads_one() {
    let replies = "%% reply\n<action id=\"a\">{\"name\": \"skills.load-skill\", \"parameters\": \
                   {\"name\": \"coffee\"}}</action>\n\
                   %% reply\n<action id=\"b\">{\"name\": \"skills.load-skill\", \"parameters\": \
                   {\"name\": \"brew-tea\"}}</action>\n\
                   %% reply\n<response>First: ${b}</response>\n";
    let log = asked(&scene(replies), "Tea, please.");
    let digest = blake3::hash(TEA.as_bytes()).to_hex().to_string();
    in_order(&log, &["brew-tea: How tea is made.", "there is no skill coffee; there is brew-tea"]);
    in_order(&log, &["load-skill", &digest, "Warm the pot first."]);
}

#[test]
fn what_is_wrong_with_a_folder_of_skills_is_told() {
    let scene = scene("%% reply\n<response>Yes.</response>\n");
    scene.run(&["check"]).code(0).says(&["brew-tea: How tea is made."]);
    scene.write("skills/other/SKILL.md", TEA);
    scene.run(&["check"]).code(1).says(&["another skill is called brew-tea, too"]);
    scene.write("skills/other/SKILL.md", "# Tea");
    scene.run(&["check"]).code(1).says(&["SKILL.md: it doesn't begin with YAML"]);
    scene.write("skills/other/SKILL.md", "x".repeat(70_000));
    scene.run(&["check"]).code(1).says(&["the limit skill_bytes_max"]);
    std::fs::remove_dir_all(scene.path("skills")).unwrap();
    scene.run(&["check"]).code(1).says(&["skills: No such file or directory"]);
}
