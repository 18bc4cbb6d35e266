//! Tests for what a client keeps and reads, with a pipe in place of a pump.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::*;
use crate::wire::core::Authenticated;

/// A client, and the pump's end of its connection.
fn connected() -> (Client, DuplexStream) {
    let (near, far) = duplex(READ_BYTES);
    (Client::over(Box::new(near), Framing::Element), far)
}

/// A message of a pump with a payload of so many bytes.
fn message(bytes: usize) -> Vec<u8> {
    let text = "x".repeat(bytes);
    format!(
        "<message xmlns='{}'><meta><from>echo</from><to>ada</to><thread>sess-a</thread></meta>\
         <a xmlns='urn:x'>{text}</a></message>",
        name::ENVELOPE
    )
    .into()
}

#[tokio::test]
async fn what_comes_while_a_client_writes_is_bounded() {
    let (mut client, mut far) = connected();
    client.push_raw(&vec![b'x'; 4 * READ_BYTES]);
    let flood = async {
        let (piece, mut sent) = (vec![b'x'; READ_BYTES], 0);
        let _ = far.write_all(b"<message>").await;
        while sent < 2 * KEPT_BYTES_MAX && far.write_all(&piece).await.is_ok() {
            sent += piece.len();
        }
        sent
    };
    let (flushed, sent) = tokio::join!(client.flush(), flood);
    assert!(matches!(flushed, Err(Error::Full)), "{flushed:?}");
    assert!(sent <= KEPT_BYTES_MAX + 4 * READ_BYTES, "{sent}");
    assert_eq!(client.recv().await.unwrap(), None, "the connection is over");
}

#[tokio::test]
async fn what_came_while_a_client_wrote_is_received_and_no_longer_counted() {
    let (mut client, mut far) = connected();
    client.push_raw(&vec![b'x'; 4 * READ_BYTES]);
    let pump = async {
        for _ in 0..3 {
            far.write_all(&message(READ_BYTES)).await.unwrap();
        }
        far.read_exact(&mut vec![0; 4 * READ_BYTES]).await.unwrap();
    };
    let (flushed, ()) = tokio::join!(client.flush(), pump);
    flushed.unwrap();
    drop(far);
    for _ in 0..3 {
        assert!(matches!(client.recv().await.unwrap(), Some(Incoming::Message(_))));
    }
    assert_eq!(client.recv().await.unwrap(), None);
    assert_eq!(client.untaken, 0);
}

#[tokio::test]
async fn a_client_without_room_for_a_message_ends_its_connection() {
    let (mut client, mut far) = connected();
    let identity = "ada".to_owned();
    let kept = Incoming::Authenticated(Authenticated { identity });
    client.waiting.push_last(KEPT_BYTES_MAX, kept.clone());
    far.write_all(&message(1)).await.unwrap();
    let push = Push::text("<a xmlns='urn:x'/>").unwrap();
    assert!(matches!(client.tell(&push).await, Err(Error::Full)));
    assert_eq!(client.recv().await.unwrap(), Some(kept));
    assert_eq!(client.recv().await.unwrap(), None);
    while far.read(&mut [0; 64]).await.unwrap() > 0 {}
}

#[tokio::test]
async fn a_message_may_be_as_large_as_what_listeners_emit_and_no_larger() {
    let bytes_max = XmlLimits::INSIDE.message_bytes_max;
    for (bytes, is_taken) in [(bytes_max - 64, true), (2 * bytes_max, false)] {
        let (mut client, mut far) = connected();
        let message = message(bytes);
        let received = async move {
            let told = client.recv().await;
            drop(client);
            told
        };
        // The client may leave before the end.
        let (told, _) = tokio::join!(received, far.write_all(&message));
        assert_eq!(told.is_ok(), is_taken, "{bytes}");
        assert!(is_taken || matches!(told, Err(Error::Xml(_))));
    }
}
