//! Files of others, files by hand, and files that are broken.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::rc::Rc;

use event::{Cpu, KernelEventKind, Left, Nanos, Task};
use flate2::read::MultiGzDecoder;

use super::wire_test::{file, message, number, packed};
use super::*;
use crate::{MarkKind, Recording, Serial, Wakers};

fn read_all(bytes: &[u8]) -> Recording {
    let mut builder = Builder::new("");
    let mut input = Input::new(Box::new(bytes), Rc::default());
    read(&mut input, &mut builder, &Serial).unwrap();
    builder.finish()
}

fn example(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/traces");
    let mut bytes = Vec::new();
    let file = File::open(folder.join(name)).unwrap();
    MultiGzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The contents of a recording, in lines.
fn summary(recording: &Recording) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut count = |what: String| *counts.entry(what).or_default() += 1;
    for event in &recording.kernel {
        count(match event.what {
            KernelEventKind::Switch { prev, state, .. } => match prev {
                Some(_) => format!("switch, left {state:?}"),
                None => "switch from idle".to_owned(),
            },
            KernelEventKind::Waking { by: Some(_), .. } => "woken by a task".to_owned(),
            KernelEventKind::Waking { by: None, .. } => "woken by an interrupt".to_owned(),
            other => {
                let name = format!("{other:?}");
                let end = name.find([' ', '(']).unwrap_or(name.len());
                name[..end].to_owned()
            }
        });
    }
    for mark in &recording.marks {
        let name = format!("{:?}", mark.what);
        let end = name.find([' ', '(']).unwrap_or(name.len());
        count(format!("mark {}", &name[..end]));
    }
    let origin = &recording.origin;
    let mut lines = vec![
        format!(
            "clock {}, kernel {:?}, wakers {:?}",
            origin.clock.name(),
            origin.kernel,
            origin.wakers
        ),
        format!(
            "{} threads, {} processes",
            recording.threads.len(),
            recording.processes.len()
        ),
        format!(
            "cpus {:?}",
            recording
                .cpus
                .iter()
                .map(|cpu| cpu.cpu.0)
                .collect::<Vec<_>>()
        ),
    ];
    if let Some((first, last)) = recording.span() {
        lines.push(format!("{} ns from {}", (last - first).0, first.0));
    }
    lines.extend(
        counts
            .iter()
            .map(|(what, count)| format!("{what}: {count}")),
    );
    let values = recording
        .counters
        .iter()
        .map(|counter| counter.values.len());
    lines.push(format!(
        "{} counters, {} values",
        recording.counters.len(),
        values.sum::<usize>()
    ));
    for (loss, count) in recording.losses.iter() {
        lines.push(format!("lost {}: {count}", loss.word()));
    }
    lines.join("\n")
}

/// Goal: real files are read whole. Method: counts of two, against the table of `testdata/traces/README.md`,
/// which was counted by Perfetto's trace processor: switches (all lines "switch"), wake-ups (the first file
/// has no `sched_waking`; of the second, 15470 and the 39 first ones of new tasks), frequencies, idle states,
/// kernels, the CPUs that ran something, and the preemptions (`R+`) of the second. All other lines: as they
/// are now.
#[test]
fn real_files_are_read_whole() {
    let galaxy = summary(&read_all(&example("ms-galaxy-s20.perfetto-trace.gz")));
    assert_eq!(galaxy, GALAXY, "\n{galaxy}");
    assert_eq!(5_653 + 1_326 + 4 + 905 + 125 + 7_254, 15_267);
    assert_eq!(4_619 + 4_124, 8_743);
    let emulator = summary(&read_all(&example("ms-android12-emulator-a.pftrace.gz")));
    assert_eq!(emulator, EMULATOR, "\n{emulator}");
    assert_eq!(3_074 + 202 + 39 + 4_557 + 1_576 + 15_250, 24_698);
    assert_eq!(13_489 + 2_020, 15_470 + 39);
}

