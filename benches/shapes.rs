//! Measures, for every shape of XML that is costly to parse, how much longer twice the size takes.
//! Run it with `just shapes`.
#![expect(clippy::print_stdout, reason = "that is what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures time")]

#[path = "../tests/it/suites/shapes/make.rs"]
#[allow(clippy::unwrap_used, dead_code, reason = "the tests use all of it")]
mod make;

use std::hint::black_box;
use std::time::{Duration, Instant};

use pumphouse::limits::XmlLimits;
use pumphouse::xml::{Profile, Splitter, read};

/// The same allocator as in the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MEGABYTE: usize = 1_000_000;

fn main() {
    println!("{:42} {:>9} {:>10} {:>6}", "shape", "bytes", "time", "x2");
    for shape in make::SHAPES {
        let time = |bytes: usize| {
            let text = (shape.make)(bytes);
            let mut limits = XmlLimits::FILE;
            limits.message_bytes_max = 8 * text.len();
            limits.depth_max = usize::MAX;
            limits.attributes_max = usize::MAX;
            limits.name_bytes_max = usize::MAX;
            limits.declarations_max = usize::MAX;
            limits.bindings_max = usize::MAX;
            let all = || {
                let read = read(black_box(&text), Profile::Document, &limits);
                read.map_or(0, |it| {
                    let mut length = 0;
                    it.view().canonical_pieces(|piece| length += piece.len());
                    length
                })
            };
            let whole = nanoseconds(5, all);
            let split = nanoseconds(2, || {
                let mut splitter = Splitter::new(limits);
                for byte in text.chunks(1) {
                    splitter.feed(byte);
                    if !matches!(splitter.next(), Ok(None)) {
                        break;
                    }
                }
            });
            (whole, split)
        };
        let (once, twice) = (time(MEGABYTE), time(2 * MEGABYTE));
        println!(
            "{:42} {:9} {:7.2} ms x{:4.2}   byte by byte {:7.2} ms x{:4.2}",
            shape.name,
            2 * MEGABYTE,
            twice.0 / 1e6,
            twice.0 / once.0,
            twice.1 / 1e6,
            twice.1 / once.1
        );
    }
}

/// Returns the time per call, in nanoseconds, of the quickest of several rounds.
fn nanoseconds<T>(times: u32, mut call: impl FnMut() -> T) -> f64 {
    let mut best = Duration::MAX;
    for _ in 0..7 {
        let since = Instant::now();
        for _ in 0..times {
            black_box(call());
        }
        best = best.min(since.elapsed());
    }
    best.as_nanos() as f64 / f64::from(times)
}
