//! Mutexes whose protocol can be chosen, on systems where that is not tried: there are none.

use std::convert::Infallible;
use std::io;

/// A mutex of the C library. There is none here.
#[derive(Debug)]
pub struct Mutex(Infallible);

impl Mutex {
    /// A free mutex; its holder inherits priorities, or not.
    ///
    /// # Errors
    /// Always: it was not tried on this system.
    pub fn new(_inherits: bool) -> io::Result<Mutex> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Takes it, waiting for it while another thread holds it.
    pub fn lock(&self) {
        match self.0 {}
    }

    /// Gives it back.
    ///
    /// # Safety
    /// The calling thread holds it, by [`lock`](Mutex::lock).
    pub unsafe fn unlock(&self) {
        match self.0 {}
    }

    /// Calls `held` while the caller holds it.
    pub fn with<R>(&self, _held: impl FnOnce() -> R) -> R {
        match self.0 {}
    }
}
