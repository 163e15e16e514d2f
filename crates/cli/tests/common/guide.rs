//! Comparing a guide with the program's output.

use crate::common::{fine, root};

/// Compares a guide with the output: each of its commands that begins with `$ paceline` is run, and must
/// print the text below it; `…` at the end stands for more lines. At least `least` commands are shown.
pub(crate) fn shows_what_is_printed(file: &str, least: usize) {
    let guide = std::fs::read_to_string(root().join(file)).unwrap();
    let mut shown = 0;
    for block in guide.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let (command, expected) = block.split_once('\n').unwrap();
        let command = command
            .strip_prefix("$ paceline ")
            .expect("a command of ours");
        let arguments = words(command);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let out = fine(&arguments);
        match expected.strip_suffix("…\n") {
            Some(beginning) => assert!(out.starts_with(beginning), "{command}:\n{out}"),
            None => assert_eq!(out, expected, "{command}"),
        }
        shown += 1;
    }
    assert!(shown >= least, "{file}: {shown}");
}

/// The words of a command line, with '…' around those that have blanks.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}
