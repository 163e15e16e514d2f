//! What the program says before it loads a scheduler. Its two modules are tried here, without a kernel and
//! without clang.

#[path = "../src/machine.rs"]
#[allow(dead_code, reason = "the program uses the rest")]
mod machine;
#[path = "../src/options.rs"]
#[allow(dead_code, reason = "the program uses the rest")]
mod options;

use std::fs;

use clap::Parser;

use options::Options;

fn options(words: &str) -> Options {
    let words = ["paceline-scx"].into_iter().chain(words.split_whitespace());
    Options::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"))
}

/// Goal: no option is accepted that does nothing. Method: each of them alone and with what it needs.
#[test]
fn an_option_that_does_nothing_is_refused() {
    for (words, part) in [
        ("--policy rustland-333 --hints", "--hints: this policy"),
        ("--pages 100", "--pages: there are pages only with --hints"),
        (
            "--policy rustland-pre333 --credit 5",
            "--credit: this policy has none",
        ),
        (
            "--bpf core --kicks true",
            "--kicks: the core cannot interrupt",
        ),
        ("--rounds 5", "--rounds: nothing is recorded"),
    ] {
        let why = options(words).misuse().expect(words);
        assert!(
            why.starts_with(part) && !why.contains('\n'),
            "{words}: {why}"
        );
    }
    for words in [
        "",
        "--hints --pages 1024",
        "--credit 5",
        "--kicks false",
        "--record file --rounds 5",
        "--policy rustland-333 --kicks true",
    ] {
        assert_eq!(options(words).misuse(), None, "{words}");
    }
    assert_eq!(
        (
            options("").rounds(),
            options("--record f --rounds 5").rounds()
        ),
        (500, 5)
    );
    for words in ["--hints --pages 0", "--hints --pages 1025"] {
        assert!(Options::try_parse_from(["it"].into_iter().chain(words.split(' '))).is_err());
    }
}

/// Goal: a kernel without what the libraries take is refused in one line. Method: folders as the kernel has
/// them, one file after the other.
#[test]
fn a_kernel_that_cannot_do_it_is_refused() {
    let folder = std::env::temp_dir().join(format!("paceline-scx-test-{}", std::process::id()));
    let refused = |part: &str| {
        let why = machine::check(&folder).expect_err(part);
        assert!(why.contains(part) && !why.contains('\n'), "{why}");
    };
    refused("has no sched_ext");
    fs::create_dir_all(folder.join("sched_ext/root")).expect("a folder");
    refused("does not describe its types");
    fs::create_dir(folder.join("btf")).expect("a folder");
    fs::write(folder.join("btf/vmlinux"), "").expect("a file");
    if machine::check(&folder).is_ok() {
        fs::write(folder.join("sched_ext/state"), "enabled\n").expect("a file");
        fs::write(folder.join("sched_ext/root/ops"), "other\n").expect("a file");
        refused("another scheduler is loaded: other; stop it first");
    } else {
        refused("takes root");
    }
    fs::remove_dir_all(&folder).expect("it is ours");
}

/// Goal: a record that cannot be written is refused before there is anything to write. Method: a folder that
/// is missing.
#[test]
fn a_record_is_opened_first() {
    let why = machine::record_file("/nonexistent/record".as_ref()).expect_err("no such folder");
    assert!(
        why.starts_with("cannot write /nonexistent/record: "),
        "{why}"
    );
}
