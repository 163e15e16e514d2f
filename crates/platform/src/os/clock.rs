//! The monotonic clock, read from the CPU's tick counter where that is trustworthy.
//!
//! A read through the system costs 20–50 ns, one of the tick counter about 10: the runtime stamps
//! job boundaries, so the difference is felt. The counter is used only if the CPU says that it runs
//! at a constant rate in all states *and* the kernel itself keeps time with it.
//!
//! Calibration: the first call remembers one (ticks, time) pair; calls go to the system until
//! [`BASELINE`] has passed, then the two pairs give the rate. Every [`REANCHOR`] the pair and the
//! rate are renewed so that the result stays with the system's clock, which is itself slewed: the
//! new line starts where the old one is and aims to meet the system's one period later.
//!
//! Invariant: the result never goes backwards on a thread by more than rounding (1 ns), because
//! lines are joined end to end and never jump.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use event::Nanos;

use super::system_clock::now as system_time;

/// How long to watch the system's clock before trusting the rate of the counter: an error of 100 ns
/// in each pair is then 20 parts in a million.
const BASELINE: u64 = 10_000_000;
/// How long one line is used.
const REANCHOR: u64 = 500_000_000;
/// Rates are fixed-point numbers: nanoseconds per tick times 2^32.
const RATE_SHIFT: u32 = 32;

/// Time since an arbitrary origin (on Linux: CLOCK_MONOTONIC's).
pub(super) fn now() -> Nanos {
    match ticks::read() {
        Some(_) => now_by_ticks(),
        None => Nanos(system_time()),
    }
}

/// The line in use: `time = start_time + (ticks - start_ticks) * rate`. A rate of zero means that
/// there is none yet. Guarded by a sequence lock: `version` is odd while it is being written.
struct ClockLine {
    version: AtomicU64,
    start_ticks: AtomicU64,
    start_time: AtomicU64,
    rate: AtomicU64,
}

static LINE: ClockLine = ClockLine {
    version: AtomicU64::new(0),
    start_ticks: AtomicU64::new(0),
    start_time: AtomicU64::new(0),
    rate: AtomicU64::new(0),
};

/// The last (ticks, time) pair taken from the system; also the writers' lock.
static LAST_PAIR: Mutex<Option<(u64, u64)>> = Mutex::new(None);

fn now_by_ticks() -> Nanos {
    loop {
        // Acquire, partner: the Release store of an even version in `set_line`.
        let version = LINE.version.load(Ordering::Acquire);
        let start_ticks = LINE.start_ticks.load(Ordering::Relaxed);
        let start_time = LINE.start_time.load(Ordering::Relaxed);
        let rate = LINE.rate.load(Ordering::Relaxed);
        let ticks = ticks::read().unwrap_or(start_ticks);
        // Acquire, partner: the Release fence in `set_line`; orders the reads above before the
        // second look at the version.
        fence(Ordering::Acquire);
        if version % 2 == 1 || LINE.version.load(Ordering::Relaxed) != version {
            continue;
        }
        if rate == 0 {
            return calibrate();
        }
        let time = along(start_ticks, start_time, rate, ticks);
        if time - start_time.min(time) > REANCHOR {
            reanchor(time);
        }
        return Nanos(time);
    }
}

fn along(start_ticks: u64, start_time: u64, rate: u64, ticks: u64) -> u64 {
    let passed = ticks.saturating_sub(start_ticks);
    start_time + ((u128::from(passed) * u128::from(rate)) >> RATE_SHIFT) as u64
}

#[cold]
fn calibrate() -> Nanos {
    let Ok(mut last) = LAST_PAIR.try_lock() else {
        return Nanos(system_time());
    };
    let (ticks, time) = pair();
    match *last {
        None => *last = Some((ticks, time)),
        Some((first_ticks, first_time)) if time - first_time >= BASELINE => {
            if let Some(rate) = rate(ticks - first_ticks, time - first_time) {
                set_line(ticks, time, rate);
                *last = Some((ticks, time));
            }
        }
        Some(_) => {}
    }
    Nanos(time)
}

#[cold]
fn reanchor(shown: u64) {
    let Ok(mut last) = LAST_PAIR.try_lock() else {
        return;
    };
    let Some((last_ticks, last_time)) = *last else {
        return;
    };
    let (ticks, time) = pair();
    if time.saturating_sub(last_time) < REANCHOR / 2 {
        return; // Another thread has just done it.
    }
    let old_rate = LINE.rate.load(Ordering::Relaxed);
    let here = along(
        LINE.start_ticks.load(Ordering::Relaxed),
        LINE.start_time.load(Ordering::Relaxed),
        old_rate,
        ticks,
    )
    .max(shown);
    let Some(true_rate) = rate(ticks.saturating_sub(last_ticks), time - last_time) else {
        return;
    };
    // Ahead by `here - time`: make that up over one period, but never by more than 1 %.
    let ahead =
        (here as i128 - time as i128).clamp(-(REANCHOR as i128) / 100, REANCHOR as i128 / 100);
    let aimed = i128::from(true_rate) * (i128::from(REANCHOR) - ahead) / i128::from(REANCHOR);
    set_line(ticks, here, aimed as u64);
    *last = Some((ticks, time));
}

