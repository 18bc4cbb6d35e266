//! The program `pumphouse`: the command line, with the house staff as listeners.
//!
//! A program with further listeners passes them to the builder:
//! `pumphouse::cli(pumphouse::builder().with(my_listeners()))`.

use std::process::ExitCode;

/// The pump makes many small allocations for messages. Often one OS thread allocates, and another
/// OS thread frees. mimalloc suits this pattern.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    pumphouse::cli(pumphouse::builder())
}
