//! Running a scenario: its threads as simulated ones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use event::{Cpu, Nanos, Random};
use platform::{Atomic, Memory, Platform};
use policy::{Attr, Mask};

use super::file::{MAIN, Phase, Repeat, Scenario, ThreadPlan, WaitKind};
use super::objects::{Measured, Objects};
use super::segments::{self, Segment, WaitUntil};
use super::waits::NamedWaits;
use crate::{FirstThread, Machine, Sim, SimConfig, SimReport};

/// The result of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// How the run ended and what it used.
    pub report: SimReport,
    /// The measured stretches, in the order in which they ended.
    pub measured: Vec<Measured>,
}

/// Runs a scenario that has no program.
///
/// # Panics
/// As [`run_with`].
pub fn run(scenario: &Scenario, config: SimConfig) -> Ran {
    run_with(scenario, config, |_| ())
}

/// Runs a scenario; if it has a program, `program` is called on a thread of its own, called "main".
///
/// The changes of the machine, the end and the seed come from `config`; [`Scenario::plan`] and
/// [`Scenario::until`] have those of the scenario.
///
/// # Panics
/// As [`Sim::run_all`]; [`Scenario::is_admitted`] tells in advance whether the policy takes the threads.
pub fn run_with(scenario: &Scenario, config: SimConfig, program: impl FnOnce(&Sim)) -> Ran {
    run_watched(scenario, config, |_| (), program)
}

/// The same; `begun` is called before anything runs. It gets a handle; clones of it tell other threads of the
/// OS how far the run has come ([`Sim::time`]).
///
/// # Panics
/// As [`run_with`].
pub fn run_watched(
    scenario: &Scenario,
    mut config: SimConfig,
    begun: impl FnOnce(&Sim),
    program: impl FnOnce(&Sim),
) -> Ran {
    if scenario.full_speed {
        config.machine = Arc::new(Machine::clone(&config.machine).at_full_speed());
    }
    config.hints |= scenario.hints;
    let log = Arc::new(StdMutex::new(Vec::new()));
    let waits = Arc::new(NamedWaits::default());
    let seed = config.seed;
    let mut report = Sim::run_all(config, |sim| {
        begun(sim);
        let objects = Arc::new(Objects::new(sim, scenario, log.clone(), waits.clone()));
        let mut threads = Vec::new();
        for (kind, plan) in scenario.threads.iter().enumerate() {
            for copy in 0..plan.count {
                let stream = seed ^ ((kind as u64) << 32 | copy as u64) << 8;
                let actor = Actor {
                    sim: sim.clone(),
                    objects: objects.clone(),
                    plan: plan.clone(),
                    random: Random::new(stream),
                    began: Nanos::ZERO,
                    waited: BTreeMap::new(),
                    timers: BTreeMap::new(),
                    never: Arc::new(<Sim as Memory>::AtomicU64::new(0)),
                    open: Vec::new(),
                };
                threads.push(actor.into_thread(copy));
            }
        }
        if scenario.program.is_some() {
            let sim = sim.clone();
            threads.push(FirstThread {
                name: MAIN.into(),
                attr: Attr::default(),
                mask: Mask::default(),
                body: Box::new(move || program(&sim)),
            });
        }
        threads
    });
    waits.tell(&mut report);
    let measured = std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner));
    Ran { report, measured }
}

/// A thread of the scenario.
struct Actor {
    sim: Sim,
    objects: Arc<Objects>,
    plan: ThreadPlan,
    random: Random,
    began: Nanos,
    /// The number of times it has waited for each flag.
    waited: BTreeMap<String, u64>,
    /// The last ring of each of its own timers.
    timers: BTreeMap<String, Nanos>,
    /// A word that is never written, to spin on.
    never: Arc<<Sim as Memory>::AtomicU64>,
    /// The stretches that it measures at this moment.
    open: Vec<(String, Nanos)>,
}

