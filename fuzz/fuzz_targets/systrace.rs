//! Feeds arbitrary bytes to `fuzzing::systrace`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::systrace(bytes));
