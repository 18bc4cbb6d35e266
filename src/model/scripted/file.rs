//! Parses the text form of scripted replies.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::model::error::{Kind, Wait};
use crate::model::piece::{Call, Piece, Stop};
use crate::model::script::Script;
use crate::model::scripted::Repeat;
use crate::model::usage::Usage;
use crate::schema::nearest;

/// The content of a text of replies.
pub(super) struct Sheet {
    pub(super) replies: Vec<Written>,
    pub(super) repeat: Repeat,
    pub(super) window: Option<u32>,
}

/// One reply of a text.
#[derive(Clone)]
pub(super) struct Written {
    /// If the last message contains this text, this reply is given, whichever turn it is.
    pub(super) when: Option<String>,
    /// The placeholder in the reply that is replaced by the words of `Prompt::heard`.
    pub(super) heard: Option<String>,
    pub(super) script: Script,
}

/// The error of a text of replies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoScript {
    /// The file, if the text is from one.
    pub file: Option<Box<Path>>,
    /// The line, from 1. 0 if the file couldn't be read at all.
    pub line: usize,
    /// The mistake, in a sentence.
    pub message: Box<str>,
}

impl NoScript {
    pub(super) fn unread(file: &Path, error: &std::io::Error) -> NoScript {
        NoScript::at(0, error.to_string()).of(file)
    }

    pub(super) fn of(self, file: &Path) -> NoScript {
        NoScript { file: Some(file.into()), ..self }
    }

    fn at(line: usize, message: impl Into<Box<str>>) -> NoScript {
        NoScript { file: None, line, message: message.into() }
    }
}

impl fmt::Display for NoScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoScript { file, line, message } = self;
        match (file, line) {
            (Some(file), 0) => write!(f, "{}: {message}", file.display()),
            (Some(file), line) => write!(f, "{}:{line}: {message}", file.display()),
            (None, 0) => f.write_str(message),
            (None, line) => write!(f, "line {line}: {message}"),
        }
    }
}

impl std::error::Error for NoScript {}

/// The beginning of a line that isn't text.
const MARK: &str = "%%";
/// The words that may follow the mark.
const HEADS: [&str; 5] = ["script", "reply", "text", "reasoning", "call"];
/// The options of a script, for all its replies.
const OF_SCRIPT: [&str; 4] = ["chunk", "every", "repeat", "window"];
/// The options of a reply.
const OF_REPLY: [&str; 9] =
    ["when", "heard", "after", "chunk", "every", "stop", "usage", "fail", "at"];
/// The options of a call.
const OF_CALL: [&str; 2] = ["name", "id"];

pub(super) fn parse(text: &str) -> Result<Sheet, NoScript> {
    let mut sheet = Sheet { replies: Vec::new(), repeat: Repeat::Never, window: None };
    let mut defaults = Script::new();
    let mut part: Option<Part> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let Some(head) = line.strip_prefix(MARK).filter(|it| !it.starts_with('%')) else {
            // `%%%` at the beginning of a text's line stands for `%%`.
            let line = if line.starts_with(MARK) { &line[1..] } else { line };
            match &mut part {
                Some(part) => part.lines.push(line),
                None if line.trim().is_empty() || line.starts_with('#') => {}
                None => {
                    let text = "here no reply has begun; begin with `%% reply`, or with # for \
                                a remark";
                    return Err(NoScript::at(number, text));
                }
            }
            continue;
        };
        if let Some(part) = part.take() {
            part.close(&mut sheet);
        }
        let (word, options) =
            head.trim().split_once(char::is_whitespace).unwrap_or((head.trim(), ""));
        let options = Options::read(number, options)?;
        match word {
            "script" if sheet.replies.is_empty() => options.script(&mut sheet, &mut defaults)?,
            "script" => return Err(NoScript::at(number, "`%% script` stands before the replies")),
            "reply" => sheet.replies.push(options.reply(&defaults)?),
            "text" | "reasoning" => options.known(&[])?,
            "call" => options.known(&OF_CALL)?,
            word => return Err(unknown(number, "part", word, &HEADS)),
        }
        if word != "script" && sheet.replies.is_empty() {
            return Err(NoScript::at(number, format!("`%% {word}` stands within a `%% reply`")));
        }
        part = match word {
            "script" => None,
            "reasoning" => Some(Part::new(Piece::Reasoning)),
            "call" => Some(options.call()?),
            _ => Some(Part::new(Piece::Text)),
        };
    }
    if let Some(part) = part {
        part.close(&mut sheet);
    }
    match sheet.replies.is_empty() {
        true => Err(NoScript::at(1, "here is no reply; write one below a line `%% reply`")),
        false => Ok(sheet),
    }
}

