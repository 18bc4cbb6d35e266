//! Tests of secrets in texts.

use super::*;
use crate::schema::base64_text;

const SECRET: &str = "sk/12&\\\"4-0123456789";

#[track_caller]
fn check(text: &str, expected: &str) {
    let secrets = Secrets::new([Secret::new(SECRET)]);
    assert_eq!(secrets.hide(text), expected);
    assert_eq!(secrets.are_in(text), text != expected);
}

#[test]
fn a_secret_isnt_shown() {
    assert_eq!(format!("{:?}", Secret::new("sk-12345")), "Secret(…)");
    check(&format!("no {SECRET}, nor ({SECRET})"), "no …, nor (…)");
    check("a b, sk/12&", "a b, sk/12&");
}

#[test]
fn a_secret_isnt_shown_where_json_xml_or_a_url_escapes_it() {
    for spelled in [
        r#"sk/12&\"4-0123456789"#,
        r#"sk\/12&\\\"4-0123456789"#,
        r#"\u0073\u006B\u002f12\u0026\u005C\u00224-0123456789"#,
        "&#115;k/&#x31;2&amp;\\&quot;4-0123456789",
        "sk%2F12%26%5C%224-0123456789",
        "%73%6b%2f%31%32%26%5c%22%34%2d%30%31%32%33%34%35%36%37%38%39",
    ] {
        check(&format!("({spelled})"), "(…)");
    }
    for other in ["sk/12&", r"\u007", "a & b", "&#;", "\\", "\\u00é", "&é;", "100 %", "%é%7"] {
        check(other, other);
    }
}

#[test]
fn each_half_of_a_long_secret_is_hidden_with_what_stands_behind_it() {
    let (first, second) = SECRET.split_at(SECRET.len() / 2);
    check(&format!("({first})"), "(…)");
    check(&format!("({second})"), "(…)");
    check(&format!("({}).", &SECRET[..SECRET.len() - 1]), "(…).");
    check(&format!("{first} {second}"), "… …");
    check(&SECRET[..first.len() - 1], &SECRET[..first.len() - 1]);
    let short = Secrets::new([Secret::new("0123456789abcde")]);
    assert_eq!(short.hide("0123456789abcd"), "0123456789abcd", "one of 15 bytes has no halves");
    assert_eq!(short.hide("0123456789abcde"), "…");
}

#[test]
fn base64_of_a_secret_is_hidden_whatever_stands_before_it() {
    let secret = "k~~~???>>>\u{fc}key0";
    let secrets = Secrets::new([Secret::new(secret)]);
    let (first, second) = secret.split_at(secret.floor_char_boundary(secret.len() / 2));
    for part in [secret, first, second] {
        for before in ["", "a", "ab", "abc", "user:pass:"] {
            let text = base64_text(format!("{before}{part} and more").as_bytes());
            let url = text.replace('+', "-").replace('/', "_");
            let escaped = text.replace('/', "\\/");
            for text in [text, url, escaped] {
                assert!(secrets.are_in(&text), "{part} after {before}: {text}");
            }
        }
    }
}

#[test]
fn a_secret_that_is_too_short_is_told_and_hidden_nowhere() {
    assert_eq!(Secret::checked("1234567").map_err(|it| it.bytes), Err(7));
    assert!(Secret::checked(" 12345678 ").is_ok());
    assert_eq!(Secrets::new([Secret::new("true")]).hide("it is true"), "it is true");
    assert!(Secrets::new([Secret::new(" ")]).is_empty());
}

#[test]
fn a_longer_secret_that_holds_a_shorter_one_is_hidden_whole() {
    let secrets = Secrets::new(["12345678", "12345678-abcdefgh", "x12345678"].map(Secret::new));
    assert_eq!(secrets.hide("(12345678-abcdefgh) (12345678) (x12345678)"), "(…) (…) (…)");
}

#[test]
fn the_end_of_a_text_that_goes_on_is_kept_back_if_it_may_begin_a_secret() {
    let secrets = Secrets::new([Secret::new("sk/1234é")]);
    let check = |text: &str, shown: &str, open: &str| {
        assert_eq!(secrets.hide_begun(text), (Cow::Borrowed(shown), open), "{text}");
    };
    check("it is sk/12", "it is ", "sk/12");
    check("it is sk/1234é", "it is …", "");
    check("it is sk\\", "it is ", "sk\\");
    check("it is sk%2", "it is ", "sk%2");
    check("it is sk%2F1234%C3%", "it is ", "sk%2F1234%C3%");
    check("it is \\u00", "it is ", "\\u00");
    check("a & b, s !", "a & b, s !", "");
    assert_eq!(secrets.hide_cut("it is sk/12"), "it is ");
    assert_eq!(secrets.hide("it is sk/12"), "it is sk/12");
}