const GALAXY: &str = "\
clock boot, kernel Some(\"4.19.113-22067904\"), wakers Queued
162 threads, 2 processes
cpus [0, 1, 2, 3, 4, 5, 6]
15783217650 ns from 1986338843772
Frequency: 168
Idle: 11687
Priority: 24
mark Instant: 1
switch from idle: 5653
switch, left Blocked: 1326
switch, left Dead: 4
switch, left Preempted: 905
switch, left Runnable: 125
switch, left Sleeping: 7254
woken by a task: 4619
woken by an interrupt: 4124
0 counters, 0 values
lost unsupported: 3";

const EMULATOR: &str = "\
clock boot, kernel Some(\"5.10.43-android12-9-00031-g5b153f189546-ab7618735\"), wakers Decided
1539 threads, 263 processes
cpus [0, 1, 2, 3]
8981736900 ns from 3958558089800
Idle: 8032
Priority: 1281
switch from idle: 3074
switch, left Blocked: 202
switch, left Dead: 39
switch, left Preempted: 4557
switch, left Runnable: 1576
switch, left Sleeping: 15250
woken by a task: 13489
woken by an interrupt: 2020
0 counters, 0 values
lost other_events: 41
lost unfinished: 1
lost unsupported: 811";

/// An event of a bundle, of this kind.
fn event(time: u64, tid: u64, kind: u64, body: &[Vec<u8>]) -> Vec<u8> {
    let fields = [
        number(1, time),
        number(2, tid),
        message(kind, &body.concat()),
    ];
    message(2, &fields.concat())
}

fn switch(time: u64, prev: (&str, u64, u64), next: (&str, u64), state: u64) -> Vec<u8> {
    let body = [
        message(1, prev.0.as_bytes()),
        number(2, prev.1),
        number(3, prev.2),
        number(4, state),
        message(5, next.0.as_bytes()),
        number(6, next.1),
        number(7, 120),
    ];
    event(time, prev.1, 4, &body)
}

fn bundle(cpu: u64, fields: &[Vec<u8>]) -> Vec<u8> {
    message(1, &[&[number(1, cpu)][..], fields].concat().concat())
}

/// Kernel events as (time, CPU, what).
fn kernel(recording: &Recording) -> Vec<(u64, u32, KernelEventKind)> {
    recording
        .kernel
        .iter()
        .map(|event| (event.time.0, event.cpu.0, event.what))
        .collect()
}

fn told(prev: Option<u32>, state: Left, next: Option<u32>) -> KernelEventKind {
    let (prev, next) = (prev.map(Task), next.map(Task));
    KernelEventKind::Switch { prev, state, next }
}

/// Goal: the compact form means the same as single events. Method: two switches and two wake-ups by hand, on
/// CPU 2: the first running thread is not known, the waker is the running thread, and an interrupt's wake-up
/// has none. A switch and a wake-up of one time come in that order.
#[test]
fn compact_events_are_read() {
    let compact = [
        packed(1, &[1_000, 500]),
        packed(2, &[1, 0]),
        packed(3, &[11, 12]),
        packed(4, &[120, 98]),
        message(5, b"eleven"),
        message(5, b"twelve"),
        packed(6, &[0, 1]),
        packed(7, &[1_500, 100]),
        packed(8, &[11, 11]),
        packed(9, &[3, 0]),
        packed(10, &[120, 120]),
        packed(11, &[0, 0]),
        packed(12, &[0, 0x10]),
    ];
    let bytes = file(&[bundle(2, &[message(4, &compact.concat())])]);
    let recording = read_all(&bytes);
    let waking = |by: Option<u32>, target| KernelEventKind::Waking {
        task: Task(0),
        by: by.map(Task),
        target: Cpu(target),
    };
    let expected = [
        (1_000, 2, KernelEventKind::Lost { events: 0 }),
        (1_000, 2, told(None, Left::Sleeping, Some(0))),
        (1_500, 2, told(Some(0), Left::Runnable, Some(1))),
        (1_500, 2, waking(Some(1), 3)),
        (1_600, 2, waking(None, 0)),
    ];
    assert_eq!(kernel(&recording), expected);
    let threads: Vec<_> = recording
        .threads
        .iter()
        .map(|t| (&t.name[..], t.tid, t.priority))
        .collect();
    assert_eq!(
        threads,
        [("eleven", Some(11), 120), ("twelve", Some(12), 98)]
    );
    assert_eq!(recording.origin.wakers, Wakers::Decided);
}

