//! The contents of the files, read again packet by packet.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use event::{Cpu, Event, EventKind, KernelEvent, KernelEventKind, Left, Task};
use proptest::prelude::*;
use prost::Message;

use super::messages::{
    Ftrace, FtraceEvent, InternedName, Trace, TracePacket, TrackDescriptor, TrackEvent, Type,
};
use super::*;
use crate::supplement::Supplement;
use crate::{Counter, Losses, Process, Thread, realtime};

const MAIN: Task = Task(0);
const WORKER: Task = Task(1);
const HOG: Task = Task(2);

fn kernel(time: u64, cpu: u32, what: KernelEventKind) -> KernelEvent {
    KernelEvent {
        time: Nanos(time),
        cpu: Cpu(cpu),
        what,
    }
}

fn switch(time: u64, cpu: u32, prev: Option<Task>, state: Left, next: Option<Task>) -> KernelEvent {
    kernel(time, cpu, KernelEventKind::Switch { prev, state, next })
}

fn job(time: u64, slot: u32, kind: EventKind, job: u64, arg: u64) -> Event {
    Event {
        time: Nanos(time),
        job,
        arg,
        slot,
        kind,
    }
}

fn waking(time: u64, cpu: u32, task: Task, by: Option<Task>, target: u32) -> KernelEvent {
    let target = Cpu(target);
    kernel(time, cpu, KernelEventKind::Waking { task, by, target })
}

/// Two CPUs and three threads: the main thread has a worker run job "a", and waits for job "b", which comes
/// after it; a hog loses its CPU to the worker and moves to the other one when the first goes offline.
pub(crate) fn sample() -> Recording {
    Recording {
        processes: vec![Process::new("game"), Process::new("hog")],
        threads: vec![
            Thread {
                priority: realtime(50),
                ..Thread::new(MAIN, "main", Some(0))
            },
            Thread::new(WORKER, "worker 0", Some(0)),
            Thread::new(HOG, "hog", Some(1)),
        ],
        kernel: sample_kernel(),
        jobs: sample_jobs(),
        slots: BTreeMap::from([(0, MAIN), (1, WORKER)]),
        labels: vec!["a".into(), "b".into()],
        counters: vec![Counter {
            name: "power".into(),
            unit: "mW".into(),
            process: None,
            values: vec![(Nanos(0), 900), (Nanos(4_000), 450)],
        }],
        annotations: vec![Annotation {
            on: Some(WORKER),
            track: "found".into(),
            name: "hog runs instead".into(),
            begin: Nanos(1_000),
            end: Nanos(1_500),
        }],
        losses: Losses::from_iter([(Loss::JobEvents, 3)]),
        ..Recording::default()
    }
}

fn sample_kernel() -> Vec<KernelEvent> {
    let migrate = |task, from, to| KernelEventKind::Migrate {
        task,
        from: Cpu(from),
        to: Cpu(to),
    };
    let priority = |task, from| KernelEventKind::Inherit { task, from };
    vec![
        kernel(0, 0, KernelEventKind::Frequency(2_000_000)),
        switch(0, 0, None, Left::Runnable, Some(MAIN)),
        switch(0, 1, None, Left::Runnable, Some(HOG)),
        waking(1_000, 0, WORKER, Some(MAIN), 1),
        switch(1_500, 1, Some(HOG), Left::Runnable, Some(WORKER)),
        kernel(3_950, 1, priority(WORKER, Some(MAIN))),
        switch(4_000, 0, Some(MAIN), Left::Sleeping, None),
        kernel(4_000, 0, KernelEventKind::Idle(Some(1))),
        waking(6_000, 1, MAIN, Some(WORKER), 0),
        kernel(6_000, 0, KernelEventKind::Idle(None)),
        switch(6_000, 0, None, Left::Runnable, Some(MAIN)),
        kernel(6_100, 1, priority(WORKER, None)),
        switch(6_500, 1, Some(WORKER), Left::Sleeping, Some(HOG)),
        switch(8_000, 0, Some(MAIN), Left::Dead, None),
        switch(8_100, 1, Some(HOG), Left::Runnable, None),
        kernel(8_100, 1, migrate(HOG, 1, 0)),
        switch(8_200, 0, None, Left::Runnable, Some(HOG)),
        kernel(8_200, 1, KernelEventKind::Online(false)),
        waking(9_000, 0, WORKER, None, 0),
    ]
}

