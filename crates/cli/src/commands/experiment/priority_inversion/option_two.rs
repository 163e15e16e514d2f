//! The second option whole: the critical job while others keep the fast cores busy.

use std::sync::{Arc, Mutex, PoisonError};

use console::Failure;
use event::{Nanos, Random};
use measure::Times;
use platform::{CpuSet, Machine as _, Platform, Thread, ThreadSpec};
use sim::machine::Governor;
use sim::{Machine, Sim, SimConfig};

use super::PHONES;
use super::slow_core::{JOB, cpus_of};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort};

const POLICIES: [&str; 2] = ["cfs-4.12", "eevdf-6.6"];
/// Two for each fast core, so that the queue of threads is not empty; each computes for as long.
const OTHERS: u64 = 8;
const OTHERS_WORK: Nanos = Nanos::from_millis(100);
/// The job begins then, or up to two ticks later.
const START: Nanos = Nanos::from_millis(20);
const LATER: Nanos = Nanos::from_millis(8);

/// Why a move may take longer than it saves; a test has it.
const QUEUED: &str = "A critical thread that is moved to the fast cores joins a queue there. Under CFS it \
                      goes first. Under EEVDF it waits for slices of the threads that compute, which may \
                      be longer than the faster core saves.";

/// Where the critical thread may run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CriticalPlace {
    Everywhere,
    /// … and no other thread is there.
    Alone,
    /// … until the kernel moves it to the fast cores, this much after the job's begin.
    MovedAfter(Nanos),
    FastCores,
}

impl CriticalPlace {
    const ALL: [CriticalPlace; 5] = [
        CriticalPlace::Alone,
        CriticalPlace::Everywhere,
        CriticalPlace::MovedAfter(Nanos::from_millis(4)),
        CriticalPlace::MovedAfter(Nanos::from_millis(1)),
        CriticalPlace::FastCores,
    ];

    fn name(self) -> String {
        match self {
            CriticalPlace::Everywhere => "on all cores".into(),
            CriticalPlace::Alone => "on all cores, which are idle".into(),
            CriticalPlace::MovedAfter(time) => {
                format!("on all cores, moved to fast ones after {time}")
            }
            CriticalPlace::FastCores => "on fast cores only".into(),
        }
    }
}

/// Jobs of one kind.
#[derive(Clone, Copy)]
struct OptionTrial<'m> {
    machine: &'m Arc<Machine>,
    policy: &'static str,
    place: CriticalPlace,
}

/// What came of one job.
#[derive(Clone, Copy)]
struct OptionSeen {
    /// From when it was due.
    took: Nanos,
    /// For how long its thread was ready and had no core, from the thread's begin on.
    ready: Nanos,
    began_on_small: bool,
}

/// What came of all.
struct OptionTimes {
    times: Times,
    /// The p50 of how long the thread had no core.
    ready: Nanos,
    /// In percent.
    began_on_small: f64,
}

pub(super) fn run(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let seeds: Vec<u64> = effort.seeds(10, effort.some(200)).collect();
    let machines = PHONES.map(lab::machine);
    let mut all = Vec::new();
    for machine in &machines {
        for policy in POLICIES {
            all.extend(CriticalPlace::ALL.map(|place| OptionTrial {
                machine,
                policy,
                place,
            }));
        }
    }
    let runs: Vec<_> = all
        .iter()
        .flat_map(|trial| seeds.iter().map(move |&seed| (*trial, seed)))
        .collect();
    let seen = lab::each("second option", &runs, |(trial, seed)| {
        trial.run(effort.time(&JOB), *seed)
    })?;
    let found: Vec<OptionTimes> = seen.chunks(seeds.len()).map(OptionTimes::of).collect();
    findings
        .tables
        .push(table(&all, &found, effort.time(&JOB), seeds.len()));
    findings.claims.extend(claims(&all, &found, &machines));
    findings.notes.push(QUEUED.into());
    Ok(())
}

impl OptionTimes {
    fn of(seen: &[OptionSeen]) -> OptionTimes {
        let times: Vec<u64> = seen.iter().map(|seen| seen.took.0).collect();
        let small = seen.iter().filter(|seen| seen.began_on_small).count();
        let ready: Vec<u64> = seen.iter().map(|seen| seen.ready.0).collect();
        OptionTimes {
            times: Times::of(&times),
            ready: Nanos(Times::of(&ready).p50),
            began_on_small: small as f64 * 100.0 / seen.len() as f64,
        }
    }
}

