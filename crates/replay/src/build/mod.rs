//! From a recording to a program.
//!
//! [`people`] has what a thread is (name, priority, CPUs), [`events`] what it did to others and when,
//! [`life`] goes through its states and makes segments of them; [`machine`] is what it ran on.

mod costs;
mod events;
mod life;
mod locks;
mod machine;
mod options;
mod people;
mod sleeps;
mod source;

use event::{Nanos, Task};
use trace::Clock;
use trace::explain::LockWaits;
use trace::timeline::Timeline;

use crate::program::{Program, Stretch};
use costs::Costs;
use events::Events;
use source::Source;

pub use options::{BuildOptions, Unplayable};

/// The largest number of threads of a program.
const THREADS_MAX: usize = 4_000;

impl Program {
    /// The program of a recording. `waits` are the stretches of time that are measured, each with its thread.
    ///
    /// Takes time and memory in proportion to the recording.
    ///
    /// # Errors
    /// If the recording does not say which threads ran, or has too many of them.
    pub fn of(
        timeline: &Timeline,
        waits: &[(Task, Nanos, Nanos)],
        options: &BuildOptions,
    ) -> Result<Program, Unplayable> {
        if !timeline.says_who_ran() {
            return Err(Unplayable(
                "the recording has no scheduler events, so nothing says which threads ran".into(),
            ));
        }
        let mut source = Source::new(timeline);
        source.names = people::names(timeline, &source.tasks);
        if source.tasks.len() > THREADS_MAX {
            return Err(Unplayable(format!(
                "the recording has {} threads that ran; a replay takes at most {THREADS_MAX}",
                source.tasks.len()
            )));
        }
        let mut assumed = Vec::new();
        let is_ours = timeline.recording().origin.clock == Clock::Virtual;
        source.is_placed = !(is_ours && options.machine.is_some());
        let (machine, machine_file) = match &options.machine {
            Some(machine) if is_ours => (machine::without_programs_costs(machine), None),
            _ => {
                let (machine, file) = machine::recorded(timeline, options, &mut assumed)?;
                (machine, Some(file))
            }
        };
        let known = options.machine.as_ref().filter(|_| is_ours);
        let costs = Costs::new(timeline, known);
        let policy = match &options.policy {
            Some(policy) => policy.clone(),
            None => machine::policy(timeline, &mut assumed),
        };
        let locks = LockWaits::new(timeline);
        let mut events = Events::find(&source, waits, (&locks, options), &mut assumed);
        let mut stretches: Vec<Stretch> = waits
            .iter()
            .map(|(task, begin, end)| Stretch {
                task: *task,
                length: *end - *begin,
                points: None,
            })
            .collect();
        let mut threads = Vec::new();
        for &task in &source.tasks {
            let life = life::live(&source, task, &mut events, (&costs, &locks));
            for (&at, &points) in &life.points {
                stretches[at].points = Some(points);
            }
            threads.push(people::thread(&source, task, life, &mut assumed));
        }
        events.say_more(&source, &mut assumed);
        Ok(Program {
            machine,
            machine_file,
            policy,
            is_placed: source.is_placed,
            length: source.end - source.begin,
            threads,
            quota: None,
            stretches,
            assumed,
        })
    }
}
