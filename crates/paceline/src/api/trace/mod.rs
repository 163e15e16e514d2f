//! Traces: what the job system did, in a file that is written when the recording ends.
//!
//! The threads put events into rings (`record/rings`). A thread of the trace's own empties these every few
//! milliseconds ([`collect`]); where the system refuses that thread, they are emptied at the end only. When
//! the trace ends, the events become a recording ([`file`](mod@file)) with the threads that they happened on
//! ([`threads`]), and crate `trace` writes it.
//!
//! Invariants
//! - One trace at a time has the reader of the rings.
//! - In the child of a fork a trace does nothing: its file and its thread are the parent's.

mod collect;
mod error;
mod file;
mod threads;

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform::{Lock, Os, Platform};

use self::collect::Collector;
use self::threads::Present;
use crate::adapt::environment::{of_process, shortened, variable};
use crate::error::BuildError;
use crate::record::NoReader;
use crate::work::shared::Shared;

pub use error::TraceError;

/// Events that each thread has room for until the rings are emptied: 1 MB.
const RING: usize = 1 << 15;

/// A trace that is being recorded, from [`JobSystem::start_trace`](crate::JobSystem::start_trace).
///
/// The file is a Perfetto trace, which `ui.perfetto.dev` shows and `paceline diagnose` explains. It has the
/// threads with the system's numbers, jobs and waits as slices, dependencies and wake-ups as arrows, frames
/// with their names. The whole file is written by [`finish`](Trace::finish), or when this is dropped; an
/// error is then printed to the standard error output. Until then up to 8 million events (256 MB) are kept in
/// memory. The trace may outlive the job system, and then has its end, too.
///
/// ```
/// let js = paceline::JobSystem::new();
/// let file = std::env::temp_dir().join(format!("paceline-doc-{}.pftrace", std::process::id()));
/// let trace = js.start_trace(&file)?;
/// js.wait(js.job("load").schedule(|_| ()));
/// let traced = trace.finish()?;
/// assert!(traced.events > 0 && traced.lost == 0);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), paceline::TraceError>(())
/// ```
#[must_use = "the recording ends when this is dropped"]
pub struct Trace<P: Platform = Os> {
    shared: Arc<Shared<P>>,
    collector: Arc<Collector<P>>,
    /// Empty when the file is written.
    open: P::Lock<Option<OpenFile<P>>>,
}

/// The file of a trace, and the thread that collects its events.
struct OpenFile<P: Platform> {
    file: File,
    path: PathBuf,
    thread: Option<P::Thread>,
    /// Events that the rings had lost before.
    lost_before: u64,
    /// The slot of the thread that began the trace.
    slot: Option<u32>,
    present: Present,
}

/// What a trace holds, from [`Trace::finish`].
///
/// ```
/// let js = paceline::JobSystem::new();
/// let file = std::env::temp_dir().join(format!("paceline-doc-traced-{}.pftrace", std::process::id()));
/// let traced = js.start_trace(&file)?.finish()?;
/// assert_eq!(traced.path, file);
/// println!("{traced}");
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), paceline::TraceError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Traced {
    /// The file.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// The events in it.
    pub events: u64,
    /// The events that are not in it: a thread made more than it had room for within a few milliseconds, or
    /// the trace had its 8 million. The file says it, too.
    pub lost: u64,
}

impl fmt::Display for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Traced { events, lost, .. } = self;
        write!(f, "{} holds {events} events", self.path.display())?;
        if *lost > 0 {
            write!(
                f,
                "; {lost} more are lost: end the trace sooner, or make fewer jobs"
            )?;
        }
        Ok(())
    }
}

/// The name of the file that the environment asks for a trace in. `%p` in it is the number of the process.
pub(super) type Pattern = String;

pub(super) fn asked() -> Result<Option<Pattern>, BuildError> {
    variable(&of_process, "PACELINE_TRACE", &read_pattern)
}

fn read_pattern(text: &str) -> Result<Pattern, String> {
    if text.is_empty() || text.contains(char::REPLACEMENT_CHARACTER) {
        return Err(format!(
            "'{}' is no name of a file: use one such as run.pftrace, or run-%p.pftrace with the number of \
             the process",
            shortened(text)
        ));
    }
    Ok(text.to_owned())
}

