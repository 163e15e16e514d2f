//! `rustland-pre333`: `scx_rustland` 0.0.7, before the pull request of source 004.
//!
//! The slice shrinks with the number of tasks that wait for a decision: the base slice by half of their
//! number (rounded up), at least 0.25 ms. Four tasks get 2.5 ms each, 16 get 0.625 ms, 40 and more get the
//! least.
//!
//! Under load few tasks wait for a decision, however many wait for a CPU: each CPU that asks for a task gives
//! the process a round, and each round dispatches a task at least, so those that wait are in the dispatch
//! queues. `rustland-pre333-all` counts them, too, which is what source 004 says ("the total number of tasks
//! waiting to be scheduled"). No version of `scx_rustland` is known to do so: its process cannot tell which
//! of the tasks that it dispatched have begun to run.
//!
//! Where it is bad, as source 004 says: under load all slices are so short that switches eat the gain, and
//! their lengths jump with the length of the queue.

use event::Nanos;

use super::{Constants, Position, Rustland};

/// The policy. See the file's beginning.
pub fn pre333(constants: Constants) -> Rustland {
    let of_those_in_hand =
        |constants: &Constants, position: Position| slice(constants, position.in_hand);
    Rustland::new("rustland-pre333", constants, of_those_in_hand)
}

/// The same with slices by the number of all tasks that wait for a CPU. See the file's beginning.
pub fn pre333_all(constants: Constants) -> Rustland {
    let of_all = |constants: &Constants, position: Position| slice(constants, position.waiting);
    Rustland::new("rustland-pre333-all", constants, of_all)
}

fn slice(constants: &Constants, waiting: u64) -> Nanos {
    let parts = waiting.div_ceil(2).max(1);
    Nanos(constants.slice.0 / parts).max(constants.slice_min)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: slices are those documented. Method: a table of queue lengths.
    #[test]
    fn slices_shrink_with_the_queue() {
        let slice_of = |waiting| slice(&Constants::default(), waiting).0;
        let lengths = [1, 2, 3, 4, 16, 39, 40, 41, 1000];
        let expected = [
            5_000_000, 5_000_000, 2_500_000, 2_500_000, 625_000, 250_000, 250_000, 250_000, 250_000,
        ];
        assert_eq!(lengths.map(slice_of), expected);
    }
}
