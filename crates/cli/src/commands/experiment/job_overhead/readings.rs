//! Graphs that differ by their seeds, and the article read in each way: medians and ranges.

use console::Failure;
use event::Nanos;
use measure::Spread;
use workload::baseline::{BaselineReading, JobsBySystem};

use super::frame_times::{CLEARLY, cells_in_words};
use super::scaling::{ALL_CPUS, CHAINED, NEW, OLD, ScalingTrial};
use super::subject::{INSTRUCTIONS, LINES, MACHINE, SystemUnderTest};
use crate::commands::experiment::chosen::ChosenValue;
use crate::commands::experiment::claim::{Claim, Expect, short};
use crate::commands::experiment::findings::{Cell, Findings, Table};
use crate::commands::experiment::lab::{self, Effort};

/// What was only chosen here.
pub(super) const VALUES: &[&ChosenValue] = &[&INSTRUCTIONS, &LINES];
const WORKERS: [usize; 5] = [1, 4, 12, 20, ALL_CPUS];
const PIECES_NS: [u64; 3] = [500, 1_000, 10_000];

/// A job system, read in one way.
struct ReadSystem {
    system: SystemUnderTest,
    reading: BaselineReading,
    name: &'static str,
}

const AS_CHOSEN: BaselineReading = BaselineReading {
    batched: false,
    by_piece: false,
    scheduled: JobsBySystem::ByMain,
};
const BATCHED: BaselineReading = BaselineReading {
    batched: true,
    ..AS_CHOSEN
};
const BY_PIECE: BaselineReading = BaselineReading {
    by_piece: true,
    ..AS_CHOSEN
};

const SYSTEMS: [ReadSystem; 7] = {
    const fn of(
        system: SystemUnderTest,
        reading: BaselineReading,
        name: &'static str,
    ) -> ReadSystem {
        ReadSystem {
            system,
            reading,
            name,
        }
    }
    [
        of(OLD, AS_CHOSEN, "2017.3, at once"),
        of(OLD, BATCHED, "2017.3, in batches"),
        of(CHAINED, AS_CHOSEN, "2021.3, at once"),
        of(CHAINED, BATCHED, "2021.3, in batches"),
        of(NEW, AS_CHOSEN, "2022.2, blocks"),
        of(NEW, BY_PIECE, "2022.2, each piece"),
        of(SystemUnderTest::Paceline, AS_CHOSEN, "paceline"),
    ]
};

/// Both readings of 2017.3.
const AT_ONCE: usize = 0;
const IN_BATCHES: usize = 1;
/// Both readings of 2022.2.
const BLOCKS: usize = 4;
const PIECES: usize = 5;

/// A row of the table: the speed-ups of each system, a number for each graph.
struct ReadRow {
    piece: Nanos,
    workers: usize,
    speed_ups: Vec<Vec<f64>>,
}

impl ReadRow {
    /// How many times as fast as `other` `it` is, over the graphs: the mean, and its standard error.
    fn against(&self, it: usize, other: usize) -> (f64, f64) {
        let [it, other] = [&self.speed_ups[it], &self.speed_ups[other]];
        let ratios: Vec<f64> = it.iter().zip(other).map(|(a, b)| a / b).collect();
        (lab::mean(&ratios), lab::standard_error(&ratios))
    }

    fn paceline_against(&self, other: usize) -> (f64, f64) {
        self.against(SYSTEMS.len() - 1, other)
    }
}

pub(super) fn simulated(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let seeds: Vec<u64> = (0..effort.of(2, 8))
        .map(|more| effort.seed + more)
        .collect();
    let pieces = effort.of(&PIECES_NS[..1], &PIECES_NS[..]);
    let workers = effort.of(&WORKERS[4..], &WORKERS[..]);
    let mut all = Vec::new();
    for &piece in pieces {
        for &workers in workers {
            for place in 0..SYSTEMS.len() {
                all.extend(seeds.iter().map(|&seed| (piece, workers, place, seed)));
            }
        }
    }
    let speed_ups = lab::each("readings", &all, |&(piece, workers, place, seed)| {
        let trial = ScalingTrial {
            piece: Nanos(piece),
            workers,
            system: SYSTEMS[place].system,
        };
        trial.run(SYSTEMS[place].reading, &Effort { seed, ..*effort })
    })?;
    let of_row = SYSTEMS.len() * seeds.len();
    let rows = all.chunks(of_row).zip(speed_ups.chunks(of_row));
    let rows: Vec<ReadRow> = rows
        .map(|(trials, speed_ups)| ReadRow {
            piece: Nanos(trials[0].0),
            workers: trials[0].1,
            speed_ups: speed_ups.chunks(seeds.len()).map(<[f64]>::to_vec).collect(),
        })
        .collect();
    findings.tables.push(table(&rows, seeds.len()));
    findings.claims.push(newer_is_faster(&rows, seeds.len()));
    findings.claims.push(no_slower(&rows, seeds.len()));
    Ok(())
}

