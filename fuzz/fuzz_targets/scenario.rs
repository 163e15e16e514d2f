//! Feeds arbitrary bytes to `fuzzing::scenario`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::scenario(bytes));
