//! A sink that sends to a WebSocket.

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite;

use super::server::Peer;
use super::{logged, push, scene};
use crate::door::tls::Authority;
use crate::program::Server;
use crate::until;

fn sinks(port: u16, more: &str) -> String {
    format!("sinks: [{{type: websocket, url: \"ws://127.0.0.1:{port}/events\"{more}}}]\n")
}

fn positions(objects: &[Value]) -> Vec<u64> {
    objects.iter().filter_map(|it| it["position"].as_u64()).collect()
}

#[test]
fn every_entry_comes_in_order_also_after_the_peer_was_away() {
    let peer = Peer::at(0);
    let port = peer.port();
    let scene = scene(&sinks(port, ", reconnect_attempts: 3, buffer_on_disconnect: true"));
    let traces = std::fs::File::create(scene.path("traces.txt")).unwrap();
    let mut server = scene.serve_traced(&["--metrics", "127.0.0.1:0"], traces.into());
    push(&scene, &server);
    let mut all = peer.upto(2);
    all.extend(peer.go());
    for _ in 0..3 {
        push(&scene, &server);
    }
    until(|| server.metric("pumphouse_sink_lag_entries{sink=\"websocket\"}") > 0);
    let peer = Peer::at(port);
    // It may rest by now: then the next entry wakes it.
    push(&scene, &server);
    all.extend(peer.upto(10));
    until(|| server.metric("pumphouse_sink_lag_entries{sink=\"websocket\"}") == 0);
    assert_eq!(server.stop("-INT").0, Some(0));
    all.extend(peer.go());
    // An entry may come again, whose arrival wasn't known; it is the same then.
    let expected = logged(&scene);
    let mut last = 0;
    for (object, position) in all.iter().zip(positions(&all)) {
        assert!(position <= last + 1, "entry {position} after {last}");
        assert_eq!(Some(object), expected.get(usize::try_from(position).unwrap() - 1));
        last = last.max(position);
    }
    assert_eq!(last, u64::try_from(expected.len()).unwrap());
    let traces = std::fs::read_to_string(scene.path("traces.txt")).unwrap();
    assert_eq!(traces.matches("a sink is away").count(), 1, "{traces}");
}

#[test]
fn a_start_goes_on_with_what_the_peer_doesnt_have_yet() {
    let peer = Peer::at(0);
    let port = peer.port();
    let scene = scene(&sinks(port, ""));
    let mut server = scene.serve(&[]);
    push(&scene, &server);
    server.stop("-INT");
    assert_eq!(positions(&peer.upto(2)), [1, 2]);
    peer.go();
    let mut server = scene.serve(&[]);
    push(&scene, &server);
    server.stop("-INT");
    let peer = Peer::at(port);
    let mut server = scene.serve(&[]);
    assert_eq!(positions(&peer.upto(4)), [3, 4]);
    server.stop("-INT");
}

#[test]
fn without_a_buffer_what_was_written_meanwhile_is_skipped_and_counted() {
    let peer = Peer::at(0);
    let port = peer.port();
    let scene = scene(&sinks(port, ", buffer_on_disconnect: false"));
    let mut server = scene.serve(&[]);
    // Nothing is away before the first connection is there.
    until(|| peer.is_connected());
    push(&scene, &server);
    assert_eq!(positions(&peer.upto(2)), [1, 2]);
    peer.go();
    for _ in 0..2 {
        push(&scene, &server);
    }
    let peer = Peer::at(port);
    push(&scene, &server);
    let skipped = peer.next()["skipped"].as_u64().unwrap();
    assert!((4..=6).contains(&skipped), "{skipped}: it is away until it is connected");
    push(&scene, &server);
    assert_eq!(positions(&peer.upto(10)), (3 + skipped..=10).collect::<Vec<_>>());
    server.stop("-INT");
}

#[test]
fn a_sink_rests_after_so_many_attempts_until_the_next_entry() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (count, attempts) = sync_channel(100);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            drop(stream.unwrap());
            // The test may be over.
            let _ = count.send(());
        }
    });
    let scene = scene(&sinks(port, ", reconnect_attempts: 2"));
    let mut server = scene.serve(&[]);
    let next = |time| attempts.recv_timeout(Duration::from_millis(time)).is_ok();
    assert!(next(60_000) && next(60_000) && !next(1_500), "two attempts");
    push(&scene, &server);
    assert!(next(60_000), "an entry wakes it");
    server.stop("-INT");
}

