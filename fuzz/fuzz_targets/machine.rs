//! Feeds arbitrary bytes to `fuzzing::machine`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::machine(bytes));
