//! Twelve weaknesses that the author of the seed projects found in those projects. For each there
//! is a test with its number, which names the tests that guard against the weakness.

use crate::security::{has_test, read, root};

/// Checks that each of these files has each of these tests.
#[track_caller]
fn held(tests: &[(&str, &[&str])]) {
    for (file, names) in tests {
        let text = read(&root().join(file));
        for name in *names {
            assert!(has_test(&text, name), "{file} has no test {name}");
        }
    }
}

/// 1. No document is put together of strings: what is in a payload stays in it.
#[test]
fn finding_1_an_envelope_takes_nothing_from_its_payload() {
    held(&[
        ("src/wire/envelope.rs", &["a_payload_is_the_same_inside_its_envelope"]),
        ("tests/it/schemas.rs", &["the_envelope_takes_nothing_else"]),
        ("tests/it/security_findings.rs", &["what_looks_like_markup_is_text_in_every_payload"]),
    ]);
}

#[test]
fn what_looks_like_markup_is_text_in_every_payload() {
    use pumphouse::limits::XmlLimits;
    use pumphouse::prelude::*;
    use pumphouse::wire::core::Progress;
    use pumphouse::xml::{self, Profile};

    for text in ["</progress><evil/>", "]]>", "<!DOCTYPE a>", "&x;", "\" to=\"other", "a\r\nb"] {
        let it = Progress { done: None, total: None, text: text.to_owned() };
        let bytes = it.encode().unwrap().canonical();
        let element = xml::read(bytes, Profile::Wire, &XmlLimits::DOOR).unwrap();
        assert_eq!(element.elements().count(), 0, "{text:?}");
        assert_eq!(Progress::decode(&element).unwrap(), it);
    }
}

/// 2. There is one reader of XML. It knows neither DTDs nor entities, and reads nothing else.
#[test]
fn finding_2_no_reader_takes_a_dtd_or_an_entity() {
    held(&[
        ("src/xml/tests/refusals.rs", &["every_refusal_has_its_place"]),
        ("tests/it/suites/attacks.rs", &["every_attack_gets_its_verdict"]),
        (
            "tests/it/tidy/words.rs",
            &["the_lower_floors_do_no_io", "only_its_home_may_name_a_library"],
        ),
        ("tests/it/security_findings.rs", &["a_dtd_is_refused_wherever_xml_is_read"]),
    ]);
}

#[test]
fn a_dtd_is_refused_wherever_xml_is_read() {
    use pumphouse::limits::XmlLimits;
    use pumphouse::xml::{self, Profile};

    for text in [
        "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><a>&x;</a>",
        "<!DOCTYPE a SYSTEM \"http://127.0.0.1/a.dtd\"><a/>",
        "<a>&x;</a>",
    ] {
        for (profile, limits) in
            [(Profile::Wire, &XmlLimits::DOOR), (Profile::Document, &XmlLimits::FILE)]
        {
            assert!(xml::read(text, profile, limits).is_err(), "{text}");
        }
    }
}

/// 3. Every queue has a bound, and so has a message.
#[test]
fn finding_3_queues_and_messages_are_bounded() {
    let rules = read(&root().join("clippy.toml"));
    for it in
        ["tokio::sync::mpsc::unbounded_channel", "flume::unbounded", "std::sync::mpsc::channel"]
    {
        assert!(rules.contains(it), "{it} may be called");
    }
    held(&[
        ("src/xml/tests/refusals.rs", &["a_limit_is_named_with_its_value"]),
        (
            "tests/it/door/limits.rs",
            &["clients_that_never_read_share_one_bound_and_a_reader_goes_on"],
        ),
    ]);
}

/// 4. A manifest names listeners that the program has; it loads no code.
#[test]
fn finding_4_a_manifest_loads_no_code() {
    held(&[("tests/it/manifest/mistakes.rs", &["every_seeded_mistake_is_found_placed_and_named"])]);
    for manifest in ["Cargo.toml", "macros/Cargo.toml"] {
        let text = read(&root().join(manifest));
        for loader in ["libloading", "dlopen", "wasmtime", "mlua", "pyo3"] {
            assert!(!text.contains(loader), "{manifest} has {loader}");
        }
    }
}

