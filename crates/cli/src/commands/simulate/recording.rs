//! `--trace`: the events of the kernel and the job system, as a Perfetto trace.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use console::{Failure, output};
use event::{Cpu, Task};
use policy::Discipline;
use serde::Serialize;
use sim::machine::Machine;
use sim::scenario::Ran;
use trace::write::settle_order;
use trace::{Annotation, Clock, CpuFacts, Loss, Origin, Process, Recording, Thread, Wakers};

use super::frames::Jobs;
use super::run::Job;

/// The part of `--json` about the trace.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TracedRun {
    pub(super) path: PathBuf,
    pub(super) events: u64,
    pub(super) lost: u64,
    pub(super) bytes: u64,
}

/// Everything that is known of a run.
pub(super) fn of(job: &Job, ran: &Ran, jobs: Option<Jobs>) -> Recording {
    let mut recording = Recording {
        origin: Origin {
            clock: Clock::Virtual,
            wakers: Wakers::Decided,
            ..Origin::default()
        },
        processes: processes(job).into_iter().map(Process::new).collect(),
        cpus: cpus(&job.machine),
        threads: threads(job, ran),
        kernel: ran.report.trace.clone(),
        annotations: annotations(ran),
        ..Recording::default()
    };
    if let Some(jobs) = jobs {
        recording.jobs = jobs.events;
        recording.slots = jobs.slots;
        recording.labels = jobs.labels;
        recording.losses.add(Loss::JobEvents, jobs.lost);
    }
    settle_order(&mut recording);
    let end = ran.report.now;
    // A recording ends with its last event, and what was the case then lasted until the end of the run.
    if recording.span().is_some_and(|(_, last)| last < end) {
        recording.annotations.push(Annotation {
            on: None,
            track: "run".into(),
            name: "the run ends".into(),
            begin: end,
            end,
        });
    }
    recording
}

fn cpus(machine: &Machine) -> Vec<CpuFacts> {
    let clusters = machine.cpus.iter().map(|cpu| cpu.cluster as usize);
    let facts = clusters.zip(0..).map(|(cluster, cpu)| CpuFacts {
        cpu: Cpu(cpu),
        capacity: Some(machine.clusters[cluster].capacity),
        max_khz: machine.clusters[cluster]
            .points
            .last()
            .map(|point| point.khz),
    });
    facts.collect()
}

/// The programs: the scenario's own, and those that its threads name.
fn processes(job: &Job) -> Vec<&str> {
    let mut names = vec![&*job.scenario.name];
    for name in job
        .scenario
        .threads
        .iter()
        .filter_map(|plan| plan.process.as_deref())
    {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn threads(job: &Job, ran: &Ran) -> Vec<Thread> {
    let processes = processes(job);
    let everywhere = 0..job.machine.cpus.len() as u32;
    let everywhere: Vec<Cpu> = everywhere.map(Cpu).collect();
    let plans = job.scenario.threads.iter();
    let mut planned = plans.flat_map(|plan| {
        let attr = plan.attr();
        let priority = match attr.discipline {
            Discipline::Fifo | Discipline::RoundRobin => trace::realtime(attr.priority),
            _ => trace::nice(attr.nice),
        };
        let allowed = match &plan.cpus[..] {
            [] => everywhere.clone(),
            cpus => cpus.iter().map(|&cpu| Cpu(cpu)).collect(),
        };
        let process = plan.process.as_deref();
        let process = process.and_then(|name| processes.iter().position(|it| *it == name));
        let process = process.unwrap_or(0);
        std::iter::repeat_n((priority, Some(allowed), process), plan.count)
    });
    let threads = ran.report.threads.iter().enumerate();
    threads
        .map(|(number, thread)| {
            // The job system's threads, which come last, may be told later where to run.
            let planned = planned.next();
            let (priority, allowed, process) = planned.unwrap_or((trace::nice(0), None, 0));
            Thread {
                tid: u32::try_from(number + 1).ok(),
                priority,
                allowed,
                ..Thread::new(Task(number as u32), thread.name.clone(), Some(process))
            }
        })
        .collect()
}

fn annotations(ran: &Ran) -> Vec<Annotation> {
    let measured = ran.measured.iter().map(|measured| Annotation {
        on: Some(Task(measured.thread as u32)),
        track: "measured".into(),
        name: measured.name.clone(),
        begin: measured.begin,
        end: measured.end,
    });
    let violation = ran.report.violation.iter().map(|(at, what)| Annotation {
        on: None,
        track: "violations".into(),
        name: what.clone(),
        begin: *at,
        end: *at,
    });
    measured.chain(violation).collect()
}

/// Writes the requested file, and reports missing events.
pub(super) fn write(path: &Path, recording: &Recording) -> Result<TracedRun, Failure> {
    write_to(File::create(path), path, recording)
}

/// Writes a file without being asked, among those that may go: of a run with a failed check.
pub(super) fn write_somewhere(job: &Job, recording: &Recording) -> Result<TracedRun, Failure> {
    let name: String = job.scenario.name.chars().take(40).collect();
    let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let folder = std::env::temp_dir();
    let process = std::process::id();
    for attempt in 0..100 {
        let path = folder.join(format!(
            "paceline-{name}-seed-{}-{process}-{attempt}.pftrace",
            job.seed
        ));
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        match file {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            file => return write_to(file, &path, recording),
        }
    }
    let shown = folder.display();
    Err(Failure::Failed(format!(
        "no room for a trace in {shown}; use --trace"
    )))
}

fn write_to(
    file: io::Result<File>,
    path: &Path,
    recording: &Recording,
) -> Result<TracedRun, Failure> {
    let shown = path.display();
    let written = file.and_then(|file| trace::write::perfetto(recording, file));
    let written = written
        .map_err(|error| Failure::failed(format!("--trace: cannot write {shown}: {error}")))?;
    let events = (recording.kernel.len() + recording.jobs.len()) as u64;
    let lost = recording.losses.get(Loss::JobEvents);
    if lost > 0 {
        output::note(format!(
            "note: {shown} lacks {lost} events of the job system, which came last; use fewer frames to see \
             all"
        ));
    }
    Ok(TracedRun {
        path: path.to_owned(),
        events,
        lost,
        bytes: written.bytes,
    })
}
