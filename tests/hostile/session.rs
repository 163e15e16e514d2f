//! One process of a campaign: it goes round all combinations in short slices, until its budget is used up,
//! and reports to the supervisor.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::combination::{Combination, Kind, slice_seed};
use crate::fault::{Fault, Place, What};
use crate::line::{Line, Tally};
use crate::options::{Options, Plant};
use crate::pace::Pace;
use crate::{liveness, misuse, programs, watchdog};

/// After this many faults the rest is likely to be more of the same.
const FAULTS_MAX: usize = 5;

/// One job system's turn.
pub(crate) struct Slice<'a> {
    pub(crate) options: &'a Options,
    pub(crate) combination: &'a Combination,
    pub(crate) seed: u64,
    /// Its number in this process.
    pub(crate) number: u64,
    /// Not for longer, and not for more programs.
    length: Option<Duration>,
    programs: u64,
    began: Instant,
}

/// The results of a slice.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) programs: u64,
    pub(crate) jobs: u64,
    pub(crate) expected_failures: u64,
    /// The faults, in a line each.
    pub(crate) faults: Vec<(What, String)>,
}

impl Outcome {
    /// Nothing but a fault.
    pub(crate) fn wrong(text: String) -> Outcome {
        Outcome {
            faults: vec![(What::Wrong, text)],
            ..Outcome::default()
        }
    }
}

/// The message of a panic.
pub(crate) fn said(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&'static str>();
    let text = text.map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "something that is no text".into())
}

impl Slice<'_> {
    /// Whether there is room for one more program after `programs`.
    pub(crate) fn goes_on(&self, programs: u64) -> bool {
        let in_time = |length| self.began.elapsed() < length;
        programs < self.programs && self.length.is_none_or(in_time)
    }

    /// Whether this defect is planted.
    pub(crate) fn has(&self, plant: Plant) -> bool {
        self.options.plant == Some(plant)
    }
}

/// Does its part of the campaign; the supervisor hears of it line by line.
pub(crate) fn run(options: &Options) -> ExitCode {
    say_panics_on_standard_error();
    watchdog::start(options.patience());
    let kinds = options.kinds();
    let [kind] = kinds[..] else {
        eprintln!("hostile: --inside takes one kind");
        return ExitCode::from(2);
    };
    match Session::new(options, kind).run() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Panics of the programs are raised without the hook, so this hears of those that nothing expects.
fn say_panics_on_standard_error() {
    panic::set_hook(Box::new(|info| {
        let text = info.to_string().replace('\n', " ");
        eprintln!("{text}");
    }));
}

struct Session<'a> {
    options: &'a Options,
    kind: Kind,
    seed: u64,
    combinations: Vec<Combination>,
    pace: Pace,
    tally: Tally,
    faults: usize,
}

impl Session<'_> {
    fn new(options: &Options, kind: Kind) -> Session<'_> {
        let combinations = options.combinations(kind);
        let pace = Pace::new(options.budget(), combinations.len(), Instant::now());
        Session {
            options,
            kind,
            seed: options.seed(),
            combinations,
            pace,
            tally: Tally::default(),
            faults: 0,
        }
    }

    /// All slices; the number of faults.
    fn run(mut self) -> usize {
        let mut number = 0;
        while !self.combinations.is_empty()
            && self.faults < FAULTS_MAX
            && self.pace.fraction(&self.tally, Instant::now()) < 1.0
        {
            self.slice(number);
            number += 1;
        }
        let memory = self.tally.memory;
        if self.faults == 0 && !memory.is_flat() {
            let first = &self.combinations[0];
            let place = self.place(first, self.seed);
            let text = format!("the resident set grows: {memory}");
            self.fault(Fault::new(What::Growth, &place, text));
        }
        self.faults
    }

    fn slice(&mut self, number: u64) {
        let index = number % self.combinations.len() as u64;
        let combination = self.combinations[index as usize].clone();
        let seed = if self.options.repeat {
            self.seed
        } else {
            slice_seed(self.seed, number)
        };
        let place = self.place(&combination, seed);
        let slice = Slice {
            options: self.options,
            combination: &combination,
            seed,
            number,
            length: self.pace.slice(&self.tally),
            programs: self.pace.programs(),
            began: Instant::now(),
        };
        Line::Begins(place.clone()).say();
        watchdog::enter(&place);
        let run = match self.kind {
            Kind::Programs => programs::slice,
            Kind::Liveness => liveness::slice,
            Kind::Misuse => misuse::slice,
        };
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| run(&slice)));
        let outcome = outcome.unwrap_or_else(|payload| {
            let text = format!("the job system's owner panicked: {}", said(&*payload));
            Outcome::wrong(text)
        });
        watchdog::leave();
        for (what, text) in outcome.faults.iter().take(1) {
            self.fault(Fault::new(*what, &place, text.as_str()));
        }
        let combinations = self.combinations.len() as u64;
        self.tally = Tally {
            combinations: self.tally.combinations.max(combinations.min(number + 1)),
            slices: self.tally.slices + 1,
            programs: self.tally.programs + outcome.programs,
            jobs: self.tally.jobs + outcome.jobs,
            expected_failures: self.tally.expected_failures + outcome.expected_failures,
            memory: self.tally.memory,
        };
        let is_early = self.pace.is_early(&self.tally, Instant::now());
        self.tally.memory.sample(is_early);
        Line::Tally(self.tally).say();
    }

    fn place(&self, combination: &Combination, seed: u64) -> Place {
        Place {
            kind: self.kind,
            workers: combination.workers,
            policy: combination.policy.to_string(),
            seed,
            case: self.options.case.first().cloned(),
        }
    }

    fn fault(&mut self, fault: Fault) {
        self.faults += 1;
        Line::Fault(fault).say();
    }
}
