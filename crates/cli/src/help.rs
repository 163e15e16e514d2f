//! Help of the kernel: how the command line names it, what of it this process would be given, and what became
//! of it.
//!
//! A wish is `nice`, `rr`, `uclamp` or `slice`, each with a value after `=` if the usual one is not meant.
//! Whether it would be granted is tried on a thread that ends right after: nothing of it stays.

use event::Nanos;
use paceline::Help;
use platform::{Class, Os, Platform, Treatment};
use serde::Serialize;

const KINDS: &str =
    "nice[=-20..19], rr[=1..99], uclamp[=0..1024], slice[=TIME, such as 100us or 3ms]";

/// Reads a wish.
pub(crate) fn treatment(text: &str) -> Result<Treatment, String> {
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
        "nice" => Ok(Treatment::nice(number(-10, -20, 19)? as i8)),
        "rr" => Ok(Treatment::round_robin(number(1, 1, 99)? as u8)),
        "uclamp" => Ok(Treatment::clamped(number(1024, 0, 1024)? as u16, 1024)),
        "slice" => {
            let Length(slice) = value.unwrap_or("100us").parse()?;
            Ok(Treatment::slice(slice))
        }
        _ => Err(format!("give some of {KINDS}")),
    }
}

/// The wish that is read as this; empty if none is.
pub(crate) fn wish(how: &Treatment) -> String {
    let class = how.class.and_then(|class| match class {
        Class::Fair { nice } => Some(format!("nice={nice}")),
        Class::RoundRobin { priority } => Some(format!("rr={priority}")),
        Class::Fifo { .. } => None,
    });
    let clamp = how.clamp.map(|clamp| format!("uclamp={}", clamp.min));
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
        // What Linux grants; it would make other numbers one of these.
        let range = 100_000..=100_000_000;
        match read.filter(|nanos| range.contains(nanos)) {
            Some(nanos) => Ok(Length(Nanos(nanos))),
            None => Err("slice: give a time from 100us to 100ms".into()),
        }
    }
}

/// What was asked for, and what the kernel said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Answer {
    pub(crate) asked: String,
    pub(crate) granted: bool,
    /// Why not; empty if granted.
    pub(crate) why: String,
}

impl Answer {
    fn of(asked: &Treatment, refused: Option<String>) -> Answer {
        Answer {
            asked: asked.to_string(),
            granted: refused.is_none(),
            why: refused.unwrap_or_default(),
        }
    }

    /// What a job system was told.
    pub(crate) fn told(help: &Help) -> Answer {
        Answer::of(&help.asked, (!help.granted).then(|| help.why.clone()))
    }

    /// In a few words.
    pub(crate) fn words(&self) -> String {
        match self.granted {
            true => "granted".into(),
            false => format!("refused: {}", self.why),
        }
    }
}

/// What there is to wish for, each with its usual value.
pub(crate) fn usual() -> [Treatment; 4] {
    [
        Treatment::nice(-10),
        Treatment::round_robin(1),
        Treatment::clamped(1024, 1024),
        Treatment::slice(Nanos::from_micros(100)),
    ]
}

/// Whether this process would be given this for a thread of its own. Nothing of it stays.
pub(crate) fn probe(asked: &Treatment) -> Answer {
    let on_its_thread = || match std::thread::scope(|scope| scope.spawn(|| try_out(asked)).join()) {
        Ok(refused) => refused,
        Err(_) => Some("the thread that tried it has panicked".into()),
    };
    Answer::of(asked, on_its_thread())
}

/// Asks for the calling thread; why not, if it is not given.
fn try_out(asked: &Treatment) -> Option<String> {
    if let Err(refused) = treat_caller(asked) {
        return Some(refused);
    }
    // Kernels that know no slice take it and forget it.
    let slice = asked.slice?;
    let has = Os.treat(Os.thread_id(), asked).ok()?.slice;
    (has != Some(slice))
        .then(|| "the kernel takes no notice of it (Linux does from 6.12 on)".into())
}

/// The calling thread, and those that it starts from now on, are treated like this.
pub(crate) fn treat_caller(how: &Treatment) -> Result<Treatment, String> {
    let done = Os.treat(Os.thread_id(), how);
    done.map_err(|refused| refused.to_string())
}

#[cfg(test)]
mod tests {
    use platform::Clamp;

    use super::*;

    /// Goal: each wish is read with its usual value and with another one, and written as it is read; what is
    /// none is refused with what there is. Method: all of them, and values beyond each end.
    #[test]
    fn wishes_are_read() {
        let class = |text: &str| treatment(text).map(|how| how.class);
        assert_eq!(class("nice"), Ok(Some(Class::Fair { nice: -10 })));
        assert_eq!(class("nice=5"), Ok(Some(Class::Fair { nice: 5 })));
        assert_eq!(class("rr"), Ok(Some(Class::RoundRobin { priority: 1 })));
        assert_eq!(class("rr=99"), Ok(Some(Class::RoundRobin { priority: 99 })));
        let clamp = |min| Some(Clamp { min, max: 1024 });
        assert_eq!(treatment("uclamp=512").map(|how| how.clamp), Ok(clamp(512)));
        let slice = treatment("slice=3ms").map(|how| how.slice);
        assert_eq!(slice, Ok(Some(Nanos::from_millis(3))));
        assert_eq!(treatment("slice"), Ok(Treatment::slice(Nanos(100_000))));
        for text in ["nice=5", "rr=99", "uclamp=512", "slice=3000us"] {
            assert_eq!(treatment(text).as_ref().map(wish), Ok(text.into()));
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
            let refused = treatment(bad).expect_err(bad);
            assert!(refused.contains(hint), "{bad}: {refused}");
        }
    }

    /// Goal: asking leaves no trace, and an answer has a reason or is a grant. Method: all wishes, with the
    /// calling thread's own treatment before and after.
    #[test]
    fn probing_changes_nothing() {
        let before = treat_caller(&Treatment::default());
        for asked in usual() {
            let answer = probe(&asked);
            assert_eq!(answer.granted, answer.why.is_empty(), "{answer:?}");
            assert!(!answer.words().is_empty());
        }
        assert_eq!(treat_caller(&Treatment::default()), before);
    }
}
