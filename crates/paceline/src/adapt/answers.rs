//! What a program is told about its machine: the kernel's help, and the effect of other programs.

use event::{Interfered, Nanos};
use platform::SchedParams;

/// The purpose of a thread of the program.
///
/// ```
/// use paceline::{JobSystem, Role};
/// let js = JobSystem::new();
/// let _main = js.adopt(Role::Main);
/// std::thread::scope(|threads| {
///     threads.spawn(|| {
///         let _sound = js.adopt(Role::Audio);
///         // The sound is mixed here.
///     });
/// });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Role {
    /// The thread makes the frames and waits for them.
    Main,
    /// The thread hands frames to the display.
    Render,
    /// The thread must not be late with the sound.
    Audio,
}

/// A request to the kernel, and its answer.
///
/// ```
/// use paceline::{Builder, Role, SchedParams};
/// let js = Builder::new().os_help(SchedParams::nice(-5)).build().unwrap();
/// let _main = js.adopt(Role::Main);
/// for help in js.os_help() {
///     assert_eq!(help.granted, help.why.is_empty(), "{}: {}", help.asked, help.why);
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Help {
    /// The scheduling parameters that were asked for.
    pub asked: SchedParams,
    /// Whether workers and the threads that adopted a role have these parameters now.
    pub granted: bool,
    /// The reason why not; empty if granted.
    pub why: String,
}

/// One decision about threads that others keep from running.
///
/// ```
/// let js = paceline::JobSystem::new();
/// for decision in js.interference().decisions {
///     println!("frame {}: {:?}, {} workers", decision.frames, decision.what, decision.workers);
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The time of the decision, on the platform's clock.
    pub time: Nanos,
    /// The number of frames that had ended.
    pub frames: u64,
    /// The decision.
    pub what: Interfered,
    /// The number of workers from then on.
    pub workers: usize,
    /// The time that the threads of the job system waited for a CPU in the frames before, in thousandths of
    /// the time that they ran or waited.
    pub waited_thousandths: u32,
    /// The number of times that they lost their CPU in 1000 frames.
    pub switches_per_1000_frames: u32,
}

/// The effect of other programs on a job system; from
/// [`JobSystem::interference`](crate::JobSystem::interference).
///
/// ```
/// let js = paceline::JobSystem::new();
/// let others = js.interference();
/// if let Some(workers) = others.most_workers {
///     println!("other programs want these CPUs: {workers} workers are left");
/// }
/// assert!(!others.is_noticed, "there was no frame yet");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interference {
    /// Threads are kept from running in most frames.
    pub is_noticed: bool,
    /// The most workers that there may be for that reason. None of them spins. `None`: there is no such
    /// limit.
    pub most_workers: Option<usize>,
    /// The latest decisions, the oldest first; 64 at most.
    pub decisions: Vec<Decision>,
}
