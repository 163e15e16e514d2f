//! What it costs a phone not to sleep.

use console::Failure;
use event::Nanos;
use paceline::{Builder, WaitPolicy};
use sim::{Sim, SimConfig, SimReport};

use super::subject::POLICY;
use crate::commands::experiment::chosen::{ChosenValue, ValueUnit};
use crate::commands::experiment::claim::{Claim, Expect};
use crate::commands::experiment::findings::{Findings, Table};
use crate::commands::experiment::lab::{self, Effort};

pub(super) const WARM: ChosenValue = ChosenValue {
    name: "seconds",
    about: "how long the phone is busy",
    unit: ValueUnit::Of("s"),
    chosen: 30.0,
    others: &[10.0, 60.0],
    why: "long enough for it to get hot",
};

/// Seconds in which the phone is still cool.
const BEGINNING: f64 = 1.0;

pub(super) fn simulated(effort: &Effort, findings: &mut Findings) -> Result<(), Failure> {
    let [spinning, beginning, parking] = energy(effort, findings)?;
    findings.claims.extend([
        Claim::source(
            "001-u",
            "Workers that never sleep drain the battery",
            "Thread-signaling overhead, last but one paragraph; busy waits below",
        )
        .is(
            Expect::MoreThan(parking.millijoules),
            spinning.millijoules,
            "mJ a second, modelled",
        ),
        Claim::source(
            "001-v",
            "… and make the processor hotter",
            "Thread-signaling overhead, last but one paragraph",
        )
        .is(
            Expect::MoreThan(parking.degrees),
            spinning.degrees,
            "degrees C at the end, modelled",
        ),
        Claim::source(
            "001-va",
            "… which clocks it down",
            "Thread-signaling overhead, last but one paragraph",
        )
        .is(
            Expect::LessThan(beginning.mhz * 0.98),
            spinning.mhz,
            "MHz, the mean clock of busy cores, modelled",
        )
        .or_else("it did not get hot enough in that time")
        .note("0.98 of the first second's or less, with workers that never sleep"),
    ]);
    Ok(())
}

/// The energy that frames cost a phone, and its heat.
#[derive(Clone, Copy)]
struct Spent {
    millijoules: f64,
    degrees: f64,
    mhz: f64,
}

fn energy(effort: &Effort, findings: &mut Findings) -> Result<[Spent; 3], Failure> {
    const PHONE: &str = "galaxy-s22-snapdragon";
    let seconds = effort.of(8.0, effort.value(&WARM));
    let ways = [
        ("spin", WaitPolicy::Active, seconds),
        ("spin", WaitPolicy::Active, BEGINNING),
        ("park", WaitPolicy::Passive, seconds),
    ];
    let spent = lab::each("energy", &ways, |&(_, wait, seconds)| {
        let mut done = Err(Failure::failed("the simulated program did not run"));
        let config = SimConfig::on(lab::machine(PHONE), POLICY, effort.seed);
        let report = Sim::run(config, |sim| done = at_60_hz(&sim, wait, seconds));
        lab::sound("energy", &report)?;
        done.map(|()| spent(&report))
    })?;
    let title = format!("3 workers and 4 ms of jobs at 60 Hz on {PHONE}, modelled");
    let columns = [
        "idle workers",
        "for, s",
        "mJ a second",
        "degrees C at most",
        "mean clock of busy cores, MHz",
    ];
    let mut table = Table::new(title, columns);
    for ((name, _, seconds), spent) in ways.iter().zip(&spent) {
        table.row([
            (*name).into(),
            (*seconds).into(),
            spent.millijoules.into(),
            spent.degrees.into(),
            spent.mhz.into(),
        ]);
    }
    findings.tables.push(table);
    spent.try_into().map_err(|_| Failure::failed("three ways"))
}

fn at_60_hz(sim: &Sim, wait: WaitPolicy, seconds: f64) -> Result<(), Failure> {
    const PERIOD: Nanos = Nanos(16_666_667);
    let js = Builder::with_platform(sim.clone())
        .workers(3)
        .wait_policy(wait)
        .build();
    let js = js.map_err(|error| Failure::failed(error.to_string()))?;
    for frame in 1..=(seconds * 60.0) as u64 {
        let jobs = (0..8).map(|_| {
            js.job("work")
                .schedule(|cx| cx.work(Nanos::from_micros(500)))
        });
        let jobs: Vec<_> = jobs.collect();
        js.wait(js.job("frame").after_all(&jobs).schedule(|_| ()));
        sim.sleep_until(Nanos(frame * PERIOD.0));
    }
    Ok(())
}

fn spent(report: &SimReport) -> Spent {
    let clusters = &report.clusters;
    let joules: u64 = clusters.iter().map(|cluster| cluster.microjoules).sum();
    let hottest = clusters
        .iter()
        .filter_map(|cluster| cluster.hottest_millidegrees)
        .max();
    let busy = || clusters.iter().flat_map(|cluster| &cluster.busy);
    let time: f64 = busy().map(|&(_, time)| time.0 as f64).sum();
    let cycles: f64 = busy()
        .map(|&(khz, time)| f64::from(khz) * time.0 as f64)
        .sum();
    Spent {
        millijoules: joules as f64 / 1e3 / report.now.as_secs_f64(),
        degrees: hottest.map_or(f64::NAN, |hottest| hottest as f64 / 1e3),
        mhz: cycles / time / 1e3,
    }
}
