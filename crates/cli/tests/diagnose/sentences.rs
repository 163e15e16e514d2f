//! The words of the findings.

use super::common::paceline;
use super::text;

/// The trace of a board with small and large CPUs, which has their frequencies and not their capacities.
const LISA: &str = "lisa-juno-rtapp.report-N.txt.gz";

/// Goal: what is computed from a guess of the CPUs' speeds is told as inferred, in the sentence and beside
/// its bar; with the speeds given the frequencies are known, and no line says that speeds are missing.
/// Method: a trace that has frequencies and no capacities.
#[test]
fn guessed_speeds_are_inferred() {
    let guessed = text(LISA, &[]);
    for part in [
        "longer on smaller CPUs than on the largest (inferred)",
        "task_r20_5-60 itself ran on a small CPU (inferred)",
        "longer at low frequencies than at the highest (inferred)",
        "see --capacity",
    ] {
        assert!(guessed.contains(part), "{part}: {guessed}");
    }
    let given = text(LISA, &["--capacity", "0=446,1-2=1024,3-5=446"]);
    let known = "longer at low frequencies than at the highest.";
    assert!(given.contains(known), "{given}");
    assert!(!given.contains("see --capacity"), "{given}");
}

/// Goal: sentences are plain: one other thread is "1 other", and no comma stands before another mark. Method:
/// traces with turns, late frames and many threads, alone and with a change.
#[test]
fn sentences_are_well_formed() {
    for trace in [
        "local-spin.ftrace.txt.gz",
        "trappy-hmp8-a.report.txt.gz",
        "catapult-android41-dualcore.systrace.txt.gz",
        "ms-galaxy-s20.perfetto-trace.gz",
    ] {
        let path = format!("testdata/traces/{trace}");
        let plain = text(trace, &[]);
        let (_, changed, _) =
            paceline(&["diagnose", &path, "--what-if", "work:*=99%", "--seeds", "1"]);
        for told in [plain.as_str(), &changed] {
            for wrong in [",;", ",:", ",,", " 1 another", " 1 others"] {
                assert!(!told.contains(wrong), "{trace}: {wrong}: {told}");
            }
        }
    }
}
