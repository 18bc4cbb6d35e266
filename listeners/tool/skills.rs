//! The listener `skills`: offers a folder of [Agent Skills](https://agentskills.io), instructions
//! that an agent loads when it needs them.
//!
//! ```yaml
//! listeners:
//!   - {use: skills, settings: {folder: skills}}
//! ```
//!
//! Each skill is a folder with a file `SKILL.md`, which begins with a name and a description in
//! YAML. The prompt of each agent that may call the listener shows the names and the descriptions.
//! The payload `load-skill` loads the rest of a skill.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pumphouse::bounded_yaml;
use pumphouse::listener::ManifestPath;
use pumphouse::prelude::*;
use serde::Deserialize;

use super::files::limits::FileLimits;
use super::files::root::Root;
use super::mcp::shown;

/// The listener's default name. The payloads' namespace contains the name in use.
const NAME: &str = "skills";
/// The name of a skill's file.
const FILE: &str = "SKILL.md";
/// The line before and after the YAML.
const FENCE: &str = "---";

/// Loads a skill: instructions for a task.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/skills/v1")]
pub struct LoadSkill {
    /// The skill.
    #[payload(example = "brew-tea")]
    pub name: String,
}

/// A skill: instructions for a task.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/skills/v1")]
pub struct Skill {
    /// The skill.
    #[payload(attribute, example = "brew-tea")]
    pub name: String,
    /// The BLAKE3 digest of its file, in hexadecimal.
    #[payload(attribute)]
    pub digest: String,
    /// The text of its file, without the name and the description.
    #[payload(value, example = "Warm the pot first.")]
    pub text: String,
}

/// There is no such skill.
#[derive(Clone, Debug, PartialEq, Eq, Payload)]
#[payload(ns = "https://xml-pipeline.org/ns/skills/v1")]
pub struct UnknownSkill {
    /// The skills that exist.
    #[payload(value, example = "there is no skill tea; there is brew-tea")]
    pub text: String,
}

/// The limits of a folder of skills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SkillLimits {
    /// The maximum number of skills in the folder.
    pub skills_max: usize,
    /// The maximum number of bytes of one skill's file.
    pub skill_bytes_max: usize,
}

impl Default for SkillLimits {
    fn default() -> SkillLimits {
        SkillLimits { skills_max: 64, skill_bytes_max: 64 << 10 }
    }
}

/// The `settings` of `use: skills` in a manifest.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Settings {
    /// The folder that contains the skills' folders.
    pub folder: ManifestPath,
    /// The limits of a folder of skills.
    #[serde(default)]
    pub limits: SkillLimits,
}

/// The YAML at the beginning of a skill's file. Keys other than `name` and `description` are
/// ignored.
#[derive(Debug, Deserialize)]
struct Front {
    name: String,
    description: String,
}

#[derive(Debug, PartialEq, Eq)]
struct Known {
    description: String,
    digest: String,
    text: String,
}

/// Makes the listener `skills`. The skills' files are read once, here. Later changes of a file have
/// no effect on the running listener.
///
/// # Errors
/// If the folder can't be read, if no folder in it has a `SKILL.md`, if a skill's file is invalid,
/// if two skills have the same name, or if a limit is exceeded.
pub fn skills(settings: &Settings) -> Result<Listener, String> {
    let all = read(&settings.folder.path(), &settings.limits)?;
    let each = |(name, it): (&String, &Known)| format!("{name}: {}", it.description);
    let list: Vec<String> = all.iter().map(each).collect();
    let text = format!("Shows how something is done. Skills:\n{}", list.join("\n"));
    let listener = Listener::with_state(NAME, Arc::new(all)).own_namespace().on(load);
    Ok(listener.describe(text).reader().stateless())
}

