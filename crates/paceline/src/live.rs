//! How many threads can run at the same time, now; and as many workers as fit that.
//!
//! CPUs go offline and come back, a control group gets another quota, a phone moves the program to its
//! small cores. Who flushes, waits or begins a frame sees to it that somebody has a look at the machine if
//! the last one was a second ago ([`PERIOD`]): nobody looks by a timer, so that a job system with nothing
//! to do still does nothing. A look takes a tenth of a millisecond. So the next worker without work has it,
//! woken for that if all sleep; only if nobody had it for [`CONFIRM`] (all are busy), or there are no
//! workers, the thread that comes by.
//!
//! - What grew counts at once. What shrank counts when the next look says the same, which comes after
//!   [`CONFIRM`]: a CPU that is away for a moment costs no threads.
//! - Workers that are too many retire by [`crew`](crate::crew), at their next idle point, with their queues
//!   empty; those that are missing are started again.
//! - The threads that are asked about are the caller and all workers: their masks together say where this
//!   job system may run. One thread that was pinned to a CPU does not make the machine small, and neither
//!   does a worker that steers clear of one.
//!
//! Invariants
//! - The number of workers wanted is a function of what was asked for and what was found ([`Reading`]),
//!   and is stored under the same lock.
//! - What cannot be found out changes nothing.

use event::{EventKind, Nanos, Resized};
use platform::{Atomic, CpuSet, Limits, Lock, Memory, Ordering, Padded, Platform, Topology};

use crate::context::Context;
use crate::job::Ticket;
use crate::place::{Place, PlacedThread, allowed_without_place, places};
use crate::seat::Role;
use crate::shared::Shared;
use crate::steer::Mask;

/// How long one look at the machine serves.
const PERIOD: Nanos = Nanos::from_secs(1);
/// When to look again at a machine that seems to have shrunk.
const CONFIRM: Nanos = Nanos::from_millis(100);

/// How many workers the program wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    /// As many as threads can run at the same time, less so many for others; at least 1.
    Fitting { reserve: usize },
    /// So many, said when the machine was so wide.
    Exactly { workers: usize, width_then: usize },
}

impl Asked {
    /// How many are to run where so many threads can run at the same time.
    ///
    /// A number that fitted the machine when it was given is a ceiling: on a machine that has shrunk there
    /// are at most as many workers as CPUs. One that did not fit was meant that way, and stays.
    fn workers(self, width: usize) -> usize {
        match self {
            Asked::Fitting { reserve } => width.saturating_sub(reserve).max(1),
            Asked::Exactly {
                workers,
                width_then,
            } => match workers <= width_then {
                true => workers.min(width.max(1)),
                false => workers,
            },
        }
    }
}

/// What is known of the machine, and what is made of it.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// What the last look found.
    limits: Limits,
    /// How many threads are taken to be able to run at the same time.
    width: usize,
    /// What the last look found, if that was less.
    fewer: Option<usize>,
    /// Every CPU that could ever be used.
    seen: CpuSet,
    asked: Asked,
    workers_max: usize,
    /// As many as [`interference`](crate::interference) leaves.
    most: usize,
    /// The system refused a thread last time.
    undermanned: bool,
    /// The machine, if workers are held to its classes.
    machine: Option<Topology>,
    /// The workers' places, if CPUs differ.
    places: Vec<Place>,
}

/// What a look has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Learned {
    /// Whether the width is another, and which way.
    change: Option<Resized>,
    /// There is a CPU that was never seen before, or has come back.
    has_new_cpus: bool,
    /// Less than before was found, for the first time.
    must_confirm: bool,
    /// There are fewer workers than were wanted.
    is_undermanned: bool,
    /// Workers belong elsewhere.
    has_new_places: bool,
}

impl Reading {
    pub(crate) fn new(limits: Limits, asked: Asked, workers_max: usize) -> Reading {
        Reading {
            width: limits.effective_parallelism(),
            seen: limits.usable(),
            limits,
            fewer: None,
            asked,
            workers_max,
            most: usize::MAX,
            undermanned: false,
            machine: None,
            places: Vec::new(),
        }
    }

