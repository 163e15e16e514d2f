//! Feeds arbitrary bytes to `fuzzing::graph`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::graph(bytes));
