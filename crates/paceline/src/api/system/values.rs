//! Events with values, and events that count.

use platform::Platform;

use super::JobSystem;
use crate::api::handle::{Event, Job, Latch};
use crate::error::or_panic;
use crate::store::Name;

impl<P: Platform> JobSystem<P> {
    /// Makes a job that is over when a value is there: the right to complete it with a value, and the handle
    /// that the value goes to. Any thread may do either at any time. The handle waits, is awaited, or is the
    /// input of a further job, like that of a job that runs.
    ///
    /// If the event is dropped without a value, its handle says so ([`WaitError::Abandoned`]), and what
    /// depends on it is cancelled. Neither side allocates for a value of up to 64 bytes.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let (read, bytes) = js.event_with::<Vec<u8>>("read");
    /// std::thread::spawn(move || read.complete_with(std::fs::read("level.bin").unwrap_or_default()));
    /// println!("{} bytes", bytes.wait().len());
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_event_with`](crate::NewJob::try_event_with) gives an error.
    ///
    /// [`WaitError::Abandoned`]: crate::WaitError::Abandoned
    #[track_caller]
    pub fn event_with<T: Send + 'static>(&self, name: impl Into<Name>) -> (Event<T>, Job<T>) {
        or_panic(self.job(name).try_event_with())
    }

    /// Makes an event that is over when it has been completed `count` times. A count of zero is over at
    /// once. It allocates once, for the count that its clones share.
    ///
    /// ```
    /// let js = paceline::JobSystem::new();
    /// let files = ["mesh", "texture", "sound"];
    /// let loaded = js.latch("loaded", files.len());
    /// let begin = js.job("begin").after(&loaded).schedule(|_| println!("all files are there"));
    /// for _file in files {
    ///     let loaded = loaded.clone();
    ///     std::thread::spawn(move || loaded.complete_one()); // A thread of another library, say.
    /// }
    /// js.wait(begin);
    /// ```
    ///
    /// # Panics
    /// Where [`NewJob::try_latch`](crate::NewJob::try_latch) gives an error.
    #[track_caller]
    pub fn latch(&self, name: impl Into<Name>, count: usize) -> Latch {
        or_panic(self.job(name).try_latch(count))
    }
}