    /// Workers are held to the classes of this machine from now on.
    pub(crate) fn divided_by(self, machine: Option<Topology>) -> Reading {
        let mut reading = Reading { machine, ..self };
        reading.replan();
        reading
    }

    pub(crate) fn asked(&self) -> Asked {
        self.asked
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    /// Every CPU that could ever be used.
    pub(crate) fn seen(&self) -> &CpuSet {
        &self.seen
    }

    /// Whether the class of one of these CPUs is not known, and was not looked for since it came.
    fn must_detect(&self, usable: &CpuSet) -> bool {
        self.machine.as_ref().is_some_and(|machine| {
            let is_unknown = |cpu: u32| machine.class_of(cpu).is_none();
            usable.difference(&self.seen).iter().any(is_unknown)
        })
    }

    /// Finds the workers' places. True if they are others than before.
    fn replan(&mut self) -> bool {
        let Some(machine) = &self.machine else {
            return false;
        };
        let places = places(machine, &self.limits, self.workers(), &self.seen);
        let has_changed = places != self.places;
        self.places = places;
        has_changed
    }

    /// The smallest of what was asked for, what the machine leaves and what others on it do.
    pub(crate) fn workers(&self) -> usize {
        match self.fits() {
            true => self.workers_alone().min(self.most),
            false => self.workers_alone(),
        }
    }

    /// What it would be if nobody else wanted the CPUs.
    pub(crate) fn workers_alone(&self) -> usize {
        self.asked.workers(self.width).min(self.workers_max)
    }

    /// Whether the number of workers has to do with the machine's.
    fn fits(&self) -> bool {
        match self.asked {
            Asked::Fitting { .. } => true,
            Asked::Exactly {
                workers,
                width_then,
            } => workers <= width_then,
        }
    }

    /// Whether there is less CPU time than CPUs: whoever spins spends what others need.
    fn is_rationed(&self) -> bool {
        let cpus = self.limits.usable().len() as f64;
        self.limits.quota.is_some_and(|quota| quota.cpus() < cpus)
    }

    fn learn(&mut self, limits: Limits) -> Learned {
        let (found, was) = (limits.effective_parallelism(), self.width);
        let is_sure = found >= was || self.fewer == Some(found);
        match is_sure {
            true => (self.width, self.fewer) = (found, None),
            false => self.fewer = Some(found),
        }
        let old = self.limits.usable();
        let new = limits.usable();
        self.seen = self.seen.union(&new);
        self.limits = limits;
        let has_new_places = self.replan();
        Learned {
            has_new_places,
            change: match self.width.cmp(&was) {
                std::cmp::Ordering::Less => Some(Resized::Narrower),
                std::cmp::Ordering::Equal => None,
                std::cmp::Ordering::Greater => Some(Resized::Wider),
            },
            has_new_cpus: old.union(&new).len() > old.len(),
            must_confirm: self.fewer.is_some(),
            is_undermanned: self.undermanned,
        }
    }
}

/// How wide the machine is, for those who ask often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Width {
    /// Threads that can run at the same time.
    pub(crate) threads: usize,
    /// There is less CPU time than CPUs.
    pub(crate) is_rationed: bool,
}

impl Width {
    fn of(reading: &Reading) -> Width {
        Width {
            threads: reading.width,
            is_rationed: reading.is_rationed(),
        }
    }

    fn pack(self) -> u32 {
        (self.threads as u32) << 1 | u32::from(self.is_rationed)
    }

    fn unpack(word: u32) -> Width {
        Width {
            threads: (word >> 1) as usize,
            is_rationed: word & 1 != 0,
        }
    }
}

/// The machine as this job system knows it.
pub(crate) struct Live<M: Memory> {
    /// Whether to look again at all.
    pub(crate) is_on: bool,
    /// The CPUs that workers are to stay on; none given: wherever they may.
    cpus: Option<CpuSet>,
    /// When to look again, in ns.
    due: Padded<M::AtomicU64>,
    /// A look is asked of the next worker that has nothing to do.
    asked: M::AtomicU32,
    /// [`Width`], packed. Relaxed: a number that nothing is published with.
    width: M::AtomicU32,
    pub(crate) reading: M::Lock<Reading>,
}

