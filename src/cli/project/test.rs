//! `test`: plays scenes.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::cli::base::organism::Organism;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::engine::Builder;
use crate::scene::{self, Scene};

/// Plays scenes: conversations in files, against the listeners that `run` would serve.
///
/// The scenes have a pump of their own, on a free port, with its log in memory. Each speaker of a
/// scene has a connection and an identity.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse test                     every .scene file in scenes/
  pumphouse test scenes/greet.scene

A scene:
  # Whoever is greeted hears of it.
  alice sends:
    <echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>hello</text></echo>
  alice receives:
    <echo xmlns=\"https://xml-pipeline.org/ns/echo/v1\"><text>hello</text></echo>")]
pub(crate) struct Test {
    /// Files, or folders of files that end in .scene.
    #[arg(value_name = "FILE", default_value = "scenes")]
    files: Vec<PathBuf>,
    /// The manifest; without it, organism.yaml in the current folder, if there is one.
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

impl Test {
    pub(crate) async fn run(
        self,
        builder: Builder,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        let organism = Organism::read_live(self.manifest.as_deref(), builder, None)?;
        let mut scenes = Vec::new();
        for path in paths(&self.files)? {
            let name = path.display().to_string();
            let text = fs::read_to_string(&path).map_err(|it| unread(&path, &it))?;
            scenes.push(Scene::read(&name, 0, &text).map_err(Failure::Untried)?);
        }
        if scenes.is_empty() {
            let text = "there is no scene; write one, such as `pumphouse test --help` shows";
            return Err(Failure::Untried(text.to_owned()));
        }
        let wrong = scene::hold(organism.builder, &scenes).await.map_err(Failure::Untried)?;
        if to.json {
            to.object(&json!({ "scenes": scenes.len(), "wrong": wrong }))?;
        } else {
            wrong.iter().try_for_each(|it| to.line(it))?;
            let held = scenes.len() - wrong.len();
            to.line(&format!("{held} of {} scenes hold", scenes.len()))?;
        }
        Ok(if wrong.is_empty() { Ending::Well } else { Ending::Wrong })
    }
}

/// Returns the given files, and the `.scene` files in the given folders, in order.
fn paths(files: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = Vec::new();
    for path in files {
        if !path.is_dir() {
            paths.push(path.clone());
            continue;
        }
        let found = fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let found = found.map_err(|it| unread(path, &it))?.into_iter().map(|it| it.path());
        let mut found: Vec<PathBuf> =
            found.filter(|it| it.extension().is_some_and(|it| it == "scene")).collect();
        found.sort();
        paths.extend(found);
    }
    Ok(paths)
}

fn unread(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Untried(format!("{} can't be read: {error}", path.display()))
}
