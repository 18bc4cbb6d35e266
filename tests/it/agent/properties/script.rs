//! The replies of the agent's model. A reply is a function of the seed, the turn, and the timers
//! that the prompt names.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use pumphouse::listeners::agent::settings::{FinalWithActions, Wake};
use pumphouse::model::{Kind, Prompt, Script};
use pumphouse::sim::Chance;

/// The names that responses may hold: four of actions, and one of nothing.
pub(super) const NAMES: [&str; 5] = ["a", "b", "c", "d", "nobody"];

/// The turns after which it wants nothing more.
const TURNS_MAX: u64 = 30;

/// Chance from a seed.
pub(super) struct Dice(Chance);

impl Dice {
    pub(super) fn new(seed: u64, salt: u64) -> Dice {
        let mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ salt.wrapping_mul(0xD6E8_FEB8);
        let mut chance = Chance::new(mixed);
        chance.draw();
        Dice(chance)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    pub(super) fn percent(&mut self, of: u64) -> bool {
        self.below(100) < of
    }

    pub(super) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()]
    }
}

/// How an agent is, in a run.
#[derive(Clone, Debug)]
pub(super) struct Style {
    seed: u64,
    pub(super) max_turns: u64,
    pub(super) policy: FinalWithActions,
    pub(super) wake: Wake,
    finals: u64,
    fails: u64,
    chatter: &'static str,
}

impl Style {
    pub(super) fn new(seed: u64) -> Style {
        use FinalWithActions::{Hold, Trust};
        let mut dice = Dice::new(seed, 1);
        Style {
            seed,
            max_turns: dice.one(&[3, 6, 12, 25]),
            policy: dice.one(&[Hold, Hold, Hold, Trust]),
            finals: dice.one(&[15, 35, 60]),
            fails: dice.one(&[2, 2, 2, 80]),
            chatter: dice.one(&["any", "any", "any", "waits", "waits", "quiet", "text"]),
            wake: dice.one(&[Wake::Each, Wake::Each, Wake::All]),
        }
    }

    /// What the model writes in a turn.
    pub(super) fn script(&self, prompt: &Prompt, turn: u64) -> Script {
        let first = prompt.messages.first().map_or("", |it| &it.text);
        if first.contains("Which") {
            return Script::text("<response>That one.</response>").after(Duration::from_millis(20));
        }
        let timers = timers(prompt);
        if turn > TURNS_MAX {
            // A timer that ticks for ever begins work for ever.
            let clear = |it: &u64| format!("<clear-timer timer=\"{it}\"/>\n");
            let timers: BTreeSet<u64> = timers.into_iter().collect();
            let clears: String = timers.iter().map(clear).collect();
            return Script::text(format!("{clears}<response>R{turn}.1: enough</response>"));
        }
        let mut it = Page {
            dice: Dice::new(self.seed, 1_000 + turn),
            turn,
            count: 0,
            text: String::new(),
            timers,
        };
        for kind in self.kinds(&mut it) {
            it.write(kind);
        }
        let Page { mut dice, text, .. } = it;
        let length = text.chars().count() as u64;
        let mut script = Script::text(text).chunks(24);
        script = script.after(Duration::from_millis(dice.below(150)));
        script = script.every(Duration::from_millis(dice.below(25)));
        if dice.percent(self.fails) {
            let at = usize::try_from(dice.below(length + 1)).unwrap();
            script = script.fails(at, Kind::Failed);
        }
        script
    }

    fn kinds(&self, page: &mut Page) -> Vec<&'static str> {
        let has_timers = !page.timers.is_empty();
        let dice = &mut page.dice;
        let quiet: [&[&str]; 4] =
            [&["thought"], &["metadata"], &["checklist"], &["thought", "text"]];
        let text: [&[&str]; 3] = [&["text"], &[], &["thought", "text"]];
        let waits: [&[&str]; 5] =
            [&["thought"], &["thought"], &["text"], &["metadata"], &["partial"]];
        match self.chatter {
            "quiet" if dice.percent(70) => return dice.one(&quiet).to_vec(),
            "text" if dice.percent(60) => return dice.one(&text).to_vec(),
            "waits" if has_timers && dice.percent(80) => return dice.one(&waits).to_vec(),
            "waits" if dice.percent(50) => {
                return vec![dice.one(&["peer", "peer", "timer", "spawn", "action"])];
            }
            _ => {}
        }
        let weighed = [
            ("thought", 4),
            ("text", 1),
            ("partial", 6),
            ("action", 15),
            ("malformed", 1),
            ("twice", 1),
            ("peer", 4),
            ("own-root", 1),
            ("timer", 2),
            ("clear", 1),
            ("spawn", 1),
            ("metadata", 1),
            ("checklist", 1),
            ("cancel", 1),
            ("await", 2),
        ];
        let all: Vec<&str> =
            weighed.iter().flat_map(|(kind, weight)| vec![*kind; *weight]).collect();
        let count = dice.below(6);
        let mut kinds: Vec<&str> = (0..count).map(|_| dice.one(&all)).collect();
        if dice.percent(self.finals) {
            kinds.push("final");
        }
        kinds
    }
}

