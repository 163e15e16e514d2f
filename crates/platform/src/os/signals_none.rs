//! Signals on a system that has none.

use crate::{OnSignal, RefusalKind, Signal, SignalError};

pub(super) fn on_signal(
    signal: Signal,
    _call: Box<dyn Fn() + Send + Sync>,
) -> Result<OnSignal, SignalError> {
    Err(SignalError::new(
        signal,
        RefusalKind::Unsupported,
        "this system has no such signals: ask the program in another way",
    ))
}
