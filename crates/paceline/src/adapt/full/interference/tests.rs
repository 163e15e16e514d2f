//! The rule, on machines of two lines each.

use event::{Interfered, Nanos};

use super::judge::{FrameUse, Judge, Load, Used, is_delay};

const PERIOD: Nanos = Nanos(16_666_667);
/// The CPU time that a frame needs.
const WORK: u64 = 8_000_000;

/// Threads of other programs that take CPUs away, on a machine of eight.
#[derive(Clone, Copy, Debug)]
enum Others {
    Absent,
    /// They have this many CPUs, whatever we do.
    Before(usize),
    /// They are this many threads, and share with ours.
    Beside(usize),
}

impl Others {
    /// The number of CPUs that `threads` threads of ours get together.
    fn leave(self, threads: usize) -> f64 {
        let (cpus, threads) = (8.0, threads as f64);
        match self {
            Others::Absent => threads.min(cpus),
            Others::Before(theirs) => threads.min(cpus - theirs as f64),
            Others::Beside(hogs) => threads * (cpus / (threads + hogs as f64)).min(1.0),
        }
    }
}

/// A job system that has seven workers if no other thread is in its way.
struct Modelled {
    judge: Judge,
    frame: u64,
    workers: usize,
    fits: bool,
}

impl Modelled {
    fn new() -> Modelled {
        Modelled {
            judge: Judge::new(),
            frame: 0,
            workers: 7,
            fits: true,
        }
    }

    /// A frame: its length and the decision.
    fn frame(&mut self, others: Others) -> (f64, Option<Interfered>) {
        let threads = self.workers.min(self.judge.most().unwrap_or(7)) + 1;
        let cpus = others.leave(threads);
        let length = WORK as f64 / cpus;
        // Some threads wait all the time. It is not that each waits a little.
        let waiting = threads as f64 - cpus;
        let is_delayed = waiting > 0.0 && is_delay(Nanos::ZERO, Nanos(length as u64), 1);
        let begin = Nanos(self.frame * PERIOD.0);
        self.frame += 1;
        let frame = FrameUse {
            begin,
            end: begin + Nanos(length as u64),
            used: Used {
                ran: WORK,
                waited: (waiting * length) as u64,
                switches: u64::from(is_delayed),
                delays: if is_delayed { waiting.ceil() as u64 } else { 0 },
            },
        };
        let load = || Load {
            workers: threads - 1,
            fits: self.fits,
        };
        let verdict = self.judge.frame(&frame, load);
        (length, verdict.map(|verdict| verdict.what))
    }

    /// This many frames: their lengths and the decisions.
    fn frames(&mut self, others: Others, frames: u32) -> (Vec<f64>, Vec<Interfered>) {
        let all: Vec<_> = (0..frames).map(|_| self.frame(others)).collect();
        let decided = all.iter().filter_map(|(_, decided)| *decided).collect();
        (all.iter().map(|(length, _)| *length).collect(), decided)
    }
}

/// Goal: where other threads go before ours, fewer workers run, and stay fewer except for a try now and
/// then. When the other threads are gone, all workers are back within 32 windows. Method: four of eight
/// CPUs are taken away for 30 s.
#[test]
fn fewer_run_where_that_costs_nothing_long() {
    use Interfered::{Fewer, Kept, Noticed, Over, Probed};
    let mut js = Modelled::new();
    let (_, decided) = js.frames(Others::Absent, 120);
    assert_eq!(decided, []);
    let (lasted, decided) = js.frames(Others::Before(4), 1800);
    assert_eq!(decided[..6], [Noticed, Fewer, Kept, Probed, Fewer, Kept]);
    // Nothing is ever slower than with all workers.
    assert!(lasted.iter().all(|&length| length <= WORK as f64 / 4.0));
    assert!(js.judge.is_noticed());
    let (_, decided) = js.frames(Others::Absent, 32 * 16 + 32);
    assert!(
        decided.len() <= 2 && decided.ends_with(&[Over]),
        "{decided:?}"
    );
    assert_eq!((js.judge.is_noticed(), js.judge.most()), (false, None));
}

