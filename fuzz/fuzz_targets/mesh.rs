//! Feeds arbitrary bytes to `fuzzing::mesh`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::mesh(bytes));