impl<M: Memory> Live<M> {
    /// What was found at `now`. `cpus` restricts all workers.
    pub(crate) fn new(reading: Reading, cpus: Option<CpuSet>, follow: Option<Nanos>) -> Live<M> {
        let width = Width::of(&reading);
        Live {
            is_on: follow.is_some(),
            cpus,
            due: Padded(M::AtomicU64::new(
                follow.map_or(u64::MAX, |now| (now + PERIOD).0),
            )),
            asked: M::AtomicU32::new(0),
            width: M::AtomicU32::new(width.pack()),
            reading: M::Lock::new(reading),
        }
    }

    pub(crate) fn width(&self) -> Width {
        Width::unpack(self.width.load(Ordering::Relaxed))
    }

    /// True for one of those who ask when a look is due: it has to look.
    #[inline]
    pub(crate) fn takes_turn(&self, now: Nanos) -> bool {
        // Relaxed: the number decides who looks; what is found is under the lock.
        let due = self.due.load(Ordering::Relaxed);
        now.0 >= due && self.take_turn(due, now)
    }

    #[cold]
    fn take_turn(&self, due: u64, now: Nanos) -> bool {
        // If nobody has looked by then, whoever comes by does.
        let next = (now + CONFIRM).0;
        self.due
            .compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Asks for a look. True if it was asked for before, and nobody has had one.
    fn ask(&self) -> bool {
        // Relaxed, here and below: what is found is under the lock; `ask_for_look` fences.
        self.asked.swap(1, Ordering::Relaxed) != 0
    }

    /// Whether a worker that has nothing to do should look.
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) != 0
    }

    /// Somebody has looked.
    fn has_looked(&self, now: Nanos, must_confirm: bool) {
        let next = if must_confirm { CONFIRM } else { PERIOD };
        // Relaxed: as in `takes_turn`; whoever has looked meanwhile looks once more.
        self.due.store((now + next).0, Ordering::Relaxed);
    }

    /// Learns what a look has found; `settle` is called with the number of workers wanted by now, in the
    /// order in which it is learned.
    pub(crate) fn learn(&self, limits: Limits, settle: impl FnOnce(usize)) -> Learned {
        self.reading.with(|reading| {
            let learned = reading.learn(limits);
            let width = Width::of(reading);
            self.width.store(width.pack(), Ordering::Relaxed);
            settle(reading.workers());
            learned
        })
    }

    pub(crate) fn explain(&self) -> Vec<String> {
        self.reading.with(|reading| reading.explain())
    }

    /// The places of the workers, by ordinal; none if they may run everything everywhere.
    pub(crate) fn places(&self) -> Vec<Place> {
        self.reading.with(|reading| reading.places.clone())
    }

    /// The place of the worker with this ordinal; that of the first one for those without.
    pub(crate) fn place(&self, ordinal: u32) -> Option<Place> {
        self.reading.with(|reading| {
            let places = &reading.places;
            places.get(ordinal as usize).or(places.first()).cloned()
        })
    }

    /// Whether the number of workers has to do with the machine's.
    pub(crate) fn fits(&self) -> bool {
        self.reading.with(|reading| reading.fits())
    }

    /// The CPUs that workers were told to stay on, if any.
    pub(crate) fn told_cpus(&self) -> Option<&CpuSet> {
        self.cpus.as_ref()
    }
}

/// The CPUs of the first set that the second one has, too; if there are none, the first set: a CPU that
/// is away for a while must not stop everything.
pub(crate) fn common(cpus: &CpuSet, wanted: Option<&CpuSet>) -> CpuSet {
    let both = wanted.map_or_else(CpuSet::new, |wanted| wanted.intersection(cpus));
    match both.is_empty() {
        true => cpus.clone(),
        false => both,
    }
}