/// A part of a reply, line by line.
struct Part<'a> {
    lines: Vec<&'a str>,
    /// Whether the part belongs to the reply even if it has no lines.
    may_be_empty: bool,
    make: Box<dyn Fn(String) -> Piece>,
}

impl Part<'_> {
    fn new(make: impl Fn(String) -> Piece + 'static) -> Self {
        Part { lines: Vec::new(), may_be_empty: false, make: Box::new(make) }
    }

    /// Adds the part to the last reply, without blank lines at its beginning and its end.
    fn close(self, sheet: &mut Sheet) {
        let is_blank = |it: &&str| it.trim().is_empty();
        let first = self.lines.iter().position(|it| !is_blank(it));
        let last = self.lines.iter().rposition(|it| !is_blank(it));
        let lines = match (first, last) {
            (Some(first), Some(last)) => &self.lines[first..=last],
            _ if self.may_be_empty => &[],
            _ => return,
        };
        let piece = (self.make)(lines.join("\n"));
        if let Some(it) = sheet.replies.last_mut() {
            it.script = std::mem::take(&mut it.script).then(piece);
        }
    }
}

/// The options after a head: `key=value`. A value with spaces is in double quotes.
struct Options<'a> {
    line: usize,
    all: Vec<(&'a str, &'a str)>,
}

