//! `safety`: what it costs to schedule jobs that declare what they touch, with checks and without.

use std::collections::VecDeque;

use console::Failure;
use paceline::{Builder, JobId, JobSystem, Shared};
use platform::Os;

use crate::case::Case;
use crate::row::{Row, check, nanos};
use crate::session::{Contestant, Sample, Samples, Setup, interleave};
use crate::target::{Bound, Target};
use crate::who::Who;

pub(super) const ROW: Row = Row {
    name: "safety",
    title: "scheduling jobs with four declared accesses each, beside live ones",
    means: "Each job writes two pieces of data and reads two, one of which all jobs read. *named*: it comes \
            after the job that touched its data last. *synced*: jobs in frames of half as many as are live, \
            each after a job that combines the frame before. *live* jobs at most were scheduled and not \
            waited for, and half of that at least. The time of the calls that schedule, for each job (of a \
            frame with the call that combines it), without workers; jobs are run and waited for in between, \
            beside the clock, and what they have written is compared with their number.",
    measure,
};

const LIVE: [usize; 5] = [10, 100, 1000, 4096, 10_000];
/// The cost is judged for so many live jobs.
const JUDGED_TO: usize = 4096;

/// How jobs come after those that touched their data.
#[derive(Clone, Copy)]
enum Order {
    Named,
    Synced,
}

/// Jobs in groups of their own data, scheduled one group after the other.
struct Groups {
    js: JobSystem<Os>,
    data: Vec<[Shared<u64>; 3]>,
    common: Shared<u64>,
    /// The last job of each group; the job that combines the last frame.
    last: Vec<Option<JobId>>,
    sync: Option<JobId>,
    /// Jobs that were not waited for, the oldest first.
    live: VecDeque<JobId>,
    next: usize,
    count: u64,
}

impl Groups {
    fn new(live: usize, checks: bool) -> Result<Groups, String> {
        let builder = Builder::new().workers(0).checks(checks);
        let js = builder.build().map_err(|error| error.to_string())?;
        let groups = live / 2;
        let data = |_| ["left", "right", "read"].map(|name| js.share(name, 0));
        Ok(Groups {
            data: (0..groups).map(data).collect(),
            common: js.share("common", 1),
            last: vec![None; groups],
            sync: None,
            live: VecDeque::new(),
            next: 0,
            count: 0,
            js,
        })
    }

    fn schedule(&mut self, order: Order) {
        let group = self.next;
        self.next = (group + 1) % self.data.len();
        self.count += 1;
        let [left, right, read] = &self.data[group];
        let after = match order {
            Order::Named => self.last[group],
            Order::Synced => self.sync,
        };
        let job = self.js.job("job").after_all(after);
        let job = job
            .writes(left)
            .writes(right)
            .reads(read)
            .reads(&self.common);
        let job = job.schedule(|_, (left, right, read, common)| {
            *left += *common;
            *right += *read;
        });
        self.last[group] = Some(job);
        self.live.push_back(job);
    }

    /// Schedules so many jobs. The time of each.
    fn round(&mut self, order: Order, count: usize) -> f64 {
        let time = nanos(|| {
            (0..count).for_each(|_| self.schedule(order));
            if let Order::Synced = order {
                self.sync = Some(self.js.combine(self.last.iter().flatten()));
            }
        });
        time / count as f64
    }

    fn wait_for_oldest(&mut self, count: usize) {
        self.live.drain(..count).for_each(|job| self.js.wait(job));
    }

    /// Some rounds. The mean time of a job.
    fn sample(&mut self, order: Order, rounds: usize) -> Sample {
        let half = self.data.len();
        // Half of the live jobs are there already, and the others are scheduled in rounds.
        self.round(order, half);
        let mut times = 0.0;
        let per_round = match order {
            Order::Named => half.min(256),
            Order::Synced => half,
        };
        for _ in 0..rounds {
            times += self.round(order, per_round);
            self.wait_for_oldest(per_round);
        }
        self.wait_for_oldest(self.live.len());
        if let Some(sync) = self.sync {
            self.js.wait(sync);
        }
        let written = self.data.iter().map(|[left, ..]| *left.read()).sum();
        check(written, self.count)?;
        Ok(vec![times / rounds as f64])
    }
}

fn measure(setup: &mut Setup) -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for (order, name) in [(Order::Named, "named"), (Order::Synced, "synced")] {
        let mut of_order = Vec::new();
        for (place, live) in LIVE.into_iter().enumerate() {
            let live = setup.size(live, 10 + 2 * place);
            of_order.push((live, measure_one(setup, order, name, live)?));
        }
        let flatness = flatness(&of_order);
        let judged = of_order.into_iter().map(|(live, mut case)| {
            if live <= JUDGED_TO {
                let [off, on] = [Who::Paceline, Who::PacelineChecked].map(|who| case.median(who));
                let ratio = on.zip(off).map(|(on, off)| on / off);
                let target = Target::new(setup, "checked / not", Bound::AtMost(2.0), ratio);
                case.targets.push(target);
            }
            case
        });
        cases.extend(judged);
        let what = "checked, farthest from the mean of 10 to 4096 live";
        let flat = Target::new(setup, what, Bound::AtMost(0.25), flatness);
        if let Some(last) = cases.last_mut() {
            last.targets.push(flat);
        }
    }
    Ok(cases)
}

fn measure_one(setup: &mut Setup, order: Order, name: &str, live: usize) -> Result<Case, Failure> {
    let jobs = setup.size(20_000, 40);
    let rounds = (2 * jobs / live).max(1);
    let groups = |checks| Groups::new(live, checks).map_err(Failure::Failed);
    let (mut off, mut on) = (groups(false)?, groups(true)?);
    let subjects = vec![
        Contestant::new(Who::Paceline, || off.sample(order, rounds)),
        Contestant::new(Who::PacelineChecked, || on.sample(order, rounds)),
    ];
    let turns = setup.size(15, 1);
    let samples = interleave(setup, ROW.name, turns, subjects)?;
    let samples = samples.into_iter().map(Samples::only);
    Ok(Case::new(
        ROW.name,
        format!("{name}, {live} live"),
        "ns per job",
        samples,
    ))
}

/// How far the time with checks is from its mean where it is farthest, as a part of it.
fn flatness(cases: &[(usize, Case)]) -> Option<f64> {
    let judged = cases.iter().filter(|(live, _)| *live <= JUDGED_TO);
    let times: Option<Vec<f64>> = judged
        .map(|(_, case)| case.median(Who::PacelineChecked))
        .collect();
    let times = times?;
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let far = times.iter().map(|time| (time - mean).abs() / mean);
    far.reduce(f64::max)
}
