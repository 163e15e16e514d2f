//! The times for which threads were put aside, as slices below those threads: Perfetto keeps the events, and
//! shows the thread as one that could run.

use std::collections::BTreeMap;
use std::io;

use event::{KernelEvent, KernelEventKind, Nanos, Task};

use super::lanes;
use super::packets::Packets;
use super::tracks::WrittenTracks;
use crate::Annotation;

const TRACK: &str = "CPU quota";
const NAME: &str = "throttled";

/// Writes them; the events are in the order of their times, and `end` is the end of the recording.
pub(super) fn write(
    events: &[KernelEvent],
    end: Nanos,
    tracks: &mut WrittenTracks<'_>,
    packets: &mut Packets<'_>,
) -> io::Result<()> {
    lanes::write(slices(events, end).iter(), true, tracks, packets)
}

fn slices(events: &[KernelEvent], end: Nanos) -> Vec<Annotation> {
    let mut since: BTreeMap<Task, Nanos> = BTreeMap::new();
    let mut slices = Vec::new();
    let slice = |task, begin, end| Annotation {
        on: Some(task),
        track: TRACK.to_owned(),
        name: NAME.to_owned(),
        begin,
        end,
    };
    for event in events {
        let KernelEventKind::Throttle { task, begins } = event.what else {
            continue;
        };
        if begins {
            since.entry(task).or_insert(event.time);
        } else if let Some(begin) = since.remove(&task) {
            slices.push(slice(task, begin, event.time));
        }
    }
    let open = since.into_iter();
    slices.extend(open.map(|(task, begin)| slice(task, begin, end)));
    slices
}

#[cfg(test)]
mod tests {
    use event::Cpu;

    use super::*;

    /// Goal: each time that a thread is put aside is a slice, and the last one may be open. Method: two
    /// threads, with a beginning that is told twice and an end without a beginning.
    #[test]
    fn times_aside_are_slices() {
        let at = |time, task, begins| KernelEvent {
            time: Nanos(time),
            cpu: Cpu(0),
            what: KernelEventKind::Throttle {
                task: Task(task),
                begins,
            },
        };
        let events = [
            at(5, 1, false),
            at(10, 0, true),
            at(12, 1, true),
            at(15, 0, true),
            at(20, 0, false),
            at(30, 0, true),
            at(40, 1, false),
        ];
        let slices = slices(&events, Nanos(50));
        let told: Vec<_> = slices
            .iter()
            .map(|slice| (slice.on.unwrap().0, slice.begin.0, slice.end.0))
            .collect();
        assert_eq!(told, [(0, 10, 20), (1, 12, 40), (0, 30, 50)]);
    }
}
