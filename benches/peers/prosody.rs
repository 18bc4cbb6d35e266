//! Prosody: stanzas from one component to another (XEP-0114). Like our pump, it reads and writes
//! XML.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use crate::pipeline::Pipeline;
use crate::server::Server;

/// The most stanzas on their way at once.
const WINDOW: u64 = 65_536;
const SECRET: &str = "secret";
/// The length of a stanza in bytes, which is that of an envelope.
const BYTES: usize = 250;

pub(crate) fn components(count: u64) -> io::Result<f64> {
    let server = Server::start("prosody", |folder, port| {
        let file = folder.join("prosody.cfg.lua");
        fs::write(&file, configuration(folder, port))?;
        Ok(vec!["--config".to_owned(), file.display().to_string(), "-F".to_owned()])
    })?;
    let (writer, _kept) = connect(&server, "a.localhost")?;
    let (_kept, reader) = connect(&server, "b.localhost")?;
    let put = |block: &mut Vec<u8>, number| block.extend_from_slice(stanza(number).as_bytes());
    let mut tag = Vec::new();
    let take = |reader: &mut BufReader<TcpStream>| {
        while !tag.ends_with(b"</message>") {
            next_tag(reader, &mut tag)?;
        }
        tag.clear();
        Ok(())
    };
    Pipeline { writer, reader, window: WINDOW }.rate(count, put, take)
}

fn configuration(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    format!(
        r#"
data_path = "{folder}"
pidfile = "{folder}/prosody.pid"
run_as_root = true
interfaces = {{ "127.0.0.1" }}
component_ports = {{ {port} }}
c2s_ports = {{}} s2s_ports = {{}} http_ports = {{}} https_ports = {{}}
modules_enabled = {{}}
modules_disabled = {{ "s2s", "c2s", "offline" }}
log = {{ error = "*console" }}
VirtualHost "localhost"
Component "a.localhost"
  component_secret = "{SECRET}"
Component "b.localhost"
  component_secret = "{SECRET}"
"#
    )
}

fn connect(server: &Server, name: &str) -> io::Result<(TcpStream, BufReader<TcpStream>)> {
    let (mut writer, mut reader) = server.connect()?;
    let opening = format!(
        "<?xml version='1.0'?><stream:stream xmlns='jabber:component:accept' \
         xmlns:stream='http://etherx.jabber.org/streams' to='{name}'>"
    );
    writer.write_all(opening.as_bytes())?;
    let mut tag = Vec::new();
    let id = loop {
        next_tag(&mut reader, &mut tag)?;
        let text = String::from_utf8_lossy(&tag);
        if let Some((_, rest)) = text.split_once(" id='") {
            break rest.split('\'').next().unwrap_or_default().to_owned();
        }
    };
    let known = digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{id}{SECRET}").as_bytes());
    let known: String = known.as_ref().iter().map(|it| format!("{it:02x}")).collect();
    writer.write_all(format!("<handshake>{known}</handshake>").as_bytes())?;
    next_tag(&mut reader, &mut tag)?;
    match tag.starts_with(b"<handshake") {
        true => Ok((writer, reader)),
        false => Err(io::Error::other(format!("Prosody: {}", String::from_utf8_lossy(&tag)))),
    }
}

fn stanza(number: u64) -> String {
    let text = format!(
        "<message from='console@a.localhost' to='sink@b.localhost'><thread>sess-k3v9x2ma</thread>\
         <sink xmlns='https://xml-pipeline.org/ns/bench/v1'><a>{number}</a><text>"
    );
    let tail = "</text></sink></message>";
    let fill = BYTES.saturating_sub(text.len() + tail.len());
    format!("{text}{}{tail}", "x".repeat(fill))
}

/// Reads up to the end of the next tag.
fn next_tag(reader: &mut BufReader<TcpStream>, tag: &mut Vec<u8>) -> io::Result<()> {
    tag.clear();
    match reader.read_until(b'>', tag)? {
        0 => Err(io::Error::other("Prosody closed the connection")),
        _ => Ok(()),
    }
}
