//! What can be wrong with a declared graph.

use std::fmt;
use std::ops::Range;

use crate::access::Conflict;
use crate::store::Label;

/// The reason why a graph could not be built; from
/// [`GraphBuilder::try_build`](crate::GraphBuilder::try_build).
///
/// ```
/// use paceline::{JobSystem, PlanError};
/// let js = JobSystem::new();
/// let mut graph = js.graph("frame");
/// graph.job("draw").after("physics").run(|_| ());
/// let Err(PlanError::UnknownName { name, .. }) = graph.try_build() else {
///     unreachable!("there is no job of that name");
/// };
/// assert_eq!(name, "physics");
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// Jobs that come after each other in a circle.
    Cycle {
        /// Each comes after the one before it, and the first after the last.
        cycle: Vec<Label>,
    },
    /// A job comes after, or before, a name that no job has.
    UnknownName {
        /// The name.
        name: &'static str,
        /// The job.
        asked_by: Label,
    },
    /// A job comes after, or before, a name that several jobs have.
    AmbiguousName {
        /// The name.
        name: &'static str,
        /// The job.
        asked_by: Label,
        /// Two jobs of that name.
        jobs: [Label; 2],
    },
    /// A job comes after, or before, a job of another graph.
    OtherGraph {
        /// The job.
        asked_by: Label,
    },
    /// A job declares the same resource twice, and changes it.
    DeclaredTwice {
        /// The job.
        label: Label,
        /// The resource's name.
        resource: &'static str,
    },
    /// A job declares a part of a resource that ends before it begins.
    Backwards {
        /// The job.
        label: Label,
        /// The resource's name.
        resource: &'static str,
        /// The part, in items.
        part: Range<usize>,
    },
    /// Two jobs touch the same resource, one of them changes it, and nothing orders them.
    Conflict(Box<Conflict>),
    /// The graph has too many jobs.
    TooLarge {
        /// The limit.
        max: usize,
    },
    /// Too many jobs of a large graph declare what they read and write.
    TooManyDeclare {
        /// The limit, for a graph of so many jobs.
        max: usize,
    },
}

impl fmt::Display for PlanError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Cycle { cycle } => {
                f.write_str("the graph has a cycle: ")?;
                for (place, label) in cycle.iter().enumerate() {
                    let separator = if place > 0 { ", then " } else { "" };
                    write!(f, "{separator}{label}")?;
                }
                match cycle.first() {
                    Some(first) => {
                        write!(f, ", then {first} again: leave out one of these `after`")
                    }
                    None => Ok(()),
                }
            }
            PlanError::UnknownName { name, asked_by } => write!(
                f,
                "{asked_by} is to come after or before '{name}', and no job of the graph has that name"
            ),
            PlanError::AmbiguousName {
                name,
                asked_by,
                jobs: [first, second],
            } => write!(
                f,
                "{asked_by} is to come after or before '{name}', and two jobs have that name, {first} and \
                 {second}: rename one, or use what `run` returned"
            ),
            PlanError::OtherGraph { asked_by } => write!(
                f,
                "{asked_by} is to come after or before a job of another graph: use jobs of this graph"
            ),
            PlanError::DeclaredTwice { label, resource } => write!(
                f,
                "{label} declares '{resource}' twice, and writes it: one `writes` is enough to read it, too"
            ),
            PlanError::Backwards {
                label,
                resource,
                part,
            } => write!(
                f,
                "{label} declares items {part:?} of '{resource}', which end before they begin: name the \
                 first item, and the one after the last"
            ),
            PlanError::Conflict(conflict) => conflict.fmt(f),
            PlanError::TooLarge { max } => write!(
                f,
                "the graph has more than {max} jobs: make loops of some, which count as one"
            ),
            PlanError::TooManyDeclare { max } => write!(
                f,
                "in a graph of so many jobs at most {max} can declare what they read and write: \
                 make loops of some, which count as one"
            ),
        }
    }
}

impl fmt::Debug for PlanError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlanError({self})")
    }
}

impl std::error::Error for PlanError {}
