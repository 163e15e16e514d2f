//! Feeds arbitrary bytes to `fuzzing::chrome`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::chrome(bytes));