/// Goal: bundles of several CPUs are put in one order, lost events are where they are missing, and states
/// mean what they mean in that kernel, even if it is named last. Method: CPU 1 is written first; state 0x40
/// is "dead" in 4.4.
#[test]
fn bundles_come_into_one_order() {
    let first = bundle(
        1,
        &[switch(20, ("b", 2, 120), ("c", 3), 0x40), number(3, 1)],
    );
    let second = bundle(
        0,
        &[
            switch(10, ("swapper/0", 0, 120), ("a", 1), 0),
            switch(30, ("a", 1, 120), ("swapper/0", 0), 2),
        ],
    );
    let release = [message(3, b"4.4.0"), message(4, b"aarch64")].concat();
    let system = message(45, &message(1, &release));
    let recording = read_all(&file(&[first, second, system]));
    let expected = [
        (10, 0, told(None, Left::Runnable, Some(0))),
        (20, 1, KernelEventKind::Lost { events: 0 }),
        (20, 1, told(Some(1), Left::Dead, Some(2))),
        (30, 0, told(Some(0), Left::Blocked, None)),
    ];
    assert_eq!(kernel(&recording), expected);
    assert_eq!(recording.losses.get(Loss::Gaps), 1);
}

/// Goal: calls of binder are read, and what needs no answer is none. Method: a call from one CPU to another,
/// its answer, and a transaction that goes one way.
#[test]
fn binder_calls_are_read() {
    let sent = |time, tid, id, process, is_reply, flags| {
        let [proc, reply] = [number(3, process), number(5, is_reply)];
        event(
            time,
            tid,
            50,
            &[number(1, id), proc, reply, number(7, flags)],
        )
    };
    let received = |time, tid, id| event(time, tid, 51, &[number(1, id)]);
    let first = [
        switch(5, ("swapper/0", 0, 120), ("app", 7), 0),
        sent(10, 7, 1, 9, 0, 0x10),
        received(60, 7, 2),
        sent(70, 7, 3, 9, 0, 0x11),
    ];
    let second = [
        switch(15, ("swapper/1", 0, 120), ("server", 9), 0),
        received(20, 9, 1),
        sent(50, 9, 2, 7, 1, 0),
        received(80, 9, 3),
    ];
    let recording = read_all(&file(&[bundle(0, &first), bundle(1, &second)]));
    let notes = recording.annotations.iter();
    let mut told: Vec<_> = notes
        .map(|note| (note.begin.0, note.end.0, note.name.as_str()))
        .collect();
    told.sort_unstable();
    let wanted = [
        (10, 60, "binder call to server"),
        (20, 50, "binder call from app"),
    ];
    assert_eq!(told, wanted);
    assert!(recording.losses.is_empty(), "{:?}", recording.losses);
}

/// Goal: waits for fences of devices are read, and who signals them, if it is a thread. Method: two waits, of
/// which a thread on another CPU ends one, and an interrupt there the other.
#[test]
fn fences_are_read() {
    let step = |time, tid, kind, seqno| {
        let names = [message(2, b"v3d"), message(4, b"v3d-bin")].concat();
        event(time, tid, kind, &[number(1, 7), names, number(3, seqno)])
    };
    let in_interrupt = |time, tid, seqno| {
        let names = [message(2, b"v3d"), message(4, b"v3d-bin")].concat();
        let body = [number(1, 7), names, number(3, seqno)].concat();
        // `common_flags`: TRACE_FLAG_HARDIRQ.
        let parts = [
            number(1, time),
            number(2, tid),
            message(416, &body),
            number(5, 8),
        ];
        message(2, &parts.concat())
    };
    let first = [
        switch(5, ("swapper/0", 0, 120), ("app", 7), 0),
        step(10, 7, 417, 1),
        step(40, 7, 418, 1),
        step(50, 7, 417, 2),
        step(80, 7, 418, 2),
    ];
    let second = [
        switch(15, ("swapper/1", 0, 120), ("worker", 9), 0),
        step(30, 9, 416, 1),
        in_interrupt(70, 9, 2),
    ];
    let recording = read_all(&file(&[bundle(0, &first), bundle(1, &second)]));
    let notes = recording.annotations.iter();
    let told: Vec<_> = notes
        .map(|note| (note.begin.0, note.end.0, note.name.as_str()))
        .collect();
    let name = "device fence v3d-bin";
    assert_eq!(told, [(10, 40, name), (50, 80, name)]);
    let arrows: Vec<u64> = recording.marks.iter().map(|mark| mark.time.0).collect();
    assert_eq!(arrows, [30, 40]);
    assert!(recording.losses.is_empty(), "{:?}", recording.losses);
}