fn sample_jobs() -> Vec<Event> {
    vec![
        job(50, 0, EventKind::FrameBegin, 0, 6_800),
        job(100, 0, EventKind::Created, 10, 0),
        job(110, 0, EventKind::Created, 11, 1),
        job(120, 0, EventKind::Edge, 11, 10),
        job(130, 0, EventKind::Ready, 10, 0),
        job(500, 1, EventKind::Park, 0, 0),
        job(990, 0, EventKind::Wake, 0, 1),
        job(1_600, 1, EventKind::Unpark, 0, 0),
        job(1_650, 1, EventKind::Steal, 0, 0),
        job(1_700, 1, EventKind::Begin, 10, 0),
        job(3_900, 0, EventKind::WaitBegin, 11, 0),
        job(4_900, 1, EventKind::End, 10, 0),
        job(4_910, 1, EventKind::Ready, 11, 0),
        job(4_920, 1, EventKind::Completed, 10, 0),
        job(5_100, 1, EventKind::Begin, 11, 0),
        job(5_900, 1, EventKind::End, 11, 0),
        job(5_910, 1, EventKind::Completed, 11, 1),
        job(6_600, 0, EventKind::WaitEnd, 11, 1),
        job(7_000, 0, EventKind::FrameEnd, 0, 1),
    ]
}

fn write(recording: &Recording) -> (Vec<u8>, Written) {
    let mut bytes = Vec::new();
    let written = perfetto(recording, &mut bytes).unwrap();
    assert_eq!(written.bytes, bytes.len() as u64);
    (bytes, written)
}

fn read(bytes: &[u8]) -> Vec<TracePacket> {
    Trace::decode(bytes).unwrap().packet
}

/// The words of a file, from its packets in their order, each by its sequence and number.
#[derive(Default)]
struct Known {
    categories: HashMap<(u32, u64), String>,
    names: HashMap<(u32, u64), String>,
    notes: HashMap<(u32, u64), String>,
    tracks: HashMap<u64, String>,
}

impl Known {
    fn learn(&mut self, packet: &TracePacket) {
        let sequence = packet.trusted_packet_sequence_id.unwrap();
        let add = |to: &mut HashMap<(u32, u64), String>, from: &[InternedName]| {
            for word in from {
                let id = (sequence, word.iid.unwrap());
                let old = to.insert(id, word.name.clone().unwrap());
                assert_eq!(old, None, "a number is given twice");
            }
        };
        if let Some(data) = &packet.interned_data {
            add(&mut self.categories, &data.event_categories);
            add(&mut self.names, &data.event_names);
            add(&mut self.notes, &data.debug_annotation_names);
        }
        if let Some(track) = &packet.track_descriptor {
            let name = self.track(track);
            let old = self.tracks.insert(track.uuid.unwrap(), name);
            assert_eq!(old, None, "a track is introduced twice");
        }
    }

    fn track(&self, track: &TrackDescriptor) -> String {
        let parent = track.parent_uuid.map(|uuid| &self.tracks[&uuid]);
        let own = match (&track.process, &track.thread) {
            (Some(process), _) => {
                let name = process.process_name.as_deref().unwrap();
                format!("{name}({})", process.pid.unwrap())
            }
            (_, Some(thread)) => {
                let name = thread.thread_name.as_deref().unwrap();
                format!("{name}({}/{})", thread.tid.unwrap(), thread.pid.unwrap())
            }
            _ => track.name.clone().unwrap(),
        };
        match parent {
            Some(parent) => format!("{parent}/{own}"),
            None => own,
        }
    }

    /// A packet as a line or, of kernel events, several.
    fn show(&mut self, packet: &TracePacket) -> Vec<String> {
        self.learn(packet);
        let sequence = packet.trusted_packet_sequence_id.unwrap();
        if let Some(clocks) = &packet.clock_snapshot {
            let clock = |clock: &super::messages::SnapshotClock| {
                (clock.clock_id.unwrap(), clock.timestamp.unwrap())
            };
            let all: Vec<_> = clocks.clocks.iter().map(clock).collect();
            let head = packet.supplement.as_ref().and_then(|all| all.head.clone());
            let (pictures, lost) = (head.unwrap().pictures, packet.supplement.as_ref());
            let lost = lost.map_or(0, |all| all.losses.len());
            return vec![format!(
                "{sequence} clocks {all:?}, pictures {pictures:?}, {lost} losses"
            )];
        }
        if let Some(track) = &packet.track_descriptor {
            let unit = track.counter.as_ref().map(|counter| {
                let unit = counter.unit_name.as_deref();
                format!(" counts {}", unit.unwrap_or("things"))
            });
            let name = &self.tracks[&track.uuid.unwrap()];
            return vec![format!(
                "{sequence} track {name}{}",
                unit.unwrap_or_default()
            )];
        }
        if let Some(bundle) = &packet.ftrace_events {
            let cpu = bundle.cpu.unwrap();
            let line = |event| format!("{sequence} cpu {cpu} {}", show_kernel(event));
            return bundle.event.iter().map(line).collect();
        }
        if let Some(supplement) = &packet.supplement {
            return vec![format!("{sequence} {}", show_supplement(supplement))];
        }
        let (time, event) = (packet.timestamp.unwrap(), packet.track_event.as_ref());
        let event = self.show_event(sequence, event.unwrap());
        vec![format!("{sequence} {time} {event}")]
    }

