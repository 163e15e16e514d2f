//! What std alone can say about the machine: where there is no other source, or none is wanted (feature
//! `machine`).

use event::Nanos;

use crate::{CpuSet, Limits, MaskError, RefusalKind, Topology, Usage};

pub(super) fn topology() -> Topology {
    Topology::uniform(parallelism())
}

pub(super) fn parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

pub(super) fn limits() -> Limits {
    topology().limits().clone()
}

pub(super) fn allowed(_threads: &[u64]) -> Option<CpuSet> {
    None
}

pub(super) fn current_cpu() -> Option<u32> {
    None
}

pub(super) fn thread_id() -> u64 {
    0
}

/// `None` also while the thread's own data is being destroyed: std has forgotten the name then, and panics.
pub(super) fn thread_name() -> Option<String> {
    struct Lives;
    impl Drop for Lives {
        fn drop(&mut self) {}
    }
    thread_local! { static LIVES: Lives = const { Lives } }
    LIVES.try_with(|_| ()).ok()?;
    std::thread::current().name().map(str::to_owned)
}

pub(super) fn set_mask(_thread: u64, _cpus: &CpuSet) -> Result<(), MaskError> {
    Err(MaskError::new(
        RefusalKind::Unsupported,
        "this system has no CPU masks: leave its threads where they are",
    ))
}

pub(super) fn is_on_cpu(_thread: u64) -> Option<bool> {
    None
}

pub(super) fn usage() -> Usage {
    Usage {
        cpu: None::<Nanos>,
        runnable: None,
        involuntary: None,
        voluntary: None,
    }
}

pub(super) fn usage_so_far() -> Usage {
    usage()
}

pub(super) fn involuntary() -> Option<u64> {
    None
}