#[test]
fn a_websocket_takes_what_an_agent_writes_unless_it_is_dropped() {
    let (all, entries) = (Peer::at(0), Peer::at(0));
    let scene = scene("");
    let text = format!(
        "models: {{lead: {{use: scripted, file: lead.txt}}}}\n\
         listeners: [{{use: agent, name: lead, model: lead}}]\n\
         sinks:\n\
         \x20 - {{type: websocket, name: all, url: \"ws://127.0.0.1:{}/\"}}\n\
         \x20 - {{type: websocket, name: entries, url: \"ws://127.0.0.1:{}/\", drop: [delta]}}\n",
        all.port(),
        entries.port(),
    );
    scene.write("organism.yaml", text);
    scene.write(
        "lead.txt",
        "%% reply usage=8/4\n<thought>Well.</thought><response>Yes.</response>\n",
    );
    let mut server = scene.serve(&[]);
    let ask = "<lead xmlns=\"https://xml-pipeline.org/ns/lead/v1\">Is it so?</lead>";
    scene.pipe(&["send", "--connect", &server.address], ask).code(0);
    server.stop("-INT");
    let (expected, all, entries) = (logged(&scene), all.go(), entries.go());
    assert_eq!(entries, expected);
    let (live, rest): (Vec<Value>, Vec<Value>) = all.into_iter().partition(|it| it["live"] == true);
    assert_eq!(rest, expected);
    let delta = live.iter().find(|it| it["payload"].as_str().unwrap().contains("Well."));
    let delta = delta.unwrap_or_else(|| panic!("{live:?}"));
    assert_eq!((&delta["from"], &delta["name"]), (&json!("lead"), &json!("delta")));
    assert_eq!(delta["thread"], expected[0]["thread"]);
}

#[test]
fn a_peer_is_reached_by_tls_if_the_system_trusts_it() {
    let authority = Authority::new();
    authority.issue("localhost", 2100);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ServerConfig::builder_with_provider(provider);
    let tls = tls.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let certificate = CertificateDer::from_pem_file(authority.path("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(authority.path("key.pem")).unwrap();
    let peer = Peer::by_tls(tls.with_single_cert(vec![certificate], key).unwrap());
    let url = format!("wss://localhost:{}/events?key=secret4711", peer.port());
    let scene = scene(&format!("sinks: [{{type: websocket, url: \"{url}\"}}]\n"));
    let traces = std::fs::File::create(scene.path("traces.txt")).unwrap();
    let mut run = scene.command(&["run", "--json", "--listen", "127.0.0.1:0"]);
    run.env("SSL_CERT_FILE", authority.path("ca.pem")).env("RUST_LOG", "debug").stderr(traces);
    let mut server = Server::begin(&mut run);
    push(&scene, &server);
    assert_eq!(positions(&peer.upto(2)), [1, 2]);
    server.stop("-INT");
    drop(peer.go());
    let traces = std::fs::read_to_string(scene.path("traces.txt")).unwrap();
    assert!(!traces.contains("secret4711"), "{traces}");
}

/// Each ping has a pong, which nobody reads: the peer never does.
#[test]
fn a_peer_that_sends_pings_and_reads_nothing_is_left() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let mut raw = stream.try_clone().unwrap();
            std::thread::spawn(move || {
                let Ok(_socket) = tungstenite::accept(stream) else { return };
                // Unmasked pings with 125 bytes.
                let ping = [&[0x89, 125][..], &[b'x'; 125]].concat().repeat(512);
                while raw.write_all(&ping).is_ok() {}
            });
        }
    });
    let scene = scene(&sinks(port, ""));
    let traces = std::fs::File::create(scene.path("traces.txt")).unwrap();
    let server = scene.serve_traced(&[], traces.into());
    push(&scene, &server);
    until(|| {
        let traces = std::fs::read_to_string(scene.path("traces.txt")).unwrap();
        traces.contains("it sent 1024 messages, and not the pong that was waited for")
    });
}