    fn show_event(&self, sequence: u32, event: &TrackEvent) -> String {
        let mut line = format!("{}: ", self.tracks[&event.track_uuid.unwrap()]);
        line += &match event.r#type() {
            Type::Counter => format!("= {}", event.counter_value.unwrap()),
            other => format!("{other:?}"),
        };
        for category in &event.category_iids {
            line += &format!(" [{}]", self.categories[&(sequence, *category)]);
        }
        if let Some(name) = event.name_iid {
            line += &format!(" \"{}\"", self.names[&(sequence, name)]);
        }
        if let Some(name) = &event.name {
            line += &format!(" '{name}'");
        }
        for note in &event.debug_annotations {
            let number = note.uint_value.map(|number| number.to_string());
            let value = number.or_else(|| note.string_value.clone()).unwrap();
            line += &format!(
                " {}={value}",
                self.notes[&(sequence, note.name_iid.unwrap())]
            );
        }
        for flow in &event.flow_ids {
            line += &format!(" {flow}->");
        }
        for flow in &event.terminating_flow_ids {
            line += &format!(" ->{flow}");
        }
        line
    }
}

fn show_kernel(event: &FtraceEvent) -> String {
    let what = match event.event.as_ref().unwrap() {
        Ftrace::SchedSwitch(it) => format!(
            "switch {}({})@{} {} => {}({})@{}",
            it.prev_comm(),
            it.prev_pid(),
            it.prev_prio(),
            it.prev_state(),
            it.next_comm(),
            it.next_pid(),
            it.next_prio()
        ),
        Ftrace::CpuFrequency(it) => format!("frequency {} of {}", it.state(), it.cpu_id()),
        Ftrace::CpuIdle(it) => format!("idle {} of {}", it.state(), it.cpu_id()),
        Ftrace::SchedCpuHotplug(it) => format!("online {} of {}", it.status(), it.affected_cpu()),
        Ftrace::SchedWaking(it) => format!(
            "waking {}({})@{} to {}",
            it.comm(),
            it.pid(),
            it.prio(),
            it.target_cpu()
        ),
        Ftrace::SchedPiSetprio(it) => format!(
            "priority {}({}) {} => {}",
            it.comm(),
            it.pid(),
            it.oldprio(),
            it.newprio()
        ),
        Ftrace::SchedMigrateTask(it) => format!(
            "migrate {}({})@{} {} => {}",
            it.comm(),
            it.pid(),
            it.prio(),
            it.orig_cpu(),
            it.dest_cpu()
        ),
        other => format!("{other:?}"),
    };
    let (time, on) = (event.timestamp.unwrap(), event.pid.unwrap());
    let interrupt = match event.common_flags {
        Some(8) => " in an interrupt",
        _ => "",
    };
    format!("{time} on {on}{interrupt}: {what}")
}

fn show_supplement(supplement: &Supplement) -> String {
    let jobs = supplement.jobs.as_ref().map_or(0, |jobs| jobs.times.len());
    format!(
        "supplement: {} threads, {} slots, {} labels, {jobs} events",
        supplement.threads.len(),
        supplement.slots.len(),
        supplement.labels.len()
    )
}

/// Goal: every kind of content is in its place: threads by their numbers, kernel events by CPU, slices,
/// instants, arrows, counters, annotations, frames and the count of lost events. Method: the sample's bytes
/// are decoded and every packet compared, as a line, with the result worked out by hand.
#[test]
fn the_sample_is_written_as_expected() {
    let (bytes, written) = write(&sample());
    let mut known = Known::default();
    let packets = read(&bytes);
    let lines: Vec<String> = packets
        .iter()
        .flat_map(|packet| known.show(packet))
        .collect();
    let expected: Vec<&str> = include_str!("sample.txt").lines().collect();
    assert_eq!(lines, expected, "\n{}", lines.join("\n"));
    assert_eq!(written.packets, packets.len() as u64);
    assert_eq!((written.unfinished, written.unbegun), (0, 0));
    // The main thread is woken and runs at the same time on two CPUs.
    assert_eq!(written.delayed, 1);
}

/// The bytes of the file: field numbers from the outside in, and the value.
fn fields(bytes: &[u8], path: &[u32], found: &mut BTreeSet<(Vec<u32>, u64)>) -> Option<()> {
    let mut rest = bytes;
    let varint = |rest: &mut &[u8]| {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, more) = rest.split_first()?;
            *rest = more;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    };
    while !rest.is_empty() {
        let key = varint(&mut rest)?;
        let path = [path, &[(key >> 3) as u32]].concat();
        match key & 7 {
            0 => {
                let value = varint(&mut rest)?;
                found.insert((path, value));
            }
            1 => {
                let (eight, more) = rest.split_first_chunk::<8>()?;
                rest = more;
                found.insert((path, u64::from_le_bytes(*eight)));
            }
            2 => {
                let length = varint(&mut rest)? as usize;
                let (inner, more) = rest.split_at_checked(length)?;
                rest = more;
                // Texts may look like messages by accident; their contents are not asked for.
                let _ = fields(inner, &path, found);
            }
            _ => return None,
        }
    }
    Some(())
}

