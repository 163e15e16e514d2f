//! Goal: a mistake of a program gets its error, in one line, and never a hang.
//!
//! Method: a table of small cases. Each makes one mistake on a job system of the combination, and says what
//! is wrong if the answer is not the expected one. The supervisor gives each case a process of its own: a
//! hang or a crash is one case's, and the next one goes on.

mod drops;
#[cfg(unix)]
mod fork;
mod handles;
mod hooks;
mod ids;
mod limits;
mod locals;
mod owners;
mod searches;
mod slots;
mod waits;

use std::fmt::Display;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use paceline::{Builder, JobSystem};

use crate::combination::Combination;
use crate::fault::What;
use crate::session::{Outcome, Slice, said};
use crate::watchdog;

/// One mistake. The error says what is wrong with the answer.
type Verdict = Result<(), String>;

/// A row of the table.
struct Case {
    name: &'static str,
    run: fn(&Trial) -> Verdict,
}

const fn case(name: &'static str, run: fn(&Trial) -> Verdict) -> Case {
    Case { name, run }
}

/// All of them.
const CASES: &[Case] = &[
    case("foreign-id", ids::foreign),
    case("old-id", ids::old),
    case("too-late", ids::too_late),
    case("cycle", ids::cycle),
    case("waits-for-itself", ids::waits_for_itself),
    case("wait-for-each-other", ids::wait_for_each_other),
    case("polled-by-two", ids::polled_by_two),
    case("polled-again", ids::polled_again),
    case("many-ancestors", waits::many_ancestors),
    case("many-waits", waits::many_waits),
    case("event-without-workers", waits::event_without_workers),
    case("deadline", waits::deadline_runs_nothing),
    case("polling-workers", waits::polling_workers),
    case("deep", waits::deep),
    case("nested", waits::nested),
    case("long-chain", searches::deadlock_in_a_chain),
    case("late-dependency", searches::late_dependency),
    case("starved-scope", waits::starved_scope),
    case("starved-job", waits::starved_job),
    case("max-jobs", limits::max_jobs),
    case("max-threads", limits::max_threads),
    case("complete-without-slot", limits::complete_without_slot),
    case("drop-without-slot", limits::drop_without_slot),
    case("settings", limits::settings),
    case("resize", limits::resize),
    case("long-range", limits::long_range),
    case("many-failures", limits::many_failures),
    case("endless-scope", limits::endless_scope),
    case("stuck", limits::stuck),
    case("resized-at-the-end", slots::resized_at_the_end),
    case("wider-at-the-end", slots::wider_at_the_end),
    case("forgotten", handles::forgotten),
    case("abandoned", handles::abandoned),
    case("outlived", handles::outlived),
    case("result-drop", drops::result),
    case("capture-drop", drops::capture),
    case("range-drop", drops::range),
    case("payload-drop", drops::payload),
    case("drop-at-the-end", drops::at_the_end),
    case("name-hook", hooks::name),
    case("start-hook", hooks::start_and_stop),
    case("unwaited-hook", hooks::unwaited),
    case("hook-waits", hooks::waits_for_its_job),
    case("sink-panics", hooks::sink_panics),
    case("sink-calls", hooks::sink_calls),
    case("last-owner-body", owners::body),
    case("last-owner-result", owners::result),
    case("last-owner-cancelled", owners::cancelled),
    case("last-owner-range", owners::range),
    case("last-owner-hook", owners::hook),
    case("last-owner-local", owners::local),
    case("late-local", locals::late),
    case("late-new-job", locals::new_job),
    #[cfg(unix)]
    case("fork", fork::fork),
];

/// Names of all cases.
pub(crate) fn names() -> Vec<&'static str> {
    CASES.iter().map(|case| case.name).collect()
}

/// The input of a case.
struct Trial {
    combination: Combination,
    jobs: Arc<AtomicU64>,
}

impl Trial {
    fn workers(&self) -> usize {
        self.combination.workers
    }

    fn builder(&self) -> Builder {
        self.combination.builder("misuse")
    }

    /// As many workers as fit, whatever the combination says.
    fn builder_for_this_machine(&self) -> Builder {
        self.combination.builder_for_this_machine("misuse")
    }

