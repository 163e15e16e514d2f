//! Which frames are held up under each kernel, and how long the longest ones wait.

use console::Failure;
use event::Nanos;
use measure::Times;

use super::{Frames, POLICY, scene_of};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Cell, Findings, Table};
use crate::commands::experiment::lab::{self, Effort};
use crate::commands::experiment::priority_inversion::PHONES;
use crate::commands::experiment::priority_inversion::choices::HELD_UP;
use crate::commands::experiment::priority_inversion::remedy::{Remedy, thread};
use crate::commands::experiment::priority_inversion::scene_jobs::fits;

/// Kernels on which the scene is looked for: the newer ones, too.
const KERNELS: [&str; 3] = [POLICY, "eevdf-6.6", "eevdf-6.18"];
/// What is compared on them.
const COMPARED: [Remedy; 6] = [
    Remedy::None,
    Remedy::Park,
    Remedy::ParkAnywhere,
    Remedy::Paceline,
    Remedy::PacelineInOrder,
    Remedy::PacelineAll,
];

impl Frames<'_> {
    /// How many take longer than this, of 1000.
    fn held_up(&self, most: Nanos) -> f64 {
        let count = self.times.iter().filter(|time| **time > most.0).count();
        count as f64 * 1000.0 / self.times.len() as f64
    }
}

/// Which frames are held up, under each kernel. It is a part of its own: a process has room for only so many
/// stacks of simulated threads that do not end.
pub(in super::super) fn run(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let seeds: Vec<u64> = effort.seeds(60, effort.some(1_000)).collect();
    let machines = PHONES.map(lab::machine);
    let frames = Frames::run_all(&machines, &COMPARED, &KERNELS, effort, &seeds)?;
    let most = effort.time(&HELD_UP);
    let too_much = machines.each_ref().map(|machine| {
        let late = |seed: &&u64| {
            let scene = scene_of(&machine.name, effort, **seed);
            let start = thread(&scene, "UnityMain").start.unwrap_or_default();
            !fits(&scene, machine, start + most)
        };
        seeds.iter().filter(late).count() as f64 * 1000.0 / seeds.len() as f64
    });
    kernels(&frames, most, too_much, findings);
    findings.claims.extend(claims_of_kernels(&frames, most));
    Ok(())
}

/// How many frames are held up under each kernel, and their p99. `too_much`: on each phone, in how many
/// frames all jobs are about as much work as fits.
fn kernels(all: &[Frames<'_>], most: Nanos, too_much: [f64; 2], findings: &mut Findings) {
    let title = format!("Frames that take longer than {most}, of 1000, by the kernel");
    let held_up = |frames: &Frames<'_>| Cell::from(frames.held_up(most));
    let mut columns = columns_of_kernels();
    columns.push("all jobs hardly fit".to_owned());
    let mut table = Table::with_columns(title, columns);
    for (phone, too_much) in PHONES.iter().zip(too_much) {
        for remedy in COMPARED {
            let is_all = matches!(remedy, Remedy::PacelineInOrder | Remedy::PacelineAll);
            let bound = Cell::from(is_all.then_some(too_much));
            table.row(by_kernel(all, phone, remedy, &held_up).chain([bound]));
        }
    }
    findings.tables.push(table);
    let p99 = |frames: &Frames<'_>| Nanos(Times::of(&frames.times).p99).into();
    let title = "99 of 100 of these frames wait no longer than this, by the kernel";
    let mut table = Table::with_columns(title, columns_of_kernels());
    for phone in PHONES {
        for remedy in COMPARED {
            table.row(by_kernel(all, phone, remedy, &p99));
        }
    }
    findings.tables.push(table);
}

fn columns_of_kernels() -> Vec<String> {
    let columns = ["machine", "remedy"].into_iter().chain(KERNELS);
    columns.map(str::to_owned).collect()
}

/// A row of what the frames of a remedy show under each kernel.
fn by_kernel<'a>(
    all: &'a [Frames<'_>],
    phone: &'a str,
    remedy: Remedy,
    what: &'a dyn Fn(&Frames<'_>) -> Cell,
) -> impl Iterator<Item = Cell> + 'a {
    let is_it = move |frames: &&Frames<'_>| {
        frames.kind.machine.name == *phone && frames.kind.remedy == remedy
    };
    let first = [Cell::from(phone), remedy.name().into()];
    first.into_iter().chain(all.iter().filter(is_it).map(what))
}

fn claims_of_kernels(all: &[Frames<'_>], most: Nanos) -> Vec<Claim> {
    let of = |remedy: Remedy, is_old: bool| {
        let rows = all.iter().filter(move |frames| {
            frames.kind.remedy == remedy && (frames.kind.policy == POLICY) == is_old
        });
        rows.map(|frames| frames.held_up(most))
    };
    let both = |remedy| of(remedy, true).chain(of(remedy, false));
    // Frames of a thousand are rare, and their number is about as uncertain as that of drawn ones.
    let thousands = all
        .first()
        .map_or(1.0, |frames| frames.times.len() as f64 / 1e3);
    let more = both(Remedy::Paceline).zip(both(Remedy::ParkAnywhere));
    let more = more
        .map(|(ours, parking)| {
            (ours - parking) * thousands.sqrt() / (ours + parking).max(1.0).sqrt()
        })
        .fold(f64::MIN, f64::max);
    let worst = |remedy| both(remedy).fold(0.0, f64::max);
    vec![
        Claim::ours(
            "000-x",
            "Under EEVDF a busy wait holds up fewer frames than under CFS",
        )
        .is(
            Expect::LessThan(of(Remedy::None, true).fold(f64::MAX, f64::min)),
            of(Remedy::None, false).fold(0.0, f64::max),
            "of 1000 frames, the most of both phones and kernels",
        )
        .note(format!(
            "the least under CFS of both phones; a frame is held up if it takes over {most}"
        )),
        Claim::ours(
            "000-xa",
            "If the jobs that the main thread waits for are in the frame's lane, Paceline holds up no more \
             frames than parking does, where threads may run on the same cores",
        )
        .is(
            Expect::AtMost(2.0),
            more,
            "standard errors more, the most of both phones and all kernels",
        )
        .note(format!(
            "at most {:.0} of 1000 against {:.0}, and {:.0} if it does not know which they are or waits for \
             all; parking leaves {:.0} where worker 3 has the last core for \
             itself, as in the pictures",
            worst(Remedy::Paceline),
            worst(Remedy::ParkAnywhere),
            worst(Remedy::PacelineInOrder).max(worst(Remedy::PacelineAll)),
            worst(Remedy::Park)
        )),
    ]
}
