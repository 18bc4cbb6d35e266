//! `completions`: prints the script that lets a shell complete verbs and options.

use std::path::Path;

use clap_complete::Shell;

use crate::cli::base::screen::{Ending, Failure, Screen};

/// Prints a script that lets a shell complete verbs and options.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  source <(pumphouse completions bash)
  pumphouse completions zsh > ~/.zfunc/_pumphouse
  pumphouse completions fish > ~/.config/fish/completions/pumphouse.fish")]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    /// Prints the script for a command. The script names the command after the started file.
    pub(crate) fn run(
        self,
        mut command: clap::Command,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        let program = std::env::args_os().next().unwrap_or_default();
        let name = Path::new(&program).file_stem().map(|it| it.to_string_lossy().into_owned());
        let name = name.unwrap_or_else(|| command.get_name().to_owned());
        // `generate` can't report that a pipe was closed, so it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        to.out.write_all(&script)?;
        Ok(Ending::Well)
    }
}
