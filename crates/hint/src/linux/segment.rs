//! The scheduler's side: all pages, mapped to be read.

use std::fmt;
use std::io;
use std::path::Path;

use event::Task;
use platform::{Atomic, Ordering, Os};

use super::broker::Broker;
use super::memory::{Mapping, MemoryFile, Word};
use crate::layout::LINE_WORDS;
use crate::reader::{Entry, Skipped, read_page};

/// What a page of memory takes.
const MEMORY_PAGE: usize = 4096;

/// How much memory there is for hints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// How many processes can have a page at the same time: 1 to 4096.
    pub pages: usize,
    /// How many of its threads each of them has slots for, at least: 1 to 16 383.
    pub slots: u32,
}

impl Default for Shape {
    /// 64 pages of 16 KiB, each with 255 slots.
    fn default() -> Shape {
        Shape {
            pages: 64,
            slots: 255,
        }
    }
}

impl Shape {
    const PAGES_MAX: usize = 4096;
    /// A page is at most a megabyte.
    const SLOTS_MAX: u32 = (1 << 20) / 64 - 1;

    fn page_bytes(self) -> io::Result<usize> {
        let fits = (1..=Shape::PAGES_MAX).contains(&self.pages)
            && (1..=Shape::SLOTS_MAX).contains(&self.slots);
        if !fits {
            let (pages, slots) = (Shape::PAGES_MAX, Shape::SLOTS_MAX);
            let what = format!(
                "hints: the memory can have 1 to {pages} pages and 1 to {slots} slots in each"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let bytes = (self.slots as usize + 1) * LINE_WORDS * 8;
        Ok(bytes.next_multiple_of(MEMORY_PAGE))
    }
}

/// The memory in which processes publish, as a scheduler has it: all of it is mapped, to be read and not to
/// be written, so that a look calls nothing of the system's.
///
/// ```no_run
/// use paceline_hint::{Segment, Shape};
/// # fn main() -> std::io::Result<()> {
/// // Before the scheduler is loaded: it can map no memory and start no threads after that.
/// let (hints, broker) = Segment::new(Shape::default(), paceline_hint::DEFAULT_PATH.as_ref())?;
/// let _broker = broker.fork()?;
/// // … and once in each turn of its loop:
/// hints.read(&mut |entry| println!("{:?} waits for {:?}", entry.thread, entry.waits_for));
/// # Ok(())
/// # }
/// ```
pub struct Segment {
    pages: Box<[Mapping]>,
    /// For each page the process that has it; 0: none. Only the broker can write there.
    bindings: Mapping,
}

impl Segment {
    /// Makes the memory, and the broker that hands it to processes: it listens at this path from now on, and
    /// answers once it [serves](Broker::serve). The folder of the default path is made if it is missing;
    /// any other has to be there. A socket at which nothing listens any more is replaced.
    ///
    /// # Errors
    /// If the shape has no pages or too many, if the system has no memory or no files left, or if the path
    /// cannot be listened at: another broker does, there is no such folder, or it may not be written. The
    /// text is one line, which names the path where it is about that.
    pub fn new(shape: Shape, path: &Path) -> io::Result<(Segment, Broker)> {
        let (files, bindings) = Segment::files(shape).map_err(|error| {
            let pages = shape.pages;
            let what = "take fewer, or raise the limit of open files (ulimit -n)";
            let text = format!("hints: there is no memory for {pages} pages ({error}); {what}");
            match error.kind() {
                io::ErrorKind::InvalidInput => error,
                kind => io::Error::new(kind, text),
            }
        })?;
        let pages = files.iter().map(|file| file.map(false));
        let segment = Segment {
            pages: pages.collect::<io::Result<_>>()?,
            bindings: bindings.map(false)?,
        };
        let broker = Broker::new(path, files, bindings.map(true)?)?;
        Ok((segment, broker))
    }

    /// The files of the pages, and that of the bindings.
    fn files(shape: Shape) -> io::Result<(Vec<MemoryFile>, MemoryFile)> {
        let page_bytes = shape.page_bytes()?;
        let file = |_| MemoryFile::new(c"paceline-hints", page_bytes);
        let files = (0..shape.pages).map(file);
        let files: Vec<MemoryFile> = files.collect::<io::Result<_>>()?;
        let bytes = (shape.pages * 8).next_multiple_of(MEMORY_PAGE);
        let bindings = MemoryFile::new(c"paceline-hint-bindings", bytes)?;
        Ok((files, bindings))
    }

    /// Visits what the threads of all processes say, and returns what was passed over. The system is asked
    /// whether each thread is one of the process that names it, which costs a system call for each thread in
    /// each entry.
    pub fn read(&self, visit: &mut dyn FnMut(&Entry<'_>)) -> Skipped {
        let mut skipped = Skipped::default();
        for (process, words) in self.bound() {
            let process_of = |thread| is_thread_of(thread, process).then_some(process);
            skipped += read_page::<Os>(process, words, &process_of, visit);
        }
        skipped
    }

    /// The same for a scheduler that knows by itself of which process a thread is: `process_of`, `None` if
    /// there is no such thread. Calls nothing of the system's.
    pub fn read_knowing(
        &self,
        process_of: &dyn Fn(Task) -> Option<u32>,
        visit: &mut dyn FnMut(&Entry<'_>),
    ) -> Skipped {
        let mut skipped = Skipped::default();
        for (process, words) in self.bound() {
            skipped += read_page::<Os>(process, words, process_of, visit);
        }
        skipped
    }

    /// The processes that have a page at this moment.
    pub fn processes(&self) -> impl Iterator<Item = u32> {
        self.bound().map(|(process, _)| process)
    }

    /// The pages that a process has.
    fn bound(&self) -> impl Iterator<Item = (u32, &[Word])> {
        let bindings = self.bindings.as_words().iter().zip(&self.pages);
        bindings.filter_map(|(binding, page)| {
            // Acquire, partner: the Release store in `bind`: the page was cleared before.
            let process = binding.load(Ordering::Acquire) as u32; // The broker stores no more.
            (process != 0).then_some((process, page.as_words()))
        })
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut segment = f.debug_struct("Segment");
        segment
            .field("pages", &self.pages.len())
            .finish_non_exhaustive()
    }
}

/// Whether this is a living thread of the process, both as this process numbers them. Costs a system call,
/// which may be made while a scheduler is loaded.
pub fn is_thread_of(thread: Task, process: u32) -> bool {
    let (Ok(process), Ok(thread)) = (i32::try_from(process), i32::try_from(thread.0)) else {
        return false;
    };
    if process <= 0 || thread <= 0 {
        return false;
    }
    // SAFETY: the number 0 is no signal: the system only looks for the thread.
    let found = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, 0) };
    // It looks for the thread before it asks whether a signal may be sent to it.
    found == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
}