/// Goal: the number of threads that stay is the number of CPUs that they get, rounded up, the waiting
/// thread counted. Method: each number of CPUs taken away, and one CPU that is shared.
#[test]
fn as_many_stay_as_there_are_cpus_for() {
    for theirs in 0..8 {
        let mut js = Modelled::new();
        js.frames(Others::Before(theirs), 100);
        let expected = match theirs {
            0 => None,
            theirs => Some((7 - theirs).max(1)),
        };
        assert_eq!(js.judge.most(), expected, "{theirs}");
    }
    let mut js = Modelled::new();
    // Nine threads on eight CPUs: without one of ours each thread has a CPU, and ours get 1.6 % less.
    js.frames(Others::Beside(1), 100);
    assert_eq!(js.judge.most(), Some(6));
}

/// Goal: where other threads share with ours, fewer workers would get less. The try ends with all workers,
/// tries become rare, and all tries together cost next to nothing. Method: 16 hogs for five minutes,
/// compared with a job system that never tries.
#[test]
fn tries_that_cost_something_are_given_up_long() {
    use Interfered::{Fewer, Noticed, Restored};
    let others = Others::Beside(16);
    let mut js = Modelled::new();
    let (lasted, decided) = js.frames(others, 18_000);
    assert_eq!(decided[0], Noticed);
    let tries = decided[1..].chunks(2);
    assert!(
        tries.clone().all(|pair| pair == [Fewer, Restored]),
        "{decided:?}"
    );
    assert!((4..=9).contains(&tries.len()), "{}", tries.len());
    let mean = lasted.iter().sum::<f64>() / lasted.len() as f64;
    let without = WORK as f64 / others.leave(8);
    assert!(mean <= without * 1.02, "{mean} {without}");
    assert!(js.judge.is_noticed());
}

/// Goal: a number of workers that does not follow the machine is not touched, and at least one worker
/// stays. Method: the machine of the first test.
#[test]
fn a_number_that_was_meant_that_way_is_left_alone() {
    let mut js = Modelled {
        fits: false,
        ..Modelled::new()
    };
    let (_, decided) = js.frames(Others::Before(4), 600);
    assert_eq!(
        (decided, js.judge.most()),
        (vec![Interfered::Noticed], None)
    );
    let mut js = Modelled {
        workers: 1,
        ..Modelled::new()
    };
    let (_, decided) = js.frames(Others::Before(7), 600);
    assert_eq!(
        (decided, js.judge.most()),
        (vec![Interfered::Noticed], None)
    );
}

/// Goal: trouble in a few frames changes nothing, and neither does trouble in a number between few and
/// many. Method: hogs in one frame of nine, of three, of two.
#[test]
fn it_takes_most_frames_long() {
    let every = |js: &mut Modelled, nth: u32, frames: u32| {
        let mut decided = Vec::new();
        for number in 0..frames {
            let others = match number % nth {
                0 => Others::Beside(16),
                _ => Others::Absent,
            };
            decided.extend(js.frame(others).1);
        }
        decided
    };
    let mut js = Modelled::new();
    assert_eq!(every(&mut js, 9, 896), []);
    assert_eq!(every(&mut js, 3, 896), []);
    assert_eq!(every(&mut js, 2, 16), [Interfered::Noticed]);
    assert_eq!(every(&mut js, 3, 896), []);
    assert!(js.judge.is_noticed());
    assert_eq!(every(&mut js, 9, 32), [Interfered::Over]);
}

/// Goal: the cost of a wake-up is no delay, and neither is a small part of a long time. Method: both
/// bounds.
#[test]
fn a_delay_is_more_than_a_wake_up() {
    let (us, ms) = (Nanos::from_micros, Nanos::from_millis);
    assert!(!is_delay(us(10), us(499), 1));
    assert!(is_delay(us(10), us(500), 1));
    assert!(!is_delay(us(10), us(500), 2), "of two frames");
    assert!(!is_delay(ms(8), ms(1), 1));
    assert!(is_delay(ms(7), ms(1), 1));
}
