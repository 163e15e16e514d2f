//! The floating-point control word: rounding mode, flush-to-zero and denormals-are-zero.
//!
//! An engine that sets FTZ/DAZ on its main thread means it for its jobs too; a worker that computes
//! denormals gives other results and, on some CPUs, takes a hundred times as long.

/// The caller's control word.
pub(super) fn environment() -> u64 {
    control::read()
}

/// Makes this the caller's control word.
pub(super) fn set_environment(word: u64) {
    control::write(word);
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod control {
    /// The six sticky exception flags: what has happened, not what is wanted.
    const FLAGS: u64 = 0x3f;

    pub(super) fn read() -> u64 {
        let mut word = 0u32;
        // SAFETY: stmxcsr writes four bytes to `word`, which lives on this stack frame.
        unsafe { core::arch::asm!("stmxcsr [{}]", in(reg) &mut word, options(nostack)) };
        u64::from(word) & !FLAGS
    }

    pub(super) fn write(word: u64) {
        let word = (word & !FLAGS) as u32;
        // SAFETY: `word` was read from MXCSR on this machine, so no reserved bit is set; ldmxcsr
        // only reads the four bytes.
        unsafe { core::arch::asm!("ldmxcsr [{}]", in(reg) &word, options(nostack, readonly)) };
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod control {
    pub(super) fn read() -> u64 {
        let word: u64;
        // SAFETY: FPCR is readable from user code and the instruction touches no memory.
        unsafe { core::arch::asm!("mrs {}, fpcr", out(reg) word, options(nomem, nostack)) };
        word
    }

    pub(super) fn write(word: u64) {
        // SAFETY: the word was read from FPCR on this machine.
        unsafe { core::arch::asm!("msr fpcr, {}", in(reg) word, options(nomem, nostack)) };
    }
}

#[cfg(not(any(
    all(target_arch = "x86_64", not(miri)),
    all(target_arch = "aarch64", not(miri))
)))]
mod control {
    pub(super) fn read() -> u64 {
        0
    }
    pub(super) fn write(_word: u64) {}
}
