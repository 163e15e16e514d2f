//! Android's frame timeline: SurfaceFlinger's events about every frame, its own and those of programs: when
//! each was to be drawn, when it was, and whether it was late.
//!
//! They become stretches with a name on the main threads of their programs. A frame may continue after that
//! thread has ended its part, elsewhere or on the GPU, and the next one may begin meanwhile. So they are no
//! waits of that thread, and are not called frames, since waits are known by that name.

use std::collections::HashMap;

use event::Nanos;

use super::clocks::ClockId;
use super::wire::{Fields, Row};
use crate::read::builder::Builder;
use crate::{Annotation, Loss};

/// Values of `PresentType`.
const LATE: u64 = 2;
const DROPPED: u64 = 4;

/// The bits of `JankType` and what they are called: why a frame was late. The first, 1, is no reason.
const JANKS: [(u64, &str); 10] = [
    (2, "SurfaceFlinger Scheduling"),
    (4, "Prediction Error"),
    (8, "Display HAL"),
    (16, "SurfaceFlinger CPU Deadline Missed"),
    (32, "SurfaceFlinger GPU Deadline Missed"),
    (64, "App Deadline Missed"),
    (128, "Buffer Stuffing"),
    (256, "Unknown Jank"),
    (512, "SurfaceFlinger Stuffing"),
    (1024, "Dropped Frame"),
];

/// A time and its clock.
type When = (u64, ClockId);

/// A frame, as it was planned or as it was.
struct DisplayFrame {
    /// The number of the process.
    pid: u32,
    is_expected: bool,
    /// The frame's number, which the plan and the result have in common.
    token: u64,
    present: u64,
    /// Why it was late, as bits.
    jank: u64,
    begin: When,
    end: Option<When>,
}

/// All frames of a file.
#[derive(Default)]
pub(super) struct Frames {
    frames: Vec<DisplayFrame>,
    /// The positions of those that have begun, by the numbers that their ends will have.
    open: HashMap<u64, usize>,
    unbegun: u64,
    unsupported: u64,
}

impl Frames {
    /// Reads a `FrameTimelineEvent`; `None` if it is broken.
    pub(super) fn take(&mut self, message: &[u8], when: When) -> Option<()> {
        let mut fields = Fields::of(message);
        for (field, value) in &mut fields {
            let row = Row::of(value.bytes())?;
            // SurfaceFlinger's own frames, then those of programs: as planned, and as they were.
            let (is_expected, pid, present, jank) = match field {
                1 => (true, 3, 0, 0),
                2 => (false, 3, row.number(4), row.number(7)),
                3 => (true, 4, 0, 0),
                4 => (false, 4, row.number(6), row.number(9)),
                5 => {
                    self.end(row.number(1), when);
                    continue;
                }
                _ => {
                    self.unsupported += 1;
                    continue;
                }
            };
            self.open.insert(row.number(1), self.frames.len());
            self.frames.push(DisplayFrame {
                pid: row.number(pid) as u32,
                is_expected,
                token: row.number(2),
                present,
                jank,
                begin: when,
                end: None,
            });
        }
        (!fields.is_broken()).then_some(())
    }

    fn end(&mut self, cookie: u64, when: When) {
        match self.open.remove(&cookie) {
            Some(at) => self.frames[at].end = Some(when),
            None => self.unbegun += 1,
        }
    }

    /// The clocks of their times.
    pub(super) fn clocks(&self) -> impl Iterator<Item = ClockId> + '_ {
        self.frames.iter().map(|frame| frame.begin.1)
    }

    /// Tells all frames. `convert` converts times to the recording's clock, if it can. Everything else in the
    /// file happened since `first`. Frames that began before it (SurfaceFlinger remembers some for half a
    /// minute) begin there. Frames without an end are counted and left out: nothing says how long they were.
    pub(super) fn tell(
        self,
        builder: &mut Builder,
        convert: impl Fn(When) -> Option<u64>,
        first: u64,
    ) {
        builder.lose(Loss::Unbegun, self.unbegun);
        builder.lose(Loss::Unsupported, self.unsupported);
        for frame in self.frames {
            let Some(end) = frame.end else {
                builder.lose(Loss::Unfinished, 1);
                continue;
            };
            let (begin, end) = (convert(frame.begin), convert(end));
            let on = builder.task(frame.pid);
            let (Some(begin), Some(end), Some(on)) = (begin, end, on) else {
                builder.lose(Loss::BadFields, 1);
                continue;
            };
            if end < first {
                builder.lose(Loss::Unsupported, 1);
                continue;
            }
            let begin = begin.max(first);
            builder.recording().annotations.push(Annotation {
                on: Some(on),
                track: "frame timeline".to_owned(),
                name: frame.name(),
                begin: Nanos(begin),
                end: Nanos(end.max(begin)),
            });
        }
    }
}

