//! Feeds arbitrary bytes to `fuzzing::perfetto`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::perfetto(bytes));