impl<P: Platform> Trace<P> {
    /// Begins a trace.
    pub(super) fn start(shared: &Shared<P>, path: &Path) -> Result<Trace<P>, TraceError> {
        if shared.is_forked() {
            return Err(TraceError::Forked);
        }
        let mut reader = shared.take_reader(RING).map_err(|why| match why {
            NoReader::ProgramsSink => TraceError::HasSink,
            NoReader::InUse => TraceError::AlreadyTraced,
        })?;
        let file = match File::create(path) {
            Ok(file) => file,
            Err(why) => {
                shared.give_reader_back(reader);
                let path = path.to_owned();
                return Err(TraceError::File { path, why });
            }
        };
        // What came after the end of the last trace.
        reader.drain(|_| ());
        let lost_before = reader.lost();
        let collector = Arc::new(Collector::new(&shared.platform, reader));
        let thread = collect::start(&shared.platform, &collector);
        let slot = shared.context().ok().map(|context| context.thread.index);
        shared.set_recording(true);
        let open = OpenFile {
            file,
            path: path.to_owned(),
            thread: thread.ok(),
            lost_before,
            slot,
            present: Present::now(shared),
        };
        Ok(Trace {
            shared: shared
                .this
                .upgrade()
                .expect("the caller's borrow keeps the job system alive"),
            collector,
            open: P::Lock::new(Some(open)),
        })
    }

    /// Begins the trace that `PACELINE_TRACE` asks for.
    pub(super) fn from_environment(
        shared: &Shared<P>,
        pattern: &Pattern,
    ) -> Result<Trace<P>, BuildError> {
        let path = file::name(pattern, file::process_id(), shared.id.get());
        Trace::start(shared, &path)
            .map_err(|error| BuildError::Environment(format!("PACELINE_TRACE: {error}")))
    }

    /// Ends the recording and writes the file. Blocks until it is written, which takes about a second for a
    /// million events; allocates about as much as the events take.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let file = std::env::temp_dir().join(format!("paceline-doc-end-{}.pftrace", std::process::id()));
    /// let trace = js.start_trace(&file)?;
    /// drop(js); // The end of the job system is part of the trace.
    /// println!("{}", trace.finish()?);
    /// # std::fs::remove_file(file).unwrap();
    /// # Ok::<(), paceline::TraceError>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be written, or in the child of a fork.
    pub fn finish(self) -> Result<Traced, TraceError> {
        if self.shared.is_forked() {
            return Err(TraceError::Forked);
        }
        let open = self.open.with(Option::take);
        self.write(open.expect("only `finish` and the drop take it, and each is the last use"))
    }

    fn write(&self, open: OpenFile<P>) -> Result<Traced, TraceError> {
        self.shared.stop_recording();
        let (mut reader, collected) = self.collector.finish(open.thread);
        let lost = collected.beyond + (reader.lost() - open.lost_before);
        reader.drain(|_| ());
        self.shared.give_reader_back(reader);
        let events = collected.events.len() as u64;
        let recording = file::recording(
            &self.shared,
            collected.events,
            lost,
            (open.slot, open.present),
        );
        match ::trace::write::perfetto(&recording, &open.file) {
            Ok(written) => Ok(Traced {
                path: open.path,
                bytes: written.bytes,
                events,
                lost,
            }),
            Err(why) => Err(TraceError::File {
                path: open.path,
                why,
            }),
        }
    }
}

impl<P: Platform> Drop for Trace<P> {
    fn drop(&mut self) {
        if self.shared.is_forked() {
            // Another thread of the parent's may have held the lock.
            return;
        }
        let Some(open) = self.open.with(Option::take) else {
            return;
        };
        match self.write(open) {
            Ok(traced) if traced.lost > 0 => eprintln!("paceline: {traced}"),
            Ok(_) => {}
            Err(error) => eprintln!("paceline: {error}"),
        }
    }
}

impl<P: Platform> fmt::Debug for Trace<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
