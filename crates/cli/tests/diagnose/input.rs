//! Input that cannot be used.

use crate::common::paceline;

/// Goal: bad input is one line that says what, where, and what to do, with exit code 2. Method: each kind.
#[test]
fn bad_input_is_one_line() {
    let spin = "testdata/traces/local-spin.ftrace.txt.gz";
    for (arguments, parts) in [
        (
            &["no/such/file"][..],
            &["no/such/file", "cannot be read"][..],
        ),
        (&["testdata/traces"], &["testdata/traces", "folder"]),
        (&["README.md"], &["README.md", "no trace"]),
        (
            &["testdata/traces/trappy-hmp8-a.trace.dat.gz"],
            &["trace-cmd report -l -N"],
        ),
        (
            &[spin, "--thread", "ui-mian"],
            &["--thread", "ui-mian", "there are \"ui-main\"", "more"],
        ),
        (
            &[spin, "--thread", "worker", "--thread", "ui-[main"],
            &["--thread", "ui-[main", "\"ui-main\""],
        ),
        (
            &[spin, "--process", "u?-main*x"],
            &["--process \"u?-main*x\"", "no such process"],
        ),
        (
            &[
                "testdata/traces/catapult-chrome-flow.json.gz",
                "--process",
                "x",
            ],
            &["--process", "no such process", "there are"],
        ),
        (&[spin, "--from", "5 min"], &["--from", "+0.5"]),
        (
            &[spin, "--to", "5"],
            &["--from, --to", "no part of this trace", "from 1844"],
        ),
        (
            &[spin, "--from", "+1", "--to", "+0.5"],
            &["--from, --to", "no part of this trace"],
        ),
        (&[spin, "--slice", "frme"], &["--slice", "frme", "frame"]),
        (
            &[spin, "--capacity", "0=446,1=no"],
            &["--capacity", "\"1=no\"", "1024"],
        ),
        (
            &[spin, "--annotate", "no/such/folder/f"],
            &["--annotate", "no folder"],
        ),
    ] {
        let (code, out, err) = paceline(&[&["diagnose"], arguments].concat());
        assert_eq!(
            (code, out.as_str(), err.lines().count()),
            (Some(2), "", 1),
            "{arguments:?}: {err}"
        );
        for part in parts {
            assert!(err.contains(part), "{arguments:?}: {part}: {err}");
        }
    }
}
