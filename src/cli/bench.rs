//! `bench`: measures how fast this machine handles messages, and compares the figures with floors:
//! the costs of a read pass, a sync or an append without a pump.

mod measure;
mod row;
mod envelope;
mod floors;
mod sitting;
mod floor_rows;
mod pump;
mod program;
mod reader;
mod reply;
mod hop;
mod push;
mod answer;
mod bare;
mod load;
mod server;
mod threads;
mod crowd;

use crate::cli::base::screen::{Ending, Failure, Screen};
use sitting::Sitting;

/// Measures the rows of the table in docs/speed.md in about a minute: floors, reading, hops,
/// pushes, answers, a server's start, and threads.
///
/// A floor is the cost of a read pass, a sync or an append without a pump. A hop is a message from
/// a listener to itself. Figures hold for this machine and this minute only; compare the ratios.
/// The logs are in a new folder in the system's temporary folder, which TMPDIR names. If the
/// temporary folder is in memory, a sync costs nothing, and the figures of syncs mean nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Bench {
    /// How much work to do; 1 takes about a minute.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR", value_parser = factor)]
    scale: f64,
    /// Measures only rows whose name, followed by the durability, contains this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  pumphouse bench                    the whole table
  pumphouse bench --only push        the rows about pushes
  pumphouse bench --only full        the rows of this durability
  pumphouse bench --only answer --scale 10
  pumphouse bench --json             one object a row, for machines";

impl Bench {
    pub(crate) async fn run(self, to: &mut Screen<'_>) -> Result<Ending, Failure> {
        let mut sitting = Sitting::begin(self.scale, self.only, to)?;
        floor_rows::rows(&mut sitting)?;
        reader::rows(&mut sitting)?;
        reply::rows(&mut sitting)?;
        hop::rows(&mut sitting).await?;
        push::rows(&mut sitting).await?;
        answer::rows(&mut sitting).await?;
        load::rows(&mut sitting).await?;
        server::rows(&mut sitting)?;
        threads::rows(&mut sitting).await?;
        crowd::rows(&mut sitting).await?;
        sitting.end()
    }
}

fn factor(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|it: &f64| it.is_finite() && *it > 0.0);
    number.ok_or_else(|| "a factor is a number above 0, such as 0.1 or 10".to_owned())
}
