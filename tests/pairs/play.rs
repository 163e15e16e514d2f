//! Running a program: its threads, and what they say of themselves.

use std::fs::File;
use std::io::Write;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use event::Nanos;
use measure::thread_cpu;
use platform::os::OsParker;
use platform::os::tracefs::Instance;
use platform::{CpuSet, Machine, Os, Parker, Platform};
use workload::busy::Busy;

use crate::lock::Lock;
use crate::scenes::{Does, Plan, Scene};

/// A period of threads that have one.
const PERIOD: Nanos = Nanos::from_millis(16);
/// Work is counted, with a look at the clock every so often.
const LOOK: Nanos = Nanos::from_micros(50);

/// What the threads of a program share.
struct Shared<'a> {
    busy: Busy,
    markers: &'a File,
    group: Option<&'a std::path::Path>,
    lock: Lock,
    spins: bool,
    /// When it began.
    began: AtomicU64,
    is_over: AtomicBool,
    /// The jobs that `worker` was asked for, and has done; what `decoder` made.
    asked: Bell,
    done: Bell,
    made: Bell,
    wanted: Bell,
    burst: Bell,
}

/// A count that a thread sleeps for.
struct Bell {
    count: AtomicU64,
    parker: OsParker,
}

impl Bell {
    fn new() -> Bell {
        Bell {
            count: AtomicU64::new(0),
            parker: Os.parker(),
        }
    }

    fn count(&self) -> u64 {
        // SeqCst, partner: the count in `ring`.
        self.count.load(Ordering::SeqCst)
    }

    fn ring(&self) {
        // SeqCst, partner: the look in `count`.
        self.count.fetch_add(1, Ordering::SeqCst);
        self.parker.unpark();
    }
}

