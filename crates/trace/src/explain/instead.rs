//! What ran instead: the CPUs on which a runnable thread could have run.

use std::collections::BTreeMap;

use event::Nanos;

use super::{Share, Who};
use crate::timeline::{IDLE, Timeline, UNKNOWN};

/// What kept a runnable thread from running, at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kept {
    /// No CPU that it was allowed on was online.
    Offline,
    /// It was put aside: its CPU had nothing else to do, and went idle all the same.
    Aside,
    /// A thread that waited for it ran on one of them, and did nothing useful there.
    Waiter,
    /// One of them was idle, and for so long that the reason is not clear.
    Unclear,
    /// One of them was idle, and its group had time left there.
    Idle,
    /// Others ran on all of them.
    Busy,
}

/// A stretch of time with one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
    pub(super) kept: Kept,
    pub(super) by: Vec<Share>,
}

/// A thread on the path, and since when it has waited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Waiter {
    pub(super) thread: u32,
    pub(super) since: Nanos,
}

/// The CPU of the thread's queue had nothing to do: [`Kept::Aside`] or [`Kept::Unclear`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Beside {
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
    pub(super) kept: Kept,
}

/// A change on the CPUs.
#[derive(Clone, Copy)]
enum CpuChange {
    /// The CPU at this place of the list switches to this thread.
    Runs(usize, u32),
    /// It goes online or offline.
    Online(usize, bool),
    /// The quota of the thread's group is used up there, or there is more of it.
    Closed(usize, bool),
    /// The waiter at this place begins or ends to run something that it waits for.
    Useful(usize, bool),
    /// The thread begins or ends to be beside a CPU that has nothing to do.
    Beside(Option<Kept>),
}

/// The state of the CPUs.
struct Now<'a> {
    waiters: &'a [Waiter],
    who: Vec<u32>,
    online: Vec<bool>,
    closed: Vec<bool>,
    useful: Vec<u32>,
    /// The number of CPUs that are online, and the number of these that the thread could have had.
    count: u64,
    idle: u64,
    beside: Option<Kept>,
}

impl Now<'_> {
    fn waits(&self, thread: u32) -> bool {
        let mut waiters = self.waiters.iter().zip(&self.useful);
        waiters.any(|(waiter, useful)| waiter.thread == thread && *useful == 0)
    }

    fn kept(&self, burnt: bool) -> Kept {
        match self.count {
            0 => Kept::Offline,
            _ if self.beside == Some(Kept::Aside) => Kept::Aside,
            _ if burnt => Kept::Waiter,
            _ if self.idle > 0 => self.beside.unwrap_or(Kept::Idle),
            _ => Kept::Busy,
        }
    }

    fn burnt(&self) -> bool {
        !self.waiters.is_empty()
            && (0..self.who.len()).any(|at| self.online[at] && self.waits(self.who[at]))
    }

    fn is_free(&self, at: usize) -> bool {
        self.online[at] && !self.closed[at] && self.who[at] == IDLE
    }

    /// Changes a CPU.
    fn change(&mut self, at: usize, change: impl FnOnce(&mut Self)) {
        self.idle -= u64::from(self.is_free(at));
        self.count -= u64::from(self.online[at]);
        change(self);
        self.idle += u64::from(self.is_free(at));
        self.count += u64::from(self.online[at]);
    }

    /// Applies a change. Returns whether another set of CPUs is online.
    fn take(&mut self, change: CpuChange) -> bool {
        match change {
            CpuChange::Runs(at, who) => {
                self.change(at, |now| now.who[at] = who);
                false
            }
            CpuChange::Online(at, online) => {
                let was = self.online[at];
                self.change(at, |now| now.online[at] = online);
                was != online
            }
            CpuChange::Closed(at, closed) => {
                self.change(at, |now| now.closed[at] = closed);
                false
            }
            CpuChange::Useful(at, true) => {
                self.useful[at] += 1;
                false
            }
            CpuChange::Beside(kept) => {
                self.beside = kept;
                false
            }
            CpuChange::Useful(at, false) => {
                self.useful[at] = self.useful[at].saturating_sub(1);
                false
            }
        }
    }
}

/// The time during which a thread could have run on these CPUs, cut where the reason changes why it did not.
pub(super) fn instead(
    timeline: &Timeline,
    thread: u32,
    lanes: &[u32],
    waiters: &[Waiter],
    beside: &[Beside],
    (begin, end): (Nanos, Nanos),
) -> Vec<Stretch> {
    let (mut now, mut changes) = at_first(timeline, thread, lanes, waiters, (begin, end));
    // In their order: one may begin when another ends.
    for beside in beside.iter().filter(|beside| beside.end > begin) {
        if beside.begin <= begin {
            now.beside = Some(beside.kept);
        } else {
            changes.push((beside.begin, CpuChange::Beside(Some(beside.kept))));
        }
        changes.push((beside.end, CpuChange::Beside(None)));
    }
    changes.retain(|(time, _)| *time < end);
    changes.sort_by_key(|(time, _)| *time);
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut since = begin;
    let mut kept = now.kept(now.burnt());
    let mut online = now.online.clone();
    let mut at = 0;
    while since < end {
        let mut other_cpus = false;
        let time = changes.get(at).map_or(end, |(time, _)| *time);
        while let Some((_, change)) = changes.get(at).filter(|(when, _)| *when == time) {
            other_cpus |= now.take(*change);
            at += 1;
        }
        let new = now.kept(now.burnt());
        if time < end && new == kept && !other_cpus {
            continue;
        }
        if time > since {
            let by = shares(timeline, thread, lanes, &online, (since, time));
            stretches.push(Stretch {
                begin: since,
                end: time,
                kept,
                by,
            });
            since = time;
        }
        kept = new;
        online.clone_from(&now.online);
    }
    stretches
}

