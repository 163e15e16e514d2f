//! Threads that compute without end, beside one that needs little and one that only seems to: what shows how
//! long a scheduler lets threads run, and how soon it runs those that need little.
//!
//! The threads of source 004's text: compilers, the audio of a game, and a task that is wrongly taken for
//! interactive. A turn of a thread is what it computes between two switches away from it that it did not ask
//! for. Each thread looks after every piece of its work whether there was one, so no privilege is needed, and
//! a turn is known to within a piece.

use event::Nanos;
use platform::{Lock, Machine, Parker, Platform, Polling, SpawnError, Usage};

use std::sync::Arc;

use crate::busy::Busy;
use crate::gang::run_together;
use crate::naive::used;
use crate::pace::{Pace, Pause};

/// How long a thread computes between two looks.
const PIECE: Nanos = Nanos::from_micros(20);

/// From here on threads are looked at. Schedulers that tell interactive threads apart average over seconds.
const KNOWN: Nanos = Nanos::from_millis(1_200);

/// The audio: it computes for so long in each period, and is late if it is not through when the next begins.
const AUDIO: Nanos = Nanos::from_millis(5);
const AUDIO_WORK: Nanos = Nanos::from_micros(300);

/// The thread that seems to need little sleeps so often, and then computes for so long.
const NAPS: u32 = 20;
const NAP: Nanos = Nanos::from_micros(100);
const PRETENDED: Nanos = Nanos::from_millis(20);

/// The program to run.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// The number of threads that compute without end.
    pub computing: u32,
    /// How long they are looked at.
    pub length: Nanos,
}

/// The results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrowdReport {
    /// The turns of the threads that compute without end.
    pub turns: Vec<Nanos>,
    /// Those of the thread that seems to need little, while it computes.
    pub pretended: Vec<Nanos>,
    /// From the moment at which each period of the audio was due to its first instruction.
    pub audio: Vec<Nanos>,
    /// How many periods were due, and how many of them were over in time.
    pub periods: u64,
    /// See [`periods`](CrowdReport::periods).
    pub in_time: u64,
    /// The CPU time and switches of the threads that compute without end; `None` where none is counted.
    pub computed: Usage,
}

impl Crowd {
    /// Runs it, with bodies that compute by `busy`, on new threads, and waits for them. It takes 1.2 s longer
    /// than [`length`](Crowd::length).
    ///
    /// ```
    /// use event::Nanos;
    /// use paceline_workload::busy::Busy;
    /// use paceline_workload::crowd::Crowd;
    /// use platform::Os;
    ///
    /// let crowd = Crowd { computing: 2, length: Nanos::from_millis(20) };
    /// let report = crowd.run(&Os, Busy::calibrate(&Os)).unwrap();
    /// assert!(report.in_time <= report.periods);
    /// ```
    ///
    /// # Errors
    /// If the system refuses a thread; then nothing was run.
    pub fn run<P: Polling>(&self, platform: &P, busy: Busy) -> Result<CrowdReport, SpawnError> {
        let from = platform.now() + KNOWN;
        let scene = Arc::new(CrowdScene::<P> {
            platform: platform.clone(),
            busy,
            from,
            until: from + self.length,
            report: P::Lock::new(CrowdReport::default()),
        });
        let mut names = vec!["audio".to_owned(), "pretender".to_owned()];
        names.extend((0..self.computing).map(|number| format!("cc {number}")));
        let theirs = Arc::clone(&scene);
        run_together(platform, &names, &[], move |number| match number {
            0 => theirs.audio(),
            1 => theirs.pretend(),
            _ => theirs.compute(),
        })?;
        Ok(scene.report.with(std::mem::take))
    }
}

/// What the threads share.
struct CrowdScene<P: Platform> {
    platform: P,
    busy: Busy,
    from: Nanos,
    until: Nanos,
    report: P::Lock<CrowdReport>,
}

impl<P: Polling> CrowdScene<P> {
    fn work(&self, length: Nanos) {
        self.platform.charge(length);
        self.busy.spin_for(length, length.0);
    }

    fn compute(&self) {
        let mut turns = Turn::begin(&self.platform);
        while self.platform.now() < self.from {
            self.work(PIECE);
        }
        let before = self.platform.machine().usage_so_far();
        turns.forget(&self.platform);
        let mut ended = Vec::new();
        while self.platform.now() < self.until {
            self.work(PIECE);
            ended.extend(turns.look(&self.platform));
        }
        let used = used(before, self.platform.machine().usage_so_far());
        self.report.with(|report| {
            report.turns.extend(ended);
            report.computed = sum(report.computed, used);
        });
    }

    fn pretend(&self) {
        let nap = self.platform.parker();
        let mut ended = Vec::new();
        while self.platform.now() < self.until {
            for _ in 0..NAPS {
                self.work(PIECE);
                let end = self.platform.now() + NAP;
                while self.platform.now() < end {
                    nap.park(end);
                }
            }
            let mut turns = Turn::begin(&self.platform);
            for _ in 0..PRETENDED.0 / PIECE.0 {
                self.work(PIECE);
                let turn = turns.look(&self.platform);
                let begun = self.platform.now();
                ended.extend(turn.filter(|_| (self.from..self.until).contains(&begun)));
            }
        }
        self.report.with(|report| report.pretended = ended);
    }

