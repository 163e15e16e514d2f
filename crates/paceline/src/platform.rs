//! What a job system runs on: threads, clocks and memory, the machine below them, and its CPUs.
//!
//! Most programs need little of this: [`Os`] is the platform of every type by default, and what [`Builder`]
//! takes and [`JobSystem`] tells about the machine is in the crate's root, too. The rest is for programs that
//! look closer at their machine, and for platforms of one's own ([`Builder::with_platform`]).
//!
//! ```
//! use paceline::platform::Machine;
//! use paceline::{CpuSet, Os, Topology};
//! let machine: &Topology = Os.topology();
//! let usable: CpuSet = machine.limits().usable();
//! println!("{} of {} CPUs may be used", usable.len(), machine.present().len());
//! ```
//!
//! [`Builder`]: crate::Builder
//! [`Builder::with_platform`]: crate::Builder::with_platform
//! [`JobSystem`]: crate::JobSystem

#[cfg(feature = "pools")]
#[doc(inline)]
pub use ::platform::HostedThread;

// The platform itself, and what it is made of.
#[doc(inline)]
pub use ::platform::{
    Atomic, Lock, Machine, Memory, Omission, Ordering, Os, Parker, Platform, SharedCell, Thread,
    ThreadSpec, Uniform, Usage,
};

// The machine.
#[doc(inline)]
pub use ::platform::topology::{Class as CpuClass, Confidence, Witness};
#[doc(inline)]
pub use ::platform::{CpuPlace, CpuSet, Distance, Limits, Quota, Topology};

// Signals, and what listens to them.
#[doc(inline)]
pub use ::platform::{NoSignal, OnSignal, Signal, SignalError};

// What the kernel is asked for, and its refusals.
#[doc(inline)]
pub use ::platform::{
    Class, MaskError, RefusalKind, SchedParams, SchedParamsError, SpawnError, Uclamp,
};
