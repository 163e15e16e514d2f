//! What holds up the rest begins first: ranks by the longest ways (`ways`), for the nodes of built graphs
//! (`built/ranking.rs`) and for the jobs of frames (`frames`).

mod frames;
mod ways;

pub(crate) use frames::MakeOrder;
pub(crate) use ways::{JobWay, WayRanks, is_timed_after, mean_of_late};
