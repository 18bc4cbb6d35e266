//! `eval`: sends an agent the messages of a file, each several times, and tells how often its
//! answers are as expected.
//!
//! - [`file`]: reads the file of cases, and reports each mistake with its place in the file.
//! - [`expect`]: checks whether an answer is as expected, except what a judge decides.
//! - [`ask`]: asks a listener in a new thread, and waits for the end of the work, for at most the
//!   time limit.
//! - [`model_spending`]: the model usage of runs.
//! - [`judge`]: a model that says whether an answer meets a criterion.
//! - [`play`]: plays one run, from the message of a case to the check of the answer.
//! - [`result`]: the result of all runs, and the file that keeps it for later comparison.
//! - [`table`]: the result as a table for people, beside an earlier result.

mod limits;
mod file;
mod expect;
mod ask;
mod model_spending;
mod judge;
mod play;
mod result;
mod table;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::audit::{self, Paint};
use crate::cli::base::folder::Folder;
use crate::cli::base::organism::{Organism, bytes_of, complained, told, variable};
use crate::cli::base::program_paths::KeptPaths;
use crate::cli::base::screen::{Ending, Failure, Screen};
use crate::cli::base::signals::Signals;
use crate::cli::log::show::story;
use crate::cli::serve;
use crate::engine::{Builder, Pump};
use crate::id::ThreadId;
use crate::listeners::models::WithModels;
use crate::log::Durability;
use crate::manifest::{Manifest, Mistakes};
use crate::wire::Timestamp;
use ask::Asker;
use file::Suite;
use limits::{AT_ONCE_MAX, RUNS_MAX, SECONDS_MAX};
use play::{Player, Run};
use result::{EvalResult, ResultFile};

/// Sends an agent the messages of a file, each several times, and tells how often its answers are
/// as expected.
///
/// Each run has a thread of its own. The organism that the file names runs without its doors. The
/// runs are recorded in a log in a temporary folder, or in the folder that --data names. The table
/// says how often each case passed, and what a run took on average. For each case that failed, the
/// thread of its first failed run is printed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pumphouse eval sums.yaml
  pumphouse eval sums.yaml --runs 20 --at-once 4 --model large
  pumphouse eval sums.yaml --save before.json      and after a change of the prompt:
  pumphouse eval sums.yaml --against before.json
  pumphouse eval sums.yaml --json | jq -r 'select(.passed == false).wrong[]'
  pumphouse eval sums.yaml --data trial            keeps the threads, for `show` and `why`

A file:
  organism: organism.yaml
  agent: helper
  runs: 3
  judge: large
  cases:
    - name: sums
      message: What is 6 times 7?
      expect:
        - contains: \"42\"
        - called: {tool: calculate, with: {expression: \"6*7\"}}
        - judged: The answer is a number and nothing else.

Exits with 0 where all runs passed, 1 where some failed or a signal ended the evaluation, 2 where
the file or its organism is wrong.")]
pub(crate) struct Eval {
    /// The file of cases, in YAML.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How often each case runs. [default: what the file says, else 1]
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(RUNS_MAX)))]
    runs: Option<u32>,
    /// How many runs go on at once.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_once)]
    at_once: usize,
    /// The agent's model. [default: what the file says, else the manifest]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// How many seconds an answer of the agent or of the judge may take.
    #[arg(long, value_name = "SECONDS", default_value_t = SECONDS_MAX,
        value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Writes the result into a file, once all runs are done.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Shows the figures of an earlier result beside the new ones. The file is one that --save
    /// wrote.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
}

fn at_once(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|it| (1..=AT_ONCE_MAX).contains(it));
    number.ok_or_else(|| format!("a whole number from 1 to {AT_ONCE_MAX}"))
}

