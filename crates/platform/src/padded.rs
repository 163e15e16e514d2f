//! A value with its cache lines to itself.

use core::ops::{Deref, DerefMut};

/// Keeps `T` on cache lines that hold nothing else.
///
/// 128 bytes, not 64: adjacent-line prefetchers of x86 fetch pairs, and Apple's lines are that long.
#[derive(Default, Debug)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

impl<T> Deref for Padded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Padded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
