//! Waits that block a thread.

use std::cell::Cell;

use async_task::Runnable;

use crate::system::job_system;

thread_local! {
    /// Whether the thread is in the middle of a task.
    static IS_IN_TASK: Cell<bool> = const { Cell::new(false) };
}

/// Runs a task for a while.
pub(crate) fn run(runnable: Runnable) {
    let before = IS_IN_TASK.replace(true);
    // Panics stay in the task.
    runnable.run();
    IS_IN_TASK.set(before);
}

/// Blocks the thread until the future is ready. In the middle of a task its worker lends its core meanwhile:
/// a spare one runs what the future may wait for.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    if IS_IN_TASK.get() {
        let js = job_system();
        js.enter(|cx| cx.blocking(|| bevy_platform::future::block_on(future)))
    } else {
        bevy_platform::future::block_on(future)
    }
}