impl<'a> Options<'a> {
    fn read(line: usize, text: &'a str) -> Result<Options<'a>, NoScript> {
        let mut all: Vec<(&str, &str)> = Vec::new();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let end = rest.find(['=', ' ']).unwrap_or(rest.len());
            let (key, after) = rest.split_at(end);
            let Some(after) = after.strip_prefix('=') else {
                let text = format!("`{key}` has no value; write {key}=…");
                return Err(NoScript::at(line, text));
            };
            let (value, after) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').ok_or_else(|| {
                    NoScript::at(line, format!("the quotes of `{key}` have no end"))
                })?,
                None => after.split_at(after.find(' ').unwrap_or(after.len())),
            };
            if all.iter().any(|it| it.0 == key) {
                return Err(NoScript::at(line, format!("`{key}` stands there twice; keep one")));
            }
            all.push((key, value));
            rest = after.trim_start();
        }
        Ok(Options { line, all })
    }

    fn known(&self, keys: &[&'static str]) -> Result<(), NoScript> {
        match self.all.iter().find(|(key, _)| !keys.contains(key)) {
            Some((key, _)) => Err(unknown(self.line, "option", key, keys)),
            None => Ok(()),
        }
    }

    fn get(&self, key: &str) -> Option<&'a str> {
        self.all.iter().find(|it| it.0 == key).map(|it| it.1)
    }

    /// Returns the value of a key, parsed by `read`. `expected` describes correct values in the
    /// error.
    fn of<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, NoScript> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let wrong = || NoScript::at(self.line, format!("`{key}={value}`: {expected} is expected"));
        read(value).map(Some).ok_or_else(wrong)
    }

    fn count(&self, key: &str) -> Result<Option<usize>, NoScript> {
        self.of(key, "a whole number", |it| it.parse().ok())
    }

    fn time(&self, key: &str) -> Result<Option<Duration>, NoScript> {
        self.of(key, "a time with a unit, such as 20ms or 1.5s,", |it| {
            Duration::try_from(it.parse::<jiff::SignedDuration>().ok()?).ok()
        })
    }

    fn script(&self, sheet: &mut Sheet, defaults: &mut Script) -> Result<(), NoScript> {
        self.known(&OF_SCRIPT)?;
        let repeat = self.of("repeat", "never, last or all", |it| match it {
            "never" => Some(Repeat::Never),
            "last" => Some(Repeat::Last),
            "all" => Some(Repeat::All),
            _ => None,
        })?;
        sheet.repeat = repeat.unwrap_or(sheet.repeat);
        sheet.window = self.of("window", "a number of tokens", |it| it.parse().ok())?;
        *defaults = self.paced(defaults.clone())?;
        Ok(())
    }

    fn paced(&self, script: Script) -> Result<Script, NoScript> {
        let chunk = self.count("chunk")?.unwrap_or(script.chunk);
        let every = self.time("every")?.unwrap_or(script.every);
        Ok(script.chunks(chunk).every(every))
    }

    fn reply(&self, defaults: &Script) -> Result<Written, NoScript> {
        self.known(&OF_REPLY)?;
        let mut script = self.paced(defaults.clone())?;
        script = script.after(self.time("after")?.unwrap_or_default());
        if let Some(stop) = self.get("stop") {
            script = script.stop(Stop::from(stop));
        }
        let tokens = |text: &str| {
            let (input, output) = text.split_once('/')?;
            let (output, cached) = output.split_once('/').unwrap_or((output, "0"));
            let usage = Usage::new(input.parse().ok()?, output.parse().ok()?);
            Some(Usage { cached: cached.parse().ok()?, ..usage })
        };
        if let Some(usage) = self.of("usage", "tokens as in 120/40 or 120/40/80", tokens)? {
            script = script.usage(usage);
        }
        let at = self.count("at")?;
        script = match (self.get("fail"), at) {
            (None, Some(_)) => {
                return Err(NoScript::at(self.line, "`at` goes with `fail`"));
            }
            (None, None) => script,
            (Some("hang"), at) => script.hangs(at.unwrap_or(usize::MAX)),
            (Some(word), at) => match failure(word) {
                Some(kind) => script.fails(at.unwrap_or(usize::MAX), kind),
                None => return Err(unknown(self.line, "failure", word, &FAILURES)),
            },
        };
        let heard = self.of("heard", "a word that stands in the reply", |it| {
            (!it.is_empty()).then(|| it.to_owned())
        })?;
        Ok(Written { when: self.get("when").map(str::to_owned), heard, script })
    }

    fn call(&self) -> Result<Part<'static>, NoScript> {
        let Some(name) = self.get("name").map(str::to_owned) else {
            return Err(NoScript::at(self.line, "a call has a name; write name=…"));
        };
        let id = self.get("id").unwrap_or_default().to_owned();
        let part = Part::new(move |text| Piece::Call(Call::new(id.clone(), name.clone(), text)));
        Ok(Part { may_be_empty: true, ..part })
    }
}

const FAILURES: [&str; 9] = [
    "cut",
    "failed",
    "garbled",
    "hang",
    "prompt-too-long",
    "rate-limited",
    "refused",
    "timed-out",
    "unreachable",
];

fn failure(word: &str) -> Option<Kind> {
    let kinds = [
        Kind::Cut,
        Kind::Failed,
        Kind::Garbled,
        Kind::PromptTooLong,
        Kind::RateLimited,
        Kind::Refused,
        Kind::TimedOut(Wait::NextByte),
        Kind::Unreachable,
    ];
    kinds.into_iter().find(|it| it.as_str() == word)
}

fn unknown(line: usize, what: &str, word: &str, right: &[&'static str]) -> NoScript {
    let advice = match (nearest(word, right.iter().copied()), right) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => "leave it out".to_owned(),
        (None, right) => format!("there is {}", right.join(", ")),
    };
    NoScript::at(line, format!("there is no {what} `{word}`; {advice}"))
}
