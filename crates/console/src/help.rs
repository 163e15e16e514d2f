//! Help of the kernel: its names on the command line, whether this process may have it, and the kernel's
//! answers.
//!
//! A wish is `nice`, `rr`, `uclamp` or `slice`. A value after `=` replaces the usual one. A wish is tried on
//! a thread that ends right after, so that nothing of it stays.

use event::Nanos;
use paceline::Help;
use platform::{Class, Machine, Os, Platform, SchedParams};
use serde::Serialize;

const KINDS: &str =
    "nice[=-20..19], rr[=1..99], uclamp[=0..1024], slice[=TIME, such as 100us or 3ms]";

/// Reads a wish.
pub fn sched_params(text: &str) -> Result<SchedParams, String> {
    let (kind, value) = match text.split_once('=') {
        Some((kind, value)) => (kind, Some(value)),
        None => (text, None),
    };
    let number = |usual: i64, low: i64, high: i64| match value.map(str::parse::<i64>) {
        None => Ok(usual),
        Some(Ok(number)) if (low..=high).contains(&number) => Ok(number),
        Some(_) => Err(format!("{kind}: give a number from {low} to {high}")),
    };
    match kind {
        "nice" => Ok(SchedParams::nice(number(-10, -20, 19)? as i8)),
        "rr" => Ok(SchedParams::round_robin(number(1, 1, 99)? as u8)),
        "uclamp" => Ok(SchedParams::uclamp(number(1024, 0, 1024)? as u16, 1024)),
        "slice" => {
            let Length(slice) = value.unwrap_or("100us").parse()?;
            Ok(SchedParams::slice(slice))
        }
        _ => Err(format!("give some of {KINDS}")),
    }
}

/// The text of a wish for this treatment; empty if there is no such wish.
pub fn wish(how: &SchedParams) -> String {
    let class = how.class.and_then(|class| match class {
        Class::Fair { nice } => Some(format!("nice={nice}")),
        Class::RoundRobin { priority } => Some(format!("rr={priority}")),
        Class::Fifo { .. } => None,
    });
    let clamp = how.uclamp.map(|clamp| format!("uclamp={}", clamp.min));
    let slice = how
        .slice
        .map(|slice| format!("slice={}us", slice.0 / 1_000));
    class.or(clamp).or(slice).unwrap_or_default()
}

/// A length of time with its unit.
struct Length(Nanos);

impl std::str::FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Length, String> {
        let units = [("us", 1_000), ("ms", 1_000_000)];
        let read = units.iter().find_map(|(unit, nanos)| {
            let digits: u64 = text.strip_suffix(unit)?.parse().ok()?;
            digits.checked_mul(*nanos)
        });
        // Linux grants lengths in this range, and would clamp others to it.
        let range = 100_000..=100_000_000;
        match read.filter(|nanos| range.contains(nanos)) {
            Some(nanos) => Ok(Length(Nanos(nanos))),
            None => Err("slice: give a time from 100us to 100ms".into()),
        }
    }
}

/// A wish, and the kernel's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The wish.
    pub asked: String,
    /// Whether the kernel grants it.
    pub granted: bool,
    /// The reason for a refusal; empty if granted.
    pub why: String,
}

impl Answer {
    fn of(asked: &SchedParams, refused: Option<String>) -> Answer {
        Answer {
            asked: asked.to_string(),
            granted: refused.is_none(),
            why: refused.unwrap_or_default(),
        }
    }

    /// The answers that a job system got.
    pub fn told(help: &Help) -> Answer {
        Answer::of(&help.asked, (!help.granted).then(|| help.why.clone()))
    }

    /// The answer in a few words.
    pub fn words(&self) -> String {
        if self.granted {
            "granted".into()
        } else {
            format!("refused: {}", self.why)
        }
    }
}

