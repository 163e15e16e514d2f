//! The parts that are missing from a recording, by kind, with their counts.

use std::collections::BTreeMap;

macro_rules! losses {
    ($($(#[$doc:meta])* $name:ident = $word:literal;)*) => {
        /// The reason why something is missing from a recording, or was changed in it.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[non_exhaustive]
        pub enum Loss { $($(#[$doc])* $name,)* }

        impl Loss {
            /// Every kind.
            pub const ALL: &'static [Loss] = &[$(Loss::$name,)*];

            /// The word for it in JSON and in lists.
            pub fn word(self) -> &'static str {
                match self { $(Loss::$name => $word,)* }
            }
        }
    };
}

losses! {
    /// Events of the job system for which the recorder had no room.
    JobEvents = "job_events";
    /// Kernel events that were overwritten before they were read.
    KernelEvents = "kernel_events";
    /// Gaps with an unknown number of missing events.
    Gaps = "gaps";
    /// Lines, or records, that do not follow the format.
    Malformed = "malformed";
    /// Bytes at the end of a file that stops in the middle of a record.
    Truncated = "truncated_bytes";
    /// Kernel events of a known kind with a missing or impossible field.
    BadFields = "bad_fields";
    /// Kernel events of kinds that are not read.
    OtherEvents = "other_events";
    /// Markers that do not follow the convention.
    BadMarkers = "bad_markers";
    /// Events out of the order of their times, put in order.
    OutOfOrder = "out_of_order";
    /// Events that were moved to where the kernel says that their thread ran.
    Clamped = "clamped";
    /// Ends of slices whose beginnings are not there.
    Unbegun = "unbegun";
    /// Slices whose ends are not there: they end with the recording, or with the slice around them.
    Unfinished = "unfinished";
    /// Switches from a task that was not known to run there.
    Contradictions = "contradictions";
    /// Switches from the idle task that are not there: the thread is taken to have begun as soon as it did
    /// something, or could.
    FromIdle = "switches_from_idle";
    /// Contents of the format that have no place in a recording.
    Unsupported = "unsupported";
}

/// The number of missing parts, by kind.
///
/// ```
/// use paceline_trace::{Loss, Losses};
/// let mut losses = Losses::default();
/// losses.add(Loss::Malformed, 2);
/// losses.add(Loss::Gaps, 0);
/// assert_eq!(losses.iter().collect::<Vec<_>>(), [(Loss::Malformed, 2)]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses(BTreeMap<Loss, u64>);

impl FromIterator<(Loss, u64)> for Losses {
    fn from_iter<T: IntoIterator<Item = (Loss, u64)>>(counts: T) -> Losses {
        let mut losses = Losses::default();
        for (loss, count) in counts {
            losses.add(loss, count);
        }
        losses
    }
}

impl Losses {
    /// Adds `more` losses of this kind.
    pub fn add(&mut self, loss: Loss, more: u64) {
        if more > 0 {
            let count = self.0.entry(loss).or_default();
            *count = count.saturating_add(more);
        }
    }

    /// The number of losses of this kind.
    pub fn get(&self, loss: Loss) -> u64 {
        self.0.get(&loss).copied().unwrap_or(0)
    }

    /// Adds the losses of another recording.
    pub fn add_all(&mut self, others: &Losses) {
        for (loss, count) in others.iter() {
            self.add(loss, count);
        }
    }

    /// The kinds with losses, and their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Loss, u64)> + '_ {
        self.0.iter().map(|(loss, count)| (*loss, *count))
    }

    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
