//! Feeds arbitrary bytes to `fuzzing::packed`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::packed(bytes));