impl DisplayFrame {
    fn name(&self) -> String {
        let how = match (self.is_expected, self.present) {
            (true, _) => ", expected",
            (false, LATE) => ", late",
            (false, DROPPED) => ", dropped",
            _ => "",
        };
        let janks = JANKS.iter().filter(|(bit, _)| self.jank & bit != 0);
        let janks: String = janks.map(|(_, name)| format!(", {name}")).collect();
        format!("frame timeline {}{how}{janks}", self.token)
    }
}

#[cfg(test)]
mod tests {
    use event::Task;

    use super::super::wire_test::{file, message, number};
    use super::*;
    use crate::Recording;

    /// A packet with an event of this kind, on the clock with this number.
    fn packet(time: u64, clock: u64, kind: u64, fields: &[(u64, u64)]) -> Vec<u8> {
        let fields: Vec<u8> = fields
            .iter()
            .flat_map(|&(field, value)| number(field, value))
            .collect();
        let event = message(76, &message(kind, &fields));
        [number(8, time), number(58, clock), event].concat()
    }

    fn read(packets: &[Vec<u8>]) -> Recording {
        crate::read::read(&file(packets)[..], "frames").unwrap()
    }

    /// Goal: frames are on the main threads of their programs, overlapping ones too, as they were planned and
    /// as they were, on the recording's clock. Method: two frames of a program, the second of which begins
    /// before the first ends and is late, and one of SurfaceFlinger, by hand; the monotonic clock is 1000
    /// behind.
    #[test]
    fn frames_are_stretches_of_their_programs() {
        let clock = |id, time| message(1, &[number(1, id), number(2, time)].concat());
        let snapshot = message(6, &[clock(3, 0), clock(6, 1_000)].concat());
        let recording = read(&[
            snapshot,
            packet(100, 3, 3, &[(1, 1), (2, 77), (3, 5), (4, 40)]),
            packet(110, 3, 4, &[(1, 2), (2, 77), (3, 5), (4, 40), (6, 1)]),
            packet(
                150,
                3,
                4,
                &[(1, 3), (2, 78), (3, 6), (4, 40), (6, 2), (9, 64 | 128)],
            ),
            packet(160, 3, 5, &[(1, 1)]),
            packet(170, 3, 5, &[(1, 2)]),
            packet(1_180, 6, 2, &[(1, 4), (2, 5), (3, 30), (4, 4)]),
            packet(190, 3, 5, &[(1, 3)]),
            packet(1_195, 6, 5, &[(1, 4)]),
        ]);
        let tid = |on: Option<Task>| {
            let mut threads = recording.threads.iter();
            threads.find(|thread| Some(thread.task) == on).unwrap().tid
        };
        let told: Vec<_> = recording
            .annotations
            .iter()
            .map(|note| (tid(note.on), &*note.name, note.begin.0, note.end.0))
            .collect();
        let expected = [
            (Some(40), "frame timeline 77, expected", 1_100, 1_160),
            (Some(40), "frame timeline 77", 1_110, 1_170),
            (
                Some(40),
                "frame timeline 78, late, App Deadline Missed, Buffer Stuffing",
                1_150,
                1_190,
            ),
            (Some(30), "frame timeline 5, dropped", 1_180, 1_195),
        ];
        assert_eq!(told, expected);
        assert!(recording.losses.is_empty(), "{:?}", recording.losses);
    }

    /// Goal: events are counted that have no beginning, no end or no program, are of a kind of later
    /// versions, or ended before anything else happened; a frame that had begun before is cut off there, and
    /// one without an end is no stretch.
    /// Method: one of each, beside a change of a frequency.
    #[test]
    fn what_is_not_whole_is_counted() {
        let change = message(11, &[number(1, 5), number(2, 0)].concat());
        let change = message(2, &[number(1, 25), change].concat());
        let recording = read(&[
            message(1, &[number(1, 0), change].concat()),
            packet(5, 6, 1, &[(1, 3), (2, 6), (3, 30)]),
            packet(8, 6, 5, &[(1, 3)]),
            packet(9, 6, 1, &[(1, 4), (2, 9), (3, 30)]),
            packet(10, 6, 5, &[(1, 9)]),
            packet(29, 6, 5, &[(1, 4)]),
            packet(20, 6, 1, &[(1, 1), (2, 7), (3, 30)]),
            packet(30, 6, 6, &[(1, 1)]),
            packet(40, 6, 1, &[(1, 2), (2, 8)]),
            packet(50, 6, 5, &[(1, 2)]),
        ]);
        let lost: Vec<_> = recording.losses.iter().collect();
        let expected = [
            (Loss::BadFields, 1),
            (Loss::Unbegun, 1),
            (Loss::Unfinished, 1),
            (Loss::Unsupported, 2),
        ];
        assert_eq!(lost, expected);
        let notes = recording.annotations.iter();
        let notes: Vec<_> = notes.map(|note| (note.begin.0, note.end.0)).collect();
        assert_eq!(notes, [(25, 29)]);
    }
}
