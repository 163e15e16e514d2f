//! A look at a future.

use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};

/// The output of a future that is ready at its first poll. It is dropped otherwise.
pub fn now_or_never<F: Future>(future: F) -> Option<F::Output> {
    output(pin!(future))
}

/// Polls the future once.
pub fn check_ready<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    output(Pin::new(future))
}

fn output<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
