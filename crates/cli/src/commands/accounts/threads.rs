//! How threads spent their time: the objects of `threads[]`, and a table.

use std::cmp::Reverse;

use comfy_table::{CellAlignment, Table};
use console::output;
use event::{Nanos, Task};
use serde::Serialize;
use trace::explain::Selection;
use trace::timeline::Spent;

use super::{Account, plural, short};

/// How many rows the table of totals has.
const ROWS_MAX: usize = 8;

/// One thread.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct ThreadJson {
    pub(in crate::commands) name: String,
    pub(in crate::commands) tid: Option<u32>,
    pub(in crate::commands) run_ns: u64,
    pub(in crate::commands) runnable_ns: u64,
    /// The part of it in which a quota kept the thread from running; none: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::commands) throttled_ns: Option<u64>,
    pub(in crate::commands) sleep_ns: u64,
    pub(in crate::commands) switches: Switches,
}

/// How often it left its CPU: because it had to wait, and though it could have gone on.
#[derive(Clone, Copy, Debug, Serialize)]
pub(in crate::commands) struct Switches {
    pub(in crate::commands) voluntary: u64,
    pub(in crate::commands) involuntary: u64,
}

/// The times of the threads of a trace, in one stretch of it.
pub(in crate::commands) struct Totals {
    pub(in crate::commands) during: (Nanos, Nanos),
    /// Those with the most time on CPUs first; no times: the trace does not say which threads ran.
    threads: Vec<(Task, Option<Spent>)>,
}

/// One thread of a trace.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct TotalJson {
    name: String,
    tid: Option<u32>,
    process: Option<String>,
    #[serde(flatten)]
    times: Option<Times>,
}

/// They sum to the stretch of time, except that `preempted_ns` is a part of `runnable_ns`.
#[derive(Debug, Serialize)]
struct Times {
    running_ns: u64,
    runnable_ns: u64,
    preempted_ns: u64,
    sleeping_ns: u64,
    blocked_ns: u64,
    /// Not known, or there was no such thread.
    other_ns: u64,
}

impl Account {
    /// The times of the selected threads in a stretch of time.
    pub(in crate::commands) fn totals(
        &self,
        selection: &Selection,
        during: (Nanos, Nanos),
    ) -> Totals {
        let timeline = &self.timeline;
        let tasks = timeline.threads();
        let tasks = tasks.filter(|task| selection.has(*task, timeline.process(*task)));
        let spent = |task| {
            timeline
                .says_who_ran()
                .then(|| timeline.spent_within(task, during))
        };
        let mut threads: Vec<_> = tasks.map(|task| (task, spent(task))).collect();
        threads.sort_by_key(|(task, spent)| {
            let spent = spent.unwrap_or_default();
            (Reverse((spent.running, spent.runnable)), *task)
        });
        Totals { during, threads }
    }

    /// Those times as JSON.
    pub(in crate::commands) fn totals_json(&self, totals: &Totals) -> Vec<TotalJson> {
        let all = totals.during.1 - totals.during.0;
        let times = |spent: Spent| Times {
            running_ns: spent.running.0,
            runnable_ns: spent.runnable.0,
            preempted_ns: spent.preempted.0,
            sleeping_ns: spent.sleeping.0,
            blocked_ns: spent.blocked.0,
            other_ns: (all - spent.known()).0,
        };
        let threads = totals.threads.iter();
        let json = threads.map(|(task, spent)| TotalJson {
            name: self.timeline.name(*task),
            tid: self.timeline.tid(*task),
            process: self.timeline.program(*task).map(str::to_owned),
            times: spent.map(times),
        });
        json.collect()
    }

    /// The threads with the most time on CPUs, as a table; none if it is not known which threads ran.
    pub(in crate::commands) fn totals_table(&self, totals: &Totals) -> Option<String> {
        let known = totals.threads.iter();
        let known = known.filter_map(|(task, spent)| Some((*task, (*spent)?)));
        let known: Vec<(Task, Spent)> = known
            .filter(|(_, spent)| spent.known() > Nanos::ZERO)
            .collect();
        let mut table = output::table();
        table.set_header(["thread", "ran", "runnable", "preempted", "slept", "blocked"]);
        for (task, spent) in known.iter().take(ROWS_MAX) {
            table.add_row([
                self.of_program(*task),
                short(spent.running),
                short(spent.runnable),
                short(spent.preempted),
                short(spent.sleeping),
                short(spent.blocked),
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let more = match known.len().saturating_sub(ROWS_MAX) {
            0 => String::new(),
            more => format!(
                "\n{}, with less time on CPUs: see --json",
                plural(more, "more thread")
            ),
        };
        (!known.is_empty()).then(|| format!("{table}{more}"))
    }

    /// The threads of our own job system, in the order of their thread slots; none if it is not known when
    /// they ran.
    fn own_threads(&self) -> Option<Vec<Task>> {
        let slots = &self.timeline.recording().slots;
        let threads = slots.values().copied().collect();
        self.timeline.says_who_ran().then_some(threads)
    }

    /// The time of those threads, by state.
    pub(in crate::commands) fn threads_json(&self) -> Option<Vec<ThreadJson>> {
        let threads = self.own_threads()?.into_iter();
        let json = |task| {
            let spent = self.timeline.spent(task);
            ThreadJson {
                name: self.timeline.name(task),
                tid: self.timeline.tid(task),
                run_ns: spent.running.0,
                runnable_ns: spent.runnable.0,
                throttled_ns: self
                    .timeline
                    .tells_throttling()
                    .then_some(spent.throttled.0),
                sleep_ns: (spent.sleeping + spent.blocked).0,
                switches: Switches {
                    voluntary: spent.voluntary,
                    involuntary: spent.involuntary,
                },
            }
        };
        Some(threads.map(json).collect())
    }

    /// The same for people.
    pub(in crate::commands) fn threads_table(&self) -> Option<Table> {
        let mut table = output::table();
        table.set_header(["thread", "ran", "runnable", "slept", "waited", "preempted"]);
        for task in self.own_threads()? {
            let spent = self.timeline.spent(task);
            table.add_row([
                self.thread(task),
                short(spent.running),
                short(spent.runnable),
                short(spent.sleeping + spent.blocked),
                format!("{} times", spent.voluntary),
                format!("{} times", spent.involuntary),
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        Some(table)
    }
}
