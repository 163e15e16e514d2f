//! Files that are decoded by several threads give the same as with one.

use std::cell::Cell;
use std::path::Path;

use event::Random;

use super::wire_test::{file, message, number};
use crate::read::read_on;
use crate::{Executor, Part, Recording, Serial};

/// Does parts in an unexpected order, and counts them.
struct Shuffled {
    width: usize,
    random: Cell<u64>,
    parts: Cell<usize>,
}

impl Shuffled {
    fn new(width: usize) -> Shuffled {
        let (random, parts) = (Cell::new(1), Cell::new(0));
        Shuffled {
            width,
            random,
            parts,
        }
    }
}

impl Executor for Shuffled {
    fn width(&self) -> usize {
        self.width
    }

    fn run(&self, mut parts: Vec<Part<'_>>) {
        self.parts.set(self.parts.get() + parts.len());
        let mut random = Random::new(self.random.get());
        while !parts.is_empty() {
            let next = random.below(parts.len() as u64) as usize;
            parts.swap_remove(next)();
        }
        self.random.set(random.next_u64());
    }
}

/// The recording of a file; all else follows from that.
fn all(bytes: &[u8], executor: &dyn Executor) -> Result<Recording, String> {
    read_on(bytes, "divided", executor).map_err(|error| error.to_string())
}

fn examples() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/traces");
    let names = [
        "ms-android12-emulator-a.pftrace.gz",
        "ms-galaxy-s20.perfetto-trace.gz",
    ];
    let unpacked = |name: &&str| {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(folder.join(name)).unwrap();
        let mut file = flate2::read::MultiGzDecoder::new(file);
        std::io::Read::read_to_end(&mut file, &mut bytes).unwrap();
        bytes
    };
    names.iter().map(unpacked).collect()
}

/// A thread's track.
fn track() -> Vec<u8> {
    let thread = message(4, &[number(1, 5), number(2, 5)].concat());
    [
        number(10, 1),
        message(60, &[number(1, 77), thread].concat()),
    ]
    .concat()
}

/// An event on it: a slice begins (1) or ends (2), or a mark (3).
fn said(time: u64, kind: u64) -> Vec<u8> {
    let fields = [number(9, kind), number(11, 77), message(23, b"said")];
    let event = message(11, &fields.concat());
    [number(8, time), number(10, 1), event].concat()
}

/// Bundles of CPUs in turn, on three clocks, with switches of the same threads everywhere, markers, gaps, and
/// between them packets that change their meaning: the kind of the machine, the offsets of the clocks. Slices
/// and marks of a program are everywhere in between.
fn eventful(bundles: u64) -> Vec<u8> {
    let mut random = Random::new(7);
    let mut packets = vec![track()];
    for at in 0..bundles {
        packets.push(said(at * 1_000 + random.below(500), 1 + at % 3));
        let cpu = random.below(11);
        let mut bundle = number(1, cpu);
        for step in 0..20 {
            let time = at * 1_000 + step * 40 + random.below(1_500);
            let tid = random.below(9);
            let what = match random.below(4) {
                0 => message(
                    3,
                    &message(2, format!("B|{tid}|n{}", random.below(50)).as_bytes()),
                ),
                1 => {
                    let call = [number(1, 98), number(2, random.below(99)), number(2, 0)];
                    message(329, &call.concat())
                }
                _ => {
                    let name = |tid: u64| format!("thread {tid}");
                    let fields = [
                        message(1, name(tid).as_bytes()),
                        number(2, tid),
                        number(3, 120),
                        number(4, random.below(3)),
                        message(5, name(tid + 1).as_bytes()),
                        number(6, tid + 1),
                        number(7, 110 + random.below(2)),
                    ];
                    message(4, &fields.concat())
                }
            };
            let event = [number(1, time), number(2, tid), what].concat();
            bundle.extend(message(2, &event));
        }
        if random.below(9) == 0 {
            bundle.extend(number(3, 1));
        }
        if random.below(40) == 0 {
            let clock = 2 + random.below(3);
            let stamp = [number(5, clock), number(6, at * 900), number(7, at * 1_000)];
            bundle.extend(stamp.concat());
        }
        packets.push(message(1, &bundle));
        if random.below(700) == 0 {
            let machine = ["x86_64", "aarch64", "vax"][random.below(3) as usize];
            packets.push(message(45, &message(1, &message(4, machine.as_bytes()))));
        }
        if random.below(700) == 0 {
            let clock = |id: u64, time: u64| message(1, &[number(1, id), number(2, time)].concat());
            let both = [clock(6, at * 1_000), clock(5, at * 900 + 3)].concat();
            packets.push(message(6, &both));
        }
    }
    file(&packets)
}

/// Goal: the recording is the same with every number of decoders, in any order. Method: real files, and one
/// made to depend on the order of everything, whole and in pieces, with executors of several widths that turn
/// the order of parts upside down.
#[test]
fn divided_work_gives_the_same() {
    let mut files = examples();
    files.push(eventful(2_000));
    let mut parts = 0;
    for bytes in files {
        let expected = all(&bytes, &Serial);
        for width in [2, 3, 100] {
            let executor = Shuffled::new(width);
            assert!(all(&bytes, &executor) == expected, "{width}");
            parts += executor.parts.get();
        }
    }
    assert!(parts > 20, "{parts} parts are hardly worth the name");
}

/// Goal: the same for broken files. Method: bytes changed, left out and cut off at random.
#[test]
fn divided_work_gives_the_same_of_broken_files() {
    let mut random = Random::new(3);
    let files = [eventful(150), examples().remove(0)[..60_000].to_vec()];
    for round in 0..200 {
        let mut bytes = files[round % files.len()].clone();
        for _ in 0..=random.below(8) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(3) {
                0 => bytes[at] = random.next_u64() as u8,
                1 => drop(bytes.drain(at..(at + random.below(40) as usize).min(bytes.len()))),
                _ => bytes[at] ^= 1 << random.below(8),
            }
        }
        let expected = all(&bytes, &Serial);
        assert!(all(&bytes, &Shuffled::new(4)) == expected, "{round}");
    }
}
