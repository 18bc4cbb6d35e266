//! Tests cron patterns in zones whose clocks change, in comparison with a search minute by minute.

use std::collections::BTreeSet;

use jiff::tz::TimeZoneDatabase;
use proptest::prelude::*;

use super::*;

fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

/// The first times of a pattern after a time, as the zone shows them.
fn times(pattern: &str, name: &str, after: &str, count: usize) -> Vec<String> {
    check(pattern).unwrap();
    let zone = zone(name);
    let from: Timestamp = after.parse().unwrap();
    let next = |it: &u64| super::after(pattern, *it, &zone);
    let all = std::iter::successors(next(&us(from)), next);
    let shown = |it| {
        let time = Timestamp::from_microsecond(i64::try_from(it).unwrap()).unwrap();
        let shown = time.to_zoned(zone.clone()).to_string();
        shown.split_once('[').unwrap().0.to_owned()
    };
    all.take(count).map(shown).collect()
}

fn us(time: Timestamp) -> u64 {
    u64::try_from(time.as_microsecond()).unwrap()
}

/// The clocks of Berlin go forward on 28 March 2027 at 2:00, which becomes 3:00.
const SPRING: &str = "2027-03-27T23:30:00Z";
/// They go back on 31 October 2027 at 3:00, which becomes 2:00.
const AUTUMN: &str = "2027-10-30T22:30:00Z";

#[test]
fn a_time_that_is_left_out_comes_once_at_the_end_of_the_hour() {
    let check = |pattern: &str| {
        let end = "2027-03-28T03:00:00+02:00";
        let times = times(pattern, "Europe/Berlin", SPRING, 2);
        assert_eq!(times[0], end, "{pattern}");
        assert!(times[1].starts_with("2027-03-29T02:"), "{pattern}: {times:?}");
    };
    for minutes in ["0", "30", "0,30", "15,45", "10-20/10", "*/15", "*", "7-9"] {
        check(&format!("{minutes} 2 * * *"));
        check(&format!("{minutes} 2-2 * * *"));
    }
    check("0,30 15 2 * * *");
    let hours = times("30 1-4 * * *", "Europe/Berlin", SPRING, 4);
    let expected = ["01:30:00+01:00", "03:00:00+02:00", "03:30:00+02:00", "04:30:00+02:00"];
    assert_eq!(hours, expected.map(|it| format!("2027-03-28T{it}")));
    let steps = times("0 */2 * * *", "Europe/Berlin", SPRING, 2);
    assert_eq!(steps, ["2027-03-28T03:00:00+02:00", "2027-03-28T04:00:00+02:00"]);
    // The end of the hour is a time of the pattern itself.
    let both = times("0 2,3 * * *", "Europe/Berlin", SPRING, 2);
    assert_eq!(both, ["2027-03-28T03:00:00+02:00", "2027-03-29T02:00:00+02:00"]);
}

#[test]
fn a_time_that_the_clock_has_twice_comes_once() {
    let check = |pattern: &str, expected: &[&str]| {
        let got = times(pattern, "Europe/Berlin", AUTUMN, expected.len());
        let expected: Vec<_> = expected.iter().map(|it| format!("2027-10-31T{it}")).collect();
        assert_eq!(got, expected, "{pattern}");
    };
    check(
        "0,30 2-3 * * *",
        &["02:00:00+02:00", "02:30:00+02:00", "03:00:00+01:00", "03:30:00+01:00"],
    );
    check("*/30 2,4 * * *", &["02:00:00+02:00", "02:30:00+02:00", "04:00:00+01:00"]);
    check("30 */2 * * *", &["02:30:00+02:00", "04:30:00+01:00"]);
}

#[test]
fn a_pattern_of_every_hour_runs_through_both_hours_and_makes_nothing_up() {
    let minutes = |all: Vec<String>| -> Vec<String> {
        all.into_iter().map(|it| it["2027-10-31T".len()..].to_owned()).collect()
    };
    for pattern in ["30 * * * *", "30 */1 * * *", "30 0-23 * * *"] {
        let autumn = minutes(times(pattern, "Europe/Berlin", AUTUMN, 4));
        let expected = ["01:30:00+02:00", "02:30:00+02:00", "02:30:00+01:00", "03:30:00+01:00"];
        assert_eq!(autumn, expected);
        let spring = minutes(times(pattern, "Europe/Berlin", SPRING, 3));
        assert_eq!(spring, ["01:30:00+01:00", "03:30:00+02:00", "04:30:00+02:00"]);
    }
}

