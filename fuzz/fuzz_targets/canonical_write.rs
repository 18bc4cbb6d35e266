//! `canonical_write`: see the function of that name.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pumphouse_fuzz::canonical_write(data));
