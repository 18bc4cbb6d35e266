//! What a model writes into files is on the disk byte for byte, in every dialect.

use std::fs;

use pumphouse::listeners::agent::settings::{Dialect, Settings};
use pumphouse::listeners::tool::files;
use pumphouse::model::Call;
use pumphouse::sim::Chance;
use serde_json::json;

use super::*;

/// How many texts are written in each dialect.
const TEXTS: usize = 400;
/// How many texts are written in a turn.
const IN_TURN: usize = 100;

/// Pieces of Make, shell, PHP, Perl, Helm, LaTeX, JavaScript and regular expressions. Some name
/// actions of the agent: `out`, `files`, `f`, `x`.
const PIECES: [&str; 48] = [
    "all:\n\tfor f in *.c; do echo $$f $$HOME; done; echo $$ $$$$ $(CC) $@ $< $^\n",
    "$(OBJ): %.o: %.c\n\t$(CC) -c $< -o $@\n",
    "${CC:-cc} $$(pwd) $${out} $$out\n",
    "for f in ${files}; do\n  echo \"$f of $files\"\ndone\n",
    "out=dist\nmkdir -p \"$out\"\ncp main.js ${out}/\n",
    "kill -0 $$ && echo \"$$out\" ${#out} ${out%.*} ${out[0]} \"${out[@]}\"\n",
    "echo $1 $# $? $! $- $_ $0 $*\n",
    "cat <<EOF\n$out ${x} $(date) `date`\nEOF\n",
    "<?php\n$files = glob(\"*\");\nforeach ($files as $f) echo \"$f\\n\";\n",
    "$this->x = $$name; $a['k'] = \"{$x}\"; $x = <<<TXT\n$x\nTXT;\n",
    "my ($x, @f, %out) = ($$ref, @{$f}, %$out); print \"$x $f[0] $out{a} $$\\n\";\n",
    "s/^\\s+|\\s+$//g; tr/a-z/A-Z/; $_ =~ m{${x}(\\d+)$};\n",
    "image: {{ .Values.image }}:{{ $x.tag | default \"$out\" }}\n",
    "{{- range $f, $x := .Values.files }}\n{{ $f }}: ${{ $x }}\n{{- end }}\n",
    "name: ${metadata.name}\nvalue: $(VAR) $$(VAR) ${x}\n",
    "\\documentclass{article}\\begin{document}$x^2$ and $$\\sum_{f} x_f$$ cost \\$5\
     \\end{document}\n",
    "$\\frac{out}{x}$ \\newcommand{\\x}[1]{$#1$}\n",
    "const s = `${x} of ${files.length} $${out} $`;\n",
    "$('#out').on('click', () => $.ajax(`/f/${f}`));\n",
    "const re = /^\\$\\{x\\}$|\\$\\$out$/gm;\n",
    "^[^$]*\\$(?:\\w+|\\{[^}]*\\})$",
    "$x",
    "${x}",
    "$$x",
    "$${x}",
    "${x.title}",
    "$",
    "$$",
    "$$$",
    "${",
    "${x",
    "$x$",
    "$5",
    "$HOME",
    "\t",
    "\n",
    " ",
    "  \n",
    "\"",
    "'",
    "\\",
    "&amp; <b>x</b> &lt;",
    "é 漢字 🚢",
    "{",
    "}",
    "```\n$x\n```\n",
    "<!-- $x -->",
    "\u{a0}$x",
];

/// Texts of random pieces. None is nothing but a reference, because that is what a reference is.
fn texts(seed: u64) -> Vec<String> {
    let mut chance = Chance::new(seed);
    let mut piece = || {
        let at = chance.below(PIECES.len() as u64);
        (PIECES[usize::try_from(at).unwrap()], chance.below(4) == 0)
    };
    let mut all: Vec<String> = PIECES.iter().map(|it| format!("{it}\n")).collect();
    while all.len() < TEXTS {
        let mut text = String::new();
        loop {
            let (next, is_last) = piece();
            text += next;
            if is_last {
                break;
            }
        }
        all.push(text);
    }
    let is_reference =
        |it: &str| pumphouse::listeners::action::variables::whole(it).is_some() || it.is_empty();
    all.iter_mut().filter(|it| is_reference(it)).for_each(|it| it.push('.'));
    all
}

/// The calls that write texts, from the first one's number on.
fn script(dialect: Dialect, from: usize, texts: &[String]) -> Script {
    let mut script = String::new();
    let mut calls = Vec::new();
    let names = ["out", "files", "f", "x"];
    for (number, text) in texts.iter().enumerate().map(|(at, it)| (from + at, it)) {
        // Each turn begins with actions whose names the texts have.
        let id = match names.get(number - from) {
            Some(it) => (*it).to_owned(),
            None => format!("w{number}"),
        };
        let path = format!("{number}.txt");
        let parameters = json!({"path": path, "text": text}).to_string();
        match dialect {
            Dialect::Native => calls.push(Call::new(id, "files_write", parameters)),
            Dialect::ToolUse => {
                script += &format!(
                    "<tool_use id=\"{id}\" name=\"files.write\">{parameters}</tool_use>\n"
                );
            }
            _ if number % 2 == 0 && !text.contains("]]>") => {
                script += &format!(
                    "<action id=\"{id}\"><name>files.write</name><parameters><path>{path}</path>\
                     <text><![CDATA[{text}]]></text></parameters></action>\n"
                );
            }
            _ => {
                let body = format!("{{\"name\": \"files.write\", \"parameters\": {parameters}}}");
                script += &format!("<action id=\"{id}\">{body}</action>\n");
            }
        }
    }
    calls.into_iter().fold(Script::text(script), Script::call)
}

async fn check(dialect: Dialect, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let (all, written) = (texts(seed), texts(seed));
    let model = Scripted::new(move |_: &Prompt, turn| {
        let from = (usize::try_from(turn).unwrap() - 1) * IN_TURN;
        match all.get(from..) {
            None | Some([]) => Script::text("<response>Done.</response>"),
            Some(rest) => script(dialect, from, &rest[..rest.len().min(IN_TURN)]),
        }
    });
    let settings = Settings { dialect, ..Settings::default() };
    let agent = Agent::new("oracle", Arc::new(model)).settings(settings).peers(["files"]);
    let question = agent.ask("Write them.").unwrap();
    let tool = files::files(&files::Settings::new(folder.path().to_str().unwrap())).unwrap();
    let builder = pumphouse::builder().with((core(), agent_support(), tool, agent.listener()));
    let pump = builder.build().unwrap().start();
    let answer = pump.ask_element(question).await.unwrap();
    assert_eq!(answer.decode::<Response>().unwrap().text, "Done.");
    pump.shutdown().await.unwrap();
    for (number, text) in written.iter().enumerate() {
        let found = fs::read_to_string(folder.path().join(format!("{number}.txt")));
        assert_eq!(found.as_deref().ok(), Some(text.as_str()), "{dialect:?}, text {number}");
    }
}

#[tokio::test]
async fn what_a_model_writes_in_tags_is_written_byte_for_byte() {
    check(Dialect::Tags, 1).await;
}

#[tokio::test]
async fn what_a_model_writes_as_tool_use_is_written_byte_for_byte() {
    check(Dialect::ToolUse, 2).await;
}

#[tokio::test]
async fn what_a_model_writes_in_native_calls_is_written_byte_for_byte() {
    check(Dialect::Native, 3).await;
}
