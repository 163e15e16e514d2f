//! The second option: the critical job on a small core, and the clock that it finds there.

use console::Failure;
use event::{Cpu, KernelEventKind, Nanos};
use sim::Machine;
use sim::scenario::{Change, Ran, Scenario};

use super::PHONES;
use crate::commands::experiment::chosen::{ChosenValue, ValueUnit};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort};
use crate::commands::experiment::plot::{Plot, PlotBar, PlotShape};

const POLICY: &str = "eevdf-6.6";
const MACHINES: [&str; 4] = [
    "galaxy-s22-exynos",
    "galaxy-s22-snapdragon",
    "core-i9-12900k",
    "apple-m1",
];
pub(super) const JOB: ChosenValue = ChosenValue {
    name: "job",
    about: "the critical job on the fastest core at full speed",
    unit: ValueUnit::Micros,
    chosen: 600.0,
    others: &[200.0, 400.0, 1_000.0, 3_000.0],
    why: "the article has none: a long one of some that it shows",
};
pub(super) const IDLE: ChosenValue = ChosenValue {
    name: "idle",
    about: "how long the small core was idle",
    unit: ValueUnit::Millis,
    chosen: 40.0,
    others: &[4.0, 10.0, 200.0],
    why: "its clock is at its lowest then",
};

/// The job's times on one machine.
struct JobTimes {
    machine: &'static str,
    lowest_mhz: f64,
    fast: Nanos,
    /// On a small core that was idle, whose governor may speed it up.
    small: Nanos,
    /// On a small core that is held at its lowest clock.
    held: Nanos,
    /// From the begin of a long job until the small core's clock rises, and until it is at its highest.
    rises: Option<Nanos>,
    at_top: Option<Nanos>,
}

fn scene(
    machine: &'static str,
    cpus: &[u32],
    (start, work): (Nanos, Nanos),
    full_speed: bool,
) -> Result<Scenario, Failure> {
    let text = format!(
        "about = 'a job on one kind of core'\nmachine = '{machine}'\npolicy = '{POLICY}'\n\
         full-speed = {full_speed}\n[[thread]]\nname = 'critical'\ncpus = {cpus:?}\nstart = '{} ns'\n\
         phases = [{{ begin = 'job' }}, {{ work = '{} ns' }}, {{ end = 'job' }}]\n",
        start.0, work.0
    );
    Scenario::parse("one job", &text).map_err(|error| Failure::failed(error.to_string()))
}

/// The CPUs of a cluster.
pub(super) fn cpus_of(machine: &Machine, cluster: usize) -> Vec<u32> {
    let all = machine.cpus.iter().enumerate();
    let of = all.filter(|(_, cpu)| cpu.cluster as usize == cluster);
    of.map(|(number, _)| number as u32).collect()
}

fn job(ran: &Ran) -> Result<Nanos, Failure> {
    lab::spans(ran, "job")
        .next()
        .ok_or_else(|| Failure::failed("the job did not end"))
}

fn find(name: &'static str, effort: &Effort) -> Result<JobTimes, Failure> {
    let machine = lab::machine(name);
    let by_capacity = |at: &usize| machine.clusters[*at].capacity;
    let clusters = 0..machine.clusters.len();
    let slow = clusters.clone().min_by_key(by_capacity).unwrap_or(0);
    let fast = clusters.max_by_key(by_capacity).unwrap_or(0);
    let points = &machine.clusters[slow].points;
    let lowest = points.iter().map(|point| point.khz).min().unwrap_or(0);
    let small = cpus_of(&machine, slow);
    let (seed, start, length) = (effort.seed, effort.time(&IDLE), effort.time(&JOB));
    let on = |cpus: &[u32], full| {
        job(&lab::run(
            &scene(name, cpus, (start, length), full)?,
            POLICY,
            seed,
        )?)
    };
    let mut held = scene(name, &small, (start, length), false)?;
    held.changes.push(Change {
        cap: small.clone(),
        mhz: Some(lowest.div_ceil(1000)),
        ..Change::default()
    });
    let long = lab::run(
        &scene(name, &small, (start, Nanos::from_millis(30)), false)?,
        POLICY,
        seed,
    )?;
    let highest = points.iter().map(|point| point.khz).max().unwrap_or(0);
    let clock = |wanted: fn(u32, u32) -> bool, limit: u32| {
        let reached = long.report.trace.iter().find(|event| match event.what {
            KernelEventKind::Frequency(khz) => {
                let Cpu(cpu) = event.cpu;
                event.time >= start && small.contains(&cpu) && wanted(khz, limit)
            }
            _ => false,
        });
        reached.map(|event| event.time - start)
    };
    Ok(JobTimes {
        machine: name,
        lowest_mhz: f64::from(lowest) / 1e3,
        fast: on(&cpus_of(&machine, fast), true)?,
        small: on(&small, false)?,
        held: job(&lab::run(&held, POLICY, seed)?)?,
        rises: clock(|khz, lowest| khz > lowest, lowest),
        at_top: clock(|khz, highest| khz >= highest, highest),
    })
}

