//! Where the threads of a program wait until all are there.
//!
//! Invariant: a thread passes only if every thread was prepared; else all go home.

use std::sync::{Condvar, Mutex};

/// The gate.
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// By thread: its id, or why it could not be prepared; none yet.
    arrived: Vec<Option<Result<i32, String>>>,
    /// Whether the waiting threads may go on, once that is decided.
    open: Option<bool>,
}

impl Gate {
    /// A gate for `threads` threads.
    pub(super) fn new(threads: usize) -> Gate {
        Gate {
            state: Mutex::new(State {
                arrived: vec![None; threads],
                open: None,
            }),
            changed: Condvar::new(),
        }
    }

    /// A thread arrives, and waits. Whether it may go on.
    pub(super) fn pass(&self, number: usize, prepared: Result<i32, String>) -> bool {
        let mut state = self.state.lock().unwrap();
        state.arrived[number] = Some(prepared);
        self.changed.notify_all();
        let waits = |state: &mut State| state.open.is_none();
        let state = self.changed.wait_while(state, waits).unwrap();
        state.open == Some(true)
    }

    /// Waits for all threads. Their ids.
    pub(super) fn wait_until_ready(&self) -> Result<Vec<i32>, String> {
        let state = self.state.lock().unwrap();
        let missing = |state: &mut State| state.arrived.iter().any(Option::is_none);
        let state = self.changed.wait_while(state, missing).unwrap();
        state.arrived.iter().flatten().cloned().collect()
    }

    /// Lets all go on, or sends them home.
    pub(super) fn open(&self, go_on: bool) {
        self.state.lock().unwrap().open = Some(go_on);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: no thread passes before all are there and the gate is open; if one could not be prepared, its
    /// reason is told and none passes. Method: two threads, with and without a failure.
    #[test]
    fn all_pass_or_none() {
        for failure in [false, true] {
            let gate = Gate::new(2);
            let second = || {
                if failure {
                    Err("refused".to_owned())
                } else {
                    Ok(7)
                }
            };
            std::thread::scope(|scope| {
                let passes = [
                    scope.spawn(|| gate.pass(0, Ok(5))),
                    scope.spawn(|| gate.pass(1, second())),
                ];
                let ready = gate.wait_until_ready();
                gate.open(ready.is_ok());
                let expected = if failure {
                    Err("refused".to_owned())
                } else {
                    Ok(vec![5, 7])
                };
                assert_eq!(ready, expected);
                for pass in passes {
                    assert_eq!(pass.join().unwrap(), !failure);
                }
            });
        }
    }
}
