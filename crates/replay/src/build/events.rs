//! What threads do to others, and the points that are measured: events at times of their lives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use event::{Nanos, Task};
use sim::scenario::Segment;
use trace::explain::{LockWaits, SpinWait, spin_waits};
use trace::timeline::{Since, Slice, State, Stay};

use super::locks::FoundLocks;
use super::options::BuildOptions;
use super::people;
use super::sleeps::{self, Ends};
use super::source::Source;
use crate::program::Stretch;
use crate::{pieces, turns};

/// Something that a thread does at a point of its work.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Deed {
    /// This segment.
    Does(Segment),
    /// A measured stretch begins there, or ends.
    Point { stretch: usize, is_end: bool },
}

/// The events of all threads.
pub(super) struct Events {
    /// By thread, in the order of time.
    deeds: BTreeMap<Task, Vec<(Nanos, Deed)>>,
    /// What ended each sleep, by thread and the sleep's beginning.
    ends: BTreeMap<(Task, Nanos), Ends>,
    /// What ended the time before a thread was first seen.
    first: BTreeMap<Task, Ends>,
    /// Sleeps in which the thread lends its priority, by thread and the sleep's beginning.
    lends: BTreeSet<(Task, Nanos)>,
    /// Sleeps because of a lock, by thread and the sleep's beginning.
    lock_sleeps: BTreeSet<(Task, Nanos)>,
    /// By thread: its busy waits that can be played.
    spins: BTreeMap<Task, Vec<SpinWait>>,
    /// Sleeps by what ended them: threads, a rhythm, a length.
    counts: [usize; 3],
}