/// An event of a kind without a message in the format.
fn generic(time: u64, name: &str, values: &[(&str, u64)]) -> Vec<u8> {
    let value = |(name, value): &(&str, u64)| {
        let field = [message(1, name.as_bytes()), number(5, *value)];
        message(2, &field.concat())
    };
    let values = values.iter().map(value);
    let body: Vec<Vec<u8>> = std::iter::once(message(1, name.as_bytes()))
        .chain(values)
        .collect();
    event(time, 7, 327, &body)
}

/// A wake-up of thread `ui` in one of its kinds, with the success and the CPU that it names.
fn wake(time: u64, tid: u64, kind: u64, success: u64) -> Vec<u8> {
    let body = [
        message(1, b"ui"),
        number(2, 7),
        number(3, 110),
        number(4, success),
        number(5, 1),
    ];
    event(time, tid, kind, &body)
}

/// Kernel events of many kinds, and markers.
fn events_of_every_kind() -> Vec<u8> {
    let marker = |time, text: &[u8]| event(time, 7, 3, &[number(1, 0xffff), message(2, text)]);
    let events = [
        switch(100, ("swapper/0", 0, 120), ("ui", 7), 0),
        marker(110, b"B|7|draw\n"),
        wake(120, 7, 20, 1),
        marker(130, b"E|7\n"),
        event(
            140,
            7,
            353,
            &[
                message(1, b"ui"),
                number(2, 49),
                number(3, 110),
                number(4, 7),
            ],
        ),
        event(150, 7, 36, &[number(1, 5), message(2, b"timer")]),
        event(151, 7, 24, &[number(1, 1)]),
        event(152, 7, 25, &[number(1, 1)]),
        event(153, 7, 37, &[number(1, 5), number(2, 1)]),
        event(
            160,
            7,
            329,
            &[number(1, 202), number(2, 0xabc), number(2, 128)],
        ),
        event(170, 7, 330, &[number(1, 202), number(2, (-11i64) as u64)]),
        event(175, 0, 11, &[number(1, 1_800_000), number(2, 1)]),
        event(176, 0, 13, &[number(1, u32::MAX.into()), number(2, 1)]),
        wake(177, 7, 491, 0),
        event(178, 7, 18, &[number(1, 7), number(3, 1)]),
        event(
            179,
            7,
            239,
            &[
                message(1, b"ui"),
                number(2, 7),
                message(3, b"kid"),
                number(4, 8),
            ],
        ),
        generic(179, "paceline_throttle", &[("tid", 8), ("begins", 1)]),
        generic(179, "paceline_throttle", &[("tid", 8)]),
        generic(179, "block_rq_issue", &[("tid", 8), ("begins", 1)]),
        event(180, 7, 999, &[]),
        switch(200, ("ui", 7, 110), ("swapper/0", 0), 1),
    ];
    bundle(0, &events)
}

