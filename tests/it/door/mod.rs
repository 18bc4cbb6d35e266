//! Doors and clients over real sockets.

use pumphouse::client::{Client, Incoming, Push};
use pumphouse::door::{Options, Tcp};
use pumphouse::listeners::echo::Echo;

#[tokio::test]
async fn what_goes_in_comes_out_and_the_connection_ends() {
    let door = Tcp::bind("127.0.0.1:0", Options::default()).await.unwrap();
    let address = door.local_addr();
    let plan = pumphouse::builder().with(pumphouse::listeners::standard()).with(door).build();
    let pump = plan.unwrap().start();
    let mut client = Client::connect(address).await.unwrap();
    client.push(&Push::of(&Echo { text: "hello".into() }).unwrap());
    client.finish().await.unwrap();
    let first = client.recv().await.unwrap();
    assert!(matches!(first, Some(Incoming::Accepted { push: 0, .. })), "{first:?}");
    let Some(Incoming::Message(echo)) = client.recv().await.unwrap() else { panic!("no echo") };
    assert_eq!(echo.decode::<Echo>().unwrap().text, "hello");
    assert_eq!(client.recv().await.unwrap(), None);
    pump.shutdown().await.unwrap();
}