async fn load(
    State(all): State<Arc<BTreeMap<String, Known>>>,
    LoadSkill { name }: LoadSkill,
) -> Result<Skill, UnknownSkill> {
    match all.get(&name) {
        Some(it) => Ok(Skill { name, digest: it.digest.clone(), text: it.text.clone() }),
        None => {
            let there: Vec<&str> = all.keys().map(String::as_str).collect();
            let (name, there) = (name.chars().take(100).collect::<String>(), there.join(", "));
            Err(UnknownSkill { text: format!("there is no skill {name}; there is {there}") })
        }
    }
}

fn read(folder: &Path, limits: &SkillLimits) -> Result<BTreeMap<String, Known>, String> {
    let failed = |at: &Path, why: &dyn std::fmt::Display| format!("{}: {why}", at.display());
    let mut all = BTreeMap::new();
    let most = limits.skill_bytes_max;
    // Agents may write below the folder, so no link in it leads out.
    let bounds = FileLimits { file_bytes_max: most, ..FileLimits::default() };
    let root = Root::open(folder, bounds).map_err(|it| failed(folder, &it))?;
    for entry in root.dir.entries().map_err(|it| failed(folder, &it))? {
        let at = Path::new(&entry.map_err(|it| failed(folder, &it))?.file_name()).join(FILE);
        let path = folder.join(&at);
        let Ok(facts) = root.dir.metadata(&at) else { continue };
        if !facts.is_file() || facts.len() > most as u64 {
            let why = format!("it is no file of at most {most} bytes, the limit skill_bytes_max");
            return Err(failed(&path, &why));
        }
        let text = root.text(&at.to_string_lossy()).map_err(|it| failed(&path, &it.text))?.0;
        let (name, known) = skill(&text).map_err(|it| failed(&path, &it))?;
        if all.insert(name.clone(), known).is_some() {
            return Err(failed(&path, &format!("another skill is called {name}, too")));
        }
        let most = limits.skills_max;
        if all.len() > most {
            let why = format!("it has more than {most} skills, the limit skills_max");
            return Err(failed(folder, &why));
        }
    }
    match all.is_empty() {
        true => Err(failed(folder, &format!("no folder in it has a {FILE}"))),
        false => Ok(all),
    }
}

/// Parses a skill's file. Returns the skill's name, and its description, digest and text.
fn skill(text: &str) -> Result<(String, Known), String> {
    let plain = text.replace("\r\n", "\n");
    let parts = plain.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    let Some((front, body)) = parts else {
        return Err(format!("it doesn't begin with YAML between two lines `{FENCE}`"));
    };
    let Front { name, description } =
        bounded_yaml::from_str(front).map_err(|error| shown(&error))?;
    let fits = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
        return Err("its `name` has at most 64 letters of a to z, digits and `-`".to_owned());
    }
    let description = shown(description.trim());
    if description.is_empty() || description.chars().count() > 1_024 {
        return Err("its `description` has from 1 to 1,024 characters".to_owned());
    }
    let digest = blake3::hash(text.as_bytes()).to_hex().to_string();
    // The prompt shows each description on one line.
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok((name, Known { description, digest, text: shown(body.trim()) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_is_yaml_and_a_text() {
        let text = "---\nname: brew-tea\ndescription: >\n  How tea\n  is made.\nlicense: MIT\n---\n\
                    # Tea\n\nWarm\u{1b}[2J the pot.\n";
        let (name, found) = skill(text).unwrap();
        assert_eq!((&*name, &*found.description), ("brew-tea", "How tea is made."));
        assert_eq!(found.text, "# Tea\n\nWarm\u{FFFD}[2J the pot.");
        assert_eq!(found.digest, blake3::hash(text.as_bytes()).to_hex().to_string());
        assert_eq!(skill(&text.replace('\n', "\r\n")).unwrap().1.text, found.text);
    }

    #[test]
    fn what_is_no_skill_is_told() {
        for (text, expected) in [
            ("# Tea", "between two lines `---`"),
            ("---\nname: tea\n---\n", "description"),
            ("---\nname: Tea!\ndescription: x\n---\n", "its `name` has"),
            ("---\nname: tea\ndescription: ' '\n---\n", "its `description` has"),
            ("---\nname: [\n---\n", ""),
        ] {
            let why = skill(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }
}