pub(super) fn run(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let found = lab::each("cores", &MACHINES, |machine| find(machine, effort))?;
    let columns = [
        "machine",
        "fastest core",
        "small core that was idle",
        "times",
        "lowest clock, MHz",
        "small core held there",
        "times",
        "its clock rises after",
        "is at its top after",
    ];
    let times = |slow: Nanos, found: &JobTimes| slow.0 as f64 / found.fast.0 as f64;
    let mut table = Table::new(
        format!(
            "A job of {} on the fastest core and on a small one, {POLICY}",
            effort.time(&JOB)
        ),
        columns,
    );
    let mut bars = Vec::new();
    for (kind, machine) in found.iter().enumerate() {
        table.row([
            machine.machine.into(),
            machine.fast.into(),
            machine.small.into(),
            times(machine.small, machine).into(),
            machine.lowest_mhz.into(),
            machine.held.into(),
            times(machine.held, machine).into(),
            machine.rises.into(),
            machine.at_top.into(),
        ]);
        for (what, took) in [
            ("idle before", machine.small),
            ("lowest clock", machine.held),
        ] {
            let name = format!("{}, {what}", machine.machine);
            bars.push(PlotBar {
                name,
                value: times(took, machine),
                kind,
            });
        }
    }
    findings.tables.push(table);
    findings.plots.push(Plot {
        file: "slow-core",
        title: "How much longer the critical job takes on a small core".into(),
        picture: PlotShape::Bars {
            unit: "times the fastest core",
            bars,
        },
    });
    findings
        .claims
        .extend(claims(&found, &times, effort.time(&JOB)));
    Ok(())
}

fn claims(found: &[JobTimes], times: &dyn Fn(Nanos, &JobTimes) -> f64, job: Nanos) -> Vec<Claim> {
    let is_phone = |found: &&JobTimes| PHONES.contains(&found.machine);
    let millis = |time: Nanos| time.0 as f64 / 1e6;
    let phones = || found.iter().filter(is_phone);
    let others = || found.iter().filter(|found| !is_phone(found));
    let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::MAX, f64::min);
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::MIN, f64::max);
    let slow = least(&mut phones().map(|found| millis(found.small)));
    let held = least(&mut phones().map(|found| times(found.held, found)));
    let rises = most(&mut phones().map(|found| found.rises.map_or(f64::NAN, millis)));
    let elsewhere = least(&mut others().map(|found| times(found.small, found)));
    let largest = most(&mut others().map(|found| times(found.held, found)));
    vec![
        Claim::source(
            "000-q",
            "A critical thread on a small core at 300 MHz loses several milliseconds",
            "Solution..?, third paragraph",
        )
        .is(Expect::AtLeast(2.0), slow, "ms, the shorter of both phones")
        .note(format!("{job} of work on the fast core; the small one had been idle")),
        Claim::source(
            "000-r",
            "Governors need a millisecond or a few of load before they raise the clock",
            "Solution..?, fifth paragraph",
        )
        .beyond(&format!(
            "the phones' vendors have governors of their own, which are not modelled; mainline's schedutil, \
             which follows an average with a half-life of 8 or 32 ms, needs {rises:.0} ms here"
        )),
        Claim::source(
            "000-s",
            "Processors of Intel and Apple may have the same problem",
            "Introduction, last paragraph",
        )
        .is(
            Expect::MoreThan(1.2),
            elsewhere,
            "times the fastest core, the smaller of both",
        ),
        Claim::source(
            "000-t",
            "… and it is worse on Android, where cores differ more",
            "Introduction, last paragraph",
        )
        .is(
            Expect::MoreThan(largest),
            held,
            "times the fastest core, at the lowest clock",
        )
        .note("the better phone against the worse of the other two"),
    ]
}
