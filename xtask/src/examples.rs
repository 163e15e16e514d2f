//! The stage `examples`: every example of the workspace runs, and prints what it should.
//!
//! Beside `examples/NAME.rs` there may be `NAME.out`; then standard output must be exactly that.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::context::Context;
use crate::process::{self, Manner};

/// How long building them may be silent.
const BUILD_SILENCE: Duration = Duration::from_secs(5 * 60);

/// The same for running one. Examples are short: people wait for them.
const RUN_SILENCE: Duration = Duration::from_secs(60);

/// Builds and runs the examples; `Ok` says how many.
pub(crate) fn stage(context: &Context) -> Result<String, String> {
    let packages = &context.metadata.packages;
    let examples: Vec<_> = packages
        .iter()
        .flat_map(|package| &package.targets)
        .filter(|target| target.is_example())
        .collect();
    if examples.is_empty() {
        return Err("there are no examples".to_owned());
    }

    // With the tests, as in the stage `unit`, which has built them. `cargo build --examples` would compile
    // half of the workspace again: what macros are made with depends on all that a command builds.
    let mut build = context.command("cargo");
    build.args(["test", "--workspace", "--no-run"]);
    let outcome = process::run(
        build,
        Manner {
            silence: BUILD_SILENCE,
            stream: false,
            apart: false,
        },
    );
    if let Some(why) = outcome.failure {
        return Err(format!("{}cargo test --no-run: {why}", outcome.output));
    }

    let mut compared = 0;
    let mut failures = String::new();
    for example in &examples {
        match run(context, &example.name, example.src_path.as_std_path()) {
            Ok(was_compared) => compared += usize::from(was_compared),
            Err(failure) => failures.push_str(&failure),
        }
    }
    if failures.is_empty() {
        Ok(format!("{} ran, {compared} compared", examples.len()))
    } else {
        Err(failures)
    }
}

/// Runs one example; whether there was an output to compare with.
fn run(context: &Context, name: &str, source: &Path) -> Result<bool, String> {
    let program = context.target.join("debug/examples").join(name);
    let manner = Manner {
        silence: RUN_SILENCE,
        stream: false,
        apart: true,
    };
    let outcome = process::run(context.command(program), manner);
    if let Some(why) = outcome.failure {
        return Err(format!("example {name}: {why}\n{}", outcome.output));
    }
    let path = source.with_extension("out");
    if !path.exists() {
        return Ok(false);
    }
    let shown = context.shown(&path);
    let wanted = fs::read_to_string(&path).map_err(|error| format!("{shown}: {error}\n"))?;
    match difference(&wanted, &outcome.stdout) {
        None => Ok(true),
        Some(where_and_what) => Err(format!(
            "example {name} does not print {shown}: {where_and_what}\n"
        )),
    }
}

/// The first line in which two texts differ.
fn difference(wanted: &str, got: &str) -> Option<String> {
    if wanted.trim_end() == got.trim_end() {
        return None;
    }
    let (mut wanted, mut got) = (wanted.lines(), got.lines());
    for number in 1.. {
        let pair = (wanted.next(), got.next());
        if pair.0 != pair.1 {
            let shown =
                |line: Option<&str>| line.map_or("the end".to_owned(), |text| format!("{text:?}"));
            return Some(format!(
                "line {number} is {}, not {}",
                shown(pair.1),
                shown(pair.0)
            ));
        }
        if pair == (None, None) {
            break;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_output_has_no_difference() {
        assert_eq!(difference("a\nb\n", "a\nb"), None);
    }

    #[test]
    fn the_first_different_line_is_named() {
        let found = difference("a\nb\n", "a\nc\n").unwrap();
        assert_eq!(found, "line 2 is \"c\", not \"b\"");
        assert_eq!(
            difference("a\n", "a\nmore\n").unwrap(),
            "line 2 is \"more\", not the end"
        );
    }
}
