//! Forbidden words: marks of the unfinished, paths and hosts of one machine, calls that give the processor
//! away.
//!
//! The words are put together from halves, so that this file does not say them either.

use super::tree::{Finding, Tree};
use crate::source::words;

/// Marks of work that was left undone; whole words.
const UNFINISHED: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X")];

/// Macros that stand for missing code.
const MISSING_CODE: &[&str] = &[concat!("todo", "!"), concat!("unimplemented", "!")];

/// A note for later, allowed with the number of its issue.
const LATER: &str = concat!("TO", "DO");

/// Folders of the machine that the author sat at, and the folder beside the repository there.
const MACHINE_PATHS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/fa", "rm/"),
];
const BESIDE: &str = concat!("../sha", "red");

/// Hosts that package clients download from: settings of a machine, not of the project.
const HOSTS: &[&str] = &[
    concat!("static.", "crates.io"),
    concat!("index.", "crates.io"),
    concat!("static.", "rust-lang.org"),
    concat!("files.", "pythonhosted.org"),
    concat!("pypi.", "org/simple"),
    concat!("registry.", "npmjs.org"),
    concat!("proxy.", "golang.org"),
    concat!("repo1.", "maven.org"),
    concat!("repo.", "maven.apache.org"),
    concat!("deb.", "debian.org"),
    concat!("arti", "factory"),
    concat!("sonatype-", "nexus"),
];

/// The only source in Cargo.lock.
const LOCK_SOURCE: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Calls that hand the processor to the kernel's scheduler and hope.
const YIELDS: &[&str] = &["sched_yield", "yield_now"];

/// The one file that makes such a call: the turns of naive loops, for experiments.
const YIELDS_FOR_EXPERIMENTS: &str = "crates/platform/src/os/poll.rs";

/// The parts of a naive loop, and where they may not be used.
const POLLS: &[&str] = &["Poll::Spin", "Poll::Pause", "Poll::Yield"];
const NO_POLL: &str = "crates/paceline/";

/// Where they are forbidden: what waits there, waits for something.
const NO_YIELD: &[&str] = &[
    "crates/event/",
    "crates/platform/",
    "crates/paceline/",
    "crates/workload/",
];

/// The function that catches a panic, and the one folder of the job system that uses it: code of the
/// program's is called there.
const CATCHES: &str = "catch_unwind";
const BORDER: &str = "crates/paceline/src/border/";

/// Rule "border": the job system catches panics of the program's code in one place.
pub(super) fn border(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust() {
        if !file.path.starts_with("crates/paceline/src/") || file.path.starts_with(BORDER) {
            continue;
        }
        for (index, line) in source.lines.iter().enumerate() {
            if words(&line.code).any(|(_, word)| word == CATCHES) {
                let message = format!("{CATCHES}: call the program's code through {BORDER}");
                findings.push(file.finding(index + 1, message));
            }
        }
    }
    findings
}

/// Rule "words": none of the words above, in any text file. Captured data may hold anything.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let written = |path: &str| !path.contains("testdata/") && path != "Cargo.lock";
    for file in tree.files.iter().filter(|file| written(&file.path)) {
        let rust = file.rust.is_some();
        for (index, line) in file.text.lines().enumerate() {
            findings.extend(said(line, rust).map(|what| file.finding(index + 1, what)));
        }
    }
    findings
}

/// Rule "lock": no machine's own registry has slipped into Cargo.lock.
pub(super) fn lock_sources(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree
        .files
        .iter()
        .filter(|file| file.path.ends_with("Cargo.lock"))
    {
        for (index, line) in file.text.lines().enumerate() {
            let Some(source) = line.strip_prefix("source = ") else {
                continue;
            };
            if source.trim_matches('"') != LOCK_SOURCE {
                findings.push(file.finding(index + 1, format!("{source} is not crates.io")));
            }
        }
    }
    findings
}

/// Rule "yield": waiting is `Platform::parker` or `Memory::spin_until`, never a hope, and in the job
/// system not `Polling::poll` either.
pub(super) fn yields(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust() {
        let is_in = |folder: &&str| file.path.starts_with(*folder);
        if !NO_YIELD.iter().any(is_in) || file.path == YIELDS_FOR_EXPERIMENTS {
            continue;
        }
        for (index, line) in source.lines.iter().enumerate() {
            let yields = words(&line.code).map(|(_, word)| word);
            let yields = yields.filter(|word| YIELDS.contains(word));
            let polls = POLLS.iter().copied();
            let polls = polls.filter(|poll| is_in(&NO_POLL) && line.code.contains(poll));
            for word in yields.chain(polls) {
                let message = format!("{word}: wait by a parker or `spin_until`");
                findings.push(file.finding(index + 1, message));
            }
        }
    }
    findings
}

