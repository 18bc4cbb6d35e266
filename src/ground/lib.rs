//! The ground that the other crates of Pumphouse stand on: names and ids, limits, clocks, files and
//! texts that are read within bounds, XML, schemas and secrets. Nothing here knows threads, logs or
//! sockets.
//!
//! The modules stand in the order of their dependencies: each may use only the modules above it.

extern crate self as pumphouse;

#[path = "../name.rs"]
pub mod name;
#[path = "../id.rs"]
pub mod id;
#[path = "../limits/mod.rs"]
pub mod limits;
#[path = "../clock.rs"]
pub mod clock;
#[path = "../hidden_characters.rs"]
pub mod hidden_characters;
#[path = "../regular_file.rs"]
pub mod regular_file;
#[path = "../own_files.rs"]
pub mod own_files;
#[path = "../atomic_file.rs"]
pub mod atomic_file;
#[path = "../bounded_yaml.rs"]
pub mod bounded_yaml;
#[path = "../address.rs"]
pub mod address;
#[path = "../xml/mod.rs"]
pub mod xml;
#[path = "../schema/mod.rs"]
pub mod schema;
#[path = "../secret/mod.rs"]
pub mod secret;

pub use id::{EntryId, ThreadId};
pub use limits::Limits;
pub use name::Name;
pub use xml::Element;
