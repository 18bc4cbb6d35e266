//! A valid manifest with one mistake at a time. Each mistake is found, and the report says where
//! and what it is.
//!
//! `cargo test --test it manifest::mistakes -- --nocapture` prints the mistakes as a table.

use super::read_in;

/// What is spoilt.
const SOUND: &str = "\
name: trial
data: data
durability: full
tokens:
  env: LINES
doors:
  - tcp: 127.0.0.1:8765
  - tcp: \"[::1]:8765\"
listeners:
  - use: calculate
  - use: echo
    name: parrot
    peers: [calculate, greeter]
    grants: [emit:core]
    timeout: 30s
  - use: greeter
    settings:
      word: Hello
      times: 2
      tone: loud
      places: [{x: 1}, {x: 2, y: 3}]
meta: {schema: authenticated}
workers: 2
limits:
  handlers_max: 40
  drain_time_max: 10s
  outbound_bytes_max: 64 MiB
  door: {message_bytes_max: 2 MiB, depth_max: 64}
models:
  local: {use: openai, url: \"http://127.0.0.1:9/v1\", model: small,
    key: \"${SECRET}\", window: 8192, temperature: 0.5, limits: {retries_max: 5}}
";

/// A text of the sound manifest, what stands there instead, where in that the mistake is, what is
/// said of it, and what is advised.
pub(super) type Case = (&'static str, &'static str, &'static str, &'static str, &'static str);

/// Keys.
const KEYS: &[Case] = &[
    (
        "name: trial",
        "nmae: trial",
        "nmae",
        "the manifest has no key `nmae`; did you mean `name`?",
        "name: adder",
    ),
    (
        "name: trial",
        "heartbeat: 30s",
        "30s",
        "only a pump with a name says that it lives",
        "add a `name:`, or leave the heartbeat out",
    ),
    ("durability:", "durabilty:", "durabilty", "did you mean `durability`?", "durability: full"),
    ("doors:", "Doors:", "Doors", "no key `Doors`; did you mean `doors`?", "tcp: 127"),
    ("listeners:", "listners:", "listners", "did you mean `listeners`?", "use: calculate"),
    (
        "workers: 2",
        "threads: 2",
        "threads",
        "the manifest has no key `threads`",
        "it has name, data",
    ),
    (
        "data: data",
        "name: data",
        "name: data",
        "`name` stands here again, after line 1",
        "keep one",
    ),
    (
        "  handlers_max: 40",
        "  handler_max: 40",
        "handler_max",
        "limits has no key `handler_max`; did you mean `handlers_max`?",
        "handlers_max: 20",
    ),
    (
        "depth_max: 64",
        "dept_max: 64",
        "dept_max",
        "door has no key `dept_max`; did you mean `depth_max`?",
        "depth_max: 128",
    ),
    (
        "  env: LINES",
        "  enf: LINES",
        "enf",
        "tokens has no key `enf`; did you mean `env`?",
        "env: PUMPHOUSE_TOKENS",
    ),
    (
        "  env: LINES",
        "  env: LINES\n  file: tokens.txt",
        "env",
        "tokens has one of `file` and `env`",
        "keep one",
    ),
    (
        "  - tcp: 127.0.0.1:8765",
        "  - tpc: 127.0.0.1:8765",
        "tpc",
        "a door has no key `tpc`; did you mean `tcp`?",
        "tcp: 127.0.0.1:8765",
    ),
    (
        "    timeout: 30s",
        "    time_out: 30s",
        "time_out",
        "a listener has no key `time_out`; did you mean `timeout`?",
        "timeout: 30s",
    ),
    (
        "  - use: echo\n    name: parrot",
        "  - name: parrot",
        "name: parrot",
        "a listener needs the key `use`",
        "use: calculate",
    ),
    (
        "    grants: [emit:core]",
        "    peers: [calculate]",
        "peers: [calculate]\n",
        "`peers` stands here again, after line 13",
        "keep one",
    ),
    (
        "limits:\n",
        "limits:\n  <<: {handlers_max: 1}\n",
        "<<",
        "limits has no key `<<`",
        "it has door, inside",
    ),
];

/// Values.
const VALUES: &[Case] = &[
    (
        "durability: full",
        "durability: ful",
        "ful",
        "this is `ful`, and `full`, `normal` or `memory` is expected; did you mean `full`?",
        "durability: full",
    ),
    ("durability: full", "durability: [full]", "[full", "this is a list", "durability: full"),
    ("name: trial", "name: my trial", "my trial", "a name of letters, digits", "name: adder"),
    (
        "data: data",
        "data: {folder: x}",
        "{folder",
        "this is keys with values, and a path is expected",
        "data: data",
    ),
    (
        "workers: 2",
        "workers: two",
        "two",
        "this is `two`, and a whole number from 1 to 64 is expected",
        "workers: 2",
    ),
    ("workers: 2", "workers: 0", "0", "a whole number from 1 to 64", "workers: 2"),
    ("workers: 2", "workers: 2.5", "2.5", "a whole number from 1 to 64", "workers: 2"),
    ("handlers_max: 40", "handlers_max: -1", "-1", "a whole number from 1", "handlers_max: 20"),
    (
        "handlers_max: 40",
        "handlers_max: 0",
        "0",
        "this is `0`, and a whole number from 1 to 4294967295 is expected",
        "handlers_max: 20",
    ),
    (
        "handlers_max: 40",
        "unconsumed_max: 0",
        "0",
        "a whole number from 1 to 4294967295 is expected",
        "unconsumed_max: 1024",
    ),
    (
        "drain_time_max: 10s",
        "frame_time_max: 0s",
        "0s",
        "a time with a unit, at least 1ms, such as 500ms, 30s or 5m, is expected",
        "frame_time_max: 30s",
    ),
    (
        "depth_max: 64",
        "depth_max: 0",
        "0",
        "a whole number from 1 to 4294967295 is expected",
        "depth_max: 128",
    ),
    (
        "  - tcp: 127.0.0.1:8765",
        "  - unix: 5",
        "5",
        "this is `5`, and a path is",
        "put it in quotes",
    ),
    ("timeout: 30s", "timeout: 0s", "0s", "a time with a unit, at least 1ms", "timeout: 30s"),
    (
        "handlers_max: 40",
        "handlers_max: yes",
        "yes",
        "this is `yes`, and a whole number",
        "handlers_max: 20",
    ),
    (
        "drain_time_max: 10s",
        "drain_time_max: 10",
        "10",
        "a time with a unit",
        "say which unit, such as 10s",
    ),
    (
        "drain_time_max: 10s",
        "drain_time_max: 10 parsecs",
        "10 parsecs",
        "a time with a unit",
        "drain_time_max: 30s",
    ),
    (
        "64 MiB",
        "64 Mib",
        "64 Mib",
        "a number of bytes, at least 1, such as 65536 or 64 KiB",
        "outbound_bytes_max: 32 MiB",
    ),
    (
        "tcp: 127.0.0.1:8765",
        "tcp: 8765",
        "8765",
        "this is `8765`, and HOST:PORT, such as 127.0.0.1:8765",
        "tcp: 127.0.0.1:8765",
    ),
    (
        "tcp: 127.0.0.1:8765",
        "tcp: 127.0.0.1:87650",
        "127.0.0.1:87650",
        "and HOST:PORT",
        "tcp: 127.0.0.1:8765",
    ),
    (
        "tcp: 127.0.0.1:8765",
        "tcp: tcp://localhost:80",
        "tcp://",
        "and HOST:PORT",
        "tcp: 127.0.0.1:8765",
    ),
    (
        "  - tcp: 127.0.0.1:8765",
        "  - 127.0.0.1:8765",
        "127",
        "a value with the keys of a door is expected",
        "doors: [",
    ),
    ("timeout: 30s", "timeout: soon", "soon", "this is `soon`, and a time", "timeout: 30s"),
    (
        "peers: [calculate, greeter]",
        "peers: calculate",
        "calculate\n    grants",
        "this is a single value, and a list is expected",
        "peers: [echo, calculate]",
    ),
    (
        "door: {message_bytes_max: 2 MiB, depth_max: 64}",
        "door: 2 MiB",
        "2 MiB",
        "the keys of door is expected",
        "door: {message_bytes_max: 1 MiB}",
    ),
    (
        "tokens:\n  env: LINES",
        "tokens: s3cr3t",
        "s3cr3t",
        "the keys of tokens is expected",
        "tokens: {file: tokens.txt}",
    ),
    ("word: Hello", "word:\n", "word", "here the key `word` is missing", "add `word: …`"),
    (
        "times: 2",
        "times: twice",
        "twice",
        "this is `twice`, and a whole number from 0 to 255 is expected",
        "",
    ),
    (
        "times: 2",
        "times: 300",
        "300",
        "this is `300`, and a whole number from 0 to 255 is expected",
        "",
    ),
    ("tone: loud", "tone: lout", "lout", "`plain` or `loud` is expected; did you mean `loud`?", ""),
    (
        "times: 2",
        "tims: 2",
        "tims",
        "here is no key `tims`; did you mean `times`?",
        "write `times`",
    ),
    (
        "{x: 2, y: 3}",
        "{x: 2, y: up}",
        "up",
        "this is `up`, and a whole number from -2147483648 to",
        "",
    ),
    ("{x: 2, y: 3}", "{y: 3}", "{y: 3", "here the key `x` is missing", "add `x: …`"),
];

/// Who may ask what, and over what.
const META: &[Case] = &[
    (
        "  - tcp: 127.0.0.1:8765",
        "  - metrics: 0.0.0.0:9464",
        "0.0.0.0",
        "metrics ask nobody who they are",
        "listen on 127.0.0.1",
    ),
    (
        "  - tcp: 127.0.0.1:8765",
        "  - metrics: 127.0.0.1:9464\n    tls: {certificate: c.pem, key: k.pem}",
        "{cert",
        "the door for metrics speaks no TLS",
        "leave it out",
    ),
    (
        "  - tcp: 127.0.0.1:8765",
        "  - unix: pump.sock\n    tls: {certificate: c.pem, key: k.pem}",
        "{cert",
        "a Unix socket speaks no TLS",
        "leave it out",
    ),
    (
        "{schema: auth",
        "{shema: auth",
        "shema",
        "meta has no key `shema`; did you mean `schema`?",
        "schema: authenticated",
    ),
    (
        "schema: authenticated",
        "schema: anybody",
        "anybody",
        "`anyone`, `authenticated`, `admin` or `none` is expected",
        "schema: authenticated",
    ),
    (
        "meta: {schema: authenticated}",
        "meta: none",
        "none",
        "the keys of meta is expected",
        "meta: {schema: authenticated}",
    ),
];

/// What only the whole shows.
const MEANING: &[Case] = &[
    (
        "use: calculate",
        "use: calcualte",
        "calcualte",
        "no listener is of the kind `calcualte`; did you mean `calculate`?",
        "echo, calculate, agent_context, alerts, command, documents, environment, mcp, shell, \
         fetch, files, git, http, keyvalue, llm, organism_state, other_organism, \
         system_monitor, recall, service, skills, subscribe, sql, greeter, agent",
    ),
    (
        "name: parrot",
        "name: calculate",
        "calculate\n    peers",
        "line 10 has a listener `calculate` already",
        "`name:` of its own",
    ),
    ("name: parrot", "name: core", "core\n", "`core` is the pump's own name", "another `name:`"),
    ("name: parrot", "name: feeder", "feeder\n", "`feeder` has a token", "another `name:`"),
    (
        "[calculate, greeter]",
        "[calculate, greater]",
        "greater",
        "there is no listener `greater`; did you mean `greeter`?",
        "there is calculate, greeter, parrot",
    ),
    (
        "[emit:core]",
        "[emit:cores]",
        "emit:cores",
        "`echo` has no use for the grant `emit:cores`; did you mean `emit:core`?",
        "it may have emit:core",
    ),
    ("word: Hello", "word: Boo", "word", "nobody is greeted with this word", ""),
    (
        "use: calculate",
        "use: calculate\n    settings: {digits: 3}",
        "digits",
        "here is no key `digits`: there is nothing to set",
        "leave it out",
    ),
    (
        "\"[::1]:8765\"",
        "127.0.0.1:8765",
        "127.0.0.1:8765\nlisteners",
        "line 7 listens on 127.0.0.1:8765 already",
        "choose another",
    ),
    (
        "tokens:\n  env: LINES\ndoors:\n  - tcp: 127.0.0.1:8765",
        "doors:\n  - tcp: 0.0.0.0:8765",
        "0.0.0.0",
        "other machines can reach this address",
        "listen on 127.0.0.1",
    ),
    (
        "env: LINES",
        "env: NO_LINES",
        "NO_LINES",
        "the variable NO_LINES isn't set",
        "lines NAME:TOKEN",
    ),
    (
        "env: LINES",
        "env: BAD_LINES",
        "BAD_LINES",
        "in the variable BAD_LINES: tokens: line 2: a line is NAME:TOKEN",
        "",
    ),
    ("  env: LINES", "  file: tokens.txt", "tokens.txt", "tokens.txt: ", ""),
    (
        "data: data",
        "data: ${NO_DATA}/log",
        "${NO_DATA}",
        "the variable NO_DATA isn't set, and has no default",
        "${NO_DATA:-default}",
    ),
    ("data: data", "data: ${HOST", "${HOST", "`${HOST` has no end", "$${"),
    (
        "workers: 2",
        "workers: ${SECRET}",
        "${SECRET}",
        "what `${SECRET}` comes to isn't a whole number from 1 to 64",
        "workers: 2",
    ),
    (
        "times: 2",
        "times: ${SECRET}",
        "${SECRET}",
        "this is `${SECRET}`, and a whole number from 0 to 255 is expected",
        "",
    ),
];

/// What isn't YAML, or isn't a manifest's.
const YAML: &[Case] = &[
    ("  - tcp: 127.0.0.1:8765", "\t- tcp: 127.0.0.1:8765", "- tcp", "this is no YAML: ", ""),
    ("name: trial", "name: \"trial", "\"trial", "this is no YAML: ", ""),
    ("[calculate, greeter]", "[calculate, greeter", ": [emit", "this is no YAML: ", ""),
    ("workers: 2", "workers: *two", "*two", "this is no YAML: ", ""),
    ("workers: 2", "workers: !!int 2", "!!int", "a manifest has no tags", "begins with `!`"),
    ("workers: 2", "[workers]: 2", "[workers", "a key is a word, not a list", ""),
    ("workers: 2", "1: 2", "1: 2", "a key is a word, not `1`", ""),
    ("workers: 2", "---\nworkers: 2", "---", "a manifest is one document", "leave out the `---`"),
];

/// Models.
const MODELS: &[Case] = &[
    ("use: openai", "use: openia", "openia", "did you mean `openai`?", "use: openai"),
    ("{use: openai, ", "{", "{", "here the key `use` is missing", "use: openai"),
    (
        "local: {use: openai, url: \"http://127.0.0.1:9/v1\", ",
        "local: {use: openai, ",
        "{",
        "a model of the kind openai needs the key `url`",
        "url: https",
    ),
    ("window", "widow", "widow", "did you mean `window`?", "window: 8192"),
    ("  local:", "  lo cal:", "lo cal", "`lo cal` isn't a name of letters", ""),
    ("\"http://127", "\"ftp://127", "\"ftp", "a URL of a model begins with https://", ""),
    ("\"http://127", "\"http://a:s3cret@127", "\"http", "a URL is no place for a password", ""),
    (
        "\"${SECRET}\"",
        "s3cret",
        "s3cret",
        "a key doesn't stand in a manifest itself",
        "put it into a variable",
    ),
    (
        "temperature: 0.5",
        "temperature: hot",
        "hot",
        "this is `hot`, and a number is expected",
        "temperature: 0.2",
    ),
    (
        "temperature: 0.5",
        "price: {input: 0.15}",
        "{",
        "a price needs the key `output`",
        "output: 0.60",
    ),
    ("temperature: 0.5", "price: {input: -1, output: 2}", "-1", "a price is 0 or more", ""),
    ("retries_max", "retries", "retries", "did you mean `retries_max`?", "retries_max: 3"),
    (
        "temperature: 0.5",
        "authority: no.pem, url2: x",
        "url2",
        "has no key `url2`; did you mean `url`?",
        "url: https",
    ),
    (
        "  local: {use: openai,",
        "  other: x\n  local: {use: openai,",
        "x",
        "this is a single value, and a value with the key `use` is expected",
        "use: openai",
    ),
];

#[test]
fn every_seeded_mistake_is_found_placed_and_named() {
    read_in("organism.yaml", SOUND).map(drop).expect("what is spoilt is sound");
    let mut wrong = Vec::new();
    let mut count = 0;
    for case in [KEYS, VALUES, META, MEANING, YAML, MODELS].into_iter().flatten() {
        count += 1;
        match found(SOUND, case) {
            Ok(line) => println!("{count:>3}  {line}"),
            Err(text) => wrong.push(text),
        }
    }
    assert!(count >= 50, "{count} mistakes were seeded");
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n\n"));
}

/// The one mistake that there is, or what was found instead.
pub(super) fn found(sound: &str, case: &Case) -> Result<String, String> {
    let (from, to, at, message, help) = case;
    assert!(sound.matches(from).count() >= 1, "{from:?} stands in the sound manifest");
    let text = sound.replacen(from, to, 1);
    let start = sound.find(from).unwrap();
    let near = &text[start..];
    let offset = near.find(at).map(|it| start + it);
    let offset = offset.unwrap_or_else(|| panic!("{at:?} stands in {near:?}"));
    let line = text[..offset].matches('\n').count() + 1;
    let column = text[..offset].rsplit('\n').next().unwrap().chars().count() + 1;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("organism.yaml");
    let mistakes = match read_in(&file, &text) {
        Ok(_) => return Err(format!("{to:?} was not found")),
        Err(mistakes) => mistakes,
    };
    let [one] = mistakes.all() else {
        return Err(format!("{to:?} is one mistake, not\n{mistakes}"));
    };
    let said = one.help().unwrap_or_default();
    let placed = (one.place.line, one.place.column);
    if placed != (line, column) || !one.message.contains(message) || !said.contains(help) {
        return Err(format!("{to:?} at {line}:{column}, {message:?}, {help:?}: not\n{mistakes}"));
    }
    assert!(!mistakes.to_string().contains("s3cret"), "{mistakes}");
    let place = format!("{line}:{column}");
    Ok(format!("{place:<6} {:<34} {}", to.lines().next().unwrap_or_default().trim(), one.message))
}

#[test]
fn every_mistake_is_told_at_once_in_order() {
    let text = "nmae: x\nworkers: 0\ndoors:\n  - tcp: x\nlisteners:\n  - use: ecko\n    tim: 1\n\
                limits: {a: 1}\nname: ${NO_NAME}\n";
    let mistakes = read_in("o.yaml", text).err().unwrap();
    let lines: Vec<usize> = mistakes.all().iter().map(|it| it.place.line).collect();
    assert_eq!(lines, [1, 2, 4, 6, 7, 8, 9], "{mistakes}");
    assert!(mistakes.to_string().starts_with("o.yaml:1:1: the manifest has no key `nmae`"));
}

#[test]
fn nobody_is_advised_to_write_a_name_that_is_refused() {
    let listeners = "[{use: echo, name: core}, {use: quux}, {use: calculate, peers: [zzzzzz]}]";
    let told = read_in("o.yaml", format!("listeners: {listeners}")).err().unwrap().to_string();
    assert!(told.contains("there is no listener `zzzzzz`\n  there is calculate"), "{told}");
    assert!(!told.contains("quux,") && !told.contains("there is calculate, core"), "{told}");
}
