//! Parking with std's mutex and condition variable, for systems without a futex of our own.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use event::Nanos;

use super::{alone, clock};
use crate::Parker;

/// A token behind a lock.
#[derive(Debug, Default)]
pub struct OsParker {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    token: bool,
    parked: bool,
}

impl OsParker {
    pub(super) fn new() -> OsParker {
        OsParker::default()
    }
}

impl Parker for OsParker {
    fn park(&self, deadline: Nanos) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.token && alone::rest(deadline) {
            return;
        }
        state.parked = true;
        while !state.token {
            if deadline == Nanos::MAX {
                state = self
                    .changed
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let left = Duration::from(deadline - clock::now());
            if left.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *state = State::default();
    }

    fn unpark(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let wake = state.parked && !state.token;
        state.token = true;
        drop(state);
        if wake {
            self.changed.notify_one();
        }
        wake
    }
}
