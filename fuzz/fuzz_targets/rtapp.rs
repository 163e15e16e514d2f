//! Feeds arbitrary bytes to `fuzzing::rtapp`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::rtapp(bytes));
