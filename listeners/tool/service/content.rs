//! The content that a service returns: JSON, or text with or without front matter (ADR-013, section
//! 6).

use pumphouse::wire::Timestamp;

use super::super::web::{Answer, Read, Reason, Refusal, content_type, is_json};

/// The maximum number of lines of front matter between its `---` lines.
const LINES_MAX: usize = 32;
/// The maximum `ttl` of front matter, in seconds: a day. A longer `ttl` counts as a day.
const TTL_SECONDS_MAX: f64 = 86_400.0;

/// A service's content.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Content {
    /// The text, without its front matter. JSON is in a fenced block.
    pub(super) text: String,
    /// The number of seconds for which the content is fresh. `None` without a valid `ttl` in the
    /// front matter.
    pub(super) ttl: Option<f64>,
    /// The time when the content was made. `None` without a valid `refreshed` in the front matter.
    pub(super) refreshed: Option<Timestamp>,
}

impl Content {
    /// Reads the content of an answer. HTML is converted to text.
    pub(super) fn of(answer: &Answer) -> Result<Content, Refusal> {
        let text = Read::of(answer, false)?.text;
        if answer.body.contains(&0) && !is_utf16(answer) {
            return Err(Refusal::new(Reason::WrongKind, "the answer is binary, and no text"));
        }
        Ok(match is_json(answer) {
            true => Content { text: fenced(&text), ..Content::default() },
            false => read(&text),
        })
    }
}

/// Returns whether an answer is in UTF-16, according to its byte order mark or its media type. Text
/// in UTF-16 contains zero bytes.
fn is_utf16(answer: &Answer) -> bool {
    let has_mark = [[0xfe, 0xff], [0xff, 0xfe]].iter().any(|it| answer.body.starts_with(it));
    has_mark || content_type(&answer.headers).to_ascii_lowercase().contains("utf-16")
}

/// Puts JSON into a fenced block of Markdown. The fence is longer than any run of backticks in the
/// JSON.
fn fenced(json: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for character in json.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}json\n{}\n{fence}", json.trim_end())
}

/// Splits a text into its front matter and the content after it. If the text doesn't begin with
/// front matter, the whole text is content.
fn read(text: &str) -> Content {
    let all = || Content { text: text.to_owned(), ..Content::default() };
    let Some(rest) = after_line(text, "---") else { return all() };
    let (mut content, mut rest) = (Content::default(), rest);
    for _ in 0..=LINES_MAX {
        if let Some(after) = after_line(rest, "---") {
            content.text = after.trim_start_matches(['\r', '\n']).to_owned();
            return content;
        }
        let Some((line, after)) = rest.split_once('\n') else { return all() };
        let Some((key, value)) = line.split_once(':') else { return all() };
        let value = value.trim().trim_matches(['"', '\'']);
        match key.trim() {
            "ttl" => content.ttl = seconds(value),
            "refreshed" => content.refreshed = value.parse().ok(),
            _ => {}
        }
        rest = after;
    }
    all()
}

/// Returns the rest of a text after its first line. `None` if the first line isn't `line`.
fn after_line<'a>(text: &'a str, line: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(line)?;
    rest.strip_prefix("\r\n")
        .or_else(|| rest.strip_prefix('\n'))
        .or(rest.is_empty().then_some(rest))
}

/// Reads `60`, `60s`, `5m` or `1h` as seconds. In the accepted ADR-013, the value is a number. In
/// its draft, the value has a unit. Returns `None` if the text is no such time.
fn seconds(text: &str) -> Option<f64> {
    let (number, unit) = match text.char_indices().last()? {
        (at, 's') => (&text[..at], 1.0),
        (at, 'm') => (&text[..at], 60.0),
        (at, 'h') => (&text[..at], 3_600.0),
        _ => (text, 1.0),
    };
    let seconds = number.trim().parse::<f64>().ok()? * unit;
    (seconds >= 0.0).then(|| seconds.min(TTL_SECONDS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str, ttl: Option<f64>) {
        let content = read(text);
        assert_eq!((&*content.text, content.ttl), (expected, ttl));
    }

    #[test]
    fn front_matter_is_taken_off_and_its_ttl_counts() {
        let of = |ttl: &str| {
            format!(
                "---\nfeed: fleet-alerts\nrefreshed: 2026-03-19T14:32:00Z\nttl: {ttl}\n---\n\n\
                 Fleet nominal.\n"
            )
        };
        check(&of("60"), "Fleet nominal.\n", Some(60.0));
        check(&of("60s"), "Fleet nominal.\n", Some(60.0));
        check(&of("\"5m\""), "Fleet nominal.\n", Some(300.0));
        check(&of("1h").replace('\n', "\r\n"), "Fleet nominal.\r\n", Some(3_600.0));
        let refreshed = read(&of("0")).refreshed.unwrap();
        assert_eq!(refreshed.to_string(), "2026-03-19T14:32:00Z");
    }

    #[test]
    fn a_ttl_that_is_no_time_does_not_count_and_a_long_one_is_a_day() {
        for ttl in ["soon", "-1", "", "NaN", "1d", "60 parsecs"] {
            check(&format!("---\nttl: {ttl}\n---\nx"), "x", None);
        }
        check("---\nttl: 1e300\n---\nx", "x", Some(86_400.0));
    }

    #[test]
    fn what_is_no_front_matter_is_content() {
        for text in
            ["", "x", "---", "---\n", "---\nttl: 1\nx", "----\nttl: 1\n---\n", "--- \n---\n"]
        {
            check(text, text, None);
        }
        check("---\na line\n---\nx", "---\na line\n---\nx", None);
        let long = format!("---\n{}---\nx", "a: b\n".repeat(LINES_MAX + 1));
        check(&long, &long, None);
        check("---\n---\n---\nx", "---\nx", None);
    }

    #[test]
    fn a_fence_is_longer_than_any_in_the_json() {
        assert_eq!(fenced("{\"a\": 1}\n"), "```json\n{\"a\": 1}\n```");
        assert_eq!(fenced("\"````\""), "`````json\n\"````\"\n`````");
    }
}
