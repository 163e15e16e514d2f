//! A program on the job system that checks its own results, on any system that Paceline builds for.
//!
//! `cargo xtask check-targets` runs it where the machine at hand has a runner: as a program under WASI
//! (`main.rs`), and as a module without any import in WebAssembly (`module.rs`), which `run.mjs` calls. What
//! it checks holds with workers and without.

mod checks;
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod module;

pub use checks::{run, run_without_threads};
