//! Limits: the largest numbers of each thing, on which several parts have to agree.

/// The most workers that a job system can have ([`Builder::workers`](crate::Builder::workers)).
///
/// ```
/// let refused = paceline::Builder::new().workers(paceline::WORKERS_MAX + 1).build();
/// assert!(refused.is_err());
/// ```
pub const WORKERS_MAX: usize = 1024;

/// The most jobs that can be live (scheduled, and not yet over) at the same time
/// ([`Builder::max_jobs`](crate::Builder::max_jobs)).
///
/// ```
/// let refused = paceline::Builder::new().max_jobs(paceline::JOBS_MAX + 1).build();
/// assert!(refused.is_err());
/// ```
pub const JOBS_MAX: u32 = 1 << 23;

/// The most outside threads that can use a job system at the same time
/// ([`Builder::max_threads`](crate::Builder::max_threads)).
///
/// ```
/// let refused = paceline::Builder::new().max_threads(paceline::THREADS_MAX + 1).build();
/// assert!(refused.is_err());
/// ```
pub const THREADS_MAX: usize = 2048;

/// The most spare workers that a job system can have
/// ([`Builder::max_spares`](crate::Builder::max_spares)).
///
/// ```
/// let refused = paceline::Builder::new().max_spares(paceline::SPARES_MAX + 1).build();
/// assert!(refused.is_err());
/// ```
pub const SPARES_MAX: usize = 960;

/// The most different names that are kept of those that programs make while they run ([`Name`](crate::Name)),
/// of all job systems of a process together.
///
/// ```
/// let names: Vec<String> = (0..1000).map(|number| format!("system {number}")).collect();
/// assert!(names.len() < paceline::NAMES_MAX);
/// ```
pub const NAMES_MAX: usize = platform::NAMES_MAX;

/// The number of spare workers without that setting.
pub(crate) const SPARES: usize = 256;

/// The number of slots that are lent to outside threads without a slot of their own, for calls that must not
/// fail for want of one, such as the completion of an event.
pub(crate) const VISITORS_MAX: usize = 63;

/// The number of failures that are remembered in full.
pub(crate) const RECORDS_MAX: usize = 4096;