    fn system(&self) -> System {
        self.build(self.builder())
    }

    fn build(&self, builder: Builder) -> System {
        let js = builder.build().unwrap_or_else(|error| panic!("{error}"));
        System {
            js: Arc::new(js),
            jobs: Arc::clone(&self.jobs),
        }
    }
}

/// A job system whose jobs are counted when it goes.
struct System {
    js: Arc<JobSystem>,
    jobs: Arc<AtomicU64>,
}

impl Deref for System {
    type Target = Arc<JobSystem>;

    fn deref(&self) -> &Arc<JobSystem> {
        &self.js
    }
}

impl Drop for System {
    fn drop(&mut self) {
        self.jobs.fetch_add(self.js.stats().jobs, Ordering::Relaxed);
    }
}

/// Runs the one case of this process.
pub(crate) fn slice(slice: &Slice<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    let name = slice.options.case.first().map(String::as_str);
    let Some(case) = CASES.iter().find(|case| Some(case.name) == name) else {
        return Outcome::wrong("a process of misuse takes one case".into());
    };
    let trial = Trial {
        combination: slice.combination.clone(),
        jobs: Arc::default(),
    };
    while slice.goes_on(outcome.programs) {
        watchdog::stage(case.name);
        let verdict = catch_unwind(AssertUnwindSafe(|| (case.run)(&trial)));
        let verdict =
            verdict.unwrap_or_else(|payload| Err(format!("it panicked: {}", said(&*payload))));
        outcome.programs += 1;
        match verdict {
            Ok(()) => outcome.expected_failures += 1,
            Err(text) => {
                outcome.faults.push((What::Wrong, text));
                break;
            }
        }
    }
    outcome.jobs = trial.jobs.load(Ordering::Relaxed);
    outcome
}

/// There must be an error, and it must be one line with these words.
fn refused<T, E: Display>(what: &str, given: Result<T, E>, words: &[&str]) -> Verdict {
    let Err(error) = given else {
        return Err(format!("{what}: there is no error"));
    };
    let text = error.to_string();
    let lacks = words.iter().find(|word| !text.contains(**word));
    match lacks {
        Some(word) => Err(format!("{what}: the error lacks {word:?}: {text}")),
        None if text.lines().count() != 1 => Err(format!("{what}: not one line: {text}")),
        None => Ok(()),
    }
}

/// There must be a panic with such an error.
fn panics(what: &str, f: impl FnOnce(), words: &[&str]) -> Verdict {
    let given = catch_unwind(AssertUnwindSafe(f));
    refused(what, given.map_err(|payload| said(&*payload)), words)
}

/// It must be so.
fn check(is_so: bool, otherwise: impl Into<String>) -> Verdict {
    if is_so { Ok(()) } else { Err(otherwise.into()) }
}

/// It must have succeeded.
fn fine<T, E: Display>(what: &str, given: Result<T, E>) -> Result<T, String> {
    given.map_err(|error| format!("{what}: {error}"))
}

/// Waits for the flag, without helping.
fn until(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_micros(100));
    }
}

/// Fails a body without the noise of the panic hook.
fn fail() -> ! {
    std::panic::resume_unwind(Box::new("on purpose"))
}

/// Panics when it is dropped, unless the thread is panicking already.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            fail();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn cases_have_different_names() {
        let names: BTreeSet<&str> = names().into_iter().collect();
        assert_eq!(names.len(), CASES.len());
    }

    /// Goal: an answer that is not the expected error is told. Method: success, another error, two lines, and
    /// the right one.
    #[test]
    fn answers_are_judged() {
        let judged = |given: Result<(), &str>| refused("wait", given, &["foreign"]);
        assert_eq!(judged(Ok(())), Err("wait: there is no error".into()));
        assert!(
            judged(Err("cycle"))
                .unwrap_err()
                .contains("lacks \"foreign\"")
        );
        assert!(
            judged(Err("foreign\nid"))
                .unwrap_err()
                .contains("not one line")
        );
        assert_eq!(judged(Err("a foreign id")), Ok(()));
        assert!(panics("it", || (), &[]).is_err());
    }
}
