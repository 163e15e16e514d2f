//! What std alone can say about the machine.

use event::Nanos;

use crate::{CpuSet, MaskError, Topology, Usage};

pub(super) fn topology() -> Topology {
    Topology::uniform(std::thread::available_parallelism().map_or(1, usize::from))
}

pub(super) fn current_cpu() -> Option<u32> {
    None
}

pub(super) fn set_mask(_cpus: &CpuSet) -> Result<(), MaskError> {
    Err(MaskError("this system has no CPU masks".into()))
}

pub(super) fn usage() -> Usage {
    Usage {
        cpu: None::<Nanos>,
        runnable: None,
        involuntary: None,
    }
}