/// What these threads may use of the machine, of the CPUs they were told to stay on. `usable`: what could be
/// used when they were given their places.
///
/// The platform knows about the process, and that is not enough: a program may have pinned its main thread to
/// one CPU, and that says nothing about its workers.
pub(crate) fn limits_of<P: Platform>(
    platform: &P,
    threads: &[PlacedThread],
    told: Option<&CpuSet>,
    usable: &CpuSet,
) -> Limits {
    let mut limits = platform.limits();
    for thread in threads {
        if let Some(allowed) = allowed_without_place(platform, thread, usable) {
            limits.allowed = limits.allowed.union(&allowed);
        }
    }
    limits.allowed = common(&limits.usable(), told);
    limits
}

/// The calling thread, which was given no place.
pub(crate) fn caller<P: Platform>(platform: &P) -> PlacedThread {
    PlacedThread {
        thread: platform.thread_id(),
        given: None,
        is_steered: false,
    }
}

impl<P: Platform> Shared<P> {
    /// What the last look found.
    pub(crate) fn limits(&self) -> Limits {
        self.live.reading.with(|reading| reading.limits.clone())
    }

    /// Makes the number of regular workers what the program asks for. Returns the first refusal of the
    /// system, after which fewer workers run.
    pub(crate) fn resize(&self, workers: usize) -> Result<(), platform::SpawnError> {
        self.live.reading.with(|reading| {
            reading.asked = Asked::Exactly {
                workers,
                width_then: reading.width,
            };
            reading.replan();
            self.crew.set_target(reading.workers());
        });
        self.man_posts()
    }

    /// No more workers than that, if there is a number; how many there are to be.
    /// [`man_missing_posts`](Shared::man_missing_posts) sees to it.
    pub(crate) fn limit_workers(&self, most: Option<usize>) -> usize {
        self.live.reading.with(|reading| {
            reading.most = most.unwrap_or(usize::MAX);
            reading.replan();
            let workers = reading.workers();
            self.crew.set_target(workers);
            workers
        })
    }

    /// As [`man_posts`](Shared::man_posts); who is missing because the system refused is asked for again at
    /// the next look.
    pub(crate) fn man_missing_posts(&self) {
        let refused = self.man_posts().is_err();
        self.live
            .reading
            .with(|reading| reading.undermanned = refused);
    }

    /// Starts the first workers.
    pub(crate) fn start_workers(&self) -> Result<(), platform::SpawnError> {
        let target = self.live.reading.with(|reading| reading.workers());
        self.crew.set_target(target);
        self.man_posts()
    }
}

impl<P: Platform> Context<'_, P> {
    /// If it is time for that, sees to it that somebody has a look at the machine.
    #[inline]
    pub(crate) fn follow_machine(&self) {
        if self.shared.live.is_on {
            self.follow_machine_at(self.shared.platform.now());
        }
    }

    /// The same for threads that know the time.
    #[inline]
    pub(crate) fn follow_machine_at(&self, now: Nanos) {
        if self.shared.live.is_on && self.shared.live.takes_turn(now) {
            self.ask_for_look();
        }
    }

    /// A look takes a tenth of a millisecond, which is too much for a thread that has a frame to begin: a
    /// worker has it as soon as it has nothing to do. If all of them sleep, one is woken.
    #[cold]
    fn ask_for_look(&self) {
        let shared = self.shared;
        if shared.live.ask() || shared.crew.active() == 0 {
            self.look_at_machine();
            return;
        }
        // SeqCst, partner: the fence of a worker that has said that it sleeps and looks around once more.
        P::fence(Ordering::SeqCst);
        let sleeper = shared.slow.idle.wake_one();
        if let Some(seat) = sleeper.or_else(|| shared.idle.wake_one()) {
            self.wake_worker(seat);
        }
    }

    /// Has a look if one was asked for. True if so. The caller is a worker without work, and does not count
    /// as searching meanwhile, since others would leave work to it.
    #[cold]
    pub(crate) fn look_if_asked(&self) -> bool {
        // Relaxed: one of those who see it looks, or two do.
        let is_mine = self.shared.live.asked.swap(0, Ordering::Relaxed) != 0;
        if is_mine {
            self.look_at_machine();
        }
        is_mine
    }

    #[cold]
    fn look_at_machine(&self) {
        let shared = self.shared;
        // Relaxed: see `look_if_asked`.
        shared.live.asked.store(0, Ordering::Relaxed);
        let mut threads = shared.placed_threads();
        threads.push(caller(&shared.platform));
        let usable = shared.limits().usable();
        let limits = limits_of(&shared.platform, &threads, shared.live.told_cpus(), &usable);
        let new = limits.usable();
        if shared
            .live
            .reading
            .with(|reading| reading.must_detect(&new))
        {
            let machine = shared.platform.detect();
            shared.live.reading.with(|reading| {
                let earlier = reading.machine.take();
                reading.machine = earlier.map(|earlier| machine.remembering(&earlier));
            });
        }
        self.learn_machine(limits);
    }

    fn learn_machine(&self, limits: Limits) {
        let shared = self.shared;
        let mut target = 0;
        let learned = shared.live.learn(limits, |workers| {
            target = workers;
            shared.crew.set_target(workers);
        });
        let now = shared.platform.now();
        shared.live.has_looked(now, learned.must_confirm);
        if learned.has_new_cpus {
            shared.widen_masks();
        }
        if learned.change.is_some() || learned.is_undermanned || learned.has_new_places {
            shared.man_missing_posts();
        }
        if let Some(why) = learned.change {
            self.seat.counters.resizes.add(1);
            let arg = (why as u64) << 32 | target as u64;
            self.record(EventKind::Resized, Ticket::NONE, arg);
        }
        self.seat.counters.looks.add(1);
    }
}

