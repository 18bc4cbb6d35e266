//! The header fields of HTTP caching: `Cache-Control`, `Age`, `Vary`, tags, dates and the fields of
//! one connection (RFC 9111, section 5; RFC 9110, sections 5.6.7, 7.6.1, 8.8.3 and 12.5.5).
//!
//! Times are microseconds since the Unix epoch.

use reqwest::header::{
    AGE, CACHE_CONTROL, CONNECTION, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VARY,
};

/// The maximum number of seconds that a field can have. A larger number counts as this maximum (RFC
/// 9111, section 1.2.2).
const SECONDS_MAX: u64 = 1 << 31;

/// Fields that concern one connection, and are not cached (RFC 9111, section 3.1).
const OF_CONNECTION: [HeaderName; 10] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authentication-info"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The directives of all `Cache-Control` fields, in their order (RFC 9111, section 5.2).
#[derive(Debug)]
pub(super) struct Directives(Vec<Directive>);

#[derive(Debug)]
struct Directive {
    /// The name in lower case.
    name: String,
    /// The argument without its quotes. `None` if there is no argument, or if a space stands beside
    /// the `=`, where the grammar allows no space.
    argument: Option<String>,
}

impl Directives {
    pub(super) fn read(headers: &HeaderMap) -> Directives {
        let mut all = Vec::new();
        for line in headers.get_all(CACHE_CONTROL) {
            let line = String::from_utf8_lossy(line.as_bytes());
            all.extend(members(&line).into_iter().map(Directive::read));
        }
        Directives(all)
    }

    /// Returns whether there is a directive of this name. A directive with an argument counts, too:
    /// `no-cache="a"` is treated as `no-cache`, as in many caches (RFC 9111, section 5.2.2.4).
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|it| it.name == name)
    }

    /// Returns the seconds in the first directive of this name. `None` if there is no such
    /// directive. An invalid number counts as 0, so that the answer is stale (RFC 9111, section
    /// 4.2.1).
    pub(super) fn seconds(&self, name: &str) -> Option<u64> {
        let first = self.0.iter().find(|it| it.name == name)?;
        Some(first.argument.as_deref().and_then(seconds).unwrap_or(0))
    }
}

impl Directive {
    fn read(text: &str) -> Directive {
        let (name, argument) = match text.split_once('=') {
            None => (text, None),
            Some((name, argument)) => (name, Some(argument)),
        };
        let argument = argument.filter(|it| !name.ends_with(' ') && !it.starts_with(' '));
        let argument = argument.map(|it| {
            it.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(it).to_owned()
        });
        Directive { name: name.trim().to_ascii_lowercase(), argument }
    }
}

