//! The end of reading: order, wakers, names.

use event::{Cpu, KernelEvent, KernelEventKind, Nanos};

use super::{Builder, QUEUED};
use crate::{CpuFacts, Recording, Wakers};

impl Builder {
    /// The recording.
    pub(crate) fn finish(mut self) -> Recording {
        self.close_gaps();
        let mut recording = self.recording;
        debug_assert!(self.is_mixed || recording.kernel.is_sorted_by_key(|event| event.time));
        if self.is_mixed {
            recording.kernel.sort_by_key(|event| event.time);
        }
        in_order(&mut recording.marks, |mark| mark.time);
        for counter in &mut recording.counters {
            in_order(&mut counter.values, |(time, _)| *time);
        }
        recording.origin.wakers = match (self.has_decisions, self.has_queued) {
            (true, _) => Wakers::Decided,
            (false, true) => Wakers::Queued,
            (false, false) => Wakers::Unknown,
        };
        if let Some(told) = self.facts.wakers {
            recording.origin.wakers = told;
        }
        if self.has_queued {
            settle_wakers(&mut recording.kernel, self.has_decisions);
        }
        let cpus = self.cpus.iter().enumerate().filter(|(_, seen)| seen.exists);
        recording.cpus = cpus
            .map(|(number, _)| {
                let cpu = Cpu(number as u32);
                let told = self.facts.cpus.get(&cpu).copied();
                told.unwrap_or(CpuFacts {
                    cpu,
                    capacity: None,
                    max_khz: None,
                })
            })
            .collect();
        (recording.threads, recording.processes) = self.people.finish();
        for (task, facts) in self.facts.threads {
            let thread = &mut recording.threads[task.index()];
            thread.priority = facts.priority.unwrap_or(thread.priority);
            thread.allowed = facts.allowed;
            thread.tid = thread.tid.filter(|_| !facts.is_made_up);
        }
        self.calls.finish(&mut recording);
        self.fences.finish(&mut recording);
        recording
    }

    /// Puts gaps without a later event at the end.
    fn close_gaps(&mut self) {
        let time = self.latest.kernel.max(self.latest.mark);
        for (number, seen) in self.cpus.iter_mut().enumerate() {
            if let Some(events) = seen.gap.take() {
                let cpu = Cpu(number as u32);
                let what = KernelEventKind::Lost { events };
                self.recording.kernel.push(KernelEvent { time, cpu, what });
            }
        }
    }
}

/// Sorts a list by time unless it is sorted, equal times as they are.
fn in_order<T>(list: &mut [T], time: impl Fn(&T) -> Nanos) {
    if !list.is_sorted_by_key(&time) {
        list.sort_by_key(time);
    }
}

/// One event for each wake-up. Where there are decisions (`sched_waking`), they have the waker and the time.
/// The queueing that follows (`sched_wakeup`) adds only the CPU that the task was put on, which the decision
/// cannot know: the target in it is where the task ran last. Without decisions, the queueing is all there is.
fn settle_wakers(events: &mut Vec<KernelEvent>, has_decisions: bool) {
    let mut last_of: Vec<usize> = Vec::new();
    let mut kept = 0;
    for position in 0..events.len() {
        let mut event = events[position];
        if let KernelEventKind::Switch {
            next: Some(task), ..
        } = event.what
            && let Some(last) = last_of.get_mut(task.index())
        {
            *last = usize::MAX;
        }
        if let KernelEventKind::Waking { task, target, .. } = &mut event.what {
            if last_of.len() <= task.index() {
                last_of.resize(task.index() + 1, usize::MAX);
            }
            let last = &mut last_of[task.index()];
            let is_queued = target.0 & QUEUED != 0;
            target.0 &= !QUEUED;
            if has_decisions && is_queued {
                let decided = std::mem::replace(last, usize::MAX);
                let put = *target;
                if let Some(KernelEvent {
                    what: KernelEventKind::Waking { target, .. },
                    ..
                }) = events.get_mut(decided)
                {
                    *target = put;
                }
                continue;
            }
            *last = kept;
        }
        events[kept] = event;
        kept += 1;
    }
    events.truncate(kept);
}
