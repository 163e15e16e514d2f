//! Input that cannot be used.

use crate::common::paceline;

const SPIN: &str = "testdata/traces/local-spin.ftrace.txt.gz";
const PI: &str = "testdata/traces/local-pathfinder-pi.ftrace.txt.gz";
const FLOW: &str = "testdata/traces/catapult-chrome-flow.json.gz";

/// Each command fails with exit code 2, prints nothing, and says these things in one line.
fn are_one_line(cases: &[(&[&str], &[&str])]) {
    for (arguments, parts) in cases {
        let (code, out, err) = paceline(&[&["diagnose"], *arguments].concat());
        assert_eq!(
            (code, out.as_str(), err.lines().count()),
            (Some(2), "", 1),
            "{arguments:?}: {err}"
        );
        for part in *parts {
            assert!(err.contains(part), "{arguments:?}: {part}: {err}");
        }
    }
}

/// Goal: bad input is one line that says what, where, and what to do, with exit code 2. Method: each kind.
#[test]
fn bad_input_is_one_line() {
    are_one_line(&[
        (&["no/such/file"], &["no/such/file", "cannot be read"]),
        (&["testdata/traces"], &["testdata/traces", "folder"]),
        (&["README.md"], &["README.md", "no trace"]),
        (&["-"], &["/dev/stdin", "./-"]),
        (&[SPIN, "--annotate", "-"], &["--annotate -", "/dev/stdout"]),
        (
            &[SPIN, "--waits", "-3"],
            &["'-3' for '--waits <N>': give a whole number from 1 to 10000000;"],
        ),
        (
            &["testdata/traces/trappy-hmp8-a.trace.dat.gz"],
            &["trace-cmd report -l -N"],
        ),
        (
            &[SPIN, "--capacity", "0=446,1=no"],
            &["--capacity", "\"1=no\"", "1024"],
        ),
        (
            &[SPIN, "--annotate", "no/such/folder/f"],
            &["--annotate", "no folder"],
        ),
        (
            &[SPIN, "--against", "no/such/trace"],
            &["no/such/trace", "cannot be read"],
        ),
        (&[SPIN, "--against", SPIN, "--from", "1846"], &["+0.5"]),
        (
            &[SPIN, "--against", SPIN, "--annotate", "f"],
            &["--annotate"],
        ),
        (
            &[SPIN, "--against", PI, "--report", PI],
            &["--report", "the trace of --against", "another file"],
        ),
        (
            &[SPIN, "--against", SPIN, "--report", "no/such/folder/f"],
            &["--report", "no folder"],
        ),
        (
            &[SPIN, "--against", PI, "--thread", "ui-main"],
            &["local-pathfinder-pi", "--thread", "no such thread"],
        ),
    ]);
}

/// Goal: what is chosen and does not exist is one line with what is most alike. Method: threads, programs,
/// slices and times, by names and by patterns.
#[test]
fn what_is_not_there_is_one_line() {
    are_one_line(&[
        (
            &[SPIN, "--thread", "ui-mian"],
            &["--thread", "ui-mian", "there are \"ui-main\"", "more"],
        ),
        (
            &[SPIN, "--thread", "worker", "--thread", "ui-[main"],
            &["--thread", "ui-[main", "\"ui-main\""],
        ),
        (
            &[SPIN, "--process", "u?-main*x"],
            &["--process \"u?-main*x\"", "no such process"],
        ),
        (
            &[FLOW, "--process", "x"],
            &["--process", "no such process", "there are"],
        ),
        (&[SPIN, "--slice", "frme"], &["--slice", "frme", "frame"]),
        (&[SPIN, "--from", "5 min"], &["--from", "+0.5"]),
        (
            &[SPIN, "--to", "5"],
            &["--from, --to", "no part of this trace", "from 1844"],
        ),
        (
            &[SPIN, "--from", "+1", "--to", "+0.5"],
            &["--from, --to", "no part of this trace"],
        ),
    ]);
}
