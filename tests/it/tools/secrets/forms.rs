//! The forms of a text, and a search for secrets in any of them.

use std::fmt::Write as _;
use std::sync::LazyLock;

use pumphouse::schema::base64_text;
use regex::bytes::Regex;
use serde_json::json;

use super::{SECRETS, parts};

/// A way to write a text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    Plain,
    Upper,
    Json,
    /// As JSON within JSON.
    JsonTwice,
    /// Each character as four digits, such as `\u002f`.
    Unicode,
    UnicodeUpper,
    /// Each character as two digits, such as `\x2f`.
    Digits,
    Xml,
    XmlTwice,
    /// Each character by its number, such as `&#47;`.
    Numbers,
    HexNumbers,
    /// With the names that HTML has for signs, such as `&sol;`.
    Html,
    Percent,
    /// Each character as digits, such as `%2f`.
    PercentAll,
    PercentTwice,
    /// In base64, behind as many bytes, and in the alphabet for URLs or not.
    Base64(usize, bool),
    /// In base64 with short lines.
    Lines(usize),
}

pub(super) const FORMS: [Form; 24] = [
    Form::Plain,
    Form::Upper,
    Form::Json,
    Form::JsonTwice,
    Form::Unicode,
    Form::UnicodeUpper,
    Form::Digits,
    Form::Xml,
    Form::XmlTwice,
    Form::Numbers,
    Form::HexNumbers,
    Form::Html,
    Form::Percent,
    Form::PercentAll,
    Form::PercentTwice,
    Form::Base64(0, false),
    Form::Base64(1, false),
    Form::Base64(2, false),
    Form::Base64(0, true),
    Form::Base64(1, true),
    Form::Base64(2, true),
    Form::Lines(0),
    Form::Lines(1),
    Form::Lines(2),
];

/// Signs with their names in HTML.
const NAMES: [(char, &str); 13] = [
    ('/', "sol"),
    ('+', "plus"),
    ('"', "quot"),
    ('&', "amp"),
    ('=', "equals"),
    ('%', "percnt"),
    ('\\', "bsol"),
    (':', "colon"),
    ('?', "quest"),
    ('<', "lt"),
    ('>', "gt"),
    ('.', "period"),
    ('!', "excl"),
];

impl Form {
    pub(super) fn of(self, text: &str) -> String {
        let json = |it: &str| {
            let quoted = json!(it).to_string().replace('/', "\\/");
            quoted[1..quoted.len() - 1].to_owned()
        };
        let xml = |it: &str| it.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
        let each = |of: &dyn Fn(char) -> String| text.chars().map(of).collect::<String>();
        let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-';
        let percent =
            |it: char| if is_plain(it) { it.into() } else { format!("%{:02X}", it as u8) };
        match self {
            Form::Plain => text.to_owned(),
            Form::Upper => text.to_uppercase(),
            Form::Json => json(text),
            Form::JsonTwice => json(&json(text)),
            Form::Unicode => each(&|it| format!("\\u{:04x}", u32::from(it))),
            Form::UnicodeUpper => each(&|it| format!("\\u{:04X}", u32::from(it))),
            Form::Digits => each(&|it| format!("\\x{:02x}", u32::from(it))),
            Form::Xml => xml(text),
            Form::XmlTwice => xml(&xml(text)),
            Form::Numbers => each(&|it| format!("&#{};", u32::from(it))),
            Form::HexNumbers => each(&|it| format!("&#x{:x};", u32::from(it))),
            Form::Html => each(&|it| {
                let name = NAMES.iter().find(|(sign, _)| *sign == it);
                name.map_or(it.into(), |(_, name)| format!("&{name};"))
            }),
            Form::Percent => each(&percent),
            Form::PercentAll => each(&|it| format!("%{:02x}", u32::from(it))),
            Form::PercentTwice => each(&percent).replace('%', "%25"),
            Form::Base64(before, false) => base64_text(&behind(before, text)),
            Form::Base64(before, true) => for_url(&base64_text(&behind(before, text))),
            Form::Lines(before) => {
                let whole = base64_text(&behind(before, text));
                whole.as_bytes().chunks(9).fold(String::new(), |mut all, it| {
                    let _ = writeln!(all, "{}", String::from_utf8_lossy(it));
                    all
                })
            }
        }
    }
}

