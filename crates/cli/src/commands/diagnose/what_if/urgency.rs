//! Priorities of threads as changes: a better one, or a real-time class.

use policy::Attr;
use replay::ProgramThread;
use sim::scenario::Segment;

/// The priorities of ordinary threads, as the kernel counts them, the best first.
const ORDINARY: std::ops::RangeInclusive<i16> = 100..=139;
/// The least urgent priority of a real-time thread.
const REALTIME_LAST: i16 = 98;
/// By so much the niceness of a thread is better than that of another one which it is to go before.
const BETTER: i16 = 5;

/// A thread with the priority of the one that waits for it, if that is better than the priority of what ran;
/// else with one that is. `priorities`: of the waiter, of the thread, and of what ran. None: there is no such
/// priority, or the thread has a better one at some time, which the change would take away.
pub(super) fn better(thread: &ProgramThread, priorities: [Option<i16>; 3]) -> Option<String> {
    let [waiter, Some(own), Some(runner)] = priorities else {
        return None;
    };
    let above = if ORDINARY.contains(&runner) {
        (runner - BETTER).max(*ORDINARY.start())
    } else {
        runner - 1
    };
    let wanted = waiter.filter(|waiter| *waiter < runner).unwrap_or(above);
    if wanted >= runner || wanted >= own {
        return None;
    }
    change(thread, wanted)
}

/// A thread with the least of the real-time priorities.
pub(super) fn realtime(thread: &ProgramThread) -> Option<String> {
    change(thread, REALTIME_LAST)
}

/// A thread with this priority; none if it has a better one at some time.
fn change(thread: &ProgramThread, wanted: i16) -> Option<String> {
    let name = &thread.name;
    match wanted {
        _ if best(thread) < wanted => None,
        0..=REALTIME_LAST => Some(format!("fifo:{name}={}", 99 - wanted)),
        wanted if ORDINARY.contains(&wanted) => Some(format!("nice:{name}={}", wanted - 120)),
        _ => None,
    }
}

/// The best priority that a thread has at any time.
fn best(thread: &ProgramThread) -> i16 {
    let of = |attr: Attr| {
        if attr.discipline.is_realtime() {
            99 - i16::from(attr.priority)
        } else {
            120 + i16::from(attr.nice)
        }
    };
    let later = thread.segments.iter().filter_map(|segment| match segment {
        Segment::Nice(nice) => Some(of(Attr::nice(*nice))),
        Segment::Fifo(priority) => Some(of(Attr::fifo(*priority))),
        _ => None,
    });
    later.fold(of(thread.attr.clone()), i16::min)
}

#[cfg(test)]
mod tests {
    use super::super::made::thread;
    use super::*;

    /// Goal: a better priority is the waiter's, or else one above that of what ran; it is none where the
    /// thread has one as good, where it has a better one at another time, or where there is none. Method:
    /// pairs of priorities; threads that have another niceness later than at their birth.
    #[test]
    fn a_priority_is_better_or_none() {
        let born = |nice, later: &[Segment]| {
            let mut thread = thread("ui");
            thread.attr = Attr::nice(nice);
            thread.segments.extend_from_slice(later);
            thread
        };
        let plain = born(0, &[]);
        for (priorities, expected) in [
            // Waiter, thread, what ran.
            ([110, 120, 120], Some("nice:ui=-10")),
            ([120, 120, 120], Some("nice:ui=-5")),
            ([120, 120, 104], Some("nice:ui=-20")),
            ([120, 120, 100], None),
            ([49, 120, 79], Some("fifo:ui=50")),
            ([120, 120, 49], Some("fifo:ui=51")),
            ([120, 120, 0], None),
            ([110, 110, 120], None),
        ] {
            let told = better(&plain, priorities.map(Some));
            assert_eq!(told.as_deref(), expected, "{priorities:?}");
        }
        assert_eq!(better(&plain, [Some(110), None, Some(120)]), None);
        let lowered = born(-10, &[Segment::Nice(0)]);
        let told = better(&lowered, [Some(110), Some(120), Some(120)]);
        assert_eq!(told.as_deref(), Some("nice:ui=-10"));
        let raised = born(0, &[Segment::Nice(-12)]);
        assert_eq!(better(&raised, [Some(110), Some(120), Some(120)]), None);
        assert_eq!(realtime(&raised).as_deref(), Some("fifo:ui=1"));
        assert_eq!(realtime(&born(0, &[Segment::Fifo(10)])), None);
    }
}
