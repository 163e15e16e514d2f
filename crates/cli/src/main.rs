//! The `paceline` command: see the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    paceline_cli::main()
}
