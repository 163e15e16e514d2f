//! The table of pairs in `docs/what-if.md`: what a change was predicted to be worth, and what it was worth.

use serde_json::Value;

use super::common::{fine, paceline};
use super::list;
use super::made::table_in;

/// The kernel on which the pairs were recorded: see `testdata/pairs/README.md`.
const POLICY: &str = "eevdf-6.18-hrtick";
/// How many recordings there are of each program.
const TIMES: usize = 3;
/// How far off a prediction may be, as a part of what was measured.
const OFF_MAX: f64 = 0.2;

/// A pair: its name, the change, and the waits in question.
struct Pair {
    name: &'static str,
    change: &'static str,
    waits: Waits,
}

/// The waits in question, and what stands for all of them.
#[derive(Clone, Copy)]
enum Waits {
    /// `ui` waits for a job of `worker`; the median.
    Jobs,
    /// The same, and the mean: few of the waits are long.
    JobsOnAverage,
    /// `high` waits for the lock of `low`; the median.
    Locks,
}

const fn pair(name: &'static str, change: &'static str, waits: Waits) -> Pair {
    Pair {
        name,
        change,
        waits,
    }
}

/// All pairs of `tests/pairs/scenes.rs`. The changes say what that changes, and no more.
const PAIRS: [Pair; 18] = [
    pair("lock-realtime", "inherit", Waits::Locks),
    pair("lock-fair", "inherit", Waits::Locks),
    pair("hand-over", "hand-over", Waits::Locks),
    pair("hogs-away", "without:hog-*", Waits::Jobs),
    pair("one-hog-away", "without:hog-b", Waits::Jobs),
    pair("nice", "nice:worker=0", Waits::Jobs),
    pair("nice-hogs", "nice:hog-*=10", Waits::Jobs),
    pair("round-robin", "rr:worker=10", Waits::Jobs),
    pair("wider-mask", "mask:worker=0-1", Waits::Jobs),
    pair("hogs-moved", "mask:hog-b=0", Waits::Jobs),
    pair("one-cpu-fewer", "cpus=1", Waits::Jobs),
    pair("busy-wait", "park:ui", Waits::Jobs),
    pair("slice", "slice:worker=0.5 ms", Waits::Jobs),
    pair("slice-hogs", "slice:hog-*=1 ms", Waits::Jobs),
    pair("quota", "quota:ui,worker,hog-a=70%", Waits::JobsOnAverage),
    pair("pieces", "cut:piece=4", Waits::Jobs),
    pair("less-work", "work:worker=50%", Waits::Jobs),
    pair("earlier", "earlier:decoder=2 ms", Waits::Jobs),
];

impl Waits {
    fn options(self) -> [&'static str; 4] {
        match self {
            Waits::Jobs | Waits::JobsOnAverage => ["--slice", "wait for job", "--thread", "ui"],
            Waits::Locks => ["--slice", "lock", "--thread", "high"],
        }
    }

    fn key(self) -> &'static str {
        match self {
            Waits::JobsOnAverage => "mean",
            Waits::Jobs | Waits::Locks => "median",
        }
    }

    /// What stands for these lengths.
    fn of(self, mut lengths: Vec<u64>) -> u64 {
        lengths.sort_unstable();
        match self {
            Waits::JobsOnAverage => lengths.iter().sum::<u64>() / lengths.len() as u64,
            Waits::Jobs | Waits::Locks => lengths[lengths.len() / 2],
        }
    }
}

/// What a recording says that a change would be worth.
enum Predicted {
    Length(u64),
    /// What it would have been.
    Refused(Option<u64>),
}

impl Pair {
    fn path(&self, which: &str, number: usize) -> String {
        format!(
            "testdata/pairs/{}.{which}-{number}.ftrace.txt.gz",
            self.name
        )
    }

    /// What stands for the waits in each recording, in the order of lengths.
    fn measured(&self, which: &str) -> Vec<u64> {
        let of = |number| {
            let path = self.path(which, number);
            let mut arguments = vec!["diagnose", &path, "--json"];
            arguments.extend(self.waits.options());
            let report: Value = serde_json::from_str(&fine(&arguments)).unwrap();
            let waits = list(&report, "waits").iter();
            self.waits.of(waits
                .map(|wait| wait["duration_ns"].as_u64().unwrap())
                .collect())
        };
        let mut measured: Vec<u64> = (1..=TIMES).map(of).collect();
        measured.sort_unstable();
        measured
    }

