//! Doing the parts of a change.

use std::sync::Arc;

use event::Nanos;
use sim::SimConfig;
use sim::scenario::Segment;

use super::machine;
use super::parts::{AttrChange, Part};
use crate::program::{Program, ProgramThread};

/// Does a part of a change.
pub(super) fn apply(
    part: &Part,
    program: &mut Program,
    is_meant: &impl Fn(&str, bool, &ProgramThread) -> bool,
) -> Result<(), String> {
    match part {
        Part::Attr(name, change) => each(program, name, is_meant, |thread| {
            thread.set_attr(*change);
            Ok(())
        }),
        Part::Mask(name, cpus) => {
            let count = program.machine.cpus.len();
            if let Some(cpu) = cpus.iter().find(|&&cpu| cpu as usize >= count) {
                return Err(format!(
                    "mask: there is no CPU {cpu}; there are 0 to {}",
                    count - 1
                ));
            }
            each(program, name, is_meant, |thread| {
                thread.cpus.clone_from(cpus);
                thread.is_free_from_now_on();
                Ok(())
            })
        }
        Part::Without { name, is_process } => {
            let meant = |name: &str, _, thread: &ProgramThread| is_meant(name, *is_process, thread);
            each(program, name, &meant, |thread| {
                thread.change_work(0);
                Ok(())
            })
        }
        Part::Work(name, thousandths) => each(program, name, is_meant, |thread| {
            thread.change_work(*thousandths);
            Ok(())
        }),
        Part::Park(name) => each(program, name, is_meant, ProgramThread::park),
        Part::Earlier(name, by) => each(program, name, is_meant, |thread| thread.earlier(*by)),
        Part::Inherit(text) => inherit(program, text.as_deref()),
        Part::Policy(policy) => {
            program.policy.clone_from(policy);
            Ok(())
        }
        Part::Cpus(count) => {
            machine::set_cpus(program, *count as usize);
            Ok(())
        }
        Part::Capacity(cpus, capacity) => machine::set_capacity(program, cpus, *capacity),
    }
}

/// Changes each thread that is meant.
fn each(
    program: &mut Program,
    name: &str,
    is_meant: &impl Fn(&str, bool, &ProgramThread) -> bool,
    change: impl Fn(&mut ProgramThread) -> Result<(), String>,
) -> Result<(), String> {
    let mut failed = None;
    let mut changed = false;
    for thread in &mut program.threads {
        if !is_meant(name, false, thread) {
            continue;
        }
        match change(thread) {
            Ok(()) => changed = true,
            Err(why) => failed = Some(why),
        }
    }
    match (changed, failed) {
        (true, _) => Ok(()),
        (false, Some(why)) => Err(why),
        (false, None) => Err(format!("no thread that ran is called {name:?}")),
    }
}

/// Has waits lend their priorities: for locks, or those in slices with this text.
fn inherit(program: &mut Program, text: Option<&str>) -> Result<(), String> {
    let mut count = 0;
    for thread in &mut program.threads {
        for wait in &thread.waits {
            let is_meant = match text {
                Some(text) => wait.within.contains(text),
                None => wait.is_lock,
            };
            if let (true, Some(Segment::Wait { lends, .. })) =
                (is_meant, thread.segments.get_mut(wait.segment))
            {
                count += usize::from(!*lends);
                *lends = true;
            }
        }
    }
    match (count, text) {
        (1.., _) => Ok(()),
        (0, Some(text)) => Err(format!(
            "inherit: in no slice with {text:?} in its name a thread waits for another one without lending"
        )),
        (0, None) => Err(
            "inherit: the recording tells of no lock whose owner does not inherit; name the slices in which \
             threads wait for it: inherit:TEXT"
                .to_owned(),
        ),
    }
}

fn parked(on: Arc<str>) -> Segment {
    Segment::Wait {
        on,
        is_lock: false,
        late: Nanos::ZERO,
        lends: false,
    }
}

impl ProgramThread {
    fn set_attr(&mut self, change: AttrChange) {
        self.attr = change.of(&self.attr);
        // What it asked for later is overruled.
        if !matches!(change, AttrChange::Slice(_)) {
            self.replace(|segment| match segment {
                Segment::Nice(_) | Segment::Fifo(_) => None,
                segment => Some(segment),
            });
        }
    }

    /// Work takes this many thousandths of its time.
    fn change_work(&mut self, thousandths: u64) {
        self.replace(|segment| match segment {
            Segment::Work(_) | Segment::Hog if thousandths == 0 => None,
            Segment::Work(length) => {
                let length = u128::from(length.0) * u128::from(thousandths) / 1000;
                Some(Segment::Work(Nanos(length as u64)))
            }
            Segment::Spin(on) if thousandths == 0 => Some(parked(on)),
            segment => Some(segment),
        });
    }

    fn park(&mut self) -> Result<(), String> {
        let spins = self.segments.iter();
        if !spins
            .clone()
            .any(|segment| matches!(segment, Segment::Spin(_)))
        {
            return Err(format!(
                "park: the recording tells of no busy wait of {}; name its slices with --busy",
                self.name
            ));
        }
        self.replace(|segment| match segment {
            Segment::Spin(on) => Some(parked(on)),
            segment => Some(segment),
        });
        Ok(())
    }

    fn earlier(&mut self, by: Nanos) -> Result<(), String> {
        let mut changed = false;
        for segment in &mut self.segments {
            match segment {
                Segment::Sleep { length, until } => {
                    *length = *length - by;
                    *until = until.map(|until| until - by);
                }
                Segment::Until(time) => *time = *time - by,
                _ => continue,
            }
            changed = true;
        }
        if changed {
            Ok(())
        } else {
            Err(format!("earlier: no timer woke {}", self.name))
        }
    }
}

impl Program {
    /// Whether it can be run.
    pub(super) fn check(&self) -> Result<(), String> {
        self.is_playable()
    }

    /// Whether it can be run: there is such a policy, which takes the threads, and each has a CPU.
    ///
    /// # Errors
    /// The reason why not, in one line.
    pub fn is_playable(&self) -> Result<(), String> {
        let setting = policy::Setting {
            cpus: self.machine.cpus.len(),
            tick: self.machine.kernel.tick,
            seed: 0,
        };
        if policy::named(&self.policy, setting).is_none() {
            let names: Vec<&str> = policy::CATALOGUE.iter().map(|entry| entry.name).collect();
            return Err(format!(
                "no policy is called {:?}; there are {}",
                self.policy,
                names.join(", ")
            ));
        }
        let config = SimConfig::on(self.machine.clone(), &self.policy, 0);
        if config.steps_max != u64::MAX {
            return Err(format!(
                "policy {} looks for errors and runs everything on one CPU; give one of Linux's",
                self.policy
            ));
        }
        let cpus = self.machine.cpus.len();
        let on_none = |thread: &&ProgramThread| {
            !thread.cpus.is_empty() && thread.cpus.iter().all(|&cpu| cpu as usize >= cpus)
        };
        if let Some(thread) = self.threads.iter().find(on_none) {
            return Err(format!("{} has no CPU that it may use", thread.name));
        }
        let admitted = self.scenario().is_admitted(&config);
        admitted.map_err(|why| why.to_string())
    }
}