impl<P: Platform> Shared<P> {
    /// There are CPUs that masks set by steering do not have.
    fn widen_masks(&self) {
        if !self.steering.on || self.live.place(0).is_some() {
            return;
        }
        let cpus = self.all_worker_cpus();
        let workers = self.seats.iter().filter(|seat| seat.role != Role::Guest);
        for seat in workers {
            self.with_worker_thread(seat, |thread| {
                // Others have left out a CPU on purpose, and will ask for all of them.
                let is_full = seat.mask.load(Ordering::Relaxed) == Mask::Full as u32;
                is_full && self.platform.set_mask(thread, &cpus).is_ok()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use event::Random;
    use platform::{Os, Quota};

    use super::*;

    fn machine(cpus: u32, quota_millis: Option<u64>) -> Limits {
        let quota = quota_millis.and_then(|millis| Quota::new(100 * millis, 100_000));
        Limits {
            quota,
            ..Limits::of((0..cpus).collect())
        }
    }

    fn fitting(cpus: u32) -> Reading {
        Reading::new(machine(cpus, None), Asked::Fitting { reserve: 1 }, 64)
    }

    /// Goal: growing counts at once, shrinking when it was seen twice. Method: a machine that loses three
    /// CPUs for a moment, for good, loses another one in between, and gets all back.
    #[test]
    fn shrinking_is_confirmed_and_growing_is_not() {
        let mut reading = fitting(8);
        let mut found = Vec::new();
        for cpus in [5, 8, 5, 5, 4, 3, 3, 8] {
            let learned = reading.learn(machine(cpus, None));
            found.push((reading.width, reading.workers(), learned.must_confirm));
        }
        let expected = [
            (8, 7, true),
            (8, 7, false),
            (8, 7, true),
            (5, 4, false),
            (5, 4, true),
            (5, 4, true),
            (3, 2, false),
            (8, 7, false),
        ];
        assert_eq!(found, expected);
    }

    /// Goal: a ration counts, and stops spinning at once, before it is confirmed. Method: one and a half
    /// CPUs of four.
    #[test]
    fn a_ration_counts_and_stops_spinning_at_once() {
        let mut reading = fitting(4);
        assert!(!Width::of(&reading).is_rationed);
        reading.learn(machine(4, Some(1_500)));
        let width = Width::of(&reading);
        assert_eq!((width.threads, width.is_rationed), (4, true));
        assert_eq!(Width::unpack(width.pack()), width);
        let learned = reading.learn(machine(4, Some(1_500)));
        assert_eq!(learned.change, Some(Resized::Narrower));
        assert_eq!((reading.width, reading.workers()), (2, 1));
        let learned = reading.learn(machine(4, None));
        assert_eq!(learned.change, Some(Resized::Wider));
        assert!(!Width::of(&reading).is_rationed);
    }

    /// Goal: a number that was asked for is a ceiling if it fitted the machine, and stays otherwise.
    /// Method: numbers from none to more than there are CPUs, on a machine of four that shrinks and grows.
    #[test]
    fn a_number_that_was_asked_for_is_respected() {
        let workers = |workers, width| {
            let width_then = 4;
            let asked = Asked::Exactly {
                workers,
                width_then,
            };
            asked.workers(width)
        };
        for width in [1, 2, 3, 4, 8] {
            assert_eq!(workers(0, width), 0, "none means none");
            assert_eq!(workers(1, width), 1);
            assert_eq!(workers(4, width), width.min(4));
            assert_eq!(workers(5, width), 5, "meant that way");
        }
    }

    /// Goal: whatever the machine does, the width is never more than what the last two looks found, never
    /// less than what the last one or the one before found, and never zero; and the workers follow.
    /// Method: random machines, a thousand looks each, against that rule in other words.
    #[test]
    fn the_width_follows_any_machine() {
        let (machines, looks) = if cfg!(miri) { (1, 50) } else { (20, 1_000) };
        for seed in 0..machines {
            let mut random = Random::new(seed);
            let mut reading = fitting(1 + random.below(16) as u32);
            let mut before = reading.width;
            for _ in 0..looks {
                let (cpus, quota) = (random.below(5) as u32, random.below(8_000));
                let quota = (random.below(2) == 0).then_some(quota);
                let limits = machine(cpus, quota);
                let found = limits.effective_parallelism();
                let was = reading.width;
                let learned = reading.learn(limits);
                let wanted = match found {
                    _ if found >= was => found,
                    _ if found == before => found,
                    _ => was,
                };
                assert_eq!(reading.width, wanted, "seed {seed}");
                assert_eq!(learned.change.is_some(), wanted != was);
                assert_eq!(learned.must_confirm, found < wanted);
                assert_eq!(reading.workers(), (wanted - 1).max(1));
                before = found;
            }
        }
    }

    /// Goal: CPUs that come back are noticed, also those that were not there at the beginning. Method: one
    /// goes and comes back while another appears.
    #[test]
    fn cpus_that_come_are_noticed() {
        let mut reading = fitting(2);
        assert!(!reading.learn(machine(2, None)).has_new_cpus);
        assert!(!reading.learn(machine(1, None)).has_new_cpus);
        assert!(reading.learn(machine(3, None)).has_new_cpus);
        assert!(reading.seen.iter().eq(0..3));
    }

    #[test]
    fn common_cpus_are_those_of_both_or_all() {
        let set = |cpus: &[u32]| cpus.iter().copied().collect::<CpuSet>();
        assert_eq!(common(&set(&[0, 1]), None), set(&[0, 1]));
        assert_eq!(common(&set(&[0, 1]), Some(&set(&[1, 2]))), set(&[1]));
        assert_eq!(common(&set(&[0, 1]), Some(&set(&[2]))), set(&[0, 1]));
    }

    /// Goal: one look a period, and none before its time; sooner if nobody had one, or if it has to be
    /// confirmed. Method: the words, without a machine.
    #[test]
    fn one_look_is_due_a_period() {
        let live: Live<Os> = Live::new(fitting(2), None, Some(Nanos(5)));
        assert!(!live.takes_turn(PERIOD + Nanos(4)));
        let first = PERIOD + Nanos(5);
        assert!(live.takes_turn(first));
        assert!(!live.takes_turn(first) && !live.ask(), "somebody is asked");
        // Nobody had time.
        assert!(live.takes_turn(first + CONFIRM) && live.ask());
        live.has_looked(first, false);
        assert!(!live.takes_turn(first + PERIOD - Nanos(1)));
        assert!(live.takes_turn(first + PERIOD));
        live.has_looked(first, true);
        assert!(live.takes_turn(first + CONFIRM));
        let never: Live<Os> = Live::new(fitting(2), None, None);
        assert!(!never.takes_turn(Nanos(u64::MAX - 1)));
    }
}