fn table(rows: &[ReadRow], graphs: usize) -> Table {
    let title = format!(
        "Speed-up over a serial run on {MACHINE}, {graphs} graphs: the median, and from the least to the most"
    );
    let mut columns = vec!["a piece".to_owned(), "workers".to_owned()];
    columns.extend(SYSTEMS.iter().map(|system| system.name.to_owned()));
    let mut table = Table::with_columns(title, columns);
    for row in rows {
        let cells = row.speed_ups.iter().map(|speed_ups| {
            Spread::of(speed_ups).map(
                |Spread {
                     median, min, max, ..
                 }| {
                    let [median, min, max] = [median, min, max].map(short);
                    Cell::from(format!("{median} ({min} to {max})"))
                },
            )
        });
        let first = [row.piece.into(), (row.workers as u64).into()];
        table.row(first.into_iter().chain(cells.map(Cell::from)));
    }
    table
}

/// "2022.2 is faster with any number of workers": with so many of them, over all graphs and by two standard
/// errors, with the shortest pieces, and with the others.
fn newer_is_faster(rows: &[ReadRow], graphs: usize) -> Claim {
    /// What counts as any number.
    const ALL: Expect = Expect::AtLeast(0.9);
    let shortest = rows.first().map(|row| row.piece).unwrap_or_default();
    let faster = |piece, [new, old]: [usize; 2]| {
        let of = rows.iter().filter(|row| row.piece == piece);
        let is_faster = |row: &&ReadRow| {
            let (mean, error) = row.against(new, old);
            mean - CLEARLY * error > 1.0
        };
        of.clone().filter(is_faster).count() as f64 / of.count() as f64
    };
    let claim = Claim::source(
        "001-d",
        "2022.2 is faster with any number of workers",
        "2022.2 job scheduler, charts",
    )
    .is(
        ALL,
        faster(shortest, [BLOCKS, AT_ONCE]),
        "of the numbers of workers, by two standard errors",
    )
    .or_else("where the queue is not the bottleneck, both take about the same time")
    .varied(
        "batches",
        "in batches, flushed at waits",
        ALL,
        faster(shortest, [BLOCKS, IN_BATCHES]),
    )
    .varied(
        "entries",
        "each piece",
        ALL,
        faster(shortest, [PIECES, AT_ONCE]),
    );
    let mut others: Vec<Nanos> = rows.iter().map(|row| row.piece).collect();
    others.dedup();
    let claim = others[1..].iter().fold(claim, |claim, &piece| {
        claim.varied(
            "pieces",
            piece.to_string(),
            ALL,
            faster(piece, [BLOCKS, AT_ONCE]),
        )
    });
    let slower = rows.iter().filter(|row| {
        let (mean, error) = row.against(BLOCKS, AT_ONCE);
        mean + CLEARLY * error < 1.0
    });
    claim.note(format!(
        "pieces of {shortest}, {graphs} graphs; slower, by as much, in {} of all {} cases; the charts are \
         lost, the direction is the text's",
        slower.count(),
        rows.len()
    ))
}

/// Paceline against both readings of 2022.2, and where it is slower.
fn no_slower(rows: &[ReadRow], graphs: usize) -> Claim {
    const LEAST: Expect = Expect::AtLeast(-CLEARLY);
    let ratios = |place| rows.iter().map(move |row| row.paceline_against(place));
    let least = |place| {
        let errors = ratios(place).map(|(mean, error)| (mean - 1.0) / error.max(f64::MIN_POSITIVE));
        errors.fold(f64::MAX, f64::min)
    };
    let worst = ratios(BLOCKS)
        .map(|(mean, _)| mean)
        .fold(f64::MAX, f64::min);
    let slower = rows.iter().filter(|row| {
        let (mean, error) = row.paceline_against(BLOCKS);
        mean + CLEARLY * error < 1.0
    });
    let slower = cells_in_words(slower.map(|row| (row.piece, row.workers)));
    let slower = slower.as_deref().unwrap_or("nowhere");
    Claim::ours(
        "001-ia",
        "Over all graphs Paceline is nowhere slower than 2022.2, with any workers and pieces",
    )
    .is(LEAST, least(BLOCKS), "standard errors faster than 2022.2, the least of all rows")
    .varied("entries", "each piece", LEAST, least(PIECES))
    .note(format!(
        "means over {graphs} graphs, {worst:.3} times 2022.2 at least; slower by two standard errors {slower}"
    ))
}