/// The state of these CPUs at the beginning, and the changes until the end.
fn at_first<'w>(
    timeline: &Timeline,
    thread: u32,
    lanes: &[u32],
    waiters: &'w [Waiter],
    (begin, end): (Nanos, Nanos),
) -> (Now<'w>, Vec<(Nanos, CpuChange)>) {
    let mut changes = Vec::new();
    let mut now = Now {
        waiters,
        who: Vec::new(),
        online: Vec::new(),
        closed: Vec::new(),
        useful: vec![0; waiters.len()],
        count: 0,
        idle: 0,
        beside: None,
    };
    for (at, &lane) in lanes.iter().enumerate() {
        let lane = &timeline.lanes[lane as usize];
        let mut runs = lane.runs_from(begin);
        let who = runs.next().map_or(UNKNOWN, |first| first.who);
        let later = runs.take_while(|run| run.begin < end);
        changes.extend(later.map(|run| (run.begin, CpuChange::Runs(at, run.who))));
        let from = lane.online.partition_point(|(since, _)| *since <= begin);
        let later = lane.online[from..].iter();
        let later = later.take_while(|(since, _)| *since < end);
        changes.extend(later.map(|(since, online)| (*since, CpuChange::Online(at, *online))));
        let online = lane.is_online(begin);
        now.who.push(who);
        now.online.push(online);
        now.closed.push(false);
        if timeline.is_rationed(thread) {
            let from = lane.closed.partition_point(|(_, until)| *until <= begin);
            let during = lane.closed[from..].iter();
            for (since, until) in during.take_while(|(since, _)| *since < end) {
                if *since <= begin {
                    now.closed[at] = true;
                } else {
                    changes.push((*since, CpuChange::Closed(at, true)));
                }
                changes.push((*until, CpuChange::Closed(at, false)));
            }
        }
        now.count += u64::from(online);
        now.idle += u64::from(now.is_free(at));
    }
    for (at, waiter) in waiters.iter().enumerate() {
        // The bodies that it runs while it waits for a job are what it waits for.
        let bodies = timeline.jobs.bodies.of(waiter.thread);
        let from = bodies.partition_point(|body| body.begin < waiter.since);
        let bodies = bodies[from..].iter().take_while(|body| body.begin < end);
        for body in bodies.filter(|body| body.end > begin) {
            if body.begin <= begin {
                now.useful[at] += 1;
            } else {
                changes.push((body.begin, CpuChange::Useful(at, true)));
            }
            if body.end < end {
                changes.push((body.end, CpuChange::Useful(at, false)));
            }
        }
    }
    (now, changes)
}

/// What ran on those of the CPUs that were online, each instant split equally over them.
pub(super) fn shares(
    timeline: &Timeline,
    thread: u32,
    lanes: &[u32],
    online: &[bool],
    (begin, end): (Nanos, Nanos),
) -> Vec<Share> {
    let length = end - begin;
    let mut ran: BTreeMap<Who, u64> = BTreeMap::new();
    let mut count = 0;
    for (&lane, _) in lanes.iter().zip(online).filter(|(_, online)| **online) {
        count += 1;
        let lane = &timeline.lanes[lane as usize];
        let runs = lane.runs_from(begin).take_while(|run| run.begin < end);
        let mut runs = runs.peekable();
        let mut from = begin;
        while let Some(run) = runs.next() {
            let until = runs.peek().map_or(end, |next| next.begin);
            // It could have run and did not: if it seems to have run, the recording is wrong.
            let who = if run.who == thread { UNKNOWN } else { run.who };
            if until > from {
                *ran.entry(timeline.who(who)).or_default() += (until - from).0;
                from = until;
            }
        }
    }
    split(ran, count, length)
}

/// A time in equal parts for each of `count` CPUs: nanoseconds that do not divide go to the largest
/// remainders.
fn split(ran: BTreeMap<Who, u64>, count: u64, length: Nanos) -> Vec<Share> {
    if count == 0 {
        let (who, ns) = (Who::Offline, length);
        return vec![Share { who, ns }];
    }
    let mut rest = length.0;
    let mut shares: Vec<(u64, Share)> = Vec::new();
    for (who, ns) in ran {
        let ns_each = ns / count;
        rest -= ns_each.min(rest);
        let ns_each = Nanos(ns_each);
        shares.push((ns % count, Share { who, ns: ns_each }));
    }
    shares.sort_by_key(|(remainder, share)| (std::cmp::Reverse(*remainder), share.who));
    for (_, share) in shares.iter_mut().take(rest as usize) {
        share.ns += Nanos(1);
    }
    let shares = shares.into_iter().map(|(_, share)| share);
    sorted(shares.filter(|share| share.ns > Nanos::ZERO).collect())
}

/// Shares, the longest first.
pub(super) fn sorted(mut shares: Vec<Share>) -> Vec<Share> {
    shares.sort_by_key(|share| (std::cmp::Reverse(share.ns), share.who));
    shares
}

/// Several lists of shares as one.
pub(super) fn sum<'s>(lists: impl Iterator<Item = &'s Share>) -> Vec<Share> {
    let mut sums: BTreeMap<Who, Nanos> = BTreeMap::new();
    for share in lists {
        *sums.entry(share.who).or_default() += share.ns;
    }
    sorted(
        sums.into_iter()
            .map(|(who, ns)| Share { who, ns })
            .collect(),
    )
}