#[test]
fn the_parts_of_a_header_are_secrets_without_its_scheme() {
    let check = |header: &str, parts: &[&str]| {
        let all = [&[header], parts].concat();
        assert_eq!(
            Secret::new(header).parts(),
            all.into_iter().map(Secret::new).collect::<Vec<_>>()
        );
    };
    check("Bearer sk-1234", &["sk-1234"]);
    check("sk-1234", &[]);
    check("sk-1 234", &[]);
    let pair = base64_text(b"ada:sesame-1234");
    check(&format!("Basic {pair}"), &[&pair, "sesame-1234"]);
}

#[test]
fn the_secrets_of_a_program_and_of_a_url_are_those_whose_names_say_so() {
    let arguments =
        ["serve", "--token", "t-1234567", "--api-key=k-1234567", "--region", "eu-north"];
    let arguments = arguments.map(str::to_owned);
    let expected = ["t-1234567", "k-1234567"].map(Secret::new);
    assert_eq!(of_arguments(&arguments), expected);
    let url = "https://me:pass%20word@example.org/?a=b&access_token=t%2F123456";
    assert_eq!(of_url(url), Ok(["pass word", "t/123456"].map(Secret::new).to_vec()));
    assert_eq!(of_url("https://me:pass@example.org/"), Err(TooShort { bytes: 4 }));
    let all = [("API_KEY", "k-1234567"), ("LANG", "C.UTF-8"), ("TOKEN", " ")];
    let all = BTreeMap::from(all.map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert_eq!(of_variables(&all), Ok(vec![Secret::new("k-1234567")]));
}

#[test]
fn a_secret_isnt_shown_where_its_escapes_are_escaped_or_its_case_is_another() {
    for spelled in [
        r#"sk/12&\\\\\\\\\\\"4-0123456789"#,
        "sk%252F12%2526%255C%25224-0123456789",
        "sk/12&amp;amp;\\&amp;quot;4-0123456789",
        "SK/12&\\\"4-0123456789",
        "sk&sol;12&amp;&bsol;&quot;4-0123456789",
        r#"\x73k/12&\\\"4-0123456789"#,
    ] {
        check(&format!("({spelled})"), "(…)");
    }
    let all = base64_text(SECRET.as_bytes());
    let (first, second) = all.split_at(10);
    for end in ["\r\n", "\n", "\r", "\n\n", "\\r\\n", "&#13;&#10;", "%0D%0A"] {
        check(&format!("({first}{end}{second})"), "(…k=)");
    }
}

#[test]
fn what_is_open_at_the_end_of_a_text_has_a_bound() {
    let secrets = Secrets::new([Secret::new("sk-12345")]);
    let first = base64_text(b"sk-12345")[..1].to_owned();
    for (before, long) in [
        (&*first, "\n"),
        (&*first, "\r\n"),
        (&*first, "\\n"),
        (&*first, "&#10;"),
        ("sk", "&#0"),
        ("&#", "0"),
        ("sk", "%2"),
        ("sk", "\\"),
        ("sk", "\\u00"),
        ("sk", "&amp;"),
        ("sk", "&#x000000026;"),
    ] {
        let text = format!("it is {before}{}", long.repeat(10_000));
        let (_, open) = secrets.hide_begun(&text);
        assert!(open.len() <= 64, "{before}{long}: {}", open.len());
    }
}

#[test]
fn a_short_word_and_a_date_are_ordinary() {
    for it in ["postgres", "Postgres", "POSTGRES", "europe-west", "2023-06-01", "1/12/2026"] {
        assert!(Secret::new(it).is_ordinary(), "{it}");
    }
    for it in ["20230601", "31.12.2026", "no secret"] {
        assert!(Secret::new(it).is_ordinary(), "{it}");
    }
    for it in ["postgres1", "poStgres", "postgresqlserver", "word", "2023-06-01a", "99.87654", ""] {
        assert!(!Secret::new(it).is_ordinary(), "{it}");
    }
}

#[test]
fn a_text_without_a_secret_is_not_copied() {
    let secrets = Secrets::new([Secret::new(SECRET)]);
    let text = "{\"a\": \"sk, 50 % &amp; \\n\\u0073\", \"b\": [1, 2]}".repeat(100);
    let counted = allocation_counter::measure(|| {
        assert!(matches!(secrets.hide(&text), Cow::Borrowed(_)));
    });
    assert_eq!(counted.count_total, 0);
}