/// 5. A page's address is checked at each redirect, by what it resolves to.
#[test]
fn finding_5_a_redirect_reaches_nothing_private() {
    held(&[
        (
            "tests/it/tools/fetch.rs",
            &["a_redirect_leads_only_where_a_url_may", "without_hosts_nothing_private_is_reached"],
        ),
        ("tests/it/tools/mcp/remote.rs", &["no_redirect_of_a_server_is_followed"]),
    ]);
}

/// 6. Tokens are guessed slowly. There are no one-time codes that could be replayed.
#[test]
fn finding_6_whoever_guesses_tokens_waits() {
    held(&[
        ("tests/it/door/tokens.rs", &["whoever_guesses_waits"]),
        ("src/door/wrong_tokens.rs", &["whoever_guesses_waits_longer_each_time"]),
    ]);
}

/// 7. Without tokens nobody beyond this machine is let in, nor by a list that can't be read.
#[test]
fn finding_7_without_tokens_a_door_stays_shut() {
    held(&[
        ("tests/it/door/tls.rs", &["tls_needs_tokens_beyond_this_machine_too"]),
        ("tests/it/hangup.rs", &["a_list_of_tokens_that_cant_be_used_changes_nothing"]),
    ]);
}

/// 8. A listener reaches its peers alone, and what it keeps is in its own file. There is no WASM.
#[test]
fn finding_8_peers_and_stores_are_a_listeners_own() {
    held(&[
        (
            "tests/listeners/engine/replies.rs",
            &["a_peer_that_is_not_allowed_gets_nothing_and_the_sender_learns_it"],
        ),
        (
            "tests/it/tools/keyvalue.rs",
            &[
                "keys_values_and_their_number_are_bounded",
                "check_makes_no_file_and_takes_none_of_another_program",
            ],
        ),
    ]);
}

/// 9. What doesn't exist and what is forbidden are told in the same words.
#[test]
fn finding_9_an_error_tells_nothing_of_others() {
    held(&[
        (
            "tests/it/failure.rs",
            &["the_nearest_of_its_peers_is_told_alike_whether_the_name_is_unknown_or_forbidden"],
        ),
        ("tests/listeners/action/rules.rs", &["unknown_and_forbidden_targets_get_the_same_words"]),
        ("src/xml/tests/refusals.rs", &["an_error_never_echoes_more_than_a_line"]),
    ]);
}

/// 10. A pump stops though something is under way.
#[test]
fn finding_10_a_stop_waits_for_nobody_for_ever() {
    held(&[
        ("tests/it/door/life.rs", &["a_shutdown_tells_what_is_due_and_closes"]),
        (
            "tests/listeners/engine/rude.rs",
            &["rude_listeners_harm_nobody_and_each_message_has_one_end"],
        ),
    ]);
}

/// 11. A reload keeps who may come in; secrets are their owner's; connections are bounded.
#[test]
fn finding_11_a_reload_opens_no_door() {
    held(&[
        (
            "tests/it/hangup.rs",
            &[
                "a_list_of_tokens_that_cant_be_used_changes_nothing",
                "sighup_ends_the_connections_of_tokens_that_are_gone",
            ],
        ),
        ("src/door/client_tokens.rs", &["a_file_of_secrets_is_a_file_that_others_cant_read"]),
        (
            "tests/it/door/limits.rs",
            &[
                "one_too_many_is_told_so",
                "a_newcomer_takes_the_place_of_a_connection_that_never_spoke",
            ],
        ),
    ]);
}

/// 12. What isn't trusted runs in a process of its own, within bounds.
#[test]
fn finding_12_what_is_not_trusted_runs_in_a_process_of_its_own() {
    held(&[
        (
            "tests/it/tools/command.rs",
            &[
                "what_forks_ends_with_its_call",
                "the_pumps_environment_is_not_the_programs",
                "a_program_has_its_limits",
            ],
        ),
        (
            "tests/it/tools/mcp.rs",
            &["a_server_has_an_environment_of_its_own", "a_server_ends_with_the_pump"],
        ),
    ]);
}

/// The page that tells of them.
#[test]
fn the_page_names_every_finding() {
    let page = read(&root().join("docs/security.md"));
    let own = read(&root().join("tests/it/security_findings.rs"));
    for number in 1..=12 {
        let name = format!("fn finding_{number}_");
        let rest = own.split(&name).nth(1).unwrap_or_else(|| panic!("no {name}"));
        let name = format!("finding_{number}_{}", rest.split('(').next().unwrap());
        assert!(page.contains(&name), "docs/security.md doesn't name {name}");
    }
}
