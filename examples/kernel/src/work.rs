//! Work that takes a known number of instructions.

use std::hint::black_box;
use std::time::{Duration, Instant};

use event::Nanos;
use measure::thread_cpu;

/// Steps of arithmetic in a block.
const STEPS: u32 = 250;

/// How long [`calibrate`] computes before, and while it measures.
const WARM_UP: Duration = Duration::from_millis(300);
const MEASURED: Duration = Duration::from_millis(2_000);

/// Computes for one block.
pub(crate) fn block(word: u64) -> u64 {
    let step = |word: u64, _| black_box(word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
    (0..STEPS).fold(word, step)
}

/// Computes for so many blocks.
pub(crate) fn burn(blocks: u64) {
    black_box((0..blocks).fold(1, |word, _| block(word)));
}

/// How many blocks take a millisecond of CPU time.
pub(crate) fn calibrate() -> Result<u64, String> {
    let cpu = || thread_cpu().ok_or("this system has no clock of a thread's CPU time");
    let until = |time: Duration| {
        let began = Instant::now();
        let mut blocks = 0_u64;
        while began.elapsed() < time {
            burn(50);
            blocks += 50;
        }
        blocks
    };
    until(WARM_UP);
    let before = cpu()?;
    let blocks = until(MEASURED);
    let used = (cpu()? - before).max(Nanos(1));
    Ok((u128::from(blocks) * 1_000_000 / u128::from(used.0)) as u64)
}