impl Eval {
    pub(crate) async fn run(
        self,
        builder: Builder,
        data: Option<&Path>,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        let earlier = self.against.as_deref().map(EvalResult::read).transpose()?;
        let (suite, organism) = self.read(builder)?;
        let kept_paths = KeptPaths::of(&organism);
        // The runs may take hours. If the file can't be written, opening it here fails before they
        // begin.
        let kept = self.save.as_deref().map(ResultFile::open).transpose()?;
        let mut signals = Signals::listen()?;
        let folder = Folder::make("eval")?;
        let (data, durability) = match data {
            Some(data) => (data, organism.durability),
            None => (folder.path(), Durability::Normal),
        };
        let (builder, _) = serve::log(organism.builder, data, durability)?;
        let plan = builder.build().map_err(|it| complained(&it, organism.places.as_ref()))?;
        kept_paths.check(&plan, organism.places.as_ref())?;
        suite.fits(plan.capabilities()).map_err(|it| wrong(&it))?;
        let is_own = organism.places.as_ref().is_some_and(|it| it.has(&suite.sheet.agent));
        if suite.sheet.model.is_some() && !is_own {
            return Err(wrong(&suite.no_such_agent()));
        }
        let pump = plan.start();
        pump.ready().await?;
        let played =
            Box::pin(self.play(&pump, suite, (earlier.as_ref(), kept), &mut signals, to)).await;
        pump.shutdown().await?;
        folder.remove()?;
        played
    }

    /// Reads the cases and their organism, and adds the judge to the organism.
    fn read(&self, builder: Builder) -> Result<(Suite, Organism), Failure> {
        let mut suite = Suite::read(&self.file, &variable)?;
        suite.sheet.runs = self.runs.unwrap_or(suite.sheet.runs);
        let manifest = suite.organism();
        let bytes = bytes_of(&manifest);
        let own = bytes.map(|it| Manifest::models_of(&it, &variable)).unwrap_or_default();
        let models: Vec<String> = own.into_iter().chain(builder.models().names()).collect();
        suite.knows(&models).map_err(|it| wrong(&it))?;
        if let Some(model) = &self.model {
            let unknown = file::unknown(model, &models);
            unknown.map_or(Ok(()), |it| Err(Failure::Untried(format!("--model: {it}"))))?;
            suite.sheet.model = Some(model.clone());
        }
        let (agent, model) = (suite.sheet.agent.as_str(), suite.sheet.model.as_deref());
        let model = model.map(|model| (agent, model));
        let mut organism = Organism::read_live_with_model(&manifest, builder, model)?;
        if let Some(judge) = suite.sheet.judge.as_ref().filter(|_| suite.is_judged()) {
            let judge = judge::listener(judge, organism.builder.models(), self.seconds);
            let judge = judge.map_err(|it| Failure::Untried(it.to_string()))?;
            organism.builder = organism.builder.with(judge);
        }
        Ok((suite, organism))
    }

    /// Runs all cases, and shows the result.
    async fn play(
        &self,
        pump: &Pump,
        suite: Suite,
        (earlier, kept): (Option<&EvalResult>, Option<ResultFile>),
        signals: &mut Signals,
        to: &mut Screen<'_>,
    ) -> Result<Ending, Failure> {
        let time = Timestamp::now().to_string();
        let (stop, stopped) = watch::channel(false);
        let asker = Asker { pump: pump.clone(), seconds: self.seconds, stop: stopped };
        let player = Player::new(suite, asker);
        let (mut runs, signal) = self.all_runs(&player, &stop, signals, to).await?;
        runs.sort_by_key(|it| (it.case, it.number));
        let summary = EvalResult::of(&player.suite, &runs, time);
        match to.json {
            true => {
                let mut object = json!(summary);
                if let Some(earlier) = earlier {
                    object["before"] = json!(earlier);
                }
                to.object(&object)?;
            }
            false => {
                failed(&player, &runs, to).await?;
                to.text(&table::table(&summary, earlier))?;
            }
        }
        to.flush()?;
        if let Some(signal) = signal {
            let all = player.suite.runs();
            let text = format!("{signal}: {} of {all} runs were done", runs.len());
            return Err(Failure::Wrong(text));
        }
        if let Some(kept) = kept {
            kept.write(&summary)?;
        }
        Ok(if summary.has_passed() { Ending::Well } else { Ending::Wrong })
    }

