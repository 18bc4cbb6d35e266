//! `inspect`: what the pump makes of a file, without a pump.

mod reply;
mod xml;

use crate::cli::screen::{Ending, Failure, Screen};

/// Says what the pump makes of files: nothing is started, sent or kept.
#[derive(Debug, clap::Args)]
pub(crate) struct Inspect {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Reply(reply::Reply),
    Xml(xml::Xml),
}

impl Inspect {
    pub(crate) fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        match self.what {
            What::Reply(it) => it.run(to),
            What::Xml(it) => it.run(to),
        }
    }
}
