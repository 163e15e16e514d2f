//! `cargo run -p paceline-tests --bin pairs -- FOLDER`: small programs, recorded as they are and with a
//! remedy.
//!
//! What a replay says of a remedy is compared with what the remedy did: `docs/what-if.md` has the table,
//! which `crates/cli/tests/diagnose/what_if_pairs.rs` makes of the recordings in `testdata/pairs`. This
//! program made these. [`scenes`] has the programs, [`play`] runs one, [`record`] has the kernel record it.
//!
//! A recording is taken again while other programs had more than a fiftieth of the CPU time, at most so
//! often; then the calmest one is kept. Nothing else is chosen: neither the remedies nor the recordings are
//! selected by what a replay says of them.
//!
//! Exit codes: 0 fine, 1 it could not record, 2 bad usage.

#[cfg(target_os = "linux")]
mod lock;
#[cfg(target_os = "linux")]
mod play;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod scenes;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    record::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: it records with Linux's tracefs");
}
