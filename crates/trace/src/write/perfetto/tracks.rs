//! Who is who: numbers of processes, threads and tracks, and the packets that introduce them.
//!
//! The task with number n is the thread n + 1, since 0 is the idle task; a process has the number of its
//! first thread, as on Linux. So the scheduler's events and the tracks mean the same threads.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};

use event::Task;

use super::messages::{CounterDescriptor, ProcessDescriptor, ThreadDescriptor, TrackDescriptor};
use super::packets::Packets;
use crate::{Recording, Thread, nice};

/// Kinds of tracks. A track's number is its kind's plus one of 32 bits.
const PROCESS: u64 = 1 << 40;
const THREAD: u64 = 2 << 40;
const SEAT: u64 = 3 << 40;
const OTHER: u64 = 4 << 40;

/// The number by which the file knows a task.
pub(super) fn tid(task: Task) -> i32 {
    i32::try_from(u64::from(task.0) + 1).unwrap_or(i32::MAX)
}

/// What is known of the threads, and the tracks that were made up so far.
pub(super) struct Tracks<'r> {
    threads: HashMap<Task, &'r Thread>,
    seats: BTreeMap<u32, u64>,
    others: u64,
}

impl<'r> Tracks<'r> {
    /// Introduces the processes and threads of a recording.
    pub(super) fn introduce<W: Write>(
        recording: &'r Recording,
        packets: &mut Packets<W>,
    ) -> io::Result<Tracks<'r>> {
        // The first one counts, should two have one number.
        let mut threads = HashMap::new();
        for thread in &recording.threads {
            threads.entry(thread.task).or_insert(thread);
        }
        let tracks = Tracks {
            threads,
            seats: BTreeMap::new(),
            others: 0,
        };
        let mut tasks: BTreeSet<Task> = recording.threads.iter().map(|t| t.task).collect();
        tasks.extend(recording.seats.values());
        tasks.extend(recording.annotations.iter().filter_map(|note| note.on));

        let mut processes: BTreeMap<usize, i32> = BTreeMap::new();
        for task in tasks {
            let thread = tracks.threads.get(&task);
            let process = thread
                .and_then(|thread| thread.process)
                .filter(|process| *process < recording.processes.len());
            let (pid, is_new) = match process {
                None => (tid(task), true),
                Some(process) => {
                    let is_new = !processes.contains_key(&process);
                    (*processes.entry(process).or_insert(tid(task)), is_new)
                }
            };
            if is_new {
                packets.track(TrackDescriptor {
                    uuid: Some(PROCESS + pid as u64),
                    process: Some(ProcessDescriptor {
                        pid: Some(pid),
                        process_name: Some(match process {
                            Some(process) => recording.processes[process].name.clone(),
                            None => tracks.name(task),
                        }),
                    }),
                    ..TrackDescriptor::default()
                })?;
            }
            packets.track(TrackDescriptor {
                uuid: Some(tracks.thread(task)),
                parent_uuid: Some(PROCESS + pid as u64),
                thread: Some(ThreadDescriptor {
                    pid: Some(pid),
                    tid: Some(tid(task)),
                    thread_name: Some(tracks.name(task)),
                }),
                ..TrackDescriptor::default()
            })?;
        }
        Ok(tracks)
    }

    /// What a task is called.
    pub(super) fn name(&self, task: Task) -> String {
        match self.threads.get(&task) {
            Some(thread) => thread.name.clone(),
            None => format!("task {}", task.0),
        }
    }

    /// A task's own priority.
    pub(super) fn priority(&self, task: Task) -> i32 {
        self.threads
            .get(&task)
            .map_or(nice(0), |thread| thread.priority)
    }

    /// The track of a thread.
    pub(super) fn thread(&self, task: Task) -> u64 {
        THREAD + u64::from(task.0)
    }

    /// The track of whoever is on this seat: its thread's, or else one of the seat's own.
    pub(super) fn seat<W: Write>(
        &mut self,
        recording: &Recording,
        seat: u32,
        packets: &mut Packets<W>,
    ) -> io::Result<u64> {
        if let Some(&track) = self.seats.get(&seat) {
            return Ok(track);
        }
        let track = match recording.seats.get(&seat) {
            Some(&task) => self.thread(task),
            None => {
                let track = SEAT + u64::from(seat);
                packets.track(TrackDescriptor {
                    uuid: Some(track),
                    name: Some(format!("seat {seat}")),
                    ..TrackDescriptor::default()
                })?;
                track
            }
        };
        self.seats.insert(seat, track);
        Ok(track)
    }

    /// Makes a track for slices, below a thread's or at the top.
    pub(super) fn named<W: Write>(
        &mut self,
        name: &str,
        below: Option<Task>,
        packets: &mut Packets<W>,
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

    /// Makes a track for values.
    pub(super) fn counter<W: Write>(
        &mut self,
        name: &str,
        unit: &str,
        packets: &mut Packets<W>,
    ) -> io::Result<u64> {
        let uuid = self.other();
        packets.track(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(name.to_owned()),
            counter: Some(CounterDescriptor {
                unit_name: (!unit.is_empty()).then(|| unit.to_owned()),
            }),
            ..TrackDescriptor::default()
        })?;
        Ok(uuid)
    }

    fn other(&mut self) -> u64 {
        self.others += 1;
        OTHER + self.others
    }
}
