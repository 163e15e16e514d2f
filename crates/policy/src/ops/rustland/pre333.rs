//! `rustland-pre333`: `scx_rustland` 0.0.7, before the pull request of source 004.
//!
//! The slice shrinks with the number of tasks that wait: the base slice by half of their number (rounded
//! up), at least 0.25 ms. Four tasks get 2.5 ms each, 16 get 0.625 ms, 40 and more get the least.
//!
//! Where it is bad, as source 004 says: under load all slices are so short that switches eat the gain, and
//! their lengths jump with the length of the queue.

use event::Nanos;

use super::{Constants, Position, Rustland};

/// The policy. See the file's beginning.
pub fn pre333(constants: Constants) -> Rustland {
    Rustland::new("rustland-pre333", constants, slice)
}

fn slice(constants: &Constants, position: Position) -> Nanos {
    let parts = position.waiting.div_ceil(2).max(1);
    Nanos(constants.slice.0 / parts).max(constants.slice_min)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: slices are those documented. Method: a table of queue lengths.
    #[test]
    fn slices_shrink_with_the_queue() {
        let slice_of = |waiting| {
            let ahead = Nanos(1);
            slice(&Constants::default(), Position { ahead, waiting }).0
        };
        let lengths = [1, 2, 3, 4, 16, 39, 40, 41, 1000];
        let expected = [
            5_000_000, 5_000_000, 2_500_000, 2_500_000, 625_000, 250_000, 250_000, 250_000, 250_000,
        ];
        assert_eq!(lengths.map(slice_of), expected);
    }
}
