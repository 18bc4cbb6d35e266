//! Scenes: conversations that are written in files and played against a pump over a socket, as
//! tests.
//!
//! ```text
//! # A greeting is answered.
//! alice sends:
//!   <greet xmlns="https://example.org/ns/greeter/v1"><name>world</name></greet>
//! alice receives:
//!   <greeting xmlns="https://example.org/ns/greeter/v1"><text>Hello, world!</text></greeting>
//! ```
//!
//! `pumphouse test` plays the files that it is given. A program can read a [`Scene`] and play it
//! with [`hold`], too.

mod play;
mod script;
mod socket;

pub use play::{Line, Stage, payload, plain, play};
pub use script::{Act, Scene, Step};
pub use socket::{Socket, hold};
