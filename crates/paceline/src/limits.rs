//! How many there may be of each thing: numbers that several parts have to agree on.

/// The most workers a job system can have.
pub const WORKERS_MAX: usize = 1024;

/// The most jobs that can be live at the same time: scheduled, and not yet over.
pub const JOBS_MAX: u32 = 1 << 23;

/// The most outside threads that can use a job system at the same time.
pub const THREADS_MAX: usize = 2048;

/// The most that [`Builder::max_spares`](crate::Builder::max_spares) can be.
pub const SPARES_MAX: usize = 960;

/// The number of spares without that setting.
pub(crate) const SPARES: usize = 256;

/// How many outside threads there may be beyond those that keep their seats: threads in the middle of a call
/// that must not fail for want of a seat, such as the completion of an event.
pub(crate) const VISITORS_MAX: usize = 63;

/// How many failures are remembered in full.
pub(crate) const RECORDS_MAX: usize = 4096;