impl OptionTrial<'_> {
    fn run(&self, job: Nanos, seed: u64) -> Result<OptionSeen, Failure> {
        let by_capacity = |at: &usize| self.machine.clusters[*at].capacity;
        let slow = (0..self.machine.clusters.len()).min_by_key(by_capacity);
        let small: CpuSet = cpus_of(self.machine, slow.unwrap_or(0))
            .into_iter()
            .collect();
        let all: CpuSet = (0..self.machine.cpus.len() as u32).collect();
        let fast = all.difference(&small);
        let start = START + Nanos(Random::new(seed).within(0, LATER.0));
        let config = SimConfig::on(self.machine.clone(), self.policy, seed);
        let seen = Arc::new(Mutex::new(None));
        let mut spawned = Ok(());
        let place = self.place;
        let report = Sim::run(config, |sim| {
            let put = seen.clone();
            let critical = move |its: &Sim| {
                its.sleep_until(start);
                let cpu = its.current_cpu();
                its.charge(job);
                let told = OptionSeen {
                    took: its.time() - start,
                    ready: Nanos::ZERO,
                    began_on_small: cpu.is_some_and(|cpu| small.contains(cpu)),
                };
                *put.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
            };
            spawned = program(&sim, place, (start, fast.clone()), critical);
        });
        lab::sound("second option", &report)?;
        spawned?;
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut seen = seen.ok_or_else(|| Failure::failed("the critical job did not end"))?;
        let threads = report.threads.iter();
        let critical = threads.filter(|thread| thread.name == "critical");
        seen.ready = Nanos(critical.map(|thread| thread.spent.runnable.0).sum());
        Ok(seen)
    }
}

/// The critical thread, those that keep the fast cores busy, and a kernel that moves it.
fn program(
    sim: &Sim,
    place: CriticalPlace,
    (start, fast): (Nanos, CpuSet),
    critical: impl FnOnce(&Sim) + Send + 'static,
) -> Result<(), Failure> {
    let spec = |name: &str, mask: Option<&CpuSet>| ThreadSpec {
        name: name.to_owned(),
        mask: mask.cloned(),
        ..ThreadSpec::default()
    };
    let its = sim.clone();
    let is_kept = (place == CriticalPlace::FastCores).then_some(&fast);
    let first = sim.spawn(spec("critical", is_kept), Box::new(move || critical(&its)));
    let mut threads = vec![first.map_err(Failure::failed)?];
    let others = if place == CriticalPlace::Alone {
        0
    } else {
        OTHERS
    };
    for _ in 0..others {
        let its = sim.clone();
        let body = Box::new(move || its.charge(OTHERS_WORK));
        threads.push(
            sim.spawn(spec("uncritical", Some(&fast)), body)
                .map_err(Failure::failed)?,
        );
    }
    if let CriticalPlace::MovedAfter(time) = place {
        sim.sleep_until(start + time);
        // The calling thread is the first one. The thread may have ended meanwhile: then it stays where it
        // was.
        let _ = sim.machine().set_mask(2, &fast);
    }
    for thread in threads {
        let ended = thread.join();
        ended.map_err(|_| Failure::failed("a thread panicked"))?;
    }
    Ok(())
}

