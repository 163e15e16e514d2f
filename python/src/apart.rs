//! Work on a thread of its own, while the interpreter hears signals and other threads run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::FailedError;

/// How long a signal waits at most.
const LOOK: Duration = Duration::from_millis(50);

/// Does `work`, which is left behind if a signal handler raises: it ends by itself, its result dropped.
pub(crate) fn apart<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    apart_until(py, work, |_| Ok(()), || false)
}

/// The same, with `look` now and then, which may raise as well. If anything raises, `stop` is called, and
/// says whether the work ends soon: then that is waited for.
pub(crate) fn apart_until<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    mut look: impl FnMut(Python<'_>) -> PyResult<()>,
    stop: impl Fn() -> bool,
) -> PyResult<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let builder = thread::Builder::new().name("paceline".to_owned());
    let thread = builder.spawn(move || {
        // Its receiver may have gone.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    });
    thread.map_err(|why| FailedError::new_err(format!("cannot begin: {why}")))?;
    let receiver = std::sync::Mutex::new(receiver);
    let wait = |limit: Duration| {
        py.detach(|| {
            let receiver = receiver.lock().unwrap_or_else(|broken| broken.into_inner());
            receiver.recv_timeout(limit)
        })
    };
    loop {
        match wait(LOOK) {
            Ok(Ok(result)) => {
                look(py)?;
                return Ok(result);
            }
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                return Err(FailedError::new_err(
                    "it panicked; please report the message above",
                ));
            }
            Err(RecvTimeoutError::Timeout) => {
                let raised = py.check_signals().and_then(|()| look(py));
                if let Err(raised) = raised {
                    if stop() {
                        let _ = wait(Duration::MAX / 4);
                    }
                    return Err(raised);
                }
            }
        }
    }
}
