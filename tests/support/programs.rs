//! Random programs that make jobs and own tokens of a ledger, run over seeds.

use std::sync::Arc;

use paceline::{Builder, Context};
use sim::{Sim, SimConfig};

use super::ledger::Ledger;
use super::{Random, delays, each_seed};

/// Runs the program of each seed on the main thread and in a job, with no workers to three, under random
/// orders of steps and with delays. Each token of the ledger must be dropped once.
pub(crate) fn run_on_main_and_in_a_job(
    test: &str,
    program: fn(&Context<'_, Sim>, &mut Random, &Arc<Ledger>),
) {
    const SEEDS: u64 = 400;
    each_seed(test, SEEDS, |seed| {
        let ledger = Arc::new(Ledger::default());
        let theirs = ledger.clone();
        let config = match seed % 3 {
            0 => delays(seed),
            _ => SimConfig::new(seed),
        };
        let report = Sim::run(config, |sim| {
            let builder = Builder::with_platform(sim).workers(seed as usize % 4);
            let js = builder.build().unwrap();
            js.enter(|cx| program(cx, &mut Random::new(seed), &theirs));
            let inside = theirs.clone();
            let root = js
                .job("root")
                .run(move |cx| program(cx, &mut Random::new(!seed), &inside));
            root.wait();
        });
        report.expect_finished();
        ledger.check_each_dropped_once(0);
    });
}
