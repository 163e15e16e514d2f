//! Doing the parts of a change.

use std::sync::Arc;

use event::Nanos;
use policy::Attr;
use sim::SimConfig;
use sim::scenario::{QuotaPlan, Segment, WaitUntil};

use super::machine;
use super::parts::{AttrChange, Part};
use crate::program::{Program, ProgramThread};
use crate::{pieces, turns};

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
        Part::Cut(text, parts) => pieces::cut(program, text, *parts),
        Part::Earlier(name, by) => each(program, name, is_meant, |thread| thread.earlier(*by)),
        Part::Quota(name, thousandths) => quota(program, name, *thousandths, is_meant),
        Part::HandOver(text) => turns::hand_over(program, text.as_deref()),
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

/// The usual period of quotas.
const QUOTA_PERIOD: Nanos = Nanos::from_millis(100);

/// The time in a period near which most of these are; nothing if there are none.
fn usual(times: Vec<u64>) -> u64 {
    let near = |one: u64, other: u64| {
        let apart = one.abs_diff(other);
        apart.min(QUOTA_PERIOD.0 - apart)
    };
    let distance = |time: &u64| times.iter().map(|other| near(*time, *other)).sum::<u64>();
    times.iter().copied().min_by_key(distance).unwrap_or(0)
}

/// Gives the threads of processes, or those of these names, another quota of CPU time, or none. What put them
/// aside in the recording counts as the quota that they had.
fn quota(
    program: &mut Program,
    name: &str,
    thousandths: Option<u32>,
    is_meant: &impl Fn(&str, bool, &ProgramThread) -> bool,
) -> Result<(), String> {
    let is_one = |thread: &&mut ProgramThread| {
        let mut names = name.split(',').map(str::trim);
        names.any(|name| is_meant(name, true, thread) || is_meant(name, false, thread))
    };
    let meant = program.threads.iter_mut().filter(is_one);
    let mut names = Vec::new();
    let mut ends = Vec::new();
    for thread in meant {
        ends.extend(
            thread
                .put_aside
                .iter()
                .map(|aside| aside.end.0 % QUOTA_PERIOD.0),
        );
        thread.is_never_put_aside();
        names.push(thread.name.clone());
    }
    if names.is_empty() {
        return Err(format!(
            "no process and no thread that ran is called {name:?}"
        ));
    }
    program.assumed.push(format!(
        "{} put aside {} times in the recording, each because of a quota",
        match &names[..] {
            [one] => format!("{one} was"),
            _ => format!("{} threads were", names.len()),
        },
        ends.len()
    ));
    program.quota = thousandths.map(|thousandths| QuotaPlan {
        period: QUOTA_PERIOD,
        first: Nanos(usual(ends)),
        cpus: f64::from(thousandths) / 1000.0,
        threads: names,
    });
    Ok(())
}

/// Has waits lend their priorities: for locks, or those in slices with this text. What a thread cannot lend
/// under this policy, as a fair thread its niceness under Linux's, changes nothing.
fn inherit(program: &mut Program, text: Option<&str>) -> Result<(), String> {
    let mut count = 0;
    let mut lends_nothing = 0;
    let policy = named(&program.policy, program.machine.cpus.len());
    for thread in &mut program.threads {
        let can_lend = policy.as_ref().is_none_or(|policy| {
            let least = Attr::nice(19);
            let priorities = thread.segments.iter().filter_map(|segment| match segment {
                Segment::Fifo(priority) => Some(Attr::fifo(*priority)),
                _ => None,
            });
            let mut attrs = std::iter::once(thread.attr.clone()).chain(priorities);
            attrs.any(|attr| policy.lend(&attr, &least).is_some())
        });
        for wait in &thread.waits {
            let is_meant = match text {
                Some(text) => wait.within.contains(text),
                None => wait.is_lock,
            };
            if let (true, Some(Segment::Wait { lends, .. })) =
                (is_meant, thread.segments.get_mut(wait.segment))
            {
                count += usize::from(!*lends);
                lends_nothing += usize::from(!*lends && !can_lend);
                *lends |= can_lend;
            }
        }
    }
    if lends_nothing > 0 {
        program.assumed.push(format!(
            "in {lends_nothing} of these waits the thread has nothing to lend: {} lends no niceness",
            program.policy
        ));
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

/// The policy of this name for so many CPUs.
fn named(policy: &str, cpus: usize) -> Option<Box<dyn policy::Class>> {
    let setting = policy::Setting {
        cpus,
        tick: Nanos::from_millis(4),
        seed: 0,
    };
    policy::named(policy, setting)
}

/// Whether replays can have the policy of this name.
///
/// # Errors
/// There is none, or it is not one of a kernel's; in one line.
///
/// ```
/// assert!(paceline_replay::check_policy("eevdf-6.18").is_ok());
/// assert!(paceline_replay::check_policy("nonsense").is_err());
/// ```
pub fn check_policy(name: &str) -> Result<(), String> {
    let Some(policy) = named(name, 1) else {
        let names = policy::CATALOGUE.iter().map(|entry| entry.name);
        let families = policy::FAMILIES.iter().map(|family| family.name);
        let names: Vec<&str> = names.chain(families).collect();
        let names = names.join(", ");
        return Err(format!("no policy is called {name:?}; there are {names}"));
    };
    if policy.has_steps() {
        return Err(format!(
            "policy {name} looks for errors and runs everything on one CPU; give one of Linux's"
        ));
    }
    Ok(())
}

fn parked(on: Arc<str>) -> Segment {
    Segment::Wait {
        on,
        until: WaitUntil::Signal,
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
        check_policy(&self.policy)?;
        let config = SimConfig::on(self.machine.clone(), &self.policy, 0);
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
