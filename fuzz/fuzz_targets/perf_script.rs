//! Feeds arbitrary bytes to `fuzzing::perf_script`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::perf_script(bytes));