/// Returns the members of a list that commas separate. A comma between quotes separates nothing,
/// unless the closing quote is missing.
fn members(line: &str) -> Vec<&str> {
    let (mut all, mut start) = (Vec::new(), 0);
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => {
                all.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    all.push(&line[start..]);
    if is_quoted {
        all = line.split(',').collect();
    }
    all.into_iter().map(str::trim).filter(|it| !it.is_empty()).collect()
}

/// Reads a number of seconds, at most [`SECONDS_MAX`]. `None` if the text is empty, or has
/// characters other than digits.
fn seconds(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    // A number that doesn't fit into a `u64` is larger than the maximum.
    is_number.then(|| text.parse().unwrap_or(SECONDS_MAX).min(SECONDS_MAX))
}

/// Returns the seconds in `Age`: the first member of the first field. An invalid `Age` counts as 0
/// (RFC 9111, section 5.1).
pub(super) fn age_seconds(headers: &HeaderMap) -> u64 {
    let first = headers.get(AGE).and_then(|it| it.to_str().ok());
    let first = first.and_then(|it| it.split(',').next());
    first.and_then(|it| seconds(it.trim())).unwrap_or(0)
}

/// Returns the time in the first field of this name, in any of the three forms of RFC 9110, section
/// 5.6.7. Case doesn't matter (RFC 9111, section 4.2). `None` if there is no such field, or if the
/// field has no valid time. A time with a wrong day of the week is invalid.
pub(super) fn date_us(headers: &HeaderMap, name: &HeaderName) -> Option<i64> {
    let text = headers.get(name)?.to_str().ok()?;
    let date = httpdate::parse_http_date(&capitalized(text).replace("Gmt", "GMT")).ok()?;
    Some(jiff::Timestamp::try_from(date).ok()?.as_microsecond())
}

/// Writes the first letter of each word in upper case, and all other letters in lower case.
fn capitalized(text: &str) -> String {
    let mut is_within_word = false;
    let capitalize = |letter: char| {
        let is_first = !std::mem::replace(&mut is_within_word, letter.is_ascii_alphabetic());
        if is_first { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() }
    };
    text.chars().map(capitalize).collect()
}

/// Returns the names in `Vary`. `None` if a name is `*` or invalid, because requests can't be
/// compared then.
pub(super) fn varying(headers: &HeaderMap) -> Option<Vec<HeaderName>> {
    let mut names = Vec::new();
    for line in headers.get_all(VARY) {
        for name in line.as_bytes().split(|it| *it == b',').map(<[u8]>::trim_ascii) {
            match name {
                b"" => {}
                b"*" => return None,
                name => names.push(HeaderName::from_bytes(name).ok()?),
            }
        }
    }
    Some(names)
}

/// Returns a tag without the `W/` that marks a weak tag (RFC 9110, section 8.8.3).
pub(super) fn opaque(tag: &HeaderValue) -> &[u8] {
    tag.as_bytes().strip_prefix(b"W/").unwrap_or(tag.as_bytes())
}

/// Removes the fields that concern one connection. These are the fields in [`OF_CONNECTION`], and
/// the fields that `Connection` lists. `Cache-Control` always stays, since no server may list it in
/// `Connection` (RFC 9110, section 7.6.1).
pub(super) fn remove_fields_of_connection(headers: &mut HeaderMap) {
    let lines = headers.get_all(CONNECTION).iter();
    let listed = lines.flat_map(|line| line.as_bytes().split(|it| *it == b','));
    let listed = listed.filter_map(|it| HeaderName::from_bytes(it.trim_ascii()).ok());
    let listed: Vec<HeaderName> = listed.filter(|it| *it != CACHE_CONTROL).collect();
    for name in listed.iter().chain(&OF_CONNECTION) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::EXPIRES;

    fn headers(name: &HeaderName, values: &[&str]) -> HeaderMap {
        let value = |it: &&str| HeaderValue::from_bytes(it.as_bytes()).unwrap();
        values.iter().map(|it| (name.clone(), value(it))).collect()
    }

    #[track_caller]
    fn check_seconds(lines: &[&str], expected: Option<u64>) {
        let directives = Directives::read(&headers(&CACHE_CONTROL, lines));
        assert_eq!(directives.seconds("max-age"), expected, "{lines:?}");
    }

    #[test]
    fn seconds_are_digits_with_or_without_quotes() {
        check_seconds(&["max-age=10"], Some(10));
        check_seconds(&["private , MAX-age=\"10\""], Some(10));
        check_seconds(&["private", "max-age=010"], Some(10));
        check_seconds(&["max-age=99999999999999999999"], Some(SECONDS_MAX));
        check_seconds(&["max-age=1, max-age=2", "max-age=3"], Some(1));
        check_seconds(&["s-maxage=1"], None);
        check_seconds(&[], None);
    }

    #[test]
    fn an_invalid_number_of_seconds_is_zero() {
        for wrong in ["", "=", "=-1", "=1.5", "=a", "=1 2", " =1", "= 1", "='1'", "=\"1", "=+1"] {
            check_seconds(&[&format!("max-age{wrong}")], Some(0));
        }
    }

    #[test]
    fn a_directive_in_quotes_is_none() {
        let has = |line| Directives::read(&headers(&CACHE_CONTROL, &[line])).has("no-store");
        assert!(has("a=\"b, c\", No-Store"));
        assert!(has("a=\"b\\\"\",no-store"));
        assert!(has("é, no-store"));
        assert!(!has("a=\"b, no-store\""));
        assert!(!has("a=\"\\\", no-store\""));
        assert!(has("a=\"b, no-store"), "a quote without an end hides nothing");
    }

    #[test]
    fn the_first_age_counts_if_it_is_a_number() {
        let check = |lines: &[&str], expected| {
            assert_eq!(age_seconds(&headers(&AGE, lines)), expected, "{lines:?}");
        };
        check(&["7"], 7);
        check(&["7, 0"], 7);
        check(&["0", "7"], 0);
        check(&["4294967296"], SECONDS_MAX);
        for wrong in ["-7", "7.0", "a", "", "7;a=b", "7 7"] {
            check(&[wrong], 0);
        }
    }

    #[test]
    fn a_date_has_one_of_three_forms() {
        let check = |text: &str, expected| {
            assert_eq!(date_us(&headers(&EXPIRES, &[text]), &EXPIRES), expected, "{text}");
        };
        let time = Some(784_111_777_000_000);
        check("Sun, 06 Nov 1994 08:49:37 GMT", time);
        check("Sunday, 06-Nov-94 08:49:37 GMT", time);
        check("Sun Nov  6 08:49:37 1994", time);
        check("SUN, 06 nov 1994 08:49:37 gMT", time);
        let wrong = ["0", "", "-1", "Sun, 06 Nov 1994 08:49:37 UTC", "1994-11-06T08:49:37Z"];
        for wrong in wrong.into_iter().chain(["Mon, 06 Nov 1994 08:49:37 GMT"]) {
            check(wrong, None);
        }
    }

    #[test]
    fn vary_lists_names_unless_a_member_is_a_star() {
        let check = |lines: &[&str], expected: Option<&[&str]>| {
            let names = varying(&headers(&VARY, lines));
            let names: Option<Vec<&str>> =
                names.as_ref().map(|it| it.iter().map(HeaderName::as_str).collect());
            assert_eq!(names.as_deref(), expected, "{lines:?}");
        };
        check(&[], Some(&[]));
        check(&["Accept, ,b", "C"], Some(&["accept", "b", "c"]));
        for star in ["*", "a, *", ", *", "*, *", "a b"] {
            check(&["c", star], None);
        }
    }
}