fn rate(ticks: u64, time: u64) -> Option<u64> {
    if ticks == 0 {
        return None;
    }
    u64::try_from((u128::from(time) << RATE_SHIFT) / u128::from(ticks))
        .ok()
        .filter(|&rate| rate > 0)
}

/// Writers hold `LAST_PAIR`.
fn set_line(start_ticks: u64, start_time: u64, rate: u64) {
    let version = LINE.version.load(Ordering::Relaxed);
    LINE.version.store(version + 1, Ordering::Relaxed);
    // Release, partner: the Acquire fence in `now_by_ticks`; a reader that sees a new field sees
    // the odd version.
    fence(Ordering::Release);
    LINE.start_ticks.store(start_ticks, Ordering::Relaxed);
    LINE.start_time.store(start_time, Ordering::Relaxed);
    LINE.rate.store(rate, Ordering::Relaxed);
    // Release, partner: the Acquire load of the version in `now_by_ticks`.
    LINE.version.store(version + 2, Ordering::Release);
}

/// Ticks and system time of (nearly) one moment: of three tries the one with the least time spent
/// in between, so that a preemption does not spoil the rate.
fn pair() -> (u64, u64) {
    (0..3)
        .map(|_| {
            let before = ticks::read().unwrap_or(0);
            let time = system_time();
            let after = ticks::read().unwrap_or(0);
            (
                after.wrapping_sub(before),
                (before + (after.wrapping_sub(before)) / 2, time),
            )
        })
        .min_by_key(|&(width, _)| width)
        .map(|(_, pair)| pair)
        .expect("three tries were made")
}

/// This clock and the system's at (nearly) one moment: of five tries the one with the least time spent in
/// between.
pub(super) fn pair_of_clocks() -> (Nanos, Nanos) {
    (0..5)
        .map(|_| {
            let before = now();
            let system = Nanos(system_time());
            let width = now() - before;
            (width, (before + Nanos(width.0 / 2), system))
        })
        .min_by_key(|&(width, _)| width)
        .map(|(_, pair)| pair)
        .expect("five tries were made")
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod ticks {
    //! The time-stamp counter, if it is invariant and the kernel uses it too.

    use std::sync::atomic::{AtomicU8, Ordering};

    const UNKNOWN: u8 = 0;
    const TRUSTED: u8 = 1;
    const DISTRUSTED: u8 = 2;
    static VERDICT: AtomicU8 = AtomicU8::new(UNKNOWN);

    #[inline(always)]
    pub(super) fn read() -> Option<u64> {
        // Relaxed: the verdict is a pure function of the machine; any thread may find it again.
        match VERDICT.load(Ordering::Relaxed) {
            // SAFETY: reading the counter has no preconditions on x86-64.
            TRUSTED => Some(unsafe { core::arch::x86_64::_rdtsc() }),
            DISTRUSTED => None,
            _ => {
                let verdict = if trusted() { TRUSTED } else { DISTRUSTED };
                VERDICT.store(verdict, Ordering::Relaxed);
                read()
            }
        }
    }

    #[allow(unused_unsafe, reason = "the call is unsafe before Rust 1.94")]
    fn cpuid(leaf: u32) -> core::arch::x86_64::CpuidResult {
        // SAFETY: every CPU of this architecture has the instruction.
        unsafe { core::arch::x86_64::__cpuid(leaf) }
    }

    fn trusted() -> bool {
        const INVARIANT: u32 = 1 << 8;
        let invariant =
            cpuid(0x8000_0000).eax >= 0x8000_0007 && cpuid(0x8000_0007).edx & INVARIANT != 0;
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let by_kernel = std::fs::read_to_string(source).unwrap_or_default();
        invariant
            && matches!(
                by_kernel.trim_ascii(),
                "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page"
            )
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod ticks {
    //! The generic timer's virtual count: constant rate by architecture.

    #[inline(always)]
    pub(super) fn read() -> Option<u64> {
        let count: u64;
        // SAFETY: CNTVCT_EL0 is readable from user code on every system we build for; the
        // instruction touches no memory.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
        Some(count)
    }
}

#[cfg(not(any(
    all(target_arch = "x86_64", target_os = "linux", not(miri)),
    all(target_arch = "aarch64", not(miri))
)))]
mod ticks {
    //! No counter worth trusting: the system's clock is asked each time.

    #[inline(always)]
    pub(super) fn read() -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the tick clock follows the system's. Method: compare both before and after the
    //! calibration and one re-anchoring; the bound is on their difference, not on speed.
    use super::*;

    #[test]
    fn stays_with_the_system_clock_and_never_goes_back() {
        let end = system_time() + if cfg!(miri) { 1_000_000 } else { 1_300_000_000 };
        let (mut last, mut worst) = (now(), 0);
        while system_time() < end {
            let before = system_time();
            let shown = now();
            let after = system_time();
            assert!(shown.0 + 1 >= last.0, "{last:?} then {shown:?}");
            last = shown;
            let off = before
                .saturating_sub(shown.0)
                .max(shown.0.saturating_sub(after));
            worst = worst.max(off);
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        assert!(worst < 1_000_000, "the clocks differ by {worst} ns");
    }
}
