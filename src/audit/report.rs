//! Shows the result of a log's verification, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::audit::entry::count;
use crate::audit::text::{Paint, Style, line};
use crate::log::{Head, Report, Wrong};

/// The result of a verification, for people. `what` names the log. The text ends in a line end.
#[must_use]
pub fn report(report: &Report, what: &str, expected: Option<Head>, style: Style) -> String {
    let mut out = String::new();
    let what = line(what);
    let size = format!(
        "{} in {}, {}",
        count(report.entries, "entry", "entries"),
        count(report.threads, "thread", "threads"),
        count(report.commits, "commit", "commits"),
    );
    let verdict = if report.is_sound() {
        let all = "every digest, every link and the whole chain fit";
        format!("{}: {what}: {size}; {all}", style.paint(Paint::Well, "sound"))
    } else {
        let found = u64::try_from(report.findings.len()).unwrap_or(u64::MAX);
        let wrong = count(found + report.findings_more, "thing is", "things are");
        format!("{}: {what}: {wrong} not as written", style.paint(Paint::Wrong, "wrong"))
    };
    // Writing to a string can't fail.
    writeln!(out, "{verdict}").unwrap_or_default();
    for finding in &report.findings {
        writeln!(out, "  {}", line(&finding.to_string())).unwrap_or_default();
    }
    if report.findings_more > 0 {
        writeln!(out, "  and {} more", report.findings_more).unwrap_or_default();
    }
    if !report.is_sound() {
        writeln!(out, "read: {size}").unwrap_or_default();
    }
    writeln!(out, "head {}", report.head).unwrap_or_default();
    match expected {
        Some(head) if report.is_sound() => {
            let text = "is on the chain: nothing up to it was changed";
            writeln!(out, "the expected head, of commit {}, {text}", head.number)
        }
        None if report.is_sound() => writeln!(
            out,
            "keep the head elsewhere: `pumphouse verify --expect HEAD` proves later that nothing \
             up to it was changed"
        ),
        _ if report.findings.iter().all(|it| it.wrong == Wrong::Head) => writeln!(
            out,
            "either the head is another log's, or this log was rewritten or cut since it was kept"
        ),
        _ => writeln!(out, "keep the file as it is, and restore a backup elsewhere to go on"),
    }
    .unwrap_or_default();
    out
}

/// The result of a verification, as an object for programs. `what` names the log.
#[must_use]
pub fn report_json(report: &Report, what: &str) -> Value {
    let findings: Vec<Value> = report
        .findings
        .iter()
        .map(|it| {
            json!({
                "kind": format!("{:?}", it.wrong).to_lowercase(),
                "entry": it.entry.as_ref().map(ToString::to_string),
                "commit": it.commit,
                "what": it.what,
            })
        })
        .collect();
    json!({
        "log": what,
        "sound": report.is_sound(),
        "head": report.head.to_string(),
        "commits": report.commits,
        "entries": report.entries,
        "threads": report.threads,
        "findings": findings,
        "findings_more": report.findings_more,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Log, MemoryLog};

    #[tokio::test]
    async fn a_report_ends_in_what_to_do() {
        let log = MemoryLog::new();
        let head = log.head().await.unwrap();
        let sound = log.verify(Some(head)).await.unwrap();
        let text = report(&sound, "a.db", Some(head), Style::PLAIN);
        assert!(text.starts_with("sound: a.db: 0 entries in 0 threads, 0 commits; "), "{text}");
        assert!(text.contains(&format!("head {head}\nthe expected head, of commit 0, is on")));
        let other = format!("0:{}", "0".repeat(64)).parse().unwrap();
        let wrong = log.verify(Some(other)).await.unwrap();
        let text = report(&wrong, "a.db", Some(other), Style::PLAIN);
        assert!(
            text.starts_with("wrong: a.db: 1 thing is not as written\n  the head 0:0"),
            "{text}"
        );
        assert_eq!(report_json(&wrong, "a.db")["findings"][0]["kind"], "head");
    }
}
