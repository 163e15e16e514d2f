//! Signals that would end this process, while somebody else is to decide about it.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// As long as this lives, SIGINT (Ctrl-C in a terminal) does nothing to this process. Programs that are
/// started meanwhile would ignore it, too; those that run already do not.
#[derive(Debug)]
pub struct IgnoreInterrupts {
    before: libc::sighandler_t,
}

impl IgnoreInterrupts {
    /// From now on.
    #[expect(
        clippy::new_without_default,
        reason = "it does something to the process"
    )]
    pub fn new() -> IgnoreInterrupts {
        // SAFETY: to ignore a signal runs nothing.
        let before = unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
        IgnoreInterrupts { before }
    }
}

impl Drop for IgnoreInterrupts {
    fn drop(&mut self) {
        if self.before != libc::SIG_ERR {
            // SAFETY: it was in force before.
            unsafe { libc::signal(libc::SIGINT, self.before) };
        }
    }
}

/// The process that SIGTERM is passed on to; 0: there is none.
///
/// Relaxed, here and below: a handler runs on a thread that has set what it reads, or any time later.
static HEIR: AtomicI32 = AtomicI32::new(0);
/// Whether one came before there was somebody to pass it on to.
static CAME: AtomicBool = AtomicBool::new(false);

extern "C" fn pass_on(signal: libc::c_int) {
    match HEIR.load(Ordering::Relaxed) {
        0 => CAME.store(true, Ordering::Relaxed),
        // SAFETY: kill may be called in a handler. It fails, and sets errno, only if there is no such
        // process.
        heir => _ = unsafe { libc::kill(heir, signal) },
    }
}

/// As long as this lives, SIGTERM (what `kill`, `timeout` and service managers send) does not end this
/// process: a child gets it, if there is one. Programs that are started meanwhile are ended by it as ever.
///
/// There must be one at a time in a process.
#[derive(Debug)]
pub struct PassTermination {
    before: libc::sighandler_t,
}

impl PassTermination {
    /// From now on.
    #[expect(
        clippy::new_without_default,
        reason = "it does something to the process"
    )]
    pub fn new() -> PassTermination {
        HEIR.store(0, Ordering::Relaxed);
        CAME.store(false, Ordering::Relaxed);
        let handler = pass_on as extern "C" fn(libc::c_int);
        // SAFETY: the handler does nothing that is not allowed in one. Calls that it interrupts are begun
        // again (BSD's semantics, which every libc here has).
        let before = unsafe { libc::signal(libc::SIGTERM, handler as libc::sighandler_t) };
        PassTermination { before }
    }

    /// Waits for a child, which gets every SIGTERM until it has ended, and those that came before.
    ///
    /// # Errors
    /// Those of [`Child::wait`](std::process::Child::wait).
    pub fn wait(
        &self,
        child: &mut std::process::Child,
    ) -> std::io::Result<std::process::ExitStatus> {
        let number = i32::try_from(child.id()).unwrap_or(0);
        HEIR.store(number, Ordering::Relaxed);
        if CAME.swap(false, Ordering::Relaxed) {
            pass_on(libc::SIGTERM);
        }
        let status = child.wait();
        // Its number is free by now, but numbers are given out in turn: nobody else has it yet.
        HEIR.store(0, Ordering::Relaxed);
        status
    }
}

impl Drop for PassTermination {
    fn drop(&mut self) {
        if self.before != libc::SIG_ERR {
            // SAFETY: it was in force before.
            unsafe { libc::signal(libc::SIGTERM, self.before) };
        }
    }
}