/// A small file with everything: a process tree, clocks, events of many kinds, markers, track events by two
/// sequences before and after their tracks' descriptors, counters, arrows, packed packets.
fn everything() -> Vec<u8> {
    let tree = message(
        2,
        &[
            message(1, &[number(1, 7), message(3, b"com.game\0x")].concat()),
            message(
                2,
                &[number(1, 9), message(2, b"other"), number(3, 7)].concat(),
            ),
        ]
        .concat(),
    );
    let clock = |id, time| message(1, &[number(1, id), number(2, time)].concat());
    let snapshot = message(6, &[clock(3, 1_000), clock(6, 1_050)].concat());
    let said = |time, fields: &[Vec<u8>]| {
        let event = message(11, &fields.concat());
        [number(8, time), number(10, 5), number(13, 2), event].concat()
    };
    let (begin, end) = (number(9, 1), number(9, 2));
    let words = message(
        12,
        &message(2, &[number(1, 3), message(2, b"load")].concat()),
    );
    let defaults = message(59, &[number(58, 3), message(11, &number(11, 77))].concat());
    let first = [number(10, 5), number(13, 1), words, defaults].concat();
    let flow = |field: u64, id: u64| {
        [wire_test::varint(field << 3 | 1), id.to_le_bytes().to_vec()].concat()
    };
    let thread = [number(1, 7), number(2, 9), message(5, b"loader")].concat();
    let own = [number(1, 78), message(2, b"requests"), number(5, 79)].concat();
    let process = [number(1, 79), message(3, &number(1, 7))].concat();
    let counter = [
        number(1, 80),
        message(2, b"fps"),
        message(8, &message(6, b"Hz")),
    ]
    .concat();
    let packets = [
        tree,
        snapshot,
        first,
        events_of_every_kind(),
        said(1_050, &[begin.clone(), number(10, 3), flow(47, 4)]),
        said(1_060, std::slice::from_ref(&end)),
        said(1_070, &[begin, message(23, b"request"), number(11, 78)]),
        said(1_080, &[end, number(11, 78)]),
        said(1_090, &[number(9, 4), number(11, 80), number(30, 60)]),
        said(1_095, &[number(9, 3), message(23, b"done"), flow(48, 4)]),
        message(60, &[number(1, 77), message(4, &thread)].concat()),
        message(60, &own),
        message(60, &process),
        message(60, &counter),
    ];
    let plain = file(&packets);
    let mut deflated = flate2::read::ZlibEncoder::new(&plain[..], flate2::Compression::fast());
    let mut packed = Vec::new();
    deflated.read_to_end(&mut packed).unwrap();
    file(&[message(50, &packed)])
}

/// Goal: each kind of content is read with its meaning. Method: a file by hand with one of each, everything
/// in it packed into one packet; times of track events are 50 ns behind the kernel's.
#[test]
fn every_kind_arrives() {
    let recording = read_all(&everything());
    let mut lines: Vec<String> = kernel(&recording)
        .iter()
        .map(|event| format!("{event:?}"))
        .collect();
    for mark in &recording.marks {
        let word = |name| recording.names.word(name).to_owned();
        let what = match mark.what {
            MarkKind::Begin(name) => format!("begin {}", word(name)),
            MarkKind::AsyncBegin { name, cookie } => format!("begin {} {cookie}", word(name)),
            MarkKind::AsyncEnd { name, cookie } => format!("end {} {cookie}", word(name)),
            MarkKind::Instant(name) => format!("instant {}", word(name)),
            other => format!("{other:?}"),
        };
        lines.push(format!("{} {} {what}", mark.time.0, mark.on.0));
    }
    for thread in &recording.threads {
        lines.push(format!(
            "{} {:?} {:?} {}",
            thread.name, thread.tid, thread.process, thread.priority
        ));
    }
    lines.push(format!("{:?}", recording.processes));
    lines.push(format!("{:?}", recording.counters));
    lines.push(format!("{:?}", recording.losses));
    let expected: Vec<&str> = include_str!("everything.txt").lines().collect();
    assert_eq!(lines, expected, "\n{}", lines.join("\n"));
}

/// Goal: a file may end anywhere. Method: the file with everything, not packed, cut off at each byte: it is
/// read without a panic, and the missing part is counted, unless a packet ends there.
#[test]
fn a_file_may_end_anywhere() {
    let packed = everything();
    let packet = wire::Row::of(&packed).map(|row| row.bytes(1)).unwrap();
    let mut bytes = Vec::new();
    let deflated = Packet::of(packet)
        .and_then(|packet| packet.deflated)
        .unwrap();
    ZlibDecoder::new(deflated).read_to_end(&mut bytes).unwrap();
    let mut ends = 0;
    for length in 0..=bytes.len() {
        let cut = read_all(&bytes[..length]);
        ends += usize::from(cut.losses.get(Loss::Truncated) == 0);
    }
    assert_eq!(ends, 1 + wire::Fields::of(&bytes).count());
    for length in 0..packed.len() {
        read_all(&packed[..length]);
    }
}