impl Actor {
    fn into_thread<'a>(mut self, copy: usize) -> FirstThread<'a> {
        FirstThread {
            name: self.plan.name_of(copy),
            attr: self.plan.attr(),
            mask: Mask::of(self.plan.cpus.iter().copied().map(Cpu)),
            body: Box::new(move || self.live()),
        }
    }

    fn live(&mut self) {
        if let Some(start) = self.plan.start {
            self.sim.sleep_until(start);
        }
        self.began = self.sim.time();
        if !self.plan.segments.is_empty() {
            return self.go_through_segments();
        }
        let phases = std::mem::take(&mut self.plan.phases);
        match self.plan.repeat {
            Repeat::Times(times) => {
                for _ in 0..times {
                    self.go_through(&phases);
                }
            }
            Repeat::Word(_) => loop {
                self.go_through(&phases);
            },
        }
    }

    fn go_through_segments(&mut self) {
        let (sim, objects) = (self.sim.clone(), self.objects.clone());
        let signals = &objects.signals;
        let me = sim.thread_id() as usize - 1;
        let segments = self.plan.segments.0.clone();
        let end = signals.end;
        for segment in &*segments {
            // Threads end with the scenario, so that nothing is left of them.
            let left = end - sim.time().min(end);
            match segment {
                _ if left == Nanos::ZERO => break,
                Segment::Work(length) => sim.charge(left.min(*length)),
                Segment::Wake(target) => signals.wake(&sim, me, target),
                Segment::Wait {
                    on,
                    until,
                    late,
                    lends,
                } => {
                    let how = (*late, *lends);
                    match until {
                        WaitUntil::Signal => signals.wait(&sim, me, on, how),
                        WaitUntil::Free => signals.lock(&sim, me, on, how),
                        WaitUntil::Taken => signals.take_lock(&sim, me, on, how),
                    }
                }
                Segment::Hold(target) => signals.hold(me, target),
                Segment::Free(target) => signals.free(&sim, me, target),
                Segment::Hand(target) => signals.hand(&sim, me, target),
                Segment::NextCpu(cpu) => sim.place(*cpu, false),
                Segment::Cpu(cpu) => sim.place(*cpu, true),
                Segment::Spin(on) => signals.spin(&sim, me, on),
                Segment::Serve { waiter, work } => {
                    if signals.is_awaited(me, waiter) {
                        sim.charge(left.min(*work));
                        signals.wake(&sim, me, waiter);
                    }
                }
                Segment::Sleep { length, until } => {
                    let over = segments::wakes(end - left, *length, *until);
                    sim.leave_until(over.min(end));
                }
                Segment::Until(time) => sim.sleep_until(end.min(*time)),
                Segment::Nice(nice) => signals.set_attr(&sim, me, Attr::nice(*nice)),
                Segment::Fifo(priority) => signals.set_attr(&sim, me, Attr::fifo(*priority)),
                Segment::Begin(name) => self.open.push((name.to_string(), sim.time())),
                Segment::End(name) => self.end(name),
                Segment::Hog => sim.charge(left),
                Segment::Rest => sim.sleep_until(end),
            }
        }
        signals.end(me);
    }

    fn go_through(&mut self, phases: &[Phase]) {
        for phase in phases {
            self.act(phase);
        }
    }