/// Goal: field numbers and kinds are Perfetto's. Method: the sample's bytes are taken apart without our
/// declarations, and one value of each message must be found under the numbers of Perfetto's `.proto` files.
#[test]
fn field_numbers_are_those_of_the_format() {
    let (bytes, _) = write(&sample());
    let mut found = BTreeSet::new();
    fields(&bytes, &[], &mut found).unwrap();
    let expected: &[(&[u32], u64)] = &[
        // clock_snapshot: boot time at 0; the sequence and its flags
        (&[1, 6, 1, 1], 6),
        (&[1, 6, 2], 6),
        (&[1, 10], 1),
        (&[1, 13], 2),
        (&[1, 87], 1),
        // sched_switch on CPU 1: the hog gives way to the worker
        (&[1, 1, 1], 1),
        (&[1, 1, 2, 1], 1_500),
        (&[1, 1, 2, 2], 3),
        (&[1, 1, 2, 4, 2], 3),
        (&[1, 1, 2, 4, 3], 120),
        (&[1, 1, 2, 4, 4], 0x10),
        (&[1, 1, 2, 4, 6], 2),
        (&[1, 1, 2, 4, 7], 49),
        // cpu_frequency, cpu_idle, sched_cpu_hotplug
        (&[1, 1, 2, 11, 1], 2_000_000),
        (&[1, 1, 2, 13, 1], u64::from(u32::MAX)),
        (&[1, 1, 2, 19, 1], 1),
        (&[1, 1, 2, 19, 3], 0),
        // sched_waking
        (&[1, 1, 2, 20, 2], 2),
        (&[1, 1, 2, 20, 3], 49),
        (&[1, 1, 2, 20, 5], 1),
        // sched_pi_setprio: new, old, task
        (&[1, 1, 2, 353, 2], 49),
        (&[1, 1, 2, 353, 3], 120),
        (&[1, 1, 2, 353, 4], 2),
        // sched_migrate_task
        (&[1, 1, 2, 491, 2], 3),
        (&[1, 1, 2, 491, 4], 1),
        (&[1, 1, 2, 491, 5], 0),
        // descriptors: process, thread and its parent
        (&[1, 60, 3, 1], 3),
        (&[1, 60, 4, 1], 1),
        (&[1, 60, 4, 2], 2),
        (&[1, 60, 5], PARENT),
        // track events: time, type, flows as fixed64
        (&[1, 8], 1_700),
        (&[1, 11, 9], 1),
        (&[1, 11, 30], 450),
        (&[1, 11, 47], 1),
        (&[1, 11, 48], 2),
        // the job of a slice; a word
        (&[1, 11, 4, 3], 10),
        (&[1, 12, 2, 1], 1),
    ];
    /// The track of the process with the number 1.
    const PARENT: u64 = (1 << 40) + 1;
    for (path, value) in expected {
        assert!(found.contains(&(path.to_vec(), *value)), "{path:?} {value}");
    }
}

/// Goal: Perfetto reads the file's meaning: the runs of threads and why each stopped, wakers, slices on their
/// threads, arrows, values, and its own critical path of the wait. Method: its trace processor is asked,
/// where there is one; the answers were worked out by hand from the sample.
#[test]
fn perfetto_reads_the_sample() {
    let mut seen = Vec::new();
    let (mut queries, mut expected) = (Vec::new(), Vec::new());
    for (query, rows) in QUESTIONS {
        queries.push(*query);
        expected.push(rows.to_vec());
    }
    let (bytes, _) = write(&sample());
    let Some(answers) = crate::oracle::ask(&bytes, &queries) else {
        return;
    };
    for answer in &answers {
        seen.push(answer.iter().map(String::as_str).collect::<Vec<_>>());
    }
    assert_eq!(seen, expected);
}

