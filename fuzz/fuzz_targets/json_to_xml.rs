//! `json_to_xml`: see the function of that name.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pumphouse_fuzz::json_to_xml(data));
