//! [`Hints`]: what programs say about their waits, as statements for a round.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use event::{Nanos, Task};
use hint::{BrokerProcess, Segment, Shape, Skipped};

/// How long it is believed that a thread is of a process. Longer than a round and shorter than what matters:
/// the number of a thread that has ended is not given to another one before all others were.
const BELIEVED: Nanos = Nanos::from_millis(100);

/// See the [module](self).
pub(crate) struct Hints {
    segment: Segment,
    broker: BrokerProcess,
    statements: Vec<(i32, Vec<i32>)>,
    /// Of which process a thread is, and when that was found out.
    known: RefCell<BTreeMap<u32, (Option<u32>, Nanos)>>,
    skipped: Skipped,
}

impl Hints {
    /// Makes the memory, and starts the process that hands it out. Before the scheduler is loaded, and before
    /// any thread is started. `pages`: for how many processes, if not as usual.
    ///
    /// # Errors
    /// In one line: why not.
    pub(crate) fn start(pages: Option<usize>) -> Result<Hints, String> {
        let usual = Shape::default();
        let shape = Shape {
            pages: pages.unwrap_or(usual.pages),
            ..usual
        };
        allow_files(shape.pages as libc::rlim_t);
        let made = Segment::new(shape, &hint::path());
        let (segment, broker) = made.map_err(|error| error.to_string())?;
        let broker = broker.fork();
        let broker =
            broker.map_err(|error| format!("hints: the broker cannot be started ({error})"))?;
        Ok(Hints {
            segment,
            broker,
            statements: Vec::new(),
            known: RefCell::default(),
            skipped: Skipped::default(),
        })
    }

    /// Where programs find the broker.
    pub(crate) fn path(&self) -> &Path {
        self.broker.path()
    }

    /// Each thread that says that it waits, with those that it waits for.
    pub(crate) fn read(&mut self, now: Nanos) -> &[(i32, Vec<i32>)] {
        let Hints {
            segment,
            statements,
            known,
            ..
        } = self;
        statements.clear();
        if known.get_mut().len() > 4096 {
            known.get_mut().clear();
        }
        let processes: Vec<u32> = segment.processes().collect();
        let process_of = |thread: Task| {
            let before = known.borrow().get(&thread.0).copied();
            if let Some((process, when)) = before
                && now - when < BELIEVED
            {
                return process;
            }
            let is_its = |process: &&u32| hint::is_thread_of(thread, **process);
            let process = processes.iter().find(is_its).copied();
            known.borrow_mut().insert(thread.0, (process, now));
            process
        };
        let skipped = segment.read_knowing(&process_of, &mut |entry| {
            if !entry.waits_for.is_empty() {
                let others = entry.waits_for.iter().map(|task| task.0 as i32);
                statements.push((entry.thread.0 as i32, others.collect()));
            }
        });
        self.skipped = skipped;
        &self.statements
    }

    /// What was passed over in the last round.
    pub(crate) fn skipped(&self) -> Skipped {
        self.skipped
    }
}

/// Lets this process and its broker have as many open files as that many pages take: for each its own one, a
/// program's socket and the end of its process. Where that is not allowed the memory says that there is none.
fn allow_files(pages: libc::rlim_t) {
    let needed = 3 * pages + 256;
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the place is a value of the type that is asked for.
    let found = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    if found && limit.rlim_cur < needed {
        limit.rlim_cur = needed;
        limit.rlim_max = limit.rlim_max.max(needed);
        // SAFETY: the value is of the type that is asked for.
        _ = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    }
}
