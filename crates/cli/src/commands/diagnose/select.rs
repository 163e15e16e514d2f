//! Which waits to explain: the meaning of the options in this trace, and a list of what exists if they match
//! nothing.

use std::collections::BTreeSet;

use console::{Failure, output};
use event::{Nanos, Task};
use trace::explain::{Selection, names};
use trace::timeline::Timeline;

use super::alike::alike;
use super::arguments::DiagnoseArguments;
use super::moment::Moment;

/// The waits to explain.
///
/// # Errors
/// If the trace has no such thread, program, slice or time; the message has the names that are most alike.
pub(super) fn selection(
    arguments: &DiagnoseArguments,
    timeline: &Timeline,
) -> Result<Selection, Failure> {
    let given = [("--slice", &arguments.slice), ("--busy", &arguments.busy)];
    for (option, texts) in given {
        for text in texts {
            let names = names(timeline);
            if !names.iter().any(|name| name.contains(text)) {
                return Err(unknown(option, "slice", text, names));
            }
        }
    }
    let default = Selection::default();
    let most = arguments.waits;
    let most = most.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
    Ok(Selection {
        limit: most.unwrap_or(default.limit),
        sleeps: most.unwrap_or(default.sleeps),
        threads: threads(&arguments.thread, timeline)?,
        processes: processes(&arguments.process, timeline)?,
        within: within(arguments, timeline)?,
        slices: arguments.slice.clone(),
        busy: arguments.busy.clone(),
        ..default
    })
}

/// The threads with these names or numbers; none if nothing is given.
fn threads(given: &[String], timeline: &Timeline) -> Result<Option<Vec<Task>>, Failure> {
    let all = &timeline.recording().threads;
    let names = all.iter().map(|one| (timeline.name(one.task), one.tid));
    let found = meant("--thread", "thread", given, &names.collect::<Vec<_>>())?;
    Ok(found.map(|found| found.iter().map(|&at| all[at].task).collect()))
}

/// The same for programs.
fn processes(given: &[String], timeline: &Timeline) -> Result<Option<Vec<usize>>, Failure> {
    let all = timeline.recording().processes.iter();
    let names: Vec<_> = all.map(|one| (one.name.clone(), one.pid)).collect();
    if let Some(first) = given.first().filter(|_| names.is_empty()) {
        return Err(Failure::Usage(format!(
            "--process {first:?}: this trace does not say which threads are of one process; choose with \
             --thread"
        )));
    }
    let found = meant("--process", "process", given, &names)?;
    Ok(found.map(|found| found.into_iter().collect()))
}

/// The positions of all that is meant by some names, numbers and patterns. A name that exists is no pattern.
/// Blanks around names do not matter: kernels cut them anywhere.
fn meant(
    option: &str,
    what: &str,
    given: &[String],
    all: &[(String, Option<u32>)],
) -> Result<Option<BTreeSet<usize>>, Failure> {
    let mut found = BTreeSet::new();
    let those = |is_it: &dyn Fn(&str, Option<u32>) -> bool| -> Vec<usize> {
        let all = all.iter().enumerate();
        let all = all.filter(|(_, (name, number))| is_it(name.trim(), *number));
        all.map(|(at, _)| at).collect()
    };
    for wanted in given {
        let (text, number): (_, Option<u32>) = (wanted.trim(), wanted.trim().parse().ok());
        let mut positions =
            those(&|name, of_it| name == text || (number.is_some() && of_it == number));
        if positions.is_empty()
            && let Ok(pattern) = glob::Pattern::new(text)
        {
            positions = those(&|name, _| pattern.matches(name));
        }
        if positions.is_empty() {
            let names = all.iter().map(|(name, _)| name.clone());
            let names = names.filter(|name| !name.is_empty()).collect();
            return Err(unknown(option, what, wanted, names));
        }
        found.extend(positions);
    }
    Ok((!given.is_empty()).then_some(found))
}

/// The stretch of time between `--from` and `--to`; none if neither is given.
fn within(
    arguments: &DiagnoseArguments,
    timeline: &Timeline,
) -> Result<Option<(Nanos, Nanos)>, Failure> {
    if arguments.from.is_none() && arguments.to.is_none() {
        return Ok(None);
    }
    let (begin, end) = timeline.span();
    if let Some(said) = arguments.from.and_then(|from| before_all(from, begin)) {
        output::note(said);
    }
    let from = arguments.from.map_or(begin, |from| from.on_clock(begin));
    let to = arguments.to.map_or(end, |to| to.on_clock(begin));
    let range = (from.max(begin), to.min(end));
    if range.0 < range.1 {
        return Ok(Some(range));
    }
    let (given, of_trace) = (
        format!("from {} to {}", seconds(from), seconds(to)),
        format!("from {} to {}", seconds(begin), seconds(end)),
    );
    Err(Failure::Usage(format!(
        "--from, --to: {given} is no part of this trace, which is {of_trace}"
    )))
}

/// A time on a trace's clock.
fn seconds(time: Nanos) -> String {
    let micros = time.0 / 1_000;
    format!("{}.{:06} s", micros / 1_000_000, micros % 1_000_000)
}

/// What to say about a beginning that is before a trace's, which changes nothing: a time since its beginning
/// was meant.
fn before_all(from: Moment, begin: Nanos) -> Option<String> {
    // The output has times to the microsecond, cut off.
    const NEAR: Nanos = Nanos::from_micros(1_000);
    match from {
        Moment::At(time) if time + NEAR < begin => Some(format!(
            "note: --from {0} is before this trace, which begins at {1}: it leaves nothing out; write +{0} \
             for that time since its beginning",
            seconds(time).trim_end_matches(" s"),
            seconds(begin),
        )),
        _ => None,
    }
}

/// Reports that there is no such thing, and lists what there is, the most alike first.
fn unknown(option: &str, what: &str, given: &str, names: BTreeSet<String>) -> Failure {
    let given: String = given.chars().take(40).collect();
    if names.is_empty() {
        return Failure::Usage(format!(
            "{option} {given:?}: this trace has no {what} with a name; leave it out"
        ));
    }
    let names = alike(&given, names);
    Failure::Usage(format!(
        "{option} {given:?}: this trace has no such {what}; {names}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a beginning before the trace's is told, with what was meant, and others are not. Method: a trace
    /// that begins after half an hour; times before, at and since its beginning, and one as it is shown.
    #[test]
    fn a_beginning_before_the_trace_is_told() {
        let begin = Nanos(2_177_558_534_900);
        let told = before_all(Moment::At(Nanos(5_000_000_000)), begin).unwrap();
        assert!(
            told.contains("--from 5.000000 is before this trace"),
            "{told}"
        );
        assert!(
            told.contains("2177.558534 s") && told.contains("+5.000000"),
            "{told}"
        );
        for fine in [
            Moment::At(begin),
            Moment::At(Nanos(2_177_558_534_000)),
            Moment::Since(Nanos(5)),
        ] {
            assert_eq!(before_all(fine, begin), None);
        }
    }
}
