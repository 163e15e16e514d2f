//! Scenes, and how their users watch them.
//!
//! A [`Scene`] is something that is done once per frame. It is run in one way by all its users: the jobs of a
//! frame pass their bodies through a [`Watch`], and the main thread its waits. The command times both; tests
//! and benchmarks pass [`Unwatched`], which compiles to nothing: watches are types and not values that are
//! looked at.

use std::fmt;

use event::Nanos;
use paceline::{Frame, JobId, JobSystem, NewJob, WaitError};
use platform::Platform;

/// Something that is done once per frame, on a job system or on one thread.
pub trait Scene {
    /// Its name.
    fn name(&self) -> &'static str;
    /// A description, for people.
    fn title(&self) -> String;
    /// The work of a frame, for people.
    fn work(&self) -> String;
    /// The name of its graph, if it is one of many.
    fn graph_name(&self) -> Option<&str> {
        None
    }
    /// The names of its jobs; a job's label is a position in this list.
    fn labels(&self) -> &[&'static str];
    /// How many jobs a frame has.
    fn jobs(&self) -> u64;
    /// Makes [`verify`](Scene::verify) quick for the next `frames` frames on a job system, by running them
    /// serially now and not when they are verified; for scenes whose frames differ. `step` is called after
    /// each part with the number of finished parts and of all.
    fn prepare(&mut self, frames: u64, step: &mut dyn FnMut(u64, u64)) {
        let _ = (frames, step);
    }
    /// Forgets the last frame, so that a part left out of the next is noticed.
    fn clear(&mut self) {}
    /// Leaves out frames, so that the next one has at least this number, counted from 1: what it computes
    /// then does not depend on how many were run before. For scenes whose frames differ by their number.
    fn skip_to(&mut self, frame: u64) {
        let _ = frame;
    }
    /// Runs the next frame on a job system and returns when all its jobs are over. `jobs` makes the
    /// jobs: the system itself, or a frame of it.
    ///
    /// # Errors
    /// The error of `watch`'s wait.
    ///
    /// # Panics
    /// If the job system's table of jobs is full.
    fn run_watched<P: Platform>(
        &mut self,
        js: &JobSystem<P>,
        jobs: &impl NewJobs<P>,
        watch: &mut impl Watch<P>,
    ) -> Result<(), WaitError>;
    /// Runs the next frame on the calling thread alone: the cost of it without a job system.
    fn run_serial<P: Platform>(&mut self, platform: &P);
    /// Whether the last frame was run correctly; its checksum if it was.
    ///
    /// # Errors
    /// If its result is not that of a serial run.
    fn verify(&mut self) -> Result<u64, WrongFrame>;
    /// The last frame as a picture, if it is one.
    fn picture(&self) -> Option<Picture> {
        None
    }
}

/// Where jobs come from: a job system, or a frame of it.
pub trait NewJobs<P: Platform> {
    /// Begins the description of a job.
    fn job(&self, label: &'static str) -> NewJob<'_, 'static, P>;
}

impl<P: Platform> NewJobs<P> for JobSystem<P> {
    #[inline(always)]
    #[track_caller]
    fn job(&self, label: &'static str) -> NewJob<'_, 'static, P> {
        JobSystem::job(self, label)
    }
}

impl<P: Platform> NewJobs<P> for Frame<'_, P> {
    #[inline(always)]
    #[track_caller]
    fn job(&self, label: &'static str) -> NewJob<'_, 'static, P> {
        JobSystem::job(self, label)
    }
}

/// A watcher of frames.
pub trait Watch<P: Platform> {
    /// The watcher of bodies.
    type Bodies: WatchBodies;
    /// The watcher of the next frame's bodies.
    fn bodies(&self) -> Self::Bodies;
    /// Waits on the main thread for the job of this name.
    ///
    /// # Errors
    /// If the job panicked or could not be run.
    fn wait(&mut self, js: &JobSystem<P>, job: JobId, name: &'static str) -> Result<(), WaitError>;
}

/// A watcher that every body is passed through. Copied into each job: a reference, or nothing.
pub trait WatchBodies: Copy + Send + Sync + 'static {
    /// Calls `run`, the body of a job with this label or of this many of its pieces.
    fn body(&self, label: u32, pieces: u64, run: impl FnOnce());

    /// The charge for a body of this label, or a piece of it, on platforms on which work is only charged;
    /// asked inside of [`body`](WatchBodies::body), once for each charge. `own`: the scene's own charge,
    /// which is the default.
    #[inline(always)]
    fn worth(&self, label: u32, own: Nanos) -> Nanos {
        let _ = label;
        own
    }
}

/// No watcher: bodies run, waits wait, and a panic in a job is one of the wait.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl WatchBodies for Unwatched {
    #[inline(always)]
    fn body(&self, _: u32, _: u64, run: impl FnOnce()) {
        run();
    }
}

impl<P: Platform> Watch<P> for Unwatched {
    type Bodies = Unwatched;

    #[inline(always)]
    fn bodies(&self) -> Unwatched {
        Unwatched
    }

    #[inline(always)]
    #[track_caller]
    fn wait(&mut self, js: &JobSystem<P>, job: JobId, _: &'static str) -> Result<(), WaitError> {
        js.wait(job);
        Ok(())
    }
}

/// Runs the next frame unwatched.
#[track_caller]
pub(crate) fn run_unwatched<P: Platform>(
    scene: &mut impl Scene,
    js: &JobSystem<P>,
    jobs: &impl NewJobs<P>,
) {
    let done = scene.run_watched(js, jobs, &mut Unwatched);
    done.expect("a wait that is not watched panics instead");
}

/// A frame whose results are not those of a serial run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongFrame {
    /// The number of the frame, counted from 1.
    pub frame: u64,
    /// Its checksum.
    pub got: u64,
    /// The checksum of a serial run.
    pub expected: u64,
}

impl WrongFrame {
    /// Compares the checksum of a frame with that of a serial run.
    pub(crate) fn check(frame: u64, got: u64, expected: u64) -> Result<u64, WrongFrame> {
        if got == expected {
            Ok(got)
        } else {
            Err(WrongFrame {
                frame,
                got,
                expected,
            })
        }
    }
}

impl fmt::Display for WrongFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "frame {} has the checksum {:016x}, a serial run has {:016x}: a job was left out, or \
             ran before one that it depends on; please report this",
            self.frame, self.got, self.expected
        )
    }
}

impl std::error::Error for WrongFrame {}

/// A picture: red, green and blue of each point, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Points from left to right.
    pub width: u32,
    /// Points from top to bottom.
    pub height: u32,
    /// Three bytes per point.
    pub rgb: Vec<u8>,
}
