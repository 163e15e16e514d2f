//! [`Hints`]: what programs say about their waits, as statements for a round.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
    /// any thread is started.
    ///
    /// # Errors
    /// In one line: why not.
    pub(crate) fn start() -> Result<Hints, String> {
        let path: PathBuf = hint::path();
        let failed = |error| format!("hints cannot be heard at {}: {error}", path.display());
        let (segment, broker) = Segment::new(Shape::default(), &path).map_err(failed)?;
        let broker = broker.fork().map_err(failed)?;
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