/// Queries for the trace processor, and their answers.
const QUESTIONS: &[(&str, &[&str])] = &[
    (
        "SELECT ts, dur, cpu, tid, end_state, priority FROM sched JOIN thread USING (utid)
         WHERE tid > 0 ORDER BY ts, cpu",
        &[
            "0\t4000\t0\t1\tS\t49",
            "0\t1500\t1\t3\tR\t120",
            "1500\t5000\t1\t2\tS\t120",
            "6001\t1999\t0\t1\tX\t49",
            "6500\t1600\t1\t3\tR\t120",
            "8200\t-1\t0\t3\tNULL\t120",
        ],
    ),
    (
        "SELECT s.ts, s.dur, t.tid, w.tid FROM thread_state s JOIN thread t USING (utid)
         JOIN thread w ON w.utid = s.waker_utid ORDER BY s.ts",
        // The last by an interrupt: the idle task's number.
        &["1000\t500\t2\t1", "6000\t1\t1\t2", "9000\t-1\t2\t0"],
    ),
    (
        "SELECT tid, thread.name, pid, process.name FROM thread JOIN process USING (upid)
         WHERE tid > 0 ORDER BY tid",
        &["1\tmain\t1\tgame", "2\tworker 0\t1\tgame", "3\thog\t3\thog"],
    ),
    (
        "SELECT s.ts, s.dur, s.name, tid FROM slice s JOIN thread_track t ON t.id = s.track_id
         JOIN thread USING (utid) ORDER BY s.ts",
        &[
            "500\t0\tpark\t2",
            "990\t0\twake\t1",
            "1000\t500\thog runs instead\t2",
            "1600\t0\tunpark\t2",
            "1650\t0\tsteal\t2",
            "1700\t3200\ta\t2",
            "3900\t2700\twait for b\t1",
            "5100\t800\tb\t2",
            "5910\t0\tb panicked\t2",
        ],
    ),
    (
        "SELECT s.ts, s.dur, s.name, t.name FROM slice s JOIN track t ON t.id = s.track_id
         WHERE t.type NOT LIKE 'thread%' ORDER BY s.ts",
        &[
            "50\t6950\tframe 0, missed\tframes",
            "9000\t0\tfrom here on 3 events are not recorded\trecording",
        ],
    ),
    (
        "SELECT o.name, i.name FROM flow JOIN slice o ON o.id = slice_out JOIN slice i ON i.id = slice_in
         ORDER BY o.ts",
        &["wake\tunpark", "a\tb"],
    ),
    (
        "SELECT t.name, t.unit, c.ts, CAST(c.value AS INT) FROM counter c
         JOIN counter_track t ON t.id = c.track_id ORDER BY t.name, c.ts",
        &[
            "cpu 1 online\tNULL\t0\t1",
            "cpu 1 online\tNULL\t8200\t0",
            "cpufreq\tNULL\t0\t2000000",
            "cpuidle\tNULL\t4000\t1",
            "cpuidle\tNULL\t6000\t4294967295",
            "power\tmW\t0\t900",
            "power\tmW\t4000\t450",
            "ready jobs\tNULL\t130\t1",
            "ready jobs\tNULL\t1700\t0",
            "ready jobs\tNULL\t4910\t1",
            "ready jobs\tNULL\t5100\t0",
        ],
    ),
    (
        "INCLUDE PERFETTO MODULE sched.thread_executing_span;
         SELECT c.ts, c.dur, tid FROM _thread_executing_span_critical_path(
             (SELECT utid FROM thread WHERE tid = 1), 3900, 2700) c
         JOIN thread USING (utid) ORDER BY c.ts",
        &["4000\t2000\t2", "6000\t600\t1"],
    ),
    (
        "SELECT name, value FROM stats WHERE value > 0 AND severity != 'info'",
        &[],
    ),
];

/// Goal: bodies whose end is not in the recording end with it, or with the slice around them; ends without a
/// beginning are left out; both are counted. Method: one of each, on a thread slot without a known thread.
#[test]
fn what_does_not_match_is_closed_or_left_out_and_counted() {
    let recording = Recording {
        jobs: vec![
            job(1, 7, EventKind::End, 5, 0),
            job(2, 7, EventKind::Begin, 6, 0),
            job(3, 7, EventKind::WaitBegin, 8, 0),
            job(4, 7, EventKind::End, 6, 0),
            job(5, 7, EventKind::Begin, 9, 0),
            job(6, 7, EventKind::FrameEnd, 1, 0),
            job(7, 7, EventKind::FrameBegin, 2, 0),
            job(8, 7, EventKind::Park, 0, 0),
        ],
        ..Recording::default()
    };
    let (bytes, written) = write(&recording);
    assert_eq!((written.unfinished, written.unbegun), (3, 2));
    let mut known = Known::default();
    let packets = read(&bytes);
    let lines: Vec<String> = packets
        .iter()
        .flat_map(|packet| known.show(packet))
        .collect();
    let expected = [
        "1 clocks [(6, 1), (3, 1)], pictures [4], 0 losses",
        "3 supplement: 0 threads, 0 slots, 0 labels, 8 events",
        "3 track thread slot 7",
        "4 2 thread slot 7: SliceBegin [job] \"job\" job=6",
        "4 3 thread slot 7: SliceBegin [wait] \"wait for job\" job=8",
        "4 4 thread slot 7: SliceEnd",
        "4 4 thread slot 7: SliceEnd",
        "4 5 thread slot 7: SliceBegin [job] \"job\" job=9",
        "4 8 thread slot 7: Instant [worker] \"park\"",
        "4 8 thread slot 7: SliceEnd",
        "3 track frames",
        "4 7 frames: SliceBegin [annotation] 'frame 2, unfinished'",
        "4 8 frames: SliceEnd",
    ];
    assert_eq!(lines, expected);
}

