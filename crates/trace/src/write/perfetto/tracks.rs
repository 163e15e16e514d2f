//! Tracks of processes, threads and everything else, and the packets that introduce them.
//!
//! Threads and processes have the same numbers here and in the scheduler's events, so that both mean the
//! same.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use event::Task;

use super::messages::{CounterDescriptor, ProcessDescriptor, ThreadDescriptor, TrackDescriptor};
use super::numbers::FileNumbers;
use super::packets::Packets;
use crate::{Annotation, MarkKind, Recording, nice};

/// Kinds of tracks. A track's number is its kind's plus one of 32 bits.
const PROCESS: u64 = 1 << 40;
const THREAD: u64 = 2 << 40;
const SLOT: u64 = 3 << 40;
const OTHER: u64 = 4 << 40;

/// The threads, and the tracks that were made up so far.
pub(super) struct WrittenTracks<'r> {
    pub(super) people: FileNumbers<'r>,
    /// Threads with marks: their tracks are taken.
    spoke: BTreeSet<Task>,
    /// Tracks of threads that were introduced once more.
    again: BTreeMap<Task, u64>,
    slots: BTreeMap<u32, u64>,
    first_other: u64,
    others: u64,
}

impl<'r> WrittenTracks<'r> {
    /// Introduces the processes and threads of a recording.
    pub(super) fn introduce(
        recording: &'r Recording,
        packets: &mut Packets<'_>,
    ) -> io::Result<WrittenTracks<'r>> {
        let mut tracks = WrittenTracks::new(recording, OTHER);
        let slices = recording.marks.iter();
        let slices = slices.filter(|mark| matches!(mark.what, MarkKind::Begin(_) | MarkKind::End));
        tracks.spoke = slices.map(|mark| mark.on).collect();
        for position in 0..recording.processes.len() {
            tracks.introduce_process(recording, position, packets)?;
        }
        for task in FileNumbers::tasks(recording) {
            tracks.introduce_thread(task, packets)?;
        }
        Ok(tracks)
    }

    fn new(recording: &'r Recording, first_other: u64) -> WrittenTracks<'r> {
        WrittenTracks {
            people: FileNumbers::of(recording),
            spoke: BTreeSet::new(),
            again: BTreeMap::new(),
            slots: BTreeMap::new(),
            first_other,
            others: 0,
        }
    }

    /// Introduces the threads that findings are about once more, in a file that has them already. `series`
    /// tells these tracks apart from those of earlier findings in the file.
    pub(super) fn reintroduce(
        recording: &'r Recording,
        findings: &[Annotation],
        series: u32,
        packets: &mut Packets<'_>,
    ) -> io::Result<WrittenTracks<'r>> {
        // Any program may have made tracks there; 63 bits leave room for all.
        const TOP: u64 = 1 << 63;
        let mut tracks = WrittenTracks::new(recording, TOP | event::mix(series.into()) >> 1);
        let tasks: BTreeSet<Task> = findings.iter().filter_map(|found| found.on).collect();
        for task in tasks {
            let uuid = tracks.other();
            tracks.again.insert(task, uuid);
            packets.track(TrackDescriptor {
                uuid: Some(uuid),
                thread: Some(ThreadDescriptor {
                    pid: Some(tracks.pid(task).unwrap_or_else(|| tracks.tid(task))),
                    tid: Some(tracks.tid(task)),
                    thread_name: Some(tracks.name(task)),
                }),
                ..TrackDescriptor::default()
            })?;
        }
        Ok(tracks)
    }

    fn introduce_process(
        &mut self,
        recording: &Recording,
        position: usize,
        packets: &mut Packets<'_>,
    ) -> io::Result<()> {
        let Some(pid) = self.people.pid(position) else {
            return Ok(());
        };
        let name = recording.processes[position].name.clone();
        packets.track(process(pid, name))
    }

    /// Introduces a thread, and, if it has no process, a process for it alone.
    fn introduce_thread(&mut self, task: Task, packets: &mut Packets<'_>) -> io::Result<()> {
        let pid = match self.pid(task) {
            Some(pid) => pid,
            None => {
                packets.track(process(self.tid(task), self.name(task)))?;
                self.tid(task)
            }
        };
        packets.track(TrackDescriptor {
            uuid: Some(self.thread(task)),
            parent_uuid: Some(PROCESS + pid as u64),
            thread: Some(ThreadDescriptor {
                pid: Some(pid),
                tid: Some(self.tid(task)),
                thread_name: Some(self.name(task)),
            }),
            ..TrackDescriptor::default()
        })
    }

    /// The number of a task's process, if it has one.
    pub(super) fn pid(&self, task: Task) -> Option<i32> {
        self.people
            .process(task)
            .and_then(|process| self.people.pid(process))
    }

    /// The number by which the file knows a task.
    pub(super) fn tid(&self, task: Task) -> i32 {
        self.people.tid(task)
    }

    /// The name of a task.
    pub(super) fn name(&self, task: Task) -> String {
        match self.people.thread(task) {
            Some(thread) => thread.name.clone(),
            None => format!("task {}", task.0),
        }
    }

    /// A task's own priority.
    pub(super) fn priority(&self, task: Task) -> i32 {
        self.people
            .thread(task)
            .map_or(nice(0), |thread| thread.priority)
    }

    /// The track of a thread.
    pub(super) fn thread(&self, task: Task) -> u64 {
        let again = self.again.get(&task).copied();
        again.unwrap_or(THREAD + u64::from(task.0))
    }

    /// The track of the thread on this thread slot: its own, or else one of the thread slot's. Slices of one
    /// track must nest, and a program's marks need not nest with the job system's events. So a thread with
    /// marks has its jobs on a track below its own.
    pub(super) fn slot(
        &mut self,
        recording: &Recording,
        slot: u32,
        packets: &mut Packets<'_>,
    ) -> io::Result<u64> {
        if let Some(&track) = self.slots.get(&slot) {
            return Ok(track);
        }
        let track = match recording.slots.get(&slot) {
            Some(&task) if self.spoke.contains(&task) => self.named("jobs", Some(task), packets)?,
            Some(&task) => self.thread(task),
            None => {
                let track = SLOT + u64::from(slot);
                packets.track(TrackDescriptor {
                    uuid: Some(track),
                    name: Some(format!("thread slot {slot}")),
                    ..TrackDescriptor::default()
                })?;
                track
            }
        };
        self.slots.insert(slot, track);
        Ok(track)
    }

    /// Makes a track for slices, below a thread's or at the top.
    pub(super) fn named(
        &mut self,
        name: &str,
        below: Option<Task>,
        packets: &mut Packets<'_>,
    ) -> io::Result<u64> {
        let uuid = self.other();
        packets.track(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name.to_owned()),
            parent_uuid: below.map(|task| self.thread(task)),
            ..TrackDescriptor::default()
        })?;
        Ok(uuid)
    }

    /// Makes a track for values, of a process or of the machine.
    pub(super) fn counter(
        &mut self,
        name: &str,
        unit: &str,
        process: Option<usize>,
        packets: &mut Packets<'_>,
    ) -> io::Result<u64> {
        let uuid = self.other();
        let pid = process.and_then(|process| self.people.pid(process));
        packets.track(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name.to_owned()),
            parent_uuid: pid.map(|pid| PROCESS + pid as u64),
            counter: Some(CounterDescriptor {
                unit_name: (!unit.is_empty()).then(|| unit.to_owned()),
            }),
            ..TrackDescriptor::default()
        })?;
        Ok(uuid)
    }

    fn other(&mut self) -> u64 {
        self.others += 1;
        self.first_other.wrapping_add(self.others)
    }
}

fn process(pid: i32, name: String) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(PROCESS + pid as u64),
        process: Some(ProcessDescriptor {
            pid: Some(pid),
            process_name: Some(name),
        }),
        ..TrackDescriptor::default()
    }
}
