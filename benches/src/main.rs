//! `pumphouse-bench`: measures how fast this machine handles messages, and compares the figures
//! with floors: the costs of a read pass, a sync or an append without a pump.

mod output;
mod measure;
mod row;
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

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use output::{Failure, Output};
use sitting::Sitting;

/// The same allocator as in the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures the rows of the table in docs/speed.md in about a minute: floors, reading, hops,
/// pushes, answers, a server's start, and threads.
///
/// A floor is the cost of a read pass, a sync or an append without a pump. A hop is a message from
/// a listener to itself. Figures hold for this machine and this minute only; compare the ratios.
/// The server is the executable `pumphouse` in the folder of this program.
///
/// The logs are in a new folder in the system's temporary folder, which TMPDIR names. If the
/// temporary folder is in memory, a sync costs nothing, and the figures of syncs mean nothing.
#[derive(Debug, clap::Parser)]
#[command(name = "pumphouse-bench", version, after_help = EXAMPLES)]
struct Bench {
    /// How much work to do; 1 takes about a minute.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR", value_parser = factor)]
    scale: f64,
    /// Measures only rows whose name, followed by the durability, contains this text.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Prints one JSON object a row.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  pumphouse-bench                    the whole table
  pumphouse-bench --only push        the rows about pushes
  pumphouse-bench --only full        the rows of this durability
  pumphouse-bench --only answer --scale 10
  pumphouse-bench --json             one object a row, for machines";

fn main() -> ExitCode {
    let bench = Bench::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|it| Failure::Untried(format!("no runtime: {it}")));
    let ended = runtime.and_then(|runtime| {
        let ended = runtime.block_on(bench.run());
        runtime.shutdown_background();
        ended
    });
    let (code, text) = match ended {
        Ok(()) | Err(Failure::Pipe) => return ExitCode::SUCCESS,
        Err(Failure::Wrong(text)) => (1, text),
        Err(Failure::Untried(text)) => (2, text),
    };
    // If this write fails, too, there is no other place to report the failure.
    let _ = writeln!(io::stderr(), "error: {text}");
    ExitCode::from(code)
}

impl Bench {
    async fn run(self) -> Result<(), Failure> {
        let mut sitting = Sitting::begin(self.scale, self.only, Output::new(self.json))?;
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