/// Goal: spans and values of a program are on the tracks that people look at, with their names. Method: a
/// span around a body, and one value.
#[test]
fn spans_and_values_of_the_program_are_shown() {
    let recording = Recording {
        jobs: vec![
            job(1, 7, EventKind::SpanBegin, 0, 0),
            job(2, 7, EventKind::Begin, 6, 0),
            job(3, 7, EventKind::Counter, 1, -5_i64 as u64),
            job(4, 7, EventKind::End, 6, 0),
            job(5, 7, EventKind::SpanEnd, 0, 0),
        ],
        labels: vec!["load".into(), "missing".into()],
        ..Recording::default()
    };
    let (bytes, written) = write(&recording);
    assert_eq!((written.unfinished, written.unbegun), (0, 0));
    let mut known = Known::default();
    let packets = read(&bytes);
    let lines: Vec<String> = packets
        .iter()
        .flat_map(|packet| known.show(packet))
        .collect();
    let expected = [
        "1 clocks [(6, 1), (3, 1)], pictures [4], 0 losses",
        "3 supplement: 0 threads, 0 slots, 2 labels, 0 events",
        "3 supplement: 0 threads, 0 slots, 0 labels, 5 events",
        "3 track thread slot 7",
        "4 1 thread slot 7: SliceBegin [span] \"load\"",
        "4 2 thread slot 7: SliceBegin [job] \"job\" job=6",
        "3 track missing counts things",
        "4 3 missing: = -5",
        "4 4 thread slot 7: SliceEnd",
        "4 5 thread slot 7: SliceEnd",
    ];
    assert_eq!(lines, expected);
}

/// Goal: a rest in the middle of a background job is a slice inside of the body's. Method: one.
#[test]
fn a_job_that_makes_way_is_shown() {
    let recording = Recording {
        jobs: vec![
            job(1, 7, EventKind::Begin, 6, 0),
            job(2, 7, EventKind::MakesWay, 0, 0),
            job(3, 7, EventKind::GoesOn, 0, 0),
            job(4, 7, EventKind::End, 6, 0),
        ],
        ..Recording::default()
    };
    let (bytes, written) = write(&recording);
    assert_eq!((written.unfinished, written.unbegun), (0, 0));
    let mut known = Known::default();
    let packets = read(&bytes);
    let lines = packets.iter().flat_map(|packet| known.show(packet));
    let lines: Vec<String> = lines.filter(|line| line.contains("Slice")).collect();
    let expected = [
        "4 1 thread slot 7: SliceBegin [job] \"job\" job=6",
        "4 2 thread slot 7: SliceBegin [worker] \"makes way\"",
        "4 3 thread slot 7: SliceEnd",
        "4 4 thread slot 7: SliceEnd",
    ];
    assert_eq!(lines, expected);
}

/// Goal: of two spans that cross, each is shown from its beginning to its end. Method: a span that ends in
/// the middle of another one, which goes on as a second slice, and one whose end is not recorded, which does
/// not.
#[test]
fn spans_that_cross_are_shown_whole() {
    let recording = Recording {
        jobs: vec![
            job(1, 7, EventKind::SpanBegin, 0, 0),
            job(2, 7, EventKind::SpanBegin, 0, 1),
            job(3, 7, EventKind::SpanBegin, 0, 2),
            job(4, 7, EventKind::SpanEnd, 0, 0),
            job(6, 7, EventKind::SpanEnd, 0, 1),
        ],
        labels: vec!["load".into(), "unpack".into(), "lost".into()],
        ..Recording::default()
    };
    let (bytes, written) = write(&recording);
    let Written {
        unfinished,
        unbegun,
        split,
        ..
    } = written;
    assert_eq!((unfinished, unbegun, split), (1, 0, 1));
    let mut known = Known::default();
    let packets = read(&bytes);
    let lines = packets.iter().flat_map(|packet| known.show(packet));
    let slices: Vec<String> = lines.filter(|line| line.contains("Slice")).collect();
    let expected = [
        "4 1 thread slot 7: SliceBegin [span] \"load\"",
        "4 2 thread slot 7: SliceBegin [span] \"unpack\"",
        "4 3 thread slot 7: SliceBegin [span] \"lost\"",
        "4 4 thread slot 7: SliceEnd",
        "4 4 thread slot 7: SliceEnd",
        "4 4 thread slot 7: SliceEnd",
        "4 4 thread slot 7: SliceBegin [span] \"unpack\"",
        "4 6 thread slot 7: SliceEnd",
    ];
    assert_eq!(slices, expected);
}

/// Goal: an empty recording is a file that can be read. Method: it has the clocks and nothing else.
#[test]
fn nothing_is_a_file_too() {
    let (bytes, written) = write(&Recording::default());
    assert_eq!(read(&bytes).len(), 1);
    assert_eq!(written.packets, 1);
}

