//! Goal: little cores that take part in ranges make them shorter where they can, and never longer: no thread
//! waits for one, and where the kernel chooses clocks by load, the clocks that fall because of them cost
//! nothing. Method: frames of a range each on the simulated machines that have little cores, with workers on
//! the fast CPUs alone and with all, at fixed clocks and under `schedutil`.

use event::Nanos;
use paceline::Placement;
use sim::SimConfig;
use sim::machine::{Governor, Machine};

use super::{PERIOD, PHONE, Run, run_ranges};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Clocks {
    /// Fast clusters at their highest frequencies, as in a phone's mode for games. Little cores sleep deeply
    /// and wake up slow, as always.
    Fixed,
    /// As the machine's file says.
    ByLoad,
}

/// A machine of the library, its number of fast CPUs, and their capacity together, in 1024ths of the fastest
/// one's.
fn machine(name: &str, clocks: Clocks) -> (SimConfig, usize, u64) {
    let mut machine = Machine::named(name).expect("it is in the library");
    let clusters = machine.clusters.iter();
    let slowest = clusters.map(|cluster| cluster.capacity).min();
    let (mut cpus, mut speed) = (0, 0);
    for cpu in &machine.cpus {
        let capacity = machine.clusters[cpu.cluster as usize].capacity;
        if Some(capacity) != slowest {
            cpus += 1;
            speed += u64::from(capacity);
        }
    }
    let fast = machine.clusters.iter_mut();
    for cluster in fast.filter(|cluster| Some(cluster.capacity) != slowest) {
        if clocks == Clocks::Fixed {
            let point = cluster.points.len() as u32 - 1;
            cluster.governor = Governor::Fixed { point };
        }
    }
    (SimConfig::on(machine, "eevdf-6.18", 1), cpus, speed)
}

/// The same frames without little cores and with them. `what`: how many, the items of each, their work.
fn both(name: &str, clocks: Clocks, period: Nanos, what: (u64, usize, Nanos)) -> [Run; 2] {
    let run = |with_little| {
        let (config, fast, _) = machine(name, clocks);
        let workers = if with_little { None } else { Some(fast - 1) };
        run_ranges(config, workers, Placement::LittleCoresInLoops, period, what)
    };
    [false, true].map(run)
}

fn worst(times: &[Nanos]) -> Nanos {
    *times.iter().max().expect("there are frames")
}

fn median(times: &[Nanos]) -> Nanos {
    let mut sorted = times.to_vec();
    sorted.sort();
    sorted[sorted.len() / 2]
}

fn mean(times: &[Nanos]) -> Nanos {
    Nanos(times.iter().map(|time| time.0).sum::<u64>() / times.len() as u64)
}

/// Goal: little cores make no frame slower, and long ones faster. Method: frames of ranges from short to
/// long, at fixed clocks, with workers for the fast CPUs only, and with all.
#[test]
fn little_cores_are_never_waited_for() {
    let micros = Nanos::from_micros;
    // Of the time without them: how much it may be at most, in percent, with them.
    for (name, items, work, percent) in [
        (PHONE, 100, micros(1), 101),
        (PHONE, 400, micros(1), 101),
        (PHONE, 100, micros(5), 101),
        (PHONE, 200, micros(5), 101),
        (PHONE, 400, micros(5), 101),
        (PHONE, 200, micros(20), 101),
        (PHONE, 2_000, micros(4), 97),
        (PHONE, 4_000, micros(8), 97),
        (PHONE, 40, micros(500), 101),
        ("galaxy-s22-exynos", 300, micros(1), 101),
        ("galaxy-s22-exynos", 4_000, micros(8), 97),
        ("core-i9-12900k", 100, micros(10), 101),
        ("core-i9-12900k", 20_000, micros(8), 90),
    ] {
        let [without, with] = both(name, Clocks::Fixed, PERIOD, (12, items, work));
        println!(
            "{name}, {items} items of {work}: {} without them, {} with them and {} pieces",
            median(&without.times),
            median(&with.times),
            with.stats.slow_pieces
        );
        for what in [median, worst] as [fn(&[Nanos]) -> Nanos; 2] {
            let (without, with) = (what(&without.times), what(&with.times));
            assert!(
                with.0 * 100 <= without.0 * percent,
                "{with} > {percent} % of {without}"
            );
        }
    }
}

/// The times of some frames: the first one, the mean of the first twelve, that of the last sixteen and that
/// of all, each without little cores and with them.
type Row = [[Nanos; 2]; 4];

/// Loops that take the fast CPUs `millis` at their highest clocks.
fn row(name: &str, clocks: Clocks, millis: u64) -> Row {
    const FRAMES: usize = 64;
    let (period, item) = match millis {
        ..16 => (PERIOD, 40),
        _ => (Nanos(3 * PERIOD.0), 100),
    };
    let (_, _, speed) = machine(name, clocks);
    let items = (millis * 1_000 * speed / 1024 / item) as usize;
    let what = (FRAMES as u64, items, Nanos::from_micros(item));
    let runs = both(name, clocks, period, what);
    [0..1, 0..12, FRAMES - 16..FRAMES, 0..FRAMES]
        .map(|frames| [0, 1].map(|with: usize| mean(&runs[with].times[frames.clone()])))
}

/// The figures of the guide's line that begins like this, in milliseconds.
fn of_the_guide(begin: &str) -> Vec<f64> {
    let guide = include_str!("../../docs/topology.md");
    let line = guide.lines().find_map(|line| line.strip_prefix(begin));
    let cells = line.unwrap_or("").split(['|', '→']).map(str::trim);
    cells.filter_map(|cell| cell.parse().ok()).collect()
}

/// Goal: the table of little cores in docs/topology.md is right: they make no loop longer, neither first nor
/// settled, whatever the clocks do, and keep what they gain. Method: short, middle and long loops on each
/// machine, which takes some seconds; the figures are those of the guide's table, and none is more than 2 %
/// worse.
#[test]
fn the_table_of_the_guide_is_so() {
    let mut differ = Vec::new();
    for (machine, name) in [
        ("S22, Exynos", "galaxy-s22-exynos"),
        ("S22, Snapdragon", PHONE),
        ("M1", "apple-m1"),
        ("i9-12900K", "core-i9-12900k"),
    ] {
        // One frequency is all that the file of the last one knows.
        let is_fixed = name == "core-i9-12900k";
        for (clocks, word) in [(Clocks::Fixed, "fixed"), (Clocks::ByLoad, "by load")] {
            for millis in [2, 8, 40] {
                if is_fixed && clocks == Clocks::ByLoad {
                    continue;
                }
                let begin = format!("| {machine} | {word} | {millis} ms |");
                let row = row(name, clocks, millis);
                let ms = |time: Nanos| time.0 as f64 / 1e6;
                let cells = row.map(|[a, b]| format!(" {:.1} → {:.1} |", ms(a), ms(b)));
                println!("{begin}{}", cells.concat());
                for [without, with] in row {
                    assert!(
                        with.0 * 100 <= without.0 * 102,
                        "{with} instead of {without}"
                    );
                }
                let said = of_the_guide(&begin);
                let is_near =
                    |(said, time): (&f64, &Nanos)| (said - ms(*time)).abs() <= 0.1 + said / 50.0;
                if said.len() != 8 || !said.iter().zip(row.as_flattened()).all(is_near) {
                    differ.push(begin);
                }
            }
        }
    }
    assert!(
        differ.is_empty(),
        "docs/topology.md says something else: {differ:#?}"
    );
}
