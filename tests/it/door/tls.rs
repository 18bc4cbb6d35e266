//! TLS over TCP: which certificates are shown and trusted, and when files are read again.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pumphouse::client::{Address, Client, Resuming};
use pumphouse::door::{Options, Tcp, Tls, Tokens};
use pumphouse::prelude::*;
use pumphouse::wire::Code;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

use super::{ECHO, House, echo, rest, short, text_to_end};

/// An authority, and the files it writes.
pub(crate) struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let (key, mut params) = (KeyPair::generate().unwrap(), CertificateParams::default());
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().display().to_string();
        params.distinguished_name.push(DnType::CommonName, name);
        let own = params.self_signed(&key).unwrap();
        fs::write(folder.path().join("ca.pem"), own.pem()).unwrap();
        Authority { folder, issuer: Issuer::new(params, key) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A certificate for a host, valid to the end of a year, and its key: `cert.pem`, `key.pem`.
    pub(crate) fn issue(&self, host: &str, year: i32) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([host.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 12, 31);
        let it = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.path("cert.pem"), it.pem()).unwrap();
        self.secret("key.pem", &key.serialize_pem());
    }

    fn secret(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
        mode(&self.path(name), 0o600);
    }

    fn read(&self) -> Result<Tls, String> {
        let tls = Tls::read(self.path("cert.pem"), self.path("key.pem"));
        tls.map_err(|it| it.to_string())
    }

    /// A pump with a TLS door, and the door's address for who trusts us.
    async fn house(&self, change: impl FnOnce(&mut Limits)) -> (House, Address, Tls) {
        let tls = self.read().unwrap();
        let options = Options::default().tls(tls.clone());
        let house = House::with(change, options, Listener::new("adder").on(super::add)).await;
        let address: Address = format!("tls:{}", house.address).parse().unwrap();
        (house, address.trusting(self.path("ca.pem")), tls)
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn who_trusts_the_issuer_is_served() {
    let authority = Authority::new();
    authority.issue("127.0.0.1", 2099);
    let (house, address, _) = authority.house(|_| {}).await;
    let mut client = Client::connect_to(&address).await.unwrap();
    client.ask(&echo("hello")).await.unwrap();
    for _ in 0..100 {
        client.push(&echo(&"x".repeat(10_000)));
    }
    client.finish().await.unwrap();
    assert_eq!(rest(&mut client).await.len(), 200);
    let thread = house.pump.log().tail(0, 1).await.unwrap()[0].id.thread.clone();
    let mut resuming = Resuming::new(address);
    resuming.follow(&thread, 0).unwrap();
    resuming.recv().await.unwrap();
    resuming.recv().await.unwrap();
    assert_eq!(resuming.after(&thread), Some(1));
    house.pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn who_doesnt_trust_it_is_told_why() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    ours.issue("127.0.0.1", 2099);
    let (house, address, _) = ours.house(|_| {}).await;
    let fails = async |address: Address, expected: &str| {
        let error = Client::connect_to(&address).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    fails(address.clone().trusting(theirs.path("ca.pem")), "nobody we trust issued").await;
    fails(address.clone().trusting(ours.path("key.pem")), "holds no certificate").await;
    fails(address.clone().trusting(ours.path("none")), "none: ").await;
    let port = house.address.port();
    let localhost: Address = format!("tls:localhost:{port}").parse().unwrap();
    fails(localhost.trusting(ours.path("ca.pem")), "for another name").await;
    let mut client = Client::connect_to(&address).await.unwrap();
    client.ask(&echo("hello")).await.unwrap();
}

#[tokio::test]
async fn who_comes_without_tls_where_it_is_spoken_is_told_so_and_the_other_way_round() {
    let authority = Authority::new();
    authority.issue("127.0.0.1", 2099);
    let (house, address, _) = authority.house(|_| {}).await;
    for opening in [ECHO, "\0\0\0\u{1}<", "GET / HTTP/1.1\r\n\r\n"] {
        let mut plain = house.stream().await;
        plain.write_all(opening.as_bytes()).await.unwrap();
        let told = text_to_end(&mut plain).await;
        assert!(told.contains("P0022") && told.contains("this door speaks TLS"), "{told}");
    }
    assert_eq!(house.pump.refusals().get(&Code::Framing), Some(&3));
    let mut client = Client::connect(house.address).await.unwrap();
    let error = client.authenticate("s3cret").await.unwrap_err().to_string();
    assert!(error.contains("tls: stands before HOST:PORT"), "{error}");
    let other = House::new(|_| {}).await;
    let plain: Address = format!("tls:{}", other.address).parse().unwrap();
    let error = Client::connect_to(&plain.trusting(authority.path("ca.pem"))).await.unwrap_err();
    let told = "doesn't speak TLS; connect to it without tls:, as HOST:PORT";
    assert!(error.to_string().contains(told), "{error}");
    Client::connect_to(&address).await.unwrap().ask(&echo("hello")).await.unwrap();
}

/// What `openssl req -x509` makes, as it stands and with CA:FALSE.
#[tokio::test]
async fn a_certificate_of_ones_own_is_trusted_unless_it_is_an_authoritys() {
    let authority = Authority::new();
    for (is_ca, expected) in [
        (IsCa::Ca(BasicConstraints::Unconstrained), Err("basicConstraints=critical,CA:FALSE")),
        (IsCa::ExplicitNoCa, Ok(())),
    ] {
        let (key, name) = (KeyPair::generate().unwrap(), ["127.0.0.1".to_owned()]);
        let mut params = CertificateParams::new(name).unwrap();
        params.is_ca = is_ca;
        let own = params.self_signed(&key).unwrap().pem();
        fs::write(authority.path("ca.pem"), &own).unwrap();
        fs::write(authority.path("cert.pem"), &own).unwrap();
        authority.secret("key.pem", &key.serialize_pem());
        let (house, address, _) = authority.house(|_| {}).await;
        let told = Client::connect_to(&address).await.map(drop).map_err(|it| it.to_string());
        match expected {
            Ok(()) => assert_eq!(told, Ok(())),
            Err(text) => assert!(told.as_ref().is_err_and(|it| it.contains(text)), "{told:?}"),
        }
        house.pump.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn who_says_nothing_is_let_go_and_nobody_waits_for_it() {
    let authority = Authority::new();
    authority.issue("127.0.0.1", 2099);
    let change = |it: &mut Limits| it.frame_time_max = std::time::Duration::from_millis(50);
    let (house, address, _) = authority.house(change).await;
    let mut silent = house.stream().await;
    let mut half = house.stream().await;
    half.write_all(&[0x16, 3, 1, 2]).await.unwrap();
    let mut client = Client::connect_to(&address).await.unwrap();
    client.ask(&echo("hello")).await.unwrap();
    assert_eq!(text_to_end(&mut silent).await, "");
    assert_eq!(text_to_end(&mut half).await, "");
}

#[tokio::test]
async fn a_new_certificate_is_for_new_connections() {
    let authority = Authority::new();
    authority.issue("127.0.0.1", 2099);
    let (house, address, tls) = authority.house(|_| {}).await;
    let mut old = Client::connect_to(&address).await.unwrap();
    old.ask(&echo("before")).await.unwrap();
    let port = house.address.port();
    let by_name: Address = format!("tls:localhost:{port}").parse().unwrap();
    let by_name = by_name.trusting(authority.path("ca.pem"));
    Client::connect_to(&by_name).await.unwrap_err();
    authority.issue("localhost", 2099);
    tls.reload().unwrap();
    Client::connect_to(&by_name).await.unwrap().ask(&echo("by name")).await.unwrap();
    Client::connect_to(&address).await.unwrap_err();
    old.ask(&echo("still there")).await.unwrap();
    // What can't be used changes nothing.
    authority.issue("127.0.0.1", 2021);
    assert!(tls.reload().unwrap_err().to_string().contains("expired"));
    Client::connect_to(&by_name).await.unwrap().ask(&echo("as before")).await.unwrap();
}

#[test]
fn files_are_read_again_once_for_each_change_of_their_content_or_mode() {
    let authority = Authority::new();
    authority.issue("127.0.0.1", 2099);
    let tls = authority.read().unwrap();
    assert_eq!(tls.reload_if_changed(), Ok(false));
    authority.issue("localhost", 2099);
    assert_eq!(tls.reload_if_changed(), Ok(true));
    assert_eq!(tls.reload_if_changed(), Ok(false));
    // A reload that was asked for has read this change.
    authority.issue("127.0.0.1", 2099);
    tls.reload().unwrap();
    assert_eq!(tls.reload_if_changed(), Ok(false));
    mode(&authority.path("key.pem"), 0o644);
    assert!(tls.reload_if_changed().unwrap_err().to_string().contains("chmod 600"));
    assert_eq!(tls.reload_if_changed(), Ok(false), "what is wrong is said once");
    mode(&authority.path("key.pem"), 0o600);
    assert_eq!(tls.reload_if_changed(), Ok(true));
}

#[test]
fn what_cant_be_used_is_named() {
    let authority = Authority::new();
    let fails = |file: &str, expected: &str| {
        let wrong = authority.read().unwrap_err();
        assert!(wrong.contains(file) && wrong.contains(expected), "{wrong}");
    };
    authority.issue("127.0.0.1", 2099);
    authority.read().unwrap();
    let key = fs::read_to_string(authority.path("key.pem")).unwrap();
    mode(&authority.path("key.pem"), 0o644);
    fails("key.pem", "chmod 600");
    mode(&authority.path("key.pem"), 0o600);
    fs::write(authority.path("key.pem"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
    fails("key.pem", "it is not the key of");
    fs::write(authority.path("key.pem"), key.replace("PRIVATE", "ENCRYPTED PRIVATE")).unwrap();
    fails("key.pem", "passphrase");
    fs::write(authority.path("key.pem"), "no key").unwrap();
    fails("key.pem", "no private key");
    fs::write(authority.path("key.pem"), &key[..key.len() / 2]).unwrap();
    fails("key.pem", "no PEM");
    fs::remove_file(authority.path("key.pem")).unwrap();
    fails("key.pem", "No such file");
    authority.issue("127.0.0.1", 2021);
    fails("cert.pem", "it has expired");
    authority.issue("127.0.0.1", 2099);
    fs::write(authority.path("cert.pem"), &key).unwrap();
    fails("cert.pem", "it holds no certificate");
    let junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    fs::write(authority.path("cert.pem"), junk).unwrap();
    fails("cert.pem", "it is no certificate");
    fs::remove_file(authority.path("cert.pem")).unwrap();
    fs::create_dir(authority.path("cert.pem")).unwrap();
    fails("cert.pem", "it is no regular file");
}

#[tokio::test]
async fn tls_needs_tokens_beyond_this_machine_too() {
    let authority = Authority::new();
    authority.issue("pump.example", 2099);
    let options = Options::default().tls(authority.read().unwrap());
    assert!(Tcp::bind("0.0.0.0:0", options.clone()).await.is_err());
    let tokens = Tokens::parse("ann:s3cret-a").unwrap();
    let door = Tcp::bind("0.0.0.0:0", options.tokens(tokens)).await.unwrap();
    let text = format!("{door:?}");
    assert!(!text.contains("s3cret") && !text.contains("PRIVATE"), "{text}");
}

#[tokio::test]
async fn the_first_byte_says_whether_the_rest_is_xml() {
    let authority = Authority::new();
    authority.issue("127.0.0.1", 2099);
    let (_house, address, _) = authority.house(|_| {}).await;
    let mut client = Client::connect_to(&address).await.unwrap();
    client.push_raw(b"GET / HTTP/1.1\r\n\r\n");
    let heard = rest(&mut client).await;
    assert_eq!(short(&heard), "P0022");
}