    /// Runs all cases. Returns the runs that were completed, and the signal that ended the other
    /// runs, if any.
    async fn all_runs(
        &self,
        player: &Arc<Player>,
        stop: &watch::Sender<bool>,
        signals: &mut Signals,
        to: &mut Screen<'_>,
    ) -> Result<(Vec<Run>, Option<&'static str>), Failure> {
        let (mut begun, mut under_way) = (player.suite.each_run(), FuturesUnordered::new());
        let (mut runs, mut signal) = (Vec::new(), None);
        let mut progress = Progress::of(player.suite.runs(), to.json);
        loop {
            while signal.is_none() && under_way.len() < self.at_once {
                let Some((case, number)) = begun.next() else { break };
                let player = player.clone();
                under_way.push(Box::pin(async move { player.play(case, number).await }));
            }
            let run = tokio::select! {
                run = under_way.next() => run,
                said = signals.next(), if signal.is_none() => {
                    // An error means that no run is under way any more.
                    let _ = stop.send(true);
                    signal = Some(said);
                    continue;
                }
            };
            let Some(run) = run else { break };
            let Some(run) = run? else { continue };
            progress.shows(&run);
            if to.json {
                to.object(&object(player, &run).await?)?;
                to.flush()?;
            }
            runs.push(run);
        }
        progress.ends();
        Ok((runs, signal))
    }
}

fn wrong(mistakes: &Mistakes) -> Failure {
    Failure::Untried(told(mistakes))
}

/// Returns a run as a JSON object. The object of a failed run has its thread's transcript.
async fn object(player: &Player, run: &Run) -> Result<Value, Failure> {
    let mut object = json!({
        "case": player.suite.sheet.cases[run.case].name,
        "run": run.number,
        "of": player.suite.sheet.runs,
        "passed": run.has_passed(),
        "wrong": run.wrong,
        "answer": run.answer,
        "thread": run.thread.as_ref().map(ThreadId::as_str),
        "tokens": run.used.tokens,
        "cost_micros": run.used.cost_micros,
        "milliseconds": run.milliseconds,
    });
    if !run.has_passed() {
        object["transcript"] = json!(player.events(run).await?);
    }
    Ok(object)
}

/// Says what is wrong with each failed run, and shows the thread of each case's first failed run.
async fn failed(player: &Player, runs: &[Run], to: &mut Screen<'_>) -> Result<(), Failure> {
    let (sheet, mut shown) = (&player.suite.sheet, None);
    for run in runs.iter().filter(|it| !it.has_passed()) {
        let name = audit::line(&sheet.cases[run.case].name);
        let thread = run.thread.as_ref().map(|it| format!(", in {it}")).unwrap_or_default();
        let title = format!("{name}, run {} of {}, failed{thread}", run.number, sheet.runs);
        to.line(&to.style.paint(Paint::Wrong, &title))?;
        for why in &run.wrong {
            to.line(&format!("  {}", audit::line(why)))?;
        }
        if shown.replace(run.case) != Some(run.case) {
            to.line("")?;
            to.text(&story::of_events(&player.events(run).await?, to.style))?;
        }
        to.line("")?;
    }
    Ok(())
}

/// Shows the progress of the evaluation, on a terminal.
struct Progress {
    all: usize,
    done: usize,
    passed: usize,
    is_shown: bool,
}

impl Progress {
    fn of(all: usize, json: bool) -> Progress {
        let is_shown = io::stderr().is_terminal() && !json;
        let progress = Progress { all, done: 0, passed: 0, is_shown };
        progress.draw();
        progress
    }

    fn shows(&mut self, run: &Run) {
        self.done += 1;
        self.passed += usize::from(run.has_passed());
        self.draw();
    }

    fn draw(&self) {
        let Progress { all, done, passed, is_shown } = self;
        if *is_shown {
            let mut err = io::stderr().lock();
            // The progress is dispensable, so an error is ignored.
            let _ = write!(err, "\r\x1b[K{done} of {all} runs, {passed} passed");
            let _ = err.flush();
        }
    }

    fn ends(&self) {
        if self.is_shown {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}
