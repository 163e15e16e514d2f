//! The rule: from the times that threads ran and waited, frame by frame, to a decision about the number of
//! workers. It is plain arithmetic and knows no platform.
//!
//! A thread is *delayed* in a frame (see [`is_delay`]) if it was ready to run and did not run, for more
//! than [`DELAY`] and for more than an eighth of its time. A shorter time is the cost of wake-ups. A longer
//! one is another thread's turn (a tick is 1 to 10 ms). Frames are judged by the [`Window`]:
//! [`WINDOW_FRAMES`] frames, and at least [`WINDOW_TIME`]. A window is *disturbed* if a thread was delayed
//! in at least half of its frames, and *calm* if a thread was delayed in at most an eighth of them. In
//! between nothing changes.
//!
//! 1. **After [`STREAK`] disturbed windows in a row, and if there is at least one thread too many, fewer
//!    workers are tried.** All threads together get `threads * ran / (ran + waited)` CPUs. That number is
//!    rounded up from an eighth on. If it is less than the number of threads, this number of threads is
//!    tried, the waiting thread counted. At least one worker stays. As long as there are fewer workers no
//!    thread spins: it would be in the way of threads that have no CPU.
//! 2. **The try is kept if no CPU time is lost and the fewer threads are left alone.** The CPU time got per
//!    time of frames is at least 15/16 of that of all threads, and threads are delayed in at most a quarter
//!    of the frames (or the one worker is left that cannot leave). If this does not hold, and no more than
//!    a quarter is lost, one worker less is tried once more: a thread that waits stops waiting when the
//!    frame ends without it, so the first number may be one too large. Otherwise all workers are brought
//!    back. The next try comes after [`RETRY`] windows, each time after twice as many, up to [`RETRY_MAX`].
//! 3. **Fewer workers are kept for [`HOLD`] windows. Then all are brought back.** This is the only way to
//!    see that the load is gone, because a few threads are in no other thread's way. If it was too early
//!    (rule 1 again), fewer workers are kept twice as long the next time, up to [`HOLD_MAX`]. So at 60 Hz
//!    workers are back 9 s after the end of the load at the latest.
//!
//! Why are there not simply fewer workers, and no spinning, whenever threads are preempted? It depends on
//! the threads that take the CPUs away. Threads that *go before* ours (real-time threads, another program's
//! frames) leave the rest of the machine to us, however many threads we have. Our threads beyond that rest
//! wait with a piece of the frame in their hands, and fewer threads lose nothing. Threads that *share* with
//! ours leave each of ours a share. Fewer threads then get less, and a thread that parks instead of
//! spinning for some microseconds gives its CPU to a thread that keeps it until a tick.
//!
//! Row `load` of the benchmark is of the second kind: beside 4 hogs on 2 CPUs a frame takes 2.8 ms (p99 12
//! ms) with one worker and 8.5 ms (13 ms) without (`cargo run --release -p paceline-bench -- load`,
//! *paceline* and *serial*). Spinning was measured with `frames --wait passive` and `adaptive` in turns,
//! four runs of 120 frames each, on a machine that was not quiet. Without spinning the mean frame of the
//! graph was 2 % longer beside 2 hogs and 6 % longer beside 4 (p99 10 and 8 % shorter), and that of the
//! Mandelbrot set 8 % longer and 5 % shorter. On the simulated machine of 2 CPUs means were 2 to 8 %
//! longer. So nothing is sure to be gained, and threads that share do not stop spinning. (A thread that
//! spins in vain stops in any case: see `SpinHabit`.)
//!
//! It cannot be seen beforehand of which kind the other threads are. So fewer workers are tried, and the
//! CPU time that they get decides. Frame times would say the same, but they are as uneven as frames are.
//!
//! Invariant: the number of workers is not touched if it was requested without regard to the machine
//! ([`Load::fits`] is false).

use event::{Interfered, Nanos};

