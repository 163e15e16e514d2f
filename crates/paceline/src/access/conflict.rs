//! The error of two jobs that touch the same data, at least one of which changes it, in no order.

use std::fmt;
use std::ops::Range;

use super::{AccessKind, Declared};
use crate::store::Label;

/// Two jobs touch the same data, one of them changes it, and nothing orders them.
///
/// Its text names both jobs with their places in the program, the resource, and the dependency that is
/// missing, as code.
///
/// ```
/// use paceline::{AccessKind, PlanError};
/// struct World {
///     number: u32,
/// }
/// paceline::resources! { World: Keys { number: u32 } }
/// let js = paceline::JobSystem::new();
/// let (mut graph, w) = js.graph_of::<World>("frame");
/// graph.job("add").writes(w.number).run(|_, number| *number += 1);
/// graph.job("show").reads(w.number).run(|_, number| println!("{number}"));
/// let Err(PlanError::Conflict(conflict)) = graph.try_build() else {
///     unreachable!("nothing orders them");
/// };
/// assert_eq!((conflict.earlier.label.name, conflict.later.label.name), ("add", "show"));
/// assert_eq!(conflict.later.kind, AccessKind::Reads);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Conflict {
    /// The resource's name.
    pub resource: &'static str,
    /// The job that was there first.
    pub earlier: Conflicting,
    /// The job that was refused.
    pub later: Conflicting,
}

/// One of the two jobs of a [`Conflict`]. It has no example, because that of [`Conflict`] shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Conflicting {
    /// The job.
    pub label: Label,
    /// What it does to the resource.
    pub kind: AccessKind,
    /// The items that it touches, if it does not touch all.
    pub part: Option<Range<usize>>,
}

impl Conflicting {
    #[inline]
    pub(crate) fn new(label: Label, kind: AccessKind, part: Range<usize>) -> Conflicting {
        Conflicting {
            label,
            kind,
            part: (part != Declared::WHOLE).then_some(part),
        }
    }
}

impl fmt::Display for Conflicting {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Label { name, site }, verb) = (self.label, self.kind.verb());
        write!(f, "'{name}' ({site}) {verb}")?;
        match &self.part {
            Some(part) => write!(f, " items {part:?} of"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Conflict {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (earlier, later, resource) = (&self.earlier, &self.later, self.resource);
        write!(
            f,
            "{later} '{resource}', and {earlier} it, and nothing orders the two jobs: \
             to '{}', add `.after({})`, or `.auto()`",
            later.label.name, earlier.label.name
        )
    }
}

impl std::error::Error for Conflict {}
