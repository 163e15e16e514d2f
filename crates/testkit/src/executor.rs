//! The smallest executor: one future, on the calling thread.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

struct Unparker(Thread);

impl Wake for Unparker {
    fn wake(self: Arc<Unparker>) {
        self.0.unpark();
    }
}

/// Polls the future until it is ready. Between two polls it calls `rest`, which may park the thread: the
/// future's waker unparks it.
///
/// ```
/// let mut rests = 0;
/// let answer = paceline_testkit::block_on(async { 42 }, || rests += 1);
/// assert_eq!((answer, rests), (42, 0));
/// ```
pub fn block_on<T>(future: impl Future<Output = T>, mut rest: impl FnMut()) -> T {
    let waker = Waker::from(Arc::new(Unparker(thread::current())));
    let mut task = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut task) {
            Poll::Ready(value) => return value,
            Poll::Pending => rest(),
        }
    }
}
