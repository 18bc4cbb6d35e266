//! The server: every verb of the command line, with the house staff as listeners.
//!
//! A program with listeners of its own is the same line with them in it:
//! `pumphouse::cli(pumphouse::builder().with(my_listeners()))`.

use std::process::ExitCode;

/// Messages are many small allocations that move between threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    pumphouse::cli(pumphouse::builder())
}