/// A writer that keeps its bytes, and may fail.
#[derive(Default)]
struct Pieces {
    sizes: Vec<usize>,
    room: Option<usize>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self
            .room
            .is_some_and(|room| self.sizes.iter().sum::<usize>() + bytes.len() > room)
        {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.sizes.push(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `rounds` times a job that is made, waited for and run, and a switch each way.
fn long(rounds: u64) -> Recording {
    let mut recording = sample();
    (recording.kernel, recording.jobs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let (t, id) = (round * 1_000, round + 1);
        recording.kernel.extend([
            switch(t, 0, Some(MAIN), Left::Sleeping, Some(WORKER)),
            switch(t + 500, 0, Some(WORKER), Left::Runnable, Some(MAIN)),
        ]);
        recording.jobs.extend([
            job(t, 0, EventKind::Created, id, 0),
            job(t + 1, 0, EventKind::Edge, id, id.saturating_sub(1)),
            job(t + 2, 0, EventKind::Ready, id, 0),
            job(t + 3, 0, EventKind::WaitBegin, id, 0),
            job(t + 4, 1, EventKind::Begin, id, 0),
            job(t + 400, 1, EventKind::End, id, 0),
            job(t + 500, 0, EventKind::WaitEnd, id, 0),
        ]);
    }
    recording
}

/// Goal: the file is written in pieces and grows with the recording. Method: no piece of a long recording is
/// larger than a few packets more than 64 KiB, and twice the rounds are at most 2.2 times the bytes (numbers
/// get longer).
#[test]
fn files_are_written_in_pieces_and_grow_linearly() {
    let bytes = |rounds| {
        let mut pieces = Pieces::default();
        let written = perfetto(&long(rounds), &mut pieces).unwrap();
        assert!(
            pieces.sizes.iter().all(|size| *size < 100 << 10),
            "{:?}",
            pieces.sizes
        );
        written.bytes
    };
    let (once, twice) = (bytes(5_000), bytes(10_000));
    assert!(once > 1 << 20, "{once}");
    assert!(twice * 10 < once * 22, "{once} {twice}");
}

/// Goal: a disk that is full is reported. Method: a writer with room for the first pieces.
#[test]
fn a_full_disk_is_an_error() {
    let pieces = Pieces {
        room: Some(200 << 10),
        ..Pieces::default()
    };
    let error = perfetto(&long(5_000), pieces).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

/// Few values, so that events meet, and the extremes.
fn times() -> impl Strategy<Value = Nanos> {
    prop_oneof![9 => 0u64..40, 1 => Just(u64::MAX), 1 => Just(i64::MAX as u64)].prop_map(Nanos)
}

fn tasks() -> impl Strategy<Value = Task> {
    prop_oneof![9 => 0u32..4, 1 => Just(u32::MAX)].prop_map(Task)
}

fn cpus() -> impl Strategy<Value = Cpu> {
    prop_oneof![9 => 0u32..3, 1 => Just(u32::MAX)].prop_map(Cpu)
}

fn kernel_events() -> impl Strategy<Value = KernelEvent> {
    let one = || proptest::option::of(tasks());
    let state = prop_oneof![Just(Left::Runnable), Just(Left::Sleeping), Just(Left::Dead)];
    let what = prop_oneof![
        4 => (one(), state, one())
            .prop_map(|(prev, state, next)| KernelEventKind::Switch { prev, state, next }),
        2 => (tasks(), one(), cpus())
            .prop_map(|(task, by, target)| KernelEventKind::Waking { task, by, target }),
        1 => (tasks(), cpus(), cpus())
            .prop_map(|(task, from, to)| KernelEventKind::Migrate { task, from, to }),
        1 => (tasks(), one()).prop_map(|(task, from)| KernelEventKind::Inherit { task, from }),
        1 => any::<u32>().prop_map(KernelEventKind::Frequency),
        1 => any::<Option<u8>>().prop_map(KernelEventKind::Idle),
        1 => any::<bool>().prop_map(KernelEventKind::Online),
    ];
    (times(), cpus(), what).prop_map(|(time, cpu, what)| KernelEvent { time, cpu, what })
}

fn events() -> impl Strategy<Value = Event> {
    let jobs = || prop_oneof![9 => 0u64..5, 1 => any::<u64>()];
    let kinds = proptest::sample::select(EventKind::ALL);
    (times(), jobs(), jobs(), 0u32..4, kinds).prop_map(|(time, job, arg, slot, kind)| Event {
        time,
        job,
        arg,
        slot,
        kind,
    })
}

prop_compose! {
    fn recordings()(
        kernel in proptest::collection::vec(kernel_events(), 0..60),
        jobs in proptest::collection::vec(events(), 0..120),
        notes in proptest::collection::vec((proptest::option::of(tasks()), times(), times()), 0..10),
        values in proptest::collection::vec((times(), any::<i64>()), 0..5),
        sorted in any::<bool>(),
        lost in 0u64..2,
    ) -> Recording {
        let losses = Losses::from_iter([(Loss::JobEvents, lost)]);
        let mut recording = Recording { kernel, jobs, losses, ..sample() };
        recording.threads[2].process = Some(usize::MAX);
        recording.annotations = notes
            .into_iter()
            .map(|(on, begin, end)| {
                let (track, name) = ("found".to_owned(), "it".to_owned());
                Annotation { on, track, name, begin, end }
            })
            .collect();
        recording.counters[0].values = values;
        if sorted {
            recording.kernel.sort_by_key(|event| event.time);
            recording.jobs.sort_by_key(|event| event.time);
        }
        recording
    }
}

/// The events of each track, by its number: times and types.
fn by_track(packets: &[TracePacket]) -> BTreeMap<u64, Vec<(u64, Type)>> {
    let mut tracks: BTreeMap<u64, Vec<(u64, Type)>> = BTreeMap::new();
    for packet in packets {
        if let Some(event) = &packet.track_event {
            let track = tracks.entry(event.track_uuid.unwrap()).or_default();
            track.push((packet.timestamp.unwrap(), event.r#type()));
        }
    }
    tracks
}

/// Beginnings or ends of bodies, waits, frames, spans and rests.
fn count(recording: &Recording, kinds: [EventKind; 5]) -> u64 {
    let jobs = recording.jobs.iter();
    jobs.filter(|event| kinds.contains(&event.kind)).count() as u64
}

proptest! {
    /// Goal: for any events, the file can be read, its words and tracks are introduced before they are used,
    /// its tracks are in the order of time, and every beginning has its end. Method: random recordings from
    /// few values, half of them in no order; slices are counted against the events.
    #[test]
    fn every_beginning_has_an_end(recording in recordings()) {
        let (bytes, written) = write(&recording);
        prop_assert_eq!(&write(&recording).0, &bytes);
        let packets = read(&bytes);
        prop_assert_eq!(written.packets, packets.len() as u64);
        // Looks everything up and would panic.
        let mut known = Known::default();
        for packet in &packets {
            drop(known.show(packet));
        }

        let (mut begins, mut ends) = (0, 0);
        for (track, events) in by_track(&packets) {
            prop_assert!(events.is_sorted_by_key(|event| event.0), "{}", known.tracks[&track]);
            let mut depth = 0u64;
            for (_, what) in events {
                match what {
                    Type::SliceBegin => (begins, depth) = (begins + 1, depth + 1),
                    Type::SliceEnd => {
                        prop_assert!(depth > 0);
                        (ends, depth) = (ends + 1, depth - 1);
                    }
                    _ => {}
                }
            }
            prop_assert_eq!(depth, 0);
        }
        prop_assert_eq!(begins, ends);
        // A frame that begins twice under one number is one.
        let notes = recording.annotations.len() as u64 + recording.losses.get(Loss::JobEvents);
        let bodies = [
            EventKind::Begin,
            EventKind::WaitBegin,
            EventKind::FrameBegin,
            EventKind::SpanBegin,
            EventKind::MakesWay,
        ];
        prop_assert!(begins <= count(&recording, bodies) + notes + written.split);
        let finished = begins - notes - written.unfinished - written.split;
        let ends = [
            EventKind::End,
            EventKind::WaitEnd,
            EventKind::FrameEnd,
            EventKind::SpanEnd,
            EventKind::GoesOn,
        ];
        let all = count(&recording, ends);
        prop_assert_eq!(finished + written.unbegun, all);
    }

    /// Goal: no kernel event is lost, and readers that sort by time see each task's events in their order.
    /// Method: random recordings; the events of each CPU are in order, and those of a task on different CPUs
    /// are at different times, in the order of the recording.
    #[test]
    fn kernel_events_keep_their_order(recording in recordings()) {
        let (bytes, _) = write(&recording);
        let mut cpus: BTreeMap<u32, Vec<FtraceEvent>> = BTreeMap::new();
        for bundle in read(&bytes).into_iter().filter_map(|packet| packet.ftrace_events) {
            cpus.entry(bundle.cpu.unwrap()).or_default().extend(bundle.event);
        }
        let total: usize = cpus.values().map(Vec::len).sum();
        prop_assert_eq!(total, recording.kernel.len());
        let mut next: BTreeMap<u32, std::vec::IntoIter<FtraceEvent>> = BTreeMap::new();
        for (cpu, events) in cpus {
            let in_order = events.is_sorted_by_key(|event| event.timestamp);
            // At the end of time there is no later one.
            prop_assert!(in_order);
            next.insert(cpu, events.into_iter());
        }
        let mut seen: BTreeMap<Task, (u64, Cpu)> = BTreeMap::new();
        for event in in_order(&recording.kernel, |event| event.time).iter() {
            let written = next.get_mut(&event.cpu.0).and_then(Iterator::next).unwrap();
            let time = written.timestamp.unwrap();
            prop_assert!(time >= event.time.0.min(i64::MAX as u64));
            let of = match event.what {
                KernelEventKind::Switch { prev, next, .. } => [prev, next],
                KernelEventKind::Waking { task, .. } => [Some(task), None],
                _ => [None, None],
            };
            for task in of.into_iter().flatten() {
                if let Some((before, cpu)) = seen.insert(task, (time, event.cpu)) {
                    let is_clear = cpu == event.cpu || before < time || time == i64::MAX as u64;
                    prop_assert!(is_clear, "{:?} at {} and {}", task, before, time);
                }
            }
        }
    }
}
