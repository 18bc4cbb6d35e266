//! Several mistakes at once: none hides another, and following the advice about one causes no
//! other.

use super::read_in;

/// What is wrong with one part keeps silent about no other.
#[test]
fn one_mistake_hides_no_other() {
    let check = |text: &str, expected: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("organism.yaml");
        let lines = "a:s3cret\nb\nc d:x\n";
        std::fs::write(folder.path().join("tokens.txt"), lines).unwrap();
        let chmod = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(folder.path().join("tokens.txt"), chmod).unwrap();
        let mistakes = read_in(&file, text).err().unwrap();
        let all: Vec<&str> = mistakes.all().iter().map(|it| &*it.message).collect();
        assert_eq!(all.len(), expected.len(), "{text}: {mistakes}");
        for (it, expected) in all.iter().zip(expected) {
            assert!(it.contains(expected), "{text}: {expected}: {mistakes}");
        }
    };
    check(
        "listeners: [{use: agent, name: r, model: gpt, prompt: {file: no}, peers: [nada]}]",
        &["no model", "no: No such file", "there is no listener `nada`"],
    );
    check(
        "listeners: [{use: agent, model: gpt, promt: x}]",
        &["an agent needs the key `name`", "no model", "no key `promt`"],
    );
    check("listeners: [{use: quux, peers: [nada]}]", &["of the kind `quux`", "listener `nada`"]);
    let door = |tls: &str| format!("doors: [{{tcp: 127.0.0.1:0, tls: {tls}}}]");
    check(&door("{certificate: no.pem, key: none.pem}"), &["/no.pem: ", "/none.pem: "]);
    check(&door("{key: none.pem}"), &["tls needs the key `certificate`", "/none.pem: "]);
    check(&door("{certificate: no.pem, ky: none.pem}"), &["/no.pem: ", "did you mean `key`?"]);
    check("tokens: {file: tokens.txt}", &["line 2: a line is NAME:TOKEN", "line 3: \"c d\""]);
}

/// Another name would only bring the next mistake.
#[test]
fn who_takes_the_same_is_not_told_to_take_another_name() {
    let help = |text: &str| {
        let mistakes = read_in("o.yaml", text).err().unwrap();
        let [one] = mistakes.all() else { panic!("{mistakes}") };
        assert!(one.message.contains("has a listener `echo` already"), "{mistakes}");
        one.help().unwrap()
    };
    let echo = "{https://xml-pipeline.org/ns/echo/v1}echo";
    let keep = format!("keep one: only one can take {echo}, by any `name:`");
    assert_eq!(help("listeners: [{use: echo}, {use: echo}]"), keep);
    let other = help("listeners: [{use: echo}, {use: calculate, name: echo}]");
    assert_eq!(other, "give this one a `name:` of its own");
}

#[test]
fn a_variable_that_is_empty_is_told_as_empty() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("organism.yaml");
    let environment = |name: &str| (name == "E").then(String::new);
    let builder = pumphouse::builder().with(pumphouse::listeners::factories);
    let text = b"listeners: [{use: calculate, describe: \"${A:-${E}}\"}]";
    let read = pumphouse::manifest::Manifest::read(&file, text, &environment, &builder);
    let mistakes = read.err().unwrap().to_string();
    let told = "what `\"${A:-${E}}\"` comes to is empty, and a text is expected";
    assert!(mistakes.contains(told), "{mistakes}");
}