impl Events {
    pub(super) fn find(
        source: &Source<'_>,
        waits: &[(Task, Nanos, Nanos)],
        (locks, options): (&LockWaits<'_>, &BuildOptions),
        assumed: &mut Vec<String>,
    ) -> Events {
        let mut events = Events {
            deeds: BTreeMap::new(),
            ends: BTreeMap::new(),
            first: BTreeMap::new(),
            lends: BTreeSet::new(),
            lock_sleeps: BTreeSet::new(),
            spins: BTreeMap::new(),
            counts: [0; 3],
        };
        events.find_sleeps(source, locks);
        events.find_first(source);
        events.find_lent(source);
        events.find_spins(source, &options.busy, assumed);
        events.find_pieces(source, &options.pieces);
        if options.owners {
            events.find_owners(source, locks);
        }
        for &task in &source.tasks {
            for (since, priority) in people::changes(source.timeline, task) {
                let segment = people::attr_segment(priority);
                events.add(task, since, Deed::Does(segment));
            }
        }
        for (stretch, (task, begin, end)) in waits.iter().enumerate() {
            for (time, is_end) in [(*begin, false), (*end, true)] {
                events.add(*task, time, Deed::Point { stretch, is_end });
            }
        }
        for deeds in events.deeds.values_mut() {
            deeds.sort_by_key(|(time, _)| *time);
        }
        events
    }

    fn add(&mut self, task: Task, time: Nanos, deed: Deed) {
        self.deeds.entry(task).or_default().push((time, deed));
    }

    fn wakes(&mut self, source: &Source<'_>, by: Task, time: Nanos, woken: Task) {
        let name = source.names[&woken].as_str();
        self.add(by, time, Deed::Does(Segment::Wake(name.into())));
    }

    /// The ends of sleeps, and the signals that ended them.
    fn find_sleeps(&mut self, source: &Source<'_>, locks: &LockWaits<'_>) {
        let mut found = FoundLocks::default();
        for &task in &source.tasks {
            let has_rhythm = sleeps::has_rhythm(&sleeps::by_timers(source, task));
            for stay in source.ended_sleeps(task) {
                let ends = sleeps::ends(source, task, stay, has_rhythm);
                self.counts[match ends {
                    Ends::Signal(_) => 0,
                    Ends::At => 1,
                    Ends::After => 2,
                }] += 1;
                self.ends.insert((task, stay.begin), ends);
                match ends {
                    Ends::Signal(by) if locks.is_one(task, stay) => {
                        found.add((task, stay), by, locks);
                        self.lock_sleeps.insert((task, stay.begin));
                    }
                    Ends::Signal(by) => self.wakes(source, by, stay.end, task),
                    Ends::At | Ends::After => {}
                }
            }
        }
        for (task, time, deed) in found.deeds(source) {
            self.add(task, time, Deed::Does(deed));
        }
    }

    /// What brought threads into the recording that were not there from its beginning on.
    fn find_first(&mut self, source: &Source<'_>) {
        for &task in &source.tasks {
            let known = |stay: &&Stay| stay.state != State::Unknown;
            let Some(first) = source.stays[&task].iter().find(known).copied() else {
                continue;
            };
            if first.begin == source.begin {
                continue;
            }
            let before = Stay {
                begin: first.begin,
                end: first.begin,
                state: State::Unknown,
            };
            let ends = match first.state.ready() {
                Some(Since::Woken) => sleeps::ends(source, task, before, true),
                _ => Ends::At,
            };
            if let Ends::Signal(by) = ends {
                self.wakes(source, by, first.begin, task);
            }
            self.first.insert(task, ends);
        }
    }

    /// Sleeps whose threads lent their priorities to those that ended them.
    fn find_lent(&mut self, source: &Source<'_>) {
        /// A lock's waiter lends its priority just before it falls asleep.
        const NEAR: Nanos = Nanos::from_millis(1);
        for &holder in &source.tasks {
            let lent = source.timeline.priorities(holder);
            for (since, priority) in lent.filter(|(_, priority)| priority.now != priority.own) {
                let lenders: Vec<Task> = match priority.lender {
                    Some(lender) => vec![lender],
                    None => source.tasks.clone(),
                };
                let sleeps = lenders.iter().filter_map(|lender| {
                    let stays = source.stays.get(lender)?;
                    let after = stays.partition_point(|stay| stay.end <= since);
                    let sleep = stays[after..].iter().find(|stay| stay.state.is_asleep())?;
                    let is_near = sleep.begin <= since + NEAR;
                    let ends = self.ends.get(&(*lender, sleep.begin))?;
                    let is_it = is_near && *ends == Ends::Signal(holder);
                    is_it.then_some((*lender, sleep.begin))
                });
                let sleeps: Vec<_> = sleeps.collect();
                self.lends.extend(sleeps);
            }
        }
    }

    /// Busy waits, and the signals that end them.
    fn find_spins(&mut self, source: &Source<'_>, busy: &[String], assumed: &mut Vec<String>) {
        let mut count = 0;
        for wait in spin_waits(source.timeline, busy) {
            let is_known = source.names.contains_key(&wait.awaited)
                && source.names.contains_key(&wait.thread)
                && wait.awaited != wait.thread
                && source.runs_at(wait.awaited, wait.done);
            if !is_known {
                continue;
            }
            count += 1;
            self.wakes(source, wait.awaited, wait.done, wait.thread);
            self.spins.entry(wait.thread).or_default().push(wait);
        }
        if count > 0 {
            assumed.push(format!(
                "{count} busy waits end when the threads do that ended them in the recording, by the ends of \
                 their slices"
            ));
        }
    }

    /// The ends of slices with these texts in their names.
    fn find_pieces(&mut self, source: &Source<'_>, texts: &[String]) {
        if texts.is_empty() {
            return;
        }
        let names = &source.timeline.recording().names;
        for &task in &source.tasks {
            for slice in source.timeline.slices(task) {
                let name = names.word(slice.name);
                if texts.iter().any(|text| name.contains(text.as_str())) {
                    self.mark(task, slice, &pieces::mark(name));
                }
            }
        }
    }

    /// The ends of slices that mean that their thread holds a lock.
    fn find_owners(&mut self, source: &Source<'_>, locks: &LockWaits<'_>) {
        let names = &source.timeline.recording().names;
        for &task in &source.tasks {
            let slices = source.timeline.slices(task).iter();
            for slice in slices.filter(|slice| locks.is_held_in(slice)) {
                self.mark(task, slice, &turns::mark(names.word(slice.name)));
            }
        }
    }

    fn mark(&mut self, task: Task, slice: &Slice, mark: &str) {
        let mark: Arc<str> = mark.into();
        let begin = Deed::Does(Segment::Begin(mark.clone()));
        self.add(task, slice.begin, begin);
        self.add(task, slice.end, Deed::Does(Segment::End(mark)));
    }

    pub(super) fn deeds_of(&mut self, task: Task) -> Vec<(Nanos, Deed)> {
        self.deeds.remove(&task).unwrap_or_default()
    }

    pub(super) fn ends_of(&self, task: Task, sleep: Nanos) -> Option<Ends> {
        self.ends.get(&(task, sleep)).copied()
    }

    pub(super) fn lends(&self, task: Task, sleep: Nanos) -> bool {
        self.lends.contains(&(task, sleep))
    }

    pub(super) fn is_lock(&self, task: Task, sleep: Nanos) -> bool {
        self.lock_sleeps.contains(&(task, sleep))
    }

    pub(super) fn first_of(&self, task: Task) -> Option<Ends> {
        self.first.get(&task).copied()
    }

    pub(super) fn spins_of(&self, task: Task) -> &[SpinWait] {
        self.spins.get(&task).map_or(&[], Vec::as_slice)
    }

    /// What the program takes for granted.
    pub(super) fn say_more(&self, source: &Source<'_>, assumed: &mut Vec<String>) {
        let [threads, rhythm, length] = self.counts;
        assumed.push(format!(
            "of {} sleeps {threads} end when the thread that ended them comes to the same point of its work, \
             {rhythm} at the same time, and {length} after the same length",
            threads + rhythm + length
        ));
        assumed.push(
            "what a thread does next does not depend on when: it asks no clock, and finds the same in its \
             queues"
                .into(),
        );
        if !self.lock_sleeps.is_empty() {
            assumed.push(
                "a lock is held from its owner's words for that, or else from its owner's last sleep; where \
                 nothing marks it, it is not known when it was taken without a wait"
                    .into(),
            );
        }
        if source.timeline.recording().origin.is_unmarked {
            assumed.push("wake-ups are by the threads that ran, not by interrupts".into());
        }
    }
}

impl Deed {
    /// The segment of it.
    pub(super) fn segment(self) -> Segment {
        match self {
            Deed::Does(segment) => segment,
            Deed::Point { stretch, is_end } => {
                let name = Stretch::name(stretch).into();
                if is_end {
                    Segment::End(name)
                } else {
                    Segment::Begin(name)
                }
            }
        }
    }
}
