//! Threads that could run while the CPU of their queue had nothing to do.
//!
//! A CPU runs the threads in its queue before it goes idle. So a thread that could run beside an idle CPU of
//! its own waits for something else. In ordinary programs that is a used-up quota of CPU time, and no kernel
//! has an event for it. It is *shown* where the CPU went idle, or back to sleep, when the thread was in its
//! queue already. Where the CPU only stays idle it may have been slow to wake up: it slept deeply, or is a
//! virtual one whose host had other things to do. That is so even when the interrupt that woke the thread was
//! its own, because then the wake-up is recorded before the CPU is up to speed.
//!
//! The queue of a thread follows from where it ran last, where its wake-up and migrations put it, and where
//! it ran next. Where these contradict each other, or no migrations are recorded, nothing is said. A thread
//! that is woken while it could run is left out too: it was asleep. (A kernel's letters for states are not
//! those of another, and recorders have been seen to print the wrong ones.)

use event::{Cpu, KernelEventKind, Nanos};

use super::instead::{Beside, Kept};
use super::queue::last_ran;
use crate::timeline::{IDLE, Lane, State, Stay, Timeline};

/// A CPU that had nothing to do for this long was not about to run the thread: switches, and leaving a deep
/// sleep, mostly take far less. A quota's periods are mostly 100 of these.
pub(super) const LONG: Nanos = Nanos::from_millis(1);

/// The number of events of one wait that are looked at.
const LOOK: usize = 1 << 16;

/// The stay of a thread in a CPU's queue.
struct QueueStay {
    begin: Nanos,
    end: Nanos,
    cpu: Cpu,
    /// Times at which the CPU went to sleep during the stay.
    slept: Vec<Nanos>,
}

/// The stretches in which a thread that could run all this time was beside its own CPU while that had nothing
/// to do, in the order of time. Empty for a recording that tells which threads were put aside.
pub(super) fn beside(timeline: &Timeline, thread: u32, stay: Stay) -> Vec<Beside> {
    let can_say = timeline.has_migrations && !timeline.tells_throttling();
    if !can_say || stay.end - stay.begin < LONG {
        return Vec::new();
    }
    let next = match timeline.after(thread, stay.end) {
        Some(State::Running(cpu)) => Some(cpu),
        None => None,
        Some(_) => return Vec::new(),
    };
    let last = last_ran(timeline, thread, stay.begin);
    let idles_long = |cpu: &Option<Cpu>| {
        let lane = cpu.and_then(|cpu| timeline.lane(cpu));
        lane.is_some_and(|lane| {
            idle(lane, stay.begin, stay.end).any(|(_, begin, end)| end - begin >= LONG)
        })
    };
    if !idles_long(&next) && !idles_long(&last) {
        return Vec::new();
    }
    let places = places(timeline, thread, stay, last).unwrap_or_default();
    if next.is_some() && places.last().map(|place| place.cpu) != next {
        return Vec::new();
    }
    let beside = places.iter().flat_map(|place| of_place(timeline, place));
    beside.collect()
}

fn of_place(timeline: &Timeline, place: &QueueStay) -> Vec<Beside> {
    let Some(lane) = timeline.lane(place.cpu) else {
        return Vec::new();
    };
    let online = |(_, begin, _): &(Nanos, Nanos, Nanos)| lane.is_online(*begin);
    let idle: Vec<_> = idle(lane, place.begin, place.end).filter(online).collect();
    let is_shown = idle.iter().any(|&(since, begin, end)| {
        let mut slept = place.slept.iter();
        let went_idle = since >= place.begin && end - begin >= LONG;
        went_idle || slept.any(|&time| time >= begin && time + LONG <= end)
    });
    let long = idle
        .iter()
        .filter(|(_, begin, end)| is_shown || *end - *begin >= LONG);
    let kept = if is_shown { Kept::Aside } else { Kept::Unclear };
    let beside = long.map(|&(_, begin, end)| Beside { begin, end, kept });
    beside.collect()
}

/// The times without work of a CPU between two times: since when, and the part that is between them.
fn idle(lane: &Lane, begin: Nanos, end: Nanos) -> impl Iterator<Item = (Nanos, Nanos, Nanos)> + '_ {
    let runs = lane.runs_from(begin).take_while(move |run| run.begin < end);
    let ends = lane.runs_from(begin).skip(1).map(|next| next.begin);
    let runs = runs.zip(ends.chain([Nanos::MAX]));
    runs.filter(|(run, _)| run.who == IDLE)
        .map(move |(run, until)| (run.begin, run.begin.max(begin), until.min(end)))
}

/// The queues of a thread one after the other, if they are known.
fn places(
    timeline: &Timeline,
    thread: u32,
    stay: Stay,
    last: Option<Cpu>,
) -> Option<Vec<QueueStay>> {
    let of = timeline.task(thread);
    let events = &timeline.recording().kernel;
    let from = events.partition_point(|event| event.time < stay.begin);
    let until = from + events[from..].partition_point(|event| event.time <= stay.end);
    if until - from > LOOK {
        return None;
    }
    let place = |begin, cpu| QueueStay {
        begin,
        end: stay.end,
        cpu,
        slept: Vec::new(),
    };
    let mut places: Vec<QueueStay> = last.map(|cpu| place(stay.begin, cpu)).into_iter().collect();
    for event in &events[from..until] {
        let put = match event.what {
            KernelEventKind::Waking { task, .. } if task == of && event.time > stay.begin => {
                return None;
            }
            KernelEventKind::Waking { task, target, .. } if task == of => Some(target),
            KernelEventKind::Migrate { task, to, .. } if task == of => Some(to),
            _ => None,
        };
        if let Some(cpu) = put {
            if let Some(place) = places.last_mut() {
                place.end = event.time;
            }
            places.push(place(event.time, cpu));
        }
        if let Some(place) = places.last_mut()
            && matches!(event.what, KernelEventKind::Idle(Some(_)))
            && event.cpu == place.cpu
        {
            place.slept.push(event.time);
        }
    }
    Some(places)
}
