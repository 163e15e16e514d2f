//! Handles as futures.

use std::future::Future;
use std::pin::Pin;
use std::task::{self, Poll};

use super::job::Job;

impl<T> Future for Job<T> {
    type Output = T;

    /// Polling runs nothing and never blocks: without workers, a thread has to wait, flush or pump while a
    /// handle is awaited. The first poll registers the waker under a lock.
    ///
    /// # Panics
    /// As [`Job::wait`].
    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<T> {
        let job = self.id().ticket();
        match self.owner.notify(job, task.waker(), self.waker) {
            Ok(None) => Poll::Ready(self.give().wait()),
            Ok(pending) => {
                self.waker = pending;
                Poll::Pending
            }
            Err(error) => panic!("{error}"),
        }
    }
}