fn behind(before: usize, text: &str) -> Vec<u8> {
    [&b"::"[..before], text.as_bytes(), b"; more"].concat()
}

fn for_url(base64: &str) -> String {
    base64.replace('+', "-").replace('/', "_").replace('=', "")
}

/// Each half of each secret as it is, and in the letters of base64 that depend on it alone.
static HALVES: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    let halves = || SECRETS.iter().flat_map(|(_, it)| parts(it).into_iter().skip(1));
    let plain: Vec<String> = halves().map(regex::escape).collect();
    let base64 = halves().flat_map(|half| {
        (0..3_usize).flat_map(move |before| {
            let bytes = [&b"::"[..before], half.as_bytes()].concat();
            let end = bytes.len() * 8 / 6;
            let inside = base64_text(&bytes)[(before * 8).div_ceil(6)..end].to_owned();
            [regex::escape(&for_url(&inside)), regex::escape(&inside)]
        })
    });
    let base64: Vec<String> = base64.collect();
    [format!("(?i:{})", plain.join("|")), base64.join("|")].map(|it| Regex::new(&it).unwrap())
});

/// What stands around a secret, or around a half of one, in any form. None if there is none.
pub(super) fn found(bytes: &[u8]) -> Option<String> {
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    // The forms may stand in JSON or XML again.
    for _ in 0..4 {
        let solid = text.replace(['\r', '\n'], "");
        for (regex, text) in HALVES.iter().zip([&text, &solid]) {
            if let Some(at) = regex.find(text.as_bytes()) {
                let (begin, end) = (at.start().saturating_sub(200), at.end() + 200);
                let near = &text.as_bytes()[begin..end.min(text.len())];
                return Some(String::from_utf8_lossy(near).into_owned());
            }
        }
        let undone = undone(&text);
        if undone == text {
            return None;
        }
        text = undone;
    }
    None
}

/// A text with its escapes undone once.
fn undone(text: &str) -> String {
    static ESCAPE: LazyLock<regex::Regex> = LazyLock::new(|| {
        let all = [
            r"\\u([0-9a-fA-F]{4})",
            r"\\x([0-9a-fA-F]{2})",
            "&#x([0-9a-fA-F]{1,6});",
            "&#([0-9]{1,7});",
            "%([0-9a-fA-F]{2})",
            r"\\([^A-Za-z0-9]|n|r)",
            "&([a-z]+);",
        ];
        regex::Regex::new(&all.join("|")).unwrap()
    });
    let shown = |it: &regex::Captures<'_>| {
        let number = |at: usize, radix| {
            let number = u32::from_str_radix(it.get(at)?.as_str(), radix).ok()?;
            char::from_u32(number).map(String::from)
        };
        let numbers = [(1, 16), (2, 16), (3, 16), (4, 10), (5, 16)];
        let by_number = numbers.into_iter().find_map(|(at, radix)| number(at, radix));
        let sign = it.get(6).map(|it| match it.as_str() {
            "n" | "r" => "\n".to_owned(),
            sign => sign.to_owned(),
        });
        let name = it.get(7).and_then(|name| NAMES.iter().find(|(_, it)| *it == name.as_str()));
        let by_name = name.map(|(sign, _)| sign.to_string());
        by_number.or(sign).or(by_name).unwrap_or_else(|| it[0].to_owned())
    };
    ESCAPE.replace_all(text, shown).into_owned()
}

#[test]
fn a_secret_is_found_in_each_form() {
    for half in parts(SECRETS[0].1) {
        for form in FORMS {
            assert!(found(form.of(half).as_bytes()).is_some(), "{form:?} of {half}");
            let in_json = json!(form.of(half)).to_string();
            assert!(found(in_json.as_bytes()).is_some(), "{form:?} of {half} in JSON");
        }
    }
    assert_eq!(found(b"nothing; a & b \\ c %41"), None);
}
