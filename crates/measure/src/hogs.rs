//! Hogs: threads of ordinary priority that only burn CPU time, as a busy machine has.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use event::Nanos;

use crate::thread_cpu;

/// Hogs, until they are stopped or dropped.
pub struct Hogs {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Nanos>>,
}

impl Hogs {
    /// Starts so many.
    ///
    /// # Errors
    /// In one line: the system starts no more threads.
    pub fn start(count: u32) -> Result<Hogs, String> {
        let mut hogs = Hogs {
            stop: Arc::default(),
            threads: Vec::new(),
        };
        for number in 0..count {
            let stop = Arc::clone(&hogs.stop);
            let thread = std::thread::Builder::new()
                .name(format!("hog {number}"))
                .spawn(move || burn(&stop))
                .map_err(|error| format!("cannot start a hog: {error}"))?;
            hogs.threads.push(thread);
        }
        Ok(hogs)
    }

    /// Ends them; the CPU time they have used.
    pub fn stop(mut self) -> Nanos {
        self.end()
    }

    fn end(&mut self) -> Nanos {
        self.stop.store(true, Ordering::Relaxed);
        let used = self.threads.drain(..).filter_map(|hog| hog.join().ok());
        used.fold(Nanos::ZERO, |sum, used| sum + used)
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.end();
    }
}

/// Computes until told to stop; the CPU time it took.
fn burn(stop: &AtomicBool) -> Nanos {
    let mut word = 1u64;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..1_000 {
            word = black_box(word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
        }
    }
    thread_cpu().unwrap_or_default()
}
