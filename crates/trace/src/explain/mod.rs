//! Where the time of a wait went.

mod answer;
mod selection;

pub use answer::{
    Cause, CauseKind, Confidence, Explanation, Inversion, InversionKind, Remedy, Segment, Share,
    Wait, WaitKind, Who,
};
pub use selection::Selection;

use crate::timeline::Timeline;

/// Explains the waits that were selected.
pub fn explain(timeline: &Timeline, selection: &Selection) -> Explanation {
    let _ = (timeline, selection);
    Explanation::default()
}
