//! The grid as frames on a job system: every frame computes all tiles again.

use std::sync::Arc;

use paceline::{Frame, Grain, JobId, JobSystem, NewJob};
use platform::Platform;

use super::{Grid, Mandelbrot, MandelbrotError};

/// How tiles become jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiles {
    /// Each tile is a job.
    Jobs,
    /// All tiles are the items of one job.
    Range(Grain),
}

/// A grid that is computed once per frame.
///
/// ```
/// use workload::mandelbrot::{Mandelbrot, MandelbrotScene, Tiles};
///
/// let js = paceline::JobSystem::new();
/// let what = Mandelbrot { width: 64, height: 64, ..Mandelbrot::default() };
/// let mut scene = MandelbrotScene::new(what, Tiles::Jobs)?;
/// scene.run(&js);
/// assert_eq!(scene.grid().pixels().len(), 64 * 64 * 3);
/// # Ok::<(), workload::mandelbrot::MandelbrotError>(())
/// ```
pub struct MandelbrotScene {
    grid: Arc<Grid>,
    tiles: Tiles,
    /// Scratch: the jobs of the frame.
    jobs: Vec<JobId>,
}

impl MandelbrotScene {
    /// A scene of this grid.
    ///
    /// # Errors
    /// As [`Grid::new`].
    pub fn new(what: Mandelbrot, tiles: Tiles) -> Result<MandelbrotScene, MandelbrotError> {
        Ok(MandelbrotScene {
            grid: Arc::new(Grid::new(what)?),
            tiles,
            jobs: Vec::new(),
        })
    }

    /// The grid, as the last frame left it.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Runs a frame and returns when all its tiles are computed.
    ///
    /// # Panics
    /// If the job system's table of jobs is full.
    pub fn run<P: Platform>(&mut self, js: &JobSystem<P>) {
        self.run_with(js, |label| js.job(label));
    }

    /// As [`run`](MandelbrotScene::run), with the jobs belonging to a frame of the job system.
    ///
    /// # Panics
    /// If the job system's table of jobs is full.
    pub fn run_in<P: Platform>(&mut self, js: &JobSystem<P>, frame: &Frame<'_, P>) {
        self.run_with(js, |label| frame.job(label));
    }

    /// Runs a frame on this thread alone: what it costs without a job system.
    pub fn run_serial<P: Platform>(&mut self, platform: &P) {
        self.grid.run_serial(|work| platform.charge(work));
    }

    fn run_with<'a, P: Platform>(
        &mut self,
        js: &JobSystem<P>,
        new_job: impl Fn(&'static str) -> NewJob<'a, P>,
    ) {
        let tiles = self.grid.tiles();
        let end = match self.tiles {
            Tiles::Range(grain) => {
                let grid = Arc::clone(&self.grid);
                new_job("tiles").schedule_for(0..tiles as usize, grain, move |part, cx| {
                    part.for_each(|tile| grid.run_tile(tile as u32, |work| cx.work(work)));
                })
            }
            Tiles::Jobs => {
                self.jobs.clear();
                self.jobs.extend((0..tiles).map(|tile| {
                    let grid = Arc::clone(&self.grid);
                    new_job("tile").schedule(move |cx| grid.run_tile(tile, |work| cx.work(work)))
                }));
                js.combine(&self.jobs)
            }
        };
        js.wait(end);
    }
}
