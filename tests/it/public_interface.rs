//! The house staff compiled outside the crate, from the same files. The compiler thereby proves
//! that they use only the public API.

#[path = "../../listeners/mod.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "a stranger may leave some of it unused"
)]
pub(super) mod listeners;

use listeners::tool::calculate::{Calculate, Calculated, calculate};

#[tokio::test]
async fn the_house_staff_have_no_private_door() {
    let pump =
        pumphouse::builder().with((listeners::staff(), calculate())).build().unwrap().start();
    let expression = "6*7".to_owned();
    let Calculated { value } = pump.ask(Calculate::new(expression)).await.unwrap();
    assert_eq!(value, "42");
    pump.shutdown().await.unwrap();
}