/// Goal: a broken file is no worse than an empty one. Method: 20 000 times, some bytes of the file with
/// everything are changed, at places drawn from a seed.
#[test]
fn broken_files_are_read_as_far_as_they_go() {
    let mut random = event::Random::new(7);
    let packed = everything();
    let packet = wire::Row::of(&packed).map(|row| row.bytes(1)).unwrap();
    let mut bytes = Vec::new();
    let deflated = Packet::of(packet)
        .and_then(|packet| packet.deflated)
        .unwrap();
    ZlibDecoder::new(deflated).read_to_end(&mut bytes).unwrap();
    let mut differ = 0;
    let whole = read_all(&bytes);
    for _ in 0..20_000 {
        let mut broken = bytes.clone();
        for _ in 0..random.within(1, 4) {
            let at = random.below(broken.len() as u64) as usize;
            broken[at] = random.next_u64() as u8;
        }
        differ += usize::from(read_all(&broken) != whole);
    }
    assert!(differ > 10_000, "{differ}");
}

/// Goal: events that the kernel's buffers lost during the recording are counted once: recorders report them
/// again each time they write. Method: two CPUs, three reports; of one CPU the beginning is missing.
#[test]
fn overruns_are_counted() {
    let stats = |phase, cpus: &[[u64; 4]]| {
        let cpus = cpus.iter().map(|[cpu, overrun, commit, dropped]| {
            let lost = [number(3, *overrun), number(4, *commit), number(8, *dropped)];
            message(2, &[number(1, *cpu), lost.concat()].concat())
        });
        let cpus: Vec<Vec<u8>> = cpus.collect();
        message(34, &[number(1, phase), cpus.concat()].concat())
    };
    let recording = read_all(&file(&[
        stats(1, &[[0, 100, 0, 0]]),
        stats(2, &[[0, 130, 1, 0], [1, 0, 0, 2]]),
        stats(1, &[[0, 100, 0, 0]]),
        stats(2, &[[0, 140, 1, 0], [1, 0, 0, 5]]),
    ]));
    let lost: Vec<_> = recording.losses.iter().collect();
    assert_eq!(lost, [(Loss::KernelEvents, 40 + 1 + 5)]);
    let broken = read_all(&file(&[message(34, &[0x12, 5])]));
    assert_eq!(broken.losses.get(Loss::Malformed), 1);
}

/// Goal: a file without the offset of its clock to the boot clock is read on its own clock. Method: a slice
/// on the monotonic clock alone.
#[test]
fn a_clock_of_its_own_is_kept() {
    let thread = message(
        60,
        &[
            number(1, 1),
            message(4, &[number(1, 3), number(2, 4)].concat()),
        ]
        .concat(),
    );
    let event = message(
        11,
        &[number(9, 3), number(11, 1), message(23, b"x")].concat(),
    );
    let bytes = file(&[thread, [number(8, 99), number(58, 3), event].concat()]);
    let recording = read_all(&bytes);
    assert_eq!(recording.origin.clock, crate::Clock::Monotonic);
    assert_eq!(recording.marks[0].time, Nanos(99));
    assert_eq!(recording.threads[0].tid, Some(4));
}

/// Goal: packets in zstd are read. Method: a frame by hand, whose one block is stored as it is (RFC 8878,
/// 3.1.1).
#[test]
fn packets_in_zstd_are_read() {
    let event = bundle(0, &[switch(10, ("swapper/0", 0, 120), ("a", 1), 0)]);
    let plain = file(&[event]);
    let length = plain.len() as u32;
    // A single segment with a size of one byte; the last block, raw.
    let head = [0x28, 0xb5, 0x2f, 0xfd, 0x20, length as u8];
    let block = (length << 3 | 1).to_le_bytes();
    let frame = [&head[..], &block[..3], &plain].concat();
    let recording = read_all(&file(&[message(133, &frame)]));
    assert_eq!(
        kernel(&recording),
        [(10, 0, told(None, Left::Runnable, Some(0)))]
    );
    assert!(recording.losses.is_empty());
    let broken = read_all(&file(&[message(133, &frame[..frame.len() - 9])]));
    assert!(!broken.losses.is_empty());
}