/// All wishes, each with its usual value.
pub fn usual() -> [SchedParams; 4] {
    [
        SchedParams::nice(-10),
        SchedParams::round_robin(1),
        SchedParams::uclamp(1024, 1024),
        SchedParams::slice(Nanos::from_micros(100)),
    ]
}

/// Tries whether the kernel grants this to a thread of this process. Nothing of it stays.
pub fn probe(asked: &SchedParams) -> Answer {
    let on_its_thread = || match std::thread::scope(|scope| scope.spawn(|| try_out(asked)).join()) {
        Ok(refused) => refused,
        Err(_) => Some("the thread that tried it has panicked".into()),
    };
    Answer::of(asked, on_its_thread())
}

/// Asks for the calling thread. Returns the reason for a refusal.
fn try_out(asked: &SchedParams) -> Option<String> {
    if let Err(refused) = Os.set_sched_params(Os.thread_id(), asked) {
        return Some(refused.reason());
    }
    // Kernels without slices accept the wish and forget it.
    let slice = asked.slice?;
    let has = Os.set_sched_params(Os.thread_id(), asked).ok()?.slice;
    (has != Some(slice))
        .then(|| "the kernel takes no notice of it (Linux does from 6.12 on)".into())
}

/// Treats the calling thread, and those that it starts from now on, like this. Returns the treatment before.
pub fn set_caller_params(how: &SchedParams) -> Result<SchedParams, String> {
    let done = Os.set_sched_params(Os.thread_id(), how);
    done.map_err(|refused| refused.to_string())
}

#[cfg(test)]
mod tests {
    use platform::Uclamp;

    use super::*;

    /// Goal: each wish is read with its usual value and with another one, and written as it is read. Another
    /// text is refused with the possible ones. Method: all wishes, and values beyond each end.
    #[test]
    fn wishes_are_read() {
        let class = |text: &str| sched_params(text).map(|how| how.class);
        assert_eq!(class("nice"), Ok(Some(Class::Fair { nice: -10 })));
        assert_eq!(class("nice=5"), Ok(Some(Class::Fair { nice: 5 })));
        assert_eq!(class("rr"), Ok(Some(Class::RoundRobin { priority: 1 })));
        assert_eq!(class("rr=99"), Ok(Some(Class::RoundRobin { priority: 99 })));
        let clamp = |min| Some(Uclamp { min, max: 1024 });
        assert_eq!(
            sched_params("uclamp=512").map(|how| how.uclamp),
            Ok(clamp(512))
        );
        let slice = sched_params("slice=3ms").map(|how| how.slice);
        assert_eq!(slice, Ok(Some(Nanos::from_millis(3))));
        assert_eq!(
            sched_params("slice"),
            Ok(SchedParams::slice(Nanos(100_000)))
        );
        for text in ["nice=5", "rr=99", "uclamp=512", "slice=3000us"] {
            assert_eq!(sched_params(text).as_ref().map(wish), Ok(text.into()));
        }
        for (bad, hint) in [
            ("", "uclamp"),
            ("fifo", "rr[=1..99]"),
            ("nice=-21", "-20 to 19"),
            ("nice=", "-20 to 19"),
            ("rr=0", "1 to 99"),
            ("uclamp=1025", "0 to 1024"),
            ("slice=99us", "100us to 100ms"),
            ("slice=18446744073709551615ms", "100us to 100ms"),
        ] {
            let refused = sched_params(bad).expect_err(bad);
            assert!(refused.contains(hint), "{bad}: {refused}");
        }
    }

    /// Goal: a wish that is tried leaves no trace, and its answer is a grant or has a reason. Method: all
    /// wishes, with the calling thread's own treatment before and after.
    #[test]
    fn probing_changes_nothing() {
        let before = set_caller_params(&SchedParams::default());
        for asked in usual() {
            let answer = probe(&asked);
            assert_eq!(answer.granted, answer.why.is_empty(), "{answer:?}");
            assert!(!answer.words().is_empty());
        }
        assert_eq!(set_caller_params(&SchedParams::default()), before);
    }
}
