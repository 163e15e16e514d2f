//! A thread that must not be held up, such as an audio callback, beside a game that keeps the workers busy.
//!
//! The thread warms up once. After that it hands off work quietly: no wake-up, no lock, no allocation. It
//! computes itself what it needs in time, or takes it if it is there.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a program has threads and locks of its own"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use paceline::JobSystem;

const BLOCKS: u32 = 50;
const SAMPLES: usize = 256;

/// One call of the callback: mixes a block, and hands off the drawing of its level meter.
fn callback(js: &JobSystem, block: &mut [f32; SAMPLES], number: u32, drawn: &Arc<AtomicU32>) {
    for (i, sample) in block.iter_mut().enumerate() {
        *sample = ((number as usize * SAMPLES + i) as f32 * 0.01).sin();
    }
    let loudest = block
        .iter()
        .fold(0.0_f32, |most, sample| most.max(sample.abs()));
    let drawn = drawn.clone();
    js.job("meter").quiet().schedule(move |_| {
        assert!(loudest <= 1.0);
        drawn.fetch_add(1, Ordering::Relaxed);
    });
}

fn main() {
    let js = JobSystem::new();
    let (drawn, is_over) = (Arc::new(AtomicU32::new(0)), AtomicBool::new(false));
    thread::scope(|threads| {
        threads.spawn(|| {
            js.warm_up(256);
            let mut block = [0.0; SAMPLES];
            for number in 0..BLOCKS {
                callback(&js, &mut block, number, &drawn);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        // The game: frames whose waits and flushes never run a meter on this thread.
        while !is_over.load(Ordering::Relaxed) {
            js.scope(|scope| {
                for name in ["physics", "animation", "culling"] {
                    scope.job(name).schedule(|cx| {
                        cx.over(0..1000).for_each(|_| ());
                    });
                }
            });
        }
    });
    // The end of the audio thread announced what was still quiet.
    while drawn.load(Ordering::Relaxed) < BLOCKS {
        js.poll();
    }
    println!(
        "{BLOCKS} blocks mixed, {} meters drawn",
        drawn.load(Ordering::Relaxed)
    );
}
