//! Feeds arbitrary bytes to `fuzzing::topology`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::topology(bytes));
