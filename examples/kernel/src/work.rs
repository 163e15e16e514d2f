//! Work that takes a known number of instructions.

use std::hint::black_box;

/// Steps of arithmetic in a block.
const STEPS: u32 = 250;

/// Computes for one block.
pub(crate) fn block(word: u64) -> u64 {
    let step = |word: u64, _| black_box(word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
    (0..STEPS).fold(word, step)
}

/// Computes for so many blocks.
pub(crate) fn burn(blocks: u64) {
    black_box((0..blocks).fold(1, |word, _| block(word)));
}
