//! `sse`: see the function of that name.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pumphouse_fuzz::sse(data));