    fn act(&mut self, phase: &Phase) {
        let objects = self.objects.clone();
        match phase {
            Phase::Work(span) => self.sim.charge(span.draw(&mut self.random)),
            Phase::Sleep(span) => {
                let until = self.sim.time() + span.draw(&mut self.random);
                self.sim.sleep_until(until);
            }
            Phase::Period(span) => {
                let periods = (self.sim.time() - self.began).0 / span.least.0 + 1;
                self.sim
                    .sleep_until(self.began + Nanos(periods * span.least.0));
            }
            Phase::Lock(name) => self.named(("mutex", name), || objects.mutexes[name].lock()),
            Phase::Unlock(name) => objects.mutexes[name].unlock(),
            Phase::Send(name) => {
                self.waiting(phase, ("queue", name), || objects.queues[name].send(0));
            }
            Phase::Receive(name) => {
                self.waiting(phase, ("queue", name), || {
                    objects.queues[name].receive();
                });
            }
            Phase::Post(name) => objects.semaphores[name].post(),
            Phase::Take(name) => {
                self.waiting(phase, ("semaphore", name), || {
                    objects.semaphores[name].take()
                });
            }
            Phase::Set(name) => objects.flags[name].set(),
            Phase::Wait { flag, by } => {
                let waited = self.waited.entry(flag.clone()).or_insert(0);
                *waited += 1;
                let wanted = *waited;
                let wait = || objects.flags[flag].wait(&self.sim, wanted, *by);
                self.waiting(phase, ("flag", flag), wait);
            }
            Phase::Spin(span) => {
                let until = self.sim.time() + span.draw(&mut self.random);
                while self.sim.time() < until {
                    Sim::spin_until(&self.never, |value| value != 0, until);
                }
            }
            Phase::Timer {
                name,
                period,
                absolute,
                shared,
            } => self.wait_for_timer(name, period.least, *absolute, *shared),
            Phase::Barrier(name) => {
                self.named(("barrier", name), || objects.barriers[name].pass(&self.sim))
            }
            Phase::Await { condition, mutex } => {
                let mutex = mutex.as_ref().map(|name| &objects.mutexes[name]);
                let wait = || objects.conditions[condition].wait(&self.sim, mutex);
                self.waiting(phase, ("condition", condition), wait);
            }
            Phase::Signal(name) => objects.conditions[name].signal(1),
            Phase::Broadcast(name) => objects.conditions[name].signal(usize::MAX),
            Phase::Yield => self.sim.yields(),
            Phase::Begin(name) => self.open.push((name.clone(), self.sim.time())),
            Phase::End(name) => self.end(name),
            Phase::Repeat { times, phases } => {
                for _ in 0..*times {
                    self.go_through(phases);
                }
            }
        }
    }

    /// Waits for an object of this name, for the report of a run that ends meanwhile.
    fn named(&self, (what, name): (&'static str, &str), wait: impl FnOnce()) {
        let me = self.sim.thread_id() as usize - 1;
        self.objects.waits.begin(me, what, name);
        wait();
        self.objects.waits.end(me);
    }

    /// Waits for an object as this phase does, and says for whom.
    fn waiting(&self, phase: &Phase, object: (&'static str, &str), wait: impl FnOnce()) {
        let enders = self.objects.enders(phase);
        if enders.is_empty() || !self.sim.has_hints() {
            return self.named(object, wait);
        }
        self.sim.waits_for(enders);
        if let Phase::Wait { by, .. } = phase
            && *by == WaitKind::Spin
        {
            // A scheduler hears of a thread only when it gives its CPU away.
            self.sim.yields();
        }
        self.named(object, wait);
        self.sim.waits_for(&[]);
    }

    fn wait_for_timer(&mut self, name: &str, period: Nanos, absolute: bool, shared: bool) {
        let now = self.sim.time();
        let began = self.began;
        let next = |timers: &mut BTreeMap<String, Nanos>| {
            let rings = timers.entry(name.to_owned()).or_insert(began);
            let due = *rings + period;
            *rings = if absolute { due } else { due.max(now) };
            due
        };
        let due = if shared {
            self.objects.with_timers(next)
        } else {
            next(&mut self.timers)
        };
        self.sim.sleep_until(due);
    }

    fn end(&mut self, name: &str) {
        let Some(place) = self.open.iter().rposition(|(open, _)| open == name) else {
            return;
        };
        let (name, begin) = self.open.remove(place);
        let measured = Measured {
            thread: self.sim.thread_id() as usize - 1,
            name,
            begin,
            end: self.sim.time(),
        };
        self.objects.note(measured);
    }
}