/// A wake-up never takes this long, and another thread's turn always does.
const DELAY: Nanos = Nanos::from_micros(500);
/// A thread that waited for less than one part in this many of its time was not delayed.
const DELAY_PART: u64 = 8;
/// The fewest frames of a window: a quarter of a second at 60 Hz.
const WINDOW_FRAMES: u32 = 16;
/// The shortest time of a window, pauses included: some sixty ticks at 250 Hz.
const WINDOW_TIME: Nanos = Nanos::from_millis(250);
/// Windows until the next try after the first one that failed: 4 s at 60 Hz. A try that fails costs the
/// frames of one or two windows, so all tries together cost some 2 % of the frames.
const RETRY: u32 = 16;
const RETRY_MAX: u32 = 256;
/// Windows for which fewer workers are kept at first: 1 s at 60 Hz.
const HOLD: u32 = 4;
const HOLD_MAX: u32 = 32;
/// Disturbed windows before a try: 1 s at 60 Hz.
const STREAK: u32 = 4;
/// Calm windows after which earlier trouble is forgotten.
const FORGET: u32 = 8;

/// Whether a thread was delayed that has run for `ran` and waited for `waited` in this many frames.
pub(super) fn is_delay(ran: Nanos, waited: Nanos, frames: u32) -> bool {
    waited.0 >= DELAY.0 * u64::from(frames.max(1)) && waited.0 >= (ran.0 + waited.0) / DELAY_PART
}

/// The usage of all threads of a job system together, since some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) ran: u64,
    pub(super) waited: u64,
    /// Involuntary switches away from them.
    pub(super) switches: u64,
    /// The number of threads that were delayed, summed over frames.
    pub(super) delays: u64,
}

impl Used {
    pub(super) fn since(&self, then: &Used) -> Used {
        Used {
            ran: self.ran.saturating_sub(then.ran),
            waited: self.waited.saturating_sub(then.waited),
            switches: self.switches.saturating_sub(then.switches),
            delays: self.delays.saturating_sub(then.delays),
        }
    }

    fn add(&mut self, more: &Used) {
        self.ran += more.ran;
        self.waited += more.waited;
        self.switches += more.switches;
        self.delays += more.delays;
    }

    /// The time that they waited for a CPU, in thousandths of the time that they ran or waited.
    fn waited_thousandths(&self) -> u32 {
        let all = (self.ran + self.waited).max(1);
        (u128::from(self.waited) * 1000 / u128::from(all)) as u32
    }
}

/// A frame that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameUse {
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
    pub(super) used: Used,
}

/// The workers that share the work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// The number of workers wanted at this moment.
    pub(super) workers: usize,
    /// Whether their number follows the machine's width.
    pub(super) fits: bool,
}

/// A finding of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) what: Interfered,
    pub(super) waited_thousandths: u32,
    pub(super) switches_per_1000_frames: u32,
}

/// Frames that are judged together.
#[derive(Clone, Debug, Default)]
struct Window {
    began: Option<Nanos>,
    frames: u32,
    disturbed: u32,
    length: u64,
    used: Used,
}

impl Window {
    fn add(&mut self, frame: &FrameUse) {
        self.began.get_or_insert(frame.begin);
        self.frames += 1;
        self.disturbed += u32::from(frame.used.delays > 0);
        self.length += (frame.end - frame.begin).0;
        self.used.add(&frame.used);
    }

    fn is_full(&self, now: Nanos) -> bool {
        let began = self.began.unwrap_or(now);
        self.frames >= WINDOW_FRAMES && now - began >= WINDOW_TIME
    }

    fn is_disturbed(&self) -> bool {
        self.disturbed * 2 >= self.frames
    }

    fn is_calm(&self) -> bool {
        self.disturbed * 8 <= self.frames
    }

    /// The number of CPUs at work during frames, in thousandths.
    fn capacity(&self) -> u64 {
        (u128::from(self.used.ran) * 1000 / u128::from(self.length.max(1))) as u64
    }

    /// The number of threads that get as many CPUs as `threads` threads do, if each has one to itself.
    fn threads_served(&self, threads: usize) -> usize {
        let all = u128::from((self.used.ran + self.used.waited).max(1));
        let eighths = 8 * threads as u128 * u128::from(self.used.ran) / all;
        // An eighth of a CPU does not count.
        eighths.saturating_sub(1).div_ceil(8) as usize
    }
}

/// The state of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JudgePhase {
    /// All workers run.
    All,
    /// Fewer workers run, as a try. `before`: the capacity that all workers got. `again`: the try may be
    /// repeated with one worker less.
    Trying { before: u64, again: bool },
    /// Fewer workers run, for `left` more windows.
    Fewer { left: u32 },
}