fn table(all: &[OptionTrial<'_>], found: &[OptionTimes], job: Nanos, seeds: usize) -> Table {
    let title = format!(
        "A job of {job} from when it is due, while {OTHERS} threads of others compute on the fast cores, \
         {seeds} begins that differ by a seed"
    );
    let columns = [
        "machine",
        "policy",
        "the critical thread may run",
        "p50",
        "p99",
        "longest",
        "the thread was ready without a core, p50",
        "began on a small core, %",
    ];
    let mut table = Table::new(title, columns);
    for (trial, found) in all.iter().zip(found) {
        table.row([
            trial.machine.name.as_str().into(),
            trial.policy.into(),
            trial.place.name().into(),
            Nanos(found.times.p50).into(),
            Nanos(found.times.p99).into(),
            Nanos(found.times.max).into(),
            found.ready.into(),
            found.began_on_small.into(),
        ]);
    }
    table
}

/// How long mainline's average of a thread that has slept takes to say that a core is too small for it, which
/// it does from 80 % of that core's capacity on: then the thread is moved.
fn until_misfit(machine: &Machine) -> f64 {
    let by_capacity = machine.clusters.iter().min_by_key(|it| it.capacity);
    match by_capacity.map(|cluster| cluster.governor) {
        // 1 - 0.5^(t / half-life) is 80 % then.
        Some(Governor::Schedutil { half_life, .. }) => half_life.0 as f64 / 1e6 * 5f64.log2(),
        _ => f64::NAN,
    }
}

fn claims(all: &[OptionTrial<'_>], found: &[OptionTimes], machines: &[Arc<Machine>]) -> Vec<Claim> {
    let of = |place: CriticalPlace| {
        let rows = all.iter().zip(found);
        rows.filter(move |(trial, _)| trial.place == place)
            .map(|(_, found)| found)
    };
    let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::MAX, f64::min);
    let millis = |nanos: u64| nanos as f64 / 1e6;
    let began = least(&mut of(CriticalPlace::Everywhere).map(|found| found.began_on_small));
    let everywhere = least(&mut of(CriticalPlace::Everywhere).map(|found| millis(found.times.p50)));
    let kept = of(CriticalPlace::FastCores).map(|found| millis(found.times.p50));
    let kept = kept.fold(0.0, f64::max);
    let longest = of(CriticalPlace::Everywhere).map(|found| millis(found.times.p50));
    let longest = longest.fold(0.0, f64::max);
    let misfit = least(&mut machines.iter().map(|machine| until_misfit(machine)));
    const PLACE: &str = "The Priority Inversion, second option";
    vec![
        Claim::source(
            "000-qa",
            "The critical load gets onto a small core while the big ones do uncritical work",
            PLACE,
        )
        .is(Expect::AtLeast(50.0), began, "% of the jobs, the least of both phones and kernels")
        .note("a thread is placed as by mainline, without the energy model that a phone's kernel asks"),
        Claim::source(
            "000-qb",
            "In theory it moves to a big core quickly; in practice there are nasty slowdowns",
            PLACE,
        )
        .is(
            Expect::MoreThan(longest),
            misfit,
            "ms until mainline's average calls the core too small, the sooner of both phones",
        )
        .given(
            "what is found is an input: log2 5 times the half-life of that average; against the job's p50 on \
             the small core, the longer of both phones: it is over before. The simulated kernels move no \
             running thread to a faster core: the rows have one that does",
        ),
        Claim::source(
            "000-qc",
            "Keeping the threads off the small cores reduces critical jobs of several milliseconds there",
            "Solution..?, third paragraph",
        )
        .is(
            Expect::LessThan(everywhere),
            kept,
            "ms, p50 of the worse phone and kernel",
        )
        .note("against all cores allowed, on the better phone and kernel"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what a moved thread takes longer under EEVDF is the time that it waits in the queue of its new
    /// core. Method: jobs on the Exynos under both kernels, moved after 4 ms; by how much they take longer,
    /// and by how much longer their threads are ready without a core.
    #[test]
    fn a_moved_thread_waits_in_the_queue() {
        let machine = lab::machine(PHONES[0]);
        let sums = POLICIES.map(|policy| {
            let trial = OptionTrial {
                machine: &machine,
                policy,
                place: CriticalPlace::MovedAfter(Nanos::from_millis(4)),
            };
            let seen = (1..=5).map(|seed| trial.run(Nanos::from_micros(600), seed));
            let seen = seen.map(|seen| seen.unwrap_or_else(|e| panic!("{}", e.text())));
            seen.fold((0, 0), |sum, seen| {
                (sum.0 + seen.took.0, sum.1 + seen.ready.0)
            })
        });
        let [old, new] = sums;
        let (longer, waited) = (new.0 - old.0, new.1 - old.1);
        assert!(waited > 5_000_000, "{sums:?}");
        assert!(longer.abs_diff(waited) < longer / 20, "{sums:?}");
    }
}