#[test]
fn a_day_that_is_left_out_has_its_time_at_its_end() {
    // Samoa had no 30 December 2011.
    let times = times("0 9 * * *", "Pacific/Apia", "2011-12-29T18:00:00Z", 3);
    let expected = ["29T09:00:00-10:00", "31T00:00:00+14:00", "31T09:00:00+14:00"];
    assert_eq!(times, expected.map(|it| format!("2011-12-{it}")));
}

#[test]
fn patterns_have_names() {
    for name in NICKNAMES.into_iter().chain(["@Midnight", " @daily "]) {
        assert_eq!(check(name), Ok(()), "{name}");
        assert!(after(name, 0, &TimeZone::UTC).is_some(), "{name}");
    }
    let midnight = times("@midnight", "Europe/Berlin", SPRING, 1);
    assert_eq!(midnight, ["2027-03-29T00:00:00+02:00"]);
    let told = check("@reboot").unwrap_err();
    assert!(told.starts_with("cron: @reboot is no pattern; there is @hourly, @daily"), "{told}");
}

#[test]
fn a_seventh_field_is_a_year() {
    let next = times("0 0 0 1 1 * 2030", "Europe/Berlin", SPRING, 2);
    assert_eq!(next, ["2030-01-01T00:00:00+01:00"]);
    let told = check("0 0 0 1 1 * next").unwrap_err();
    assert!(told.starts_with("cron: next is no year; it takes 1 to 5000"), "{told}");
    let told = check("0 0 1").unwrap_err();
    assert!(told.ends_with("or a second first and a year last; it has 3"), "{told}");
}

#[test]
fn a_day_and_a_weekday_come_either_way_and_with_a_plus_together() {
    // The 13th, and each Friday; Friday the 13th.
    let either = times("0 0 13 * FRI", "UTC", "2027-08-01T00:00:00Z", 4);
    let days: Vec<_> = either.iter().map(|it| &it[5..10]).collect();
    assert_eq!(days, ["08-06", "08-13", "08-20", "08-27"]);
    let both = times("0 0 13 * +FRI", "UTC", "2027-08-01T00:00:00Z", 2);
    assert_eq!(both, ["2027-08-13T00:00:00+00:00", "2028-10-13T00:00:00+00:00"]);
}

#[test]
fn a_step_that_is_larger_than_its_field_is_refused() {
    for (pattern, word, count) in [
        ("*/90 * * * *", "*/90", "the 60 minutes that"),
        ("*/61 * * * * *", "*/61", "the 60 seconds that"),
        ("0 */25 * * *", "*/25", "the 24 hours that"),
        ("0 0 */32 * *", "*/32", "the 31 days that"),
        ("0 0 1 */13 *", "*/13", "the 12 months that"),
        ("0 0 * * */8", "*/8", "the 7 weekdays that"),
        ("0-9/11 * * * *", "0-9/11", "the 10 minutes that"),
        ("5,*/70 * * * *", "*/70", "the 60 minutes that"),
        ("0 0 * * MON-FRI/6", "MON-FRI/6", "the 5 weekdays that"),
    ] {
        let told = check(pattern).unwrap_err();
        let expected = format!("cron: the step of {word} is larger than");
        assert!(told.starts_with(&expected) && told.contains(count), "{told}");
    }
    for pattern in ["*/60 * * * *", "0 */24 * * *", "0-9/10 * * * *", "0 0 * * MON-FRI/5"] {
        assert_eq!(check(pattern), Ok(()), "{pattern}");
    }
}