/// The error in a line, if there is one.
fn said(line: &str, rust: bool) -> Option<String> {
    if let Some((_, word)) = words(line).find(|(_, word)| UNFINISHED.contains(word)) {
        return Some(format!("{word}: finish it, or open an issue"));
    }
    if words(line).any(|(_, word)| word == LATER) && !names_issue(line) {
        return Some(format!("{LATER} without the number of its issue"));
    }
    if let Some(word) = MISSING_CODE.iter().find(|word| line.contains(**word)) {
        return Some(format!("{word} stands for code that is not there"));
    }
    if let Some(path) = MACHINE_PATHS.iter().find(|path| is_absolute_in(line, path)) {
        return Some(format!("{path} is a folder of one machine"));
    }
    if rust && line.contains(BESIDE) {
        return Some(format!(
            "{BESIDE} is not in a clone: test data is part of the project"
        ));
    }
    let lower = line.to_lowercase();
    let host = HOSTS.iter().find(|host| lower.contains(**host))?;
    Some(format!(
        "{host} is a registry's host: a setting of the machine"
    ))
}

/// Whether the path stands there as one that starts at the root, and not inside a longer one.
fn is_absolute_in(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-.})>*~".contains(c))
    })
}

fn names_issue(line: &str) -> bool {
    line.split('#')
        .skip(1)
        .any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::super::tree::shown;
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        shown(&check(&Tree::of(&[(path, text)])))
    }

    #[test]
    fn marks_of_the_unfinished_are_found() {
        for word in UNFINISHED {
            let expected = [format!("a.md:2: {word}: finish it, or open an issue")];
            assert_eq!(
                found("a.md", &format!("fine\nsee {word}: later\n")),
                expected
            );
        }
        assert!(found(".ci/run", "mktemp /tmp/a.XXXXXX").is_empty());
    }

    #[test]
    fn a_note_for_later_needs_its_issue() {
        let expected = [format!("a.rs:1: {LATER} without the number of its issue")];
        assert_eq!(found("a.rs", &format!("// {LATER}: more")), expected);
        assert!(found("a.rs", &format!("// {LATER}(#12): more")).is_empty());
    }

    #[test]
    fn macros_for_missing_code_are_found() {
        for word in MISSING_CODE {
            let expected = [format!("a.rs:1: {word} stands for code that is not there")];
            assert_eq!(found("a.rs", &format!("fn f() {{ {word}() }}")), expected);
        }
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for path in MACHINE_PATHS {
            let expected = [format!("a.toml:1: {path} is a folder of one machine")];
            assert_eq!(found("a.toml", &format!("x = \"{path}y\"")), expected);
            assert_eq!(found("a.toml", &format!("file://{path}y")), expected);
            assert!(found("a.toml", &format!("in some{path}y, ..{path}")).is_empty());
        }
        assert_eq!(
            found("tests/a.rs", &format!("open(\"{BESIDE}/x\")")).len(),
            1
        );
    }

    #[test]
    fn hosts_of_registries_are_found() {
        for host in HOSTS {
            let expected = [format!(
                "a.sh:1: {host} is a registry's host: a setting of the machine"
            )];
            assert_eq!(found("a.sh", &format!("curl https://{host}/x")), expected);
        }
        assert!(found("README.md", "https://crates.io/crates/paceline").is_empty());
    }

    #[test]
    fn captured_data_may_hold_anything() {
        assert!(found("crates/trace/testdata/a.txt", MACHINE_PATHS[0]).is_empty());
    }

    #[test]
    fn another_source_in_the_lock_file_is_found() {
        let text = format!("source = \"{LOCK_SOURCE}\"\nsource = \"registry+https://mirror/x\"\n");
        let expected = ["Cargo.lock:2: \"registry+https://mirror/x\" is not crates.io"];
        assert_eq!(
            shown(&lock_sources(&Tree::of(&[("Cargo.lock", &text)]))),
            expected
        );
    }

    #[test]
    fn yields_are_found_in_code_only() {
        let text = "//! Never sched_yield.\nfn f() { std::thread::yield_now(); }\n";
        let path = "crates/paceline/src/a.rs";
        let expected = [format!(
            "{path}:2: yield_now: wait by a parker or `spin_until`"
        )];
        assert_eq!(shown(&yields(&Tree::of(&[(path, text)]))), expected);
        for may in ["crates/testkit/src/a.rs", YIELDS_FOR_EXPERIMENTS] {
            assert!(yields(&Tree::of(&[(may, text)])).is_empty(), "{may}");
        }
    }

    #[test]
    fn panics_are_caught_at_the_border() {
        let text = "//! catch_unwind\nfn f() { catch_unwind(g) }\n";
        let path = "crates/paceline/src/a.rs";
        let expected = [format!(
            "{path}:2: catch_unwind: call the program's code through {BORDER}"
        )];
        assert_eq!(shown(&border(&Tree::of(&[(path, text)]))), expected);
        for may in ["crates/sim/src/a.rs", "crates/paceline/src/border/a.rs"] {
            assert!(border(&Tree::of(&[(may, text)])).is_empty(), "{may}");
        }
    }

    #[test]
    fn the_job_system_does_not_poll() {
        let text = "//! As Poll::Spin.\nfn f() { p.poll(Poll::Yield, w); task::Poll::Pending }\n";
        let path = "crates/paceline/src/a.rs";
        let expected = [format!(
            "{path}:2: Poll::Yield: wait by a parker or `spin_until`"
        )];
        assert_eq!(shown(&yields(&Tree::of(&[(path, text)]))), expected);
        assert!(yields(&Tree::of(&[("crates/workload/src/a.rs", text)])).is_empty());
    }
}