impl Shared<'_> {
    fn now(&self) -> Nanos {
        // Relaxed: it was written before the threads began.
        Os.now() - Nanos(self.began.load(Ordering::Relaxed))
    }

    fn is_over(&self) -> bool {
        // Relaxed: nothing is read because of it.
        self.is_over.load(Ordering::Relaxed)
    }

    /// CPU time, by the kernel's own count.
    fn work(&self, length: Nanos) {
        let begin = thread_cpu().unwrap_or_default();
        let mut left = length;
        while left > LOOK {
            self.busy.spin_for(LOOK, left.0);
            left = length - (thread_cpu().unwrap_or(Nanos::MAX) - begin);
        }
        self.busy.spin_for(left, length.0);
    }

    fn sleep_until(&self, time: Nanos) {
        let parker = Os.parker();
        // Relaxed: it was written before the threads began.
        let deadline = time + Nanos(self.began.load(Ordering::Relaxed));
        while Os.now() < deadline {
            parker.park(deadline);
        }
    }

    fn sleep(&self, length: Nanos) {
        self.sleep_until(self.now() + length);
    }

    /// Sleeps until a bell has rung so often; false: the program is over.
    fn wait_for(&self, bell: &Bell, count: u64) -> bool {
        while bell.count() < count && !self.is_over() {
            bell.parker.park(Nanos::MAX);
        }
        bell.count() >= count
    }

    /// In a slice of this name.
    fn within<R>(&self, name: &str, body: impl FnOnce() -> R) -> R {
        self.opens(name);
        let result = body();
        self.closes();
        result
    }

    fn opens(&self, name: &str) {
        self.mark(&format!("B|{}|{name}", std::process::id()));
    }

    fn closes(&self) {
        self.mark(&format!("E|{}", std::process::id()));
    }

    fn mark(&self, text: &str) {
        let mut markers = self.markers;
        // A mark that is missing is seen in the recording.
        let _ = markers.write_all(text.as_bytes());
    }

    fn lives(&self, plan: &Plan, gate: &Barrier) -> Result<(), String> {
        let prepared = self.prepare(plan);
        gate.wait();
        gate.wait();
        prepared?;
        let mut round = 0;
        while !self.is_over() {
            round += 1;
            if !self.does(plan.does, round) {
                break;
            }
        }
        Ok(())
    }

    fn prepare(&self, plan: &Plan) -> Result<(), String> {
        let me = Os.thread_id();
        let of = |why: String| format!("thread {}: {why}", plan.name);
        let mask = Os.set_mask(me, &CpuSet::parse(plan.cpus));
        mask.map_err(|error| of(error.to_string()))?;
        if let Some(group) = self.group {
            std::fs::write(group.join("tasks"), me.to_string())
                .map_err(|error| of(error.to_string()))?;
        }
        let set = Os.set_sched_params(me, &plan.asks);
        set.map_err(|error| of(error.to_string())).map(|_| ())
    }

    /// One round of what a thread does; false: there is none any more.
    fn does(&self, does: Does, round: u64) -> bool {
        match does {
            Does::Asks { work, sleep } => {
                self.work(work);
                self.asked.ring();
                let waits = || {
                    if self.spins {
                        self.spin_for(round)
                    } else {
                        self.wait_for(&self.done, round)
                    }
                };
                let is_done = self.within(&format!("wait for job {round}"), waits);
                self.sleep(sleep);
                return is_done;
            }
            Does::Works(length) => {
                if !self.wait_for(&self.asked, round) {
                    return false;
                }
                self.job(round, length);
            }
            Does::WorksBetween { piece, job } => {
                let next = self.done.count() + 1;
                if self.asked.count() >= next {
                    self.job(next, job);
                }
                self.within(&format!("piece {round}"), || self.work(piece));
            }
            Does::Hogs => self.work(Nanos::from_millis(1)),
            Does::Holds { work, sleep } => {
                self.holds(round, work, &[&self.wanted, &self.burst]);
                self.sleep(sleep);
            }
            Does::HoldsAgain { work, sleep } => {
                self.holds(round, work, &[&self.wanted]);
                for _ in 1..4 {
                    self.holds(round, work, &[]);
                }
                self.sleep(sleep);
            }
            Does::Wants { holds } => {
                if !self.wait_for(&self.wanted, round) {
                    return false;
                }
                self.wants(round, holds);
                self.work(Nanos::from_micros(300));
            }
            Does::Bursts(length) => {
                if !self.wait_for(&self.burst, round) {
                    return false;
                }
                self.work(length);
            }
            Does::Decodes { at, work } => {
                self.sleep_until(Nanos(PERIOD.0 * round) + at);
                self.within(&format!("job {round}"), || self.work(work));
                self.made.ring();
            }
            Does::Shows { at, work } => {
                self.sleep_until(Nanos(PERIOD.0 * round) + at);
                let waits = || self.wait_for(&self.made, round);
                if !self.within(&format!("wait for job {round}"), waits) {
                    return false;
                }
                self.work(work);
            }
        }
        true
    }

    /// Works with the lock; at first these bells ring.
    fn holds(&self, round: u64, work: Nanos, bells: &[&Bell]) {
        self.lock.with(|| {
            self.within(&format!("low holds lock {round}"), || {
                for bell in bells {
                    bell.ring();
                }
                self.work(work);
            });
        });
    }

    fn wants(&self, round: u64, holds: Nanos) {
        self.opens(&format!("lock {round}"));
        self.lock.with(|| {
            self.closes();
            if holds > Nanos::ZERO {
                self.within(&format!("high holds it {round}"), || self.work(holds));
            }
        });
    }

    fn job(&self, number: u64, length: Nanos) {
        self.within(&format!("job {number}"), || self.work(length));
        self.done.ring();
    }

    /// Looks all the time.
    fn spin_for(&self, count: u64) -> bool {
        while self.done.count() < count && !self.is_over() {
            std::hint::spin_loop();
        }
        self.done.count() >= count
    }

    fn ends(&self) {
        // Relaxed: nothing is read because of it.
        self.is_over.store(true, Ordering::Relaxed);
        let bells = [
            &self.asked,
            &self.done,
            &self.made,
            &self.wanted,
            &self.burst,
        ];
        for bell in bells {
            bell.parker.unpark();
        }
    }
}

/// Runs a program; `recorder` is told to begin when all threads are ready, and to end before the program
/// does. `group`: the control group of its threads.
///
/// # Errors
/// If the system refuses what a thread asks for.
pub(crate) fn play(
    scene: &Scene,
    (busy, markers): (Busy, &File),
    group: Option<&std::path::Path>,
    recorder: &Instance,
) -> Result<(), String> {
    let shared = Shared {
        busy,
        markers,
        group,
        lock: Lock::new(scene.lock)?,
        spins: scene.spins,
        began: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        asked: Bell::new(),
        done: Bell::new(),
        made: Bell::new(),
        wanted: Bell::new(),
        burst: Bell::new(),
    };
    let gate = Barrier::new(scene.threads.len() + 1);
    std::thread::scope(|scope| {
        let threads = scene.threads.iter().map(|plan| {
            let (shared, gate) = (&shared, &gate);
            let builder = std::thread::Builder::new().name(plan.name.to_owned());
            builder
                .spawn_scoped(scope, move || shared.lives(plan, gate))
                .expect("the system has room for a few threads")
        });
        let threads: Vec<_> = threads.collect();
        gate.wait();
        let begun = recorder.start();
        // Relaxed: the gate is between this and the threads.
        shared.began.store(Os.now().0, Ordering::Relaxed);
        gate.wait();
        std::thread::sleep(std::time::Duration::from_nanos(scene.length.0));
        let stopped = recorder.stop();
        shared.ends();
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?);
        let recorded = begun.and(stopped).map_err(|refused| refused.to_string());
        recorded.and(ended.collect())
    })
}
