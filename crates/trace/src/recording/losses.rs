//! What is missing from a recording, by kind, and how much of it.

use std::collections::BTreeMap;

macro_rules! losses {
    ($($(#[$doc:meta])* $name:ident = $word:literal;)*) => {
        /// Why something is not in a recording, or not as it was.
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
    /// Gaps of which the recording does not say how many events are missing.
    Gaps = "gaps";
    /// Lines, or records, that are not what the format says.
    Malformed = "malformed";
    /// Bytes at the end of a file that stops in the middle of a record.
    Truncated = "truncated_bytes";
    /// Kernel events of a kind that is known and that lack a field, or hold one that cannot be.
    BadFields = "bad_fields";
    /// Kernel events of kinds that are not read.
    OtherEvents = "other_events";
    /// Markers that are not what the convention says.
    BadMarkers = "bad_markers";
    /// Events out of the order of their times, put in order.
    OutOfOrder = "out_of_order";
    /// Events that were moved to where the kernel says that their thread ran.
    Clamped = "clamped";
    /// Ends of slices whose beginnings are not there.
    Unbegun = "unbegun";
    /// Slices whose ends are not there: they end with the recording, or with what they are part of.
    Unfinished = "unfinished";
    /// Switches from a task that did not run there, as far as was known.
    Contradictions = "contradictions";
    /// Switches from the idle task that are not there: whoever ran is taken to have begun as soon as it did
    /// something, or could.
    FromIdle = "switches_from_idle";
    /// What the format holds and nothing here has a place for.
    Unsupported = "unsupported";
}

/// How much is missing, by kind.
///
/// ```
/// use trace::{Loss, Losses};
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
        counts
            .into_iter()
            .for_each(|(loss, count)| losses.add(loss, count));
        losses
    }
}

impl Losses {
    /// So many more of this kind.
    pub fn add(&mut self, loss: Loss, more: u64) {
        if more > 0 {
            let count = self.0.entry(loss).or_default();
            *count = count.saturating_add(more);
        }
    }

    /// How many of this kind.
    pub fn get(&self, loss: Loss) -> u64 {
        self.0.get(&loss).copied().unwrap_or(0)
    }

    /// Those of another recording, too.
    pub fn add_all(&mut self, others: &Losses) {
        others
            .iter()
            .for_each(|(loss, count)| self.add(loss, count));
    }

    /// The kinds of which there are any, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Loss, u64)> + '_ {
        self.0.iter().map(|(loss, count)| (*loss, *count))
    }

    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
