//! Feeds arbitrary bytes to `fuzzing::misuse`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::misuse(bytes));
