//! The program `pumphouse`: the command line, with the house staff as listeners.
//!
//! A program with further listeners passes them to the builder:
//! `pumphouse::cli(pumphouse::builder().with(my_listeners()))`.

use std::process::ExitCode;

/// mimalloc suits messages, which consist of many small allocations that one OS thread makes and
/// another OS thread frees.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    pumphouse::cli(pumphouse::builder())
}
