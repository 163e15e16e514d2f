//! What a run of frames is to do, as its options say.

use std::path::PathBuf;
use std::time::Duration;

use paceline::WaitPolicy;
use platform::SchedParams;
use workload::graph::JobGraph;
use workload::mandelbrot::Mandelbrot;
use workload::raster::Mesh;

use crate::commands::values::Workers;

/// The plan that the options describe.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) scene: FrameContent,
    pub(super) frames: u32,
    /// From one frame's beginning to the next; none: as fast as possible.
    pub(super) period: Option<Duration>,
    pub(super) workers: Workers,
    pub(super) load: u32,
    pub(super) background: u32,
    pub(super) wait: Option<WaitPolicy>,
    pub(super) image: Option<PathBuf>,
    pub(super) costs: Option<PathBuf>,
    /// Whether frames on one thread are measured, too, to compare with.
    pub(super) compares: bool,
    /// Whether it is recorded what jobs and kernel do.
    pub(super) records: bool,
    pub(super) trace: Option<PathBuf>,
    pub(super) trace_text: Option<PathBuf>,
    pub(super) report: Option<PathBuf>,
    pub(super) panic_at: Option<String>,
    pub(super) help: Vec<SchedParams>,
}

/// The work of a frame.
#[derive(Debug)]
pub(super) enum FrameContent {
    Graph(JobGraph),
    Raster(Mesh),
    Mandelbrot(Mandelbrot),
}
