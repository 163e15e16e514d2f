//! The subjects of a benchmark: their names, and the versions that are compiled in.

/// A subject that does the work of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// The calling thread alone.
    Serial,
    /// A control: the same while another thread computes without an end.
    SerialBeside,
    /// The least cost of waking a thread: one parked plain thread, one futex call.
    Floor,
    /// The least cost of a frame on several threads: plain threads, one wake-up each, one counter.
    PlainThreads,
    Paceline,
    /// A graph that is built once ([`paceline::BuiltGraph`]).
    PacelineBuilt,
    /// The same, beginning the jobs with the longest way ahead
    /// ([`critical_first`](paceline::BuiltGraph::critical_first)).
    PacelineCritical,
    /// A control: the same with all jobs in one queue, oldest first.
    PacelineQueue,
    /// Jobs that declare what they touch are checked when they are scheduled.
    PacelineChecked,
    /// Pieces that are late are run again by who waits ([`idempotent`](paceline::NewJob::idempotent)).
    PacelineIdempotent,
    /// A control: workers stay where the kernel puts them.
    PacelineUnsteered,
    /// A control: as [`PacelineUnsteered`](Who::PacelineUnsteered), and the program's thread spins until a
    /// frame is due instead of sleeping.
    PacelineSpinning,
    /// A control: workers do not ask for a short time slice.
    PacelineUnsliced,
    /// A job that wakes no worker (`quiet`); a worker finds it when it looks next.
    PacelineQuiet,
    /// A control: frames with nothing behind them.
    PacelineAlone,
    /// Long jobs behind the frames have half of the workers.
    PacelineHalf,
    /// A control: long jobs behind the frames have neither checkpoints nor a limit.
    PacelineUnasked,
    /// A rayon pool for frames, and one of one thread for the long jobs behind them.
    RayonTwoPools,
    /// A rayon pool; the program's thread calls into it and blocks, as in rayon's documentation.
    Rayon,
    /// A rayon pool with the calling thread as a member (`use_current_thread`): the same number of threads,
    /// and no cost of a way into the pool.
    RayonMember,
    /// A control: the program's thread spins until a frame is due.
    RayonSpinning,
    /// A control: each thread of the pool may run on one CPU of its own only.
    RayonPinned,
    Chili,
    /// A task pool of bevy_tasks; a thread that waits for a scope runs its tasks, too.
    Bevy,
    /// A task arena of oneTBB in a process of its own (`peers/tbb`).
    Tbb,
}

/// The versions of the peers. A test compares them with the lock file.
const RAYON: &str = "1.12.0";
const CHILI: &str = "0.2.1";
const BEVY: &str = "0.20.1";

impl Who {
    /// All subjects with a version, in the order of tables.
    pub(crate) const VERSIONED: [Who; 5] =
        [Who::Paceline, Who::Rayon, Who::Chili, Who::Bevy, Who::Tbb];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Who::Serial => "serial",
            Who::SerialBeside => "serial, a busy thread beside",
            Who::Floor => "futex wake",
            Who::PlainThreads => "plain threads",
            Who::Paceline => "paceline",
            Who::PacelineBuilt => "paceline, built once",
            Who::PacelineCritical => "paceline, critical first",
            Who::PacelineQueue => "paceline, in a queue",
            Who::PacelineChecked => "paceline, checked",
            Who::PacelineIdempotent => "paceline, idempotent",
            Who::PacelineUnsteered => "paceline, steering off",
            Who::PacelineSpinning => "paceline, steering off, waker spinning",
            Who::PacelineUnsliced => "paceline, kernel's slice",
            Who::PacelineQuiet => "paceline, quiet",
            Who::PacelineAlone => "paceline, nothing behind",
            Who::PacelineHalf => "paceline, half of the workers",
            Who::PacelineUnasked => "paceline, neither",
            Who::RayonTwoPools => "rayon, two pools",
            Who::Rayon => "rayon",
            Who::RayonMember => "rayon, caller in pool",
            Who::RayonSpinning => "rayon, waker spinning",
            Who::RayonPinned => "rayon, pinned",
            Who::Chili => "chili",
            Who::Bevy => "bevy_tasks",
            Who::Tbb => "oneTBB",
        }
    }

    /// The version that is compiled in. oneTBB is not: its runner prints its version when it starts.
    pub(crate) fn version(self) -> Option<&'static str> {
        match self {
            Who::Serial | Who::SerialBeside | Who::Floor | Who::PlainThreads | Who::Tbb => None,
            Who::Paceline
            | Who::PacelineBuilt
            | Who::PacelineCritical
            | Who::PacelineQueue
            | Who::PacelineChecked
            | Who::PacelineIdempotent
            | Who::PacelineUnsteered
            | Who::PacelineSpinning
            | Who::PacelineUnsliced
            | Who::PacelineQuiet
            | Who::PacelineAlone
            | Who::PacelineHalf
            | Who::PacelineUnasked => Some(env!("CARGO_PKG_VERSION")),
            Who::Rayon
            | Who::RayonMember
            | Who::RayonSpinning
            | Who::RayonPinned
            | Who::RayonTwoPools => Some(RAYON),
            Who::Chili => Some(CHILI),
            Who::Bevy => Some(BEVY),
        }
    }

    /// Whether Paceline is compared with it. Controls are no peers: they show the cause of a row's result.
    pub(crate) fn is_peer(self) -> bool {
        matches!(
            self,
            Who::Rayon | Who::RayonMember | Who::RayonTwoPools | Who::Chili | Who::Bevy | Who::Tbb
        )
    }

    /// Whether it only shows the cause of a result.
    pub(crate) fn is_control(self) -> bool {
        matches!(
            self,
            Who::SerialBeside
                | Who::PacelineUnsteered
                | Who::PacelineSpinning
                | Who::PacelineUnsliced
                | Who::PacelineQuiet
                | Who::PacelineAlone
                | Who::PacelineUnasked
                | Who::PacelineQueue
                | Who::RayonSpinning
                | Who::RayonPinned
        )
    }

    /// The number of threads that execute its work if subjects have `threads`.
    pub(crate) fn threads(self, threads: usize) -> usize {
        match self {
            Who::Serial | Who::SerialBeside | Who::Floor => 1,
            _ => threads,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the published versions are the measured ones. Method: the lock file of the workspace.
    #[test]
    fn versions_are_those_of_the_lock_file() {
        let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
        let lock = std::fs::read_to_string(lock).unwrap();
        for (name, version) in [("rayon", RAYON), ("chili", CHILI), ("bevy_tasks", BEVY)] {
            let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
            assert!(lock.contains(&entry), "{name} is not {version} any more");
        }
    }
}
