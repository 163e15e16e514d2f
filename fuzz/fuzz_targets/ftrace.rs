//! Feeds arbitrary bytes to `fuzzing::ftrace`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::ftrace(bytes));
