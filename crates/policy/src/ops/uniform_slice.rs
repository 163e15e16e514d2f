//! `uniform-slice`: the baseline to which source 004 compares its virtual slices, idealised. For the
//! simulator only.
//!
//! Its model: the first of the two orders printed in source 004, `ABBCCDDABCCDDCCDD`: as
//! [`virtual-slice`](super::virtual_slice()), with the same order and the same bursts, but a slice of two
//! units for every task. (The real code shortens the slice with the number of waiting tasks; with a base
//! slice of four units and four tasks it gives the same: [`rustland-pre333`](super::rustland).)
//!
//! Where it is bad: long work is cut into as many pieces as any other; nine switches where virtual slices
//! need seven. A task that wakes up in a burst waits until all of it has run.

use event::Nanos;

use super::{Bursts, Promises};

/// The policy. See the file's beginning.
pub fn uniform_slice(promises: Promises) -> Bursts {
    Bursts::new("uniform-slice", promises, slice)
}

/// The same with the least slice of [`virtual-slice`](super::virtual_slice()) for every task, so that the two
/// differ in the rule alone.
pub fn uniform_slice_least(promises: Promises) -> Bursts {
    let promises = Promises {
        uniform: promises.unit,
        ..promises
    };
    Bursts::new("uniform-slice-least", promises, slice)
}

fn slice(promises: &Promises, _ahead: Nanos) -> Nanos {
    promises.uniform
}
