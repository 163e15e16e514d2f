//! `cargo xtask validate`: the simulator against the kernel of the machine at hand.
//!
//! The same small programs run twice: as threads of this machine, and as threads of the simulated `vm-2`
//! under the policies that stand for its kernel. The observations of both are compared, and
//! `docs/validation.md` is written from it.
//!
//! Exit code 0: no bound was missed (experiments that could not be judged say why); 1: a bound was missed on
//! a quiet machine, or something failed; 2: bad usage.

#[cfg(target_os = "linux")]
mod compare;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    compare::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: the policies stand for Linux, and this is not Linux");
}