#[test]
fn a_word_counts_in_its_own_field_only() {
    for (pattern, word) in [
        ("JAN * * * *", "JAN is no minute"),
        ("0 MON * * *", "MON is no hour"),
        ("0 0 1 MON *", "MON is no month"),
        ("0 0 * * JAN", "JAN is no weekday"),
        ("1,,2 * * * *", "1,,2 is no minute"),
        ("0 0 , * *", ", is no day"),
        ("0 0 L * MONDAY", "MONDAY is no weekday"),
    ] {
        let told = check(pattern).unwrap_err();
        assert!(told.starts_with(&format!("cron: {word}")), "{told}");
    }
    for pattern in ["0 0 L * *", "0 0 LW * *", "0 0 15W * *", "0 0 * * FRIL", "0 0 ? * mon-fri"] {
        assert_eq!(check(pattern), Ok(()), "{pattern}");
    }
    assert_eq!(check("0 0 * jan,Mar-MAY SUN,2#3"), Ok(()));
}

/// The times of a pattern in a window, minute by minute: by the definition, and slowly.
fn by_definition(cron: &Cron, zone: &TimeZone, from: Timestamp, minutes: i64) -> BTreeSet<u64> {
    let minute = |it: i64| from + Span::new().minutes(it);
    let shown: Vec<_> = (0..minutes).map(|it| zone.to_datetime(minute(it))).collect();
    let matches =
        |it: DateTime| cron.is_time_matching(&it.to_zoned(TimeZone::UTC).unwrap()).unwrap();
    let at = |it: usize| us(minute(i64::try_from(it).unwrap()));
    if cron.pattern.hours.values().len() == 24 {
        return (0..shown.len()).filter(|it| matches(shown[*it])).map(at).collect();
    }
    let (first, last) = (*shown.first().unwrap(), *shown.iter().max().unwrap());
    let calendar = (0..).map(|it| first + Span::new().minutes(it)).take_while(|it| *it <= last);
    let wanted = calendar.filter(|it| matches(*it));
    // The first minute at which the clock shows the time or, where it is left out, a later one.
    wanted.filter_map(|it| shown.iter().position(|shown| *shown >= it)).map(at).collect()
}

fn minutes() -> impl Strategy<Value = String> {
    const SOME: [&str; 9] = ["*", "*/15", "0", "30", "0,30", "5-50/9", "59", "*/60", "1-3"];
    proptest::sample::select(&SOME[..]).prop_map(str::to_owned)
}

fn hours() -> impl Strategy<Value = String> {
    let range =
        (0..24_u8, 0..24_u8).prop_map(|(one, two)| format!("{}-{}", one.min(two), one.max(two)));
    prop_oneof![
        Just("*".to_owned()),
        (1..=24_u8).prop_map(|it| format!("*/{it}")),
        (0..4_u8, 0..24_u8).prop_map(|(one, two)| format!("{one},{two}")),
        (0..4_u8).prop_map(|it| it.to_string()),
        range,
    ]
}

const ZONES: [&str; 10] = [
    "Europe/Berlin",
    "Europe/Dublin",
    "America/New_York",
    "America/Havana",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "Pacific/Apia",
    "Asia/Tehran",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_pattern_comes_as_the_definition_says(
        name in proptest::sample::select(&ZONES[..]),
        year in 1985..2060_i16,
        change in 0..2_usize,
        minutes in minutes(),
        hours in hours(),
    ) {
        let zone = zone(name);
        let pattern = format!("{minutes} {hours} * * *");
        let begin = jiff::civil::date(year, 1, 1).to_zoned(TimeZone::UTC).unwrap().timestamp();
        let changes = zone.following(begin).map(|it| it.timestamp());
        let middle = changes.take(change + 1).last().unwrap_or(begin);
        prop_assume!(middle.as_second() % 60 == 0);
        let (from, span) = (middle - Span::new().hours(27), 60 * 54);
        let until = us(from + Span::new().minutes(span));
        let cron = read(&pattern).unwrap();
        let expected = by_definition(&cron, &zone, from, span);
        let next = |it: &u64| after(&pattern, *it, &zone).filter(|it| *it < until);
        let got: Vec<u64> = std::iter::successors(next(&(us(from) - 1)), next).collect();
        prop_assert!(got.is_sorted(), "{pattern} in {name}");
        prop_assert_eq!(got, Vec::from_iter(expected), "{} in {} from {}", pattern, name, from);
    }
}
