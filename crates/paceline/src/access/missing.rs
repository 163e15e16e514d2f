//! The error of a run whose data is shorter than its jobs declare.

use std::fmt;
use std::ops::Range;

use super::AccessKind;
use crate::store::Label;

/// A job of a graph declares items that the data of this run does not have. Nothing has run.
///
/// Its text names the job with its place in the program, the items, and how many there are.
///
/// ```
/// use paceline::{ScheduleError, WaitError};
/// struct World {
///     scores: Vec<u32>,
/// }
/// paceline::resources! { World: Keys { scores: [u32] } }
/// let js = paceline::JobSystem::new();
/// let (mut graph, w) = js.graph_of::<World>("frame");
/// graph.job("win").writes(w.scores.at(2)).run(|_, score| *score += 1);
/// let mut graph = graph.build();
/// let result = graph.try_run(&mut World { scores: vec![0; 2] });
/// let Err(WaitError::Refused(ScheduleError::MissingItems(missing))) = result else {
///     unreachable!("there are two scores");
/// };
/// assert_eq!((missing.resource, missing.items.clone(), missing.len), ("scores", 2..3, 2));
/// graph.run(&mut World { scores: vec![0; 3] });
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct MissingItems {
    /// The job.
    pub label: Label,
    /// What it declares.
    pub kind: AccessKind,
    /// The resource's name.
    pub resource: &'static str,
    /// The items that it declares.
    pub items: Range<usize>,
    /// How many there are.
    pub len: usize,
    /// Its text. A program that makes no such error has none of this in it.
    text: fn(&MissingItems, &mut fmt::Formatter<'_>) -> fmt::Result,
}

/// The most items of a resource that jobs declare, and who does.
pub(crate) struct NeededItems {
    /// The number of the resource.
    pub(crate) resource: u64,
    pub(crate) name: &'static str,
    pub(crate) label: Label,
    pub(crate) kind: AccessKind,
    pub(crate) items: Range<usize>,
}

impl NeededItems {
    /// The error of a run whose data has fewer.
    pub(crate) fn missing(&self, len: usize) -> MissingItems {
        MissingItems {
            label: self.label,
            kind: self.kind,
            resource: self.name,
            items: self.items.clone(),
            len,
            text: MissingItems::text,
        }
    }
}

impl MissingItems {
    fn text(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Label { name, site }, verb) = (self.label, self.kind.verb());
        let MissingItems {
            resource,
            items,
            len,
            ..
        } = self;
        write!(
            f,
            "'{name}' ({site}) {verb} items {items:?} of '{resource}', which has {len} in this run: give \
             the run longer data, or build a graph for this length"
        )
    }

    fn facts(&self) -> (Label, AccessKind, &'static str, &Range<usize>, usize) {
        (self.label, self.kind, self.resource, &self.items, self.len)
    }
}

impl PartialEq for MissingItems {
    fn eq(&self, other: &MissingItems) -> bool {
        self.facts() == other.facts()
    }
}

impl Eq for MissingItems {}

impl fmt::Display for MissingItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.text)(self, f)
    }
}

impl fmt::Debug for MissingItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MissingItems({self})")
    }
}

impl std::error::Error for MissingItems {}