    fn audio(&self) {
        let mut pace = Pace::new(self.platform.clone(), Some(AUDIO.into()), Pause::Sleep);
        let (mut waits, mut in_time) = (Vec::new(), 0);
        let (mut first, mut last) = (None, Nanos::ZERO);
        loop {
            pace.next_frame();
            let (due, now) = (pace.due(), self.platform.now());
            if due >= self.until {
                break;
            }
            self.work(AUDIO_WORK);
            if due >= self.from {
                first.get_or_insert(due);
                last = due;
                waits.push(now - due);
                in_time += u64::from(self.platform.now() <= due + AUDIO);
            }
        }
        self.report.with(|report| {
            report.audio = waits;
            report.periods = first.map_or(0, |first| (last - first).0 / AUDIO.0 + 1);
            report.in_time = in_time;
        });
    }
}

/// A turn that goes on.
struct Turn {
    /// Its beginning; none if that was not seen.
    begin: Option<Nanos>,
    /// The end of the last piece of work in it.
    last: Nanos,
    switches: Option<u64>,
}

impl Turn {
    /// It begins now: the thread has just been given a CPU of its own accord.
    fn begin<P: Platform>(platform: &P) -> Turn {
        let now = platform.now();
        Turn {
            begin: Some(now),
            last: now,
            switches: platform.machine().involuntary(),
        }
    }

    /// The beginning of the turn that goes on now is not known.
    fn forget<P: Platform>(&mut self, platform: &P) {
        *self = Turn {
            begin: None,
            ..Turn::begin(platform)
        };
    }

    /// After a piece of work: the length of the turn that has ended in it, if one has.
    fn look<P: Platform>(&mut self, platform: &P) -> Option<Nanos> {
        let (now, switches) = (platform.now(), platform.machine().involuntary());
        let mut ended = None;
        if switches != self.switches {
            ended = self.begin.map(|begin| self.last - begin);
            self.begin = Some(now);
        }
        (self.last, self.switches) = (now, switches);
        ended
    }
}

/// What two threads have used, or one where the other has used nothing yet.
fn sum(a: Usage, b: Usage) -> Usage {
    fn of<T: std::ops::Add<Output = T>>(a: Option<T>, b: Option<T>) -> Option<T> {
        match (a, b) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        }
    }
    Usage {
        cpu: of(a.cpu, b.cpu),
        runnable: of(a.runnable, b.runnable),
        involuntary: of(a.involuntary, b.involuntary),
        voluntary: of(a.voluntary, b.voluntary),
    }
}

#[cfg(test)]
mod tests {
    use sim::{Sim, SimConfig};

    use super::*;

    /// What a crowd of so many meets with on two simulated CPUs under a policy.
    fn met(policy: &str, computing: u32) -> CrowdReport {
        let machine = Arc::new(sim::Machine::ideal(2));
        let config = SimConfig::on(machine, policy, 1);
        let report = Arc::new(<Sim as platform::Memory>::Lock::new(CrowdReport::default()));
        let theirs = Arc::clone(&report);
        Sim::run(config, move |sim| {
            let length = Nanos::from_millis(1_000);
            let crowd = Crowd { computing, length };
            let met = crowd.run(&sim, Busy::NONE).expect("threads");
            theirs.with(|report| *report = met);
        })
        .expect_finished();
        report.with(std::mem::take)
    }

    /// Goal: a turn is as long as the slice that the policy gives, to within a piece and the moment in which
    /// it ends. Method: threads that only compute on an ideal simulated machine, under a policy whose slice
    /// of 5 ms nothing makes shorter there, and under one that wears slices down to 0.25 ms.
    #[test]
    fn a_turn_is_as_long_as_the_slice() {
        let whole = met("rustland-pre333", 4);
        assert!(whole.turns.len() > 100 && !whole.pretended.is_empty());
        let range = Nanos::from_micros(4_900)..=Nanos::from_micros(5_000);
        let odd = whole.turns.iter().find(|turn| !range.contains(turn));
        assert_eq!(odd, None);
        let worn = met("rustland-333", 4);
        let least = worn.turns.iter().min().copied().unwrap_or_default();
        let range = Nanos::from_micros(200)..=Nanos::from_micros(250);
        assert!(range.contains(&least), "{least}");
    }

    /// Goal: periods are counted from the schedule, those that are late or left out as well. Method: beside
    /// threads that compute, and alone: then all are in time, and none waits.
    #[test]
    fn periods_are_those_of_the_schedule() {
        let alone = met("eevdf-6.6", 0);
        assert_eq!((alone.periods, alone.in_time), (200, 200));
        assert!(alone.turns.is_empty());
        let beside = met("rustland-333", 16);
        assert!(beside.in_time <= beside.audio.len() as u64);
        assert!(beside.audio.len() as u64 <= beside.periods && beside.periods <= 200);
    }

    /// Goal: a turn ends with the last piece of work before a switch, and one whose beginning was not seen
    /// has no length. Method: looks by hand, at a count that has changed and at one that has not.
    #[test]
    fn a_turn_ends_with_a_switch() {
        Sim::run(SimConfig::new(1), |sim| {
            let mut turn = Turn {
                begin: Some(Nanos::ZERO),
                last: Nanos(7),
                switches: Some(u64::MAX),
            };
            assert_eq!(turn.look(&sim), Some(Nanos(7)));
            assert_eq!(turn.look(&sim), None);
            turn.forget(&sim);
            turn.switches = Some(u64::MAX);
            assert_eq!(turn.look(&sim), None);
        })
        .expect_finished();
    }
}
