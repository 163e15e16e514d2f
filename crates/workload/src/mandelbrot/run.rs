//! The grid as frames on a job system: every frame computes all tiles again.

use std::sync::Arc;

use paceline::{Frame, Grain, JobId, JobSystem, WaitError};
use platform::Platform;

use super::{Grid, Mandelbrot, MandelbrotError};
use crate::scene::{NewJobs, Picture, Scene, Watch, WatchBodies, WrongFrame, run_unwatched};

/// The label of all jobs.
const LABEL: &str = "tile";

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
/// use paceline_workload::mandelbrot::{Mandelbrot, MandelbrotScene, Tiles};
///
/// let js = paceline::JobSystem::new();
/// let what = Mandelbrot { width: 64, height: 64, ..Mandelbrot::default() };
/// let mut scene = MandelbrotScene::new(what, Tiles::Jobs)?;
/// scene.run(&js);
/// assert_eq!(scene.grid().pixels().len(), 64 * 64 * 3);
/// # Ok::<(), paceline_workload::mandelbrot::MandelbrotError>(())
/// ```
pub struct MandelbrotScene {
    grid: Arc<Grid>,
    tiles: Tiles,
    /// The number of the last frame, counted from 1.
    frame: u64,
    /// The checksum of a serial run, once it has been asked for.
    expected: Option<u64>,
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
            frame: 0,
            expected: None,
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
        run_unwatched(self, js, js);
    }

    /// As [`run`](MandelbrotScene::run), with the jobs belonging to a frame of the job system.
    ///
    /// # Panics
    /// If the job system's table of jobs is full.
    pub fn run_in<P: Platform>(&mut self, js: &JobSystem<P>, frame: &Frame<'_, P>) {
        run_unwatched(self, js, frame);
    }
}

impl Scene for MandelbrotScene {
    fn name(&self) -> &'static str {
        "mandelbrot"
    }

    fn title(&self) -> String {
        let what = self.grid.what();
        format!(
            "Mandelbrot set of {}x{} points: {} tiles",
            what.width,
            what.height,
            self.grid.tiles()
        )
    }

    fn work(&self) -> String {
        let (inside, most) = (self.grid.inside(), self.grid.what().max_iterations);
        format!("{inside} points take all of {most} iterations, the others fewer")
    }

    fn labels(&self) -> &[&'static str] {
        &[LABEL]
    }

    fn jobs(&self) -> u64 {
        match self.tiles {
            Tiles::Jobs => u64::from(self.grid.tiles()),
            Tiles::Range(_) => 1,
        }
    }

    fn clear(&mut self) {
        self.grid.clear();
    }

    fn run_watched<P: Platform>(
        &mut self,
        js: &JobSystem<P>,
        jobs: &impl NewJobs<P>,
        watch: &mut impl Watch<P>,
    ) -> Result<(), WaitError> {
        self.frame += 1;
        let (tiles, bodies) = (self.grid.tiles(), watch.bodies());
        let end = match self.tiles {
            Tiles::Range(grain) => {
                let grid = Arc::clone(&self.grid);
                jobs.job(LABEL)
                    .schedule_for(0..tiles as usize, grain, move |part, cx| {
                        bodies.body(0, part.len() as u64, || {
                            let charge = |work| cx.work(bodies.worth(0, work));
                            part.for_each(|tile| grid.run_tile(tile as u32, charge));
                        });
                    })
            }
            Tiles::Jobs => {
                self.jobs.clear();
                self.jobs.extend((0..tiles).map(|tile| {
                    let grid = Arc::clone(&self.grid);
                    jobs.job(LABEL).schedule(move |cx| {
                        let charge = |work| cx.work(bodies.worth(0, work));
                        bodies.body(0, 1, || grid.run_tile(tile, charge));
                    })
                }));
                js.combine(&self.jobs)
            }
        };
        watch.wait(js, end, "end of frame")
    }

    fn run_serial<P: Platform>(&mut self, platform: &P) {
        self.frame += 1;
        self.grid.run_serial(|work| platform.charge(work));
    }

    fn verify(&mut self) -> Result<u64, WrongFrame> {
        let expected = *self.expected.get_or_insert_with(|| {
            let serial = Grid::new(*self.grid.what()).expect("there is one like it already");
            serial.run_serial(|_| ());
            checksum(&serial)
        });
        WrongFrame::check(self.frame, checksum(&self.grid), expected)
    }

    fn picture(&self) -> Option<Picture> {
        Some(Picture {
            width: self.grid.what().width,
            height: self.grid.what().height,
            rgb: self.grid.pixels(),
        })
    }
}

/// FNV-1a over the counts.
fn checksum(grid: &Grid) -> u64 {
    grid.counts().fold(0xcbf2_9ce4_8422_2325, |hash, count| {
        (hash ^ u64::from(count)).wrapping_mul(0x0100_0000_01b3)
    })
}
