//! Feeds arbitrary bytes to `fuzzing::trace_cmd`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::trace_cmd(bytes));
