//! What is wrong with an access to data that jobs share: [`AccessError`].
//!
//! Functions that know no platform are `inline`, as in `plan`: so programs that share no data have none of
//! them.

use std::fmt;

use super::{AccessKind, Conflict, Conflicting};
use crate::store::{CallSite, Label};

/// An access to [`Shared`](crate::Shared) data that would be a race, or be in the way of one. Its text names
/// who is involved, with their places in the program, the data, and what to do.
///
/// ```
/// use paceline::{AccessFault, Builder, ScheduleError};
/// let js = Builder::new().checks(true).build().unwrap();
/// let score = js.share("score", 0);
/// let win = js.job("win").writes(&score).schedule(|_, score| *score += 1);
/// let Err(error) = js.job("show").reads(&score).try_schedule(|_, score| println!("{score}")) else {
///     unreachable!("nothing orders the two jobs");
/// };
/// let ScheduleError::Access(error) = error else {
///     unreachable!("there is room for the job");
/// };
/// assert!(matches!(error.fault(), AccessFault::Unordered(conflict) if conflict.resource == "score"));
/// js.wait(win);
/// ```
#[derive(Clone)]
pub struct AccessError {
    fault: Box<AccessFault>,
    /// Its text. A program that makes no such error has none of this in it.
    text: fn(&AccessFault, &mut fmt::Formatter<'_>) -> fmt::Result,
}

/// What an [`AccessError`] is about. It has no example, because that of [`AccessError`] shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AccessFault {
    /// Two jobs touch the same data, one of them changes it, and nothing orders them.
    Unordered(Conflict),
    /// A job is scheduled in the body of another one that has the data, and does not come after that one. To
    /// wait for it there would never end if it did.
    Held {
        /// The name of the data.
        resource: &'static str,
        /// The job in whose body it is.
        outer: Conflicting,
        /// The job that is scheduled.
        inner: Conflicting,
    },
    /// The program touches data that a job may be touching: a call of `read` or `write`.
    Outside {
        /// The name of the data.
        resource: &'static str,
        /// The job.
        job: Conflicting,
        /// The call.
        outside: Outside,
    },
    /// A job is scheduled that touches data which the program has a guard for.
    Guarded {
        /// The name of the data.
        resource: &'static str,
        /// The job.
        job: Conflicting,
        /// The call that gave the guard.
        outside: Outside,
    },
    /// Two pieces of the program touch the same data at this moment, one of them to change it. Only without
    /// checks.
    Running {
        /// The name of the data.
        resource: &'static str,
        /// The one that was there.
        first: Toucher,
        /// The one that was refused.
        second: Toucher,
    },
    /// The last handle of the data was dropped while a job may be touching it.
    Dropped {
        /// The name of the data.
        resource: &'static str,
        /// The job.
        job: Conflicting,
    },
    /// A job declares the same data twice, once to change it.
    DeclaredTwice {
        /// The name of the data.
        resource: &'static str,
        /// The job.
        label: Label,
    },
    /// The data belongs to another job system.
    Foreign {
        /// The name of the data.
        resource: &'static str,
        /// The job.
        label: Label,
    },
    /// `auto` without checks.
    Unchecked {
        /// The job.
        label: Label,
    },
}

/// An access that is no job's. It has no example, because that of [`AccessError`] shows errors.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Outside {
    /// Whether it reads or changes.
    pub kind: AccessKind,
    /// The place of the call.
    pub site: CallSite,
}

impl Outside {
    #[inline]
    pub(crate) fn new(kind: AccessKind, site: CallSite) -> Outside {
        Outside { kind, site }
    }
}

/// Somebody who touches data at this moment. It has no example, because that of [`AccessError`] shows errors.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Toucher {
    /// A job.
    Job(Conflicting),
    /// The program itself.
    Outside(Outside),
}

impl AccessError {
    #[inline]
    pub(crate) fn new(fault: AccessFault) -> AccessError {
        AccessError {
            fault: Box::new(fault),
            text: AccessFault::text,
        }
    }

    /// What is wrong, as data.
    ///
    /// ```
    /// use paceline::{AccessFault, ScheduleError};
    /// let js = paceline::JobSystem::new();
    /// let score = js.share("score", 0);
    /// let twice = js.job("twice").reads(&score).writes(&score).try_schedule(|_, _| ());
    /// let Err(ScheduleError::Access(error)) = twice else {
    ///     unreachable!("a body cannot have both references");
    /// };
    /// assert!(matches!(error.fault(), AccessFault::DeclaredTwice { resource: "score", .. }));
    /// ```
    #[inline]
    pub fn fault(&self) -> &AccessFault {
        &self.fault
    }
}

impl PartialEq for AccessError {
    #[inline]
    fn eq(&self, other: &AccessError) -> bool {
        self.fault == other.fault
    }
}

impl Eq for AccessError {}

impl fmt::Display for AccessError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.text)(&self.fault, f)
    }
}

impl fmt::Debug for AccessError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccessError({self})")
    }
}

impl std::error::Error for AccessError {}

impl AccessFault {
    #[inline]
    fn text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessFault::Unordered(conflict) => fmt::Display::fmt(conflict, f),
            AccessFault::Held {
                resource,
                outer,
                inner,
            } => write!(
                f,
                "{inner} '{resource}', and {outer} it, in whose body it is scheduled: let it borrow there, \
                 in a scope, or, if '{}' does not wait for it, add `.after({0})`",
                outer.label.name
            ),
            AccessFault::Outside {
                resource,
                job,
                outside,
            } => write!(
                f,
                "'{resource}' is {outside}, and {job} it, and was not waited for: \
                 call `wait({})` before",
                job.label.name
            ),
            AccessFault::Guarded {
                resource,
                job,
                outside,
            } => write!(
                f,
                "{job} '{resource}', and it is still {outside}: drop that guard before you schedule the job"
            ),
            AccessFault::Running {
                resource,
                first,
                second,
            } => write!(
                f,
                "{second} '{resource}' while {first} it: order the two; \
                 `Builder::checks(true)` finds such mistakes before anything runs"
            ),
            AccessFault::Dropped { resource, job } => write!(
                f,
                "'{resource}' is dropped, and {job} it, and was not waited for: call `wait({})` before",
                job.label.name
            ),
            AccessFault::DeclaredTwice { .. }
            | AccessFault::Foreign { .. }
            | AccessFault::Unchecked { .. } => self.text_alone(f),
        }
    }

    /// The text of what is wrong whatever others do.
    #[inline]
    fn text_alone(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessFault::DeclaredTwice { resource, label } => write!(
                f,
                "'{}' ({}) declares '{resource}' twice and writes it: declare it once, as written; a body \
                 that writes also reads",
                label.name, label.site
            ),
            AccessFault::Foreign { resource, label } => write!(
                f,
                "'{}' ({}) declares '{resource}', which belongs to another job system: make the data with \
                 `share` of the job's own",
                label.name, label.site
            ),
            AccessFault::Unchecked { label } => write!(
                f,
                "'{}' ({}) is `auto`, and this job system keeps no account of who touches what: make it with \
                 `Builder::checks(true)`",
                label.name, label.site
            ),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Outside {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = match self.kind {
            AccessKind::Reads => "read",
            AccessKind::Writes => "written",
        };
        write!(f, "{done} at {}", self.site)
    }
}

impl fmt::Display for Toucher {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Toucher::Job(job) => job.fmt(f),
            Toucher::Outside(outside) => {
                write!(f, "the call at {} {}", outside.site, outside.kind.verb())
            }
        }
    }
}
