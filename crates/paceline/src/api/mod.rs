//! What a program sees: the job system, the descriptions of jobs, handles, frames, settings.

mod builder;
mod context;
mod events;
mod frame;
mod future;
mod graph;
mod groups;
mod handle;
mod idempotent;
mod inputs;
mod machine;
mod origin;
mod over;
mod per_worker;
mod pinned;
mod plain;
mod polling;
mod predecessors;
mod schedule;
mod scope;
mod shared;
mod span;
mod submit;
mod system;
#[cfg(feature = "trace")]
mod trace;
#[cfg(not(feature = "trace"))]
#[path = "untraced.rs"]
mod trace;

pub use builder::Builder;
pub use frame::Frame;
pub use graph::{
    BuiltGraph, Condition, CriticalPath, Fields, GraphBuilder, GraphJob, GraphNode, Items,
    KeyMaker, NodeRef, NodeTiming, NotStarted, Res, ResEach, ResItem, ResPart, Resources,
    StartedGraph,
};
pub use groups::Group;
pub use handle::{Event, Job, Latch, Outcome, WhenDone};
pub use idempotent::IdempotentJob;
pub use inputs::{Inputs, NewJobWith};
pub use machine::Adopted;
pub use over::{Loop, LoopData, Tile, TileMut, Tiles, TilesMut};
pub use per_worker::PerWorker;
pub use pinned::PinnedThread;
pub use plain::NameNumber;
pub use schedule::NewJob;
pub use shared::{DeclaredJob, Part, ReadAccess, Reading, Shared, WriteAccess, Writing};
pub use span::Span;
pub use system::JobSystem;
#[cfg(feature = "trace")]
pub use trace::{Trace, TraceError, Traced};
