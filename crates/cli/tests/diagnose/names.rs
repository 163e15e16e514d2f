//! Names and numbers on the command line that mean nothing.

use super::common::paceline;
use super::{json, list, who};

/// Goal: a name that does not exist is said at once, with exit code 2. Method: a policy and a machine, with
/// and without `--json`, and of a trace that cannot be read.
#[test]
fn unknown_names_are_refused_before_the_trace_is_read() {
    let pathfinder = "testdata/traces/local-pathfinder-nopi.ftrace.txt.gz";
    for trace in [pathfinder, "no-such-file"] {
        for (option, part) in [
            (
                "--policy",
                "--policy: no policy is called \"nonsense\"; there are eevdf",
            ),
            ("--machine", "--machine: "),
        ] {
            for more in [&["--json"][..], &[]] {
                let mut arguments = vec!["diagnose", trace, option, "nonsense"];
                arguments.extend(more);
                let (code, out, error) = paceline(&arguments);
                assert_eq!((code, out.as_str()), (Some(2), ""), "{option}: {error}");
                let lines = error.trim_end().lines().count();
                assert!(error.contains(part) && lines == 1, "{option}: {error}");
            }
        }
    }
}

/// Goal: an option that would do nothing, or a name with a slip, is refused with what there is. Method: no
/// waits; a thread's name with two letters exchanged.
#[test]
fn slips_are_refused_with_what_there_is() {
    let trace = "testdata/traces/local-pathfinder-nopi.ftrace.txt.gz";
    let (code, _, error) = paceline(&["diagnose", trace, "--waits", "0"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("--waits"), "{error}");
    let (code, _, error) = paceline(&["diagnose", trace, "--what-if", "nice:higbus=3"]);
    assert_eq!(code, Some(2), "{error}");
    let part = "no thread that ran is called \"higbus\"; there are \"high-bus\", ";
    assert!(error.contains(part), "{error}");
    let report = json("local-pathfinder-nopi.ftrace.txt.gz", &["--waits", "1"]);
    assert_eq!(list(&report, "waits").len(), 1);
    let thread = who(&report, &list(&report, "inversions")[0]["waiter"]);
    assert_eq!(thread["thread"], "high-bus");
}