/// The rule and its memory.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    window: Window,
    phase: JudgePhase,
    /// Threads are delayed in most frames.
    noticed: bool,
    /// The most workers that there may be, if there is a limit.
    most: Option<usize>,
    /// Disturbed windows in a row, and calm ones.
    disturbed: u32,
    calm: u32,
    /// Windows until the next try, and their number after the next failure.
    wait: u32,
    retry: u32,
    /// Windows for which fewer workers are kept the next time.
    hold: u32,
}

impl Judge {
    pub(super) fn new() -> Judge {
        Judge {
            window: Window::default(),
            phase: JudgePhase::All,
            noticed: false,
            most: None,
            disturbed: 0,
            calm: 0,
            wait: 0,
            retry: RETRY,
            hold: HOLD,
        }
    }

    /// Whether threads are delayed in most frames.
    pub(super) fn is_noticed(&self) -> bool {
        self.noticed
    }

    /// The most workers that there may be, if there is a limit.
    pub(super) fn most(&self) -> Option<usize> {
        self.most
    }

    /// A frame has ended. `load` is called at the end of a window.
    pub(super) fn frame(
        &mut self,
        frame: &FrameUse,
        load: impl FnOnce() -> Load,
    ) -> Option<Verdict> {
        self.window.add(frame);
        if !self.window.is_full(frame.end) {
            return None;
        }
        let window = std::mem::take(&mut self.window);
        let what = self.judge(&window, load())?;
        let per_1000 = window.used.switches * 1000 / u64::from(window.frames);
        Some(Verdict {
            what,
            waited_thousandths: window.used.waited_thousandths(),
            switches_per_1000_frames: per_1000.min(u32::MAX.into()) as u32,
        })
    }

    fn judge(&mut self, window: &Window, load: Load) -> Option<Interfered> {
        let count = |is: bool, so_far: u32| if is { so_far + 1 } else { 0 };
        self.disturbed = count(window.is_disturbed(), self.disturbed);
        self.calm = count(window.is_calm(), self.calm);
        self.wait = self.wait.saturating_sub(1);
        if self.calm >= FORGET && self.phase == JudgePhase::All {
            (self.retry, self.hold) = (RETRY, HOLD);
        }
        match self.phase {
            JudgePhase::All if self.calm > 0 && self.noticed => {
                self.noticed = false;
                Some(Interfered::Over)
            }
            JudgePhase::All if self.disturbed > 0 && !self.noticed => {
                self.noticed = true;
                Some(Interfered::Noticed)
            }
            JudgePhase::All => self.try_fewer(window, load),
            JudgePhase::Trying { before, again } => Some(self.end_try(window, before, again)),
            JudgePhase::Fewer { left: left @ 1.. } => {
                self.phase = JudgePhase::Fewer { left: left - 1 };
                self.try_fewer(window, load)
            }
            JudgePhase::Fewer { left: 0 } => Some(self.bring_back(Interfered::Probed)),
        }
    }

    fn try_fewer(&mut self, window: &Window, load: Load) -> Option<Interfered> {
        let threads = window.threads_served(load.workers + 1);
        let workers = threads.saturating_sub(1).max(1);
        let is_due = self.disturbed >= STREAK && self.wait == 0;
        if !is_due || !load.fits || workers >= load.workers {
            return None;
        }
        self.most = Some(workers);
        self.phase = JudgePhase::Trying {
            before: window.capacity(),
            again: true,
        };
        self.disturbed = 0;
        Some(Interfered::Fewer)
    }

    fn end_try(&mut self, window: &Window, before: u64, again: bool) -> Interfered {
        let costs_nothing = window.capacity() * 16 >= before * 15;
        let costs_little = window.capacity() * 4 >= before * 3;
        let left_alone = window.disturbed * 4 <= window.frames;
        match self.most {
            most if costs_nothing && (left_alone || most == Some(1)) => {
                self.phase = JudgePhase::Fewer { left: self.hold };
                self.hold = (self.hold * 2).min(HOLD_MAX);
                Interfered::Kept
            }
            Some(workers) if costs_little && again && workers > 1 => {
                self.most = Some(workers - 1);
                self.phase = JudgePhase::Trying {
                    before,
                    again: false,
                };
                Interfered::Fewer
            }
            _ => {
                self.wait = self.retry;
                self.retry = (self.retry * 2).min(RETRY_MAX);
                self.bring_back(Interfered::Restored)
            }
        }
    }

    fn bring_back(&mut self, why: Interfered) -> Interfered {
        self.most = None;
        self.phase = JudgePhase::All;
        (self.disturbed, self.calm) = (0, 0);
        why
    }
}
