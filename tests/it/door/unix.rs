//! Connections over a Unix socket: they speak as their user, who is an operator.

use std::path::PathBuf;

use pumphouse::client::{Address, Client};
use pumphouse::door::{Options, Tcp, Tokens, Unix};
use pumphouse::prelude::*;
use tempfile::TempDir;

use super::{echo, rest, short};

/// A pump behind a Unix socket in a folder of its own, and who opens it.
async fn house(options: Options) -> (Pump, Address, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("pump.sock");
    let door = Unix::at(&path, options).await.unwrap();
    let builder = pumphouse::builder().with((pumphouse::listeners::standard(), door));
    (builder.build().unwrap().start(), Address::Unix(path), folder)
}

/// This user's name as the system has it.
fn user() -> String {
    let out = std::process::Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn the_user_is_who_sends_and_an_operator() {
    let tokens = Tokens::parse("ann:s3cret-a").unwrap();
    let (pump, address, _folder) = house(Options::default().tokens(tokens)).await;
    let mut ann = Client::connect_to(&address).await.unwrap();
    assert_eq!(ann.authenticate("s3cret-a").await.unwrap(), "ann");
    let thread = ThreadId::new(&ann.tell(&echo("mine")).await.unwrap().thread);
    let mut user_client = Client::connect_to(&address).await.unwrap();
    let theirs =
        ThreadId::new(&user_client.tell(&echo("any").in_thread(&thread)).await.unwrap().thread);
    assert_eq!(theirs, thread);
    let entries = pump.log().tail(0, 10).await.unwrap();
    let from: Vec<String> = entries.iter().map(|it| it.from.to_string()).collect();
    assert_eq!(from, ["ann".to_owned(), "echo".into(), user(), "echo".into()]);
    // Whoever took a token's name has no more than the token gives.
    let thread = ThreadId::new(&user_client.tell(&echo("the user's")).await.unwrap().thread);
    ann.push(&echo("not mine").in_thread(&thread));
    ann.finish().await.unwrap();
    let heard = rest(&mut ann).await;
    assert_eq!(short(&heard), "echo ?");
}

#[tokio::test]
async fn the_door_closes_and_takes_its_file_along() {
    let (pump, address, folder) = house(Options::default()).await;
    let mut client = Client::connect_to(&address).await.unwrap();
    client.ask(&echo("hello")).await.unwrap();
    pump.shutdown().await.unwrap();
    assert!(rest(&mut client).await.is_empty());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(Client::connect_to(&address).await.is_err());
}

/// A pump of this process takes this process's own clients, programs or not.
#[tokio::test]
async fn the_pumps_own_process_is_let_in() {
    pumphouse::door::keep_programs_out();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pump.sock");
    let unix = Unix::at(&path, Options::default()).await.unwrap();
    let tcp = Tcp::bind("127.0.0.1:0", Options::default()).await.unwrap();
    let address = Address::Tcp(tcp.local_addr().to_string());
    let builder = pumphouse::builder().with((pumphouse::listeners::standard(), unix, tcp));
    let pump = builder.build().unwrap().start();
    for address in [Address::Unix(path), address] {
        let mut client = Client::connect_to(&address).await.unwrap();
        client.ask(&echo("hello")).await.unwrap();
    }
    pump.shutdown().await.unwrap();
}

#[tokio::test]
async fn no_listener_has_the_users_name() {
    let folder = tempfile::tempdir().unwrap();
    let door = Unix::at(folder.path().join("pump.sock"), Options::default()).await.unwrap();
    let listener = Listener::new(user()).on(super::add);
    let complaints = pumphouse::builder().with((listener, door)).build().unwrap_err();
    let expected =
        format!("{}: a listener and an identity have this name; give one of them another", user());
    assert_eq!(complaints.all(), [expected]);
}