    fn predicted(&self, number: usize) -> Predicted {
        let path = self.path("before", number);
        let mut arguments = vec!["diagnose", &path, "--json", "--policy", POLICY];
        arguments.extend(["--what-if", self.change]);
        arguments.extend(self.waits.options());
        // Exit code 1: no wait has an answer; 2: there is no such change.
        let (code, out, _) = paceline(&arguments);
        if code == Some(2) {
            return Predicted::Refused(None);
        }
        let report: Value = serde_json::from_str(&out).unwrap();
        let groups = list(&list(&report, "what_if")[0], "groups");
        assert_eq!(groups.len(), 1, "{}: {groups:?}", self.name);
        let length = &groups[0][self.waits.key()];
        match (length["predicted_ns"].as_u64(), length["refused"].is_null()) {
            (Some(length), true) => Predicted::Length(length),
            (length, _) => Predicted::Refused(length),
        }
    }
}

fn ms(length: u64) -> String {
    format!("{:.2}", length as f64 / 1e6)
}

/// How often predictions were near, refused, and wrong.
#[derive(Default)]
struct Counts {
    near: usize,
    refused: usize,
    wrong: Vec<String>,
    /// Pairs with a prediction that was near.
    pairs: usize,
}

fn row(pair: &Pair, counts: &mut Counts) -> String {
    let [before, after] = ["before", "after"].map(|which| pair.measured(which));
    let truth = after[TIMES / 2];
    let near_before = counts.near;
    let told = (1..=TIMES).map(|number| {
        let predicted = pair.predicted(number);
        let (Predicted::Length(length) | Predicted::Refused(Some(length))) = predicted else {
            counts.refused += 1;
            return "no such change".to_owned();
        };
        let off = (length as f64 - truth as f64) / truth as f64;
        let text = format!("{} ({:+.0} %)", ms(length), off * 100.0);
        if matches!(predicted, Predicted::Refused(_)) {
            counts.refused += 1;
            format!("refused: {text}")
        } else {
            if off.abs() <= OFF_MAX {
                counts.near += 1;
            } else {
                counts.wrong.push(format!("{}: {text}", pair.name));
            }
            text
        }
    });
    let told: Vec<String> = told.collect();
    counts.pairs += usize::from(counts.near > near_before);
    let spread = |lengths: &[u64]| {
        let (least, most) = (ms(lengths[0]), ms(lengths[TIMES - 1]));
        format!("{} ({least} to {most})", ms(lengths[TIMES / 2]))
    };
    let key = pair.waits.key();
    format!(
        "| {} | `{}` | {key} | {} | {} | {} |\n",
        pair.name,
        pair.change,
        spread(&before),
        spread(&after),
        told.join(", ")
    )
}

/// Goal: what a replay says of a remedy is what the remedy does, within a fifth, or nothing. Method: recorded
/// pairs of programs, without and with it, three recordings each; each recording without it predicts, and the
/// middle one of those with it is the truth. The guide has all of them. `PACELINE_WRITE_TABLE=1` before the
/// test writes the table.
#[test]
fn the_guide_has_what_remedies_were_worth() {
    let mut counts = Counts::default();
    let mut rows = String::new();
    for pair in &PAIRS {
        rows += &row(pair, &mut counts);
    }
    let table = format!(
        "| pair | change | | before, ms | with the remedy, ms | predicted of each recording before, ms |\n\
         |---|---|---|---|---|---|\n{rows}\n{} predictions of {} pairs are within 20 % of what was measured, \
         {} were refused, {} were wrong.\n",
        counts.near,
        counts.pairs,
        counts.refused,
        counts.wrong.len()
    );
    table_in("docs/what-if.md", "pairs", &table);
    assert!(counts.wrong.is_empty(), "{:?}", counts.wrong);
    assert!(counts.pairs >= 10, "{} pairs", counts.pairs);
}
