//! How threads spent their time: the objects of `threads[]`, and a table.

use comfy_table::{CellAlignment, Table};
use console::output;
use event::Task;
use serde::Serialize;

use super::{Account, short};

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

impl Account {
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
                sleep_ns: spent.asleep.0,
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
                short(spent.asleep),
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
