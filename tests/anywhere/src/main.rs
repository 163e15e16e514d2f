//! The checks as a program: for WASI, emulators and other machines.

use std::io::ErrorKind;

fn main() {
    let tried = std::thread::Builder::new().spawn(|| ());
    if tried.is_err_and(|error| error.kind() == ErrorKind::Unsupported) {
        paceline_anywhere::run_without_threads();
    }
    let said = paceline_anywhere::run();
    println!("{said}\nok");
}
