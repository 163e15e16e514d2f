//! Checks that hold for every run, whatever was asked for.

use serde::Serialize;
use sim::scenario::Ran;
use sim::{Outcome, SimReport};

use super::frames::ProgramFindings;
use super::run::Job;
use crate::commands::accounts::plural;

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) ok: bool,
    /// What was looked at, or what is wrong.
    pub(super) note: String,
}

impl Check {
    fn of(name: &'static str, found: Result<String, String>) -> Check {
        let ok = found.is_ok();
        let note = found.unwrap_or_else(|wrong| wrong);
        Check { name, ok, note }
    }
}

/// All of them.
pub(super) fn checks(job: &Job, ran: &Ran, told: &ProgramFindings) -> Vec<Check> {
    let report = &ran.report;
    let mut checks = vec![
        Check::of("end", end(report)),
        Check::of("kernel", kernel(report)),
        Check::of("accounts", accounts(report, job.machine.cpus.len())),
    ];
    if job.scenario.program.is_some() {
        checks.push(Check::of("program", program(report, told)));
    }
    checks
}

/// No thread waits for ever, none panicked, and the steps were enough.
fn end(report: &SimReport) -> Result<String, String> {
    let at = report.now;
    match &report.outcome {
        Outcome::Finished => Ok(format!("all threads have ended, at {at}")),
        Outcome::TimeUp => Ok(format!("the time was up, at {at}")),
        Outcome::Deadlock(blocked) => {
            let who: Vec<String> = blocked.iter().map(ToString::to_string).collect();
            Err(format!("deadlock at {at}: {}", who.join("; ")))
        }
        Outcome::StepLimit => Err(format!(
            "not over after {} steps, at {at}: threads that never end, or too few --steps",
            report.steps
        )),
        Outcome::Panicked { thread, message } => {
            let name = report
                .threads
                .get(*thread)
                .map_or("", |thread| &thread.name);
            Err(format!("thread {name:?} panicked at {at}: {message}"))
        }
    }
}

/// Work was conserved, no thread starved, clocks went forward, the policy kept its promises.
fn kernel(report: &SimReport) -> Result<String, String> {
    match &report.violation {
        None => Ok("work conserved, clocks monotone, the policy's promises kept".into()),
        Some((at, what)) => Err(format!("at {at}: {what}")),
    }
}

/// Every thread's times add up to its life, and together they ran no longer than the CPUs can.
fn accounts(report: &SimReport, cpus: usize) -> Result<String, String> {
    for thread in &report.threads {
        let spent = thread.spent;
        let all = spent.run + spent.runnable + spent.sleep;
        let life = thread.ended.min(report.now) - thread.began;
        if all != life {
            return Err(format!(
                "thread {:?} lived for {life}, and its times add up to {all}",
                thread.name
            ));
        }
    }
    let ran: u128 = report
        .threads
        .iter()
        .map(|thread| u128::from(thread.spent.run.0))
        .sum();
    let most = u128::from(report.now.0) * cpus as u128;
    if ran <= most {
        let threads = plural(report.threads.len(), "thread");
        Ok(format!("the times of {threads} add up"))
    } else {
        Err(format!(
            "threads ran for {} ns, and {cpus} CPUs have {most} ns in {}",
            ran, report.now
        ))
    }
}

/// The program came to its end, and all it computed is right.
fn program(report: &SimReport, told: &ProgramFindings) -> Result<String, String> {
    let right = told.right;
    match (&told.error, told.is_over) {
        (Some(error), _) => Err(error.clone()),
        (None, true) if told.rounds.is_some() => Ok("no thread passed the barrier early".into()),
        (None, true) => Ok(format!(
            "{right} frames, each with the result of a serial run"
        )),
        (None, false) if report.outcome == Outcome::TimeUp => Err(format!(
            "the time was up after {right} frames: let `until` be later, or `frames` fewer"
        )),
        (None, false) => Err(format!("it did not end; {right} frames were right")),
    }
}

#[cfg(test)]
mod tests {
    use event::Nanos;
    use platform::Platform;
    use sim::{Sim, SimConfig};

    use super::*;

    fn report() -> SimReport {
        Sim::run(
            SimConfig::on(sim::Machine::ideal(2), "eevdf-6.18", 1),
            |sim| {
                sim.charge(Nanos(500));
                sim.sleep_until(Nanos(900));
                sim.charge(Nanos(100));
            },
        )
    }

    /// Goal: a run in which all is well passes, and accounts are exact. Method: one thread that works,
    /// sleeps and works.
    #[test]
    fn a_good_run_passes() {
        let report = report();
        assert_eq!(
            end(&report),
            Ok("all threads have ended, at 1.000 µs".into())
        );
        assert!(kernel(&report).is_ok());
        assert_eq!(
            accounts(&report, 2),
            Ok("the times of 1 thread add up".into())
        );
    }

    /// Goal: each check can fail, and names the thread. Method: a good report with one thing made wrong at a
    /// time.
    #[test]
    fn every_check_can_fail() {
        let wrong = |change: fn(&mut SimReport)| {
            let mut report = report();
            change(&mut report);
            report
        };
        let lost = wrong(|report| report.threads[0].spent.sleep = Nanos(399));
        assert!(
            accounts(&lost, 2)
                .unwrap_err()
                .contains("\"main\" lived for 1.000 µs")
        );
        let twice = wrong(|report| {
            let thread = &mut report.threads[0];
            (thread.spent.run, thread.spent.sleep) = (Nanos(1_000), Nanos(0));
            report.threads.push(report.threads[0].clone());
        });
        assert!(accounts(&twice, 1).unwrap_err().contains("1 CPUs"));
        assert!(accounts(&twice, 2).is_ok());
        let violated = wrong(|report| report.violation = Some((Nanos(7), "lag".into())));
        assert_eq!(kernel(&violated), Err("at 7 ns: lag".into()));
        let limit = wrong(|report| report.outcome = Outcome::StepLimit);
        assert!(end(&limit).unwrap_err().contains("--steps"));
        let panicked = wrong(|report| {
            report.outcome = Outcome::Panicked {
                thread: 0,
                message: "no".into(),
            };
        });
        assert!(end(&panicked).unwrap_err().contains("\"main\" panicked"));
        let told = ProgramFindings::default();
        assert!(
            program(&report(), &told)
                .unwrap_err()
                .contains("did not end")
        );
        let up = wrong(|report| report.outcome = Outcome::TimeUp);
        assert!(program(&up, &told).unwrap_err().contains("until"));
    }
}
