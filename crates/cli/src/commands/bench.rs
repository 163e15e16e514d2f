//! `paceline bench`: where the benchmark is.

use clap::Args;
use console::Failure;

/// Say where the benchmark is: a program of its own, so that this one builds none of the peers.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Arguments of the benchmark
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    given: Vec<String>,
}

/// The line that does what was meant.
pub(crate) fn elsewhere(arguments: &Arguments) -> Failure {
    let mut line = String::from("cargo run --release -p paceline-bench --");
    for argument in &arguments.given {
        line.push(' ');
        line.push_str(argument);
    }
    Failure::Usage(format!(
        "bench: the benchmark is a program of its own; in the source's folder run: {line}"
    ))
}
