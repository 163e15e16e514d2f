//! Threads that begin together, or not at all.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;

use platform::{
    CpuSet, Lock, Machine, Platform, Polling, SchedParams, SchedParamsError, SpawnError, Thread,
    ThreadSpec,
};

use crate::flag::{Flag, NaiveWait};

const WAIT: u64 = 0;
const GO: u64 = 1;
const GIVE_UP: u64 = 2;

/// Runs `body` with the numbers from 0 on, each on a thread of its own with this name and, in turn, these
/// masks, and returns when all have ended. None begins before all are there.
///
/// # Errors
/// If the system refuses a thread; then nothing was run.
///
/// # Panics
/// If a body does.
pub(crate) fn run_together<P: Polling>(
    platform: &P,
    names: &[String],
    masks: &[CpuSet],
    body: impl Fn(usize) + Send + Sync + 'static,
) -> Result<(), SpawnError> {
    let gate = Arc::new((Flag::<P>::new(WAIT), body));
    let spawn = |(number, name): (usize, &String)| {
        let spec = ThreadSpec {
            name: name.clone(),
            mask: masks.iter().cycle().nth(number).cloned(),
            ..ThreadSpec::default()
        };
        let (gate, its_platform) = (Arc::clone(&gate), platform.clone());
        let thread = move || {
            let (flag, body) = &*gate;
            NaiveWait::Park.until(&its_platform, flag, |value| value != WAIT);
            if flag.get() == GO {
                body(number);
            }
        };
        platform.spawn(spec, Box::new(thread))
    };
    let mut threads = Vec::with_capacity(names.len());
    let mut refused = None;
    for named in names.iter().enumerate() {
        match spawn(named) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    gate.0.set(if refused.is_some() { GIVE_UP } else { GO });
    let ends: Vec<_> = threads.into_iter().map(Thread::join).collect();
    if let Some(panicked) = ends.into_iter().find_map(Result::err) {
        resume_unwind(panicked);
    }
    refused.map_or(Ok(()), Err)
}

/// Why threads did not begin.
#[derive(Debug)]
pub enum GangError {
    /// The system refused a thread.
    Spawn(SpawnError),
    /// It refused the scheduling parameters of one.
    Refused(SchedParamsError),
}

impl fmt::Display for GangError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GangError::Spawn(error) => error.fmt(f),
            GangError::Refused(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for GangError {}

/// A thread of a gang: its name and its scheduling parameters, by default none.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// The scheduling parameters that it asks the kernel for.
    pub params: SchedParams,
}

/// Runs `body` with the numbers from 0 on, each on a thread of its own on these CPUs, and returns when all
/// have ended. None begins before all are there with their scheduling parameters.
///
/// ```
/// use platform::{Os, SchedParams};
/// use paceline_workload::gang::{Member, run_gang};
///
/// let member = |name: &str| Member { name: name.into(), params: SchedParams::default() };
/// run_gang(&Os, &[member("a"), member("b")], None, |number| assert!(number < 2)).unwrap();
/// ```
///
/// # Errors
/// If the system refuses a thread or its scheduling parameters; then nothing was run.
///
/// # Panics
/// If a body does.
pub fn run_gang<P: Polling>(
    platform: &P,
    members: &[Member],
    mask: Option<&CpuSet>,
    body: impl Fn(usize) + Send + Sync + 'static,
) -> Result<(), GangError> {
    let names: Vec<String> = members.iter().map(|member| member.name.clone()).collect();
    let preparing = Arc::new(Preparing::<P> {
        platform: platform.clone(),
        params: members.iter().map(|it| it.params.clone()).collect(),
        gate: Flag::new(WAIT),
        arrived: P::Lock::new((0, None)),
    });
    let theirs = Arc::clone(&preparing);
    run_together(
        platform,
        &names,
        mask.map_or(&[], std::slice::from_ref),
        move |number| {
            if theirs.prepare(number) {
                body(number);
            }
        },
    )
    .map_err(GangError::Spawn)?;
    let refused = preparing.arrived.with(|(_, refused)| refused.take());
    refused.map_or(Ok(()), |refused| Err(GangError::Refused(refused)))
}

/// The state that the threads of a gang share until all have their scheduling parameters.
struct Preparing<P: Platform> {
    platform: P,
    params: Vec<SchedParams>,
    gate: Flag<P>,
    /// How many have been through, and why one of them was refused.
    arrived: P::Lock<(usize, Option<SchedParamsError>)>,
}

impl<P: Polling> Preparing<P> {
    /// Gives the calling thread its scheduling parameters, and waits for the others. Whether all may begin.
    fn prepare(&self, number: usize) -> bool {
        let params = &self.params[number];
        let set = if *params == SchedParams::default() {
            Ok(())
        } else {
            self.platform
                .machine()
                .set_sched_params(self.platform.thread_id(), params)
                .map(drop)
        };
        let last = self.arrived.with(|(arrived, refused)| {
            *arrived += 1;
            if let Err(error) = set {
                refused.get_or_insert(error);
            }
            (*arrived == self.params.len()).then(|| refused.is_some())
        });
        if let Some(refused) = last {
            self.gate.set(if refused { GIVE_UP } else { GO });
        }
        NaiveWait::Park.until(&self.platform, &self.gate, |value| value != WAIT);
        self.gate.get() == GO
    }
}

#[cfg(test)]
mod tests {
    use sim::{Sim, SimConfig};

    use super::*;

    fn member(params: SchedParams) -> Member {
        let name = "member".into();
        Member { name, params }
    }

    /// Goal: all run, each with its number, or none where one is refused, and why is told. Method: simulated
    /// threads, whose kernel has no uclamp, under some orders.
    #[test]
    fn all_run_or_none() {
        for seed in 0..50 {
            Sim::run(SimConfig::new(seed), |sim| {
                let ran = Arc::new(<Sim as platform::Memory>::Lock::new(Vec::new()));
                let run = |members: &[Member]| {
                    let ran = Arc::clone(&ran);
                    let body = move |number| ran.with(|ran: &mut Vec<usize>| ran.push(number));
                    run_gang(&sim, members, None, body)
                };
                let plain = member(SchedParams::default());
                let refused = run(&[plain.clone(), member(SchedParams::uclamp(1, 2))]);
                assert!(refused.unwrap_err().to_string().contains("uclamp"));
                assert!(ran.with(|ran| ran.is_empty()));
                run(&[plain.clone(), plain.clone(), plain]).unwrap();
                let mut ran = ran.with(std::mem::take);
                ran.sort_unstable();
                assert_eq!(ran, [0, 1, 2]);
            })
            .expect_finished();
        }
    }
}
