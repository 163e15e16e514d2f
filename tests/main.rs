//! The job system as its users see it, in one binary.
//!
//! Bodies are generic over the platform; thin arms run them on the operating system and on
//! simulated threads. Nothing is asserted about time, except that an idle job system uses none.
//!
//! `PACELINE_SEEDS=N` runs N seeds instead of a test's own number; `PACELINE_SEED=S` runs that one seed,
//! which is how a failure is replayed. With `PACELINE_KEEP_GOING` set, seeds go on after a failure.
//! `PACELINE_HANG=S` ends a program that hangs after S seconds.

mod background;
mod budget;
mod built;
mod callers;
mod campaign;
mod cancelled;
mod checkpoint;
mod completers;
mod confined;
mod contexts;
mod dag;
mod declared;
mod defects;
mod futures;
mod gangs;
mod groups;
mod hints;
mod idempotent;
mod idle;
mod interference;
mod lanes;
mod learned;
mod live;
mod overlapping;
mod pinned;
mod placement;
mod process;
mod quiet;
mod recording;
mod refused;
mod report;
mod reproducers;
mod scopes;
mod shares;
mod steering;
mod stress;
mod support;
mod values;
