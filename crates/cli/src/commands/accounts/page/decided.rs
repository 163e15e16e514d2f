//! What the job system itself decided in a run that recorded it: about the machine, once in a while, and on
//! each of its threads, between two jobs.

use event::{Event, EventKind, Interfered, Resized, Steered, Withheld};
use maud::{Markup, html};
use serde::Serialize;

use super::super::Account;

/// How many decisions about the machine a page has, and how many of them are lines of a table.
const DECISIONS_MAX: usize = 2_000;
const ROWS_MAX: usize = 50;

/// A decision about the machine.
#[derive(Serialize)]
pub(super) struct Decision {
    /// When, as in `waits[]`.
    start_ns: u64,
    text: String,
    #[serde(skip)]
    at: String,
    #[serde(skip)]
    thread: String,
}

impl Account {
    /// The job system's decisions about the machine: how many workers, on which CPUs.
    pub(super) fn decisions(&self) -> Vec<Decision> {
        let events = self.timeline.recording().jobs.iter();
        let decided = events.filter_map(|event| {
            Some(Decision {
                start_ns: (event.time - self.origin).0,
                text: self.about_machine(event)?,
                at: self.at(event.time),
                thread: self.of_slot(event.slot),
            })
        });
        decided.take(DECISIONS_MAX).collect()
    }

    /// The same for people; nothing if there were none.
    pub(in crate::commands) fn decisions_page(&self) -> Markup {
        let decisions = self.decisions();
        let shown = decisions.len().min(ROWS_MAX);
        html! {
            @if shown > 0 {
                h2 { "What the job system decided" }
                div.wide { table {
                    thead { tr { th.number { "at" } th { "thread" } th { "decided" } } }
                    tbody {
                        @for decision in &decisions[..shown] {
                            tr {
                                td.number { (decision.at) }
                                td { (decision.thread) }
                                td { (decision.text) }
                            }
                        }
                    }
                } }
                @if decisions.len() > shown {
                    p.note { (decisions.len() - shown) " more are marked below the frames." }
                }
            }
        }
    }

    /// A decision about the machine.
    fn about_machine(&self, event: &Event) -> Option<String> {
        let (why, number) = (event.arg >> 32, event.arg & u64::from(u32::MAX));
        Some(match event.kind {
            EventKind::Resized => {
                let why = match Resized::from_code(why) {
                    Some(Resized::Asked) => "the program asked for it",
                    Some(Resized::Narrower) => "fewer CPUs may be used",
                    Some(Resized::Wider) => "more CPUs may be used",
                    _ => "other threads want the CPUs, or do not any more",
                };
                format!("workers from now on: {number}; {why}")
            }
            EventKind::Interference => {
                let decided = Interfered::from_code(why).map_or("something else", interfered);
                format!("{decided}; workers from now on: {number}")
            }
            EventKind::Steered => match Steered::from_code(why) {
                Some(Steered::InTheWay) => format!(
                    "leaves CPU {} out: it and the thread that wakes it were in each other's way",
                    number.saturating_sub(1)
                ),
                Some(Steered::Late) => {
                    "may use all CPUs again: it started late several times".to_owned()
                }
                _ => "may use all CPUs again: nothing was in its way for a while".to_owned(),
            },
            EventKind::Spare => {
                "started a spare worker: every other one was blocked in a wait, or one made way"
                    .to_owned()
            }
            _ => return None,
        })
    }

    /// What a thread of the job system did between two jobs.
    pub(super) fn between_jobs(&self, event: &Event) -> Option<String> {
        let (high, low) = (event.arg >> 32, event.arg & u64::from(u32::MAX));
        let other = || self.of_slot(event.arg as u32);
        Some(match event.kind {
            EventKind::Split => format!("cuts a range in half: {low} items for others"),
            EventKind::Steal => format!("takes jobs from {}", other()),
            EventKind::Wake => format!("wakes {}", other()),
            EventKind::WakeWithheld => {
                let why = match Withheld::from_code(high) {
                    Some(Withheld::Searched) => "another one is awake and looks for work",
                    Some(Withheld::NobodySleeps) => "none sleeps that could run it",
                    _ => "one was woken, the others are when the batch is complete",
                };
                format!("wakes no worker: {why}")
            }
            EventKind::MakesWay => {
                "rests in the middle of its job: more urgent ones wait for a worker".to_owned()
            }
            EventKind::GoesOn => "goes on with its job".to_owned(),
            EventKind::Park => "has nothing to do and goes to sleep".to_owned(),
            EventKind::Unpark => match event.arg.checked_sub(1) {
                Some(waker) => format!("was woken by {}", self.of_slot(waker as u32)),
                None => "is awake again".to_owned(),
            },
            EventKind::MaskRestored => {
                format!(
                    "gives {} all CPUs back, which has not started in time",
                    other()
                )
            }
            EventKind::Nudged => {
                format!(
                    "has the kernel look again at the CPU that {} waits for",
                    other()
                )
            }
            EventKind::Promoted => "makes a fork a job that others can take".to_owned(),
            _ => return None,
        })
    }

    /// The thread of a thread slot.
    fn of_slot(&self, slot: u32) -> String {
        match self.timeline.recording().slots.get(&slot) {
            Some(&task) => self.thread(task),
            None => format!("thread slot {slot}"),
        }
    }
}

/// A decision about threads that others keep from running, and why.
pub(in crate::commands) fn interfered(what: Interfered) -> &'static str {
    match what {
        Interfered::Noticed => "threads wait for CPUs in most frames",
        Interfered::Fewer => "fewer workers, for a try",
        Interfered::Kept => "the fewer are left alone and get as much: kept",
        Interfered::Restored => "the fewer are no better off: all are back",
        Interfered::Probed => "all are back, to see whether CPUs are free",
        Interfered::Over => "it is over",
        _ => "something else",
    }
}
