//! Who touches data at this moment: what keeps two bodies apart that nothing orders.
//!
//! With checks such jobs are refused when they are scheduled. Without, or if a check were wrong, the second
//! body fails instead of racing with the first.

use std::ops::Range;

use smallvec::SmallVec;

use super::{AccessKind, Declared};
use crate::store::{CallSite, Ticket};

/// Somebody who touches data at this moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Holder {
    pub(crate) who: Who,
    pub(crate) kind: AccessKind,
    pub(crate) part: Range<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    Job(Ticket),
    /// The program, by a call at this place.
    Outside(CallSite),
}

/// All who touch one piece of data.
#[derive(Default)]
pub(crate) struct Holders(SmallVec<[Holder; 2]>);

impl Holders {
    /// Lets `who` touch the data.
    ///
    /// # Errors
    /// One with whom the access collides.
    #[inline]
    pub(crate) fn take(&mut self, access: &Declared, who: Who) -> Result<(), Holder> {
        let mut others = self.0.iter();
        if let Some(other) = others.find(|other| access.meets(other.kind, &other.part)) {
            return Err(other.clone());
        }
        let (kind, part) = (access.kind, access.part.clone());
        self.0.push(Holder { who, kind, part });
        Ok(())
    }

    /// Ends what `take` began.
    #[inline]
    pub(crate) fn give_back(&mut self, access: &Declared, who: Who) {
        let is_it = |holder: &Holder| {
            (holder.who, holder.kind) == (who, access.kind) && holder.part == access.part
        };
        if let Some(place) = self.0.iter().position(is_it) {
            self.0.swap_remove(place);
        }
    }
}
