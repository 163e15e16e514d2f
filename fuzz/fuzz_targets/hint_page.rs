//! Feeds arbitrary bytes to `fuzzing::hint_page`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::hint_page(bytes));