/// The timers that a prompt names.
fn timers(prompt: &Prompt) -> Vec<u64> {
    let texts = prompt.messages.iter().flat_map(|it| it.text.split("timer=\"").skip(1));
    texts.filter_map(|it| it.split('"').next()?.parse().ok()).collect()
}

/// What is written in a turn.
struct Page {
    dice: Dice,
    turn: u64,
    count: u64,
    text: String,
    timers: Vec<u64>,
}

impl Page {
    fn write(&mut self, kind: &str) {
        self.count += 1;
        let mark = format!("{}.{}", self.turn, self.count);
        let text = match kind {
            "thought" => format!("<thought>T{mark}</thought>\n"),
            "text" => format!("Some words {mark}.\n"),
            "partial" => self.response(&mark, false),
            "final" => self.response(&mark, true),
            "action" => {
                let id = self.dice.one(&NAMES[..4]);
                self.action(id, &mark)
            }
            "twice" => {
                let id = self.dice.one(&NAMES[..4]);
                let first = self.action(id, &mark);
                first + &self.action(id, &format!("{mark}x"))
            }
            "malformed" => {
                "<action id=\"x\">{\"name\": \"tool\", \"parameters\": {</action>\n".into()
            }
            "peer" => match self.dice.below(6) {
                0 => format!("<hail><mark>{mark}</mark></hail>\n"),
                1..=3 => format!("<hush><mark>{mark}</mark></hush>\n"),
                4 => {
                    let ms = self.dice.below(2_500);
                    format!("<wish><mark>{mark}</mark><ms>{ms}</ms></wish>\n")
                }
                _ => format!("<friend>Help {mark}?</friend>\n"),
            },
            "own-root" => format!("<oracle>Go on {mark}.</oracle>\n"),
            "timer" => match self.dice.below(4) {
                0 => "<set-timer every=\"PT1S\" note=\"n\"/>\n".into(),
                _ => format!(
                    "<set-timer in=\"PT{}.{}S\" note=\"n\"/>\n",
                    self.dice.below(3),
                    1 + self.dice.below(9)
                ),
            },
            "clear" if !self.timers.is_empty() => {
                let timer = self.dice.one(&self.timers);
                format!("<clear-timer timer=\"{timer}\"/>\n")
            }
            "spawn" => {
                let ms = self.dice.below(1_500);
                format!(
                    "<spawn-thread suggested_sub_id=\"s\"><initial-payload>\
                     <task xmlns=\"urn:props\"><mark>s#{mark}</mark><ms>{ms}</ms>\
                     <outcome>ok</outcome></task>\
                     </initial-payload></spawn-thread>\n"
                )
            }
            "metadata" => "<metadata>{\"status\": \"BUSY\"}</metadata>\n".into(),
            "checklist" => "<todo-until condition=\"all\">\
                 <step done=\"false\">one</step></todo-until>\n"
                .into(),
            "await" => match self.dice.below(3) {
                0 => format!("<await on=\"{}\"/>\n", self.dice.one(&NAMES[..4])),
                _ => "<await/>\n".into(),
            },
            "cancel" => format!("<cancel-action id=\"{}\"/>\n", self.dice.one(&NAMES[..4])),
            _ => String::new(),
        };
        self.text += &text;
    }

    fn response(&mut self, mark: &str, is_final: bool) -> String {
        let mut text = format!("<response final=\"{is_final}\">R{mark}:");
        // References to nothing: the path of a known name, and a name that is nearly one.
        if self.dice.percent(15) {
            let name = self.dice.one(&NAMES[..4]);
            let lost = self.dice.one(&[".none", name]);
            write!(text, " {name}{lost}=(${{{name}{lost}}})").unwrap();
        }
        for _ in 0..self.dice.one(&[0, 0, 1, 2]) {
            let name = self.dice.one(&NAMES);
            write!(
                text,
                " {name}=({})",
                if self.dice.percent(50) { format!("${name}") } else { format!("${{{name}}}") }
            )
            .unwrap();
        }
        text + "</response>\n"
    }

    fn action(&mut self, id: &str, mark: &str) -> String {
        let dice = &mut self.dice;
        let mode = dice.one(&["sync", "async", "async", "fire_and_forget"]);
        let depends = if dice.percent(30) { dice.one(&NAMES[..4]) } else { "" };
        let depends =
            if depends.is_empty() { String::new() } else { format!(" depends_on=\"{depends}\"") };
        let on_error = dice.one(&["fail", "fail", "skip"]);
        let ms = dice.one(&[0, 30, 300, 1_500, 4_000]) + dice.below(100);
        let (outcome, ms, timeout) = match dice.below(5) {
            0 => ("fails", ms, 20.0),
            1 => ("slow", 60_000, 0.5),
            _ => ("ok", ms, 20.0),
        };
        format!(
            "<action id=\"{id}\" mode=\"{mode}\"{depends}>{{\"name\": \"tool\", \"parameters\": \
             {{\"mark\": \"{id}#{mark}\", \"ms\": {ms}, \"outcome\": \"{outcome}\"}}, \
             \"on_error\": \"{on_error}\", \"timeout\": {timeout}}}</action>\n"
        )
    }
}
